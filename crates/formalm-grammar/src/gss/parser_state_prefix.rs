//! Places as far as they can be seen from their tops: many places look alike, and what may follow
//! is nearly always the same for all of them.

use crate::interner::NOTHING;
use crate::state::GrammarState;

impl GrammarState {
    /// The number of what can be seen of a place down to a depth of its stacks, kept for good;
    /// `None` if that is too much.
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

    /// A place of which nothing is there but an outline. What needs more fails with
    /// [`formalm_automata::BEYOND`].
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
