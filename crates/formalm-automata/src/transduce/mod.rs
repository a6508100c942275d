//! Images of languages: strings within an edit distance of a member, and members with rewrites.
//!
//! Each is a term over the term of the original ([`TermNode::Image`]) that is unfolded where it is
//! read. An edit or rule that no input has reached costs nothing. Nothing is composed eagerly, and
//! images nest: the original may be an image itself.

mod character_successors;
mod edit_distance;
mod edit_script;
mod expression_operations;
mod image_union;
mod reversal;
mod rewrite_rules;

use std::sync::Arc;

use formalm_core::{BudgetExhausted, StepMeter};
use rustc_hash::FxHashMap;

use crate::terms::term_properties::TermProperties;
use crate::terms::{EMPTY, TermArena, TermId, TermNode};

pub(crate) use edit_distance::EditPlan;
pub use edit_distance::{EditOperations, EditRules};
pub use edit_script::EditScript;
pub(crate) use edit_script::script;
pub(crate) use reversal::{reversed_pattern, reversed_text};
pub(crate) use rewrite_rules::{RewritePlan, RewriteRule};

/// Identifies an [`EditPlan`] of one [`TermArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EditsId(u32);

/// Identifies a [`RewritePlan`] of one [`TermArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RulesId(u32);

/// The kind of an image: how its strings are made from those of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ImageKind {
    /// Reads unchanged while `gate` is read too; where the gate ends, edits may begin.
    Gate { gate: TermId, edits: EditsId },
    /// At most `budget` edits; `inside` bytes of the current character remain.
    Edit { budget: u32, inside: u8, edits: EditsId },
    /// Replaces occurrences of the rules' sources.
    Rewrite { rules: RulesId },
}

/// The continuations of an image at the start of a character.
#[derive(Debug, Default)]
struct UnfoldedImage {
    /// The next character is the original's; its first byte leads to an image of the rest.
    copies: Vec<(TermId, ImageKind)>,
    /// All other continuations, as terms.
    others: Vec<TermId>,
}

/// The tables that the images of one arena share.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageTables {
    pub(super) edits: Vec<EditPlan>,
    pub(super) rules: Vec<Arc<RewritePlan>>,
    unfolded: FxHashMap<TermId, Arc<UnfoldedImage>>,
    /// Originals, closed under sources that may vanish.
    pub(super) closed: FxHashMap<(TermId, RulesId), TermId>,
    pub(super) successors: character_successors::CharSuccessors,
}

impl ImageTables {
    /// Returns the terms that images hold in addition to their originals: their bytes are read too.
    pub(crate) fn leaves(&self, change: ImageKind) -> Vec<TermId> {
        match change {
            ImageKind::Gate { edits, .. } | ImageKind::Edit { edits, .. } => {
                let plan = self.plan(edits);
                let gate = match change {
                    ImageKind::Gate { gate, .. } => Some(gate),
                    _ => None,
                };
                [Some(plan.alphabet), plan.after, plan.before, gate].into_iter().flatten().collect()
            }
            ImageKind::Rewrite { rules } => self.rewrites(rules).leaves(),
        }
    }

    pub(crate) fn plan(&self, id: EditsId) -> &EditPlan {
        &self.edits[id.0 as usize]
    }

    pub(crate) fn rewrites(&self, id: RulesId) -> &RewritePlan {
        &self.rules[id.0 as usize]
    }

    pub(super) fn shared_rewrites(&self, id: RulesId) -> Arc<RewritePlan> {
        self.rules[id.0 as usize].clone()
    }

    /// Returns the memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.unfolded.len() * 160 + self.closed.len() * 24 + self.successors.memory_bytes()
    }
}

impl TermArena {
    /// Returns the image of `rest` of the given kind.
    pub(crate) fn image(
        &mut self,
        rest: TermId,
        change: ImageKind,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        work.step()?;
        match change {
            ImageKind::Edit { budget, inside, edits } => {
                self.edited(rest, budget, inside, edits, work)
            }
            ImageKind::Gate { gate, edits } => self.gated(rest, gate, edits, work),
            ImageKind::Rewrite { rules } => self.rewritten(rest, rules, work),
        }
    }

    /// Returns the properties of an image, except `nullable`.
    pub(crate) fn image_properties(
        &self,
        rest: TermProperties,
        change: ImageKind,
    ) -> TermProperties {
        match change {
            ImageKind::Edit { budget, edits, .. } => self.edit_properties(rest, budget, edits),
            ImageKind::Gate { edits, .. } => {
                let budget = self.images.plan(edits).budget;
                TermProperties { pure: false, ..self.edit_properties(rest, budget, edits) }
            }
            ImageKind::Rewrite { rules } => self.rewrite_properties(rest, rules),
        }
    }

    /// Pushes the derivative of an image.
    pub(crate) fn derive_image(
        &mut self,
        id: TermId,
        byte: u8,
        work: &mut StepMeter,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        let TermNode::Image { rest, change, .. } = *self.get(id) else { return Ok(()) };
        match change {
            ImageKind::Edit { budget, inside, edits } if inside > 0 => {
                let next = self.derive(rest, byte, &[], work)?;
                sum.push(self.edited(next, budget, inside - 1, edits, work)?);
            }
            ImageKind::Gate { gate, edits } => {
                let gate_open = self.nullable(gate, &[]);
                let gate = self.derive(gate, byte, &[], work)?;
                let next = self.derive(rest, byte, &[], work)?;
                sum.push(self.gated(next, gate, edits, work)?);
                if gate_open {
                    let open = self.edited_all(rest, edits, work)?;
                    self.derive_into(open, byte, &[], work, sum)?;
                }
            }
            _ => {
                let unfolded = self.unfold(id, work)?;
                for &(rest, change) in &unfolded.copies {
                    let next = self.derive(rest, byte, &[], work)?;
                    if next != EMPTY {
                        sum.push(self.image(next, change.after(byte), work)?);
                    }
                }
                for &other in &unfolded.others {
                    self.derive_into(other, byte, &[], work, sum)?;
                }
            }
        }
        Ok(())
    }

    fn unfold(
        &mut self,
        id: TermId,
        work: &mut StepMeter,
    ) -> Result<Arc<UnfoldedImage>, BudgetExhausted> {
        if let Some(known) = self.images.unfolded.get(&id) {
            return Ok(known.clone());
        }
        let unfolded = match *self.get(id) {
            TermNode::Image { rest, change: ImageKind::Edit { budget, edits, .. }, .. } => {
                self.unfold_edits(rest, budget, edits, work)?
            }
            TermNode::Image { rest, change: ImageKind::Rewrite { rules }, .. } => {
                self.unfold_rewrites(rest, rules, work)?
            }
            _ => UnfoldedImage::default(),
        };
        let unfolded = Arc::new(unfolded);
        self.images.unfolded.insert(id, unfolded.clone());
        Ok(unfolded)
    }

    /// Returns the derivative by all of `text`.
    pub(crate) fn derive_text(
        &mut self,
        mut id: TermId,
        text: &[u8],
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        for &byte in text {
            if id == EMPTY {
                break;
            }
            id = self.derive(id, byte, &[], work)?;
        }
        Ok(id)
    }
}

impl ImageKind {
    /// Returns the kind after the first byte of a character was copied.
    fn after(self, byte: u8) -> ImageKind {
        match self {
            ImageKind::Edit { budget, edits, .. } => {
                ImageKind::Edit { budget, inside: character_successors::bytes_after(byte), edits }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
