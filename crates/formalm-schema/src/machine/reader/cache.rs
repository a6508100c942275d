//! Memo tables of the reader: interned parts of frames, and the transitions between them. All of
//! them are independent of the nesting depth, so a new state costs a few look-ups.

use std::sync::Arc;

use formalm_core::{ByteSet, StateId};

use crate::formula::FormulaId;
use crate::interner::{CompactMap, Interner};
use crate::json::property_names::NameId;
use crate::machine::frame::{
    FrameId, NameOrderId, NextNamesId, NumberPrefix, NumberPrefixId, Obligation, ObligationId,
    QueriesId, ReaderPosition, UsedNamesId, VerdictsId,
};
use crate::machine::numbers::NumberPlan;
use crate::machine::numbers::interval_sets::NumberResidual;
use crate::machine::reader::enum_verdicts::{EnumIndex, QueriedStrings, VerdictSource};
use crate::schema_nodes::JsonType;
use crate::solver::context::LanguageId;

/// The automaton of a string query and its state, `None` once it has rejected.
pub(crate) type QueryState = Option<(LanguageId, StateId)>;

/// The interned parts of frames.
#[derive(Debug)]
pub(crate) struct FrameParts {
    pub(crate) obligations: Interner<Obligation>,
    pub(crate) used_names: Interner<Box<[NameId]>>,
    pub(crate) orders: Interner<Vec<NameId>>,
    pub(crate) verdicts: Interner<Box<[bool]>>,
    pub(crate) queries: Interner<QueriedStrings>,
    pub(crate) enum_indexes: Vec<EnumIndex>,
    pub(crate) digits: Interner<NumberPrefix>,
}

impl Default for FrameParts {
    fn default() -> FrameParts {
        let mut parts = FrameParts {
            obligations: Interner::default(),
            used_names: Interner::default(),
            orders: Interner::default(),
            verdicts: Interner::default(),
            queries: Interner::default(),
            enum_indexes: Vec::new(),
            digits: Interner::default(),
        };
        parts.used_names.intern([].into());
        parts.orders.intern(Vec::new());
        parts.verdicts.intern([].into());
        parts.queries.intern(QueriedStrings::default());
        parts
    }
}

/// The empty set of used names.
pub(crate) const NO_USED_NAMES: UsedNamesId = UsedNamesId(0);
/// Properties come in any order.
pub(crate) const ANY_ORDER: NameOrderId = NameOrderId(0);
/// No verdicts to report.
pub(crate) const NO_VERDICTS: VerdictsId = VerdictsId(0);
/// No queries about a string.
pub(crate) const NO_QUERIES: QueriesId = QueriesId(0);

impl FrameParts {
    /// Interns an obligation.
    pub(crate) fn obligation(&mut self, obligation: Obligation) -> ObligationId {
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

    /// Interns string automata, each of which answers one query.
    pub(crate) fn machines(&mut self, machines: Box<[QueryState]>) -> QueriesId {
        QueriesId(self.queries.intern(QueriedStrings { machines, ..QueriedStrings::default() }))
    }

    /// Interns string automata of which the first guards the others.
    pub(crate) fn guarded_machines(&mut self, machines: Box<[QueryState]>) -> QueriesId {
        let has_guard = true;
        QueriesId(self.queries.intern(QueriedStrings {
            machines,
            has_guard,
            ..QueriedStrings::default()
        }))
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let enum_tables =
            self.enum_indexes.iter().flat_map(|one| one.verdicts()).map(|verdict| match verdict {
                VerdictSource::Machine(_) => 16,
                VerdictSource::Number(verdicts) => verdicts.len(),
            });
        let required =
            self.obligations.iter().map(|one| 4 * (one.formulas.len() + one.queries.len()) + 32);
        let used_names = self.used_names.iter().map(|one| 4 * one.len() + 16);
        let orders = self.orders.iter().map(|one| 4 * one.len() + 16);
        let queries = self.queries.iter().map(|one| 12 * one.machines.len() + 16);
        let digits = self.digits.iter().map(|one| one.digits.bits() as usize / 8 + 24);
        enum_tables
            .chain(required)
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

/// The kind of value that a first byte begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenedValue {
    Literal(VerdictsId),
    String(LanguageId, QueriesId),
    Number(ObligationId),
    Array(ObligationId),
    Object(ObligationId, NameOrderId),
}

/// Memoized transitions, by interned parts.
#[derive(Debug, Default)]
pub(crate) struct TransitionCache {
    /// By obligation and first byte; all numbers are under byte `0`.
    pub(crate) opened_values: CompactMap<(ObligationId, u8), Option<OpenedValue>>,
    /// The obligations of an object and of the property value, after a colon.
    pub(crate) properties:
        CompactMap<(ObligationId, UsedNamesId), Option<(ObligationId, ObligationId)>>,
    /// The obligations of an array and of the item, once an item has begun.
    pub(crate) items: CompactMap<ObligationId, Option<(ObligationId, ObligationId)>>,
    pub(crate) after_name: CompactMap<(ObligationId, NameId), ObligationId>,
    pub(crate) used_names_after: CompactMap<(UsedNamesId, NameOrderId, NameId), UsedNamesId>,
    /// The obligation of a container after a child whose value does not matter.
    pub(crate) after_plain_child: CompactMap<(ObligationId, VerdictsId), ObligationId>,
    /// Set if some items complete an array after an item that was not recorded.
    pub(crate) completable: CompactMap<ObligationId, bool>,
    pub(crate) end_verdicts: CompactMap<ObligationId, Option<VerdictsId>>,
    /// A lower bound on the bytes of a value, `None` if a deadline cut the search short.
    pub(crate) min_value_bytes: CompactMap<FormulaId, Option<usize>>,
    pub(crate) has_unique_items: CompactMap<ObligationId, bool>,
    /// The number after a byte; the key is `None` before its first byte.
    pub(crate) digits:
        CompactMap<(ObligationId, Option<NumberPrefixId>, u8), Option<NumberPrefixId>>,
    pub(crate) number_ends: CompactMap<(ObligationId, NumberPrefixId), Option<VerdictsId>>,
    pub(crate) numbers: CompactMap<ObligationId, Arc<NumberPlan>>,
    /// One representative for all number prefixes with equal residuals.
    pub(crate) representatives: CompactMap<(ObligationId, bool, NumberResidual), NumberPrefix>,
    pub(crate) next_names: CompactMap<(ObligationId, UsedNamesId, NameOrderId), NextNamesId>,
    /// Set if names of a class may come next in an object.
    pub(crate) classes: CompactMap<(NextNamesId, LanguageId), bool>,
    /// For arrays that cannot run out of items of a type (`None`: of any), their obligation at the
    /// first item.
    pub(crate) plenty_items: CompactMap<(ObligationId, Option<JsonType>), Option<ObligationId>>,
    /// The formula of a property value, by the formula with its rules and the name.
    pub(crate) property_values: CompactMap<(FormulaId, NameId), FormulaId>,
    /// Frames without the items read earlier.
    pub(crate) without_earlier_items: CompactMap<FrameId, FrameId>,
    /// The allowed types of values that are constrained by type only.
    pub(crate) value_types: CompactMap<ObligationId, Option<u8>>,
    /// An unconstrained array, the parent of values that are read in isolation.
    pub(crate) isolation_array: Option<FrameId>,
    /// The shortest completion after a value, by its parent.
    pub(crate) closings: CompactMap<FrameId, Box<[u8]>>,
    /// Live bytes with equal residuals, by position.
    pub(crate) byte_classes: CompactMap<ReaderPosition, Arc<[ByteSet]>>,
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
