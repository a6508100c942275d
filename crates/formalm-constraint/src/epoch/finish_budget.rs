//! Completion within a token budget: shortest token sequences and masks with `finish=True`.

use std::sync::Arc;

use formalm_core::{Error, ForkSafeMutex, Machine, StateId, require_exact};
use formalm_machines::{MaskClasses, ScratchMachine};

use super::{ConstraintState, StateEpoch};
use crate::canonical::CanonicalMasks;
use crate::epoch::AdvanceError;
use crate::finish::FinishSearch;
use crate::mask::{MaskWords, has, patch};

/// Completions of states of the lookahead machine, if there is one.
#[derive(Debug)]
pub(super) struct FinishState<M> {
    kept: ForkSafeMutex<FinishEntry<M>>,
}

#[derive(Debug)]
struct FinishEntry<M> {
    cached: Arc<MachineCompletions<M>>,
    /// Number of states that searches on earlier lookahead machines gave up.
    given_up: usize,
}

/// Completions of the states of one machine.
#[derive(Debug)]
struct MachineCompletions<M> {
    /// The lookahead machine, or `None` if the machine itself serves.
    ahead: Option<Arc<ScratchMachine<M>>>,
    completions: FinishSearch,
}

impl<M> Default for FinishState<M> {
    fn default() -> FinishState<M> {
        FinishState { kept: ForkSafeMutex::default() }
    }
}

impl<M> Default for FinishEntry<M> {
    fn default() -> FinishEntry<M> {
        let cached =
            Arc::new(MachineCompletions { ahead: None, completions: FinishSearch::default() });
        FinishEntry { cached, given_up: 0 }
    }
}

impl<M: Machine> FinishState<M> {
    /// Returns the completions for a lookahead machine. State numbers of another machine are
    /// meaningless, so its completions are dropped.
    fn with(&self, ahead: Option<Arc<ScratchMachine<M>>>) -> Arc<MachineCompletions<M>> {
        let kept = &mut *self.kept.lock();
        let is_same = match (&kept.cached.ahead, &ahead) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            kept.given_up += kept.cached.completions.given_up_count();
            kept.cached =
                Arc::new(MachineCompletions { ahead, completions: FinishSearch::default() });
        }
        Arc::clone(&kept.cached)
    }

    pub(super) fn given_up_count(&self) -> usize {
        let kept = self.kept.lock();
        kept.given_up + kept.cached.completions.given_up_count()
    }

    /// Returns the approximate memory in use, in bytes, without that of machines.
    pub(super) fn memory_bytes(&self) -> usize {
        let kept = self.kept.lock();
        kept.cached.completions.memory_bytes()
    }
}

impl<K: MaskClasses> StateEpoch<K> {
    /// Returns the number of states whose completion search gave up. With a budget, tokens that
    /// lead to them are masked out.
    pub fn given_up_count(&self) -> usize {
        let canonical = self.canonical.as_deref().map_or(0, CanonicalMasks::given_up_count);
        self.completing.given_up_count() + canonical
    }

    /// Returns a shortest token sequence, without end token, that completes the input. Returns
    /// `None` if it takes more than `limit` tokens or if no token sequence does. If the search is
    /// expensive, the shortest string counts, in the fewest tokens that spell it.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`].
    pub fn shortest_tokens(
        &self,
        position: ConstraintState,
        limit: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        if let Some(canonical) = &self.canonical {
            self.require_exact_machine()?;
            let from = (position.state, position.last);
            return match canonical.fewest_tokens(&self.keys, from, limit)? {
                Some(count) => self.canonical_tokens(position, count),
                None => Ok(None),
            };
        }
        self.any_tokens(position, |completions, machine, state| {
            completions.shortest(machine, &self.vocabulary, state, limit)
        })
    }

    /// Returns `true` if [`StateEpoch::shortest_tokens`] finds a sequence.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::shortest_tokens`].
    pub fn completes_within(&self, position: ConstraintState, limit: u32) -> Result<bool, Error> {
        if let Some(canonical) = &self.canonical {
            self.require_exact_machine()?;
            let from = (position.state, position.last);
            return canonical.completes_within(&self.keys, from, limit);
        }
        self.any_tokens(position, |completions, machine, state| {
            completions.fits(machine, &self.vocabulary, state, limit)
        })
    }

    /// Overwrites `out` with the mask of a state, without the tokens after which no string can be
    /// completed within `budget` tokens. The token counts, end tokens do not.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::shortest_tokens`].
    pub fn fill_within(
        &self,
        position: ConstraintState,
        budget: u32,
        out: &mut MaskWords,
    ) -> Result<(), Error> {
        if let Some(canonical) = &self.canonical {
            self.require_exact_machine()?;
            self.fill(position, out)?;
            let ends = self.vocabulary.end_token_ids();
            let Some(left) = budget.checked_sub(1) else {
                let ends: Vec<u32> = ends.iter().copied().filter(|&end| has(out, end)).collect();
                out.fill(0);
                patch(out, &ends, &[]);
                return Ok(());
            };
            let from = (position.state, position.last);
            return canonical.restrict(&self.keys, from, left, ends, out);
        }
        self.any_tokens(position, |completions, machine, state| {
            self.fill(position, out)?;
            completions.restrict(machine, &self.vocabulary, state, budget, out)
        })
    }

    /// Returns `count` canonical tokens that complete the input, which are known to exist.
    fn canonical_tokens(
        &self,
        mut position: ConstraintState,
        count: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        let mut tokens = Vec::new();
        let mut words = vec![0; self.words()];
        while !self.is_accepting(position)? {
            let Some(left) = count.checked_sub(tokens.len() as u32) else { return Ok(None) };
            self.fill_within(position, left, &mut words)?;
            let is_end = |token: &u32| self.vocabulary.is_end_token(*token);
            let mut allowed = (0..self.vocabulary.len() as u32).filter(|&token| has(&words, token));
            let Some(token) = allowed.find(|token| !is_end(token)) else { return Ok(None) };
            position = match self.read(position, token) {
                Ok(next) => next,
                Err(AdvanceError::Failed(error)) => return Err(error),
                Err(_) => return Ok(None),
            };
            tokens.push(token);
        }
        Ok(Some(tokens))
    }

    fn require_exact_machine(&self) -> Result<(), Error> {
        let hint = "allow more tokens, and check with matches() whether the string is a member";
        require_exact(&**self.machine(), "the fewest tokens to a member", hint)
    }

    /// Calls `look` with the machine and the state to search from.
    fn any_tokens<R>(
        &self,
        position: ConstraintState,
        look: impl FnOnce(&FinishSearch, &K::Machine, StateId) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.require_exact_machine()?;
        let cached = self.completing.with(self.ahead());
        match &cached.ahead {
            Some(ahead) => {
                let state = ahead.import_state(position.state)?;
                look(&cached.completions, &ahead.machine, state)
            }
            None => look(&cached.completions, self.machine(), position.state),
        }
    }
}
