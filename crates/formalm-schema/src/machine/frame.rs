//! What a reader of JSON remembers: one frame for each value that is open.

use formalm_automata::StateId;
use formalm_automata::spelling::Escape;
use num_bigint::BigInt;

use crate::core::TextId;
use crate::formula::F;
use crate::machine::RecordId;
use crate::node::NodeId;

/// An interned frame with all frames below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(pub(crate) u32);

/// The frame after the whole text.
pub(crate) const DONE: FrameId = FrameId(0);

/// An interned [`Owes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObligationId(pub(crate) u32);

/// Interned names that cannot come any more, sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UsedNamesId(pub(crate) u32);

/// Names in the order in which an object has them; `0` is any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameOrderId(pub(crate) u32);

/// Interned truths that a value's frame below asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct VerdictsId(pub(crate) u32);

/// Interned machines of texts for the truths that are asked, with their states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueriesId(pub(crate) u32);

/// An interned [`Digits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberPrefixId(pub(crate) u32);

/// What is known of the names that may come next in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NextNamesId(pub(crate) u32);

/// What a value owes. The first formula must hold; the truths of the others are asked by the
/// frame below, one for each node of `asked`, and `goal` says with which of them the text can
/// still be completed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owes {
    pub(crate) formulas: Box<[F]>,
    pub(crate) asked: Box<[NodeId]>,
    pub(crate) goal: F,
}

/// Where between the parts of an object or array the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ContainerState {
    /// After the opening bracket.
    AfterOpen,
    /// After a comma.
    AfterComma,
    /// After a name, before its colon.
    AfterName,
    /// A value is being read.
    InValue,
    /// After a value.
    AfterValue,
}

/// A number that is being read, up to what its formula can tell apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberPrefix {
    pub(crate) negative: bool,
    pub(crate) part: NumberPart,
    /// The digits without the point.
    pub(crate) digits: BigInt,
    /// Digits after the point.
    pub(crate) places: u32,
    /// Some digit beyond those kept is not zero.
    pub(crate) sticky: bool,
    /// The exponent, as far as it can be told apart, and whether it is negative.
    pub(crate) exponent: u32,
    pub(crate) negative_exponent: bool,
}

/// The part of a number's text that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NumberPart {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    /// After the `e`: in numbers of which nothing is asked, and by option.
    ExponentMark,
    ExponentSign,
    ExponentDigits,
}

/// Which names a text may still become: those of the known ones from a number up to another, and
/// others by classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameCandidates {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) classes: QueriesId,
}

/// One value that is open. Frames are small and copied: everything larger is interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Done,
    /// Before a value.
    Value {
        obligation: ObligationId,
        whitespace: u16,
        parent: FrameId,
    },
    Object {
        obligation: ObligationId,
        used_names: UsedNamesId,
        order: NameOrderId,
        mode: ContainerState,
        whitespace: u16,
        parent: FrameId,
    },
    /// Inside a name; `object` is the frame of its object. No text is any
    /// text that begins no known name.
    Name {
        object: FrameId,
        next_names: NextNamesId,
        text: RecordId,
        candidates: NameCandidates,
        escape: Escape,
    },
    /// `from`: where in the recorded text the present item starts.
    Array {
        obligation: ObligationId,
        mode: ContainerState,
        whitespace: u16,
        from: u32,
        parent: FrameId,
    },
    /// Texts are read by a machine for what must hold and by one for each truth that is asked.
    String {
        language: TextId,
        state: StateId,
        queries: QueriesId,
        escape: Escape,
        parent: FrameId,
    },
    Number {
        obligation: ObligationId,
        digits: NumberPrefixId,
        parent: FrameId,
    },
    /// `true`, `false` or `null`.
    Literal {
        rest: &'static [u8],
        verdicts: VerdictsId,
        parent: FrameId,
    },
}

impl Frame {
    /// The frame that a frame stands on.
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

/// Where a text is: the frames that are open, and what was recorded of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    pub(crate) frame: Frame,
    pub(crate) record: RecordId,
}
