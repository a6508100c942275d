//! Lowering of language expressions to terms.

use formalm_core::{BudgetExhausted, StepMeter, deadline::check_deadline};
use rustc_hash::FxHashMap;

use crate::language_expression::{Expression, ExpressionNode};
use crate::terms::derivative::Deriver;
use crate::terms::edit_and_rewrite_plans::{EditPlan, EditsId, RewritePlan, RewriteRule, RulesId};
use crate::terms::pattern_lowering::PatternLowering;
use crate::terms::{EMPTY, EPSILON, TermId, TermNode};
use crate::transduce::EditRules;

/// The lowering of one expression. Shared parts are lowered once: an expression is a graph, whose
/// tree may be exponentially larger.
pub(crate) struct ExpressionLowering {
    deriver: Deriver,
    /// Terms of shared expressions by address. Keeps the expressions alive, so that no other node
    /// gets their address.
    shared: FxHashMap<usize, (Expression, TermId)>,
}

impl ExpressionLowering {
    pub(crate) fn new(work: StepMeter) -> ExpressionLowering {
        ExpressionLowering { deriver: Deriver::new(work), shared: FxHashMap::default() }
    }

    /// Returns the terms built.
    pub(crate) fn into_deriver(self) -> Deriver {
        self.deriver
    }

    /// Returns the step meter, to report an exhausted budget.
    pub(crate) fn work(&self) -> StepMeter {
        self.deriver.work
    }

    pub(crate) fn lower(&mut self, expression: &Expression) -> Result<TermId, BudgetExhausted> {
        let Some(address) = expression.shared_address() else {
            return self.lower_node(expression);
        };
        if let Some((_, term)) = self.shared.get(&address) {
            return Ok(*term);
        }
        let term = self.lower_node(expression)?;
        self.shared.insert(address, (expression.clone(), term));
        Ok(term)
    }

    /// Lowers an expression with edits, and returns the plan of the edits too.
    pub(crate) fn lower_edits(
        &mut self,
        original: &Expression,
        rules: &EditRules,
    ) -> Result<(EditsId, TermId), BudgetExhausted> {
        let plan = self.edit_plan(rules)?;
        let edits = self.deriver.terms.plans.add_edits(plan);
        let edited = match (original.node(), &rules.group) {
            (ExpressionNode::Pattern(pattern), Some(name)) => {
                PatternLowering::edited_pattern(&mut self.deriver, pattern, name, edits)?
            }
            _ => {
                let rest = self.lower(original)?;
                self.deriver.edits(edits).image(rest)?
            }
        };
        Ok((edits, edited))
    }

    fn lower_node(&mut self, expression: &Expression) -> Result<TermId, BudgetExhausted> {
        self.deriver.work.step()?;
        Ok(match expression.node() {
            ExpressionNode::Pattern(pattern) => {
                PatternLowering::pattern(&mut self.deriver, pattern)
            }
            ExpressionNode::Lexeme(pattern) => PatternLowering::lexeme(&mut self.deriver, pattern),
            ExpressionNode::Literals(list) => {
                let check = || check_deadline().map_err(|_| BudgetExhausted);
                self.deriver.terms.literals_checked(list.clone(), check)?
            }
            ExpressionNode::Custom(recognizer, name) => {
                let terms = &mut self.deriver.terms;
                // Intersected with a recognizer's language, the language of all strings is no
                // condition.
                terms.any_string();
                let start = terms.recognizers.start(recognizer, *name);
                terms.intern(TermNode::Custom(start))
            }
            ExpressionNode::Union(list) => {
                let list = self.lower_all(list)?;
                self.deriver.terms.alt(list)
            }
            ExpressionNode::Concat(list) => {
                let list = self.lower_all(list)?;
                let terms = &mut self.deriver.terms;
                list.into_iter().rev().fold(EPSILON, |tail, head| terms.cat(head, tail))
            }
            ExpressionNode::Repeat(one, min, max) => {
                let body = self.lower(one)?;
                self.deriver.terms.repeat_merged(body, *min, *max)
            }
            ExpressionNode::Intersection(list) => {
                self.deriver.terms.any_string();
                let list = self.lower_all(list)?;
                self.deriver.terms.and(list)
            }
            ExpressionNode::Difference(left, right) => {
                let (left, right) = (self.lower(left)?, self.lower(right)?);
                let outside = self.deriver.terms.not(right);
                self.deriver.terms.and(vec![left, outside])
            }
            ExpressionNode::Complement(one) => {
                let inside = self.lower(one)?;
                let terms = &mut self.deriver.terms;
                let (any, outside) = (terms.any_string(), terms.not(inside));
                terms.and(vec![any, outside])
            }
            ExpressionNode::Edits(one, rules) => self.lower_edits(one, rules)?.1,
            ExpressionNode::Rewrite { original, rules, optional } => {
                let rules = self.rewrite_rules(rules, *optional)?;
                let rest = self.lower(original)?;
                self.deriver.rewriting(rules).image(rest)?
            }
        })
    }

    fn lower_all(&mut self, list: &[Expression]) -> Result<Vec<TermId>, BudgetExhausted> {
        list.iter().map(|one| self.lower(one)).collect()
    }

    fn edit_plan(&mut self, rules: &EditRules) -> Result<EditPlan, BudgetExhausted> {
        let mut region =
            |one: &Option<Expression>| one.as_ref().map(|one| self.lower(one)).transpose();
        let (after, before) = (region(&rules.after)?, region(&rules.before)?);
        Ok(EditPlan {
            budget: rules.budget,
            alphabet: self.deriver.terms.class(&rules.alphabet),
            operations: rules.operations,
            after,
            before,
        })
    }

    fn rewrite_rules(
        &mut self,
        rules: &[(String, Expression)],
        optional: bool,
    ) -> Result<RulesId, BudgetExhausted> {
        let mut lowered = Vec::with_capacity(rules.len());
        for (source, target) in rules {
            let target = self.lower(target)?;
            let vanishes = self.deriver.terms.nullable(target, &[]);
            let target = if vanishes { self.without_empty(target) } else { target };
            lowered.push(RewriteRule { source: source.clone().into_bytes(), target, vanishes });
        }
        lowered.sort_by(|one, other| one.source.cmp(&other.source));
        let terms = &mut self.deriver.terms;
        let sources = terms.literals(lowered.iter().map(|rule| rule.source.clone()).collect());
        Ok(terms.plans.add_rewrites(RewritePlan { rules: lowered, optional, sources }))
    }

    /// Returns the term without the empty string.
    fn without_empty(&mut self, id: TermId) -> TermId {
        let terms = &mut self.deriver.terms;
        match *terms.get(id) {
            TermNode::Epsilon => return EMPTY,
            TermNode::Dawg(dag) => {
                let dag = terms.dawgs.without_empty(dag);
                return terms.dawg(dag);
            }
            _ => {}
        }
        let something = terms.not(EPSILON);
        terms.and(vec![id, something])
    }
}
