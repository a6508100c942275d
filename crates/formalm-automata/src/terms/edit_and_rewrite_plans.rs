//! The kinds of images of languages, and the plans they share: which edits or rewrites are made.
//!
//! An image is a node over the term of its original ([`TermNode::Image`](crate::terms::TermNode)).
//! What it reads is unfolded where it is read (`transduce/`); this is what the arena knows of it.

use std::sync::Arc;

use crate::terms::TermId;

/// Identifies an [`EditPlan`] of one arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EditsId(u32);

/// Identifies a [`RewritePlan`] of one arena.
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

/// Edit rules, lowered to terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EditPlan {
    pub(crate) budget: u32,
    /// One character of the alphabet; `EMPTY` for none.
    pub(crate) alphabet: TermId,
    pub(crate) operations: EditOperations,
    pub(crate) after: Option<TermId>,
    pub(crate) before: Option<TermId>,
}

/// One rewrite rule, lowered to terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RewriteRule {
    pub(crate) source: Vec<u8>,
    /// The target without the empty string; may be `EMPTY`.
    pub(crate) target: TermId,
    /// `true` if the target contains the empty string: the source may vanish.
    pub(crate) vanishes: bool,
}

/// Rules sorted by source, each source once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RewritePlan {
    pub(crate) rules: Vec<RewriteRule>,
    pub(crate) optional: bool,
    /// All sources as one term, whose bytes must be distinguished.
    pub(crate) sources: TermId,
}

/// The plans that the images of one arena share.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImagePlans {
    edits: Vec<EditPlan>,
    rewrites: Vec<Arc<RewritePlan>>,
}

impl ImagePlans {
    /// Adds a plan under a new id, even if an equal one exists: edits of edits must stay distinct.
    pub(crate) fn add_edits(&mut self, plan: EditPlan) -> EditsId {
        self.edits.push(plan);
        EditsId((self.edits.len() - 1) as u32)
    }

    /// Adds a plan, unless an equal one exists.
    pub(crate) fn add_rewrites(&mut self, plan: RewritePlan) -> RulesId {
        let known = self.rewrites.iter().position(|other| **other == plan);
        let index = known.unwrap_or_else(|| {
            self.rewrites.push(Arc::new(plan));
            self.rewrites.len() - 1
        });
        RulesId(index as u32)
    }

    pub(crate) fn edits(&self, id: EditsId) -> &EditPlan {
        &self.edits[id.0 as usize]
    }

    pub(crate) fn rewrites(&self, id: RulesId) -> &Arc<RewritePlan> {
        &self.rewrites[id.0 as usize]
    }

    /// Returns the terms that images hold in addition to their originals: their bytes are read too.
    pub(crate) fn leaves(&self, change: ImageKind) -> Vec<TermId> {
        match change {
            ImageKind::Gate { edits, .. } | ImageKind::Edit { edits, .. } => {
                let plan = self.edits(edits);
                let gate = match change {
                    ImageKind::Gate { gate, .. } => Some(gate),
                    _ => None,
                };
                [Some(plan.alphabet), plan.after, plan.before, gate].into_iter().flatten().collect()
            }
            ImageKind::Rewrite { rules } => {
                let plan = self.rewrites(rules);
                plan.rules.iter().map(|rule| rule.target).chain([plan.sources]).collect()
            }
        }
    }
}
