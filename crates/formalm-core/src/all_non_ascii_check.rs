//! A check over all non-ASCII characters of a byte-level automaton, in few steps.
//!
//! UTF-8 lead bytes fall into seven ranges by what may follow. The check visits each distinct pair
//! of a state and the bytes that may follow once, instead of 1.1 million characters.

use crate::Error;

/// The bytes that may follow in an incomplete character: the smallest and largest next byte, and
/// how many more come after it.
type CharRemainder = (u8, u8, u8);

/// Returns what follows the first byte of a multi-byte character.
fn rest_of(first: u8) -> Option<CharRemainder> {
    match first {
        0xC2..=0xDF => Some((0x80, 0xBF, 0)),
        0xE0 => Some((0xA0, 0xBF, 1)),
        0xED => Some((0x80, 0x9F, 1)),
        0xE1..=0xEF => Some((0x80, 0xBF, 1)),
        0xF0 => Some((0x90, 0xBF, 2)),
        0xF1..=0xF3 => Some((0x80, 0xBF, 2)),
        0xF4 => Some((0x80, 0x8F, 2)),
        _ => None,
    }
}

/// Returns `true` if every non-ASCII character leads from `state` to `goal`, and incomplete
/// characters read only bytes that complete them. `step` returns `None` for a byte that is not
/// read.
///
/// # Errors
///
/// Fails with the errors of `step`.
pub fn reads_all_non_ascii<S: Copy + PartialEq>(
    state: S,
    goal: S,
    mut step: impl FnMut(S, u8) -> Result<Option<S>, Error>,
) -> Result<bool, Error> {
    let mut open: Vec<(S, CharRemainder)> = Vec::new();
    for byte in 0xC2..=0xF4 {
        let Some(rest) = rest_of(byte) else { continue };
        let Some(next) = step(state, byte)? else { return Ok(false) };
        if !open.contains(&(next, rest)) {
            open.push((next, rest));
        }
    }
    let mut at = 0;
    while at < open.len() {
        let (here, (least, most, more)) = open[at];
        for byte in 0..=255 {
            let within = (least..=most).contains(&byte);
            match step(here, byte)? {
                None if !within => {}
                Some(next) if within && more == 0 && next == goal => {}
                Some(next) if within && more > 0 => {
                    let rest = (next, (0x80, 0xBF, more - 1));
                    if !open.contains(&rest) {
                        open.push(rest);
                    }
                }
                _ => return Ok(false),
            }
        }
        at += 1;
    }
    Ok(true)
}
