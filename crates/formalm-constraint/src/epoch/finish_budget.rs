//! Where a text has to end within a budget.

use std::sync::Arc;

use formalm_automata::{Ahead, Error, Keys, Lock, Machine, StateId, exact_only};

use super::{Position, StateEpoch};
use crate::finish::Completions;
use crate::mask::MaskWords;

/// What was learnt about completions, of states of a machine to look ahead with if there is one.
#[derive(Debug)]
pub(super) struct Completing<M> {
    kept: Lock<Kept<M>>,
}

#[derive(Debug)]
struct Kept<M> {
    learnt: Arc<Learnt<M>>,
    /// How many states were given up with machines before.
    given_up: usize,
}

/// Completions of the states of one machine.
#[derive(Debug)]
struct Learnt<M> {
    /// The machine to look ahead with; none if the machine itself will do.
    ahead: Option<Arc<Ahead<M>>>,
    completions: Completions,
}

impl<M> Default for Completing<M> {
    fn default() -> Completing<M> {
        Completing { kept: Lock::default() }
    }
}

impl<M> Default for Kept<M> {
    fn default() -> Kept<M> {
        let learnt = Arc::new(Learnt { ahead: None, completions: Completions::default() });
        Kept { learnt, given_up: 0 }
    }
}

impl<M: Machine> Completing<M> {
    /// What was learnt with a machine to look ahead with; with another one numbers of states mean
    /// nothing.
    fn with(&self, ahead: Option<Arc<Ahead<M>>>) -> Arc<Learnt<M>> {
        let kept = &mut *self.kept.lock();
        let is_same = match (&kept.learnt.ahead, &ahead) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            kept.given_up += kept.learnt.completions.given_up_count();
            kept.learnt = Arc::new(Learnt { ahead, completions: Completions::default() });
        }
        Arc::clone(&kept.learnt)
    }

    pub(super) fn given_up_count(&self) -> usize {
        let kept = self.kept.lock();
        kept.given_up + kept.learnt.completions.given_up_count()
    }

    /// Memory in use, in bytes, to a good approximation, without that of machines.
    pub(super) fn memory_bytes(&self) -> usize {
        let kept = self.kept.lock();
        kept.learnt.completions.memory_bytes()
    }
}

impl<K: Keys> StateEpoch<K> {
    /// Number of states that tokens were left out for leading to where a text has to end within a
    /// budget, since no text that completes them was found in time.
    pub fn given_up_count(&self) -> usize {
        self.completing.given_up_count()
    }

    /// A shortest token sequence, end token aside, that makes the text a member; `None` if it
    /// takes more than `limit` tokens or if no token sequence does. Where a search for it takes
    /// long, the shortest text counts, in the fewest tokens that spell it.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`]; where tokens must be canonical the search is not there yet.
    pub fn shortest_tokens(
        &self,
        position: Position,
        limit: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        self.any_tokens(position, |completions, machine, state| {
            completions.shortest(machine, &self.vocabulary, state, limit)
        })
    }

    /// Whether [`StateEpoch::shortest_tokens`] finds any.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn completes_within(&self, position: Position, limit: u32) -> Result<bool, Error> {
        self.any_tokens(position, |completions, machine, state| {
            completions.fits(machine, &self.vocabulary, state, limit)
        })
    }

    /// Writes the mask of a position over `out`, less the tokens after which no member can be
    /// completed within `budget` tokens, that token among them and end tokens aside.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::shortest_tokens`].
    pub fn fill_within(
        &self,
        position: Position,
        budget: u32,
        out: &mut MaskWords,
    ) -> Result<(), Error> {
        self.any_tokens(position, |completions, machine, state| {
            self.fill(position, out)?;
            completions.restrict(machine, &self.vocabulary, state, budget, out)
        })
    }

    /// Looks for completions of a position where any tokens will do: with a machine and a state of
    /// it.
    fn any_tokens<R>(
        &self,
        position: Position,
        look: impl FnOnce(&Completions, &K::Machine, StateId) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let hint = "give more tokens, and look whether the text is a member";
        exact_only(&**self.machine(), "the fewest tokens to a member", hint)?;
        match self.canonical {
            None => {
                let learnt = self.completing.with(self.ahead());
                match &learnt.ahead {
                    Some(ahead) => {
                        let state = ahead.enter(position.state)?;
                        look(&learnt.completions, &ahead.machine, state)
                    }
                    None => look(&learnt.completions, self.machine(), position.state),
                }
            }
            Some(_) => Err(Error::Language {
                message: "the fewest tokens to a member are not known for canonical tokens"
                    .to_owned(),
                span: None,
                hint: Some("use tokenization=\"all\", or give more tokens".to_owned()),
            }),
        }
    }
}
