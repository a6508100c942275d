//! Residual obligations: what is still required of the values being read.
//!
//! ```text
//! obligation of a container ──name │ item──► container′ + child     (child_start, derivative)
//! verdicts of the child     ─────────────► container″              (derivative)
//! ```
//!
//! Nothing here knows how a value is spelled. All results are memoized by interned ids.

pub(crate) mod child_start;
pub(crate) mod declared_names;
pub(crate) mod derivative;
pub(crate) mod string_queries;

use formalm_core::{CompactMap, Error, Interner};

use crate::formula::{Formula, FormulaAtom, FormulaId, TRUE};
use crate::json::interned_values::ValueId;
use crate::json::property_names::NameId;
use crate::machine::frame::{Obligation, ObligationId, VerdictsId};
use crate::machine::residuals::child_start::ChildStart;
use crate::schema_nodes::JsonType;
use crate::solver::context::SolverContext;
use crate::solver::name_mentions::NameMentions;
use crate::solver::{Enumeration, FEW_VALUES, RemainingContainer};

/// No verdicts to report.
pub(crate) const NO_VERDICTS: VerdictsId = VerdictsId(0);

/// Maximum number of cached property values. Chosen, not measured.
const MAX_CACHED_VALUES: usize = 1 << 20;

/// Interned obligations and verdicts, and how obligations change.
#[derive(Debug)]
pub(crate) struct Residuals {
    obligations: Interner<Obligation>,
    verdicts: Interner<Box<[bool]>>,
    memos: ResidualMemos,
}

/// Memoized changes of obligations.
#[derive(Debug, Default)]
struct ResidualMemos {
    /// The obligations of an array and of the item, once an item has begun.
    items: CompactMap<ObligationId, Option<(ObligationId, ObligationId)>>,
    after_name: CompactMap<(ObligationId, NameId), ObligationId>,
    /// The obligation of a container after a child whose value does not matter.
    after_plain_child: CompactMap<(ObligationId, VerdictsId), ObligationId>,
    /// Set if some items complete an array after an item that was not recorded.
    completable: CompactMap<ObligationId, bool>,
    end_verdicts: CompactMap<ObligationId, Option<VerdictsId>>,
    has_unique_items: CompactMap<ObligationId, bool>,
    /// The formula of a property value, by the formula with its rules and the name.
    property_values: CompactMap<(FormulaId, NameId), FormulaId>,
}

impl Default for Residuals {
    fn default() -> Residuals {
        let mut verdicts = Interner::default();
        verdicts.intern([].into());
        Residuals { obligations: Interner::default(), verdicts, memos: ResidualMemos::default() }
    }
}

impl Residuals {
    /// Interns an obligation.
    pub(crate) fn intern(&mut self, obligation: Obligation) -> ObligationId {
        ObligationId(self.obligations.intern(obligation))
    }

    #[inline]
    pub(crate) fn get(&self, id: ObligationId) -> &Obligation {
        self.obligations.get(id.0)
    }

    /// Interns verdicts.
    pub(crate) fn intern_verdicts(&mut self, verdicts: &[bool]) -> VerdictsId {
        if verdicts.is_empty() {
            NO_VERDICTS
        } else {
            VerdictsId(self.verdicts.intern(verdicts.into()))
        }
    }

    pub(crate) fn verdicts(&self, id: VerdictsId) -> &[bool] {
        self.verdicts.get(id.0)
    }

    /// Returns the obligation of a container after a child whose value does not matter.
    pub(crate) fn after_plain_child(
        &mut self,
        core: &mut SolverContext,
        obligation: ObligationId,
        verdicts: VerdictsId,
    ) -> Result<ObligationId, Error> {
        if let Some(&known) = self.memos.after_plain_child.get(&(obligation, verdicts)) {
            return Ok(known);
        }
        let after = self.after_child(core, obligation, verdicts, None)?;
        self.memos.after_plain_child.insert((obligation, verdicts), after);
        Ok(after)
    }

    /// Returns the obligation of a container after a child, given its value if items must be
    /// unique.
    pub(crate) fn after_child(
        &mut self,
        core: &mut SolverContext,
        obligation: ObligationId,
        verdicts: VerdictsId,
        value: Option<ValueId>,
    ) -> Result<ObligationId, Error> {
        let before = self.get(obligation).clone();
        let queries = core.base.formulas.queried_nodes(&before.formulas);
        let after = before.after_child(core, (&queries, self.verdicts(verdicts)), value)?;
        Ok(self.intern(after))
    }

    /// Returns the obligation of an array after an item whose value was not recorded, `None` if the
    /// remaining items can no longer be unique.
    pub(crate) fn after_unrecorded_item(
        &mut self,
        core: &mut SolverContext,
        obligation: ObligationId,
        verdicts: VerdictsId,
    ) -> Result<Option<ObligationId>, Error> {
        let after = self.after_plain_child(core, obligation, verdicts)?;
        if let Some(&known) = self.memos.completable.get(&after) {
            return Ok(known.then_some(after));
        }
        let can_complete_array = self.can_complete_array(core, after)?;
        self.memos.completable.insert(after, can_complete_array);
        Ok(can_complete_array.then_some(after))
    }

    /// Returns the obligation of an array after a unique item of this value, `None` if the
    /// remaining items can no longer be unique.
    pub(crate) fn after_unique_item(
        &mut self,
        core: &mut SolverContext,
        obligation: ObligationId,
        verdicts: VerdictsId,
        value: ValueId,
    ) -> Result<Option<ObligationId>, Error> {
        let after = self.after_child(core, obligation, verdicts, Some(value))?;
        Ok(self.can_complete_array(core, after)?.then_some(after))
    }

    /// Returns `true` if some items complete the array.
    fn can_complete_array(
        &self,
        core: &mut SolverContext,
        obligation: ObligationId,
    ) -> Result<bool, Error> {
        let required = self.get(obligation).clone();
        let total = required.total(core);
        core.has_array(total)
    }

    /// Returns `true` if an obligation depends on which items are equal.
    pub(crate) fn has_unique_items(
        &mut self,
        core: &SolverContext,
        obligation: ObligationId,
    ) -> bool {
        if let Some(&known) = self.memos.has_unique_items.get(&obligation) {
            return known;
        }
        let unique = self.get(obligation).requires_unique_items(&core.base.formulas);
        self.memos.has_unique_items.insert(obligation, unique);
        unique
    }

    /// Returns the verdicts of a container that ends here, `None` if it cannot end.
    pub(crate) fn end_verdicts(
        &mut self,
        core: &mut SolverContext,
        obligation: ObligationId,
    ) -> Option<VerdictsId> {
        if let Some(&known) = self.memos.end_verdicts.get(&obligation) {
            return known;
        }
        let required = self.get(obligation).clone();
        let total = required.total(core);
        let ended = required.formulas.iter().skip(1);
        let verdicts: Vec<bool> = ended.map(|&id| core.base.formulas.holds_at_end(id)).collect();
        let verdicts =
            core.base.formulas.holds_at_end(total).then(|| self.intern_verdicts(&verdicts));
        self.memos.end_verdicts.insert(obligation, verdicts);
        verdicts
    }

    /// Returns the obligations of an array and of its next item, `None` if no item may come.
    pub(crate) fn start_item(
        &mut self,
        core: &mut SolverContext,
        obligation: ObligationId,
    ) -> Result<Option<(ObligationId, ObligationId)>, Error> {
        if let Some(&known) = self.memos.items.get(&obligation) {
            return Ok(known);
        }
        let required = self.get(obligation).clone();
        let required = required.after_item(core)?;
        let rest = RemainingContainer { json_type: JsonType::Array, used_names: &[] };
        let start = match ChildStart::new(required, core, rest)? {
            Some(mut start) => {
                if start.child.queries.is_empty()
                    && start.container.requires_unique_items(&core.base.formulas)
                {
                    restrict_to_completable(core, &start.container, &mut start.child)?;
                }
                Some((self.intern(start.container), self.intern(start.child)))
            }
            None => None,
        };
        self.memos.items.insert(obligation, start);
        Ok(start)
    }

    /// Returns the obligation of an object after a name.
    pub(crate) fn after_name(
        &mut self,
        core: &mut SolverContext,
        obligation: ObligationId,
        name: NameId,
    ) -> Result<ObligationId, Error> {
        if let Some(&known) = self.memos.after_name.get(&(obligation, name)) {
            return Ok(known);
        }
        let required = self.get(obligation).clone();
        let after = required.after_name(core, name)?;
        let after = self.intern(after);
        self.memos.after_name.insert((obligation, name), after);
        Ok(after)
    }

    /// Returns `true` if the obligation after a name is already known.
    pub(crate) fn knows_after_name(&self, obligation: ObligationId, name: NameId) -> bool {
        self.memos.after_name.get(&(obligation, name)).is_some()
    }

    /// Returns the formula of a property value. `rules` is the formula with the rules about
    /// properties.
    pub(crate) fn property_value(
        &mut self,
        core: &mut SolverContext,
        rules: FormulaId,
        name: NameId,
    ) -> Result<FormulaId, Error> {
        if let Some(&known) = self.memos.property_values.get(&(rules, name)) {
            return Ok(known);
        }
        let Formula::Atom(FormulaAtom::Properties(list)) = core.base.formulas.get(rules).clone()
        else {
            return Ok(TRUE);
        };
        let value = core.languages.rules_for_name(&mut core.base, &list, name)?;
        if self.memos.property_values.len() < MAX_CACHED_VALUES {
            self.memos.property_values.insert((rules, name), value);
        }
        Ok(value)
    }

    /// Returns `true` if names do not depend on each other, see
    /// [`NextNames::independent`](crate::machine::names::NextNames::independent).
    pub(crate) fn has_independent_names(
        &self,
        core: &SolverContext,
        obligation: ObligationId,
    ) -> bool {
        let required = self.get(obligation);
        let formulas = &core.base.formulas;
        let independent = |&id: &FormulaId| match formulas.get(id) {
            Formula::Atom(FormulaAtom::Properties(_) | FormulaAtom::Required(_)) => true,
            _ => {
                formulas.excluded_property(id).is_some()
                    || formulas.max_more_properties(id).is_some()
            }
        };
        required.formulas.len() == 1
            && required.goal == TRUE
            && formulas.conjuncts(required.formulas[0]).iter().all(independent)
    }

    /// Returns what the formulas of an object say about names.
    pub(crate) fn mentioned_names(
        &self,
        core: &mut SolverContext,
        obligation: ObligationId,
    ) -> NameMentions {
        core.base.names_in(&self.get(obligation).formulas)
    }

    /// Returns `true` if an object certainly requires a name that was not read yet. One may then come,
    /// as no state is dead.
    pub(crate) fn requires_name(&self, core: &SolverContext, obligation: ObligationId) -> bool {
        let formulas = &core.base.formulas;
        let is_required = |part: &FormulaId| matches!(formulas.get(*part), Formula::Atom(FormulaAtom::Required(names)) if !names.is_empty());
        let must = self.get(obligation).formulas[0];
        match formulas.get(must) {
            Formula::And(list) => list.iter().any(is_required),
            _ => is_required(&must),
        }
    }

    /// Returns `true` if the parent needs no verdict of the value.
    pub(crate) fn has_no_queries(&self, obligation: ObligationId) -> bool {
        self.get(obligation).queries.is_empty()
    }

    /// Returns the formula of an obligation, `None` if it has queries or a goal.
    pub(crate) fn only_formula(&self, obligation: ObligationId) -> Option<FormulaId> {
        let required = self.get(obligation);
        let [formula] = *required.formulas else { return None };
        (required.goal == TRUE).then_some(formula)
    }

    /// Returns `true` if nothing is required.
    pub(crate) fn is_unconstrained(&self, obligation: ObligationId) -> bool {
        let obligation = self.get(obligation);
        obligation.formulas.iter().all(|&one| one == TRUE) && obligation.goal == TRUE
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let obligations =
            self.obligations.iter().map(|one| 4 * (one.formulas.len() + one.queries.len()) + 32);
        let memos = &self.memos;
        obligations.sum::<usize>()
            + self.obligations.table_bytes()
            + self.verdicts.table_bytes()
            + self.verdicts.len() * 24
            + memos.items.table_bytes()
            + memos.after_name.table_bytes()
            + memos.after_plain_child.table_bytes()
            + memos.completable.table_bytes()
            + memos.end_verdicts.table_bytes()
            + memos.has_unique_items.table_bytes()
            + memos.property_values.table_bytes()
    }
}

/// Restricts an item with few possible values to those that leave enough values for the
/// remaining unique items.
fn restrict_to_completable(
    core: &mut SolverContext,
    array: &Obligation,
    child: &mut Obligation,
) -> Result<(), Error> {
    let taken =
        core.base.formulas.conjuncts(array.formulas[0]).into_iter().find_map(|id| {
            match core.base.formulas.get(id) {
                Formula::Atom(FormulaAtom::UniqueWithCurrent(taken)) => Some(taken.to_vec()),
                _ => None,
            }
        });
    let Some(taken) = taken else { return Ok(()) };
    let must = child.formulas[0];
    let listed = core.enumerate_values(must, FEW_VALUES, &taken)?;
    let Enumeration::All(values) = listed else { return Ok(()) };
    let mut good = Vec::new();
    for value in values {
        let after = array.after_child(core, (&[], &[]), Some(value))?;
        let total = after.total(core);
        if core.has_array(total)? {
            good.push(value);
        }
    }
    good.sort_unstable();
    let node = core.base.schema.node_for_values(&good);
    child.formulas[0] = core.base.formulas.child(node);
    Ok(())
}
