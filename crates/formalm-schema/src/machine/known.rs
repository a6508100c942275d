//! What was found out once and is looked up afterwards: parts of frames, and what reading does to
//! them. All of it is the same at every depth of a text, so new states cost a few look-ups each.

use std::sync::Arc;

use formalm_automata::{ByteSet, StateId};
use rustc_hash::FxHashMap;

use super::bounds::Shape;
use super::frame::{
    AskedId, Digits, DigitsId, FrameId, GoneId, NamingId, OrderId, Owes, OwesId, Table,
};
use super::frame::{Place, TruthsId};
use super::numbers::Plan;
use super::telling::{AskedTexts, Telling, Told};
use crate::core::TextId;
use crate::formula::F;
use crate::names::NameId;
use crate::node::Type;

/// A machine of texts and its state; `None` if it refused.
pub(super) type Asked = Option<(TextId, StateId)>;

/// Interned parts of frames.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) owes: Table<Owes>,
    pub(super) gone: Table<Box<[NameId]>>,
    pub(super) orders: Table<Vec<NameId>>,
    pub(super) truths: Table<Box<[bool]>>,
    pub(super) asked: Table<AskedTexts>,
    pub(super) tellings: Vec<Telling>,
    pub(super) digits: Table<Digits>,
}

impl Default for Parts {
    fn default() -> Parts {
        let mut parts = Parts {
            owes: Table::default(),
            gone: Table::default(),
            orders: Table::default(),
            truths: Table::default(),
            asked: Table::default(),
            tellings: Vec::new(),
            digits: Table::default(),
        };
        parts.gone.intern([].into());
        parts.orders.intern(Vec::new());
        parts.truths.intern([].into());
        parts.asked.intern(AskedTexts::default());
        parts
    }
}

/// No name is gone.
pub(super) const NONE_GONE: GoneId = GoneId(0);
/// Members come in any order.
pub(super) const ANY_ORDER: OrderId = OrderId(0);
/// Nothing is asked.
pub(super) const NO_TRUTHS: TruthsId = TruthsId(0);
/// Nothing is asked of a text.
pub(super) const NOT_ASKED: AskedId = AskedId(0);

impl Parts {
    pub(super) fn owes(&mut self, owes: Owes) -> OwesId {
        OwesId(self.owes.intern(owes))
    }

    pub(super) fn truths(&mut self, truths: &[bool]) -> TruthsId {
        if truths.is_empty() { NO_TRUTHS } else { TruthsId(self.truths.intern(truths.into())) }
    }

    pub(super) fn digits(&mut self, digits: Digits) -> DigitsId {
        DigitsId(self.digits.intern(digits))
    }

    /// Interns machines of which each is a truth.
    pub(super) fn machines(&mut self, machines: Box<[Asked]>) -> AskedId {
        AskedId(self.asked.intern(AskedTexts { telling: None, machines }))
    }

    pub(super) fn bytes(&self) -> usize {
        let told = self.tellings.iter().flat_map(|one| one.truths()).map(|truth| match truth {
            Told::Machine(_) => 16,
            Told::Number(truths) => truths.len(),
        });
        told.sum::<usize>()
            + self.owes.len() * 160
            + self.gone.len() * 120
            + (self.asked.len() + self.digits.len()) * 150
            + self.orders.len() * 200
            + self.truths.len() * 40
    }
}

/// What a value becomes with its first byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum Opened {
    Word(TruthsId),
    Text(TextId, AskedId),
    Number(OwesId),
    Array(OwesId),
    Object(OwesId, OrderId),
}

/// Answers, by interned parts.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By what a value owes and its first byte; all numbers are under `0`.
    pub(super) opened: FxHashMap<(OwesId, u8), Option<Opened>>,
    /// What an object owes after a name, and what the member does.
    pub(super) members: FxHashMap<(OwesId, GoneId), Option<(OwesId, OwesId)>>,
    /// What an array owes once an item has begun, and what the item does.
    pub(super) items: FxHashMap<OwesId, Option<(OwesId, OwesId)>>,
    pub(super) after_name: FxHashMap<(OwesId, NameId), OwesId>,
    pub(super) gone_after: FxHashMap<(GoneId, OrderId, NameId), GoneId>,
    /// What a container owes once a child without a value of its own has closed.
    pub(super) closed: FxHashMap<(OwesId, TruthsId), OwesId>,
    pub(super) ended: FxHashMap<OwesId, Option<TruthsId>>,
    /// Bytes that a value has at least.
    pub(super) least: FxHashMap<F, usize>,
    pub(super) unique: FxHashMap<OwesId, bool>,
    /// A number after a byte; `None` before its first one.
    pub(super) digits: FxHashMap<(OwesId, Option<DigitsId>, u8), Option<DigitsId>>,
    pub(super) number_ends: FxHashMap<(OwesId, DigitsId), Option<TruthsId>>,
    pub(super) numbers: FxHashMap<OwesId, Arc<Plan>>,
    /// Numbers that stand for all that go on alike.
    pub(super) alike: FxHashMap<(OwesId, bool, Shape), Digits>,
    pub(super) namings: FxHashMap<(OwesId, GoneId, OrderId), NamingId>,
    /// Whether members of a class of names may come next in an object.
    pub(super) classes: FxHashMap<(NamingId, TextId), bool>,
    /// Where an array does not run out of items of a type, or of any: what it owes at its first.
    pub(super) forgets: FxHashMap<(OwesId, Option<Type>), Option<OwesId>>,
    /// What members of a name satisfy, by the formula that speaks of members.
    pub(super) values: FxHashMap<(F, NameId), F>,
    /// Frames without the items that came before.
    pub(super) without_items: FxHashMap<FrameId, FrameId>,
    /// The types of values of which nothing else is asked.
    pub(super) common: FxHashMap<OwesId, Option<u8>>,
    /// An array of which nothing is asked, around values that are read by themselves.
    pub(super) around: Option<FrameId>,
    /// Bytes that go on alike from a place.
    pub(super) ways: FxHashMap<Place, Arc<[ByteSet]>>,
}

impl Known {
    pub(super) fn bytes(&self) -> usize {
        let small = self.opened.len()
            + self.members.len()
            + self.items.len()
            + self.after_name.len()
            + self.gone_after.len()
            + self.closed.len()
            + self.ended.len()
            + self.unique.len()
            + self.digits.len()
            + self.number_ends.len()
            + self.namings.len()
            + 4 * (self.numbers.len() + self.alike.len())
            + self.classes.len()
            + self.forgets.len()
            + self.common.len()
            + self.without_items.len()
            + self.values.len()
            + 12 * self.ways.len();
        small * 32
    }
}
