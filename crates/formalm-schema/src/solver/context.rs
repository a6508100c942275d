//! The solver's tables (formulas, string automata, memoized answers).
//!
//! Everything here only grows while a schema automaton is in use, except for states of unbounded
//! automata that a lookahead visits: these are rolled back.

use crate::expansion::Expansions;
use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
use crate::schema_nodes::ResolvedSchema;
use crate::solver::AnswerCache;
use crate::solver::enumeration::EnumerationCache;
use crate::solver::formula_base::{FormulaBase, HasFormulas};
use crate::solver::strings::languages::Languages;

pub(crate) use crate::solver::strings::languages::{LanguageId, any_string};

/// The solver with its tables and limits.
#[derive(Debug)]
pub(crate) struct SolverContext {
    pub(crate) base: FormulaBase,
    pub(crate) languages: Languages,
    pub(crate) options: JsonSchemaOptions,
    pub(crate) answers: AnswerCache,
    pub(crate) expansions: Expansions,
    pub(crate) enumerations: EnumerationCache,
}

impl SolverContext {
    pub(crate) fn new(
        schema: ResolvedSchema,
        options: JsonSchemaOptions,
        limits: JsonSchemaLimits,
    ) -> SolverContext {
        SolverContext {
            base: FormulaBase::new(schema, limits),
            languages: Languages::default(),
            options,
            answers: AnswerCache::default(),
            expansions: Expansions::default(),
            enumerations: EnumerationCache::default(),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.base.memory_bytes()
            + self.languages.memory_bytes()
            + self.answers.memory_bytes()
            + self.expansions.memory_bytes()
            + self.enumerations.memory_bytes()
    }
}

impl HasFormulas for SolverContext {
    #[inline]
    fn base(&mut self) -> &mut FormulaBase {
        &mut self.base
    }
}
