//! What a reader of JSON remembers: one frame for each value that is open.

use std::collections::HashMap;

use formalm_automata::StateId;
use num_bigint::BigInt;
use rustc_hash::FxBuildHasher;

use crate::core::TextId;
use crate::formula::F;
use crate::names::NameId;
use crate::node::NodeId;

/// An interned frame with all frames below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(pub(crate) u32);

/// The frame after the whole text.
pub(crate) const DONE: FrameId = FrameId(0);

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

/// What is left of a character's spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Escape {
    #[default]
    None,
    /// After a backslash; `high` is the first half of a pair.
    Slash { high: Option<u16> },
    /// After so many hexadecimal digits.
    Hex { high: Option<u16>, value: u16, digits: u8 },
    /// After the first half of a pair.
    Half { high: u16 },
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
}

/// The part of a number's text that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    /// Only in numbers of which nothing is asked.
    Exponent,
    Sign,
    Power,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Done,
    /// Before a value.
    Value {
        owes: Owes,
        blanks: u8,
        below: FrameId,
    },
    Object {
        owes: Owes,
        gone: Box<[NameId]>,
        order: u32,
        mode: Mode,
        blanks: u8,
        below: FrameId,
    },
    /// Inside a name; `object` is the frame of its object.
    Name {
        object: FrameId,
        text: Box<[u8]>,
        escape: Escape,
    },
    /// `from`: where in the recorded text the present item starts.
    Array {
        owes: Owes,
        mode: Mode,
        blanks: u8,
        from: u32,
        below: FrameId,
    },
    /// Texts are read by a machine for what must hold and by one for each truth that is asked.
    Text {
        language: TextId,
        state: StateId,
        asked: Box<[Option<(TextId, StateId)>]>,
        escape: Escape,
        below: FrameId,
    },
    Number {
        owes: Owes,
        digits: Digits,
        below: FrameId,
    },
    /// `true`, `false` or `null`.
    Word {
        rest: &'static [u8],
        truths: Box<[bool]>,
        below: FrameId,
    },
}

/// A table of distinct entries.
#[derive(Debug)]
pub(crate) struct Table<T> {
    list: Vec<T>,
    ids: HashMap<T, u32, FxBuildHasher>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { list: Vec::new(), ids: HashMap::default() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    pub(crate) fn intern(&mut self, entry: T) -> u32 {
        if let Some(&id) = self.ids.get(&entry) {
            return id;
        }
        let id = self.list.len() as u32;
        self.list.push(entry.clone());
        self.ids.insert(entry, id);
        id
    }

    /// Drops all entries from a number on.
    pub(crate) fn truncate(&mut self, length: usize) {
        for entry in self.list.drain(length..) {
            self.ids.remove(&entry);
        }
    }

    pub(crate) fn get(&self, id: u32) -> &T {
        &self.list[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}
