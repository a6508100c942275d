//! The solver: decides whether any JSON value satisfies a formula.
//!
//! ```text
//! formula over the child ── for each type ──► formula over that type's atoms
//!                                                   │ implicant_search
//!                                                   ▼
//!        theories:  strings/   numbers/   arrays/   objects/
//!                                            │         │  queries about children
//!                                            └─────────┴──► the solver again
//! ```
//!
//! A lazy SMT-style procedure: the implicants of the formula go to the theory of the type.
//! Recursive schemas make satisfiability a least fixpoint. A query met again while it is open is
//! answered *no*, since a finite value cannot contain itself. Such a *no* is tentative until the
//! open query that it assumed false is closed.
//!
//! The recursion goes through all theories and through [`crate::expansion`], so that one small type
//! at the center, [`context::SolverContext`], hands out the parts:
//!
//! * [`formula_base::FormulaBase`]: the schema, its formulas, and the step budget. Numbers need no
//!   more ([`numbers::NumberQuery`]).
//! * [`strings::languages::Languages`]: the automata of formulas over strings, and the names that
//!   patterns match.
//! * [`AnswerCache`], [`enumeration::EnumerationCache`] and [`crate::expansion::Expansions`]: what
//!   was decided, enumerated and expanded.
//!
//! A query that many functions pass on is a type that borrows the center: [`objects::ObjectQuery`],
//! [`arrays::ArraySearch`], [`AlternativeComparison`]; [`RemainingContainer`] is what remains of a
//! container after the child being read.

mod arrays;
mod child_goals;
pub(crate) mod context;
mod disjoint_alternatives;
mod enumeration;
pub(crate) mod formula_base;
mod implicant_search;
pub(crate) mod name_mentions;
mod numbers;
mod objects;
pub(crate) mod scalar_fingerprints;
mod solver_clock;
mod strings;
mod verdict_vectors;

use formalm_core::{CompactMap, Error, Resource, check_limit};

use crate::formula::{FALSE, FormulaArena, FormulaId, TRUE};
use crate::json::property_names::NameId;
use crate::schema_nodes::JsonType;
use crate::solver::arrays::ArraySearch;
use crate::solver::context::SolverContext;
use crate::solver::implicant_search::{ImplicantSearch, ImplicantVisitor};
use crate::solver::objects::ObjectQuery;

pub(crate) use arrays::ArrayCardinality;
pub(crate) use child_goals::RemainingContainer;
pub(crate) use disjoint_alternatives::AlternativeComparison;
pub(crate) use enumeration::{Enumeration, FEW_VALUES, MAX_ENUMERATED};
pub(crate) use numbers::number_cells::NumberCells;
pub(crate) use numbers::{NumberInterval, NumberScale, gap_satisfies, number_satisfies};
pub(crate) use solver_clock::SolverTimer;
#[cfg(feature = "solver-clock")]
pub use solver_clock::solver_time;
pub(crate) use strings::fresh_string::{ENOUGH_VALUES, fresh_prefix};

/// Maximum number of nested queries; more are a limit error. Chosen, not measured.
const MAX_OPEN_QUERIES: usize = 200;

/// Steps of an implicant search before it gives way to case splits. Searches that succeed mostly
/// need fewer than 50; nested alternatives can have millions of implicants.
const IMPLICANT_STEPS: u64 = 300;

/// The budget of [`IMPLICANT_STEPS`] inside a case split, where implicants were searched in vain
/// already. Chosen, not measured.
const SPLIT_IMPLICANT_STEPS: u64 = 24;

/// Memoized answers, and the state of open queries.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache {
    /// `None` where an answer was retracted.
    values: CompactMap<FormulaId, Option<bool>>,
    open_queries: Vec<OpenQuery>,
    /// Tentative *no* answers, in order.
    tentative: Vec<FormulaId>,
    /// Depth of case splits on properties of one object.
    splits: u32,
    /// Remaining steps to assign properties to the demands on some property; `None` for no limit.
    duty_steps: Option<u64>,
    /// Satisfiability of objects with used names, while splitting on properties.
    objects: CompactMap<(FormulaId, Vec<NameId>), bool>,
    numbers: CompactMap<FormulaId, bool>,
    /// Disables memoization, for tests.
    #[cfg(test)]
    pub(crate) forgets: bool,
}

/// Approximate heap size of a short list of ids, in bytes.
pub(crate) const LIST_BYTES: usize = 48;

/// A query that is being answered.
#[derive(Debug)]
struct OpenQuery {
    formula: FormulaId,
    /// A nested query assumed that this one is false.
    was_assumed_false: bool,
    /// Number of tentative answers when the query was opened.
    tentative_before: usize,
}

impl AnswerCache {
    /// Returns the approximate memory in use, in bytes. Lists count with a typical size.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.values.table_bytes()
            + self.tentative.capacity() * size_of::<FormulaId>()
            + self.objects.table_bytes()
            + self.objects.len() * LIST_BYTES
            + self.numbers.table_bytes()
    }

    /// Returns the step budget of an implicant search.
    fn implicant_steps(&self) -> u64 {
        if self.splits > 0 { SPLIT_IMPLICANT_STEPS } else { IMPLICANT_STEPS }
    }

    /// Records the answer of the innermost query, and retracts tentative answers that assumed it
    /// false.
    fn close(&mut self, id: FormulaId, found: bool) {
        let Some(open) = self.open_queries.pop() else { return };
        if found && open.was_assumed_false {
            self.objects = CompactMap::default();
            for wrong in self.tentative.split_off(open.tentative_before) {
                self.values.insert(wrong, None);
            }
        }
        #[cfg(test)]
        if self.forgets {
            return;
        }
        self.values.insert(id, Some(found));
        if self.open_queries.is_empty() {
            self.tentative.clear();
        } else if !found {
            self.tentative.push(id);
        }
    }

    /// Resets the state of open queries after a search that failed.
    pub(crate) fn abandon(&mut self) {
        self.open_queries.clear();
        self.splits = 0;
        self.duty_steps = None;
        self.objects = CompactMap::default();
        for id in std::mem::take(&mut self.tentative) {
            self.values.insert(id, None);
        }
    }
}

impl SolverContext {
    /// Returns `true` if some value satisfies a formula over the child. Fails if a limit is
    /// exceeded.
    pub(crate) fn has_value(&mut self, id: FormulaId) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        if let Some(&Some(known)) = self.answers.values.get(&id) {
            return Ok(known);
        }
        if let Some(open) = self.answers.open_queries.iter_mut().find(|open| open.formula == id) {
            open.was_assumed_false = true;
            return Ok(false);
        }
        self.base.count_step()?;
        let open = self.answers.open_queries.len() as u64;
        check_limit(Resource::Nesting, open + 1, MAX_OPEN_QUERIES as u64)?;
        let mark = self.answers.tentative.len();
        self.answers.open_queries.push(OpenQuery {
            formula: id,
            was_assumed_false: false,
            tentative_before: mark,
        });
        let mut found = false;
        for ty in JsonType::ALL {
            let formula = self.formula_for_type(id, ty)?;
            if self.has_value_of_type(formula, ty)? {
                found = true;
                break;
            }
        }
        self.answers.close(id, found);
        Ok(found)
    }

    /// Returns `true` if some value of a type satisfies a formula over its atoms. Fails if a limit
    /// is exceeded.
    pub(crate) fn has_value_of_type(&mut self, id: FormulaId, ty: JsonType) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        match ty {
            JsonType::Null => Ok(false),
            JsonType::Bool => Ok([true, false]
                .into_iter()
                .any(|truth| self.base.formulas.holds_for_boolean(id, truth))),
            JsonType::String => self.languages.has_string(&mut self.base, id),
            JsonType::Number => self.has_number(id),
            JsonType::Array => self.has_array(id),
            JsonType::Object => self.has_object(id, &[]),
        }
    }

    /// Returns `true` if some number satisfies a formula.
    fn has_number(&mut self, id: FormulaId) -> Result<bool, Error> {
        if let Some(&known) = self.answers.numbers.get(&id) {
            return Ok(known);
        }
        let rest = self.base.formulas.drop_exclusions(id);
        let found = rest != id && self.base.numbers(rest).has_no_bound()?
            || self.base.numbers(id).find(&NumberInterval::default())?.is_some();
        self.answers.numbers.insert(id, found);
        Ok(found)
    }

    /// Calls `leaf` for implicants until it returns `true`, without a step budget of its own.
    /// `fits` may reject a partial conjunction: no extension of it is tried.
    pub(crate) fn search_implicants(
        &mut self,
        id: FormulaId,
        fits: &mut ImplicantVisitor<'_, SolverContext>,
        leaf: &mut ImplicantVisitor<'_, SolverContext>,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        ImplicantSearch { steps: u64::MAX, fits, leaf }.run(self, id)
    }

    /// Like [`SolverContext::search_implicants`], but returns `None` if a budget of steps ran out.
    fn find_implicant(
        &mut self,
        id: FormulaId,
        steps: u64,
        fits: &mut ImplicantVisitor<'_, SolverContext>,
        leaf: &mut ImplicantVisitor<'_, SolverContext>,
    ) -> Result<Option<bool>, Error> {
        let mut search = ImplicantSearch { steps, fits, leaf };
        let found = search.run(self, id)?;
        Ok((found || search.steps > 0).then_some(found))
    }

    /// Returns the query for the properties of an object in which some names were used.
    fn objects<'a>(&'a mut self, used_names: &'a [NameId]) -> ObjectQuery<'a> {
        ObjectQuery { solver: self, used_names }
    }

    /// Returns `true` if further properties can satisfy a formula over object atoms. Fails if a
    /// limit is exceeded.
    pub(crate) fn has_object(
        &mut self,
        id: FormulaId,
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        self.objects(used_names).decide(id)
    }

    /// Returns `true` if properties can satisfy a conjunction of literals.
    pub(crate) fn object_fits(
        &mut self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        self.objects(used_names).fits(literals)
    }

    /// Returns the unmentioned names that a conjunction of literals allows next; `None` if names
    /// depend on each other.
    pub(crate) fn names_of_implicant(
        &mut self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> Result<Option<FormulaId>, Error> {
        self.objects(used_names).allowed_names(literals)
    }

    /// Returns `true` if further items can satisfy a formula over array atoms.
    pub(crate) fn has_array(&mut self, id: FormulaId) -> Result<bool, Error> {
        Ok(self.current_item_goal(id, TRUE)? != FALSE)
    }

    /// Returns what the item being read, which satisfies `known`, must satisfy in addition so that
    /// further items can satisfy a formula.
    pub(in crate::solver) fn current_item_goal(
        &mut self,
        id: FormulaId,
        known: FormulaId,
    ) -> Result<FormulaId, Error> {
        let _solving = SolverTimer::begin();
        if id == FALSE || self.base.formulas.holds_at_end(id) {
            return Ok(FormulaArena::constant(id != FALSE));
        }
        let mut goals = Vec::new();
        self.search_implicants(id, &mut |_, _| Ok(true), &mut |solver, literals| {
            goals.push(solver.items_fit(literals, known)?);
            Ok(goals.last() == Some(&TRUE))
        })?;
        Ok(self.base.formulas.or(goals))
    }

    /// Returns the result of [`SolverContext::current_item_goal`] for a conjunction of literals.
    pub(crate) fn items_fit(
        &mut self,
        literals: &[FormulaId],
        known: FormulaId,
    ) -> Result<FormulaId, Error> {
        ArraySearch::items_fit(self, literals, known)
    }
}
