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

use formalm_core::{BudgetExhausted, CharSet, StepMeter};

use crate::language_expression::Expression;
use crate::terms::term_properties::TermProperties;
use crate::terms::{EMPTY, FULL, TermArena, TermId, TermNode, pattern_lowering};
use crate::transduce::{EditsId, ImageKind, UnfoldedImage};

/// The allowed kinds of edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EditOperations {
    /// Inserting a character.
    pub insert: bool,
    /// Deleting a character of the member.
    pub delete: bool,
    /// Replacing a character of the member.
    pub substitute: bool,
}

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

/// [`EditRules`], lowered to terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EditPlan {
    pub(crate) budget: u32,
    /// One character of the alphabet; `EMPTY` for none.
    pub(crate) alphabet: TermId,
    pub(crate) operations: EditOperations,
    pub(crate) after: Option<TermId>,
    pub(crate) before: Option<TermId>,
}

impl EditRules {
    pub(crate) fn lower(
        &self,
        terms: &mut TermArena,
        work: &mut StepMeter,
    ) -> Result<EditPlan, BudgetExhausted> {
        let mut region =
            |one: &Option<Expression>| one.as_ref().map(|one| one.lower(terms, work)).transpose();
        let (after, before) = (region(&self.after)?, region(&self.before)?);
        Ok(EditPlan {
            budget: self.budget,
            alphabet: pattern_lowering::class(terms, &self.alphabet),
            operations: self.operations,
            after,
            before,
        })
    }
}

impl TermArena {
    /// Registers a plan under a new id, even if an equal one exists: edits of edits must stay
    /// distinct.
    pub(crate) fn edit_plan(&mut self, plan: EditPlan) -> EditsId {
        self.images.edits.push(plan);
        EditsId((self.images.edits.len() - 1) as u32)
    }

    /// Returns the strings within the plan's edits of `rest`, those of `rest` included.
    pub(crate) fn edits(
        &mut self,
        rest: TermId,
        edits: EditsId,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        let plan = *self.images.plan(edits);
        let edited = match plan.after {
            None => self.edited_all(rest, edits, work)?,
            Some(gate) => self.gated(rest, gate, edits, work)?,
        };
        // Members without such a region stay unchanged.
        Ok(if plan.after.is_some() || plan.before.is_some() {
            self.alt(vec![rest, edited])
        } else {
            edited
        })
    }

    pub(super) fn edited_all(
        &mut self,
        rest: TermId,
        edits: EditsId,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        self.edited(rest, self.images.plan(edits).budget, 0, edits, work)
    }

    /// Returns E(rest, budget), inside a character or at its start.
    pub(super) fn edited(
        &mut self,
        rest: TermId,
        budget: u32,
        inside: u8,
        edits: EditsId,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        let before = self.images.plan(edits).before;
        if rest == EMPTY || budget == 0 && before.is_none() {
            return Ok(rest);
        }
        if rest == FULL && before.is_none() {
            return Ok(FULL);
        }
        let nullable = inside == 0 && self.reaches_end(rest, budget, edits, work)?;
        let change = ImageKind::Edit { budget, inside, edits };
        Ok(self.intern(TermNode::Image { rest, change, nullable }))
    }

    /// Returns `true` if deletions alone reach the end of a string.
    fn reaches_end(
        &mut self,
        mut rest: TermId,
        budget: u32,
        edits: EditsId,
        work: &mut StepMeter,
    ) -> Result<bool, BudgetExhausted> {
        let plan = *self.images.plan(edits);
        for left in (0..=budget).rev() {
            let ends = self.nullable(rest, &[])
                && plan.before.is_none_or(|before| self.nullable(before, &[]));
            if ends || left == 0 || !plan.operations.delete || rest == EMPTY {
                return Ok(ends);
            }
            if self.properties(rest).min_len > left.saturating_mul(4) {
                return Ok(false);
            }
            rest = self.drop_first_char(rest, work)?;
        }
        Ok(false)
    }

    pub(super) fn gated(
        &mut self,
        rest: TermId,
        gate: TermId,
        edits: EditsId,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        if rest == EMPTY || gate == EMPTY {
            return Ok(EMPTY);
        }
        let open = self.nullable(gate, &[]);
        let budget = self.images.plan(edits).budget;
        let nullable = open && self.reaches_end(rest, budget, edits, work)?;
        Ok(self.intern(TermNode::Image { rest, change: ImageKind::Gate { gate, edits }, nullable }))
    }

    pub(super) fn unfold_edits(
        &mut self,
        rest: TermId,
        budget: u32,
        edits: EditsId,
        work: &mut StepMeter,
    ) -> Result<UnfoldedImage, BudgetExhausted> {
        let plan = *self.images.plan(edits);
        let EditOperations { insert, delete, substitute } = plan.operations;
        let mut unfolded = UnfoldedImage::default();
        unfolded.copies.push((rest, ImageKind::Edit { budget, inside: 0, edits }));
        if let Some(before) = plan.before {
            unfolded.others.push(self.and(vec![rest, before]));
        }
        if budget == 0 {
            return Ok(unfolded);
        }
        let same = if insert { self.edited(rest, budget - 1, 0, edits, work)? } else { EMPTY };
        let without = if delete || substitute {
            let dropped = self.drop_first_char(rest, work)?;
            self.edited(dropped, budget - 1, 0, edits, work)?
        } else {
            EMPTY
        };
        let instead = if substitute { without } else { EMPTY };
        let tail = self.alt(vec![same, instead]);
        let written = self.cat(plan.alphabet, tail);
        let deleted = if delete { without } else { EMPTY };
        unfolded.others.extend([written, deleted].into_iter().filter(|&other| other != EMPTY));
        Ok(unfolded)
    }

    /// Returns the properties of an edited term, except `nullable`.
    pub(super) fn edit_properties(
        &self,
        rest: TermProperties,
        budget: u32,
        edits: EditsId,
    ) -> TermProperties {
        let plan = self.images.plan(edits);
        let shrinks = plan.operations.delete || plan.operations.substitute;
        let lost = if shrinks { budget.saturating_mul(4) } else { 0 };
        TermProperties {
            pure: rest.pure && plan.before.is_none(),
            min_len: rest.min_len.saturating_sub(lost),
            alphabet: rest.alphabet.join(self.properties(plan.alphabet).alphabet),
            ..rest
        }
    }
}
