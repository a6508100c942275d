//! Masks inside JSON strings of which at most the length is constrained.

use std::sync::Arc;

use formalm_core::{Error, ForkSafeMutex, MaskClassId};
use formalm_machines::{CharRepetition, MaskAutomaton};
use formalm_vocabulary::{ClosingToken, EndingToken, JsonStringTokens};
use rustc_hash::FxHashMap;

use crate::json_string::regular;
use crate::json_value::{TokenTable, ValueMasks};
use crate::mask::Mask;
use crate::trie_word_reading;
use crate::trie_word_reading::read;

/// Maximum number of mask classes with cached viable suffixes. Chosen, not measured.
const MAX_CACHED_CLASSES: usize = 4096;

/// The suffixes that are viable after the closing quote of a string.
#[derive(Debug)]
pub(crate) struct ViableSuffixes(Box<[u64]>);

impl ViableSuffixes {
    pub(crate) fn has(&self, suffix: u32) -> bool {
        self.0[suffix as usize >> 6] >> (suffix & 63) & 1 != 0
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.0.iter().enumerate().filter(|&(_, &word)| word != 0);
        words.flat_map(|(at, &word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| at as u32 * 64 + bit)
        })
    }
}

/// The viable suffixes after strings, by the mask class after the quote and the token table.
#[derive(Debug, Default)]
pub(crate) struct QuoteContinuations {
    /// Masks of isolated values.
    pub(crate) values: ValueMasks,
    known: ForkSafeMutex<FxHashMap<(u32, usize), Arc<ViableSuffixes>>>,
}

impl QuoteContinuations {
    /// Returns the suffixes that are viable from a mask class.
    pub(crate) fn of(
        &self,
        keys: &impl MaskAutomaton,
        strings: &JsonStringTokens,
        closed: MaskClassId,
    ) -> Result<Arc<ViableSuffixes>, Error> {
        let known = || self.known.lock();
        // Each table has suffixes of its own.
        let table = std::ptr::from_ref(strings) as usize;
        let kept = keys.cacheable_class(closed).map(|kept| (kept.number(), table));
        if let Some(found) = kept.and_then(|kept| known().get(&kept).cloned()) {
            return Ok(found);
        }
        let mut viable: Box<[u64]> = vec![0; strings.suffix_count().div_ceil(64)].into();
        let mut found = Vec::new();
        self.values.below(keys, TokenTable::Suffixes(strings), (None, closed), &mut found)?;
        for suffix in found {
            viable[suffix as usize >> 6] |= 1 << (suffix & 63);
        }
        let viable = Arc::new(ViableSuffixes(viable));
        if let Some(kept) = kept {
            let known = &mut *known();
            if known.len() == MAX_CACHED_CLASSES {
                known.clear();
            }
            known.insert(kept, Arc::clone(&viable));
        }
        Ok(viable)
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let known = self.known.lock();
        let known: usize = known.values().map(|one| 8 * one.0.len() + 64).sum();
        known + self.values.memory_bytes()
    }
}

/// The viable suffixes after one prefix and the closing quote; `None` if the quote is not allowed.
pub(crate) struct ClosingAfterPrefix(Option<Arc<ViableSuffixes>>);

impl ClosingAfterPrefix {
    /// Reads the prefix and the quote from a mask class.
    pub(crate) fn of(
        keys: &impl MaskAutomaton,
        continuations: &QuoteContinuations,
        strings: &JsonStringTokens,
        (key, text): (MaskClassId, &[u8]),
    ) -> Result<ClosingAfterPrefix, Error> {
        let after = read(keys, key, text)?;
        let closed = after.map_or(Ok(None), |after| keys.step(after, b'"'))?;
        Ok(ClosingAfterPrefix(
            closed.map(|closed| continuations.of(keys, strings, closed)).transpose()?,
        ))
    }

    /// Returns `true` if a token that closes the string after the prefix is viable.
    pub(crate) fn has(&self, closing: &ClosingToken) -> bool {
        let viable = |suffix: u32| self.0.as_ref().is_some_and(|viable| viable.has(suffix));
        closing.suffix.map_or(self.0.is_some(), viable)
    }
}

/// Returns the mask between two characters of a string.
pub(crate) fn mask(
    keys: &impl MaskAutomaton,
    continuations: &QuoteContinuations,
    strings: &JsonStringTokens,
    repetition: &CharRepetition,
) -> Result<Mask, Error> {
    let &CharRepetition { min, max, exit, .. } = repetition;
    let fits =
        |one: &&EndingToken| one.characters >= min && max.is_none_or(|max| one.characters <= max);
    let mut add: Vec<u32> = Vec::new();
    let closed = exit.map_or(Ok(None), |exit| keys.step(exit, b'"'))?;
    let mut base = strings.continuing(max);
    if let Some(closed) = closed {
        let viable = continuations.of(keys, strings, closed)?;
        if (min, max) == (0, None)
            && let Some(base) = strings.continuing_or_closing_with(&viable.0)
        {
            return Ok(Mask::patched(&base, Vec::new(), Vec::new()));
        }
        if (min, max) == (0, None) {
            base = strings.continuing_or_closing();
        } else {
            add.extend(strings.ending_exactly().iter().filter(fits).map(|one| one.token));
        }
        for suffix in viable.iter() {
            add.extend(strings.tokens_with_suffix(suffix).iter().filter(fits).map(|one| one.token));
        }
    }
    Ok(Mask::patched(base, add, Vec::new()))
}

/// Returns the tokens that close a string, read from a class. They are read up to the quote, and
/// their suffixes once per mask class after it.
pub(crate) fn closing_tokens(
    keys: &impl MaskAutomaton,
    continuations: &QuoteContinuations,
    strings: &JsonStringTokens,
    key: MaskClassId,
) -> Result<Vec<u32>, Error> {
    let mut texts = vec![(0, key)];
    let roots = (0..=255).filter_map(|byte| strings.prefix_root(byte));
    let roots: Vec<(u32, bool)> = roots.map(|root| (root, false)).collect();
    let emit = &mut |text, after| texts.push((text, after));
    trie_word_reading::words_within(keys, strings.prefixes(), (&roots, key), None, emit)?;
    let mut ended: Vec<u32> = Vec::new();
    let mut known: Vec<(MaskClassId, Arc<ViableSuffixes>)> = Vec::new();
    for (text, after) in texts {
        let Some(closed) = keys.step(after, b'"')? else { continue };
        let at = match known.iter().position(|one| one.0 == closed) {
            Some(at) => at,
            None => {
                known.push((closed, continuations.of(keys, strings, closed)?));
                known.len() - 1
            }
        };
        let viable = |suffix: u32| known[at].1.has(suffix);
        let closings = strings.closing_tokens(text).iter();
        ended.extend(closings.filter(|one| one.suffix.is_none_or(viable)).map(|one| one.token));
    }
    Ok(ended)
}

/// Returns the mask between two characters of a string that constrains nothing before its end.
pub(crate) fn open(
    keys: &impl MaskAutomaton,
    continuations: &QuoteContinuations,
    strings: &JsonStringTokens,
    key: MaskClassId,
) -> Result<Mask, Error> {
    let mut ended = match regular::closing_by_machine(keys, continuations, strings, key)? {
        Some(ended) => ended,
        None => closing_tokens(keys, continuations, strings, key)?,
    };
    let (base, all) = (strings.continuing_or_closing(), strings.ending_exactly());
    ended.sort_unstable();
    let missing: Vec<u32> =
        all.iter().map(|one| one.token).filter(|one| ended.binary_search(one).is_err()).collect();
    if 2 * missing.len() > all.len() {
        return Ok(Mask::patched(strings.continuing(None), ended, Vec::new()));
    }
    let mut only: Vec<u32> = all.iter().map(|one| one.token).collect();
    only.sort_unstable();
    ended.retain(|one| only.binary_search(one).is_err());
    Ok(Mask::patched(base, ended, missing))
}
