//! Bounds of terms: recognizers are replaced by simpler ones whose languages bound theirs.
//!
//! **Lemma.** Concatenation, union and intersection are monotone, and complement is antitone. So a
//! term with lower bounds of its recognizers, and upper bounds under a complement, is a subset of
//! the term; the other way round it is a superset.

use crate::terms::custom_language::LanguageBound;
use crate::terms::{FULL, TermArena, TermId, TermNode};

impl TermArena {
    /// Returns a term of simpler recognizers whose language bounds that of `id`. Returns `None` if
    /// nothing is simpler.
    pub(crate) fn bound(&mut self, id: TermId, bound: LanguageBound) -> Option<TermId> {
        self.bound_or_same(id, bound).filter(|&simpler| simpler != id)
    }

    fn bound_or_same(&mut self, id: TermId, bound: LanguageBound) -> Option<TermId> {
        if !self.properties(id).has_recognizer {
            return Some(id);
        }
        match self.get(id).clone() {
            TermNode::Custom(at) => {
                let at = self.recognizers.bound(at, bound)?;
                Some(self.intern(TermNode::Custom(at)))
            }
            TermNode::Cat(head, tail) => {
                let head = self.bound_or_same(head, bound)?;
                let tail = self.bound_or_same(tail, bound)?;
                Some(self.cat(head, tail))
            }
            // A union without some of its alternatives is a subset.
            TermNode::Alt(list) => {
                let bounds = list.iter().map(|&one| self.bound_or_same(one, bound));
                let kept: Vec<TermId> = match bound {
                    LanguageBound::Lower => bounds.flatten().collect(),
                    LanguageBound::Upper => bounds.collect::<Option<_>>()?,
                };
                (!kept.is_empty()).then(|| self.alt(kept))
            }
            // An intersection without some of its operands is a superset.
            TermNode::And(list) => {
                let bounds = list.iter().map(|&one| self.bound_or_same(one, bound));
                let kept: Vec<TermId> = match bound {
                    LanguageBound::Lower => bounds.collect::<Option<_>>()?,
                    LanguageBound::Upper => bounds.map(|one| one.unwrap_or(FULL)).collect(),
                };
                Some(self.and(kept))
            }
            TermNode::Not(inner) => {
                let inner = self.bound_or_same(inner, bound.of_complement())?;
                Some(self.not(inner))
            }
            _ => None,
        }
    }
}
