//! Which tokens are completed alike.
//!
//! Behind each token a text can be another one. What differs mostly does nothing but forbid something to
//! come again, so a completion is looked for without it, once for all tokens, and those tokens to
//! which it may be wrong are tried one by one.

use formalm_automata::{Error, Machine, StateId};
use formalm_vocabulary::Vocabulary;
use rustc_hash::FxHashMap;

use super::Completions;

/// Bytes that are put in front of a completion that repeats something.
const INSTEAD: &[u8] = b"aAb01_ ";

/// Tokens that one shortest text completes.
pub(super) struct Part {
    pub(super) state: StateId,
    pub(super) tokens: Vec<u32>,
    /// Whether it is known to take as few tokens as are left.
    pub(super) fits: bool,
}

impl Completions {
    /// The tokens that may follow, and some that may not, by how they are completed, and whether
    /// that takes at most `left` more.
    pub(super) fn parts(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        left: Option<u32>,
    ) -> Result<Vec<Part>, Error> {
        let mut known: FxHashMap<u32, usize> = FxHashMap::default();
        let mut parts: Vec<Part> = Vec::new();
        let alike = |state| machine.forgetful(state);
        self.each(machine, vocabulary, state, alike, |next, tokens| {
            let at = *known.entry(next.number()).or_insert(parts.len());
            if at == parts.len() {
                parts.push(Part { state: next, tokens: Vec::new(), fits: false });
            }
            parts[at].tokens.extend_from_slice(tokens);
        })?;
        let Some(left) = left.filter(|_| !machine.is_finite()) else { return Ok(parts) };
        let mut alone = Vec::new();
        for part in &mut parts {
            let Some(spelled) = self.spelled(machine, vocabulary, part.state)? else { continue };
            part.fits = spelled.is_within(left);
            let Some(doubts) = machine.doubts(Some(state), part.state, &spelled.text)? else {
                continue;
            };
            let mut completed = Vec::with_capacity(part.tokens.len());
            for &token in &part.tokens {
                let bytes = vocabulary.token_bytes(token).unwrap_or_default();
                let text = || [bytes, &spelled.text].concat();
                if !doubts(bytes) || machine.is_completed(state, &text())? {
                    completed.push(token);
                } else {
                    alone.push(self.alone(
                        machine,
                        vocabulary,
                        state,
                        token,
                        (&spelled.text, left),
                    )?);
                }
            }
            part.tokens = completed;
        }
        parts.extend(alone.into_iter().flatten());
        Ok(parts)
    }

    /// A token that a text does not complete, since it repeats something.
    fn alone(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        token: u32,
        (text, left): (&[u8], u32),
    ) -> Result<Option<Part>, Error> {
        let bytes = vocabulary.token_bytes(token).unwrap_or_default();
        let mut part = Part { state, tokens: vec![token], fits: false };
        // As many tokens as bytes are enough, and a shortest text has no more of these.
        if text.len() < left as usize && self.has_all_bytes(vocabulary) {
            for &byte in INSTEAD {
                if machine.is_completed(state, &[bytes, &[byte], text].concat())? {
                    part.fits = true;
                    return Ok(Some(part));
                }
            }
        }
        let Ok(next) = machine.walk(state, bytes)? else { return Ok(None) };
        part.state = machine.completes_as(next)?;
        let spelled = self.spelled(machine, vocabulary, part.state)?;
        part.fits = spelled.is_some_and(|one| one.is_within(left));
        Ok(Some(part))
    }

    fn has_all_bytes(&self, vocabulary: &Vocabulary) -> bool {
        let trie = vocabulary.trie();
        let is_token = |node| !trie.tokens_at(node).is_empty();
        *self
            .has_all_bytes
            .get_or_init(|| (0..=255).all(|byte| trie.root_child(byte).is_some_and(is_token)))
    }
}
