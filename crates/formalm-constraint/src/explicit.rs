//! Constraints written out: the token sequences of all members as a graph.

use formalm_automata::explicit::{Graph, Poll, Size};
use formalm_automata::{Error, Keys, Machine};

use crate::constraint::Constraint;
use crate::walk;

impl<K: Keys> Constraint<K> {
    /// The minimal graph of all token sequences that spell a member, end tokens aside: where one
    /// may stand, the state is accepting.
    ///
    /// A token after which no token sequence makes a member leads nowhere and is no edge, also
    /// where the mask has it because some text would.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if there are more states or edges before equivalent states are joined;
    /// [`Error::Interrupted`].
    pub fn graph(&self, size: Size, poll: &mut Poll<'_>) -> Result<Graph, Error> {
        let machine = &**self.machine();
        let successors = |state, row: &mut Vec<_>| {
            walk::tokens(machine, self.vocabulary().trie(), state, |next, tokens| {
                row.extend(tokens.iter().map(|&token| (token, next)));
            })
        };
        let accepting = |state| machine.is_accepting(state);
        Graph::explore(machine.start(), successors, accepting, size, poll)?.minimized(poll)
    }
}
