//! Masks inside JSON strings that custom recognizers read, whose states are too many to cache by
//! state.
//!
//! Such states are dropped with the lookahead that visited them, so nothing can be cached by state.
//! But most inputs are read from them as from one of a few *named* states (an equivalence class
//! with exceptions). Masks of the named states are cached with the vocabulary; the exceptional
//! tokens are read from the state itself. Where all strings of some characters are read, exceptions
//! aside, as inside a host name, the mask is that of the character class.

use std::sync::{Arc, MutexGuard};

use formalm_automata::{
    CharRecognizer, ExcludedStrings, RepresentativeLanguage, RepresentativeState, TransientState,
};
use formalm_core::{
    CharSet, ClassCover, Error, ForkSafeMutex, LazyDfa, MaskClassId, StateId, WIDE_PARTS,
};
use formalm_json::{JsonStringState, escapes::EscapePolicy};
use formalm_machines::{RegularMaskClasses, StateClasses, StatesAsClasses};
use formalm_vocabulary::{JsonStringTokens, TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

use crate::json_string::length::QuoteContinuations;
use crate::json_string::regular::walk_escaped;
use crate::lexical::LexicalMasks;
use crate::mask::{MaskWords, patch};
use crate::mask_builder::MaskBuilder;
use crate::mask_cache::MaskCache;
use crate::sorted_token_reading::read_in_order;
use crate::trie_walk::TrieWalk;

/// Maximum number of cached named states and of cached character sets. Chosen, not measured.
const MAX_CACHED: usize = 128;

/// A named state of a recognizer, with the recognizer's address.
type NamedState = (usize, EscapePolicy, String);

/// Cache of masks of named states.
#[derive(Debug, Default)]
pub(crate) struct CustomStringMasks(ForkSafeMutex<CustomStringTables>);

#[derive(Debug, Default)]
struct CustomStringTables {
    /// Unescaped tokens that continue the string. A recognizer lives as long as its entry, so its
    /// address stays unique.
    continuing: FxHashMap<NamedState, (Arc<dyn CharRecognizer>, Arc<MaskWords>)>,
    /// Tokens that contain one of some characters or texts, in byte order.
    containing: FxHashMap<Containing, Arc<[u32]>>,
}

/// Which tokens are exceptions by what they contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Containing {
    /// The ASCII characters of which they consist; `None` if any character may occur.
    class: Option<u128>,
    /// ASCII characters of which they contain one, as bits.
    characters: u128,
    /// ASCII texts of which they contain one, in any case.
    texts: &'static [&'static str],
}

/// Returns the bitmask of the tokens that continue the string: those of the representative of what
/// a recognizer reads, those of the other alternatives, and the exceptions.
pub(crate) fn continuing(
    kept: &CustomStringMasks,
    vocabulary: &Vocabulary,
    (text, transient): (&JsonStringState, &TransientState),
) -> Result<Vec<u32>, Error> {
    let strings = vocabulary.json_string_tokens(text.escapes);
    let mut words = match &transient.recognizer {
        Some((recognizer, like)) => match &like.reads {
            RepresentativeLanguage::State { state, name } => {
                let named = (Arc::as_ptr(recognizer).addr(), text.escapes, name.clone());
                kept.representative_tokens(vocabulary, (text, recognizer), (named, *state))?
                    .to_vec()
            }
            &RepresentativeLanguage::Characters(ascii) => {
                let wide = [ClassCover::None; WIDE_PARTS];
                vocabulary.class_mask(ascii, wide, &CharSet::empty()).to_vec()
            }
        },
        None => vec![0; strings.continuing_unescaped().len()],
    };
    if let Some(regular) = transient.regular {
        let keys = StatesAsClasses::new(&*text.machine);
        let class = MaskClassId::from_number(regular.number());
        TrieWalk::new(&keys, vocabulary.trie())
            .tokens(class, 0..=255, &mut |tokens| patch(&mut words, tokens, &[]))?;
    }
    if let Some((_, like)) = &transient.recognizer {
        let is_alone = transient.regular.is_none();
        read_exceptions(kept, vocabulary, (text, like, is_alone), &mut words)?;
    }
    words
        .iter_mut()
        .zip(&**strings.continuing_unescaped())
        .for_each(|(word, unescaped_tokens)| *word &= unescaped_tokens);
    let step = |state: StateId, byte: u8| text.machine.step(state, byte);
    let start = (text.state, text.escapes);
    walk_escaped(strings.escaped_spellings(), start, (&step, &|_| None), &mut |_, spelling, _| {
        patch(&mut words, strings.escaped_tokens(spelling), &[]);
    })?;
    Ok(words)
}

/// Returns the unescaped tokens that continue the string from a state.
fn unescaped_tokens(
    vocabulary: &Vocabulary,
    strings: &JsonStringTokens,
    (text, state): (&JsonStringState, StateId),
) -> Result<Vec<u32>, Error> {
    let keys = RegularMaskClasses::new(Arc::clone(&text.machine), vocabulary.longest_token_bytes());
    let (lexical, memo, continuations) =
        (&LexicalMasks::default(), &MaskCache::new(0), &QuoteContinuations::default());
    let mask =
        MaskBuilder { key: keys.mask_class(state)?, vocabulary, lexical, memo, continuations };
    let mut words = vec![0; strings.continuing_unescaped().len()];
    keys.visit(mask)?.fill(&mut words);
    words
        .iter_mut()
        .zip(&**strings.continuing_unescaped())
        .for_each(|(word, unescaped_tokens)| *word &= unescaped_tokens);
    Ok(words)
}

/// Reads the tokens for which the state differs from the named one. `is_alone` tells that no other
/// alternatives are read.
fn read_exceptions(
    kept: &CustomStringMasks,
    vocabulary: &Vocabulary,
    (text, like, is_alone): (&JsonStringState, &RepresentativeState<StateId>, bool),
    words: &mut MaskWords,
) -> Result<(), Error> {
    let (machine, trie) = (&*text.machine, vocabulary.trie());
    let keys = StatesAsClasses::new(machine);
    for byte in (0..128u8).filter(|byte| like.excluded.first >> byte & 1 != 0) {
        let Some(root) = trie.root_child(byte) else { continue };
        patch(words, &[], trie.tokens_at(root));
        patch(words, &[], trie.tokens_below(root));
        if let Some(next) = machine.step(text.state, byte)? {
            let next = MaskClassId::from_number(next.number());
            TrieWalk::new(&keys, trie)
                .subtree(root, next, &mut |tokens| patch(words, tokens, &[]))?;
        }
    }
    let class = match like.reads {
        RepresentativeLanguage::State { .. } => None,
        RepresentativeLanguage::Characters(ascii) => Some(ascii),
    };
    let ExcludedStrings { start, anywhere: characters, texts, .. } = like.excluded;
    let containing = kept.containing(vocabulary, Containing { class, characters, texts });
    let step = |state: StateId, byte: u8| machine.step(state, byte);
    let beginning = tokens_beginning(trie, start);
    for tokens in [&*containing, &beginning] {
        let tokens = tokens.iter().copied();
        read_in_order(vocabulary, tokens, text.state, &step, &mut |token, is_viable| {
            set(words, token, is_viable);
        })?;
    }
    let bytes = |token: u32| vocabulary.token_bytes(token).unwrap_or_default();
    let (letters, most) = like.refused.of_characters;
    let longer = vocabulary.json_string_tokens(text.escapes).continuing_longer(like.max_chars);
    for &(characters, token) in longer {
        let bytes = bytes(token);
        let has_only = |set: u128| bytes.iter().all(|&byte| is_one(set, byte));
        let is_refused = characters > like.refused.max_chars
            || class.is_some_and(|class| !has_only(class))
            || characters > most && has_only(letters);
        set(words, token, !(is_alone && is_refused) && machine.walk(text.state, bytes)?.is_ok());
    }
    Ok(())
}

/// Returns `true` if a byte is one of some ASCII characters.
fn is_one(characters: u128, byte: u8) -> bool {
    byte.is_ascii() && characters >> byte & 1 != 0
}

/// Returns the tokens that begin with an ASCII text, in any case; none for the empty text.
fn tokens_beginning(trie: &TokenTrie, text: &str) -> Vec<u32> {
    let mut nodes: Vec<Option<u32>> = vec![None];
    for byte in text.bytes() {
        let mut cases = vec![byte.to_ascii_uppercase(), byte.to_ascii_lowercase()];
        cases.dedup();
        let child = |node: Option<u32>, byte: u8| match node {
            None => trie.root_child(byte),
            Some(node) => trie.child(node, byte),
        };
        let next = |node: Option<u32>| cases.iter().map(move |&byte| child(node, byte));
        nodes = nodes.into_iter().flat_map(next).filter(Option::is_some).collect();
    }
    let nodes = nodes.into_iter().flatten();
    nodes
        .flat_map(|node| trie.tokens_at(node).iter().chain(trie.tokens_below(node)))
        .copied()
        .collect()
}

/// Returns the tokens that contain one of some ASCII characters or texts, in byte order.
fn tokens_containing(
    trie: &TokenTrie,
    Containing { class, characters, texts }: Containing,
) -> Vec<u32> {
    let last = |text: &&str| {
        let last = text.bytes().last();
        last.map_or(0, |byte| 1u128 << byte.to_ascii_lowercase() | 1 << byte.to_ascii_uppercase())
    };
    let last = texts.iter().map(last).fold(0, |set, one| set | one);
    let is_inside = |byte: u8| class.is_none_or(|class| is_one(class, byte));
    let ends_with = |path: &[u8], text: &str| {
        let end = path.len().checked_sub(text.len()).map(|from| &path[from..]);
        end.is_some_and(|end| end.eq_ignore_ascii_case(text.as_bytes()))
    };
    let (mut found, mut path) = (Vec::new(), Vec::new());
    let (nodes, mut at) = (trie.nodes(), 0);
    // The end of the subtree of what contains one of them.
    let mut contained = 0;
    while let Some(here) = nodes.get(at as usize) {
        if !is_inside(here.byte()) {
            at = here.end();
            continue;
        }
        path.truncate(here.depth() - 1);
        path.push(here.byte());
        if at >= contained
            && (is_one(characters, here.byte()) || texts.iter().any(|text| ends_with(&path, text)))
        {
            contained = here.end();
        }
        if at < contained {
            found.extend_from_slice(trie.tokens_at(at));
            at += 1;
            continue;
        }
        let ends_below = trie.signature(at).ascii() & (characters | last) != 0;
        at = if ends_below { at + 1 } else { here.end() };
    }
    found
}

fn set(words: &mut MaskWords, token: u32, is_viable: bool) {
    let token = &[token][..];
    let (add, remove) = if is_viable { (token, &[][..]) } else { (&[][..], token) };
    patch(words, add, remove);
}

impl CustomStringMasks {
    /// Returns the unescaped tokens that continue the string from a named state.
    fn representative_tokens(
        &self,
        vocabulary: &Vocabulary,
        (text, recognizer): (&JsonStringState, &Arc<dyn CharRecognizer>),
        (named, state): (NamedState, StateId),
    ) -> Result<Arc<MaskWords>, Error> {
        if let Some((_, known)) = self.lock().continuing.get(&named) {
            return Ok(Arc::clone(known));
        }
        let strings = vocabulary.json_string_tokens(text.escapes);
        let found: Arc<MaskWords> = unescaped_tokens(vocabulary, strings, (text, state))?.into();
        let continuing = &mut self.lock().continuing;
        if continuing.len() == MAX_CACHED {
            continuing.clear();
        }
        continuing.insert(named, (Arc::clone(recognizer), Arc::clone(&found)));
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, CustomStringTables> {
        self.0.lock()
    }

    /// Returns the tokens that contain one of some characters or texts.
    fn containing(&self, vocabulary: &Vocabulary, which: Containing) -> Arc<[u32]> {
        if which.characters == 0 && which.texts.is_empty() {
            return Arc::default();
        }
        let containing = &mut self.lock().containing;
        if let Some(known) = containing.get(&which) {
            return Arc::clone(known);
        }
        if containing.len() == MAX_CACHED {
            containing.clear();
        }
        let found: Arc<[u32]> = tokens_containing(vocabulary.trie(), which).into();
        containing.insert(which, Arc::clone(&found));
        found
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let CustomStringTables { continuing, containing } = &*self.lock();
        let continuing =
            continuing.iter().map(|(named, (_, words))| 4 * words.len() + named.2.len() + 100);
        let containing = containing.values().map(|tokens| 4 * tokens.len() + 50);
        continuing.sum::<usize>() + containing.sum::<usize>()
    }
}
