//! The mask of a key, by the cheapest way that is exact; unless the machine has a way of its own.
//!
//! 0. A machine that reads lexemes: what tokens do within them, and the stacks for what follows
//!    ([`crate::lexical`]).
//! 1. A key that repeats a class ([`crate::repetition`]): most tokens stay inside the repetition
//!    and are a bitmask that every language over the vocabulary shares.
//! 2. A key most of whose letters lead to such a key (the start of `x+`), or to one whose mask is
//!    known: that one's mask, changed where a walk of both keys together finds them to differ.
//! 3. Any other key: a walk along the trie from the bytes that are viable.

use formalm_automata::{Error, KeyId, Purpose, Steps};
use formalm_vocabulary::Vocabulary;

use crate::lexical::Lexical;
use crate::mask::{Mask, patch};
use crate::memo::Memo;
use crate::repetition;
use crate::walk::{Walk, difference};

/// The mask of a key, as a purpose to read keys for.
pub(crate) struct MaskOf<'a> {
    pub(crate) key: KeyId,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) lexical: &'a Lexical,
    /// Masks of other keys.
    pub(crate) memo: &'a Memo,
}

impl Purpose for MaskOf<'_> {
    type Result = Result<Mask, Error>;

    fn read(self, steps: &impl Steps) -> Result<Mask, Error> {
        if let Some(words) = steps.mask(self.key)? {
            return Ok(Mask::from_words(words));
        }
        if let Some(lexemes) = steps.lexemes()
            && let Some(mask) = self.lexical.mask(lexemes, self.vocabulary, self.key)?
        {
            return Ok(mask);
        }
        if let Some((other, most)) = steps.nearly(self.key)?
            && let Some(mask) = self.counted(steps, other, most)?
        {
            return Ok(mask);
        }
        mask(steps, self.vocabulary, self.key, self.memo)
    }
}

impl MaskOf<'_> {
    /// The mask of a key that lasts, less the tokens of more characters than it answers for that
    /// this key does not allow; `None` if these are too many.
    fn counted(&self, keys: &impl Steps, other: KeyId, most: u32) -> Result<Option<Mask>, Error> {
        let classes = self.vocabulary.classes();
        if classes.at_most(most as usize).is_some() {
            return Ok(None);
        }
        let known = self.memo.with(other.number(), Mask::clone);
        let mask = match known {
            Some(known) => known,
            None => {
                let mask = mask(keys, self.vocabulary, other, self.memo)?;
                self.memo.insert(other.number(), mask.clone());
                mask
            }
        };
        let mut remove = Vec::new();
        for &(_, token) in classes.longer().iter().take_while(|&&(count, _)| count > most) {
            let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
            if mask.contains(token) && !repetition::reads(keys, self.key, bytes)? {
                remove.push(token);
            }
        }
        let mut words = vec![0; self.vocabulary.len().div_ceil(32)];
        mask.fill(&mut words);
        patch(&mut words, &[], &remove);
        Ok(Some(if remove.is_empty() { mask } else { Mask::from_words(words) }))
    }
}

fn mask(
    keys: &impl Steps,
    vocabulary: &Vocabulary,
    key: KeyId,
    memo: &Memo,
) -> Result<Mask, Error> {
    if let Some(mask) = repetition::mask(keys, vocabulary, key)? {
        return Ok(mask);
    }
    if let Some(reference) = keys.reference(key)? {
        let known = match repetition::mask(keys, vocabulary, reference)? {
            Some(mask) => Some(mask),
            None => memo.with(reference.number(), Mask::clone),
        };
        if let Some(mask) = known {
            return from_reference(keys, vocabulary, (key, reference), mask);
        }
    }
    plain(keys, vocabulary, key)
}

fn from_reference(
    keys: &impl Steps,
    vocabulary: &Vocabulary,
    pair: (KeyId, KeyId),
    mask: Mask,
) -> Result<Mask, Error> {
    let (mut only_key, mut only_reference) = (Vec::new(), Vec::new());
    difference(keys, vocabulary.trie(), pair, &mut only_key, &mut only_reference)?;
    match mask {
        Mask::Patched { base, add, remove } => {
            only_reference.sort_unstable();
            only_key.sort_unstable();
            let kept = |ids: &[u32], without: &[u32]| -> Vec<u32> {
                ids.iter().copied().filter(|id| without.binary_search(id).is_err()).collect()
            };
            let mut add = kept(&add, &only_reference);
            let mut remove = kept(&remove, &only_key);
            add.extend(only_key);
            remove.extend(only_reference);
            Ok(Mask::patched(&base, add, remove))
        }
        mask => {
            let mut words = vec![0; vocabulary.len().div_ceil(32)];
            mask.fill(&mut words);
            patch(&mut words, &only_key, &only_reference);
            Ok(Mask::from_words(words))
        }
    }
}

fn plain(keys: &impl Steps, vocabulary: &Vocabulary, key: KeyId) -> Result<Mask, Error> {
    let live = match keys.few(key)? {
        Some(few) => few,
        None => keys.live_bytes(key)?,
    };
    let mut ids = Vec::new();
    let mut walk = Walk::new(keys, vocabulary.trie());
    walk.tokens(key, live.iter(), &mut |tokens| ids.extend_from_slice(tokens))?;
    Ok(Mask::from_ids(ids, vocabulary.len().div_ceil(32)))
}
