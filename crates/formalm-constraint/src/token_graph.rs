//! Constraints written out: the token sequences of all members as a graph.

use formalm_automata::explicit::{Graph, Poll, Size};
use formalm_automata::{Error, Keys, Machine, exact_only};

use crate::epoch::{Position, StateEpoch};
use crate::matcher::Refusal;
use crate::trie_walk;

impl<K: Keys> StateEpoch<K> {
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
        if self.is_canonical() {
            return self.canonical_graph(size, poll);
        }
        let machine = &**self.machine();
        let hint = "search() and mass() need no automaton";
        exact_only(machine, "all token sequences of members", hint)?;
        let successors = |state, row: &mut Vec<_>| {
            trie_walk::tokens(machine, self.vocabulary().trie(), state, Ok, |next, tokens| {
                row.extend(tokens.iter().map(|&token| (token, next)));
            })
        };
        let accepting = |state| machine.is_accepting(state);
        Graph::explore(machine.start(), successors, accepting, size, poll)?.minimized(poll)
    }

    /// The same where tokens must be canonical: every allowed token leads somewhere.
    fn canonical_graph(&self, size: Size, poll: &mut Poll<'_>) -> Result<Graph, Error> {
        let mut words = vec![0; self.words()];
        let successors = |position: Position, row: &mut Vec<_>| {
            self.fill(position, &mut words)?;
            for token in set_bits(&words) {
                if self.vocabulary().is_end_token(token) {
                    continue;
                }
                match self.read(position, token) {
                    Ok(next) => row.push((token, next)),
                    Err(Refusal::Failed(error)) => return Err(error),
                    Err(_) => {}
                }
            }
            Ok(())
        };
        let accepting = |position| self.is_accepting(position);
        Graph::explore(self.start(), successors, accepting, size, poll)?.minimized(poll)
    }
}

fn set_bits(words: &[u32]) -> impl Iterator<Item = u32> + '_ {
    words.iter().zip(0u32..).flat_map(|(&word, at)| {
        (0..32).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 32 + bit)
    })
}
