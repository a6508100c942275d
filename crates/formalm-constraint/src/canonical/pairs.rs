//! A language's states joined with places of the tokenizer's marked text.
//!
//! A pair is *productive* if some text completes a member and may be marked so. It is *clean* if a
//! piece may end there and the rest still be completed: then it does not matter which tokens the
//! piece has, as the tokens of the next one are chosen anew.

use formalm_automata::{Error, Keys, Machine, Resource, SPECIAL, StateId};
use formalm_vocabulary::canonical::{MARKS, Mark, Place};
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
    ids: FxHashMap<(u32, Place), Pair>,
    /// Of a machine with a stack the state that serves for all of a key.
    common: FxHashMap<u32, StateId>,
    list: Vec<(StateId, Place)>,
    productive: Vec<Known>,
    clean: Vec<Known>,
    /// Pairs taken for productive, as a bounded search found nothing.
    undecided: usize,
    /// Per state of the language a byte that leads on to a member, none where it is one.
    ahead: FxHashMap<u32, Option<(u8, StateId)>>,
}

/// A way through a text up to one of its bytes.
struct Way {
    pair: Pair,
    /// The entry of the layer before.
    from: usize,
    step: (u8, Mark),
    /// A piece has ended on the way.
    parted: bool,
}

impl Pairs {
    /// The pair of a state and a place.
    pub(crate) fn intern(&mut self, state: StateId, place: Place) -> Result<Pair, Error> {
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
        let key = context.keys.key(state)?;
        let state = *self.common.entry(key.number()).or_insert(state);
        self.intern(state, place)
    }

    /// The state and the place of a pair.
    #[inline]
    pub(crate) fn parts(&self, pair: Pair) -> (StateId, Place) {
        self.list[pair as usize]
    }

    /// The pair that serves for the one after a byte.
    pub(crate) fn step<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
        (byte, mark): (u8, Mark),
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

    fn is_end<K: Keys>(&self, context: Context<'_, K>, pair: Pair) -> bool {
        let (state, place) = self.parts(pair);
        context.machine.is_accepting(state) && context.encoder.splitter().ends(place)
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
            for mark in MARKS {
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

    /// A text that goes on to a member, found by looking at the language alone and then whether it
    /// may be marked so: as much of it as is in the current piece. `first` is its first byte if
    /// given. Finding none proves nothing.
    pub(crate) fn rest_of_piece<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
        first: Option<u8>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(layers) = self.completion(context, pair, first, true)? else { return Ok(None) };
        let mut steps = Vec::new();
        let mut at = 0;
        for layer in layers.iter().skip(1).rev() {
            steps.push(layer[at].step);
            at = layer[at].from;
        }
        let inside = steps.iter().rev().take_while(|(_, mark)| *mark == Mark::Inside);
        Ok(Some(inside.map(|(byte, _)| *byte).collect()))
    }

    /// Whether a completion of the language may be marked so. Finding none proves nothing.
    fn is_completed<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
    ) -> Result<bool, Error> {
        Ok(self.completion(context, pair, None, false)?.is_some())
    }

    /// The ways through a text to a pair known to be productive, the first entry of the last layer;
    /// if `parted`, to one in a later piece or at the end of the text.
    fn completion<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
        mut first: Option<u8>,
        parted: bool,
    ) -> Result<Option<Vec<Vec<Way>>>, Error> {
        let mut state = self.parts(pair).0;
        let mut layers = vec![vec![Way { pair, from: 0, step: (0, Mark::Inside), parted: false }]];
        loop {
            let last = layers.len() - 1;
            if first.is_none()
                && let Some(at) =
                    layers[last].iter().position(|way| self.is_goal(context, way, parted))
            {
                layers[last].swap(0, at);
                self.learn(&layers);
                return Ok(Some(layers));
            }
            let (byte, mut next) = match first.take() {
                // Not the rest of a piece.
                Some(SPECIAL) => return Ok(None),
                Some(byte) => match context.machine.step(state, byte)? {
                    Some(next) => (byte, next),
                    None => return Ok(None),
                },
                None => match self.ahead(context, state)? {
                    Some(hop) => hop,
                    None => return Ok(None),
                },
            };
            let layer = if byte == SPECIAL {
                let Some(behind) = self.ahead_of_special(context, next)? else { return Ok(None) };
                next = behind;
                self.layer_behind_special(context, &layers[last], next)?
            } else {
                self.layer(context, &layers[last], (byte, next))?
            };
            if layer.is_empty() {
                return Ok(None);
            }
            layers.push(layer);
            state = next;
        }
    }

    /// The ways on with a byte, which leads to a state of the language.
    fn layer<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        before: &[Way],
        (byte, state): (u8, StateId),
    ) -> Result<Vec<Way>, Error> {
        let mut layer: Vec<Way> = Vec::new();
        for (from, way) in before.iter().enumerate() {
            for mark in MARKS {
                let place = self.parts(way.pair).1;
                let Some(place) = context.encoder.splitter().step(place, byte, mark) else {
                    continue;
                };
                let pair = self.intern(state, place)?;
                if self.productive[pair as usize] != Known::No
                    && !layer.iter().any(|known| known.pair == pair)
                {
                    let parted = way.parted || mark != Mark::Inside;
                    layer.push(Way { pair, from, step: (byte, mark), parted });
                }
            }
        }
        Ok(layer)
    }

    /// Where a text that leads on to a member comes out of the special token that it is in.
    fn ahead_of_special<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        mut state: StateId,
    ) -> Result<Option<StateId>, Error> {
        while let Some((byte, next)) = self.ahead(context, state)? {
            if byte == SPECIAL {
                return Ok(Some(next));
            }
            state = next;
        }
        Ok(None)
    }

    /// The way on behind a special token, where a text begins.
    fn layer_behind_special<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        before: &[Way],
        state: StateId,
    ) -> Result<Vec<Way>, Error> {
        let splitter = context.encoder.splitter();
        let ends = |way: &Way| splitter.ends(self.parts(way.pair).1);
        let Some(from) = before.iter().position(ends) else { return Ok(Vec::new()) };
        let pair = self.intern(state, splitter.start())?;
        if self.productive[pair as usize] == Known::No {
            return Ok(Vec::new());
        }
        Ok(vec![Way { pair, from, step: (SPECIAL, Mark::Piece), parted: true }])
    }

    fn is_goal<K: Keys>(&self, context: Context<'_, K>, way: &Way, parted: bool) -> bool {
        let known = self.productive[way.pair as usize] == Known::Yes && (way.parted || !parted);
        known || self.is_end(context, way.pair)
    }

    /// Every pair on the way to the first entry of the last layer is productive.
    fn learn(&mut self, layers: &[Vec<Way>]) {
        let mut at = 0;
        for layer in layers.iter().rev() {
            self.productive[layer[at].pair as usize] = Known::Yes;
            at = layer[at].from;
        }
    }

    /// A byte that leads on to a member, so that following these bytes ends at one; none where the
    /// text is a member and nothing need follow.
    fn ahead<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        state: StateId,
    ) -> Result<Option<(u8, StateId)>, Error> {
        if let Some(&hop) = self.ahead.get(&state.number()) {
            return Ok(hop);
        }
        if !context.machine.is_finite() {
            return self.ahead_of_stack(context, state);
        }
        let mut came: Vec<(StateId, usize, u8)> = vec![(state, 0, 0)];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([state.number()]);
        let mut at = 0;
        while at < came.len() {
            let here = came[at].0;
            let known = self.ahead.contains_key(&here.number());
            if known || context.machine.is_accepting(here) {
                if !known {
                    self.ahead.insert(here.number(), None);
                }
                let mut after = at;
                while after != 0 {
                    let (next, before, byte) = came[after];
                    self.ahead.insert(came[before].0.number(), Some((byte, next)));
                    after = before;
                }
                break;
            }
            for byte in context.machine.live_bytes(here)?.iter() {
                if let Some(next) = context.machine.step(here, byte)?
                    && seen.insert(next.number())
                {
                    came.push((next, at, byte));
                }
            }
            at += 1;
        }
        Ok(self.ahead.get(&state.number()).copied().flatten())
    }

    /// The same where a search for the way could meet states without end.
    fn ahead_of_stack<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        state: StateId,
    ) -> Result<Option<(u8, StateId)>, Error> {
        let mut here = state;
        for byte in context.machine.some_member(state)? {
            let Some(next) = context.machine.step(here, byte)? else { break };
            if self.ahead.insert(here.number(), Some((byte, next))).is_some() {
                break;
            }
            here = next;
        }
        if context.machine.is_accepting(here) {
            self.ahead.insert(here.number(), None);
        }
        Ok(self.ahead.get(&state.number()).copied().flatten())
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
        if self.is_end(context, pair) {
            return Ok(true);
        }
        if !self.behind_special(context, pair, None)?.is_empty() {
            return Ok(true);
        }
        for byte in context.machine.live_bytes(self.parts(pair).0)?.iter() {
            for mark in [Mark::Piece, Mark::Added] {
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
