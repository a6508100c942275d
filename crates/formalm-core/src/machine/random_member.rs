//! Random members of any machine, by a weighted random walk without materializing it.
//!
//! The draw is not uniform; over an infinite language it cannot be. Bytes are grouped by successor,
//! so that a quotation mark that ends a string is not one of a hundred characters. Large groups are
//! more likely than single bytes, and rare bytes are unlikely. After a given length the walk takes
//! the shortest completion.

use crate::InterruptCheck;
use crate::StateId;
use crate::{Error, Resource};
use crate::{Machine, require_exact};

/// Maximum number of walks that may fail in a row: in dead ends of approximate machines, or at
/// completions beyond the limits. Chosen, not measured.
const MAX_WALKS: u64 = 16;

/// Steps that a byte read in a new state counts for, relative to other work.
const STEPS_PER_STATE: usize = 64;

/// Weight of an end and of a single common byte. All weights are chosen, not measured.
const COMMON_WEIGHT: u64 = 16;
const RARE_WEIGHT: u64 = 1;
/// Weight of a single letter among many equivalent ones: a keyword.
const KEYWORD_WEIGHT: u64 = 640;

/// Minimum number of equivalent bytes that count as free text.
const MIN_TEXT_BYTES: usize = 32;

/// Draws a member with the random numbers of `seed`. Bytes after the first `random_bytes` are the
/// shortest completion.
///
/// # Errors
///
/// [`Error::Language`] for machines that do not know which states are live, or if all walks end in
/// dead ends; [`Error::Limit`].
pub fn random_member(
    machine: &impl Machine,
    seed: u64,
    random_bytes: usize,
    poll: &mut InterruptCheck<'_>,
) -> Result<Vec<u8>, Error> {
    require_exact(machine, "random members", "draw from a grammar or a schema instead")?;
    let mut numbers = SplitMix64(seed);
    let mut random_bytes = random_bytes;
    for _ in 0..MAX_WALKS {
        match random_walk(machine, &mut numbers, random_bytes, poll) {
            Ok(Some(member)) => return Ok(member),
            Ok(None) => {}
            // The completion is too long; nearer to the start there may be less to complete.
            Err(Error::Limit { resource: Resource::States | Resource::Steps, .. })
                if random_bytes > 0 =>
            {
                random_bytes /= 4;
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::language(
        format!("{MAX_WALKS} consecutive random walks reached a dead end"),
        Some("the language is approximate; see its notes"),
    ))
}

/// Takes one walk; `None` is a dead end.
fn random_walk(
    machine: &impl Machine,
    numbers: &mut SplitMix64,
    random_bytes: usize,
    poll: &mut InterruptCheck<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    let (mut text, mut state) = (Vec::new(), machine.start());
    while text.len() < random_bytes {
        poll.tick(STEPS_PER_STATE)?;
        match choose_step(machine, state, &text, numbers)? {
            Some(WalkStep::End) => return Ok(Some(text)),
            Some(WalkStep::Byte(byte, next)) => {
                text.push(byte);
                state = next;
            }
            None => return Ok(None),
        }
    }
    let rest = match random_bytes {
        0 => machine.shortest_completion(state)?,
        _ => machine.quick_shortest_completion(state)?,
    };
    poll.tick(rest.len() * STEPS_PER_STATE)?;
    let ends = machine.accepts_from(state, &rest)?;
    text.extend(rest);
    Ok(ends.then_some(text))
}

/// The next step of a walk.
enum WalkStep {
    End,
    Byte(u8, StateId),
}

/// Chooses among the byte classes of a state and the end of the string; `None` is a dead end.
fn choose_step(
    machine: &impl Machine,
    state: StateId,
    text: &[u8],
    numbers: &mut SplitMix64,
) -> Result<Option<WalkStep>, Error> {
    let ways = machine.byte_classes(state)?;
    let mut ways: Vec<Vec<u8>> = ways.iter().map(|bytes| bytes.iter().collect()).collect();
    let end = if machine.is_accepting(state)? { COMMON_WEIGHT } else { 0 };
    let open = ways.iter().any(|bytes| common_count(bytes) >= MIN_TEXT_BYTES);
    let exponent = ends_in_exponent(text);
    let weight = |bytes: &[u8]| match bytes {
        [_, ..] if exponent && bytes.iter().all(u8::is_ascii_digit) => RARE_WEIGHT,
        _ => class_weight(bytes, open),
    };
    loop {
        let total = end + ways.iter().map(|bytes| weight(bytes)).sum::<u64>();
        if total == 0 {
            return Ok(None);
        }
        let mut number = numbers.below(total);
        if number < end {
            return Ok(Some(WalkStep::End));
        }
        number -= end;
        let mut at = 0;
        while number >= weight(&ways[at]) {
            number -= weight(&ways[at]);
            at += 1;
        }
        let byte = choose_byte(&ways[at], numbers);
        if let Some(next) = machine.step(state, byte)? {
            return Ok(Some(WalkStep::Byte(byte, next)));
        }
        ways[at].retain(|&one| one != byte);
    }
}

/// Returns `true` if `text` ends in a number with a two-digit exponent. A longer exponent exceeds
/// most programs' numbers and is rare.
fn ends_in_exponent(text: &[u8]) -> bool {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = &text[..text.len() - digits];
    let before = before.strip_suffix(b"+").or(before.strip_suffix(b"-")).unwrap_or(before);
    digits >= 2 && matches!(before, [.., b'0'..=b'9', b'e' | b'E'])
}

/// Returns the weight of a byte class, which grows with the logarithm of its size. A single letter
/// among many equivalent ones belongs to a keyword, and is most likely.
fn class_weight(bytes: &[u8], among_many: bool) -> u64 {
    match (bytes, common_count(bytes)) {
        ([], _) => 0,
        (_, 0) => RARE_WEIGHT,
        ([byte], _) if among_many && byte.is_ascii_alphanumeric() => KEYWORD_WEIGHT,
        (_, common) => COMMON_WEIGHT * u64::from(1 + common.ilog2()),
    }
}

fn common_count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| is_common(byte)).count()
}

/// Returns `true` if the byte is common in text: visible ASCII except the escape character.
fn is_common(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'\\'
}

/// Chooses a byte of a class: most likely a letter or digit.
fn choose_byte(bytes: &[u8], numbers: &mut SplitMix64) -> u8 {
    let often = |byte: u8| match byte {
        b' ' => 24,
        _ if byte.is_ascii_alphanumeric() => 8,
        _ if is_common(byte) => 2,
        _ => 1,
    };
    let mut number = numbers.below(bytes.iter().map(|&byte| often(byte)).sum());
    for &byte in bytes {
        if number < often(byte) {
            return byte;
        }
        number -= often(byte);
    }
    bytes[bytes.len() - 1]
}

/// A SplitMix64 random number generator (Steele, Lea, Flood 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound that is far below 2³².
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
