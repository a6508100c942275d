//! What a reader of JSON remembers: one frame for each value that is open.

use formalm_automata::StateId;
use formalm_automata::spelling::Escape;
use num_bigint::BigInt;

use crate::core::TextId;
use crate::formula::F;
use crate::machine::Recorded;
use crate::node::NodeId;

/// An interned frame with all frames below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(pub(crate) u32);

/// The frame after the whole text.
pub(crate) const DONE: FrameId = FrameId(0);

/// An interned [`Owes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwesId(pub(crate) u32);

/// Interned names that cannot come any more, sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GoneId(pub(crate) u32);

/// Names in the order in which an object has them; `0` is any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OrderId(pub(crate) u32);

/// Interned truths that a value's frame below asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TruthsId(pub(crate) u32);

/// Interned machines of texts for the truths that are asked, with their states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AskedId(pub(crate) u32);

/// An interned [`Digits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DigitsId(pub(crate) u32);

/// What is known of the names that may come next in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NamingId(pub(crate) u32);

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
pub(crate) enum Mode {
    /// After the opening bracket.
    First,
    /// After a comma.
    Next,
    /// After a name, before its colon.
    Colon,
    /// A value is being read.
    Inside,
    /// After a value.
    After,
}

/// A number that is being read, up to what its formula can tell apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digits {
    pub(crate) negative: bool,
    pub(crate) part: Part,
    /// The digits without the point.
    pub(crate) digits: BigInt,
    /// Digits after the point.
    pub(crate) places: u32,
    /// Some digit beyond those kept is not zero.
    pub(crate) more: bool,
    /// The exponent, as far as it can be told apart, and whether it is negative.
    pub(crate) power: u32,
    pub(crate) divides: bool,
}

/// The part of a number's text that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    /// After the `e`: in numbers of which nothing is asked, and by option.
    Exponent,
    Sign,
    Power,
}

/// Which names a text may still become: those of the known ones from a number up to another, and
/// others by classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) classes: AskedId,
}

/// One value that is open. Frames are small and copied: everything larger is interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Done,
    /// Before a value.
    Value {
        owes: OwesId,
        blanks: u16,
        below: FrameId,
    },
    Object {
        owes: OwesId,
        gone: GoneId,
        order: OrderId,
        mode: Mode,
        blanks: u16,
        below: FrameId,
    },
    /// Inside a name; `object` is the frame of its object. No text is any
    /// text that begins no known name.
    Name {
        object: FrameId,
        naming: NamingId,
        text: Recorded,
        reach: Reach,
        escape: Escape,
    },
    /// `from`: where in the recorded text the present item starts.
    Array {
        owes: OwesId,
        mode: Mode,
        blanks: u16,
        from: u32,
        below: FrameId,
    },
    /// Texts are read by a machine for what must hold and by one for each truth that is asked.
    Text {
        language: TextId,
        state: StateId,
        asked: AskedId,
        escape: Escape,
        below: FrameId,
    },
    Number {
        owes: OwesId,
        digits: DigitsId,
        below: FrameId,
    },
    /// `true`, `false` or `null`.
    Word {
        rest: &'static [u8],
        truths: TruthsId,
        below: FrameId,
    },
}

impl Frame {
    /// The frame that a frame stands on.
    pub(crate) fn below(&self) -> Option<FrameId> {
        match *self {
            Frame::Done => None,
            Frame::Name { object, .. } => Some(object),
            Frame::Value { below, .. }
            | Frame::Object { below, .. }
            | Frame::Array { below, .. }
            | Frame::Text { below, .. }
            | Frame::Number { below, .. }
            | Frame::Word { below, .. } => Some(below),
        }
    }
}

/// Where a text is: the frames that are open, and what was recorded of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) frame: Frame,
    pub(crate) record: Recorded,
}
