//! Notes on unreachable subschemas: alternatives that contradict their siblings, and properties
//! that no instance has.

use formalm_core::Error;

use crate::formula::FormulaId;
use crate::schema_nodes::{JsonType, KeywordRule, NodeId, NoteEffect, SchemaNode, SchemaNote};
use crate::solver::context::SolverContext;

/// Step budget of all queries together, as a multiple of the limit for one search. Chosen, not
/// measured.
const STEP_MULTIPLE: u64 = 4;

/// A search for unreachable subschemas.
pub(crate) struct ReachabilityCheck<'a> {
    solver: &'a mut SolverContext,
    /// Steps of all queries so far.
    steps: u64,
    notes: Vec<SchemaNote>,
}

impl ReachabilityCheck<'_> {
    /// Returns a note for each unreachable subschema, and one that says so if the step budget ran
    /// out.
    pub(crate) fn notes(solver: &mut SolverContext) -> Vec<SchemaNote> {
        let mut check = ReachabilityCheck { solver, steps: 0, notes: Vec::new() };
        for at in 0..check.solver.base.schema.nodes.len() as u32 {
            let within = check.check_node(NodeId(at));
            if within.is_err() {
                check.solver.answers.abandon();
            }
            if within.is_err() || check.steps > STEP_MULTIPLE * check.solver.base.limits.steps {
                let message = format!(
                    "could not check all parts of the schema for reachability within {} steps",
                    check.steps
                );
                check.notes.push(SchemaNote {
                    place: "#".to_owned(),
                    message,
                    effect: NoteEffect::Exact,
                });
                break;
            }
        }
        let mut notes = check.notes;
        notes.sort_by(|one, other| one.place.cmp(&other.place));
        notes.dedup();
        notes
    }

    /// Adds notes on the alternatives and properties of one node.
    fn check_node(&mut self, id: NodeId) -> Result<(), Error> {
        let whole = self.solver.base.child(id);
        let rules = self.solver.base.schema.node(id).rules.clone();
        if !self.solver.base.schema.node(id).has_location() || !self.is_satisfiable(whole)? {
            return Ok(());
        }
        for rule in rules.iter() {
            match rule {
                KeywordRule::AnyOf(list) | KeywordRule::OneOf(list) => {
                    for &one in list {
                        let part = self.solver.base.child(one);
                        let both = self.solver.base.formulas.both(whole, part);
                        let message = "no instance satisfies this alternative together with its \
                                       sibling keywords";
                        self.note_if_unreachable(both, one, message)?;
                    }
                }
                KeywordRule::Properties(properties) => {
                    for (which, node) in properties.iter() {
                        let Some([name]) = which.names.as_deref() else { continue };
                        let rules = vec![
                            KeywordRule::Types { types: vec![JsonType::Object], integer: false },
                            KeywordRule::Required(vec![*name]),
                        ];
                        let with = self.solver.base.schema.add_node(SchemaNode::synthetic(rules));
                        let with = self.solver.base.child(with);
                        let both = self.solver.base.formulas.both(whole, with);
                        let message = "no instance has this property";
                        self.note_if_unreachable(both, *node, message)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a note if a formula is unsatisfiable.
    fn note_if_unreachable(
        &mut self,
        formula: FormulaId,
        part: NodeId,
        message: &str,
    ) -> Result<(), Error> {
        let node = self.solver.base.schema.node(part);
        // A literal `false` is intended.
        if node.rules.iter().any(|rule| matches!(rule, KeywordRule::Never)) || !node.has_location()
        {
            return Ok(());
        }
        let place = self.solver.base.schema.json_pointer(part);
        if !self.is_satisfiable(formula)? {
            self.notes.push(SchemaNote {
                place,
                message: message.to_owned(),
                effect: NoteEffect::Exact,
            });
        }
        Ok(())
    }

    /// Decides a formula with a step limit of its own.
    fn is_satisfiable(&mut self, formula: FormulaId) -> Result<bool, Error> {
        self.solver.base.reset_steps();
        let met = self.solver.has_value(formula);
        self.steps += self.solver.base.steps();
        met
    }
}
