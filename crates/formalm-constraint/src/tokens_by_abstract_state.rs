//! The next tokens, by the abstract state after each.
//!
//! Inside a name of a JSON object every token leads to a state of its own, because names must not
//! repeat. The abstract states, which forget what was read where it can only forbid repetition, are
//! few.

use std::cell::{Cell, RefCell};

use formalm_core::{Error, Machine, Resource, StateId};
use formalm_vocabulary::TokenTrie;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::trie_walk;

/// Tokens, with the abstract state after them.
pub(crate) type TokenGroup = (StateId, Vec<u32>);

/// Returns the tokens that the abstract state of a state allows, by the abstract state after each;
/// `None` if the walk reaches more than `limit` of them.
pub(crate) fn tokens_by_abstract_state(
    machine: &impl Machine,
    trie: &TokenTrie,
    state: StateId,
    limit: usize,
) -> Result<Option<Vec<TokenGroup>>, Error> {
    let from = machine.abstract_state(state)?;
    let known: RefCell<FxHashMap<u32, StateId>> = RefCell::default();
    let reached: RefCell<FxHashSet<u32>> = RefCell::default();
    let is_over_limit = Cell::new(false);
    let abstract_state = |state: StateId| {
        if let Some(&found) = known.borrow().get(&state.number()) {
            return Ok(found);
        }
        let found = machine.abstract_state(state)?;
        known.borrow_mut().insert(state.number(), found);
        let mut reached = reached.borrow_mut();
        if reached.insert(found.number()) && reached.len() > limit {
            // Ends the walk.
            is_over_limit.set(true);
            let (needed, allowed) = (reached.len() as u64, limit as u64);
            return Err(Error::Limit { resource: Resource::States, needed, allowed });
        }
        Ok(found)
    };
    let mut numbers: FxHashMap<u32, usize> = FxHashMap::default();
    let mut groups: Vec<TokenGroup> = Vec::new();
    let emit = |next: StateId, tokens: &[u32]| {
        let at = *numbers.entry(next.number()).or_insert(groups.len());
        if at == groups.len() {
            groups.push((next, Vec::new()));
        }
        groups[at].1.extend_from_slice(tokens);
    };
    match trie_walk::tokens(machine, trie, from, abstract_state, emit) {
        Err(_) if is_over_limit.get() => Ok(None),
        walked => walked.map(|()| Some(groups)),
    }
}
