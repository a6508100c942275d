//! JSON string escapes: a byte-wise decoder with the choice of allowed spellings
//! ([`EscapePolicy`]).
//!
//! ```text
//!          backslash            u         4 hex digits
//!   None ────────────► Backslash ──► Hex ────────────► char, or HighSurrogate ──► Backslash …
//!    └─ any other byte ─► char
//! ```

use formalm_core::{ByteSet, Error};

/// The spellings of characters that strings may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EscapePolicy {
    /// Escapes only where JSON requires them, in their shortest form.
    #[default]
    Minimal,
    /// As [`EscapePolicy::Minimal`], and every non-ASCII character as `\u`.
    Ascii,
    /// Every spelling that JSON allows.
    Any,
}

/// The state inside a character's escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EscapeState {
    /// Outside an escape: between two characters, or inside the UTF-8 bytes of one.
    #[default]
    None,
    /// After a backslash. `high` is the first half of a surrogate pair.
    Backslash {
        /// The first half.
        high: Option<u16>,
    },
    /// After `digits` hexadecimal digits.
    Hex {
        /// The first half.
        high: Option<u16>,
        /// The value of the digits so far.
        value: u16,
        /// Number of digits so far.
        digits: u8,
    },
    /// After the first half of a surrogate pair.
    HighSurrogate {
        /// The first half.
        high: u16,
    },
}

/// The effect of a raw byte of a string.
#[derive(Debug)]
pub enum EscapeStep {
    /// These bytes of content: a character, a part of one, or an escape that is now complete.
    Char(CharBytes),
    /// An incomplete escape.
    Partial(EscapeState),
    /// The string ends.
    End,
    /// The byte is not allowed here.
    Invalid,
}

/// The UTF-8 bytes of at most one character.
#[derive(Debug)]
pub struct CharBytes {
    bytes: [u8; 4],
    length: usize,
}

impl std::ops::Deref for CharBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl EscapeStep {
    fn byte(byte: u8) -> EscapeStep {
        EscapeStep::Char(CharBytes { bytes: [byte, 0, 0, 0], length: 1 })
    }

    fn character(character: char) -> EscapeStep {
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        EscapeStep::Char(CharBytes { bytes, length })
    }
}

/// Returns the raw bytes with which a string may continue between two characters or inside one, given
/// the bytes of content.
pub fn raw_bytes(content: ByteSet, policy: EscapePolicy) -> ByteSet {
    let mut escaped = ByteSet::default();
    escaped.insert_range(0, 0x1F);
    escaped.insert(b'"');
    escaped.insert(b'\\');
    if policy == EscapePolicy::Ascii {
        escaped.insert_range(0x80, 0xFF);
    }
    let must_escape = content.intersection(escaped);
    let mut raw = content;
    must_escape.iter().for_each(|byte| raw.remove(byte));
    if policy == EscapePolicy::Any || !must_escape.is_empty() {
        raw.insert(b'\\');
    }
    raw
}

/// Reads one raw byte of a string.
pub fn read_string_byte(escape: EscapeState, byte: u8, policy: EscapePolicy) -> EscapeStep {
    match escape {
        EscapeState::None if byte == b'\\' => {
            EscapeStep::Partial(EscapeState::Backslash { high: None })
        }
        EscapeState::None if byte == b'"' => EscapeStep::End,
        EscapeState::None if byte < 0x20 => EscapeStep::Invalid,
        EscapeState::None if byte >= 0x80 && policy == EscapePolicy::Ascii => EscapeStep::Invalid,
        EscapeState::None => EscapeStep::byte(byte),
        EscapeState::HighSurrogate { high } if byte == b'\\' => {
            EscapeStep::Partial(EscapeState::Backslash { high: Some(high) })
        }
        EscapeState::HighSurrogate { .. } => EscapeStep::Invalid,
        EscapeState::Backslash { high } if byte == b'u' => {
            EscapeStep::Partial(EscapeState::Hex { high, value: 0, digits: 0 })
        }
        EscapeState::Backslash { high: Some(_) } => EscapeStep::Invalid,
        EscapeState::Backslash { high: None } => match short_escape(byte, policy) {
            Some(character) => EscapeStep::character(character),
            None => EscapeStep::Invalid,
        },
        EscapeState::Hex { high, value, digits } => {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' if policy == EscapePolicy::Any => byte - b'A' + 10,
                _ => return EscapeStep::Invalid,
            };
            let value = value << 4 | u16::from(digit);
            if digits < 3 {
                return EscapeStep::Partial(EscapeState::Hex { high, value, digits: digits + 1 });
            }
            utf16_unit(high, value, policy)
        }
    }
}

fn short_escape(byte: u8, policy: EscapePolicy) -> Option<char> {
    Some(match byte {
        b'"' | b'\\' => char::from(byte),
        b'/' if policy == EscapePolicy::Any => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

fn utf16_unit(high: Option<u16>, value: u16, policy: EscapePolicy) -> EscapeStep {
    match (high, value) {
        (Some(high), 0xDC00..=0xDFFF) => {
            let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + u32::from(value) - 0xDC00;
            char::from_u32(code).map_or(EscapeStep::Invalid, EscapeStep::character)
        }
        (Some(_), _) | (None, 0xDC00..=0xDFFF) => EscapeStep::Invalid,
        (None, 0xD800..=0xDBFF) if policy != EscapePolicy::Minimal => {
            EscapeStep::Partial(EscapeState::HighSurrogate { high: value })
        }
        (None, _) => match char::from_u32(u32::from(value)) {
            Some(character) if may_be_escaped(character, policy) => {
                EscapeStep::character(character)
            }
            _ => EscapeStep::Invalid,
        },
    }
}

/// Returns `true` if `policy` lets a character be written with `\u`.
fn may_be_escaped(character: char, policy: EscapePolicy) -> bool {
    let needed = character < ' ' && !"\u{8}\u{c}\n\r\t".contains(character);
    match policy {
        EscapePolicy::Any => true,
        EscapePolicy::Minimal => needed,
        EscapePolicy::Ascii => needed || character >= '\u{80}',
    }
}

/// A reader of the bytes of a character. It returns the number of bytes read before one is refused,
/// if one is.
pub trait CharReader: Fn(&[u8]) -> Result<Result<(), usize>, Error> {}

impl<R: Fn(&[u8]) -> Result<Result<(), usize>, Error>> CharReader for R {}

/// Returns `true` if the reader accepts some character that the escape can still become.
///
/// # Errors
///
/// Fails with the errors of the reader.
pub fn some_completion(
    escape: EscapeState,
    policy: EscapePolicy,
    reader: &impl CharReader,
) -> Result<bool, Error> {
    match escape {
        EscapeState::None => Ok(true),
        EscapeState::HighSurrogate { high } => some_low(high, 0, 0, reader),
        EscapeState::Backslash { high: Some(high) } => some_low(high, 0, 0, reader),
        EscapeState::Backslash { high: None } => {
            for byte in b"\"\\/bfnrt" {
                let mut buffer = [0; 4];
                if let Some(character) = short_escape(*byte, policy)
                    && reader(character.encode_utf8(&mut buffer).as_bytes())?.is_ok()
                {
                    return Ok(true);
                }
            }
            some_unit(0, 0, policy, reader)
        }
        EscapeState::Hex { high: None, value, digits } => some_unit(value, digits, policy, reader),
        EscapeState::Hex { high: Some(high), value, digits } => {
            some_low(high, value, digits, reader)
        }
    }
}

/// Returns `true` if the escape can still become `character`.
#[must_use]
pub fn can_complete_to(escape: EscapeState, policy: EscapePolicy, character: char) -> bool {
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units);
    let within = |unit: u16, value: u16, digits: u8| {
        let (low, high) = unit_range(value, digits);
        (low..=high).contains(&u32::from(unit))
    };
    let spelled = |value: u16, digits: u8| {
        within(units[0], value, digits)
            && may_be_escaped(character, policy)
            && (units.len() == 1 || policy != EscapePolicy::Minimal)
    };
    match escape {
        EscapeState::None => true,
        EscapeState::Backslash { high: None } => {
            b"\"\\/bfnrt".iter().any(|&byte| short_escape(byte, policy) == Some(character))
                || spelled(0, 0)
        }
        EscapeState::Hex { high: None, value, digits } => spelled(value, digits),
        EscapeState::HighSurrogate { high } | EscapeState::Backslash { high: Some(high) } => {
            units.len() == 2 && units[0] == high
        }
        EscapeState::Hex { high: Some(high), value, digits } => {
            units.len() == 2 && units[0] == high && within(units[1], value, digits)
        }
    }
}

fn unit_range(value: u16, digits: u8) -> (u32, u32) {
    let shift = 4 * (4 - u32::from(digits));
    let low = u32::from(value) << shift;
    (low, low + ((1u32 << shift) - 1))
}

fn some_unit(
    value: u16,
    digits: u8,
    policy: EscapePolicy,
    reader: &impl CharReader,
) -> Result<bool, Error> {
    let (low, high) = unit_range(value, digits);
    let top = if policy == EscapePolicy::Minimal { high.min(0x1F) } else { high };
    if some_char(low, top, &|one| may_be_escaped(one, policy), reader)? {
        return Ok(true);
    }
    let (first, last) = (low.max(0xD800), high.min(0xDBFF));
    if policy == EscapePolicy::Minimal || first > last {
        return Ok(false);
    }
    let wide = |unit: u32| 0x10000 + ((unit - 0xD800) << 10);
    some_char(wide(first), wide(last) + 0x3FF, &|_| true, reader)
}

fn some_low(high: u16, value: u16, digits: u8, reader: &impl CharReader) -> Result<bool, Error> {
    let (first, last) = unit_range(value, digits);
    let (first, last) = (first.max(0xDC00), last.min(0xDFFF));
    if first > last {
        return Ok(false);
    }
    let base = 0x10000 + ((u32::from(high) - 0xD800) << 10);
    some_char(base + first - 0xDC00, base + last - 0xDC00, &|_| true, reader)
}

/// Returns `true` if the reader accepts a character in a range that passes `test`.
fn some_char(
    low: u32,
    high: u32,
    test: &dyn Fn(char) -> bool,
    reader: &impl CharReader,
) -> Result<bool, Error> {
    let mut code = low;
    while code <= high {
        let Some(character) = char::from_u32(code).filter(|&one| test(one)) else {
            code += 1;
            continue;
        };
        let mut buffer = [0; 4];
        let bytes = character.encode_utf8(&mut buffer).as_bytes();
        match reader(bytes)? {
            Ok(()) => return Ok(true),
            // All characters that begin with the refused bytes are refused too.
            Err(good) => {
                let same = 6 * (bytes.len() - 1 - good);
                code = (code | ((1 << same) - 1)) + 1;
            }
        }
    }
    Ok(false)
}
