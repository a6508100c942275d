//! A set of tokens: a list if small, a bitmask if large.

use std::borrow::Cow;

use crate::MaskWords;

/// Set size, in tokens, from which on a set is stored as a bitmask. Chosen, not measured.
pub(super) const MIN_BITMASK_SIZE: usize = 768;

/// A set of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenSet {
    /// The tokens of a small set.
    List(Vec<u32>),
    /// The bitmask of a large set.
    Mask(Vec<u32>),
}

impl TokenSet {
    /// Stores a bitmask in the smaller form.
    pub fn from_words(words: Vec<u32>) -> TokenSet {
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        if count >= MIN_BITMASK_SIZE {
            return TokenSet::Mask(words);
        }
        TokenSet::List(TokenSet::Mask(words).into_list())
    }

    /// Returns the tokens, in any order.
    pub fn into_list(self) -> Vec<u32> {
        match self {
            TokenSet::List(list) => list,
            TokenSet::Mask(words) => {
                let mut list = Vec::new();
                for_each_bit(&words, |token| list.push(token));
                list
            }
        }
    }

    /// Returns the tokens that are also in a bitmask.
    pub fn within(&self, words: &MaskWords) -> TokenSet {
        match self {
            TokenSet::Mask(mask) => {
                let both = mask.iter().zip(words).map(|(one, other)| one & other);
                TokenSet::from_words(both.collect())
            }
            TokenSet::List(list) => {
                let has = |token: &u32| words[*token as usize >> 5] >> (token & 31) & 1 != 0;
                TokenSet::List(list.iter().copied().filter(has).collect())
            }
        }
    }

    /// Returns the set as a bitmask of some length.
    pub(super) fn words(&self, len: usize) -> Cow<'_, MaskWords> {
        match self {
            TokenSet::Mask(mask) => Cow::Borrowed(mask),
            TokenSet::List(list) => {
                let mut words = vec![0; len];
                list.iter().for_each(|&token| set_bit(&mut words, token));
                Cow::Owned(words)
            }
        }
    }

    /// Adds the set to a bitmask.
    pub fn add_to(&self, words: &mut MaskWords) {
        match self {
            TokenSet::List(list) => list.iter().for_each(|&token| set_bit(words, token)),
            TokenSet::Mask(mask) => {
                words.iter_mut().zip(mask).for_each(|(word, more)| *word |= more);
            }
        }
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            TokenSet::List(list) => list.is_empty(),
            TokenSet::Mask(mask) => mask.iter().all(|&word| word == 0),
        }
    }

    /// Calls `look` for each token until it returns a value.
    pub fn find<R>(&self, mut look: impl FnMut(u32) -> Option<R>) -> Option<R> {
        match self {
            TokenSet::List(list) => list.iter().find_map(|&token| look(token)),
            TokenSet::Mask(words) => {
                for (at, &word) in words.iter().enumerate() {
                    let mut rest = word;
                    while rest != 0 {
                        let found = look(at as u32 * 32 + rest.trailing_zeros());
                        if found.is_some() {
                            return found;
                        }
                        rest &= rest - 1;
                    }
                }
                None
            }
        }
    }

    /// Passes the set in parts: the index of a word of its bitmask, and some bits of that word.
    pub fn for_each_word(&self, mut each: impl FnMut(usize, u32)) {
        match self {
            TokenSet::List(list) => {
                list.iter().for_each(|&token| each(token as usize >> 5, 1 << (token & 31)));
            }
            TokenSet::Mask(words) => {
                let words = words.iter().enumerate().filter(|&(_, &word)| word != 0);
                words.for_each(|(at, &word)| each(at, word));
            }
        }
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            TokenSet::List(list) | TokenSet::Mask(list) => {
                size_of::<TokenSet>() + 4 * list.capacity()
            }
        }
    }
}

#[inline]
pub(super) fn set_bit(words: &mut MaskWords, token: u32) {
    words[token as usize >> 5] |= 1 << (token & 31);
}

/// Hands out the tokens of a bitmask.
fn for_each_bit(words: &MaskWords, mut each: impl FnMut(u32)) {
    for (at, &word) in words.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            each(at as u32 * 32 + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
}
