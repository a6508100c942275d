//! The bytes of JSON: escapes, punctuation, and the whitespace of a layout.

use formalm_json::escapes::{EscapePolicy, EscapeState, EscapeStep, read_string_byte};

use crate::machine::frame::{CharState, ContainerState, DONE, Frame, FrameId, Mark};
use crate::machine::min_bytes::distinct_values::UNBOUNDED;
use crate::machine::spelling::json::Json;
use crate::machine::spelling::json::whitespace::WhitespaceGap;
use crate::machine::spelling::{PartialLen, SpelledStrings, SpellingLengths};
use crate::machine::values::Values;
use crate::schema_nodes::JsonType;

impl SpelledStrings for Json {
    fn string_end(&self) -> &'static [u8] {
        b"\""
    }

    fn byte_len(&self, byte: u8) -> usize {
        match byte {
            b'"' | b'\\' | 0x08..=0x0A | 0x0C | 0x0D => 2,
            0..0x20 => 6,
            0x80.. if self.escapes == EscapePolicy::Ascii => match byte {
                0x80..0xC0 => 0,
                0xF0.. => 12,
                _ => 6,
            },
            _ => 1,
        }
    }

    fn shared_byte_len(&self, byte: u8) -> usize {
        match byte {
            _ if byte < 0x80 || self.escapes != EscapePolicy::Ascii => self.byte_len(byte),
            0x80..0xC0 => 1,
            0xC0..0xE0 => 5,
            0xE0..0xF0 => 4,
            _ => 9,
        }
    }

    fn spell_char(&self, text: &[u8]) -> Vec<u8> {
        if let Some(&byte) = text.first()
            && self.byte_len(byte) == 2
        {
            return vec![b'\\', (self.byte_order(byte) >> 8) as u8];
        }
        let length =
            (1..=text.len().min(4)).find(|&length| std::str::from_utf8(&text[..length]).is_ok());
        let character = length.and_then(|length| std::str::from_utf8(&text[..length]).ok());
        let units = character.into_iter().flat_map(str::encode_utf16);
        units.flat_map(|unit| format!("\\u{unit:04x}").into_bytes()).collect()
    }

    fn byte_order(&self, byte: u8) -> u32 {
        let of = |bytes: [u8; 3]| u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        let letter = match byte {
            0x08 => b'b',
            0x09 => b't',
            0x0A => b'n',
            0x0C => b'f',
            0x0D => b'r',
            b'"' | b'\\' => byte,
            _ if self.byte_len(byte) == 1 => return of([byte, 0, 0]),
            _ => return of([b'\\', b'u', byte]),
        };
        of([b'\\', letter, 0])
    }

    fn char_after(&self, at: CharState, byte: u8) -> Option<CharState> {
        match read_string_byte(at.escape(), byte, self.escapes) {
            EscapeStep::Partial(further) => Some(CharState::of_escape(further)),
            _ => None,
        }
    }

    fn partial_len(&self, at: CharState) -> PartialLen {
        let first = |high: Option<u16>| if high.is_some() { 6 } else { 0 };
        match at.escape() {
            EscapeState::None => PartialLen::default(),
            EscapeState::Backslash { high: None } => PartialLen { read: 1, left: 1, slack: 0 },
            EscapeState::Backslash { high: Some(_) } => PartialLen { read: 7, left: 5, slack: 1 },
            EscapeState::HighSurrogate { .. } => PartialLen { read: 6, left: 6, slack: 2 },
            EscapeState::Hex { high, digits, .. } => {
                let most = match high {
                    Some(_) => 4,
                    None if self.escapes == EscapePolicy::Minimal => 1,
                    None => 3,
                };
                PartialLen {
                    read: first(high) + 2 + usize::from(digits),
                    left: 4usize.saturating_sub(digits.into()),
                    slack: 4 - (digits as isize) - most,
                }
            }
        }
    }
}

impl SpellingLengths for Json {
    fn value_rest(&self, values: &Values, parent: FrameId, mark: Mark, value: usize) -> usize {
        if parent == DONE {
            return value;
        }
        let (gap, depth) = WhitespaceGap::before_value(&values.frames, parent);
        self.gaps.length(gap, depth).saturating_sub(mark.into()) + value
    }

    fn item_len(&self) -> usize {
        self.gaps.comma_bytes()
    }

    fn property_len(&self) -> usize {
        self.gaps.comma_bytes() + 2 + self.gaps.colon_bytes()
    }

    fn close_len(&self, depth: u32) -> usize {
        self.gaps.length(WhitespaceGap::Close, depth) + 1
    }

    fn container_rest(&self, values: &Values, frame: &Frame, parts: usize) -> usize {
        let (Frame::Object { mode, mark, parent, .. } | Frame::Array { mode, mark, parent, .. }) =
            *frame
        else {
            return 0;
        };
        let close = self.close_len(values.frames.depth(parent) + 1) - 1;
        let committed = self.gaps.is_committed(mark);
        let comma = self.gaps.comma_bytes();
        let own = match mode {
            ContainerState::AfterOpen => parts.saturating_sub(comma),
            ContainerState::AfterComma => parts.saturating_sub(comma).max(4),
            ContainerState::AfterName => 2 + parts,
            ContainerState::InValue | ContainerState::AfterValue => parts,
        };
        let close = match (mode, committed) {
            (ContainerState::AfterOpen, false) if parts == 0 => 0,
            (ContainerState::AfterValue, true) => close.saturating_sub(mark.into()),
            _ => close,
        };
        own + close + 1
    }

    fn name_rest(&self, read: Option<usize>, escape: CharState, parts: usize) -> usize {
        // The bytes read, including the quote, may belong to a required name, whose comma has been
        // read as well.
        let read = read.map(|read| read + 1 + self.gaps.comma_bytes());
        let partial = self.partial_len(escape);
        let rest = read.map_or(0, |read| parts.saturating_sub(read));
        rest.saturating_add_signed(partial.slack).max(3 + partial.left)
    }

    fn string_quotes(&self) -> usize {
        2
    }

    fn value_counts(&self, of: JsonType) -> &'static [(usize, u64)] {
        match of {
            JsonType::Null => &[(4, 1)],
            JsonType::Bool => &[(4, 1), (5, 1)],
            // The empty array, arrays of one digit, and arrays of anything with two bytes.
            JsonType::Array => &[(2, 1), (3, 10), (4, 102), (5, UNBOUNDED)],
            JsonType::Object => &[(2, 1), (6, 10), (7, UNBOUNDED)],
            JsonType::String | JsonType::Number => &[(1, UNBOUNDED)],
        }
    }
}
