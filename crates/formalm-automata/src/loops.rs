//! Keys that come back to themselves over characters of several bytes.

use crate::bytes::ByteSet;
use crate::characters::every_character;
use crate::charset::Cover;
use crate::error::Error;
use crate::machine::Steps;
use crate::viability::KeyId;

/// How much of the characters beyond ASCII leads from a key back to it: all, or none because
/// none may follow; `None` if it is neither, or bytes are read that no character has.
///
/// # Errors
///
/// [`Error::Limit`].
pub fn beyond_ascii(steps: &impl Steps, key: KeyId) -> Result<Option<Cover>, Error> {
    let mut live = ByteSet::default();
    for byte in 0x80..=0xFF {
        if steps.step(key, byte)?.is_some() {
            live.insert(byte);
        }
    }
    if live.is_empty() {
        return Ok(Some(Cover::None));
    }
    let stray = (0x80..=0xC1).chain(0xF5..=0xFF).any(|byte| live.contains(byte));
    let all = !stray && every_character(key, key, |key, byte| steps.step(key, byte))?;
    Ok(all.then_some(Cover::Full))
}
