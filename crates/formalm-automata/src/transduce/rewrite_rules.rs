//! Members with occurrences of some strings replaced by others.
//!
//! Optional rules replace any set of occurrences that do not overlap. Obligatory ones replace, from
//! left to right, the longest source that the original has at each position, and continue after it
//! (leftmost-longest replacement; Karttunen, 1996). Both are read off the original's term: a string
//! of the target, then r after the source s. An obligatory copy of a character also requires that
//! no source begins there, which is an intersection with a complement.

use std::sync::Arc;

use formalm_core::{BudgetExhausted, StepMeter};

use crate::terms::term_properties::TermProperties;
use crate::terms::{EMPTY, FULL, TermArena, TermId, TermNode, pattern_lowering};
use crate::transduce::{ImageKind, RulesId, UnfoldedImage};

/// One rule, lowered to terms.
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

impl RewritePlan {
    pub(super) fn leaves(&self) -> Vec<TermId> {
        let targets = self.rules.iter().map(|rule| rule.target);
        targets.chain([self.sources]).collect()
    }
}

impl TermArena {
    pub(crate) fn rewrite_plan(&mut self, mut rules: Vec<RewriteRule>, optional: bool) -> RulesId {
        rules.sort_by(|one, other| one.source.cmp(&other.source));
        let sources = pattern_lowering::literals(
            self,
            rules.iter().map(|rule| rule.source.clone()).collect(),
        );
        let plan = RewritePlan { rules, optional, sources };
        let known = self.images.rules.iter().position(|other| **other == plan);
        let index = known.unwrap_or_else(|| {
            self.images.rules.push(Arc::new(plan));
            self.images.rules.len() - 1
        });
        RulesId(index as u32)
    }

    /// Returns the strings of `rest`, rewritten.
    pub(crate) fn rewritten(
        &mut self,
        rest: TermId,
        rules: RulesId,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        if rest == EMPTY {
            return Ok(EMPTY);
        }
        let rest = self.close_over_vanishing(rest, rules, work)?;
        let nullable = self.nullable(rest, &[]);
        Ok(self.intern(TermNode::Image { rest, change: ImageKind::Rewrite { rules }, nullable }))
    }

    /// Returns the union of `rest` and its residuals after vanishing sources. An image then need
    /// not look for sources that vanish at its start.
    fn close_over_vanishing(
        &mut self,
        rest: TermId,
        rules: RulesId,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        let plan = self.images.shared_rewrites(rules);
        if !plan.rules.iter().any(|rule| rule.vanishes) {
            return Ok(rest);
        }
        if let Some(&known) = self.images.closed.get(&(rest, rules)) {
            return Ok(known);
        }
        let (mut all, mut new) = (rest, rest);
        loop {
            let found = self.after_sources(new, rules, work)?;
            let vanished = found.into_iter().filter(|&(rule, _)| plan.rules[rule].vanishes);
            new = self.alt(vanished.map(|(_, after)| after).collect());
            let more = self.alt(vec![all, new]);
            if more == all {
                break;
            }
            all = more;
        }
        self.images.closed.insert((rest, rules), all);
        Ok(all)
    }

    pub(super) fn unfold_rewrites(
        &mut self,
        rest: TermId,
        rules: RulesId,
        work: &mut StepMeter,
    ) -> Result<UnfoldedImage, BudgetExhausted> {
        let mut unfolded = UnfoldedImage::default();
        let found = self.after_sources(rest, rules, work)?;
        let plan = self.images.shared_rewrites(rules);
        let copied = if plan.optional || found.is_empty() {
            rest
        } else {
            let met = found.iter().map(|&(rule, _)| plan.rules[rule].source.clone()).collect();
            self.not_beginning(rest, met)
        };
        unfolded.copies.push((copied, ImageKind::Rewrite { rules }));
        for (rule, after) in found {
            let next = self.rewritten(after, rules, work)?;
            let replaced = self.cat(plan.rules[rule].target, next);
            if replaced != EMPTY {
                unfolded.others.push(replaced);
            }
        }
        Ok(unfolded)
    }

    /// Returns the rules whose source may begin a string of `rest`, with the residual after it.
    fn after_sources(
        &mut self,
        rest: TermId,
        rules: RulesId,
        work: &mut StepMeter,
    ) -> Result<Vec<(usize, TermId)>, BudgetExhausted> {
        let plan = self.images.shared_rewrites(rules);
        let mut found: Vec<(usize, TermId)> = Vec::new();
        // The residual after each prefix of the previous source: sorted sources share prefixes.
        let mut path = vec![rest];
        let mut previous: &[u8] = &[];
        for (number, rule) in plan.rules.iter().enumerate() {
            let common = previous.iter().zip(&rule.source).take_while(|(a, b)| a == b).count();
            path.truncate(common + 1);
            while path.len() <= rule.source.len() && path[path.len() - 1] != EMPTY {
                let byte = rule.source[path.len() - 1];
                let next = self.derive(path[path.len() - 1], byte, &[], work)?;
                path.push(next);
            }
            previous = &rule.source[..path.len() - 1];
            let after = path[path.len() - 1];
            if after != EMPTY {
                found.push((number, after));
            }
        }
        if !plan.optional {
            self.keep_longest(&plan, &mut found);
        }
        found.retain(|&(_, after)| after != EMPTY);
        Ok(found)
    }

    /// Removes, after each source, the strings that would make it a longer source.
    fn keep_longest(&mut self, plan: &RewritePlan, found: &mut [(usize, TermId)]) {
        for at in 0..found.len() {
            let (rule, after) = found[at];
            let source = &plan.rules[rule].source;
            let longer: Vec<Vec<u8>> = found[at + 1..]
                .iter()
                .map_while(|&(other, _)| plan.rules[other].source.strip_prefix(&source[..]))
                .map(<[u8]>::to_vec)
                .collect();
            if !longer.is_empty() {
                found[at].1 = self.not_beginning(after, longer);
            }
        }
    }

    /// Returns the strings of `rest` that begin with none of `texts`.
    fn not_beginning(&mut self, rest: TermId, texts: Vec<Vec<u8>>) -> TermId {
        let any = pattern_lowering::literals(self, texts);
        let beginning = self.cat(any, FULL);
        let others = self.not(beginning);
        self.and(vec![rest, others])
    }

    /// Returns the properties of a rewritten term, except `nullable`.
    pub(super) fn rewrite_properties(
        &self,
        rest: TermProperties,
        rules: RulesId,
    ) -> TermProperties {
        let plan = self.images.rewrites(rules);
        let mut properties =
            TermProperties { min_len: 0, pure: rest.pure && plan.optional, ..rest };
        for rule in &plan.rules {
            let target = self.properties(rule.target);
            properties.pure &= target.pure;
            properties.alphabet = properties.alphabet.join(target.alphabet);
        }
        properties
    }
}
