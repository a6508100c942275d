//! Enumerates the numbers and strings that satisfy a formula.

use std::sync::Arc;

use formalm_core::{CompactMap, Error};
use rustc_hash::FxHashSet;

use crate::formula::{FormulaId, TRUE};
use crate::json::interned_values::{JsonValue, ValueId};
use crate::schema_nodes::JsonType;
use crate::solver::ENOUGH_VALUES;
use crate::solver::enumeration::VALUES_PER_STEP;
use crate::solver::formula_base::FormulaBase;
use crate::solver::strings::EnumLists;
use crate::solver::strings::languages::Languages;

/// The enumerated numbers or strings of a formula.
#[derive(Debug)]
enum KnownScalars {
    All(Arc<[ValueId]>),
    /// At least this many.
    Plenty(usize),
}

/// The numbers and strings enumerated so far.
#[derive(Debug, Default)]
pub(super) struct ScalarEnumerations {
    known: CompactMap<(FormulaId, JsonType), KnownScalars>,
}

impl ScalarEnumerations {
    /// Returns all numbers or strings of a formula unless there are at least `enough`. Results are
    /// cached, since the items of an array are queried repeatedly.
    pub(super) fn enumerate(
        &mut self,
        base: &mut FormulaBase,
        languages: &mut Languages,
        formula: FormulaId,
        ty: JsonType,
        enough: usize,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        let known = match self.known.get(&(formula, ty)) {
            Some(KnownScalars::All(values)) => {
                return Ok((values.len() < enough).then(|| values.to_vec()));
            }
            Some(&KnownScalars::Plenty(known)) => known,
            None => 0,
        };
        if enough <= known {
            return Ok(None);
        }
        // The next query mostly asks for one more, so double.
        let requested = if known > 0 { 2 * enough } else { enough };
        let listed = match ty {
            JsonType::Number => enumerate_numbers(base, formula, requested)?,
            _ => enumerate_strings(base, languages, formula, requested)?,
        };
        let (found, listed) = match listed {
            Some(values) => {
                let few = (values.len() < enough).then(|| values.clone());
                (KnownScalars::All(values.into()), few)
            }
            None => (KnownScalars::Plenty(requested), None),
        };
        self.known.insert((formula, ty), found);
        Ok(listed)
    }
}

fn enumerate_numbers(
    base: &mut FormulaBase,
    formula: FormulaId,
    enough: usize,
) -> Result<Option<Vec<ValueId>>, Error> {
    if formula == TRUE || base.numbers(formula).has_no_bound()? {
        return Ok(None);
    }
    Ok(base.numbers(formula).enumerate(enough)?.map(|numbers| {
        let values = numbers.into_iter().map(JsonValue::Number);
        values.map(|value| base.schema.values.intern(value)).collect()
    }))
}

fn enumerate_strings(
    base: &mut FormulaBase,
    languages: &mut Languages,
    formula: FormulaId,
    enough: usize,
) -> Result<Option<Vec<ValueId>>, Error> {
    if let Some(lists) = base.enum_lists(formula) {
        return enumerate_enum_strings(base, languages, formula, &lists, enough);
    }
    let Some(language) = languages.language(base, formula)? else {
        return Ok(Some(Vec::new()));
    };
    if formula == TRUE
        || enough as u64 <= ENOUGH_VALUES && languages.has_many_strings(base, language)?
    {
        return Ok(None);
    }
    let mut found: Vec<String> = Vec::new();
    while found.len() < enough {
        base.count_steps(1 + found.len() / VALUES_PER_STEP)?;
        let strings: Vec<&str> = found.iter().map(String::as_str).collect();
        let Some(string) = languages.fresh_string(language, &strings)? else {
            let values = found.into_iter().map(JsonValue::String);
            return Ok(Some(values.map(|value| base.schema.values.intern(value)).collect()));
        };
        found.push(string);
    }
    Ok(None)
}

/// Returns the result of [`enumerate_strings`] if all strings are in
/// enumerations.
fn enumerate_enum_strings(
    base: &mut FormulaBase,
    languages: &mut Languages,
    formula: FormulaId,
    lists: &EnumLists,
    enough: usize,
) -> Result<Option<Vec<ValueId>>, Error> {
    languages.build_automata(base, formula)?;
    let (mut values, mut seen) = (Vec::new(), FxHashSet::default());
    for string in lists.iter().flat_map(|strings| strings.iter()) {
        if !languages.string_satisfies(base, formula, string)? {
            continue;
        }
        let value = base.schema.values.intern(JsonValue::String(string.clone()));
        if seen.insert(value) {
            values.push(value);
        }
        if values.len() >= enough {
            return Ok(None);
        }
    }
    Ok(Some(values))
}
