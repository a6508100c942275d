//! The tokens of joins, and their unions.

use std::sync::Arc;

use crate::mask::{MaskWords, has, patch};

/// The tokens of a join.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum TokenUnion {
    /// Those of several summaries: a list of numbers of [`super::LexicalTables::ranges`].
    Ranges(u32),
    /// Others.
    Made(JoinedTokens),
}

impl TokenUnion {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            TokenUnion::Ranges(list) => *list == 0,
            TokenUnion::Made(tokens) => {
                matches!(tokens, JoinedTokens::Ranges(ranges) if ranges.is_empty())
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            TokenUnion::Ranges(_) => 0,
            TokenUnion::Made(tokens) => tokens.memory_bytes(),
        }
    }
}

/// Tokens in the form in which they are joined.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum JoinedTokens {
    /// Ranges of the trie's order.
    Ranges(Arc<[(u32, u32)]>),
    /// A bitmask.
    MaskWords(Arc<MaskWords>),
    /// A shared bitmask, with tokens to add and to remove.
    Patched(Arc<MaskWords>, Box<[u32]>, Box<[u32]>),
}

impl JoinedTokens {
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            JoinedTokens::Ranges(ranges) => 8 * ranges.len(),
            JoinedTokens::MaskWords(words) => 4 * words.len(),
            JoinedTokens::Patched(_, add, remove) => 4 * (add.len() + remove.len()),
        }
    }
}

/// A union of tokens under construction.
pub(super) struct MaskUnion<'a> {
    pub(super) order: &'a [u32],
    /// The union, as long as it is one shared bitmask.
    pub(super) only: Option<Arc<MaskWords>>,
    pub(super) words: Vec<u32>,
}

impl MaskUnion<'_> {
    pub(super) fn add(&mut self, tokens: &JoinedTokens, size: usize) {
        match tokens {
            JoinedTokens::MaskWords(words) if self.words.is_empty() && self.only.is_none() => {
                self.only = Some(Arc::clone(words));
            }
            JoinedTokens::MaskWords(words) => {
                self.begin(size);
                self.add_words(words);
            }
            JoinedTokens::Patched(base, add, remove) => {
                self.begin(size);
                let mut others = remove.to_vec();
                others.retain(|&id| has(&self.words, id));
                self.add_words(base);
                patch(&mut self.words, &[], remove);
                patch(&mut self.words, add, &[]);
                patch(&mut self.words, &others, &[]);
            }
            JoinedTokens::Ranges(ranges) => {
                if !ranges.is_empty() {
                    self.begin(size);
                }
                self.add_ranges(ranges);
            }
        }
    }

    pub(super) fn add_words(&mut self, words: &MaskWords) {
        for (word, more) in self.words.iter_mut().zip(words) {
            *word |= more;
        }
    }

    pub(super) fn add_ranges(&mut self, ranges: &[(u32, u32)]) {
        for &(from, to) in ranges {
            for &id in &self.order[from as usize..to as usize] {
                self.words[id as usize >> 5] |= 1 << (id & 31);
            }
        }
    }

    fn begin(&mut self, size: usize) {
        if self.words.is_empty() {
            match &self.only {
                Some(words) => self.words = words.to_vec(),
                None => self.words = vec![0; size],
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_has_the_tokens_of_all_its_parts() {
        let base: Arc<MaskWords> = vec![0b1111, 0, 0b11].into();
        let near = |add: &[u32], remove: &[u32]| {
            JoinedTokens::Patched(Arc::clone(&base), add.into(), remove.into())
        };
        let ranges = JoinedTokens::Ranges(vec![(0, 2)].into());
        let own = JoinedTokens::MaskWords(vec![0b100, 0, 0].into());
        // Tokens that one part leaves out may be in another one, in any order.
        let parts = [near(&[40], &[2, 65]), ranges, own, near(&[33], &[0, 1, 2])];
        let order = [3, 70];
        let alone = |part: &JoinedTokens| summed(&[part], &order);
        let all = alone(&parts[0])
            .into_iter()
            .zip(parts[1..].iter().fold(vec![0; 3], |sum: Vec<u32>, part| {
                sum.into_iter().zip(alone(part)).map(|(one, other)| one | other).collect()
            }))
            .map(|(one, other)| one | other)
            .collect::<Vec<u32>>();
        assert_eq!(alone(&parts[0]), [0b1011, 1 << 8, 0b01]);
        for turn in 0..parts.len() {
            let turned: Vec<&JoinedTokens> = parts[turn..].iter().chain(&parts[..turn]).collect();
            assert_eq!(summed(&turned, &order), all);
            let back: Vec<&JoinedTokens> = turned.into_iter().rev().collect();
            assert_eq!(summed(&back, &order), all);
        }
    }

    fn summed(parts: &[&JoinedTokens], order: &[u32]) -> Vec<u32> {
        let mut sum = MaskUnion { order, only: None, words: Vec::new() };
        parts.iter().for_each(|part| sum.add(part, 3));
        match sum.only {
            Some(words) if sum.words.is_empty() => words.to_vec(),
            _ => sum.words,
        }
    }
}
