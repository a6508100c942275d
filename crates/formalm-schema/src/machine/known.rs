//! What was found out once and is looked up afterwards: parts of frames, and what reading does to
//! them. All of it is the same at every depth of a text, so new states cost a few look-ups each.

use std::sync::Arc;

use formalm_automata::{ByteSet, StateId};

use super::bounds::Shape;
use super::frame::{AskedId, Digits, DigitsId, FrameId, GoneId, NamingId, OrderId, Owes, OwesId};
use super::frame::{Place, TruthsId};
use super::numbers::Plan;
use super::telling::{AskedTexts, Telling, Told};
use crate::core::TextId;
use crate::formula::F;
use crate::names::NameId;
use crate::node::Type;
use crate::table::{Map, Table};

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
        AskedId(self.asked.intern(AskedTexts { machines, ..AskedTexts::default() }))
    }

    /// Interns machines of which the first guards the others.
    pub(super) fn guarded(&mut self, machines: Box<[Asked]>) -> AskedId {
        let is_guarded = true;
        AskedId(self.asked.intern(AskedTexts { machines, is_guarded, ..AskedTexts::default() }))
    }

    /// Memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let told = self.tellings.iter().flat_map(|one| one.truths()).map(|truth| match truth {
            Told::Machine(_) => 16,
            Told::Number(truths) => truths.len(),
        });
        let owed = self.owes.iter().map(|one| 4 * (one.formulas.len() + one.asked.len()) + 32);
        let gone = self.gone.iter().map(|one| 4 * one.len() + 16);
        let orders = self.orders.iter().map(|one| 4 * one.len() + 16);
        let asked = self.asked.iter().map(|one| 12 * one.machines.len() + 16);
        let digits = self.digits.iter().map(|one| one.digits.bits() as usize / 8 + 24);
        told.chain(owed).chain(gone).chain(orders).chain(asked).chain(digits).sum::<usize>()
            + self.owes.memory_bytes()
            + self.gone.memory_bytes()
            + self.orders.memory_bytes()
            + self.asked.memory_bytes()
            + self.digits.memory_bytes()
            + self.truths.memory_bytes()
            + self.truths.len() * 24
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
    pub(super) opened: Map<(OwesId, u8), Option<Opened>>,
    /// What an object owes after a name, and what the member does.
    pub(super) members: Map<(OwesId, GoneId), Option<(OwesId, OwesId)>>,
    /// What an array owes once an item has begun, and what the item does.
    pub(super) items: Map<OwesId, Option<(OwesId, OwesId)>>,
    pub(super) after_name: Map<(OwesId, NameId), OwesId>,
    pub(super) gone_after: Map<(GoneId, OrderId, NameId), GoneId>,
    /// What a container owes once a child without a value of its own has closed.
    pub(super) closed: Map<(OwesId, TruthsId), OwesId>,
    /// Whether some items complete an array behind an item that was not recorded.
    pub(super) go_on: Map<OwesId, bool>,
    pub(super) ended: Map<OwesId, Option<TruthsId>>,
    /// Bytes that a value has at least; none where a deadline cut the search short.
    pub(super) least: Map<F, Option<usize>>,
    pub(super) unique: Map<OwesId, bool>,
    /// A number after a byte; `None` before its first one.
    pub(super) digits: Map<(OwesId, Option<DigitsId>, u8), Option<DigitsId>>,
    pub(super) number_ends: Map<(OwesId, DigitsId), Option<TruthsId>>,
    pub(super) numbers: Map<OwesId, Arc<Plan>>,
    /// Numbers that stand for all that go on alike.
    pub(super) alike: Map<(OwesId, bool, Shape), Digits>,
    pub(super) namings: Map<(OwesId, GoneId, OrderId), NamingId>,
    /// Whether members of a class of names may come next in an object.
    pub(super) classes: Map<(NamingId, TextId), bool>,
    /// Where an array does not run out of items of a type, or of any: what it owes at its first.
    pub(super) forgets: Map<(OwesId, Option<Type>), Option<OwesId>>,
    /// What members of a name satisfy, by the formula that speaks of members.
    pub(super) values: Map<(F, NameId), F>,
    /// Frames without the items that came before.
    pub(super) without_items: Map<FrameId, FrameId>,
    /// The types of values of which nothing else is asked.
    pub(super) common: Map<OwesId, Option<u8>>,
    /// An array of which nothing is asked, around values that are read by themselves.
    pub(super) around: Option<FrameId>,
    /// What completes a text behind a value, by what is around it.
    pub(super) behind: Map<FrameId, Box<[u8]>>,
    /// Bytes that go on alike from a place.
    pub(super) ways: Map<Place, Arc<[ByteSet]>>,
}

impl Known {
    pub(super) fn bytes(&self) -> usize {
        let heap = 300 * self.numbers.len() + 48 * self.alike.len() + 100 * self.ways.len();
        let heap = heap + self.behind.memory_bytes() + 100 * self.behind.len();
        heap + self.opened.memory_bytes()
            + self.members.memory_bytes()
            + self.items.memory_bytes()
            + self.after_name.memory_bytes()
            + self.gone_after.memory_bytes()
            + self.closed.memory_bytes()
            + self.go_on.memory_bytes()
            + self.ended.memory_bytes()
            + self.least.memory_bytes()
            + self.unique.memory_bytes()
            + self.digits.memory_bytes()
            + self.number_ends.memory_bytes()
            + self.numbers.memory_bytes()
            + self.alike.memory_bytes()
            + self.namings.memory_bytes()
            + self.classes.memory_bytes()
            + self.forgets.memory_bytes()
            + self.values.memory_bytes()
            + self.common.memory_bytes()
            + self.without_items.memory_bytes()
            + self.ways.memory_bytes()
    }
}
