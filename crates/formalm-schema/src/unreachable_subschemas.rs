//! Notes on unreachable subschemas: alternatives that contradict their siblings, and properties
//! that no instance has.

use formalm_automata::Error;

use crate::formula::FormulaId;
use crate::schema_nodes::{JsonType, KeywordRule, NodeId, NoteEffect, SchemaNode, SchemaNote};
use crate::solver::context::SolverContext;

/// Step budget of all queries together, as a multiple of the limit for one search. Chosen, not
/// measured.
const STEP_MULTIPLE: u64 = 4;

impl SolverContext {
    /// Returns a note for each unreachable subschema, and one that says so if the step budget ran
    /// out.
    pub(crate) fn unreachable_notes(&mut self) -> Vec<SchemaNote> {
        let (mut notes, mut taken) = (Vec::new(), 0);
        for at in 0..self.base.schema.nodes.len() as u32 {
            let within = self.check_node(NodeId(at), &mut taken, &mut notes);
            if within.is_err() {
                self.answers.abandon();
            }
            if within.is_err() || taken > STEP_MULTIPLE * self.base.limits.steps {
                let message = format!(
                    "could not check all parts of the schema for reachability within {taken} steps"
                );
                notes.push(SchemaNote {
                    place: "#".to_owned(),
                    message,
                    effect: NoteEffect::Exact,
                });
                break;
            }
        }
        notes.sort_by(|one, other| one.place.cmp(&other.place));
        notes.dedup();
        notes
    }

    /// Adds notes on the alternatives and properties of one node.
    fn check_node(
        &mut self,
        id: NodeId,
        taken: &mut u64,
        notes: &mut Vec<SchemaNote>,
    ) -> Result<(), Error> {
        let whole = self.base.child(id);
        let rules = self.base.schema.node(id).rules.clone();
        if !self.base.schema.node(id).has_location() || !self.is_satisfiable(whole, taken)? {
            return Ok(());
        }
        for rule in rules.iter() {
            match rule {
                KeywordRule::AnyOf(list) | KeywordRule::OneOf(list) => {
                    for &one in list {
                        let part = self.base.child(one);
                        let both = self.base.formulas.both(whole, part);
                        let message = "no instance satisfies this alternative together with its \
                                       sibling keywords";
                        self.note_if_unreachable(both, one, message, taken, notes)?;
                    }
                }
                KeywordRule::Properties(properties) => {
                    for (which, node) in properties.iter() {
                        let Some([name]) = which.names.as_deref() else { continue };
                        let rules = vec![
                            KeywordRule::Types { types: vec![JsonType::Object], integer: false },
                            KeywordRule::Required(vec![*name]),
                        ];
                        let with = self.base.schema.add_node(SchemaNode::synthetic(rules));
                        let with = self.base.child(with);
                        let both = self.base.formulas.both(whole, with);
                        let message = "no instance has this property";
                        self.note_if_unreachable(both, *node, message, taken, notes)?;
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
        taken: &mut u64,
        notes: &mut Vec<SchemaNote>,
    ) -> Result<(), Error> {
        let node = self.base.schema.node(part);
        // A literal `false` is intended.
        if node.rules.iter().any(|rule| matches!(rule, KeywordRule::Never)) || !node.has_location()
        {
            return Ok(());
        }
        let place = self.base.schema.json_pointer(part);
        if !self.is_satisfiable(formula, taken)? {
            notes.push(SchemaNote {
                place,
                message: message.to_owned(),
                effect: NoteEffect::Exact,
            });
        }
        Ok(())
    }

    /// Decides a formula with a step limit of its own.
    fn is_satisfiable(&mut self, formula: FormulaId, taken: &mut u64) -> Result<bool, Error> {
        self.base.reset_steps();
        let met = self.has_value(formula);
        *taken += self.base.steps();
        met
    }
}
