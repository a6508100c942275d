//! Detection of self-loops: mask classes that return to themselves over some characters.

use formalm_core::{
    ByteSet, CharSet, ClassCover, Error, MaskClassId, WIDE_PARTS, reads_all_non_ascii,
};

use crate::{CharRepetition, MaskAutomaton};

/// Returns the characters over which a class returns to itself, as a repetition whose exit is the
/// class itself. Returns `None` if fewer than `least` ASCII characters do, or if only some
/// non-ASCII ones do.
///
/// # Errors
///
/// [`Error::Limit`].
pub fn self_loop_repetition(
    steps: &impl MaskAutomaton,
    key: MaskClassId,
    least: u32,
) -> Result<Option<CharRepetition>, Error> {
    let mut ascii = 0u128;
    for byte in 0..128u8 {
        if steps.step(key, byte)? == Some(key) {
            ascii |= 1 << byte;
        }
    }
    if ascii.count_ones() < least {
        return Ok(None);
    }
    let looped = (0..128u8).filter(|byte| ascii >> byte & 1 != 0);
    let mut class = CharSet::from_ranges(looped.map(|byte| (byte.into(), byte.into())));
    let Some(wide) = beyond_ascii(steps, key)? else { return Ok(None) };
    if wide == ClassCover::Full {
        class = class.union(&CharSet::from_ranges([('\u{80}', char::MAX)]));
    }
    let (wide, exit) = ([wide; WIDE_PARTS], Some(key));
    Ok(Some(CharRepetition { class, ascii, wide, min: 0, max: None, exit, json_string: None }))
}

/// Returns how much of the non-ASCII characters leads from a class back to it: all, or none because
/// none may follow. Returns `None` in other cases, or if bytes are read that no character has.
fn beyond_ascii(steps: &impl MaskAutomaton, key: MaskClassId) -> Result<Option<ClassCover>, Error> {
    let mut live = ByteSet::default();
    for byte in 0x80..=0xFF {
        if steps.step(key, byte)?.is_some() {
            live.insert(byte);
        }
    }
    if live.is_empty() {
        return Ok(Some(ClassCover::None));
    }
    let stray = (0x80..=0xC1).chain(0xF5..=0xFF).any(|byte| live.contains(byte));
    let all = !stray && reads_all_non_ascii(key, key, |key, byte| steps.step(key, byte))?;
    Ok(all.then_some(ClassCover::Full))
}
