//! The property names that may come next in an object.
//!
//! Names that the formulas mention, or that were used already, are decided one by one. All other
//! names fall into classes that the formulas do not distinguish, and one example decides a class.

pub(crate) mod name_query;
mod property_allowed;

use formalm_core::{CompactMap, Interner};

use crate::formula::{Formula, FormulaAtom, FormulaId};
use crate::json::property_names::NameId;
use crate::machine::frame::{
    NameCandidates, NameOrderId, NextNamesId, ObligationId, QueriesId, UsedNamesId,
};
use crate::machine::residuals::string_queries::StringQueries;
use crate::options::PropertyOrder;
use crate::solver::context::{LanguageId, SolverContext};

/// The empty set of used names.
pub(crate) const NO_USED_NAMES: UsedNamesId = UsedNamesId(0);
/// Properties come in any order.
pub(crate) const ANY_ORDER: NameOrderId = NameOrderId(0);

/// Number of names from which on their order is looked up. Chosen, not measured.
const MIN_SORTED_NAMES: usize = 64;

/// The viability of a known name, as far as computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameStatus {
    Unknown,
    Allowed,
    Forbidden,
}

/// The names that may come next in an object.
#[derive(Debug)]
pub(crate) struct NextNames {
    pub(crate) obligation: ObligationId,
    pub(crate) used_names: UsedNamesId,
    pub(crate) order: NameOrderId,
    /// The names decided one by one, sorted by their bytes.
    pub(crate) known: Box<[NameId]>,
    status: Box<[NameStatus]>,
    /// The allowed classes of other names, with an example of each.
    classes: Box<[(LanguageId, NameId)]>,
    /// The tests that distinguish names, if they make too many classes to list; see
    /// [`NameQuery::classify_by_tests`](name_query::NameQuery).
    tests: Box<[FormulaId]>,
    /// The candidates before the first character of a name.
    pub(crate) start: NameCandidates,
    /// Set if names do not depend on each other: the object has only property rules, required
    /// names, excluded names, and a maximum count.
    pub(crate) independent: bool,
    /// The number of further properties that suffices for all lower bounds.
    min_properties: u64,
    /// Set if every other name is of an allowed class.
    allows_all_others: bool,
    /// For each class of other names, set if it cannot run out.
    plenty: Box<[bool]>,
}

/// The names that may come next in objects, by what is still required of these.
#[derive(Debug)]
pub(crate) struct NameTables {
    used_names: Interner<Box<[NameId]>>,
    orders: Interner<Vec<NameId>>,
    sets: Vec<NextNames>,
    by_object: CompactMap<(ObligationId, UsedNamesId, NameOrderId), NextNamesId>,
    used_after: CompactMap<(UsedNamesId, NameOrderId, NameId), UsedNamesId>,
    /// The obligations of an object and of the property value, after a colon.
    properties: CompactMap<(ObligationId, UsedNamesId), Option<(ObligationId, ObligationId)>>,
    /// Maximum number of names that one token reads.
    pub(crate) max_token_names: usize,
}

impl Default for NameTables {
    fn default() -> NameTables {
        let (mut used_names, mut orders) = (Interner::default(), Interner::default());
        used_names.intern([].into());
        orders.intern(Vec::new());
        NameTables {
            used_names,
            orders,
            sets: Vec::new(),
            by_object: CompactMap::default(),
            used_after: CompactMap::default(),
            properties: CompactMap::default(),
            max_token_names: 0,
        }
    }
}

impl NameTables {
    /// Returns the tables of an id.
    #[inline]
    pub(crate) fn get(&self, id: NextNamesId) -> &NextNames {
        &self.sets[id.0 as usize]
    }

    /// Returns the number of tables.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Returns the names that can no longer be used, sorted.
    pub(crate) fn used(&self, id: UsedNamesId) -> &[NameId] {
        self.used_names.get(id.0)
    }

    /// Returns the names of a declared order.
    fn order(&self, id: NameOrderId) -> &[NameId] {
        self.orders.get(id.0)
    }

    pub(crate) fn intern_order(&mut self, declared: Vec<NameId>) -> NameOrderId {
        NameOrderId(self.orders.intern(declared))
    }

    /// Returns the string of a known name.
    pub(crate) fn known_name<'a>(
        &self,
        core: &'a SolverContext,
        id: NextNamesId,
        at: u32,
    ) -> &'a str {
        core.base.schema.names.get(self.get(id).known[at as usize])
    }

    /// Returns the number of declared names that can no longer come after `name`.
    fn skipped_by_order(&self, core: &SolverContext, order: NameOrderId, name: NameId) -> usize {
        if core.options.property_order == PropertyOrder::Any {
            return 0;
        }
        let declared = self.order(order);
        // A name that is not declared comes after all that are.
        declared.iter().position(|&one| one == name).unwrap_or(declared.len())
    }

    /// Returns the names that can no longer come after `name`.
    pub(crate) fn used_names_after(
        &mut self,
        core: &SolverContext,
        used_names: UsedNamesId,
        order: NameOrderId,
        name: NameId,
    ) -> UsedNamesId {
        if let Some(&known) = self.used_after.get(&(used_names, order, name)) {
            return known;
        }
        let skipped_by_order = self.skipped_by_order(core, order, name);
        let mut after = self.used(used_names).to_vec();
        after.extend((!name.is_symbolic()).then_some(name));
        after.extend(&self.order(order)[..skipped_by_order]);
        after.sort_unstable();
        after.dedup();
        let after = UsedNamesId(self.used_names.intern(after.into()));
        self.used_after.insert((used_names, order, name), after);
        after
    }

    /// Returns a number of names that suffices for everything the object requires and a token
    /// reads.
    fn names_needed(&self, id: NextNamesId) -> u64 {
        let &NextNames { min_properties, used_names, .. } = self.get(id);
        let read = self.used(used_names).len() + self.max_token_names;
        min_properties.saturating_add(read as u64)
    }

    /// Sorts names by their bytes and removes duplicates. The names that come after a property are
    /// mostly those that came before it, whose order is known.
    fn sort_names(&self, core: &SolverContext, names: &mut Vec<NameId>) {
        let all = &core.base.schema.names;
        if let Some(last) = self.sets.last()
            && names.len() >= MIN_SORTED_NAMES
            && !names.iter().any(|name| name.is_symbolic())
        {
            let mut listed = vec![0u64; all.len() / 64 + 1];
            let place = |name: NameId| (name.0 as usize / 64, 1 << (name.0 % 64));
            names.retain(|&name| {
                let (word, bit) = place(name);
                let is_new = listed[word] & bit == 0;
                listed[word] |= bit;
                is_new
            });
            let is_listed = |name: &NameId| {
                let (word, bit) = place(*name);
                listed[word] & bit != 0
            };
            let sorted: Vec<NameId> = last.known.iter().copied().filter(is_listed).collect();
            if sorted.len() == names.len() {
                *names = sorted;
                return;
            }
        }
        all.sort(names);
    }

    /// Returns `true` if no required name is used up or would be skipped by `name`.
    fn required_may_follow(
        &self,
        core: &SolverContext,
        must: FormulaId,
        (used_names, order): (UsedNamesId, NameOrderId),
        name: NameId,
    ) -> bool {
        let skipped_by_order = &self.order(order)[..self.skipped_by_order(core, order, name)];
        let used_names = self.used(used_names);
        let is_passed = |one: &NameId| {
            *one != name
                && (skipped_by_order.contains(one) || used_names.binary_search(one).is_ok())
        };
        let parts = match core.base.formulas.get(must) {
            Formula::And(list) => list,
            _ => &[must][..],
        };
        !parts.iter().any(|&part| match core.base.formulas.get(part) {
            Formula::Atom(FormulaAtom::Required(names)) => names.iter().any(is_passed),
            _ => false,
        })
    }

    /// Returns `true` if each class has more names than an object ever needs.
    pub(crate) fn has_plenty_names(
        &self,
        strings: &StringQueries,
        next_names: NextNamesId,
        classes: QueriesId,
    ) -> bool {
        let plenty = self.get(next_names).plenty.iter();
        let mut alive = strings.get(classes).iter().zip(plenty);
        alive.all(|(alive, &plenty)| alive.is_none() || plenty)
    }

    /// Returns `true` if every name that is not decided one by one may come.
    pub(crate) fn allows_all_others(&self, next_names: NextNamesId) -> bool {
        self.get(next_names).allows_all_others
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let used_names = self.used_names.iter().map(|one| 4 * one.len() + 16);
        let orders = self.orders.iter().map(|one| 4 * one.len() + 16);
        used_names.chain(orders).sum::<usize>()
            + self.used_names.table_bytes()
            + self.orders.table_bytes()
            + self.sets.len() * 200
            + self.by_object.table_bytes()
            + self.used_after.table_bytes()
            + self.properties.table_bytes()
    }
}
