//! Which tokens are completed alike.
//!
//! Behind each token a text can be another one. What differs mostly does nothing but forbid something
//! to come again, so a completion is looked for without it, once for all tokens, and those tokens to
//! which it may be wrong are tried one by one. Nor is a shortest text looked for where one is known
//! whose bytes are no more than the tokens that are left.

use std::cell::{RefCell, RefMut};
use std::sync::Arc;

use formalm_automata::{Error, Machine, Resource, StateId};
use formalm_vocabulary::Vocabulary;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Completions;
use crate::trie_walk;

/// Bytes that are put in front of a completion that repeats something.
const INSTEAD: &[u8] = b"aAb01_ ";

/// Completions that others are tried with.
const LIKELY: usize = 6;

/// States that the tokens behind one may lead to: each may take a search.
const STATES: usize = 1 << 14;

/// Tokens that one text completes.
pub(super) struct Part {
    pub(super) state: StateId,
    pub(super) tokens: Vec<u32>,
    /// Whether it is known to take as few tokens as are left.
    pub(super) fits: bool,
}

/// Looks for how the tokens behind a state are completed.
pub(super) struct Parts<'a, M> {
    pub(super) completions: &'a Completions,
    pub(super) machine: &'a M,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) state: StateId,
    /// Tokens that are left behind the next one.
    pub(super) left: u32,
    /// Completions that others may have too, the last that was one in front.
    pub(super) likely: Vec<Arc<[u8]>>,
}

impl<M: Machine> Parts<'_, M> {
    /// The tokens that may follow, and some that may not, by how they are completed.
    pub(super) fn find(mut self) -> Result<Vec<Part>, Error> {
        let mut known: FxHashMap<u32, usize> = FxHashMap::default();
        let mut parts: Vec<Part> = Vec::new();
        let from = self.machine.forgetful(self.state)?;
        let (told_apart, is_finite) = (RefCell::default(), self.machine.is_finite());
        let alike = |state| {
            let state = self.machine.forgetful(state)?;
            let mut told_apart: RefMut<'_, FxHashSet<u32>> = told_apart.borrow_mut();
            if told_apart.insert(state.number()) && told_apart.len() > STATES && !is_finite {
                let (needed, allowed) = (told_apart.len() as u64, STATES as u64);
                return Err(Error::Limit { resource: Resource::States, needed, allowed });
            }
            Ok(state)
        };
        trie_walk::tokens(self.machine, self.vocabulary.trie(), from, alike, |next, tokens| {
            let at = *known.entry(next.number()).or_insert(parts.len());
            if at == parts.len() {
                parts.push(Part { state: next, tokens: Vec::new(), fits: false });
            }
            parts[at].tokens.extend_from_slice(tokens);
        })?;
        if is_finite {
            return Ok(parts);
        }
        let mut alone = Vec::new();
        for part in &mut parts {
            if let Some(text) = self.complete(part)? {
                self.take_out(part, &text, &mut alone)?;
            }
        }
        parts.append(&mut alone);
        Ok(parts)
    }

    /// A text that completes a state, if one is found, and whether it fits.
    fn complete(&mut self, part: &mut Part) -> Result<Option<Arc<[u8]>>, Error> {
        let (completions, left) = (self.completions, self.left);
        let known = completions.known(part.state);
        if known.is_none() && self.has_all_bytes() {
            for at in 0..self.likely.len() {
                let text = &self.likely[at];
                if text.len() <= left as usize && self.machine.is_completed(part.state, text)? {
                    self.likely[..=at].rotate_right(1);
                    part.fits = true;
                    return Ok(Some(Arc::clone(&self.likely[0])));
                }
            }
        }
        let spelled = match known {
            Some(known) => known,
            None => completions.spelled(self.machine, self.vocabulary, part.state)?,
        };
        let Some(spelled) = spelled else { return Ok(None) };
        part.fits = spelled.is_within(left);
        if !self.likely.contains(&spelled.text) {
            self.likely.truncate(LIKELY - 1);
            self.likely.insert(0, Arc::clone(&spelled.text));
        }
        Ok(Some(spelled.text))
    }

    /// Takes those tokens out that a text does not complete, since something is there twice.
    fn take_out(&self, part: &mut Part, text: &[u8], alone: &mut Vec<Part>) -> Result<(), Error> {
        let doubts = self.machine.doubts(Some(self.state), part.state, text)?;
        let unsure = self.completions.unsure(self.machine, self.vocabulary);
        let is_unsure = |token: &u32| unsure.binary_search(token).is_ok();
        if doubts.is_none() && !part.tokens.iter().any(is_unsure) {
            return Ok(());
        }
        let mut completed = Vec::with_capacity(part.tokens.len());
        for &token in &part.tokens {
            let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
            let is_doubtful = is_unsure(&token) || doubts.as_ref().is_some_and(|one| one(bytes));
            if !is_doubtful || self.machine.is_completed(self.state, &[bytes, text].concat())? {
                completed.push(token);
            } else {
                alone.extend(self.alone(token, bytes, text)?);
            }
        }
        part.tokens = completed;
        Ok(())
    }

    /// Such a token, if it is viable.
    fn alone(&self, token: u32, bytes: &[u8], text: &[u8]) -> Result<Option<Part>, Error> {
        let (machine, tokens) = (self.machine, vec![token]);
        if text.len() < self.left as usize && self.has_all_bytes() {
            for &byte in INSTEAD {
                if machine.is_completed(self.state, &[bytes, &[byte], text].concat())? {
                    return Ok(Some(Part { state: self.state, tokens, fits: true }));
                }
            }
        }
        let Ok(next) = machine.walk(self.state, bytes)? else { return Ok(None) };
        let state = machine.completes_as(next)?;
        let spelled = self.completions.spelled(machine, self.vocabulary, state)?;
        let fits = spelled.is_some_and(|one| one.is_within(self.left));
        Ok(Some(Part { state, tokens, fits }))
    }

    /// Whether every text can be spelled in as many tokens as it has bytes. A shortest text has no
    /// more than any other, so it takes no more tokens than these.
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
