//! Ways through texts of a language that complete a member.

use formalm_automata::deadline::check_deadline;
use formalm_automata::{Error, Keys, Machine, SPECIAL, StateId};
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary};
use rustc_hash::FxHashSet;

use super::super::Context;
use super::{Known, Pair, Pairs};

/// A way through a text up to one of its bytes.
struct Way {
    pair: Pair,
    /// The entry of the layer before.
    from: usize,
    step: (u8, Boundary),
    /// A piece has ended on the way.
    parted: bool,
}

impl Pairs {
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
        let inside = steps.iter().rev().take_while(|(_, mark)| *mark == Boundary::Inside);
        Ok(Some(inside.map(|(byte, _)| *byte).collect()))
    }

    /// Whether a completion of the language may be marked so. Finding none proves nothing.
    pub(super) fn is_completed<K: Keys>(
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
        let mut layers =
            vec![vec![Way { pair, from: 0, step: (0, Boundary::Inside), parted: false }]];
        loop {
            check_deadline()?;
            let last = layers.len() - 1;
            if first.is_none()
                && let Some(at) = self.goal(context, &layers[last], parted)?
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
            for mark in BOUNDARIES {
                let place = self.parts(way.pair).1;
                let Some(place) = context.encoder.splitter().step(place, byte, mark) else {
                    continue;
                };
                let pair = self.intern(state, place)?;
                if self.productive[pair as usize] != Known::No
                    && !layer.iter().any(|known| known.pair == pair)
                {
                    let parted = way.parted || mark != Boundary::Inside;
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
        let ends = |way: &Way| splitter.may_end(self.parts(way.pair).1);
        let Some(from) = before.iter().position(ends) else { return Ok(Vec::new()) };
        let pair = self.intern(state, splitter.start())?;
        if self.productive[pair as usize] == Known::No {
            return Ok(Vec::new());
        }
        Ok(vec![Way { pair, from, step: (SPECIAL, Boundary::Pretoken), parted: true }])
    }

    /// The first of some ways that leads to a pair known to be productive, or to a member.
    fn goal<K: Keys>(
        &self,
        context: Context<'_, K>,
        ways: &[Way],
        parted: bool,
    ) -> Result<Option<usize>, Error> {
        for (at, way) in ways.iter().enumerate() {
            let known = self.productive[way.pair as usize] == Known::Yes && (way.parted || !parted);
            if known || self.is_end(context, way.pair)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
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
            check_deadline()?;
            let here = came[at].0;
            let known = self.ahead.contains_key(&here.number());
            if known || context.machine.is_accepting(here)? {
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
        let mut way = Vec::new();
        for byte in context.machine.some_member(state)? {
            // From there on the way is known already.
            if self.ahead.contains_key(&here.number()) {
                break;
            }
            let Some(next) = context.machine.step(here, byte)? else { break };
            way.push((here, (byte, next)));
            here = next;
        }
        if context.machine.is_accepting(here)? {
            self.ahead.entry(here.number()).or_insert(None);
        }
        // A state that is met twice goes on as it did the last time, so that no way is a circle.
        for (here, hop) in way.into_iter().rev() {
            self.ahead.entry(here.number()).or_insert(Some(hop));
        }
        Ok(self.ahead.get(&state.number()).copied().flatten())
    }
}
