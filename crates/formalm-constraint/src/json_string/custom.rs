//! Masks inside JSON strings that custom recognizers read, whose states are too many to cache by
//! state.
//!
//! Such states are dropped with the lookahead that visited them, so nothing can be cached by state.
//! But most inputs are read from them as from one of a few *named* states (an equivalence class
//! with exceptions). Masks of the named states are cached with the vocabulary; the exceptional
//! tokens are read from the state itself.

use std::sync::{Arc, MutexGuard};

use formalm_automata::{CharRecognizer, RepresentativeState, TransientState};
use formalm_core::{Error, ForkSafeMutex, LazyDfa, MaskClassId, StateId};
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
    /// Tokens that contain one of some characters or a text, in byte order.
    containing: FxHashMap<(u128, &'static str), Arc<[u32]>>,
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
        Some((recognizer, like)) => {
            kept.representative_tokens(vocabulary, (text, (recognizer, like)))?.to_vec()
        }
        None => vec![0; strings.continuing_unescaped().len()],
    };
    if let Some(regular) = transient.regular {
        let keys = StatesAsClasses::new(&*text.machine);
        let class = MaskClassId::from_number(regular.number());
        TrieWalk::new(&keys, vocabulary.trie())
            .tokens(class, 0..=255, &mut |tokens| patch(&mut words, tokens, &[]))?;
    }
    if let Some((_, like)) = &transient.recognizer {
        read_exceptions(kept, vocabulary, (text, like), &mut words)?;
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

/// Reads the tokens for which the state differs from the named one.
fn read_exceptions(
    kept: &CustomStringMasks,
    vocabulary: &Vocabulary,
    (text, like): (&JsonStringState, &RepresentativeState<StateId>),
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
    let containing = kept.containing(vocabulary, (like.excluded.anywhere, like.excluded.text));
    let step = |state: StateId, byte: u8| machine.step(state, byte);
    let containing = containing.iter().copied();
    read_in_order(vocabulary, containing, text.state, &step, &mut |token, is_viable| {
        set(words, token, is_viable);
    })?;
    let bytes = |token: u32| vocabulary.token_bytes(token).unwrap_or_default();
    for &(_, token) in vocabulary.json_string_tokens(text.escapes).continuing_longer(like.max_chars)
    {
        set(words, token, machine.walk(text.state, bytes(token))?.is_ok());
    }
    Ok(())
}

/// Returns the tokens that contain one of some ASCII characters or an ASCII text, in byte order. The
/// empty text stands for none.
fn tokens_containing(trie: &TokenTrie, characters: u128, text: &str) -> Vec<u32> {
    let last = text.bytes().last().map_or(0, |byte| 1u128 << byte);
    let is_one = |byte: u8| byte.is_ascii() && characters >> byte & 1 != 0;
    let (mut found, mut path) = (Vec::new(), Vec::new());
    let (nodes, mut at) = (trie.nodes(), 0);
    while let Some(here) = nodes.get(at as usize) {
        path.truncate(here.depth() - 1);
        path.push(here.byte());
        if is_one(here.byte()) || !text.is_empty() && path.ends_with(text.as_bytes()) {
            found.extend_from_slice(trie.tokens_at(at));
            found.extend_from_slice(trie.tokens_below(at));
            at = here.end();
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
    /// Returns the unescaped tokens that continue the string from a representative.
    fn representative_tokens(
        &self,
        vocabulary: &Vocabulary,
        (text, (recognizer, like)): (
            &JsonStringState,
            (&Arc<dyn CharRecognizer>, &RepresentativeState<StateId>),
        ),
    ) -> Result<Arc<MaskWords>, Error> {
        let named = (Arc::as_ptr(recognizer).addr(), text.escapes, like.name.clone());
        if let Some((_, known)) = self.lock().continuing.get(&named) {
            return Ok(Arc::clone(known));
        }
        let strings = vocabulary.json_string_tokens(text.escapes);
        let found: Arc<MaskWords> =
            unescaped_tokens(vocabulary, strings, (text, like.state))?.into();
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

    /// Returns the tokens that contain one of some characters or a text that is not empty.
    fn containing(
        &self,
        vocabulary: &Vocabulary,
        (characters, text): (u128, &'static str),
    ) -> Arc<[u32]> {
        if characters == 0 && text.is_empty() {
            return Arc::default();
        }
        let containing = &mut self.lock().containing;
        if let Some(known) = containing.get(&(characters, text)) {
            return Arc::clone(known);
        }
        if containing.len() == MAX_CACHED {
            containing.clear();
        }
        let found: Arc<[u32]> = tokens_containing(vocabulary.trie(), characters, text).into();
        containing.insert((characters, text), Arc::clone(&found));
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
