//! What is looked at beyond texts, to find out what may follow them.
//!
//! Searches come to many more positions than any text does. They are made on a machine to look ahead
//! with, and number what they meet for themselves. Questions that follow each other meet the same,
//! so what one has learnt is there for the next; once it takes much memory all of it is dropped, with
//! the machine.

use std::sync::Arc;

use formalm_automata::{Error, Keys, Machine, StateId};
use formalm_vocabulary::bpe::{PretokenState, SplitterState};

use super::liveness::Liveness;
use super::product::Pairs;
use super::subsets::Member;
use super::{Context, prompt};
use crate::mask::MaskWords;

/// Memory of what was learnt, in bytes, beyond which the next question begins anew.
const MOST_BYTES: usize = 24 << 20;

/// What was learnt so far.
#[derive(Debug)]
pub(crate) struct Search<K> {
    /// Keys of the machine to look ahead with, unless the machine itself will do.
    keys: Option<K>,
    pairs: Pairs,
    live: Liveness,
    /// Questions that searches before left open.
    undecided: usize,
}

/// Where a text has come to: a state of the language, and a place with the tokens of the piece.
pub(crate) type Here = (StateId, SplitterState, PretokenState);

impl<K: Keys> Search<K> {
    /// A search that has learnt nothing.
    pub(crate) fn new(keys: &K) -> Search<K> {
        let ahead = keys.machine().ahead().and_then(|ahead| keys.over(&Arc::new(ahead)));
        Search { keys: ahead, pairs: Pairs::default(), live: Liveness::default(), undecided: 0 }
    }

    /// Begins anew, if too much was learnt to be kept.
    pub(crate) fn limit(&mut self, keys: &K) {
        if self.memory_bytes() > MOST_BYTES {
            let undecided = self.undecided_count();
            *self = Search { undecided, ..Search::new(keys) };
        }
    }

    /// Reads on from a state with the machine to look ahead with.
    fn enter<'a>(
        &'a mut self,
        context: Context<'a, K>,
        state: StateId,
    ) -> Result<(Context<'a, K>, &'a mut Pairs, &'a mut Liveness, StateId), Error> {
        let Search { keys, pairs, live, .. } = self;
        let (context, state) = match keys {
            Some(keys) => {
                (Context { keys, machine: keys.machine(), ..context }, keys.machine().enter(state)?)
            }
            None => (context, state),
        };
        Ok((context, pairs, live, state))
    }

    /// Whether some text completes a member from a place between pieces, and may be marked so.
    pub(crate) fn is_productive(
        &mut self,
        context: Context<'_, K>,
        (state, place): (StateId, SplitterState),
    ) -> Result<bool, Error> {
        let (context, pairs, _, state) = self.enter(context, state)?;
        let pair = pairs.intern(state, place)?;
        pairs.is_productive(context, pair)
    }

    /// Whether a member can be completed after `last`.
    pub(crate) fn is_live(
        &mut self,
        context: Context<'_, K>,
        (state, place, path): Here,
        last: u32,
    ) -> Result<bool, Error> {
        let (context, pairs, live, state) = self.enter(context, state)?;
        let member = Member { pair: pairs.intern(state, place)?, path };
        live.is_live(context, pairs, member, last)
    }

    /// Where a token leads, the place before the one behind a special token, whenever a member can be
    /// completed from there.
    pub(crate) fn after(
        &mut self,
        context: Context<'_, K>,
        (state, place, path): Here,
        (last, token): (u32, u32),
    ) -> Result<Vec<(SplitterState, PretokenState)>, Error> {
        let mut list = Vec::new();
        let splitter = context.encoder.splitter();
        let special = context.special.iter().find(|one| one.0 == token);
        let (context, pairs, live, state) = self.enter(context, state)?;
        if let Some((_, bytes)) = special
            && context.encoder.pretoken_may_end(path)
            && splitter.may_end(place)
            && let Ok(next) = context.machine.walk(state, bytes)?
        {
            let pair = pairs.intern(next, splitter.start())?;
            if pairs.is_productive(context, pair)? {
                list.push((splitter.start(), PretokenState::PLAIN));
            }
        }
        let Some(bytes) = context.vocabulary.token_bytes(token) else { return Ok(list) };
        let Ok(next) = context.machine.walk(state, bytes)? else { return Ok(list) };
        for goal in prompt::after(context, (place, path), last, token) {
            let member = Member { pair: pairs.intern(next, goal.0)?, path: goal.1 };
            if live.is_live(context, pairs, member, token)? && !list.contains(&goal) {
                list.push(goal);
            }
        }
        Ok(list)
    }

    /// Sets the tokens that may follow and lead to a member, as [`Liveness::allowed`].
    pub(crate) fn allowed(
        &mut self,
        context: Context<'_, K>,
        (state, place, path): Here,
        masks: (&mut MaskWords, &mut MaskWords),
    ) -> Result<(), Error> {
        let (context, pairs, live, state) = self.enter(context, state)?;
        let member = Member { pair: pairs.intern(state, place)?, path };
        live.allowed(context, pairs, member, masks)
    }

    /// Number of questions that a bounded search left open.
    pub(crate) fn undecided_count(&self) -> usize {
        self.undecided + self.pairs.undecided_count() + self.live.undecided_count()
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ahead = self.keys.as_ref();
        self.pairs.memory_bytes()
            + self.live.memory_bytes()
            + ahead.map_or(0, |keys| keys.memory_bytes() + keys.machine().memory_bytes())
    }
}
