//! The solver's tables (formulas, string automata, memoized answers).
//!
//! Everything here only grows while a schema automaton is in use, except for states of unbounded
//! automata that a lookahead visits: these are rolled back.

use formalm_automata::Error;

use crate::formula::{Formula, FormulaId};
use crate::interner::CompactMap;
use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
use crate::schema_nodes::{JsonType, NodeId, ResolvedSchema};
use crate::solver::AnswerCache;
use crate::solver::enumeration::EnumerationCache;
use crate::solver::formula_base::FormulaBase;
use crate::solver::strings::languages::Languages;

pub(crate) use crate::solver::strings::languages::{LanguageId, any_string};

/// Number of operands above which [`SolverContext::formula_for_type`] memoizes its results. Chosen,
/// not measured.
const MEMOIZED_PARTS: usize = 16;

/// The solver with its tables and limits.
#[derive(Debug)]
pub(crate) struct SolverContext {
    pub(crate) base: FormulaBase,
    pub(crate) languages: Languages,
    pub(crate) options: JsonSchemaOptions,
    pub(crate) answers: AnswerCache,
    /// Memoized expansions of nodes. The last part of the key is `comparing_alternatives`.
    pub(crate) expanded: CompactMap<(NodeId, JsonType, bool), FormulaId>,
    /// Memoized expansions of formulas with many operands over the child.
    typed: CompactMap<(FormulaId, JsonType, bool), FormulaId>,
    /// Alternatives are being compared, so nodes are expanded without rewriting `oneOf` and `if`.
    pub(crate) comparing_alternatives: bool,
    pub(crate) enumerations: EnumerationCache,
    /// Current depth of nested expansions.
    pub(crate) expansion_depth: u64,
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
            expanded: CompactMap::default(),
            typed: CompactMap::default(),
            comparing_alternatives: false,
            enumerations: EnumerationCache::default(),
            expansion_depth: 0,
        }
    }

    /// Returns a formula over the child as a formula over the atoms of one type.
    pub(crate) fn formula_for_type(
        &mut self,
        id: FormulaId,
        ty: JsonType,
    ) -> Result<FormulaId, Error> {
        match *self.base.formulas.get(id) {
            Formula::True | Formula::False => return Ok(id),
            Formula::Child(node) => return self.expand(node, ty),
            _ => {}
        }
        let key = (id, ty, self.comparing_alternatives);
        if let Some(&known) = self.typed.get(&key) {
            return Ok(known);
        }
        let nodes = self.base.formulas.queried_nodes(&[id]);
        let mut answers = Vec::with_capacity(nodes.len());
        for &node in &nodes {
            answers.push(self.expand(node, ty)?);
        }
        let typed = self.base.formulas.substitute_verdicts(id, &nodes, &answers);
        if self.base.formulas.part_count(typed) > MEMOIZED_PARTS {
            self.typed.insert(key, typed);
        }
        Ok(typed)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.base.memory_bytes()
            + self.languages.memory_bytes()
            + self.answers.memory_bytes()
            + self.expanded.memory_bytes()
            + self.typed.memory_bytes()
            + self.enumerations.memory_bytes()
    }
}
