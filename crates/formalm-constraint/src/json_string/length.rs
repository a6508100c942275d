//! Masks inside of strings of JSON, where at most the number of characters matters.

use std::sync::Arc;

use formalm_automata::{Error, KeyId, Lock, Repetition, Steps};
use formalm_vocabulary::{ClosingToken, EndingToken, JsonStringTokens};
use rustc_hash::FxHashMap;

use crate::json_value::{Table, Values};
use crate::mask::Mask;
use crate::trie_strings::{self, read};

/// Keys whose rests are kept; with more they are found anew.
const RESTS: usize = 4096;

/// Rests that are viable behind the quote of a string.
#[derive(Debug)]
pub(crate) struct Viable(Box<[u64]>);

impl Viable {
    pub(crate) fn has(&self, rest: u32) -> bool {
        self.0[rest as usize >> 6] >> (rest & 63) & 1 != 0
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.0.iter().enumerate().filter(|&(_, &word)| word != 0);
        words.flat_map(|(at, &word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| at as u32 * 64 + bit)
        })
    }
}

/// The rests that are viable behind strings, by the key that the quote leads to and the table.
#[derive(Debug, Default)]
pub(crate) struct Rests {
    /// Of values read by themselves.
    pub(crate) values: Values,
    known: Lock<FxHashMap<(u32, usize), Arc<Viable>>>,
}

impl Rests {
    /// Rests that are viable from a key.
    pub(crate) fn of(
        &self,
        keys: &impl Steps,
        strings: &JsonStringTokens,
        closed: KeyId,
    ) -> Result<Arc<Viable>, Error> {
        let known = || self.known.lock();
        // Each table has rests of its own.
        let table = std::ptr::from_ref(strings) as usize;
        let kept = keys.kept(closed).map(|kept| (kept.number(), table));
        if let Some(found) = kept.and_then(|kept| known().get(&kept).cloned()) {
            return Ok(found);
        }
        let mut viable: Box<[u64]> = vec![0; strings.suffix_count().div_ceil(64)].into();
        let mut found = Vec::new();
        self.values.below(keys, Table::Rests(strings), (None, closed), &mut found)?;
        for rest in found {
            viable[rest as usize >> 6] |= 1 << (rest & 63);
        }
        let viable = Arc::new(Viable(viable));
        if let Some(kept) = kept {
            let known = &mut *known();
            if known.len() == RESTS {
                known.clear();
            }
            known.insert(kept, Arc::clone(&viable));
        }
        Ok(viable)
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let known = self.known.lock();
        let known: usize = known.values().map(|one| 8 * one.0.len() + 64).sum();
        known + self.values.memory_bytes()
    }
}

/// What tokens may do that end a string behind some text.
pub(crate) struct Ends(Option<Arc<Viable>>);

impl Ends {
    /// Reads the text and the quote from a key.
    pub(crate) fn of(
        keys: &impl Steps,
        rests: &Rests,
        strings: &JsonStringTokens,
        (key, text): (KeyId, &[u8]),
    ) -> Result<Ends, Error> {
        let after = read(keys, key, text)?;
        let closed = after.map_or(Ok(None), |after| keys.step(after, b'"'))?;
        Ok(Ends(closed.map(|closed| rests.of(keys, strings, closed)).transpose()?))
    }

    /// Whether a token that ends the string behind the text is viable.
    pub(crate) fn has(&self, closing: &ClosingToken) -> bool {
        let viable = |rest: u32| self.0.as_ref().is_some_and(|viable| viable.has(rest));
        closing.suffix.map_or(self.0.is_some(), viable)
    }
}

/// The mask between two characters of a string.
pub(crate) fn mask(
    keys: &impl Steps,
    rests: &Rests,
    strings: &JsonStringTokens,
    repetition: &Repetition,
) -> Result<Mask, Error> {
    let &Repetition { min, max, exit, .. } = repetition;
    let fits =
        |one: &&EndingToken| one.characters >= min && max.is_none_or(|max| one.characters <= max);
    let mut add: Vec<u32> = Vec::new();
    let closed = exit.map_or(Ok(None), |exit| keys.step(exit, b'"'))?;
    let mut base = strings.continuing(max);
    if let Some(closed) = closed {
        let viable = rests.of(keys, strings, closed)?;
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
        for rest in viable.iter() {
            add.extend(strings.tokens_with_suffix(rest).iter().filter(fits).map(|one| one.token));
        }
    }
    Ok(Mask::patched(base, add, Vec::new()))
}

/// The mask between two characters of a string that refuses nothing before its end: tokens that
/// end it are read up to the quote, and what is behind it once for each key that it leads to.
pub(crate) fn open(
    keys: &impl Steps,
    rests: &Rests,
    strings: &JsonStringTokens,
    key: KeyId,
) -> Result<Mask, Error> {
    let mut texts = vec![(0, key)];
    for root in (0..=255).filter_map(|byte| strings.prefix_root(byte)) {
        trie_strings::words(keys, strings.prefix_nodes(), (root, key), &mut |text, after| {
            texts.push((text, after));
        })?;
    }
    let mut ended: Vec<u32> = Vec::new();
    let mut known: Vec<(KeyId, Arc<Viable>)> = Vec::new();
    for (text, after) in texts {
        let Some(closed) = keys.step(after, b'"')? else { continue };
        let at = match known.iter().position(|one| one.0 == closed) {
            Some(at) => at,
            None => {
                known.push((closed, rests.of(keys, strings, closed)?));
                known.len() - 1
            }
        };
        let viable = |rest: u32| known[at].1.has(rest);
        let closings = strings.closing_tokens(text).iter();
        ended.extend(closings.filter(|one| one.suffix.is_none_or(viable)).map(|one| one.token));
    }
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
