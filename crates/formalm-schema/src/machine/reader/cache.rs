//! What was found out once and is looked up afterwards: parts of frames, and what reading does to
//! them. All of it is the same at every depth of a text, so new states cost a few look-ups each.

use std::sync::Arc;

use formalm_automata::{ByteSet, StateId};

use crate::core::TextId;
use crate::formula::F;
use crate::machine::frame::{
    FrameId, NameOrderId, NextNamesId, NumberPrefix, NumberPrefixId, ObligationId, Owes, QueriesId,
    UsedNamesId,
};
use crate::machine::frame::{Position, VerdictsId};
use crate::machine::numbers::NumberPlan;
use crate::machine::numbers::interval_sets::NumberResidual;
use crate::machine::reader::enum_verdicts::{EnumIndex, QueriedStrings, VerdictSource};
use crate::names::NameId;
use crate::node::Type;
use crate::table::{Map, Table};

/// A machine of texts and its state; `None` if it refused.
pub(crate) type QueryState = Option<(TextId, StateId)>;

/// Interned parts of frames.
#[derive(Debug)]
pub(crate) struct FrameParts {
    pub(crate) obligations: Table<Owes>,
    pub(crate) used_names: Table<Box<[NameId]>>,
    pub(crate) orders: Table<Vec<NameId>>,
    pub(crate) verdicts: Table<Box<[bool]>>,
    pub(crate) queries: Table<QueriedStrings>,
    pub(crate) enum_indexes: Vec<EnumIndex>,
    pub(crate) digits: Table<NumberPrefix>,
}

impl Default for FrameParts {
    fn default() -> FrameParts {
        let mut parts = FrameParts {
            obligations: Table::default(),
            used_names: Table::default(),
            orders: Table::default(),
            verdicts: Table::default(),
            queries: Table::default(),
            enum_indexes: Vec::new(),
            digits: Table::default(),
        };
        parts.used_names.intern([].into());
        parts.orders.intern(Vec::new());
        parts.verdicts.intern([].into());
        parts.queries.intern(QueriedStrings::default());
        parts
    }
}

/// No name is gone.
pub(crate) const NO_USED_NAMES: UsedNamesId = UsedNamesId(0);
/// Members come in any order.
pub(crate) const ANY_ORDER: NameOrderId = NameOrderId(0);
/// Nothing is asked.
pub(crate) const NO_VERDICTS: VerdictsId = VerdictsId(0);
/// Nothing is asked of a text.
pub(crate) const NO_QUERIES: QueriesId = QueriesId(0);

impl FrameParts {
    pub(crate) fn obligation(&mut self, obligation: Owes) -> ObligationId {
        ObligationId(self.obligations.intern(obligation))
    }

    pub(crate) fn verdicts(&mut self, verdicts: &[bool]) -> VerdictsId {
        if verdicts.is_empty() {
            NO_VERDICTS
        } else {
            VerdictsId(self.verdicts.intern(verdicts.into()))
        }
    }

    pub(crate) fn digits(&mut self, digits: NumberPrefix) -> NumberPrefixId {
        NumberPrefixId(self.digits.intern(digits))
    }

    /// Interns machines of which each is a truth.
    pub(crate) fn machines(&mut self, machines: Box<[QueryState]>) -> QueriesId {
        QueriesId(self.queries.intern(QueriedStrings { machines, ..QueriedStrings::default() }))
    }

    /// Interns machines of which the first guards the others.
    pub(crate) fn guarded_machines(&mut self, machines: Box<[QueryState]>) -> QueriesId {
        let has_guard = true;
        QueriesId(self.queries.intern(QueriedStrings {
            machines,
            has_guard,
            ..QueriedStrings::default()
        }))
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let told =
            self.enum_indexes.iter().flat_map(|one| one.verdicts()).map(|verdict| match verdict {
                VerdictSource::Machine(_) => 16,
                VerdictSource::Number(verdicts) => verdicts.len(),
            });
        let required =
            self.obligations.iter().map(|one| 4 * (one.formulas.len() + one.asked.len()) + 32);
        let used_names = self.used_names.iter().map(|one| 4 * one.len() + 16);
        let orders = self.orders.iter().map(|one| 4 * one.len() + 16);
        let queries = self.queries.iter().map(|one| 12 * one.machines.len() + 16);
        let digits = self.digits.iter().map(|one| one.digits.bits() as usize / 8 + 24);
        told.chain(required)
            .chain(used_names)
            .chain(orders)
            .chain(queries)
            .chain(digits)
            .sum::<usize>()
            + self.obligations.memory_bytes()
            + self.used_names.memory_bytes()
            + self.orders.memory_bytes()
            + self.queries.memory_bytes()
            + self.digits.memory_bytes()
            + self.verdicts.memory_bytes()
            + self.verdicts.len() * 24
    }
}

/// What a value becomes with its first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenedValue {
    Literal(VerdictsId),
    String(TextId, QueriesId),
    Number(ObligationId),
    Array(ObligationId),
    Object(ObligationId, NameOrderId),
}

/// Answers, by interned parts.
#[derive(Debug, Default)]
pub(crate) struct TransitionCache {
    /// By what a value owes and its first byte; all numbers are under `0`.
    pub(crate) opened_values: Map<(ObligationId, u8), Option<OpenedValue>>,
    /// What an object owes after a name, and what the member does.
    pub(crate) properties: Map<(ObligationId, UsedNamesId), Option<(ObligationId, ObligationId)>>,
    /// What an array owes once an item has begun, and what the item does.
    pub(crate) items: Map<ObligationId, Option<(ObligationId, ObligationId)>>,
    pub(crate) after_name: Map<(ObligationId, NameId), ObligationId>,
    pub(crate) used_names_after: Map<(UsedNamesId, NameOrderId, NameId), UsedNamesId>,
    /// What a container owes once a child without a value of its own has closed.
    pub(crate) after_plain_child: Map<(ObligationId, VerdictsId), ObligationId>,
    /// Whether some items complete an array behind an item that was not recorded.
    pub(crate) completable: Map<ObligationId, bool>,
    pub(crate) end_verdicts: Map<ObligationId, Option<VerdictsId>>,
    /// Bytes that a value has at least; none where a deadline cut the search short.
    pub(crate) min_value_bytes: Map<F, Option<usize>>,
    pub(crate) has_unique_items: Map<ObligationId, bool>,
    /// A number after a byte; `None` before its first one.
    pub(crate) digits: Map<(ObligationId, Option<NumberPrefixId>, u8), Option<NumberPrefixId>>,
    pub(crate) number_ends: Map<(ObligationId, NumberPrefixId), Option<VerdictsId>>,
    pub(crate) numbers: Map<ObligationId, Arc<NumberPlan>>,
    /// Numbers that stand for all that go on alike.
    pub(crate) representatives: Map<(ObligationId, bool, NumberResidual), NumberPrefix>,
    pub(crate) next_names: Map<(ObligationId, UsedNamesId, NameOrderId), NextNamesId>,
    /// Whether members of a class of names may come next in an object.
    pub(crate) classes: Map<(NextNamesId, TextId), bool>,
    /// Where an array does not run out of items of a type, or of any: what it owes at its first.
    pub(crate) plenty_items: Map<(ObligationId, Option<Type>), Option<ObligationId>>,
    /// What members of a name satisfy, by the formula that speaks of members.
    pub(crate) property_values: Map<(F, NameId), F>,
    /// Frames without the items that came before.
    pub(crate) without_earlier_items: Map<FrameId, FrameId>,
    /// The types of values of which nothing else is asked.
    pub(crate) value_types: Map<ObligationId, Option<u8>>,
    /// An array of which nothing is asked, around values that are read by themselves.
    pub(crate) isolation_array: Option<FrameId>,
    /// What completes a text behind a value, by what is around it.
    pub(crate) closings: Map<FrameId, Box<[u8]>>,
    /// Bytes that go on alike from a place.
    pub(crate) byte_classes: Map<Position, Arc<[ByteSet]>>,
}

impl TransitionCache {
    pub(crate) fn bytes(&self) -> usize {
        let heap = 300 * self.numbers.len()
            + 48 * self.representatives.len()
            + 100 * self.byte_classes.len();
        let heap = heap + self.closings.memory_bytes() + 100 * self.closings.len();
        heap + self.opened_values.memory_bytes()
            + self.properties.memory_bytes()
            + self.items.memory_bytes()
            + self.after_name.memory_bytes()
            + self.used_names_after.memory_bytes()
            + self.after_plain_child.memory_bytes()
            + self.completable.memory_bytes()
            + self.end_verdicts.memory_bytes()
            + self.min_value_bytes.memory_bytes()
            + self.has_unique_items.memory_bytes()
            + self.digits.memory_bytes()
            + self.number_ends.memory_bytes()
            + self.numbers.memory_bytes()
            + self.representatives.memory_bytes()
            + self.next_names.memory_bytes()
            + self.classes.memory_bytes()
            + self.plenty_items.memory_bytes()
            + self.property_values.memory_bytes()
            + self.value_types.memory_bytes()
            + self.without_earlier_items.memory_bytes()
            + self.byte_classes.memory_bytes()
    }
}
