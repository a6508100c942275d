//! The reference implementation of a mask: tests every token by reading its bytes.
//!
//! It is the oracle of the tests.

use formalm_core::{Error, Machine, StateId};
use formalm_vocabulary::Vocabulary;

/// Returns the ids of all tokens that are allowed in a state, ascending.
///
/// # Errors
///
/// [`Error::Limit`] if the machine exceeds a limit.
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
