//! The strings within an edit distance of a language (Levenshtein).
//!
//! Write E(r, k) for the strings within k edits of a string of r, A for the characters that may be
//! written, and D(r) for r without the first characters. Then E(r, k) is the union of
//!
//! * a character of r copied, then E of the rest;
//! * A, then E(r, k − 1): an insertion;
//! * A, then E(D(r), k − 1): a substitution;
//! * E(D(r), k − 1): a deletion.
//!
//! So a state is a union of one E(r, k) for each k. (The transducer that ReLM composes has |A|²
//! edges; here a substitution is one term.)

use formalm_core::{BudgetExhausted, CharSet};

use crate::language_expression::Expression;
use crate::terms::derivative::Deriver;
use crate::terms::edit_and_rewrite_plans::{EditOperations, EditPlan, EditsId, ImageKind};
use crate::terms::{EMPTY, FULL, TermId, TermNode};
use crate::transduce::UnfoldedImage;

/// The allowed edits, and the region they are confined to.
#[derive(Clone, Debug)]
pub struct EditRules {
    /// Maximum number of edits.
    pub budget: u32,
    /// The characters that may be inserted or substituted.
    pub alphabet: CharSet,
    /// The allowed kinds of edits.
    pub operations: EditOperations,
    /// Edits begin after a string of this language was read unchanged; `None`: at the start.
    pub after: Option<Expression>,
    /// Edits end where a string of this language remains, unchanged; `None`: at the end.
    pub before: Option<Expression>,
    /// Edits are confined to the capturing groups of this name; the original is a single pattern.
    pub group: Option<String>,
}

/// The images under one plan of edits.
pub(crate) struct Edits<'a> {
    deriver: &'a mut Deriver,
    id: EditsId,
    plan: EditPlan,
}

impl Edits<'_> {
    pub(super) fn new(deriver: &mut Deriver, id: EditsId) -> Edits<'_> {
        let plan = *deriver.terms.plans.edits(id);
        Edits { deriver, id, plan }
    }

    /// Returns the strings within the plan's edits of `rest`, those of `rest` included.
    pub(crate) fn image(&mut self, rest: TermId) -> Result<TermId, BudgetExhausted> {
        let edited = match self.plan.after {
            None => self.anywhere(rest)?,
            Some(gate) => self.gated(rest, gate)?,
        };
        // Members without such a region stay unchanged.
        Ok(if self.plan.after.is_some() || self.plan.before.is_some() {
            self.deriver.terms.alt(vec![rest, edited])
        } else {
            edited
        })
    }

    /// Returns E(rest, budget of the plan) at the start of a character.
    pub(super) fn anywhere(&mut self, rest: TermId) -> Result<TermId, BudgetExhausted> {
        self.within(rest, self.plan.budget, 0)
    }

    /// Returns E(rest, budget), inside a character or at its start.
    pub(super) fn within(
        &mut self,
        rest: TermId,
        budget: u32,
        inside: u8,
    ) -> Result<TermId, BudgetExhausted> {
        let before = self.plan.before;
        if rest == EMPTY || budget == 0 && before.is_none() {
            return Ok(rest);
        }
        if rest == FULL && before.is_none() {
            return Ok(FULL);
        }
        let nullable = inside == 0 && self.reaches_end(rest, budget)?;
        let change = ImageKind::Edit { budget, inside, edits: self.id };
        Ok(self.deriver.terms.intern(TermNode::Image { rest, change, nullable }))
    }

    /// Returns `true` if deletions alone reach the end of a string.
    fn reaches_end(&mut self, mut rest: TermId, budget: u32) -> Result<bool, BudgetExhausted> {
        let EditPlan { before, operations, .. } = self.plan;
        for left in (0..=budget).rev() {
            let terms = &self.deriver.terms;
            let ends = terms.nullable(rest, &[])
                && before.is_none_or(|before| terms.nullable(before, &[]));
            if ends || left == 0 || !operations.delete || rest == EMPTY {
                return Ok(ends);
            }
            if terms.properties(rest).min_len > left.saturating_mul(4) {
                return Ok(false);
            }
            rest = self.deriver.drop_first_char(rest)?;
        }
        Ok(false)
    }

    /// Returns the strings of `rest` that are edited once a string of `gate` was read unchanged.
    pub(super) fn gated(&mut self, rest: TermId, gate: TermId) -> Result<TermId, BudgetExhausted> {
        if rest == EMPTY || gate == EMPTY {
            return Ok(EMPTY);
        }
        let open = self.deriver.terms.nullable(gate, &[]);
        let nullable = open && self.reaches_end(rest, self.plan.budget)?;
        let change = ImageKind::Gate { gate, edits: self.id };
        Ok(self.deriver.terms.intern(TermNode::Image { rest, change, nullable }))
    }

    /// Unfolds E(rest, budget) at the start of a character.
    pub(super) fn unfold(
        &mut self,
        rest: TermId,
        budget: u32,
    ) -> Result<UnfoldedImage, BudgetExhausted> {
        let EditPlan { alphabet, before, operations, .. } = self.plan;
        let EditOperations { insert, delete, substitute } = operations;
        let mut unfolded = UnfoldedImage::default();
        unfolded.copies.push((rest, ImageKind::Edit { budget, inside: 0, edits: self.id }));
        if let Some(before) = before {
            unfolded.others.push(self.deriver.terms.and(vec![rest, before]));
        }
        if budget == 0 {
            return Ok(unfolded);
        }
        let same = if insert { self.within(rest, budget - 1, 0)? } else { EMPTY };
        let without = if delete || substitute {
            let dropped = self.deriver.drop_first_char(rest)?;
            self.within(dropped, budget - 1, 0)?
        } else {
            EMPTY
        };
        let instead = if substitute { without } else { EMPTY };
        let tail = self.deriver.terms.alt(vec![same, instead]);
        let written = self.deriver.terms.cat(alphabet, tail);
        let deleted = if delete { without } else { EMPTY };
        unfolded.others.extend([written, deleted].into_iter().filter(|&other| other != EMPTY));
        Ok(unfolded)
    }
}
