//! What was found out once and is looked up afterwards: parts of frames, and what reading does to
//! them. All of it is the same at every depth of a text, so new states cost a few look-ups each.

use std::sync::Arc;

use formalm_automata::{ByteSet, StateId};

use crate::core::TextId;
use crate::formula::F;
use crate::machine::frame::{
    AskedId, Digits, DigitsId, FrameId, GoneId, NamingId, OrderId, Owes, OwesId,
};
use crate::machine::frame::{Place, TruthsId};
use crate::machine::numbers::Plan;
use crate::machine::numbers::interval_sets::Shape;
use crate::machine::reader::enum_verdicts::{AskedTexts, Telling, Told};
use crate::names::NameId;
use crate::node::Type;
use crate::table::{Map, Table};

/// A machine of texts and its state; `None` if it refused.
pub(crate) type Asked = Option<(TextId, StateId)>;

/// Interned parts of frames.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) owes: Table<Owes>,
    pub(crate) gone: Table<Box<[NameId]>>,
    pub(crate) orders: Table<Vec<NameId>>,
    pub(crate) truths: Table<Box<[bool]>>,
    pub(crate) asked: Table<AskedTexts>,
    pub(crate) tellings: Vec<Telling>,
    pub(crate) digits: Table<Digits>,
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
pub(crate) const NONE_GONE: GoneId = GoneId(0);
/// Members come in any order.
pub(crate) const ANY_ORDER: OrderId = OrderId(0);
/// Nothing is asked.
pub(crate) const NO_TRUTHS: TruthsId = TruthsId(0);
/// Nothing is asked of a text.
pub(crate) const NOT_ASKED: AskedId = AskedId(0);

impl Parts {
    pub(crate) fn owes(&mut self, owes: Owes) -> OwesId {
        OwesId(self.owes.intern(owes))
    }

    pub(crate) fn truths(&mut self, truths: &[bool]) -> TruthsId {
        if truths.is_empty() { NO_TRUTHS } else { TruthsId(self.truths.intern(truths.into())) }
    }

    pub(crate) fn digits(&mut self, digits: Digits) -> DigitsId {
        DigitsId(self.digits.intern(digits))
    }

    /// Interns machines of which each is a truth.
    pub(crate) fn machines(&mut self, machines: Box<[Asked]>) -> AskedId {
        AskedId(self.asked.intern(AskedTexts { machines, ..AskedTexts::default() }))
    }

    /// Interns machines of which the first guards the others.
    pub(crate) fn guarded(&mut self, machines: Box<[Asked]>) -> AskedId {
        let is_guarded = true;
        AskedId(self.asked.intern(AskedTexts { machines, is_guarded, ..AskedTexts::default() }))
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
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
pub(crate) enum Opened {
    Word(TruthsId),
    Text(TextId, AskedId),
    Number(OwesId),
    Array(OwesId),
    Object(OwesId, OrderId),
}

/// Answers, by interned parts.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By what a value owes and its first byte; all numbers are under `0`.
    pub(crate) opened: Map<(OwesId, u8), Option<Opened>>,
    /// What an object owes after a name, and what the member does.
    pub(crate) members: Map<(OwesId, GoneId), Option<(OwesId, OwesId)>>,
    /// What an array owes once an item has begun, and what the item does.
    pub(crate) items: Map<OwesId, Option<(OwesId, OwesId)>>,
    pub(crate) after_name: Map<(OwesId, NameId), OwesId>,
    pub(crate) gone_after: Map<(GoneId, OrderId, NameId), GoneId>,
    /// What a container owes once a child without a value of its own has closed.
    pub(crate) closed: Map<(OwesId, TruthsId), OwesId>,
    /// Whether some items complete an array behind an item that was not recorded.
    pub(crate) go_on: Map<OwesId, bool>,
    pub(crate) ended: Map<OwesId, Option<TruthsId>>,
    /// Bytes that a value has at least; none where a deadline cut the search short.
    pub(crate) least: Map<F, Option<usize>>,
    pub(crate) unique: Map<OwesId, bool>,
    /// A number after a byte; `None` before its first one.
    pub(crate) digits: Map<(OwesId, Option<DigitsId>, u8), Option<DigitsId>>,
    pub(crate) number_ends: Map<(OwesId, DigitsId), Option<TruthsId>>,
    pub(crate) numbers: Map<OwesId, Arc<Plan>>,
    /// Numbers that stand for all that go on alike.
    pub(crate) alike: Map<(OwesId, bool, Shape), Digits>,
    pub(crate) namings: Map<(OwesId, GoneId, OrderId), NamingId>,
    /// Whether members of a class of names may come next in an object.
    pub(crate) classes: Map<(NamingId, TextId), bool>,
    /// Where an array does not run out of items of a type, or of any: what it owes at its first.
    pub(crate) forgets: Map<(OwesId, Option<Type>), Option<OwesId>>,
    /// What members of a name satisfy, by the formula that speaks of members.
    pub(crate) values: Map<(F, NameId), F>,
    /// Frames without the items that came before.
    pub(crate) without_items: Map<FrameId, FrameId>,
    /// The types of values of which nothing else is asked.
    pub(crate) common: Map<OwesId, Option<u8>>,
    /// An array of which nothing is asked, around values that are read by themselves.
    pub(crate) around: Option<FrameId>,
    /// What completes a text behind a value, by what is around it.
    pub(crate) behind: Map<FrameId, Box<[u8]>>,
    /// Bytes that go on alike from a place.
    pub(crate) ways: Map<Place, Arc<[ByteSet]>>,
}

impl Known {
    pub(crate) fn bytes(&self) -> usize {
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
