//! The bytes that may come next, as far as a frame tells without reading them.

use formalm_core::ByteSet;

use crate::machine::frame::{CharState, ContainerState, DONE, Frame};
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::spelling::json::whitespace::{GapRules, NextWhitespace, WhitespaceGap};
use crate::machine::values::Values;

/// Returns a small superset of the bytes that may follow a frame, `None` if there is none. Inside
/// strings and names of which anything may be known, nothing is small.
pub(crate) fn possible_bytes(values: &Values, gaps: &GapRules, frame: Frame) -> Option<ByteSet> {
    // The whitespace before the bytes, and whether it may be left out.
    let (mut whitespace, mut may_lack) = (NextWhitespace::None, true);
    let bytes: &[u8] = match frame {
        Frame::Done => b"",
        Frame::Value { mark, parent, .. } => {
            if parent != DONE {
                let (gap, depth) = WhitespaceGap::before_value(&values.frames, parent);
                (whitespace, may_lack) = (gaps.next_whitespace(gap, depth, mark), false);
            }
            b"\"[{-0123456789tfn"
        }
        Frame::Literal { rest, .. } => &rest[..1],
        Frame::Number { .. } => {
            whitespace = gaps.any_whitespace();
            b"0123456789.eE+-,]}"
        }
        Frame::Object { mode, mark, parent, .. } => {
            let depth = values.frames.depth(parent) + 1;
            whitespace = gaps.next_whitespace(WhitespaceGap::after(mode), depth, mark);
            may_lack = !matches!(mode, ContainerState::AfterComma | ContainerState::AfterName);
            match mode {
                ContainerState::AfterOpen => b"\"}",
                ContainerState::AfterComma => b"\"",
                ContainerState::AfterName => b":",
                ContainerState::InValue | ContainerState::AfterValue => b",}",
            }
        }
        Frame::Array { mode, mark, parent, .. } => {
            let depth = values.frames.depth(parent) + 1;
            whitespace = gaps.next_whitespace(WhitespaceGap::after(mode), depth, mark);
            match mode {
                ContainerState::AfterOpen => b"\"[]{-0123456789tfn",
                _ => b",]",
            }
        }
        Frame::String { escape: CharState::NONE, .. } => return None,
        Frame::Name { escape: CharState::NONE, candidates, .. } => {
            return (candidates.classes == NO_QUERIES)
                .then(|| known_name_bytes(values, frame))
                .flatten();
        }
        Frame::String { .. } | Frame::Name { .. } => b"\"\\/bfnrtu0123456789abcdefABCDEF",
    };
    let mut set = ByteSet::default();
    match whitespace {
        NextWhitespace::None => {}
        NextWhitespace::Any => b" \n\r\t".iter().for_each(|&byte| set.insert(byte)),
        NextWhitespace::Only(byte) => {
            set.insert(byte);
            if !may_lack {
                return Some(set);
            }
        }
    }
    bytes.iter().for_each(|&byte| set.insert(byte));
    Some(set)
}

/// Returns the bytes with which known names continue.
pub(crate) fn known_name_bytes(values: &Values, frame: Frame) -> Option<ByteSet> {
    let Frame::Name { next_names, text, candidates, escape: CharState::NONE, .. } = frame else {
        return None;
    };
    let mut set = ByteSet::default();
    set.insert(b'"');
    set.insert(b'\\');
    let depth = values.records.length(text) as usize;
    for at in candidates.from..candidates.to {
        let name = values.name_tables.known_name(&values.core, next_names, at);
        if let Some(&byte) = name.as_bytes().get(depth) {
            set.insert(byte);
        }
    }
    Some(set)
}
