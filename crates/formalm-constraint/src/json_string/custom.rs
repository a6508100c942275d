//! Masks inside of strings of JSON whose texts have more states than are worth keeping.
//!
//! Such states are dropped with the look ahead that met them, so nothing can be kept by them. But
//! most texts are read from them as from one of a few, which have names ([`Like`]). What tokens do
//! from those is kept beside the vocabulary; the tokens that are not read alike are read.

use std::sync::{Arc, MutexGuard};

use formalm_automata::spelling::Escapes;
use formalm_automata::{
    Error, InText, KeyId, Keys, Like, Lock, Machine, Plainly, Recognizer, Resemblance, StateId,
    Viability,
};
use formalm_vocabulary::{JsonStringTokens, Vocabulary};
use rustc_hash::FxHashMap;

use crate::json_string::length::Rests;
use crate::json_string::regular::spelled;
use crate::lexical::Lexical;
use crate::mask::{MaskWords, patch};
use crate::mask_builder::MaskOf;
use crate::mask_cache::Memo;
use crate::prefix_sharing::read_in_order;
use crate::trie_walk::Walk;

/// States whose tokens are kept, and sets of characters; with more they are found anew.
const KEPT: usize = 128;

/// A state with a name of a recognizer, by its place in memory.
type Which = (usize, Escapes, String);

/// What tokens do from states with names.
#[derive(Debug, Default)]
pub(crate) struct Endless(Lock<Tables>);

#[derive(Debug, Default)]
struct Tables {
    /// Tokens without escapes after which the text goes on. Recognizers live as long as they are
    /// listed.
    inside: FxHashMap<Which, (Arc<dyn Recognizer>, Arc<MaskWords>)>,
    /// Tokens that have one of some characters, in the order of their bytes.
    having: FxHashMap<u128, Arc<[u32]>>,
}

/// Tokens after which a text goes on.
pub(crate) fn inside(
    kept: &Endless,
    vocabulary: &Vocabulary,
    (text, (recognizer, like)): (&InText, &Like),
) -> Result<Vec<u32>, Error> {
    let strings = vocabulary.json_string_tokens(text.escapes);
    let which = (Arc::as_ptr(recognizer).addr(), text.escapes, like.name.clone());
    let known = kept.lock().inside.get(&which).map(|known| Arc::clone(&known.1));
    let base = match known {
        Some(known) => known,
        None => {
            let base: Arc<MaskWords> = plain(vocabulary, strings, (text, like.state))?.into();
            let inside = &mut kept.lock().inside;
            if inside.len() == KEPT {
                inside.clear();
            }
            inside.insert(which, (Arc::clone(recognizer), Arc::clone(&base)));
            base
        }
    };
    let mut words = base.to_vec();
    read_others(kept, vocabulary, (text, like), &mut words)?;
    words
        .iter_mut()
        .zip(&**strings.continuing_unescaped())
        .for_each(|(word, plain)| *word &= plain);
    let step = |state: StateId, byte: u8| text.machine.step(state, byte);
    let start = (text.state, text.escapes);
    spelled(strings.escaped_nodes(), start, &step, &mut |_, spelling, _| {
        patch(&mut words, strings.escaped_tokens(spelling), &[]);
    })?;
    Ok(words)
}

/// Tokens without escapes after which a text goes on from a state.
fn plain(
    vocabulary: &Vocabulary,
    strings: &JsonStringTokens,
    (text, state): (&InText, StateId),
) -> Result<Vec<u32>, Error> {
    let keys = Viability::new(Arc::clone(&text.machine), vocabulary.longest_token_bytes());
    let (lexical, memo, rests) = (&Lexical::default(), &Memo::new(0), &Rests::default());
    let mask = MaskOf { key: keys.key(state)?, vocabulary, lexical, memo, rests };
    let mut words = vec![0; strings.continuing_unescaped().len()];
    keys.read(mask)?.fill(&mut words);
    words
        .iter_mut()
        .zip(&**strings.continuing_unescaped())
        .for_each(|(word, plain)| *word &= plain);
    Ok(words)
}

/// Reads the tokens that are not read alike.
fn read_others(
    kept: &Endless,
    vocabulary: &Vocabulary,
    (text, like): (&InText, &Resemblance<StateId>),
    words: &mut MaskWords,
) -> Result<(), Error> {
    let (machine, trie) = (&*text.machine, vocabulary.trie());
    let keys = Plainly::new(machine);
    for byte in (0..128u8).filter(|byte| like.first >> byte & 1 != 0) {
        let Some(root) = trie.root_child(byte) else { continue };
        patch(words, &[], trie.tokens_at(root));
        patch(words, &[], trie.tokens_below(root));
        if let Some(next) = machine.step(text.state, byte)? {
            let next = KeyId::from_number(next.number());
            Walk::new(&keys, trie).subtree(root, next, &mut |tokens| patch(words, tokens, &[]))?;
        }
    }
    let having = kept.having(vocabulary, like.anywhere);
    let step = |state: StateId, byte: u8| machine.step(state, byte);
    let having = having.iter().copied();
    read_in_order(vocabulary, having, text.state, &step, &mut |token, is_viable| {
        set(words, token, is_viable);
    })?;
    let bytes = |token: u32| vocabulary.token_bytes(token).unwrap_or_default();
    for &(_, token) in vocabulary.json_string_tokens(text.escapes).continuing_longer(like.most) {
        set(words, token, machine.walk(text.state, bytes(token))?.is_ok());
    }
    Ok(())
}

fn set(words: &mut MaskWords, token: u32, is_viable: bool) {
    let token = &[token][..];
    let (add, remove) = if is_viable { (token, &[][..]) } else { (&[][..], token) };
    patch(words, add, remove);
}

impl Endless {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock()
    }

    /// Tokens that have one of some characters.
    fn having(&self, vocabulary: &Vocabulary, characters: u128) -> Arc<[u32]> {
        if characters == 0 {
            return Arc::default();
        }
        let having = &mut self.lock().having;
        if let Some(known) = having.get(&characters) {
            return Arc::clone(known);
        }
        if having.len() == KEPT {
            having.clear();
        }
        let has = |byte: &u8| byte.is_ascii() && characters >> byte & 1 != 0;
        let order = vocabulary.trie().order().iter().copied();
        let found: Arc<[u32]> = order
            .filter(|&token| vocabulary.token_bytes(token).is_some_and(|one| one.iter().any(has)))
            .collect();
        having.insert(characters, Arc::clone(&found));
        found
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let Tables { inside, having } = &*self.lock();
        let inside = inside.iter().map(|(which, (_, words))| 4 * words.len() + which.2.len() + 100);
        let having = having.values().map(|tokens| 4 * tokens.len() + 50);
        inside.sum::<usize>() + having.sum::<usize>()
    }
}
