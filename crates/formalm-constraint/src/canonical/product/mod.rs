//! A language's states joined with places of the tokenizer's marked text.
//!
//! A pair is *productive* if some text completes a member and may be marked so. It is *clean* if a
//! piece may end there and the rest still be completed: then it does not matter which tokens the
//! piece has, as the tokens of the next one are chosen anew.

mod completion_paths;

use formalm_automata::deadline::check_deadline;
use formalm_automata::{Error, Keys, Machine, Resource, StateId};
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, SplitterState};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Context, MOST_STEPS};

/// Pairs that may be built.
const MOST_PAIRS: usize = 2_000_000;

/// A pair, by number.
pub(crate) type Pair = u32;

/// What is known of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Unknown,
    Yes,
    No,
}

/// The pairs met so far.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    ids: FxHashMap<(u32, SplitterState), Pair>,
    /// Of a machine with a stack the state that serves for all of a key.
    common: FxHashMap<u32, StateId>,
    list: Vec<(StateId, SplitterState)>,
    productive: Vec<Known>,
    clean: Vec<Known>,
    /// Pairs taken for productive, as a bounded search found nothing.
    undecided: usize,
    /// Per state of the language a byte that leads on to a member, none where it is one.
    ahead: FxHashMap<u32, Option<(u8, StateId)>>,
}

impl Pairs {
    /// The pair of a state and a place.
    pub(crate) fn intern(&mut self, state: StateId, place: SplitterState) -> Result<Pair, Error> {
        let next = self.list.len();
        if next >= MOST_PAIRS {
            return Err(Error::Limit {
                resource: Resource::States,
                needed: next as u64 + 1,
                allowed: MOST_PAIRS as u64,
            });
        }
        let pair = *self.ids.entry((state.number(), place)).or_insert(next as Pair);
        if pair as usize == next {
            self.list.push((state, place));
            self.productive.push(Known::Unknown);
            self.clean.push(Known::Unknown);
        }
        Ok(pair)
    }

    /// The pair that serves for one in all questions of what may follow. Of a machine with a stack
    /// it has the first state that had the same key: no token tells the two apart, and what was
    /// read can make a state of every text.
    pub(crate) fn common<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
    ) -> Result<Pair, Error> {
        if context.machine.is_finite() {
            return Ok(pair);
        }
        let (state, place) = self.parts(pair);
        let key = context.keys.lasting_key(state)?;
        let state = *self.common.entry(key.number()).or_insert(state);
        self.intern(state, place)
    }

    /// The state and the place of a pair.
    #[inline]
    pub(crate) fn parts(&self, pair: Pair) -> (StateId, SplitterState) {
        self.list[pair as usize]
    }

    /// The pair that serves for the one after a byte.
    pub(crate) fn step<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
        (byte, mark): (u8, Boundary),
    ) -> Result<Option<Pair>, Error> {
        let (state, place) = self.parts(pair);
        let Some(place) = context.encoder.splitter().step(place, byte, mark) else {
            return Ok(None);
        };
        match context.machine.step(state, byte)? {
            Some(state) => {
                let pair = self.intern(state, place)?;
                self.common(context, pair).map(Some)
            }
            None => Ok(None),
        }
    }

    fn is_end<K: Keys>(&self, context: Context<'_, K>, pair: Pair) -> Result<bool, Error> {
        let (state, place) = self.parts(pair);
        Ok(context.encoder.splitter().may_end(place) && context.machine.is_accepting(state)?)
    }

    /// Whether some text completes a member from here and may be marked so.
    pub(crate) fn is_productive<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
    ) -> Result<bool, Error> {
        match self.productive[pair as usize] {
            Known::Yes => return Ok(true),
            Known::No => return Ok(false),
            Known::Unknown => {}
        }
        if self.is_completed(context, pair)? {
            return Ok(true);
        }
        // Any way on, depth first; most pairs met are settled by a completion.
        let mut seen: FxHashSet<Pair> = FxHashSet::from_iter([pair]);
        let mut path: Vec<(Pair, Vec<Pair>)> = vec![(pair, self.successors(context, pair)?)];
        while let Some((_, left)) = path.last_mut() {
            check_deadline()?;
            let Some(next) = left.pop() else {
                path.pop();
                continue;
            };
            if self.productive[next as usize] == Known::No || !seen.insert(next) {
                continue;
            }
            if self.productive[next as usize] == Known::Yes || self.is_completed(context, next)? {
                for (pair, _) in path {
                    self.productive[pair as usize] = Known::Yes;
                }
                return Ok(true);
            }
            if !context.machine.is_finite() && seen.len() > MOST_STEPS {
                self.undecided += seen.len();
                let mut open: Vec<Pair> = seen.into_iter().collect();
                open.sort_unstable();
                for pair in open {
                    self.productive[pair as usize] = Known::Yes;
                }
                return Ok(true);
            }
            path.push((next, self.successors(context, next)?));
        }
        let mut barren: Vec<Pair> = seen.into_iter().collect();
        barren.sort_unstable();
        for pair in barren {
            self.productive[pair as usize] = Known::No;
        }
        Ok(false)
    }

    /// The pairs after one byte.
    fn successors<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
    ) -> Result<Vec<Pair>, Error> {
        let live = context.machine.live_bytes(self.parts(pair).0)?;
        let mut list = Vec::new();
        for byte in live.iter() {
            for mark in BOUNDARIES {
                if let Some(next) = self.step(context, pair, (byte, mark))?
                    && !list.contains(&next)
                {
                    list.push(next);
                }
            }
        }
        list.extend(self.all_behind_special(context, pair)?.into_iter().map(|one| one.1));
        Ok(list)
    }

    /// Number of pairs that a bounded search left open.
    pub(crate) fn undecided_count(&self) -> usize {
        self.undecided
    }

    /// Whether a piece may end here and a member still be completed.
    pub(crate) fn is_clean<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
    ) -> Result<bool, Error> {
        match self.clean[pair as usize] {
            Known::Yes => return Ok(true),
            Known::No => return Ok(false),
            Known::Unknown => {}
        }
        let clean = self.find_clean(context, pair)?;
        self.clean[pair as usize] = if clean { Known::Yes } else { Known::No };
        Ok(clean)
    }

    fn find_clean<K: Keys>(&mut self, context: Context<'_, K>, pair: Pair) -> Result<bool, Error> {
        if self.is_end(context, pair)? {
            return Ok(true);
        }
        if !self.behind_special(context, pair)?.is_empty() {
            return Ok(true);
        }
        for byte in context.machine.live_bytes(self.parts(pair).0)?.iter() {
            for mark in [Boundary::Pretoken, Boundary::Added] {
                if let Some(next) = self.step(context, pair, (byte, mark))?
                    && self.is_productive(context, next)?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        40 * self.list.len() + 24 * self.ahead.len()
    }
}
