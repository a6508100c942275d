//! Members with occurrences of some strings replaced by others.
//!
//! Optional rules replace any set of occurrences that do not overlap. Obligatory ones replace, from
//! left to right, the longest source that the original has at each position, and continue after it
//! (leftmost-longest replacement; Karttunen, 1996). Both are read off the original's term: a string
//! of the target, then r after the source s. An obligatory copy of a character also requires that
//! no source begins there, which is an intersection with a complement.

use std::sync::Arc;

use formalm_core::BudgetExhausted;

use crate::terms::derivative::Deriver;
use crate::terms::edit_and_rewrite_plans::{ImageKind, RewritePlan, RulesId};
use crate::terms::{EMPTY, FULL, TermId, TermNode};
use crate::transduce::UnfoldedImage;

/// The images under one plan of rewrites.
pub(crate) struct RewriteImage<'a> {
    deriver: &'a mut Deriver,
    id: RulesId,
    plan: Arc<RewritePlan>,
}

impl RewriteImage<'_> {
    pub(super) fn new(deriver: &mut Deriver, id: RulesId) -> RewriteImage<'_> {
        let plan = Arc::clone(deriver.terms.plans.rewrites(id));
        RewriteImage { deriver, id, plan }
    }

    /// Returns the strings of `rest`, rewritten.
    pub(crate) fn image(&mut self, rest: TermId) -> Result<TermId, BudgetExhausted> {
        if rest == EMPTY {
            return Ok(EMPTY);
        }
        let rest = self.close_over_vanishing(rest)?;
        let nullable = self.deriver.terms.nullable(rest, &[]);
        let change = ImageKind::Rewrite { rules: self.id };
        Ok(self.deriver.terms.intern(TermNode::Image { rest, change, nullable }))
    }

    /// Returns the union of `rest` and its residuals after vanishing sources. An image then need
    /// not look for sources that vanish at its start.
    fn close_over_vanishing(&mut self, rest: TermId) -> Result<TermId, BudgetExhausted> {
        if !self.plan.rules.iter().any(|rule| rule.vanishes) {
            return Ok(rest);
        }
        if let Some(&known) = self.deriver.images.closed.get(&(rest, self.id)) {
            return Ok(known);
        }
        let (mut all, mut new) = (rest, rest);
        loop {
            let found = self.after_sources(new)?;
            let vanished = found.into_iter().filter(|&(rule, _)| self.plan.rules[rule].vanishes);
            let vanished = vanished.map(|(_, after)| after).collect();
            new = self.deriver.terms.alt(vanished);
            let more = self.deriver.terms.alt(vec![all, new]);
            if more == all {
                break;
            }
            all = more;
        }
        self.deriver.images.closed.insert((rest, self.id), all);
        Ok(all)
    }

    /// Unfolds the image of `rest` at the start of a character.
    pub(super) fn unfold(&mut self, rest: TermId) -> Result<UnfoldedImage, BudgetExhausted> {
        let mut unfolded = UnfoldedImage::default();
        let found = self.after_sources(rest)?;
        let copied = if self.plan.optional || found.is_empty() {
            rest
        } else {
            let source = |&(rule, _): &(usize, TermId)| self.plan.rules[rule].source.clone();
            let met = found.iter().map(source).collect();
            self.not_beginning(rest, met)
        };
        unfolded.copies.push((copied, ImageKind::Rewrite { rules: self.id }));
        for (rule, after) in found {
            let next = self.image(after)?;
            let replaced = self.deriver.terms.cat(self.plan.rules[rule].target, next);
            if replaced != EMPTY {
                unfolded.others.push(replaced);
            }
        }
        Ok(unfolded)
    }

    /// Returns the rules whose source may begin a string of `rest`, with the residual after it.
    fn after_sources(&mut self, rest: TermId) -> Result<Vec<(usize, TermId)>, BudgetExhausted> {
        let mut found: Vec<(usize, TermId)> = Vec::new();
        // The residual after each prefix of the previous source: sorted sources share prefixes.
        let mut path = vec![rest];
        let mut previous: &[u8] = &[];
        for (number, rule) in self.plan.rules.iter().enumerate() {
            let common = previous.iter().zip(&rule.source).take_while(|(a, b)| a == b).count();
            path.truncate(common + 1);
            while path.len() <= rule.source.len() && path[path.len() - 1] != EMPTY {
                let byte = rule.source[path.len() - 1];
                let next = self.deriver.derive(path[path.len() - 1], byte, &[])?;
                path.push(next);
            }
            previous = &rule.source[..path.len() - 1];
            let after = path[path.len() - 1];
            if after != EMPTY {
                found.push((number, after));
            }
        }
        if !self.plan.optional {
            self.keep_longest(&mut found);
        }
        found.retain(|&(_, after)| after != EMPTY);
        Ok(found)
    }

    /// Removes, after each source, the strings that would make it a longer source.
    fn keep_longest(&mut self, found: &mut [(usize, TermId)]) {
        for at in 0..found.len() {
            let (rule, after) = found[at];
            let source = &self.plan.rules[rule].source;
            let longer: Vec<Vec<u8>> = found[at + 1..]
                .iter()
                .map_while(|&(other, _)| self.plan.rules[other].source.strip_prefix(&source[..]))
                .map(<[u8]>::to_vec)
                .collect();
            if !longer.is_empty() {
                found[at].1 = self.not_beginning(after, longer);
            }
        }
    }

    /// Returns the strings of `rest` that begin with none of `texts`.
    fn not_beginning(&mut self, rest: TermId, texts: Vec<Vec<u8>>) -> TermId {
        let terms = &mut self.deriver.terms;
        let any = terms.literals(texts);
        let beginning = terms.cat(any, FULL);
        let others = terms.not(beginning);
        terms.and(vec![rest, others])
    }
}
