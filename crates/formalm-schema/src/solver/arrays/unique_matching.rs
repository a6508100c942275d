//! Distinct items: a bipartite matching of items with values.
//!
//! Items with at least as many values as there are items always find a free one. Only the scarce
//! items need a matching, which is found by augmenting paths.

use std::sync::Arc;

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::{FALSE, FormulaId, TRUE};
use crate::json::interned_values::{JsonValue, ValueId};
use crate::schema_nodes::JsonType;
use crate::solver::SolverTimer;
use crate::solver::context::SolverContext;
use crate::solver::strings::EnumLists;
use crate::solver::{ENOUGH_VALUES, Enumeration};

/// Maximum number of values that are enumerated for one item; more count as enough. Chosen, not
/// measured.
pub(crate) const MAX_ENUMERATED: usize = 256;

/// Items with fewer values are tried value by value where they must differ from later items.
/// Chosen, not measured.
pub(crate) const FEW_VALUES: usize = 64;

/// Values visited that count as one step. Chosen, not measured.
const VALUES_PER_STEP: usize = 512;

/// The enumerated numbers or strings of a formula.
#[derive(Debug)]
pub(in crate::solver) enum KnownValues {
    All(Arc<[ValueId]>),
    /// At least this many.
    Plenty(usize),
}

impl SolverContext {
    /// Returns `true` if all items can have distinct values, none of them `taken`. `current` is the
    /// formula of the item being read.
    pub(in crate::solver) fn can_be_distinct(
        &mut self,
        items: &[(FormulaId, u64)],
        current: Option<FormulaId>,
        taken: &[ValueId],
    ) -> Result<bool, Error> {
        let mut scarce: Vec<Arc<[ValueId]>> = Vec::new();
        let mut kinds = 0;
        let all = items.iter().fold(0, |all: u64, kind| all.saturating_add(kind.1));
        let all = all.saturating_add(u64::from(current.is_some()));
        let enough = usize::try_from(all).map_or(MAX_ENUMERATED, |all| all.min(MAX_ENUMERATED));
        let mut known: FxHashMap<FormulaId, Enumeration> = FxHashMap::default();
        let current = current.map(|current| (current, 1));
        for (at, &(item, count)) in items.iter().chain(&current).enumerate() {
            // All others have enough values, whatever the current item takes.
            if at == items.len() && scarce.is_empty() {
                break;
            }
            let listed = match known.get(&item) {
                Some(listed) => listed.clone(),
                None => self.enumerate_values(item, enough, taken)?,
            };
            known.insert(item, listed.clone());
            let Enumeration::All(values) = listed else { continue };
            if (values.len() as u64) < count {
                return Ok(false);
            }
            let values: Arc<[ValueId]> = values.into();
            scarce.extend((0..count).map(|_| Arc::clone(&values)));
            kinds += 1;
        }
        if kinds == 1 {
            // One kind of items, with as many values as items.
            return Ok(true);
        }
        // An item with as many values as there are items always finds a free one.
        let mut owner = FxHashMap::default();
        for item in 0..scarce.len() {
            self.base.count_steps(scarce[item].len() / VALUES_PER_STEP)?;
            if !augment_matching(item, &scarce, &mut owner, &mut FxHashSet::default()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

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
                JsonType::Bool => Some(self.enumerate_booleans(formula)),
                JsonType::Number => self.enumerate_scalars(formula, ty, enough + taken.len())?,
                JsonType::String => self.enumerate_scalars(formula, ty, enough + taken.len())?,
                JsonType::Array | JsonType::Object if !self.has_value_of_type(formula, ty)? => {
                    continue;
                }
                JsonType::Array | JsonType::Object => {
                    match self.enumerate_containers(formula, ty, enough + taken.len(), depth)? {
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

    fn enumerate_booleans(&mut self, formula: FormulaId) -> Vec<ValueId> {
        let truths = [false, true].into_iter();
        let truths = truths.filter(|&truth| self.base.formulas.holds_for_boolean(formula, truth));
        let truths: Vec<bool> = truths.collect();
        truths
            .into_iter()
            .map(|truth| self.base.schema.values.intern(JsonValue::Bool(truth)))
            .collect()
    }

    /// Returns all numbers or strings of a formula unless there are at least `enough`. Results are
    /// cached, since the items of an array are queried repeatedly.
    fn enumerate_scalars(
        &mut self,
        formula: FormulaId,
        ty: JsonType,
        enough: usize,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        let known = match self.answers.listed.get(&(formula, ty)) {
            Some(KnownValues::All(values)) => {
                return Ok((values.len() < enough).then(|| values.to_vec()));
            }
            Some(&KnownValues::Plenty(known)) => known,
            None => 0,
        };
        if enough <= known {
            return Ok(None);
        }
        // The next query mostly asks for one more, so double.
        let requested = if known > 0 { 2 * enough } else { enough };
        let listed = match ty {
            JsonType::Number => self.enumerate_number_values(formula, requested)?,
            _ => self.enumerate_strings(formula, requested)?,
        };
        let (found, listed) = match listed {
            Some(values) => {
                let few = (values.len() < enough).then(|| values.clone());
                (KnownValues::All(values.into()), few)
            }
            None => (KnownValues::Plenty(requested), None),
        };
        self.answers.listed.insert((formula, ty), found);
        Ok(listed)
    }

    fn enumerate_number_values(
        &mut self,
        formula: FormulaId,
        enough: usize,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        if formula == TRUE || self.base.numbers(formula).is_infinite()? {
            return Ok(None);
        }
        Ok(self.base.numbers(formula).enumerate(enough)?.map(|numbers| {
            let values = numbers.into_iter().map(JsonValue::Number);
            values.map(|value| self.base.schema.values.intern(value)).collect()
        }))
    }

    fn enumerate_strings(
        &mut self,
        formula: FormulaId,
        enough: usize,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        if let Some(lists) = self.base.enum_lists(formula) {
            return self.enumerate_enum_strings(formula, &lists, enough);
        }
        let Some(language) = self.languages.language(&self.base, formula)? else {
            return Ok(Some(Vec::new()));
        };
        if formula == TRUE
            || enough as u64 <= ENOUGH_VALUES
                && self.languages.has_many_strings(&self.base, language)?
        {
            return Ok(None);
        }
        let mut found: Vec<String> = Vec::new();
        while found.len() < enough {
            self.base.count_steps(1 + found.len() / VALUES_PER_STEP)?;
            let strings: Vec<&str> = found.iter().map(String::as_str).collect();
            let Some(string) = self.languages.fresh_string(language, &strings)? else {
                let values = found.into_iter().map(JsonValue::String);
                return Ok(Some(
                    values.map(|value| self.base.schema.values.intern(value)).collect(),
                ));
            };
            found.push(string);
        }
        Ok(None)
    }

    /// Returns the result of [`SolverContext::enumerate_strings`] if all strings are in
    /// enumerations.
    fn enumerate_enum_strings(
        &mut self,
        formula: FormulaId,
        lists: &EnumLists,
        enough: usize,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        self.languages.build_automata(&mut self.base, formula)?;
        let (mut values, mut seen) = (Vec::new(), FxHashSet::default());
        for string in lists.iter().flat_map(|strings| strings.iter()) {
            if !self.languages.string_satisfies(&self.base, formula, string)? {
                continue;
            }
            let value = self.base.schema.values.intern(JsonValue::String(string.clone()));
            if seen.insert(value) {
                values.push(value);
            }
            if values.len() >= enough {
                return Ok(None);
            }
        }
        Ok(Some(values))
    }
}

/// Assigns a value to an item along an augmenting path. Returns `false` if there is none.
fn augment_matching(
    item: usize,
    values: &[Arc<[ValueId]>],
    owner: &mut FxHashMap<ValueId, usize>,
    tried: &mut FxHashSet<ValueId>,
) -> bool {
    if let Some(&free) = values[item].iter().find(|value| !owner.contains_key(value)) {
        owner.insert(free, item);
        return true;
    }
    for &value in values[item].iter() {
        if !tried.insert(value) {
            continue;
        }
        let other = owner[&value];
        if augment_matching(other, values, owner, tried) {
            owner.insert(value, item);
            return true;
        }
    }
    false
}
