//! A check that all members of a language are UTF-8, by a product with a UTF-8 decoder.

use formalm_core::{Error, Machine, Resource, StateId, check_limit};
use rustc_hash::FxHashSet;

use super::InterruptCheck;

/// A state of the UTF-8 decoder: between characters, or the bytes that must follow in the current
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Utf8State {
    Between,
    One,
    Two,
    Three,
    AfterE0,
    AfterEd,
    AfterF0,
    AfterF4,
}

impl Utf8State {
    fn after(self, byte: u8) -> Option<Utf8State> {
        match (self, byte) {
            (Utf8State::Between, 0x00..=0x7F) | (Utf8State::One, 0x80..=0xBF) => {
                Some(Utf8State::Between)
            }
            (Utf8State::Between, 0xC2..=0xDF)
            | (Utf8State::Two, 0x80..=0xBF)
            | (Utf8State::AfterE0, 0xA0..=0xBF)
            | (Utf8State::AfterEd, 0x80..=0x9F) => Some(Utf8State::One),
            (Utf8State::Between, 0xE0) => Some(Utf8State::AfterE0),
            (Utf8State::Between, 0xED) => Some(Utf8State::AfterEd),
            (Utf8State::Between, 0xE1..=0xEF)
            | (Utf8State::Three, 0x80..=0xBF)
            | (Utf8State::AfterF0, 0x90..=0xBF)
            | (Utf8State::AfterF4, 0x80..=0x8F) => Some(Utf8State::Two),
            (Utf8State::Between, 0xF0) => Some(Utf8State::AfterF0),
            (Utf8State::Between, 0xF1..=0xF3) => Some(Utf8State::Three),
            (Utf8State::Between, 0xF4) => Some(Utf8State::AfterF4),
            _ => None,
        }
    }
}

/// Returns `true` if every member is valid UTF-8. The machine is read in parallel with a UTF-8
/// decoder, and no live state may be reached where the decoder is stuck.
///
/// # Errors
///
/// [`Error::Limit`] if more than `limit` pairs of states are met; [`Error::Interrupted`].
pub fn is_utf8(
    machine: &impl Machine,
    limit: u64,
    poll: &mut InterruptCheck<'_>,
) -> Result<bool, Error> {
    let start = (machine.start(), Utf8State::Between);
    let mut seen: FxHashSet<(StateId, Utf8State)> = FxHashSet::from_iter([start]);
    let mut stack = vec![start];
    while let Some((state, place)) = stack.pop() {
        if place != Utf8State::Between && machine.is_accepting(state)? {
            return Ok(false);
        }
        poll.tick(256)?;
        for byte in 0..=255u8 {
            let Some(next) = machine.step(state, byte)? else { continue };
            let Some(place) = place.after(byte) else { return Ok(false) };
            if seen.insert((next, place)) {
                check_limit(Resource::States, seen.len() as u64, limit)?;
                stack.push((next, place));
            }
        }
    }
    Ok(true)
}

/// Returns the number of bytes that follow `byte` in its character, where `left` were to come
/// before it.
pub(crate) fn continuation_bytes(left: u8, byte: u8) -> u8 {
    match (left, byte) {
        (1.., _) => left - 1,
        (0, 0xC2..=0xDF) => 1,
        (0, 0xE0..=0xEF) => 2,
        (0, 0xF0..=0xF4) => 3,
        (0, _) => 0,
    }
}
