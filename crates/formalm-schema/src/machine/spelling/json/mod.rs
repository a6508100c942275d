//! JSON, the only spelling that is shipped.
//!
//! ```text
//! before a value ──first byte──► string │ number │ literal │ object │ array
//! object ──"──► property name ──"──► : ──► value ──► , or }
//! ```
//!
//! * `read.rs`: bytes to events; brackets, quotes, commas and colons.
//! * [`possible_bytes`]: the bytes that may come next, by the frame alone.
//! * [`whitespace`]: the gaps between these. A frame's mark is the number of bytes read of a gap.
//! * `lengths.rs`: bytes of escapes, punctuation and layouts.
//! * `search_hints.rs`: bytes that a shortest completion may need.
//! * [`mask_class`]: what a token sees of a state, and the look-ahead that computes masks.
//! * `typical_instances.rs`: texts such as models write, for masks ahead of requests.
//! * [`abstract_state`], [`repetition_check`]: repeated names and items in a JSON text.

pub(crate) mod abstract_state;
mod lengths;
pub(crate) mod mask_class;
pub(crate) mod possible_bytes;
mod read;
pub(crate) mod repetition_check;
mod search_hints;
mod typical_instances;
pub(crate) mod whitespace;

use formalm_json::escapes::{EscapePolicy, EscapeState};

use crate::machine::frame::CharState;
use crate::machine::spelling::json::whitespace::GapRules;

/// JSON with the whitespace and the escapes that the options allow.
#[derive(Debug)]
pub struct Json {
    gaps: GapRules,
    escapes: EscapePolicy,
}

impl CharState {
    /// Returns the state inside an escape.
    fn of_escape(escape: EscapeState) -> CharState {
        CharState(match escape {
            EscapeState::None => return CharState::NONE,
            EscapeState::Backslash { high: None } => [1, 0, 0, 0],
            EscapeState::Backslash { high: Some(high) } => [2, high, 0, 0],
            EscapeState::Hex { high: None, value, digits } => [3, 0, value, digits.into()],
            EscapeState::Hex { high: Some(high), value, digits } => [4, high, value, digits.into()],
            EscapeState::HighSurrogate { high } => [5, high, 0, 0],
        })
    }

    /// Returns the escape that a state is inside of.
    #[inline]
    fn escape(self) -> EscapeState {
        let CharState([part, high, value, digits]) = self;
        let digits = digits as u8;
        match part {
            0 => EscapeState::None,
            1 => EscapeState::Backslash { high: None },
            2 => EscapeState::Backslash { high: Some(high) },
            3 => EscapeState::Hex { high: None, value, digits },
            4 => EscapeState::Hex { high: Some(high), value, digits },
            _ => EscapeState::HighSurrogate { high },
        }
    }
}
