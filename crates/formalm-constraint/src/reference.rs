//! The definition of a mask, as slowly as it reads.

use formalm_automata::{Error, Machine, StateId};
use formalm_vocabulary::Vocabulary;

/// The ids of all tokens that are allowed after a state, ascending.
///
/// # Errors
///
/// [`Error::Limit`] if the machine would outgrow its limits.
pub fn allowed(
    machine: &impl Machine,
    vocabulary: &Vocabulary,
    state: StateId,
) -> Result<Vec<u32>, Error> {
    let mut ids = Vec::new();
    for id in 0..vocabulary.len() as u32 {
        let allowed = if vocabulary.is_end_token(id) {
            machine.is_accepting(state)?
        } else if let Some(bytes) = vocabulary.token_bytes(id) {
            machine.walk(state, bytes)?.is_ok()
        } else {
            false
        };
        if allowed {
            ids.push(id);
        }
    }
    Ok(ids)
}
