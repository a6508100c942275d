//! Keys that come back to themselves over characters of several bytes.

use crate::charset::Cover;
use crate::error::Error;
use crate::machine::Steps;
use crate::viability::KeyId;

/// What may follow the bytes of an unfinished character: the least and the most next byte, and
/// how many more come after it.
type Rest = (u8, u8, u8);

/// The beginning of a character of several bytes: what follows its first byte.
fn first(byte: u8) -> Option<Rest> {
    match byte {
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

/// How much of the characters beyond ASCII leads from a key back to it: all, or none because
/// none may follow; `None` if it is neither, or bytes are read that no character has.
///
/// # Errors
///
/// [`Error::Limit`].
pub fn beyond_ascii(steps: &impl Steps, key: KeyId) -> Result<Option<Cover>, Error> {
    let mut open: Vec<(KeyId, Rest)> = Vec::new();
    let mut dead = true;
    for byte in 0x80..=0xFF {
        match (steps.step(key, byte)?, first(byte)) {
            (Some(next), Some(rest)) => {
                dead = false;
                if !open.contains(&(next, rest)) {
                    open.push((next, rest));
                }
            }
            (None, None) => {}
            (Some(_), None) => return Ok(None),
            (None, Some(_)) if dead && open.is_empty() => {}
            (None, Some(_)) => return Ok(None),
        }
    }
    if dead {
        return Ok(Some(Cover::None));
    }
    // Those before the first that was alive were dead.
    if steps.step(key, 0xC2)?.is_none() {
        return Ok(None);
    }
    let mut at = 0;
    while at < open.len() {
        let (here, (least, most, more)) = open[at];
        for byte in 0..=255 {
            let next = steps.step(here, byte)?;
            if !(least..=most).contains(&byte) {
                if next.is_some() {
                    return Ok(None);
                }
            } else if more == 0 {
                if next != Some(key) {
                    return Ok(None);
                }
            } else if let Some(next) = next {
                let rest = (next, (0x80, 0xBF, more - 1));
                if !open.contains(&rest) {
                    open.push(rest);
                }
            } else {
                return Ok(None);
            }
        }
        at += 1;
    }
    Ok(Some(Cover::Full))
}
