//! What tokens do inside a string of JSON.
//!
//! Whatever is around a string of which nothing is asked, a token read between two of its
//! characters goes on with it, or ends it and has a *rest* behind the quote. The first are a
//! bitmask; of the others only distinct rests have to be read.

use std::sync::Arc;

use formalm_automata::spelling::{Escape, Escapes, Read, read, some_completion};
use formalm_automata::{Lock, SetOnce};
use rustc_hash::FxHashMap;

use crate::Words;
use crate::flat_trie::{self, Flat, Node};
use crate::token_bytes::Tokens;

/// Bitmasks of tokens that go on with a string or end it, kept by the rests that may follow.
const ENDED: usize = 64;

/// A token that ends a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The token.
    pub token: u32,
    /// Characters of the string that it has before the quote.
    pub characters: u32,
}

/// A token that ends a string behind some text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The token.
    pub token: u32,
    /// The rest behind the quote, if there is one.
    pub rest: Option<u32>,
}

/// Tokens by what they do inside a string, for one way of spelling strings.
#[derive(Debug)]
pub struct Strings {
    words: usize,
    /// Tokens that go on with the string, by the characters they begin, the most first.
    staying: Vec<(u32, u32)>,
    /// Bitmasks of those with at most so many characters, the last of all.
    within: Box<[SetOnce<Arc<Words>>]>,
    /// The last of these, and the tokens that end with the quote.
    or_end: SetOnce<Arc<Words>>,
    /// The same and the tokens with one of some rests, by a set of rests.
    ended: Lock<FxHashMap<Box<[u64]>, Arc<Words>>>,
    ends: Vec<Ending>,
    rests: Flat,
    /// Per rest where its tokens begin; one more entry at the end.
    first: Vec<u32>,
    endings: Vec<Ending>,
    /// What tokens that end the string spell before the quote; the number of nothing is 0.
    texts: Flat,
    /// Per such text where its tokens begin; one more entry at the end.
    first_closing: Vec<u32>,
    closings: Vec<Closing>,
    /// Tokens after which the string goes on and that spell no character with an escape.
    plain: SetOnce<Arc<Words>>,
    escaped: Escaped,
}

/// Tokens after which a string goes on and that spell some character with an escape.
#[derive(Debug)]
struct Escaped {
    spellings: Flat,
    /// Per spelling where its tokens begin; one more entry at the end.
    first: Vec<u32>,
    tokens: Vec<u32>,
}

/// What a token does inside a string.
enum Does<'a> {
    Stay(u32),
    End(u32, &'a [u8]),
}

impl Strings {
    /// What tokens do inside a string.
    pub(crate) fn new(tokens: &Tokens, escapes: Escapes) -> Strings {
        Strings::of(tokens.iter(), tokens.len(), escapes)
    }

    /// What tokens that open a string do inside of it, behind the quote that they begin with.
    pub(crate) fn opened(tokens: &Tokens, escapes: Escapes) -> Strings {
        let opening = tokens.iter().filter_map(|(token, bytes)| {
            let (&first, rest) = bytes.split_first()?;
            (first == b'"').then_some((token, rest))
        });
        Strings::of(opening, tokens.len(), escapes)
    }

    fn of<'a>(
        tokens: impl Iterator<Item = (u32, &'a [u8])>,
        count: usize,
        escapes: Escapes,
    ) -> Strings {
        let (mut staying, mut ends) = (Vec::new(), Vec::new());
        let mut found: Vec<(&[u8], Ending)> = Vec::new();
        let mut closing: Vec<(&[u8], Closing)> = Vec::new();
        let mut escaped: Vec<(u32, &[u8])> = Vec::new();
        for (token, bytes) in tokens {
            let (characters, rest) = match does(bytes, escapes) {
                Some(Does::Stay(characters)) => {
                    staying.push((characters, token));
                    if bytes.contains(&b'\\') {
                        escaped.push((token, bytes));
                    }
                    continue;
                }
                Some(Does::End(characters, rest)) => (characters, rest),
                None => continue,
            };
            let text = &bytes[..bytes.len() - rest.len() - 1];
            match rest {
                [] => ends.push(Ending { token, characters }),
                _ => found.push((rest, Ending { token, characters })),
            }
            closing.push((text, Closing { token, rest: None }));
        }
        staying.sort_unstable_by_key(|&(characters, token)| (u32::MAX - characters, token));
        let most = staying.first().map_or(0, |&(characters, _)| characters as usize);
        let within = (0..=most).map(|_| SetOnce::new()).collect();
        let (mut rests, mut first): (Vec<(&[u8], u32)>, Vec<u32>) = Default::default();
        let mut endings = Vec::with_capacity(found.len());
        for at in flat_trie::sorted(found.len(), |at| found[at].0) {
            let (rest, ending) = found[at as usize];
            if rests.last().is_none_or(|&(last, _)| last != rest) {
                rests.push((rest, rests.len() as u32));
                first.push(endings.len() as u32);
            }
            endings.push(ending);
        }
        first.push(endings.len() as u32);
        let spare = rests.len() as u32;
        let rests = Flat::new(rests.into_iter(), spare);
        let words = count.div_ceil(32);
        let mut rest_of = FxHashMap::default();
        for (rest, pair) in first.windows(2).enumerate() {
            let tokens = &endings[pair[0] as usize..pair[1] as usize];
            rest_of.extend(tokens.iter().map(|one| (one.token, rest as u32)));
        }
        for (_, one) in &mut closing {
            one.rest = rest_of.get(&one.token).copied();
        }
        let (texts, first_closing, closings) = by_text(&closing);
        let escaped = Escaped::new(&escaped);
        let (or_end, plain) = (SetOnce::new(), SetOnce::new());
        Strings {
            words,
            staying,
            within,
            or_end,
            ended: Lock::default(),
            ends,
            rests,
            first,
            endings,
            texts,
            first_closing,
            closings,
            plain,
            escaped,
        }
    }

    /// Bitmask of the tokens after which the string goes on, having begun at most so many
    /// characters.
    pub fn stay(&self, most: Option<u32>) -> &Arc<Words> {
        let last = self.within.len() - 1;
        let most = most.map_or(last, |most| last.min(most as usize));
        self.within[most].get_or_init(|| {
            let mut words = vec![0; self.words];
            let few = self.staying.partition_point(|&(characters, _)| characters as usize > most);
            for &(_, token) in &self.staying[few..] {
                words[token as usize >> 5] |= 1 << (token & 31);
            }
            words.into()
        })
    }

    /// `(characters, token)` of the tokens after which the string goes on, having begun more than
    /// so many characters.
    pub fn longer(&self, most: u32) -> &[(u32, u32)] {
        let few = self.staying.partition_point(|&(characters, _)| characters > most);
        &self.staying[..few]
    }

    /// Bitmask of the tokens after which the string goes on or has just ended.
    pub fn stay_or_end(&self) -> &Arc<Words> {
        self.or_end.get_or_init(|| {
            let mut words = self.stay(None).to_vec();
            for &Ending { token, .. } in &self.ends {
                words[token as usize >> 5] |= 1 << (token & 31);
            }
            words.into()
        })
    }

    /// Bitmask of the tokens after which the string goes on or has ended with one of a set of rests
    /// or none, where bit `rest & 63` of word `rest >> 6` is set. There are few such sets, which
    /// all constraints share; beyond those that are kept there is `None`.
    pub fn stay_or_end_with(&self, rests: &[u64]) -> Option<Arc<Words>> {
        let mut ended = self.ended.lock();
        if let Some(known) = ended.get(rests) {
            return Some(Arc::clone(known));
        }
        if ended.len() == ENDED {
            return None;
        }
        let mut words = self.stay_or_end().to_vec();
        let viable = |rest: u32| rests[rest as usize >> 6] >> (rest & 63) & 1 != 0;
        for rest in (0..self.rest_count() as u32).filter(|&rest| viable(rest)) {
            for &Ending { token, .. } in self.endings(rest) {
                words[token as usize >> 5] |= 1 << (token & 31);
            }
        }
        let words: Arc<Words> = words.into();
        ended.insert(rests.into(), Arc::clone(&words));
        Some(words)
    }

    /// Bitmask of the tokens after which the string goes on and that are the text that they spell.
    pub fn plain(&self) -> &Arc<Words> {
        self.plain.get_or_init(|| {
            let mut words = self.stay(None).to_vec();
            for &token in &self.escaped.tokens {
                words[token as usize >> 5] &= !(1 << (token & 31));
            }
            words.into()
        })
    }

    /// The prefix tree of the other tokens after which the string goes on: those with an escape.
    /// [`Node::word`] is the number of a spelling.
    pub fn escaped(&self) -> &[Node] {
        self.escaped.spellings.nodes()
    }

    /// The tokens of a spelling with an escape.
    pub fn escaped_tokens(&self, spelling: u32) -> &[u32] {
        let (first, at) = (&self.escaped.first, spelling as usize);
        &self.escaped.tokens[first[at] as usize..first[at + 1] as usize]
    }

    /// How many rests there are.
    pub fn rest_count(&self) -> usize {
        self.first.len() - 1
    }

    /// Tokens that end with the quote.
    pub fn ends(&self) -> &[Ending] {
        &self.ends
    }

    /// The prefix tree of rests in depth-first order; [`Node::word`] is the number of a rest.
    pub fn nodes(&self) -> &[Node] {
        self.rests.nodes()
    }

    /// The node of a rest's first byte.
    pub fn root(&self, byte: u8) -> Option<u32> {
        self.rests.root(byte)
    }

    /// The tokens with a rest.
    pub fn endings(&self, rest: u32) -> &[Ending] {
        let at = rest as usize;
        &self.endings[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// The prefix tree of what tokens that end the string spell before the quote, in depth-first
    /// order; [`Node::word`] is the number of such a text. The number of no text at all is 0.
    pub fn texts(&self) -> &[Node] {
        self.texts.nodes()
    }

    /// The node of such a text's first byte.
    pub fn text_root(&self, byte: u8) -> Option<u32> {
        self.texts.root(byte)
    }

    /// The number of a text that tokens that end the string spell before the quote.
    pub fn text(&self, text: &[u8]) -> Option<u32> {
        let Some((&first, rest)) = text.split_first() else { return Some(0) };
        let root = self.text_root(first)?;
        let node = rest.iter().try_fold(root, |node, &byte| self.texts.child(node, byte))?;
        self.texts()[node as usize].word()
    }

    /// The tokens that end the string behind a text.
    pub fn closings(&self, text: u32) -> &[Closing] {
        let at = text as usize;
        &self.closings[self.first_closing[at] as usize..self.first_closing[at + 1] as usize]
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let made = self.within.iter().chain([&self.or_end, &self.plain]);
        let ended = self.ended.lock().len();
        let made = made.filter(|one| one.get().is_some()).count() + ended;
        8 * (self.staying.len() + self.ends.len() + self.endings.len())
            + 4 * (made * self.words + self.first.len() + self.first_closing.len())
            + self.closings.len() * size_of::<Closing>()
            + self.rests.memory_bytes()
            + self.texts.memory_bytes()
            + self.escaped.spellings.memory_bytes()
            + 4 * (self.escaped.first.len() + self.escaped.tokens.len())
    }
}

impl Escaped {
    fn new(list: &[(u32, &[u8])]) -> Escaped {
        let (mut spellings, mut first): (Vec<(&[u8], u32)>, Vec<u32>) = Default::default();
        let mut tokens = Vec::with_capacity(list.len());
        for at in flat_trie::sorted(list.len(), |at| list[at].1) {
            let (token, bytes) = list[at as usize];
            if spellings.last().is_none_or(|&(last, _)| last != bytes) {
                spellings.push((bytes, first.len() as u32));
                first.push(tokens.len() as u32);
            }
            tokens.push(token);
        }
        let spare = first.len() as u32;
        first.push(tokens.len() as u32);
        Escaped { spellings: Flat::new(spellings.into_iter(), spare), first, tokens }
    }
}

/// Tokens by the text that they spell before the quote: a prefix tree of these texts, where the
/// tokens of each begin, and the tokens.
fn by_text(closing: &[(&[u8], Closing)]) -> (Flat, Vec<u32>, Vec<Closing>) {
    let mut list = Vec::with_capacity(closing.len());
    let (mut texts, mut first): (Vec<(&[u8], u32)>, Vec<u32>) = (Vec::new(), vec![0]);
    let mut last: &[u8] = &[];
    for at in flat_trie::sorted(closing.len(), |at| closing[at].0) {
        let (text, one) = closing[at as usize];
        if text != last {
            texts.push((text, first.len() as u32));
            first.push(list.len() as u32);
            last = text;
        }
        list.push(one);
    }
    let spare = first.len() as u32;
    first.push(list.len() as u32);
    (Flat::new(texts.into_iter(), spare), first, list)
}

/// What a token does between two characters of a string; `None` if it cannot stand there.
fn does(bytes: &[u8], escapes: Escapes) -> Option<Does<'_>> {
    let (mut escape, mut characters) = (Escape::None, 0);
    for (at, &byte) in bytes.iter().enumerate() {
        let begins = escape == Escape::None;
        match read(escape, byte, escapes) {
            Read::Wrong => return None,
            Read::End => {
                let whole = std::str::from_utf8(&bytes[..at]).is_ok();
                return whole.then(|| Does::End(characters, &bytes[at + 1..]));
            }
            Read::Inside(next) => {
                let possible = some_completion(next, escapes, &|_: &[u8]| Ok(Ok(())));
                if !possible.unwrap_or(false) {
                    return None;
                }
                characters += u32::from(begins);
                escape = next;
            }
            Read::Text(_) => {
                characters += u32::from(begins && byte & 0xC0 != 0x80);
                escape = Escape::None;
            }
        }
    }
    let unfinished = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // It ends inside a character, which nothing but its bytes may follow.
        Err(error) => error.error_len().is_none() && escape == Escape::None,
    };
    unfinished.then_some(Does::Stay(characters))
}

#[cfg(test)]
mod tests;
