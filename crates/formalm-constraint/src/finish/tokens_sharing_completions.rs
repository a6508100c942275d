//! Classes of tokens that one string completes.
//!
//! After each token the input differs. Most of the difference can only forbid a repetition, of a
//! property name or a unique item. So a completion is searched without it, once for all tokens of a
//! class, and the tokens for which it may be wrong are checked one by one. No search is made if a
//! completion is known that has at most as many bytes as tokens are left: the shortest one cannot
//! be longer.

use std::sync::Arc;

use formalm_core::{Error, Machine, Resource, StateId};
use formalm_vocabulary::Vocabulary;

use super::FinishSearch;
use crate::tokens_by_abstract_state::tokens_by_abstract_state;

/// Bytes inserted before a completion that repeats something. Chosen, not measured.
const SEPARATING_BYTES: &[u8] = b"aAb01_ ";

/// Number of recent completions that are tried first. Chosen, not measured.
const MAX_RECENT_COMPLETIONS: usize = 6;

/// Maximum number of states that the next tokens may lead to; each may need a search. Chosen, not
/// measured.
const MAX_NEXT_STATES: usize = 1 << 14;

/// Tokens that one string completes.
pub(super) struct CompletionClass {
    pub(super) state: StateId,
    pub(super) tokens: Vec<u32>,
    /// `true` if the completion is known to fit the budget.
    pub(super) fits: bool,
}

/// Computes the completion classes of the next tokens.
pub(super) struct ClassFinder<'a, M> {
    pub(super) completions: &'a FinishSearch,
    pub(super) machine: &'a M,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) state: StateId,
    /// Tokens left after the next one.
    pub(super) left: u32,
    /// Recent completions that may fit others, the last successful one first.
    pub(super) recent: Vec<Arc<[u8]>>,
}

impl<M: Machine> ClassFinder<'_, M> {
    /// Returns the tokens that may follow, and some that may not, by completion class.
    pub(super) fn find(mut self) -> Result<Vec<CompletionClass>, Error> {
        let (trie, is_finite) = (self.vocabulary.trie(), self.machine.is_finite());
        let limit = if is_finite { usize::MAX } else { MAX_NEXT_STATES };
        let Some(groups) = tokens_by_abstract_state(self.machine, trie, self.state, limit)? else {
            let (needed, allowed) = (limit as u64 + 1, limit as u64);
            return Err(Error::Limit { resource: Resource::States, needed, allowed });
        };
        let unsearched = |(state, tokens)| CompletionClass { state, tokens, fits: false };
        let mut parts: Vec<CompletionClass> = groups.into_iter().map(unsearched).collect();
        if is_finite {
            return Ok(parts);
        }
        let mut single_tokens = Vec::new();
        for part in &mut parts {
            if let Some(text) = self.complete(part)? {
                self.split_repeating(part, &text, &mut single_tokens)?;
            }
        }
        parts.append(&mut single_tokens);
        Ok(parts)
    }

    /// Returns a string that completes a state, if one is found, and records whether it fits.
    fn complete(&mut self, part: &mut CompletionClass) -> Result<Option<Arc<[u8]>>, Error> {
        let (completions, left) = (self.completions, self.left);
        let known = completions.known(part.state);
        if known.is_none() && self.has_all_bytes() {
            for at in 0..self.recent.len() {
                let text = &self.recent[at];
                if text.len() <= left as usize && self.machine.accepts_from(part.state, text)? {
                    self.recent[..=at].rotate_right(1);
                    part.fits = true;
                    return Ok(Some(Arc::clone(&self.recent[0])));
                }
            }
        }
        let shortest_string = match known {
            Some(known) => known,
            None => completions.shortest_string(self.machine, self.vocabulary, part.state)?,
        };
        let Some(shortest_string) = shortest_string else { return Ok(None) };
        part.fits = shortest_string.is_within(left);
        if !self.recent.contains(&shortest_string.text) {
            self.recent.truncate(MAX_RECENT_COMPLETIONS - 1);
            self.recent.insert(0, Arc::clone(&shortest_string.text));
        }
        Ok(Some(shortest_string.text))
    }

    /// Separates the tokens that `text` does not complete because it repeats something.
    fn split_repeating(
        &self,
        part: &mut CompletionClass,
        text: &[u8],
        single_tokens: &mut Vec<CompletionClass>,
    ) -> Result<(), Error> {
        let doubts = self.machine.needs_recheck(Some(self.state), part.state, text)?;
        let recheck_tokens = self.completions.recheck_tokens(self.machine, self.vocabulary);
        let is_unsure = |token: &u32| recheck_tokens.binary_search(token).is_ok();
        if doubts.is_none() && !part.tokens.iter().any(is_unsure) {
            return Ok(());
        }
        let mut completed = Vec::with_capacity(part.tokens.len());
        for &token in &part.tokens {
            let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
            let is_doubtful = is_unsure(&token) || doubts.as_ref().is_some_and(|one| one(bytes));
            if !is_doubtful || self.machine.accepts_from(self.state, &[bytes, text].concat())? {
                completed.push(token);
            } else {
                single_tokens.extend(self.single_tokens(token, bytes, text)?);
            }
        }
        part.tokens = completed;
        Ok(())
    }

    /// Returns the class of such a single token, if it is viable.
    fn single_tokens(
        &self,
        token: u32,
        bytes: &[u8],
        text: &[u8],
    ) -> Result<Option<CompletionClass>, Error> {
        let (machine, tokens) = (self.machine, vec![token]);
        if text.len() < self.left as usize && self.has_all_bytes() {
            for &byte in SEPARATING_BYTES {
                if machine.accepts_from(self.state, &[bytes, &[byte], text].concat())? {
                    return Ok(Some(CompletionClass { state: self.state, tokens, fits: true }));
                }
            }
        }
        let Ok(next) = machine.walk(self.state, bytes)? else { return Ok(None) };
        let state = machine.completion_class(next)?;
        let shortest_string = self.completions.shortest_string(machine, self.vocabulary, state)?;
        let fits = shortest_string.is_some_and(|one| one.is_within(self.left));
        Ok(Some(CompletionClass { state, tokens, fits }))
    }

    /// Returns `true` if every string can be spelled with one token per byte. A shortest string has
    /// no more bytes than any other, so it takes no more tokens than these.
    fn has_all_bytes(&self) -> bool {
        let trie = self.vocabulary.trie();
        let is_token = |node| !trie.tokens_at(node).is_empty();
        let mut in_texts = (0..=0xF4).filter(|byte| !(0xC0..=0xC1).contains(byte));
        *self
            .completions
            .has_all_bytes
            .get_or_init(|| in_texts.all(|byte| trie.root_child(byte).is_some_and(is_token)))
    }
}
