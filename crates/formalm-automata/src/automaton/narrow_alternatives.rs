//! Splitting a union state into its narrow and its broad alternatives.
//!
//! A string is viable from a union exactly if it is viable from one of the parts, so the viable
//! strings of the union are those of its parts. The narrow part allows few first bytes, and so few
//! of the strings that a caller tries.

use formalm_core::{Error, LazyDfa, StateId};

use crate::automaton::Automaton;
use crate::terms::TermNode;

/// Maximum number of alternatives that are examined. Larger unions are not split. Chosen, not
/// measured.
const MAX_ALTERNATIVES: usize = 8;

impl Automaton {
    /// Splits a union into the alternatives with at most `few` first bytes and the others, if it
    /// has both kinds. Together the two states allow what `state` allows.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn split_union(
        &self,
        state: StateId,
        few: usize,
    ) -> Result<Option<(StateId, StateId)>, Error> {
        let list = {
            let core = &self.lock();
            match core.deriver.terms.get(self.term(core, state)) {
                TermNode::Alt(list) if list.len() <= MAX_ALTERNATIVES => list.clone(),
                _ => return Ok(None),
            }
        };
        // Deciding whether other terms are nonempty may take a search.
        if !list.iter().all(|&term| self.lock().deriver.terms.properties(term).pure) {
            return Ok(None);
        }
        let (mut narrow, mut broad) = (Vec::new(), Vec::new());
        for &term in &*list {
            let alone = StateId::from_number(self.intern(&mut self.lock(), term)?);
            let is_narrow = self.live_bytes(alone)?.len() <= few;
            if is_narrow { &mut narrow } else { &mut broad }.push(term);
        }
        if narrow.is_empty() || broad.is_empty() {
            return Ok(None);
        }
        let core = &mut self.lock();
        let mut state = |terms| {
            let term = core.deriver.terms.alt(terms);
            self.intern(core, term).map(StateId::from_number)
        };
        Ok(Some((state(narrow)?, state(broad)?)))
    }
}
