//! Images of languages: strings within an edit distance of a member, and members with rewrites.
//!
//! Each is a term over the term of the original ([`TermNode::Image`]) that is unfolded where it is
//! read. An edit or rule that no input has reached costs nothing. Nothing is composed eagerly, and
//! images nest: the original may be an image itself.
//!
//! ```text
//!  Deriver::derive_image ──► unfold, cached ──► Edits         (edit_distance)
//!                                          └──► RewriteImage  (rewrite_rules)
//! ```

mod character_successors;
mod edit_distance;
mod edit_script;
mod expression_operations;
mod pattern_and_text_reversal;
mod rewrite_rules;

use std::sync::Arc;

use formalm_core::{BudgetExhausted, char_len};
use rustc_hash::FxHashMap;

use crate::terms::derivative::Deriver;
use crate::terms::edit_and_rewrite_plans::{EditsId, ImageKind, RulesId};
use crate::terms::{EMPTY, TermId, TermNode};
use crate::transduce::edit_distance::Edits;
use crate::transduce::rewrite_rules::RewriteImage;

pub use crate::terms::edit_and_rewrite_plans::EditOperations;
pub use edit_distance::EditRules;
pub use edit_script::EditScript;
pub(crate) use edit_script::script;
pub(crate) use pattern_and_text_reversal::{reversed_pattern, reversed_text};

/// The continuations of an image at the start of a character.
#[derive(Debug, Default)]
struct UnfoldedImage {
    /// The next character is the original's; its first byte leads to an image of the rest.
    copies: Vec<(TermId, ImageKind)>,
    /// All other continuations, as terms.
    others: Vec<TermId>,
}

/// What is cached of the images of one arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageCache {
    unfolded: FxHashMap<TermId, Arc<UnfoldedImage>>,
    /// Originals, closed under sources that may vanish.
    closed: FxHashMap<(TermId, RulesId), TermId>,
    successors: character_successors::CharSuccessors,
}

impl ImageCache {
    /// Returns the memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.unfolded.len() * 160 + self.closed.len() * 24 + self.successors.memory_bytes()
    }
}

impl Deriver {
    /// Returns the images under a plan of edits.
    pub(crate) fn edits(&mut self, id: EditsId) -> Edits<'_> {
        Edits::new(self, id)
    }

    /// Returns the images under a plan of rewrites.
    pub(crate) fn rewriting(&mut self, id: RulesId) -> RewriteImage<'_> {
        RewriteImage::new(self, id)
    }

    /// Pushes the derivative of an image.
    pub(crate) fn derive_image(
        &mut self,
        id: TermId,
        byte: u8,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        let TermNode::Image { rest, change, .. } = *self.terms.get(id) else { return Ok(()) };
        match change {
            ImageKind::Edit { budget, inside, edits } if inside > 0 => {
                let next = self.derive(rest, byte, &[])?;
                sum.push(self.edits(edits).within(next, budget, inside - 1)?);
            }
            ImageKind::Gate { gate, edits } => {
                let gate_open = self.terms.nullable(gate, &[]);
                let gate = self.derive(gate, byte, &[])?;
                let next = self.derive(rest, byte, &[])?;
                sum.push(self.edits(edits).gated(next, gate)?);
                if gate_open {
                    let open = self.edits(edits).anywhere(rest)?;
                    self.derive_into(open, byte, &[], sum)?;
                }
            }
            _ => {
                let unfolded = self.unfold(id)?;
                for &(rest, change) in &unfolded.copies {
                    let next = self.derive(rest, byte, &[])?;
                    if next != EMPTY {
                        sum.push(self.image_after(next, change, byte)?);
                    }
                }
                for &other in &unfolded.others {
                    self.derive_into(other, byte, &[], sum)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the image of `rest`, given the kind before the first byte of a character was copied.
    fn image_after(
        &mut self,
        rest: TermId,
        change: ImageKind,
        byte: u8,
    ) -> Result<TermId, BudgetExhausted> {
        self.work.step()?;
        match change {
            ImageKind::Edit { budget, edits, .. } => {
                let inside = (char_len(byte) - 1) as u8;
                self.edits(edits).within(rest, budget, inside)
            }
            ImageKind::Gate { gate, edits } => self.edits(edits).gated(rest, gate),
            ImageKind::Rewrite { rules } => self.rewriting(rules).image(rest),
        }
    }

    fn unfold(&mut self, id: TermId) -> Result<Arc<UnfoldedImage>, BudgetExhausted> {
        if let Some(known) = self.images.unfolded.get(&id) {
            return Ok(known.clone());
        }
        let unfolded = match *self.terms.get(id) {
            TermNode::Image { rest, change: ImageKind::Edit { budget, edits, .. }, .. } => {
                self.edits(edits).unfold(rest, budget)?
            }
            TermNode::Image { rest, change: ImageKind::Rewrite { rules }, .. } => {
                self.rewriting(rules).unfold(rest)?
            }
            _ => UnfoldedImage::default(),
        };
        let unfolded = Arc::new(unfolded);
        self.images.unfolded.insert(id, unfolded.clone());
        Ok(unfolded)
    }
}

#[cfg(test)]
mod tests;
