//! The states of the reader: a linked list of frames, one for each open JSON value.

use formalm_core::{StateId, memory_bytes};
use num_bigint::BigInt;

use crate::formula::FormulaId;
use crate::machine::RecordId;
use crate::schema_nodes::NodeId;
use crate::solver::context::LanguageId;

/// An interned frame, including its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(pub(crate) u32);

memory_bytes!(none: FrameId);

/// The frame after the whole input.
pub(crate) const DONE: FrameId = FrameId(0);

/// An interned `Obligation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObligationId(pub(crate) u32);

memory_bytes!(none: ObligationId);

/// Interned property names that can no longer be used, sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UsedNamesId(pub(crate) u32);

/// The declared order of an object's property names; `0` is any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameOrderId(pub(crate) u32);

/// The interned verdicts that a value reports to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct VerdictsId(pub(crate) u32);

/// The interned string automata that answer queries, with their states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueriesId(pub(crate) u32);

/// An interned [`NumberPrefix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberPrefixId(pub(crate) u32);

/// The tables about the names that may come next in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NextNamesId(pub(crate) u32);

/// The outstanding obligation of a value.
///
/// `formulas[0]` must hold. The others are queries of the parent, one for each node of `queries`.
/// `goal` is a formula over these verdicts: it holds of the combinations with which the input can
/// still be completed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Obligation {
    pub(crate) formulas: Box<[FormulaId]>,
    pub(crate) queries: Box<[NodeId]>,
    pub(crate) goal: FormulaId,
}

/// What a spelling remembers in a frame between two events: whitespace, a column, a bracket.
pub(crate) type Mark = u16;

/// The mark of a frame right after an event.
pub(crate) const FRESH: Mark = 0;

/// What a spelling remembers inside the spelling of one character. Only the spelling knows the
/// meaning of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CharState(pub(crate) [u16; 4]);

impl CharState {
    /// Between two characters, or inside one that is spelled by its UTF-8 bytes.
    pub(crate) const NONE: CharState = CharState([0; 4]);
}

/// The place between the parts of an object or array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ContainerState {
    /// Before the first part.
    AfterOpen,
    /// Another property has begun, but not its name.
    AfterComma,
    /// After a name, before its value.
    AfterName,
    /// Inside a value.
    InValue,
    /// After a value.
    AfterValue,
}

/// The prefix of a number, as far as its formulas can distinguish prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberPrefix {
    pub(crate) negative: bool,
    pub(crate) part: NumberPart,
    /// The digits without the decimal point.
    pub(crate) digits: BigInt,
    /// Number of digits after the decimal point.
    pub(crate) places: u32,
    /// The sticky bit: some dropped digit is not zero.
    pub(crate) sticky: bool,
    /// The magnitude of the exponent, saturated where no formula distinguishes larger ones.
    pub(crate) exponent: u32,
    pub(crate) negative_exponent: bool,
}

/// The part of a number that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NumberPart {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    /// After the `e`. Allowed in unconstrained numbers, and in all if an option says so.
    ExponentMark,
    ExponentSign,
    ExponentDigits,
}

/// The names that an input may still become: a range of the known names, and classes of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameCandidates {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) classes: QueriesId,
}

/// One open value. Frames are small and copied; everything larger is interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Done,
    /// Before a value.
    Value {
        obligation: ObligationId,
        mark: Mark,
        parent: FrameId,
    },
    Object {
        obligation: ObligationId,
        used_names: UsedNamesId,
        order: NameOrderId,
        mode: ContainerState,
        mark: Mark,
        parent: FrameId,
    },
    /// Inside a property name; `object` is the frame of its object. Without a recorded `text` the
    /// name starts like no known one.
    Name {
        object: FrameId,
        next_names: NextNamesId,
        text: RecordId,
        candidates: NameCandidates,
        escape: CharState,
    },
    /// `from` is the offset in the recorded input at which the current item starts.
    Array {
        obligation: ObligationId,
        mode: ContainerState,
        mark: Mark,
        from: u32,
        parent: FrameId,
    },
    /// A string, read by one automaton for what must hold and by one for each query.
    String {
        language: LanguageId,
        state: StateId,
        queries: QueriesId,
        escape: CharState,
        parent: FrameId,
    },
    Number {
        obligation: ObligationId,
        digits: NumberPrefixId,
        parent: FrameId,
    },
    /// `true`, `false` or `null`, with the rest of its spelling.
    Literal {
        rest: &'static [u8],
        verdicts: VerdictsId,
        parent: FrameId,
    },
}

memory_bytes!(none: Frame);

impl Frame {
    /// Returns `true` for an object or array without parts, unless it was one already in `before`.
    pub(crate) fn is_opened_after(&self, before: &Frame) -> bool {
        let is_fresh = |frame: &Frame| match frame {
            Frame::Object { mode, .. } | Frame::Array { mode, .. } => {
                *mode == ContainerState::AfterOpen
            }
            _ => false,
        };
        is_fresh(self) && !(is_fresh(before) && self.parent() == before.parent())
    }

    /// Returns the enclosing frame.
    pub(crate) fn parent(&self) -> Option<FrameId> {
        match *self {
            Frame::Done => None,
            Frame::Name { object, .. } => Some(object),
            Frame::Value { parent, .. }
            | Frame::Object { parent, .. }
            | Frame::Array { parent, .. }
            | Frame::String { parent, .. }
            | Frame::Number { parent, .. }
            | Frame::Literal { parent, .. } => Some(parent),
        }
    }
}

/// A state of the reader: the open frames, and the record of an item that must be distinct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReaderPosition {
    pub(crate) frame: Frame,
    pub(crate) record: RecordId,
}

impl ReaderPosition {
    /// Returns the position with another mark in its frame, if that has one.
    #[inline]
    pub(crate) fn with_mark(self, new: Mark) -> ReaderPosition {
        let ReaderPosition { mut frame, record } = self;
        if let Frame::Value { mark, .. } | Frame::Object { mark, .. } | Frame::Array { mark, .. } =
            &mut frame
        {
            *mark = new;
        }
        ReaderPosition { frame, record }
    }
}
