//! The bytes that a shortest completion of JSON may need.

use formalm_core::{ByteSet, RecheckPredicate};
use formalm_json::escapes::EscapeState;

use crate::machine::frame::{ContainerState, DONE, Frame, FrameId, Mark, ReaderPosition};
use crate::machine::spelling::json::Json;
use crate::machine::spelling::json::abstract_state::{
    CompletionRecheck, abstract_position, number_repeats_nothing,
};
use crate::machine::spelling::json::whitespace::{WhitespaceGap, is_whitespace};
use crate::machine::spelling::{CompletionReuse, SearchHints};
use crate::machine::values::Values;

impl SearchHints for Json {
    fn useful_bytes(&self, frame: &Frame) -> Option<ByteSet> {
        let mut set = ByteSet::default();
        let whitespace: &[u8] = if self.gaps.has_layout() { b" \t\n\r" } else { b"" };
        may_begin(frame)?.iter().chain(whitespace).for_each(|&byte| set.insert(byte));
        Some(set)
    }

    fn closing_byte(&self, values: &Values, object: &Frame) -> Option<u8> {
        let Frame::Object { mode, mark, parent, .. } = *object else { return None };
        match mode {
            ContainerState::AfterOpen if self.gaps.is_committed(mark) => None,
            ContainerState::AfterOpen => Some(b'}'),
            _ => {
                let depth = values.frames.depth(parent) + 1;
                self.gaps.byte(WhitespaceGap::Close, depth, mark).or(Some(b'}'))
            }
        }
    }

    fn gap_byte(&self, values: &Values, parent: FrameId, mark: Mark) -> Option<u8> {
        if parent == DONE {
            return None;
        }
        let (gap, depth) = WhitespaceGap::before_value(&values.frames, parent);
        self.gaps.byte(gap, depth, mark)
    }

    fn item_separator(&self) -> Option<u8> {
        Some(b',')
    }

    fn is_item_gap(&self, byte: u8) -> bool {
        is_whitespace(byte)
    }
}

impl CompletionReuse for Json {
    fn finds_repetitions(&self) -> bool {
        true
    }

    fn joins_names(&self, token: &[u8]) -> bool {
        let comma = token.iter().position(|&byte| byte == b',');
        comma.is_some_and(|at| token[at..].contains(&b'"'))
    }

    fn without_repetitions(&self, values: &mut Values, at: ReaderPosition) -> ReaderPosition {
        abstract_position(values, at)
    }

    fn repeats_nothing(&self, values: &mut Values, at: ReaderPosition, completion: &[u8]) -> bool {
        number_repeats_nothing(values, at, completion)
    }

    fn recheck_predicate(
        &self,
        values: &mut Values,
        at: Option<ReaderPosition>,
        forgetful: Frame,
        completion: &[u8],
    ) -> Option<RecheckPredicate> {
        CompletionRecheck { values, frame: forgetful }.recheck_predicate(at, completion)
    }
}

/// Returns the bytes, except whitespace, that may be needed in a frame; `None` if any may be.
fn may_begin(frame: &Frame) -> Option<&'static [u8]> {
    Some(match frame {
        Frame::String { escape, .. } | Frame::Name { escape, .. } => match escape.escape() {
            EscapeState::None => return None,
            EscapeState::Backslash { .. } => b"\"/\\bfnrtu",
            EscapeState::Hex { .. } => b"0123456789ABCDEFabcdef",
            EscapeState::HighSurrogate { .. } => b"\\",
        },
        Frame::Object { mode, .. } => match mode {
            ContainerState::AfterOpen => b"\"}",
            ContainerState::AfterComma => b"\"",
            ContainerState::AfterName => b":",
            ContainerState::InValue | ContainerState::AfterValue => b",}",
        },
        Frame::Array { mode: ContainerState::AfterValue, .. } => b",]",
        Frame::Array { .. } => b"\"-0123456789[]fnt{",
        Frame::Value { .. } => b"\"-0123456789[fnt{",
        Frame::Number { .. } => b"+,-.0123456789E]e}",
        Frame::Literal { rest, .. } => &rest[..1],
        Frame::Done => b"",
    })
}
