//! Prefixes of parser states: the top of the stacks and the visible indentation. Many parser states
//! share one, and with it the terminals that may follow.

use crate::interner::NOTHING;
use crate::state::GrammarState;

impl GrammarState {
    /// Returns the id of a parser state's prefix down to a stack depth. Prefixes are never dropped.
    /// Returns `None` if the prefix is too large.
    pub(crate) fn prefix_of(&mut self, parser_state: u32, depth: u32) -> Option<u32> {
        let mut list = Vec::with_capacity(4 * depth as usize + 8);
        let is_complete = match &self.indentation {
            None => true,
            Some(indentation) => indentation.push_prefix(parser_state, depth, &mut list),
        };
        let stacks = self.stacks_of(parser_state);
        let is_complete = is_complete && self.gss.push_prefix(stacks, depth, &mut list);
        is_complete.then(|| self.prefixes.intern(&list))
    }

    /// Returns a parser state that consists of a prefix only. An operation that needs more fails
    /// with `NEEDS_DEEPER_STACK`.
    pub(crate) fn state_of_prefix(&mut self, prefix: u32) -> u32 {
        let list = self.prefixes.copy(prefix);
        let Some(indentation) = &mut self.indentation else {
            return self.gss.stacks_of_prefix(&list, prefix);
        };
        let (front, rest) = indentation.split_prefix(&list);
        match self.gss.stacks_of_prefix(rest, prefix) {
            NOTHING => NOTHING,
            stacks => indentation.state_of_prefix(stacks, front),
        }
    }
}
