//! Reads JSON: bytes to events.

use formalm_core::{ByteSet, Error};
use formalm_json::escapes::{
    EscapePolicy, EscapeState, EscapeStep, can_complete_to, read_string_byte, some_completion,
};

use crate::machine::frame::{CharState, ContainerState, DONE, FRESH, Frame, ReaderPosition};
use crate::machine::numbers::is_number_byte;
use crate::machine::spelling::Spelling;
use crate::machine::spelling::json::Json;
use crate::machine::spelling::json::mask_class::JsonMaskTables;
use crate::machine::spelling::json::possible_bytes::possible_bytes;
use crate::machine::spelling::json::typical_instances::typical_instance;
use crate::machine::spelling::json::whitespace::{GapRules, WhitespaceGap, is_whitespace};
use crate::machine::values::scalars::{CharReader, PartialChar};
use crate::machine::values::value_start::ValueStart;
use crate::machine::values::{AfterEvent, Values};
use crate::options::JsonSchemaOptions;
use crate::schema_nodes::ResolvedSchema;

/// Returns the value that a first byte begins.
fn value_start(byte: u8) -> Option<ValueStart> {
    Some(match byte {
        b'n' => ValueStart::Null(b"ull"),
        b't' => ValueStart::Bool(true, b"rue"),
        b'f' => ValueStart::Bool(false, b"alse"),
        b'"' => ValueStart::String,
        b'-' | b'0'..=b'9' => ValueStart::Number(byte),
        b'[' => ValueStart::Array,
        b'{' => ValueStart::Object,
        _ => return None,
    })
}

/// An escape that has begun.
struct PartialEscape {
    escape: EscapeState,
    policy: EscapePolicy,
}

impl PartialChar for PartialEscape {
    fn some_accepted(&self, reader: &CharReader<'_>) -> Result<bool, Error> {
        some_completion(self.escape, self.policy, &|bytes: &[u8]| reader(bytes))
    }

    fn can_become(&self, character: char) -> bool {
        can_complete_to(self.escape, self.policy, character)
    }
}

impl Spelling for Json {
    type MaskTables = JsonMaskTables;

    fn new(options: &JsonSchemaOptions) -> Json {
        Json { gaps: GapRules::new(options), escapes: options.escapes }
    }

    fn depends_on_depth(&self) -> bool {
        self.gaps.has_indent()
    }

    fn typical_instance(&self, schema: &ResolvedSchema, number: usize) -> Option<Vec<u8>> {
        typical_instance(schema, self.gaps, number)
    }

    fn read(&self, values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent {
        match at.frame {
            Frame::Done => Ok(None),
            Frame::Value { .. } => self.read_value(values, at, byte),
            Frame::Literal { rest, verdicts, parent } => {
                if rest[0] != byte {
                    return Ok(None);
                }
                if rest.len() == 1 {
                    return values.close_value(parent, verdicts, at.record);
                }
                let frame = Frame::Literal { rest: &rest[1..], verdicts, parent };
                Ok(Some(ReaderPosition { frame, ..at }))
            }
            Frame::String { escape, .. } => {
                match read_string_byte(escape.escape(), byte, self.escapes) {
                    EscapeStep::Invalid => Ok(None),
                    EscapeStep::End => values.end_string(at),
                    EscapeStep::Char(read) => values.string_bytes(at, &read),
                    EscapeStep::Partial(escape) => {
                        let partial = PartialEscape { escape, policy: self.escapes };
                        values.string_char(at, CharState::of_escape(escape), &partial)
                    }
                }
            }
            Frame::Name { escape, .. } => {
                match read_string_byte(escape.escape(), byte, self.escapes) {
                    EscapeStep::Invalid => Ok(None),
                    EscapeStep::End => values.end_name(at),
                    EscapeStep::Char(read) => values.name_bytes(at, &read),
                    EscapeStep::Partial(escape) => {
                        let partial = PartialEscape { escape, policy: self.escapes };
                        values.name_char(at, CharState::of_escape(escape), &partial)
                    }
                }
            }
            Frame::Number { .. } if is_number_byte(byte) => values.number_byte(at, byte),
            // The byte belongs to the parent.
            Frame::Number { .. } => match values.end_number(at)? {
                Some(around) => self.read(values, around, byte),
                None => Ok(None),
            },
            Frame::Object { .. } => self.read_object(values, at, byte),
            Frame::Array { .. } => self.read_array(values, at, byte),
        }
    }

    fn possible_bytes(&self, values: &Values, at: ReaderPosition) -> Option<ByteSet> {
        possible_bytes(values, &self.gaps, at.frame)
    }

    #[inline]
    fn ends_run(&self, byte: u8) -> bool {
        b"\"\\".contains(&byte)
    }
}

impl Json {
    /// Reads a byte before a value.
    fn read_value(&self, values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent {
        let Frame::Value { mark, parent, .. } = at.frame else { return Ok(None) };
        let (gap, depth) = WhitespaceGap::before_value(&values.frames, parent);
        if is_whitespace(byte) && parent != DONE {
            let mark = self.gaps.after(gap, depth, mark, byte);
            return Ok(mark.map(|mark| at.with_mark(mark)));
        }
        let Some(start) = value_start(byte) else { return Ok(None) };
        if parent != DONE && !self.gaps.ends(gap, depth, mark) {
            return Ok(None);
        }
        values.open(at, start)
    }

    /// Reads a byte between the parts of an object.
    fn read_object(&self, values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent {
        let Frame::Object { obligation, mode, mark, parent, .. } = at.frame else {
            return Ok(None);
        };
        let (gap, depth) = (WhitespaceGap::after(mode), values.frames.depth(parent) + 1);
        if is_whitespace(byte) {
            let begins = self.gaps.has_layout() && mark == FRESH;
            let Some(mark) = self.gaps.after(gap, depth, mark, byte) else { return Ok(None) };
            // The first whitespace of a layout already decides what comes after it.
            let viable = match mode {
                ContainerState::AfterOpen if begins => values.any_name_viable(at.frame)?,
                ContainerState::AfterValue if begins => values.end_verdicts(obligation).is_some(),
                _ => true,
            };
            return Ok(viable.then(|| at.with_mark(mark)));
        }
        let (committed, ends) = (self.gaps.is_committed(mark), self.gaps.ends(gap, depth, mark));
        match (mode, byte) {
            (ContainerState::AfterOpen, b'}') if committed => Ok(None),
            (ContainerState::AfterValue, b'}') if !ends => Ok(None),
            (ContainerState::AfterOpen | ContainerState::AfterValue, b'}') => {
                values.end_container(at)
            }
            (ContainerState::AfterValue, b',') if committed => Ok(None),
            (ContainerState::AfterValue, b',') => values.next_property(at, FRESH),
            _ if !ends => Ok(None),
            (ContainerState::AfterOpen | ContainerState::AfterComma, b'"') => {
                values.start_name(at, FRESH)
            }
            (ContainerState::AfterName, b':') => values.start_value(at, FRESH),
            _ => Ok(None),
        }
    }

    /// Reads a byte between the items of an array.
    fn read_array(&self, values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent {
        let Frame::Array { obligation, mode, mark, parent, .. } = at.frame else {
            return Ok(None);
        };
        let (gap, depth) = (WhitespaceGap::after(mode), values.frames.depth(parent) + 1);
        let (committed, ends) = (self.gaps.is_committed(mark), self.gaps.ends(gap, depth, mark));
        match (mode, byte) {
            (ContainerState::AfterOpen, b']') if committed => Ok(None),
            (ContainerState::AfterValue, b']') if !ends => Ok(None),
            (ContainerState::AfterOpen | ContainerState::AfterValue, b']') => {
                values.end_container(at)
            }
            (ContainerState::AfterValue, b',') if committed => Ok(None),
            (ContainerState::AfterValue, b',') => values.start_item(at, FRESH),
            (ContainerState::AfterOpen | ContainerState::AfterValue, byte)
                if is_whitespace(byte) =>
            {
                let begins = self.gaps.has_layout() && mark == FRESH;
                let Some(mark) = self.gaps.after(gap, depth, mark, byte) else { return Ok(None) };
                let viable = match mode {
                    ContainerState::AfterOpen if begins => values.may_start_item(obligation)?,
                    ContainerState::AfterValue if begins => {
                        values.end_verdicts(obligation).is_some()
                    }
                    _ => true,
                };
                Ok(viable.then(|| at.with_mark(mark)))
            }
            (ContainerState::AfterOpen, _) if !ends => Ok(None),
            (ContainerState::AfterOpen, byte) => {
                let Some(item) = values.start_item(at, FRESH)? else { return Ok(None) };
                // The whitespace before the first item was read in the array.
                self.read(values, item.with_mark(self.gaps.over()), byte)
            }
            _ => Ok(None),
        }
    }
}
