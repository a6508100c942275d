//! The effect of every token inside a JSON string: it continues the string, or closes it and leaves
//! a suffix.
//!
//! ```text
//!  inside "…"      token  ab      continues, 2 characters        ──► one bitmask
//!                  token  b":1    prefix `b`, then suffix `:1`   ──► only distinct suffixes are read
//!                  token  \n"     prefix `\n`, closes exactly
//! ```
//!
//! For a string that no keyword constrains, the tokens that continue it are one precomputed
//! bitmask, whatever surrounds the string. Of the tokens that close it, only the distinct
//! *suffixes* (the bytes after the closing quote) have to be read from the state after the string.
//! A *prefix* is what a closing token spells before the quote.

use std::sync::Arc;

use formalm_core::{ForkSafeMutex, MemoryBytes, SetOnce};
use formalm_json::escapes::{
    EscapePolicy, EscapeState, EscapeStep, read_string_byte, some_completion,
};
use rustc_hash::FxHashMap;

use crate::flat_trie::FlatTrie;
use crate::token_byte_table::TokenBytes;
use crate::{MaskWords, TokenTrie, flat_trie};

/// Maximum number of cached masks of "continues or closes with one of these suffixes". Beyond it
/// the caller computes the mask itself. Chosen, not measured.
const MAX_SUFFIX_SET_MASKS: usize = 64;

/// The bytes before the content of a JSON string that a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringOpening {
    /// The opening quote.
    Quote,
    /// A space, as separators have it, and the quote.
    SpaceAndQuote,
}

impl StringOpening {
    /// Returns the bytes.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            StringOpening::Quote => b"\"",
            StringOpening::SpaceAndQuote => b" \"",
        }
    }
}

/// A token that closes a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndingToken {
    /// The token id.
    pub token: u32,
    /// Characters of the string that the token has before the quote.
    pub characters: u32,
}

/// A token that closes a string after a given prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingToken {
    /// The token id.
    pub token: u32,
    /// The number of the suffix after the quote, if it is not empty.
    pub suffix: Option<u32>,
}

/// The tokens by their effect inside a string, for one set of allowed escapes.
#[derive(Debug)]
pub struct JsonStringTokens {
    words: usize,
    /// `(characters, token)` of the tokens that continue the string, by the number of characters
    /// they begin, most first.
    continuing: Vec<(u32, u32)>,
    /// Per number of characters, the bitmask of continuing tokens with at most that many; the last
    /// one has all.
    continuing_masks: Box<[SetOnce<Arc<MaskWords>>]>,
    /// All continuing tokens and those that end with the quote.
    continuing_or_closing: SetOnce<Arc<MaskWords>>,
    /// The above plus the tokens with one of a set of suffixes, by that set.
    suffix_set_masks: ForkSafeMutex<FxHashMap<Box<[u64]>, Arc<MaskWords>>>,
    ends: Vec<EndingToken>,
    suffixes: FlatTrie,
    /// Per suffix, the start of its tokens in `endings`; one more entry at the end.
    first: Vec<u32>,
    endings: Vec<EndingToken>,
    /// The trie of prefixes. The empty prefix has number 0.
    prefixes: FlatTrie,
    /// Per prefix, the start of its tokens in `closings`; one more entry at the end.
    first_closing: Vec<u32>,
    closings: Vec<ClosingToken>,
    /// The length of the longest prefix, in bytes.
    longest_prefix: usize,
    /// Continuing tokens that spell no character with an escape.
    plain: SetOnce<Arc<MaskWords>>,
    escaped: EscapedTokens,
}

/// The continuing tokens that spell some character with an escape.
#[derive(Debug)]
struct EscapedTokens {
    spellings: FlatTrie,
    /// Per spelling, the start of its tokens; one more entry at the end.
    first: Vec<u32>,
    tokens: Vec<u32>,
}

/// The effect of a token inside a string.
enum StringEffect<'a> {
    Continue(u32),
    Close(u32, &'a [u8]),
}

impl JsonStringTokens {
    /// Classifies the tokens as read inside a string.
    pub(crate) fn new(tokens: &TokenBytes, escapes: EscapePolicy) -> JsonStringTokens {
        JsonStringTokens::of(tokens.iter(), tokens.len(), escapes)
    }

    /// Classifies the tokens that open a string, by their effect after the opening quote.
    pub(crate) fn after_opening(
        (tokens, trie): (&TokenBytes, &TokenTrie),
        opening: StringOpening,
        escapes: EscapePolicy,
    ) -> JsonStringTokens {
        let node = trie.find(opening.bytes());
        let opened = node.map(|node| [trie.tokens_at(node), trie.tokens_below(node)].concat());
        let mut opened = opened.unwrap_or_default();
        opened.sort_unstable();
        let opened = opened
            .into_iter()
            .filter_map(|token| Some((token, tokens.get(token)?.strip_prefix(opening.bytes())?)));
        JsonStringTokens::of(opened, tokens.len(), escapes)
    }

    fn of<'a>(
        tokens: impl Iterator<Item = (u32, &'a [u8])>,
        count: usize,
        escapes: EscapePolicy,
    ) -> JsonStringTokens {
        let (mut continuing, mut ends) = (Vec::new(), Vec::new());
        let mut found: Vec<(&[u8], EndingToken)> = Vec::new();
        let mut closing: Vec<(&[u8], ClosingToken)> = Vec::new();
        let mut escaped: Vec<(&[u8], u32)> = Vec::new();
        for (token, bytes) in tokens {
            let (characters, rest) = match string_effect(bytes, escapes) {
                Some(StringEffect::Continue(characters)) => {
                    continuing.push((characters, token));
                    if bytes.contains(&b'\\') {
                        escaped.push((bytes, token));
                    }
                    continue;
                }
                Some(StringEffect::Close(characters, rest)) => (characters, rest),
                None => continue,
            };
            let text = &bytes[..bytes.len() - rest.len() - 1];
            match rest {
                [] => ends.push(EndingToken { token, characters }),
                _ => found.push((rest, EndingToken { token, characters })),
            }
            closing.push((text, ClosingToken { token, suffix: None }));
        }
        continuing.sort_unstable_by_key(|&(characters, token)| (u32::MAX - characters, token));
        let most = continuing.first().map_or(0, |&(characters, _)| characters as usize);
        let continuing_masks = (0..=most).map(|_| SetOnce::new()).collect();
        let (suffixes, first, endings) = flat_trie::grouped(&found);
        let words = count.div_ceil(32);
        let mut suffix_of = FxHashMap::default();
        for (rest, pair) in first.windows(2).enumerate() {
            let tokens = &endings[pair[0] as usize..pair[1] as usize];
            suffix_of.extend(tokens.iter().map(|one| (one.token, rest as u32)));
        }
        for (_, one) in &mut closing {
            one.suffix = suffix_of.get(&one.token).copied();
        }
        let longest_prefix = closing.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        let (prefixes, first_closing, closings) = group_by_prefix(&closing);
        let (spellings, first_spelled, tokens) = flat_trie::grouped(&escaped);
        let escaped = EscapedTokens { spellings, first: first_spelled, tokens };
        let (continuing_or_closing, plain) = (SetOnce::new(), SetOnce::new());
        JsonStringTokens {
            words,
            continuing,
            continuing_masks,
            continuing_or_closing,
            suffix_set_masks: ForkSafeMutex::default(),
            ends,
            suffixes,
            first,
            endings,
            prefixes,
            first_closing,
            closings,
            longest_prefix,
            plain,
            escaped,
        }
    }

    /// Returns the bitmask of the tokens that continue the string and begin at most `most`
    /// characters.
    pub fn continuing(&self, most: Option<u32>) -> &Arc<MaskWords> {
        let last = self.continuing_masks.len() - 1;
        let most = most.map_or(last, |most| last.min(most as usize));
        self.continuing_masks[most].get_or_init(|| {
            let few =
                self.continuing.partition_point(|&(characters, _)| characters as usize > most);
            let (longer, short) = self.continuing.split_at(few);
            if most < last && longer.len() < short.len() {
                // Few tokens are long, so clearing theirs is faster than setting all other bits.
                let mut words = self.continuing(None).to_vec();
                for &(_, token) in longer {
                    words[token as usize >> 5] &= !(1 << (token & 31));
                }
                return words.into();
            }
            let mut words = vec![0; self.words];
            for &(_, token) in short {
                words[token as usize >> 5] |= 1 << (token & 31);
            }
            words.into()
        })
    }

    /// Returns `(characters, token)` of the tokens that continue the string and begin more than
    /// `most` characters.
    pub fn continuing_longer(&self, most: u32) -> &[(u32, u32)] {
        let few = self.continuing.partition_point(|&(characters, _)| characters > most);
        &self.continuing[..few]
    }

    /// Returns the bitmask of the tokens that continue the string or end with its closing quote.
    pub fn continuing_or_closing(&self) -> &Arc<MaskWords> {
        self.continuing_or_closing.get_or_init(|| {
            let mut words = self.continuing(None).to_vec();
            for &EndingToken { token, .. } in &self.ends {
                words[token as usize >> 5] |= 1 << (token & 31);
            }
            words.into()
        })
    }

    /// Returns the bitmask of the tokens that continue the string or close it with no suffix or one
    /// of `suffixes`, where bit `suffix & 63` of word `suffix >> 6` is set. Few such sets occur,
    /// and all constraints share them. Returns `None` if the cache is full.
    pub fn continuing_or_closing_with(&self, suffixes: &[u64]) -> Option<Arc<MaskWords>> {
        let mut suffix_set_masks = self.suffix_set_masks.lock();
        if let Some(known) = suffix_set_masks.get(suffixes) {
            return Some(Arc::clone(known));
        }
        if suffix_set_masks.len() == MAX_SUFFIX_SET_MASKS {
            return None;
        }
        let mut words = self.continuing_or_closing().to_vec();
        let viable = |suffix: u32| suffixes[suffix as usize >> 6] >> (suffix & 63) & 1 != 0;
        for suffix in (0..self.suffix_count() as u32).filter(|&suffix| viable(suffix)) {
            for &EndingToken { token, .. } in self.tokens_with_suffix(suffix) {
                words[token as usize >> 5] |= 1 << (token & 31);
            }
        }
        let words: Arc<MaskWords> = words.into();
        suffix_set_masks.insert(suffixes.into(), Arc::clone(&words));
        Some(words)
    }

    /// Returns the bitmask of the tokens that continue the string and use no escape, so that their
    /// bytes are what they spell.
    pub fn continuing_unescaped(&self) -> &Arc<MaskWords> {
        self.plain.get_or_init(|| {
            let mut words = self.continuing(None).to_vec();
            for &token in &self.escaped.tokens {
                words[token as usize >> 5] &= !(1 << (token & 31));
            }
            words.into()
        })
    }

    /// Returns the trie of the other continuing tokens, those with an escape.
    /// [`crate::TrieNode::word`] is the number of a spelling.
    pub fn escaped_spellings(&self) -> &FlatTrie {
        &self.escaped.spellings
    }

    /// Returns the tokens of a spelling with an escape.
    pub fn escaped_tokens(&self, spelling: u32) -> &[u32] {
        let (first, at) = (&self.escaped.first, spelling as usize);
        &self.escaped.tokens[first[at] as usize..first[at + 1] as usize]
    }

    /// Returns the number of distinct suffixes.
    pub fn suffix_count(&self) -> usize {
        self.first.len() - 1
    }

    /// Returns the tokens that end with the closing quote.
    pub fn ending_exactly(&self) -> &[EndingToken] {
        &self.ends
    }

    /// Returns the trie of suffixes; [`crate::TrieNode::word`] is the number of a suffix.
    pub fn suffixes(&self) -> &FlatTrie {
        &self.suffixes
    }

    /// Returns the node of the first byte of a suffix.
    pub fn suffix_root(&self, byte: u8) -> Option<u32> {
        self.suffixes.root(byte)
    }

    /// Returns the tokens with a suffix.
    pub fn tokens_with_suffix(&self, suffix: u32) -> &[EndingToken] {
        let at = suffix as usize;
        &self.endings[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Returns the trie of prefixes; [`crate::TrieNode::word`] is the number of a prefix. The empty
    /// prefix has number 0.
    pub fn prefixes(&self) -> &FlatTrie {
        &self.prefixes
    }

    /// Returns the node of the first byte of a prefix.
    pub fn prefix_root(&self, byte: u8) -> Option<u32> {
        self.prefixes.root(byte)
    }

    /// Returns the number of the prefix `text`, if some closing token has it.
    pub fn prefix_id(&self, text: &[u8]) -> Option<u32> {
        let Some((&first, rest)) = text.split_first() else { return Some(0) };
        let root = self.prefix_root(first)?;
        let node = rest.iter().try_fold(root, |node, &byte| self.prefixes.child(node, byte))?;
        self.prefixes.nodes()[node as usize].word()
    }

    /// Returns the length of the longest prefix, in bytes.
    pub fn longest_prefix(&self) -> usize {
        self.longest_prefix
    }

    /// Returns the tokens that close the string after a prefix.
    pub fn closing_tokens(&self, text: u32) -> &[ClosingToken] {
        let at = text as usize;
        &self.closings[self.first_closing[at] as usize..self.first_closing[at + 1] as usize]
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let compute_class_mask =
            self.continuing_masks.iter().chain([&self.continuing_or_closing, &self.plain]);
        let suffix_set_masks = self.suffix_set_masks.lock().len();
        let compute_class_mask =
            compute_class_mask.filter(|one| one.get().is_some()).count() + suffix_set_masks;
        8 * (self.continuing.len() + self.ends.len() + self.endings.len())
            + 4 * (compute_class_mask * self.words + self.first.len() + self.first_closing.len())
            + self.closings.len() * size_of::<ClosingToken>()
            + self.suffixes.memory_bytes()
            + self.prefixes.memory_bytes()
            + self.escaped.spellings.memory_bytes()
            + 4 * (self.escaped.first.len() + self.escaped.tokens.len())
    }
}

/// Groups closing tokens by prefix: returns the trie of prefixes, the start of each prefix's
/// tokens, and the tokens.
fn group_by_prefix(closing: &[(&[u8], ClosingToken)]) -> (FlatTrie, Vec<u32>, Vec<ClosingToken>) {
    let mut list = Vec::with_capacity(closing.len());
    let (mut prefixes, mut first): (Vec<(&[u8], u32)>, Vec<u32>) = (Vec::new(), vec![0]);
    let mut last: &[u8] = &[];
    for at in flat_trie::sorted_positions(closing.len(), |at| closing[at].0) {
        let (text, one) = closing[at as usize];
        if text != last {
            prefixes.push((text, first.len() as u32));
            first.push(list.len() as u32);
            last = text;
        }
        list.push(one);
    }
    let spare = first.len() as u32;
    first.push(list.len() as u32);
    (FlatTrie::new(prefixes.into_iter(), spare), first, list)
}

/// Returns the effect of a token read between two characters of a string, or `None` if it cannot
/// occur there.
fn string_effect(bytes: &[u8], escapes: EscapePolicy) -> Option<StringEffect<'_>> {
    let (mut escape, mut characters) = (EscapeState::None, 0);
    for (at, &byte) in bytes.iter().enumerate() {
        let begins = escape == EscapeState::None;
        match read_string_byte(escape, byte, escapes) {
            EscapeStep::Invalid => return None,
            EscapeStep::End => {
                let whole = std::str::from_utf8(&bytes[..at]).is_ok();
                return whole.then(|| StringEffect::Close(characters, &bytes[at + 1..]));
            }
            EscapeStep::Partial(next) => {
                let possible = some_completion(next, escapes, &|_: &[u8]| Ok(Ok(())));
                if !possible.unwrap_or(false) {
                    return None;
                }
                characters += u32::from(begins);
                escape = next;
            }
            EscapeStep::Char(_) => {
                characters += u32::from(begins && byte & 0xC0 != 0x80);
                escape = EscapeState::None;
            }
        }
    }
    let unfinished = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // The token ends inside a character, which only its remaining bytes may follow.
        Err(error) => error.error_len().is_none() && escape == EscapeState::None,
    };
    unfinished.then_some(StringEffect::Continue(characters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;

    #[test]
    fn tokens_continue_or_close_a_json_string() {
        let list: [&[u8]; 12] = [
            b"ab",
            b"a\"",
            b"\"",
            b"b\":1",
            b"\\n\\\"",
            b"\\",
            b"\\u00",
            b"\xE2\x82",
            b"\x82",
            b"a\n",
            b"\\u1",
            b"\xE2\"",
        ];
        let tokens = list.iter().map(|bytes| Some(bytes.to_vec())).collect();
        let vocabulary = Vocabulary::from_tokens(tokens, Vec::new()).unwrap();
        let strings = vocabulary.json_string_tokens(EscapePolicy::Minimal);
        let ids = |most| (0..12).filter(|id| strings.continuing(most)[0] >> id & 1 != 0).collect();
        let (all, one, none): (Vec<u32>, Vec<u32>, Vec<u32>) =
            (ids(None), ids(Some(1)), ids(Some(0)));
        assert_eq!(all, [0, 4, 5, 6, 7]);
        assert_eq!(one, [5, 6, 7]);
        assert!(none.is_empty());
        let longer: Vec<_> = strings.continuing_longer(1).iter().map(|one| one.1).collect();
        assert_eq!((longer, strings.continuing_longer(2).len()), (vec![0, 4], 0));
        let ends: Vec<_> =
            strings.ending_exactly().iter().map(|one| (one.token, one.characters)).collect();
        assert_eq!(ends, [(1, 1), (2, 0)]);
        assert_eq!(strings.tokens_with_suffix(0), [EndingToken { token: 3, characters: 1 }]);
        assert_eq!(strings.closing_tokens(0), [ClosingToken { token: 2, suffix: None }]);
        let texts = strings.prefixes.nodes().iter().filter_map(|node| node.word());
        let closings: Vec<_> = texts.flat_map(|text| strings.closing_tokens(text)).collect();
        let expected =
            [ClosingToken { token: 1, suffix: None }, ClosingToken { token: 3, suffix: Some(0) }];
        assert_eq!(closings, [&expected[0], &expected[1]]);
        let ended = |rests: &[u64]| strings.continuing_or_closing_with(rests).map(|words| words[0]);
        let both = strings.continuing_or_closing()[0];
        assert_eq!(
            (ended(&[0]), ended(&[1]), ended(&[1])),
            (Some(both), Some(both | 1 << 3), Some(both | 1 << 3),)
        );
        let any: Vec<u32> = {
            let strings = vocabulary.json_string_tokens(EscapePolicy::Any);
            (0..12).filter(|id| strings.continuing(None)[0] >> id & 1 != 0).collect()
        };
        assert_eq!(any, [0, 4, 5, 6, 7, 10]);
    }
}
