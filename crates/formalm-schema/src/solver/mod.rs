//! Whether anything satisfies a formula.
//!
//! A formula over children is satisfied by a value of some type; of a type, by what the theory
//! of that type finds for one of its implicants. Recursive schemas make this a least fixpoint: a
//! question met again while it is open is answered *no*, because a finite value cannot need
//! itself. Such a *no* is tentative until the open question it leaned on is answered.

mod arrays;
mod child_goals;
pub(crate) mod context;
mod disjoint_alternatives;
mod enumerate_values;
mod implicant_search;
mod numbers;
mod objects;
mod solver_clock;
mod strings;
mod verdict_vectors;

use formalm_automata::{Error, Resource};
use rustc_hash::FxHashMap;

use crate::formula::{Atom, F, FALSE, TRUE};
use crate::interner::Map;
use crate::json::property_names::NameId;
use crate::schema_nodes::Type;
use crate::solver::context::{Core, TextId};

pub(crate) use arrays::unique_matching::{FEW_VALUES, MAX_ENUMERATED};
pub(crate) use child_goals::Rest;
pub(crate) use enumerate_values::Listed;
pub(crate) use numbers::number_cells::Cells;
pub(crate) use numbers::{Interval, Scale, holds_between, holds_for};
pub(crate) use objects::property_rule_index::PropertyRuleIndex;
pub(crate) use solver_clock::Solving;
#[cfg(feature = "solver-clock")]
pub use solver_clock::solver_time;
pub(crate) use strings::fresh_string::{PLENTY, fresh_beginning};

/// Nested questions; a deeper one ends in an error.
const MAX_OPEN_QUERIES: usize = 200;

/// Steps after which looking for an implicant gives way to splitting. A search that succeeds mostly
/// does so within 50; alternatives within alternatives have millions of implicants.
const IMPLICANT_STEPS: u64 = 300;

/// The same where a property was split on, so that implicants were looked for in vain.
const SPLIT_IMPLICANT_STEPS: u64 = 24;

/// What is known about formulas.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache {
    /// None where an answer was taken back.
    values: Map<F, Option<bool>>,
    open_queries: Vec<OpenQuery>,
    /// Tentative *no*s, in the order found.
    tentative: Vec<F>,
    classes: Map<Vec<F>, Vec<TextId>>,
    /// Tests that make many classes.
    many_classes: Map<Vec<F>, ()>,
    /// Properties of one object that are being decided one after the other.
    splits: u32,
    /// Steps left to assign members to what some member has to be; `None` is no limit.
    duty_steps: Option<u64>,
    /// Whether objects exist of which some names are gone, while properties are being decided.
    objects: Map<(F, Vec<NameId>), bool>,
    numbers: Map<F, bool>,
    /// Numbers and texts of formulas that were listed.
    listed: Map<(F, Type), arrays::unique_matching::KnownValues>,
    /// Names of a class that are none of some others.
    fresh_names: FxHashMap<(TextId, Vec<NameId>), Option<NameId>>,
    /// Languages of texts that have members enough.
    has_many: Map<TextId, bool>,
    /// Whether nothing is remembered of values.
    #[cfg(test)]
    pub(crate) forgets: bool,
}

/// What a short list of numbers takes on the heap.
pub(crate) const LIST_BYTES: usize = 48;

#[derive(Debug)]
struct OpenQuery {
    formula: F,
    /// Whether a *no* below relies on this question's being open.
    was_assumed_false: bool,
    /// Tentative *no*s before it.
    tentative_before: usize,
}

impl AnswerCache {
    /// Memory in use, in bytes. Lists are counted by what most of them have.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.values.memory_bytes()
            + self.tentative.capacity() * size_of::<F>()
            + self.classes.memory_bytes()
            + self.classes.len() * 2 * LIST_BYTES
            + self.many_classes.memory_bytes()
            + self.many_classes.len() * LIST_BYTES
            + self.objects.memory_bytes()
            + self.objects.len() * LIST_BYTES
            + self.numbers.memory_bytes()
            + self.fresh_names.capacity() * 48
            + self.fresh_names.len() * LIST_BYTES
            + self.has_many.memory_bytes()
    }

    /// Steps of the search for an implicant.
    fn implicant_steps(&self) -> u64 {
        if self.splits > 0 { SPLIT_IMPLICANT_STEPS } else { IMPLICANT_STEPS }
    }

    /// Forgets what a search that failed left open.
    pub(crate) fn abandon(&mut self) {
        self.open_queries.clear();
        self.splits = 0;
        self.duty_steps = None;
        self.objects = Map::default();
        for id in std::mem::take(&mut self.tentative) {
            self.values.insert(id, None);
        }
    }
}

impl Core {
    /// Whether some value satisfies a formula over children.
    pub(crate) fn some_value(&mut self, id: F) -> Result<bool, Error> {
        let _solving = Solving::begin();
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
        self.step()?;
        if self.answers.open_queries.len() >= MAX_OPEN_QUERIES {
            let (needed, allowed) = (MAX_OPEN_QUERIES as u64 + 1, MAX_OPEN_QUERIES as u64);
            return Err(Error::Limit { resource: Resource::Nesting, needed, allowed });
        }
        let mark = self.answers.tentative.len();
        self.answers.open_queries.push(OpenQuery {
            formula: id,
            was_assumed_false: false,
            tentative_before: mark,
        });
        let mut found = false;
        for of in Type::ALL {
            let formula = self.of_type(id, of)?;
            if self.some_of_type(formula, of)? {
                found = true;
                break;
            }
        }
        self.close_query(id, found);
        Ok(found)
    }

    fn close_query(&mut self, id: F, found: bool) {
        let answers = &mut self.answers;
        let Some(open) = answers.open_queries.pop() else { return };
        if found && open.was_assumed_false {
            answers.objects = Map::default();
            for wrong in answers.tentative.split_off(open.tentative_before) {
                answers.values.insert(wrong, None);
            }
        }
        #[cfg(test)]
        if answers.forgets {
            return;
        }
        answers.values.insert(id, Some(found));
        if answers.open_queries.is_empty() {
            answers.tentative.clear();
        } else if !found {
            answers.tentative.push(id);
        }
    }

    /// Whether some value of a type satisfies a formula over its atoms.
    pub(crate) fn some_of_type(&mut self, id: F, of: Type) -> Result<bool, Error> {
        let _solving = Solving::begin();
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        match of {
            Type::Null => Ok(false),
            Type::Bool => Ok([true, false].into_iter().any(|truth| self.holds_for_bool(id, truth))),
            Type::String => self.has_string(id),
            Type::Number => self.has_any_number(id),
            Type::Array => self.some_array(id),
            Type::Object => self.has_object(id, &[]),
        }
    }

    pub(crate) fn holds_for_bool(&self, id: F, value: bool) -> bool {
        self.formulas.holds(id, &mut |atom| matches!(atom, Atom::IsTrue) && value)
    }

    /// Whether a formula holds if the object or array ends here.
    pub(crate) fn holds_at_end(&self, id: F) -> bool {
        self.formulas.holds(id, &mut |atom| {
            matches!(
                atom,
                Atom::Members(_)
                    | Atom::NamesIn(_)
                    | Atom::Items(..)
                    | Atom::Unique(_)
                    | Atom::UniqueWith(_)
            )
        })
    }
}
