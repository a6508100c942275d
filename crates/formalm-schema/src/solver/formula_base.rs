//! The common ground of all parts of the solver: the schema, the formulas over its nodes, and the
//! budget of the work on them.

use formalm_core::{Error, Resource, check_limit, deadline::DeadlineTicks};

use crate::formula::{FALSE, FormulaArena, FormulaId, TRUE};
use crate::options::JsonSchemaLimits;
use crate::schema_nodes::{KeywordRule, NodeId, ResolvedSchema};
use crate::solver::name_mentions::{NameMentions, NameMentionsCache, SchemaFormulas};
use crate::solver::numbers::NumberQuery;

/// Steps between two checks of the deadline; about 0.1 ms.
const DEADLINE_INTERVAL: u32 = 64;

/// Operands of formulas processed that count as one step. Chosen, not measured.
const FORMULA_PARTS_PER_STEP: u64 = 512;

/// Maximum depth of formulas. Walks are recursive: a level takes at most 0.5 KiB of stack, threads
/// have 2 MiB.
const MAX_FORMULA_DEPTH: u64 = 1_000;

/// The schema, its formulas, and the steps taken so far.
#[derive(Debug)]
pub(crate) struct FormulaBase {
    pub(crate) schema: ResolvedSchema,
    pub(crate) formulas: FormulaArena,
    pub(crate) limits: JsonSchemaLimits,
    mentions: NameMentionsCache,
    /// Solver steps for the current state.
    steps: u64,
    /// Formula work that was already counted as steps.
    counted_work: u64,
    ticks: DeadlineTicks,
}

impl FormulaBase {
    pub(crate) fn new(schema: ResolvedSchema, limits: JsonSchemaLimits) -> FormulaBase {
        FormulaBase {
            schema,
            formulas: FormulaArena::default(),
            limits,
            mentions: NameMentionsCache::default(),
            steps: 0,
            counted_work: 0,
            ticks: DeadlineTicks::default(),
        }
    }

    /// Returns the steps since the last reset.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Starts a query with its full step limit.
    pub(crate) fn reset_steps(&mut self) {
        self.steps = 0;
    }

    /// Counts one step. Fails if a limit is exceeded or the deadline has passed.
    pub(crate) fn count_step(&mut self) -> Result<(), Error> {
        self.count_steps(1)
    }

    /// Counts `count` steps plus the formula work since the last call. Fails if a limit is exceeded
    /// or the deadline has passed.
    pub(crate) fn count_steps(&mut self, count: usize) -> Result<(), Error> {
        let worked = self.formulas.work_done() / FORMULA_PARTS_PER_STEP;
        self.steps += count as u64 + (worked - self.counted_work);
        self.counted_work = worked;
        self.ticks.tick(1, DEADLINE_INTERVAL)?;
        self.check_formula_limits()?;
        check_limit(Resource::Steps, self.steps, self.limits.steps)
    }

    /// Fails if formulas exceed their memory or depth limit.
    pub(crate) fn check_formula_limits(&self) -> Result<(), Error> {
        let deepest = self.formulas.max_depth();
        let bytes = (self.formulas.memory_bytes() + self.schema.value_bytes) as u64;
        for (resource, needed, allowed) in [
            (Resource::Nesting, u64::from(deepest), MAX_FORMULA_DEPTH),
            (Resource::Bytes, bytes, self.limits.bytes),
        ] {
            check_limit(resource, needed, allowed)?;
        }
        Ok(())
    }

    /// Returns the formula that the child being read satisfies a node.
    pub(crate) fn child(&mut self, node: NodeId) -> FormulaId {
        match &self.schema.node(node).rules[..] {
            [] => return TRUE,
            [KeywordRule::Never] => return FALSE,
            _ => {}
        }
        self.formulas.child(self.schema.representative(node))
    }

    /// Returns the formula of an item at a position.
    pub(crate) fn item_formula_at(&mut self, ranges: &[(u32, u32, NodeId)], at: u64) -> FormulaId {
        let mut all = Vec::new();
        for &(from, to, node) in ranges {
            if u64::from(from) <= at && (at < u64::from(to) || to == u32::MAX) {
                all.push(self.child(node));
            }
        }
        self.formulas.and(all)
    }

    /// Returns what a formula over an object says about names.
    pub(crate) fn name_mentions(&mut self, id: FormulaId) -> &NameMentions {
        let of = &mut SchemaFormulas { formulas: &mut self.formulas, schema: &self.schema };
        self.mentions.of(of, id)
    }

    /// Returns what some formulas together say about names. Names may occur several times.
    pub(crate) fn names_in(&mut self, all: &[FormulaId]) -> NameMentions {
        let of = &mut SchemaFormulas { formulas: &mut self.formulas, schema: &self.schema };
        self.mentions.of_all(of, all)
    }

    /// Returns the query for the numbers that satisfy a formula.
    pub(crate) fn numbers(&mut self, formula: FormulaId) -> NumberQuery<'_> {
        NumberQuery { base: self, formula }
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.formulas.memory_bytes()
            + self.mentions.memory_bytes()
            + self.schema.value_bytes
            + self.schema.nodes.len() * 200
            + self.schema.names.len() * 64
            + self.schema.values.len() * 100
    }
}

/// A context that contains formulas: a theory that needs no more, or the solver.
pub(crate) trait HasFormulas {
    fn base(&mut self) -> &mut FormulaBase;
}

impl HasFormulas for FormulaBase {
    #[inline]
    fn base(&mut self) -> &mut FormulaBase {
        self
    }
}
