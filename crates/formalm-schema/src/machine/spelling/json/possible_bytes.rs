//! The bytes that may come next, as far as a frame tells without reading them.

use formalm_core::ByteSet;

use crate::machine::frame::{CharState, ContainerState, Frame};
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::values::Values;

/// Returns a small superset of the bytes that may follow a frame, `None` if there is none. Inside
/// strings and names of which anything may be known, nothing is small.
pub(crate) fn possible_bytes(values: &Values, frame: Frame) -> Option<ByteSet> {
    let options = &values.core.options;
    let whitespace = options.max_whitespace > 0 || options.layout.is_some();
    let bytes: &[u8] = match frame {
        Frame::Done => b"",
        Frame::Value { .. } => b" \n\r\t\"[{-0123456789tfn",
        Frame::Literal { rest, .. } => &rest[..1],
        Frame::Number { .. } => b" \n\r\t0123456789.eE+-,]}",
        Frame::Object { mode, .. } => match mode {
            ContainerState::AfterOpen => b" \n\r\t\"}",
            ContainerState::AfterComma => b" \n\r\t\"",
            ContainerState::AfterName => b" \n\r\t:",
            ContainerState::InValue | ContainerState::AfterValue => b" \n\r\t,}",
        },
        Frame::Array { mode: ContainerState::AfterOpen, .. } => b" \n\r\t\"[]{-0123456789tfn",
        Frame::Array { .. } => b" \n\r\t,]",
        Frame::String { escape: CharState::NONE, .. } => return None,
        Frame::Name { escape: CharState::NONE, candidates, .. } => {
            return (candidates.classes == NO_QUERIES)
                .then(|| known_name_bytes(values, frame))
                .flatten();
        }
        Frame::String { .. } | Frame::Name { .. } => b"\"\\/bfnrtu0123456789abcdefABCDEF",
    };
    let bytes = if whitespace || bytes.first() != Some(&b' ') { bytes } else { &bytes[4..] };
    let mut set = ByteSet::default();
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
