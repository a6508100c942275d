//! The spelling of strings: escapes, read into characters.

use formalm_automata::{Automaton, Error, Machine, StateId};

use super::frame::Escape;
use crate::options::Escapes;

/// What a byte of a string does.
pub(super) enum Read {
    /// It is the character, or a part of it, itself.
    Byte(u8),
    /// It completes an escaped character.
    Character(char),
    /// More is to come.
    Inside(Escape),
    /// It cannot stand here.
    Wrong,
}

/// Reads one byte of a string's spelling.
pub(super) fn read(escape: Escape, byte: u8, policy: Escapes) -> Read {
    match escape {
        Escape::None if byte == b'\\' => Read::Inside(Escape::Slash { high: None }),
        Escape::None if byte < 0x20 || byte == b'"' => Read::Wrong,
        Escape::None if byte >= 0x80 && policy == Escapes::Ascii => Read::Wrong,
        Escape::None => Read::Byte(byte),
        Escape::Half { high } if byte == b'\\' => Read::Inside(Escape::Slash { high: Some(high) }),
        Escape::Half { .. } => Read::Wrong,
        Escape::Slash { high } if byte == b'u' => {
            Read::Inside(Escape::Hex { high, value: 0, digits: 0 })
        }
        Escape::Slash { high: Some(_) } => Read::Wrong,
        Escape::Slash { high: None } => match short(byte, policy) {
            Some(character) => Read::Character(character),
            None => Read::Wrong,
        },
        Escape::Hex { high, value, digits } => {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' if policy == Escapes::Any => byte - b'A' + 10,
                _ => return Read::Wrong,
            };
            let value = value << 4 | u16::from(digit);
            if digits < 3 {
                return Read::Inside(Escape::Hex { high, value, digits: digits + 1 });
            }
            unit(high, value, policy)
        }
    }
}

fn short(byte: u8, policy: Escapes) -> Option<char> {
    Some(match byte {
        b'"' | b'\\' => char::from(byte),
        b'/' if policy == Escapes::Any => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

fn unit(high: Option<u16>, value: u16, policy: Escapes) -> Read {
    match (high, value) {
        (Some(high), 0xDC00..=0xDFFF) => {
            let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + u32::from(value) - 0xDC00;
            char::from_u32(code).map_or(Read::Wrong, Read::Character)
        }
        (Some(_), _) | (None, 0xDC00..=0xDFFF) => Read::Wrong,
        (None, 0xD800..=0xDBFF) if policy != Escapes::Minimal => {
            Read::Inside(Escape::Half { high: value })
        }
        (None, _) => match char::from_u32(u32::from(value)) {
            Some(character) if may_be_escaped(character, policy) => Read::Character(character),
            _ => Read::Wrong,
        },
    }
}

/// Whether a character may be spelled with `\u`.
fn may_be_escaped(character: char, policy: Escapes) -> bool {
    let needed = character < ' ' && !"\u{8}\u{c}\n\r\t".contains(character);
    match policy {
        Escapes::Any => true,
        Escapes::Minimal => needed,
        Escapes::Ascii => needed || character >= '\u{80}',
    }
}

/// Whether some character that the escape may become satisfies a test.
pub(super) fn some_completion(
    escape: Escape,
    policy: Escapes,
    machine: &Automaton,
    state: StateId,
) -> Result<bool, Error> {
    match escape {
        Escape::None => Ok(true),
        Escape::Half { high } => some_low(high, 0, 0, machine, state),
        Escape::Slash { high: Some(high) } => some_low(high, 0, 0, machine, state),
        Escape::Slash { high: None } => {
            for byte in b"\"\\/bfnrt" {
                if let Some(character) = short(*byte, policy)
                    && step_char(machine, state, character)?.is_some()
                {
                    return Ok(true);
                }
            }
            some_unit(0, 0, policy, machine, state)
        }
        Escape::Hex { high: None, value, digits } => {
            some_unit(value, digits, policy, machine, state)
        }
        Escape::Hex { high: Some(high), value, digits } => {
            some_low(high, value, digits, machine, state)
        }
    }
}

/// Whether the escape may become a character.
pub(super) fn may_become(escape: Escape, policy: Escapes, character: char) -> bool {
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units);
    let within = |unit: u16, value: u16, digits: u8| {
        let (low, high) = span(value, digits);
        (low..=high).contains(&u32::from(unit))
    };
    let spelled = |value: u16, digits: u8| {
        within(units[0], value, digits)
            && may_be_escaped(character, policy)
            && (units.len() == 1 || policy != Escapes::Minimal)
    };
    match escape {
        Escape::None => true,
        Escape::Slash { high: None } => {
            b"\"\\/bfnrt".iter().any(|&byte| short(byte, policy) == Some(character))
                || spelled(0, 0)
        }
        Escape::Hex { high: None, value, digits } => spelled(value, digits),
        Escape::Half { high } | Escape::Slash { high: Some(high) } => {
            units.len() == 2 && units[0] == high
        }
        Escape::Hex { high: Some(high), value, digits } => {
            units.len() == 2 && units[0] == high && within(units[1], value, digits)
        }
    }
}

fn span(value: u16, digits: u8) -> (u32, u32) {
    let shift = 4 * (4 - u32::from(digits));
    let low = u32::from(value) << shift;
    (low, low + ((1u32 << shift) - 1))
}

fn some_unit(
    value: u16,
    digits: u8,
    policy: Escapes,
    machine: &Automaton,
    state: StateId,
) -> Result<bool, Error> {
    let (low, high) = span(value, digits);
    let top = if policy == Escapes::Minimal { high.min(0x1F) } else { high };
    if some_char(low, top, &|one| may_be_escaped(one, policy), machine, state)? {
        return Ok(true);
    }
    let (first, last) = (low.max(0xD800), high.min(0xDBFF));
    if policy == Escapes::Minimal || first > last {
        return Ok(false);
    }
    let wide = |unit: u32| 0x10000 + ((unit - 0xD800) << 10);
    some_char(wide(first), wide(last) + 0x3FF, &|_| true, machine, state)
}

fn some_low(
    high: u16,
    value: u16,
    digits: u8,
    machine: &Automaton,
    state: StateId,
) -> Result<bool, Error> {
    let (first, last) = span(value, digits);
    let (first, last) = (first.max(0xDC00), last.min(0xDFFF));
    if first > last {
        return Ok(false);
    }
    let base = 0x10000 + ((u32::from(high) - 0xD800) << 10);
    some_char(base + first - 0xDC00, base + last - 0xDC00, &|_| true, machine, state)
}

/// Whether the machine reads some character of a range.
fn some_char(
    low: u32,
    high: u32,
    test: &dyn Fn(char) -> bool,
    machine: &Automaton,
    state: StateId,
) -> Result<bool, Error> {
    let mut code = low;
    while code <= high {
        let Some(character) = char::from_u32(code).filter(|&one| test(one)) else {
            code += 1;
            continue;
        };
        let mut buffer = [0; 4];
        let bytes = character.encode_utf8(&mut buffer).as_bytes();
        match machine.walk(state, bytes)? {
            Ok(_) => return Ok(true),
            // All characters that begin with the bytes refused are refused.
            Err(good) => {
                let same = 6 * (bytes.len() - 1 - good);
                code = (code | ((1 << same) - 1)) + 1;
            }
        }
    }
    Ok(false)
}

/// The state after a character.
pub(super) fn step_char(
    machine: &Automaton,
    state: StateId,
    character: char,
) -> Result<Option<StateId>, Error> {
    let mut buffer = [0; 4];
    Ok(machine.walk(state, character.encode_utf8(&mut buffer).as_bytes())?.ok())
}
