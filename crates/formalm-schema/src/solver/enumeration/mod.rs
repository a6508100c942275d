//! Enumerates all values that satisfy a formula, if there are few.

mod containers;
mod scalars;

use formalm_core::{CompactMap, Error};
use rustc_hash::FxHashSet;

use crate::formula::{FALSE, FormulaId};
use crate::json::interned_values::{JsonValue, ValueId};
use crate::schema_nodes::JsonType;
use crate::solver::context::SolverContext;
use crate::solver::enumeration::containers::ContainerEnumeration;
use crate::solver::enumeration::scalars::ScalarEnumerations;
use crate::solver::formula_base::FormulaBase;
use crate::solver::{LIST_BYTES, SolverTimer};

/// Maximum number of values that are enumerated for one item; more count as enough. Chosen, not
/// measured.
pub(crate) const MAX_ENUMERATED: usize = 256;

/// Items with fewer values are tried value by value where they must differ from later items.
/// Chosen, not measured.
pub(crate) const FEW_VALUES: usize = 64;

/// Values visited that count as one step. Chosen, not measured.
pub(super) const VALUES_PER_STEP: usize = 512;

/// The enumerated values of a formula.
#[derive(Clone, Debug)]
pub(crate) enum Enumeration {
    /// Exactly these.
    All(Vec<ValueId>),
    /// At least as many as requested.
    Plenty,
    /// Undecided.
    Unknown,
}

/// The values enumerated so far.
#[derive(Debug, Default)]
pub(crate) struct EnumerationCache {
    scalars: ScalarEnumerations,
    /// Objects and arrays of formulas, with the number that was requested.
    containers: CompactMap<FormulaId, (usize, Enumeration)>,
}

impl EnumerationCache {
    /// Returns the approximate memory in use, in bytes. Lists count with a typical size.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.containers.table_bytes() + self.containers.len() * LIST_BYTES
    }
}

impl SolverContext {
    /// Returns all values of an item except those `taken`, unless there are at least `enough`.
    pub(crate) fn enumerate_values(
        &mut self,
        item: FormulaId,
        enough: usize,
        taken: &[ValueId],
    ) -> Result<Enumeration, Error> {
        let _solving = SolverTimer::begin();
        self.enumerate_to_depth(item, enough, taken, 0)
    }

    /// Returns the result of [`SolverContext::enumerate_values`], inside `depth` containers.
    pub(in crate::solver) fn enumerate_to_depth(
        &mut self,
        item: FormulaId,
        enough: usize,
        taken: &[ValueId],
        depth: usize,
    ) -> Result<Enumeration, Error> {
        let (mut values, mut is_sure) = (Vec::new(), true);
        for ty in JsonType::ALL {
            let formula = self.formula_for_type(item, ty)?;
            if formula == FALSE {
                continue;
            }
            let more = match ty {
                JsonType::Null => Some(vec![self.base.schema.values.intern(JsonValue::Null)]),
                JsonType::Bool => Some(enumerate_booleans(&mut self.base, formula)),
                JsonType::Number | JsonType::String => self.enumerations.scalars.enumerate(
                    &mut self.base,
                    &mut self.languages,
                    formula,
                    ty,
                    enough + taken.len(),
                )?,
                JsonType::Array | JsonType::Object if !self.has_value_of_type(formula, ty)? => {
                    continue;
                }
                JsonType::Array | JsonType::Object => {
                    match ContainerEnumeration::new(self, enough + taken.len(), depth)
                        .run(formula, ty)?
                    {
                        Enumeration::All(values) => Some(values),
                        Enumeration::Plenty => None,
                        Enumeration::Unknown => {
                            is_sure = false;
                            continue;
                        }
                    }
                }
            };
            let Some(more) = more else { return Ok(Enumeration::Plenty) };
            let is_taken: FxHashSet<ValueId> = taken.iter().copied().collect();
            values.extend(more.into_iter().filter(|value| !is_taken.contains(value)));
            if values.len() >= enough {
                return Ok(Enumeration::Plenty);
            }
        }
        Ok(if is_sure { Enumeration::All(values) } else { Enumeration::Unknown })
    }
}

fn enumerate_booleans(base: &mut FormulaBase, formula: FormulaId) -> Vec<ValueId> {
    let truths = [false, true].into_iter();
    let truths = truths.filter(|&truth| base.formulas.holds_for_boolean(formula, truth));
    let truths: Vec<bool> = truths.collect();
    truths.into_iter().map(|truth| base.schema.values.intern(JsonValue::Bool(truth))).collect()
}
