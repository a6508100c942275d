//! A language lifted to a vocabulary.

use std::sync::Arc;

use formalm_automata::{Automaton, Error, KeyId, Keys, Machine, StateId, Viability};
use formalm_vocabulary::Vocabulary;

use crate::completions::Completions;
use crate::compute;
use crate::mask::{Mask, Words, patch};
use crate::memo::Memo;

/// Masks and steps of one language over one vocabulary; shared freely between threads.
///
/// `K` are the keys of the language's machine, those of a regular language unless it says else.
#[derive(Debug)]
pub struct Constraint<K = Viability> {
    keys: K,
    vocabulary: Arc<Vocabulary>,
    memo: Memo,
    completions: Completions,
}

impl Constraint {
    /// Lifts an automaton to a vocabulary. Masks are computed when they are asked for and kept in
    /// at most `memory_limit_bytes`.
    pub fn new(
        automaton: Arc<Automaton>,
        vocabulary: Arc<Vocabulary>,
        memory_limit_bytes: usize,
    ) -> Constraint {
        let keys = Viability::new(automaton, vocabulary.longest_token_bytes());
        Constraint::over(keys, vocabulary, memory_limit_bytes)
    }
}

impl<K: Keys> Constraint<K> {
    /// Lifts any machine to a vocabulary, given its keys for texts as long as the longest token.
    pub fn over(keys: K, vocabulary: Arc<Vocabulary>, memory_limit_bytes: usize) -> Constraint<K> {
        let memo = Memo::new(memory_limit_bytes);
        Constraint { keys, vocabulary, memo, completions: Completions::default() }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<K::Machine> {
        self.keys.machine()
    }

    /// Number of words that a bitmask over the vocabulary needs.
    pub fn words(&self) -> usize {
        self.vocabulary.len().div_ceil(32)
    }

    /// Writes the mask of a state over `out`: tokens after which a member is reachable, and the
    /// end tokens if the text is a member. Words beyond the vocabulary become zero.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine would outgrow its limits; `out` is then unspecified.
    pub fn fill(&self, state: StateId, out: &mut Words) -> Result<(), Error> {
        self.with_mask(state, |mask| mask.fill(out))?;
        if self.machine().is_accepting(state) {
            patch(out, self.vocabulary.end_token_ids(), &[]);
        }
        Ok(())
    }

    /// Whether the mask of a state is stored.
    #[inline]
    pub fn is_ready(&self, state: StateId) -> bool {
        self.keys.known_key(state).is_some_and(|key| self.memo.has(key.number()))
    }

    /// Whether one token is allowed, without computing the mask.
    ///
    /// # Errors
    ///
    /// As [`Constraint::fill`].
    pub fn allows(&self, state: StateId, token_id: u32) -> Result<bool, Error> {
        if self.vocabulary.is_end(token_id) {
            return Ok(self.machine().is_accepting(state));
        }
        match self.vocabulary.token_bytes(token_id) {
            Some(bytes) => Ok(self.machine().walk(state, bytes)?.is_ok()),
            None => Ok(false),
        }
    }

    /// Uses the stored mask of a state, which leaves end tokens out.
    pub(crate) fn with_mask<R>(
        &self,
        state: StateId,
        use_mask: impl FnOnce(&Mask) -> R,
    ) -> Result<R, Error> {
        let key = self.keys.key(state)?;
        let mut use_mask = Some(use_mask);
        let hit = self.memo.with(key.number(), |mask| use_mask.take().map(|f| f(mask)));
        if let Some(Some(result)) = hit {
            return Ok(result);
        }
        let mask = self.compute(key)?;
        // `use_mask` is still there: it is taken only on a hit.
        let result = use_mask.take().map(|f| f(&mask));
        self.memo.insert(key.number(), mask);
        result.ok_or(Error::Language {
            message: "a mask was used twice".to_owned(),
            span: None,
            hint: None,
        })
    }

    fn compute(&self, key: KeyId) -> Result<Mask, Error> {
        self.keys.read(compute::MaskOf { key, vocabulary: &self.vocabulary })
    }

    /// Memory in use beside automaton and vocabulary, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.memo.size().1 + self.keys.memory_bytes()
    }

    /// Number of masks kept.
    pub fn mask_count(&self) -> usize {
        self.memo.size().0
    }

    /// A shortest token sequence, end token aside, that makes the text a member; `None` if it
    /// takes more than `limit` tokens or if no token sequence does.
    ///
    /// # Errors
    ///
    /// As [`Constraint::fill`].
    pub fn shortest_tokens(&self, state: StateId, limit: u32) -> Result<Option<Vec<u32>>, Error> {
        self.completions.shortest(&**self.machine(), &self.vocabulary, state, limit)
    }

    /// Writes the mask of a state over `out`, less the tokens after which no member can be
    /// completed within `budget` tokens, that token among them and end tokens aside.
    ///
    /// # Errors
    ///
    /// As [`Constraint::fill`].
    pub fn fill_within(&self, state: StateId, budget: u32, out: &mut Words) -> Result<(), Error> {
        self.fill(state, out)?;
        self.completions.restrict(&**self.machine(), &self.vocabulary, state, budget, out)
    }
}
