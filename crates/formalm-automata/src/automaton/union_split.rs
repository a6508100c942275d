//! States of several alternatives: what is viable from one is what is viable from one of these.

use crate::automaton::{Automaton, StateId};
use crate::error::Error;
use crate::machine::Machine;
use crate::terms::TermNode;

/// With more alternatives they are not looked at one by one.
const MAX_ALTERNATIVES: usize = 8;

impl Automaton {
    /// A state of the alternatives that few bytes begin and one of the others, where a state has
    /// both; between them they allow what it allows.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn narrow_and_broad(
        &self,
        state: StateId,
        few: usize,
    ) -> Result<Option<(StateId, StateId)>, Error> {
        let list = {
            let core = &self.lock();
            match core.terms.get(self.term(core, state)) {
                TermNode::Alt(list) if list.len() <= MAX_ALTERNATIVES => list.clone(),
                _ => return Ok(None),
            }
        };
        // Whether others have members alone may take a search.
        if !list.iter().all(|&term| self.lock().terms.properties(term).pure) {
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
            let term = core.terms.alt(terms);
            self.intern(core, term).map(StateId::from_number)
        };
        Ok(Some((state(narrow)?, state(broad)?)))
    }
}
