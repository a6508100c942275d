//! The minimal graph of all token sequences of a language.

use formalm_automata::materialized::{DfaSizeLimits, MaterializedDfa};
use formalm_core::{Error, InterruptCheck, LazyDfa, require_exact};
use formalm_machines::MaskClasses;

use crate::epoch::{AdvanceError, ConstraintState, StateEpoch};
use crate::trie_walk;

/// Returns the minimal graph of all token sequences that spell a string in the language. End
/// tokens are left out; states before them are accepting.
///
/// A token after which no token sequence completes a string is no edge, even if the mask has it
/// because some string would.
///
/// # Errors
///
/// [`Error::Limit`] if there are too many states or edges before minimization;
/// [`Error::Interrupted`].
pub(crate) fn token_graph<K: MaskClasses>(
    epoch: &StateEpoch<K>,
    size: DfaSizeLimits,
    poll: &mut InterruptCheck<'_>,
) -> Result<MaterializedDfa, Error> {
    if epoch.is_canonical() {
        return canonical_graph(epoch, size, poll);
    }
    let machine = &**epoch.machine();
    let hint = "search() and mass() do not need an automaton";
    require_exact(machine, "the set of all token sequences", hint)?;
    let successors = |state, row: &mut Vec<_>| {
        trie_walk::tokens(machine, epoch.vocabulary().trie(), state, Ok, |next, tokens| {
            row.extend(tokens.iter().map(|&token| (token, next)));
        })
    };
    let accepting = |state| machine.is_accepting(state);
    MaterializedDfa::explore(machine.start(), successors, accepting, size, poll)?.minimized(poll)
}

/// Returns the graph of canonical token sequences: every allowed token leads somewhere.
fn canonical_graph<K: MaskClasses>(
    epoch: &StateEpoch<K>,
    size: DfaSizeLimits,
    poll: &mut InterruptCheck<'_>,
) -> Result<MaterializedDfa, Error> {
    let mut words = vec![0; epoch.words()];
    let successors = |position: ConstraintState, row: &mut Vec<_>| {
        epoch.fill(position, &mut words)?;
        for token in set_bits(&words) {
            if epoch.vocabulary().is_end_token(token) {
                continue;
            }
            match epoch.read(position, token) {
                Ok(next) => row.push((token, next)),
                Err(AdvanceError::Failed(error)) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    };
    let accepting = |position| epoch.is_accepting(position);
    MaterializedDfa::explore(epoch.start(), successors, accepting, size, poll)?.minimized(poll)
}

fn set_bits(words: &[u32]) -> impl Iterator<Item = u32> + '_ {
    words.iter().zip(0u32..).flat_map(|(&word, at)| {
        (0..32).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 32 + bit)
    })
}
