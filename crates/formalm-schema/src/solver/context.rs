//! The solver's tables (formulas, string automata, memoized answers).
//!
//! Everything here only grows while a schema automaton is in use, except for states of unbounded
//! automata that a lookahead visits: these are rolled back.

use formalm_core::memory_bytes;

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

memory_bytes!(SolverContext { base, languages, answers, expansions, enumerations; options });

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
}

impl HasFormulas for SolverContext {
    #[inline]
    fn base(&mut self) -> &mut FormulaBase {
        &mut self.base
    }
}
