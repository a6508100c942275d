//! Isolated JSON values: the effect of tokens inside a value, computed once for all its
//! surroundings.
//!
//! ```text
//!  {"a": 12│34, "b": …       inside the value:  34        listed once per value
//!                            exit node:         34·,      then read from the surroundings
//! ```
//!
//! The effect of tokens inside a value does not depend on its surroundings. Tokens that end inside
//! it are listed once, together with the trie nodes at which it has ended. From these nodes on,
//! tokens belong to the surroundings, which may be part of another value.

use std::cell::Cell;
use std::sync::{Arc, MutexGuard};

use formalm_core::{Error, ForkSafeMutex, MaskClassId, SetOnce};
use formalm_machines::{MaskAutomaton, ValueEnd};
use formalm_vocabulary::{JsonStringTokens, StringOpening, Vocabulary};
use rustc_hash::FxHashMap;

use crate::json_string::regular::SharedStringMasks;
use crate::mask::{MAX_SPARSE_TOKENS, Mask, MaskWords, patch};
use crate::trie_walk::TrieWalk;
use crate::trie_word_reading;

/// Maximum number of cached lists. Chosen, not measured.
const MAX_LISTS: usize = 1024;

/// Capacity, in tokens, up to which the scratch list is kept between masks. Chosen, not measured.
const MAX_SCRATCH_TOKENS: usize = 1 << 18;

thread_local! {
    /// The scratch list of masks.
    static SCRATCH: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

/// The prefix tree that is walked, and the items it lists.
#[derive(Clone, Copy)]
pub(crate) enum TokenTable<'a> {
    /// All tokens.
    Tokens(&'a Vocabulary),
    /// Tokens that do not open a string so.
    Unopened(&'a Vocabulary, StringOpening),
    /// Suffixes after the closing quotes of strings.
    Suffixes(&'a JsonStringTokens),
}

/// Cache key: the number of an isolated value, the table and the node.
type ValueListKey = (u128, usize, Option<u32>);

/// The viable items of a table inside a value.
#[derive(Debug, Default)]
pub(crate) struct ValueTokens {
    /// Tokens or suffixes at whose end the value continues or has just ended.
    found: Vec<u32>,
    /// Inner trie nodes at which the value has ended.
    exits: Vec<u32>,
    /// `true` if the value may have ended already.
    ends: bool,
    /// The bitmask of `found`, if it is large and several machines share the value.
    words: SetOnce<Arc<MaskWords>>,
}

impl ValueTokens {
    fn memory_bytes(&self) -> usize {
        let words = self.words.get().map_or(0, |words| words.len());
        4 * (self.found.len() + self.exits.len() + words) + 120
    }
}

/// The cache of value lists.
#[derive(Debug, Default)]
pub(crate) struct ValueLists {
    known: ForkSafeMutex<FxHashMap<ValueListKey, Arc<ValueTokens>>>,
}

impl ValueLists {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<ValueListKey, Arc<ValueTokens>>> {
        self.known.lock()
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lock().values().map(|one| one.memory_bytes()).sum()
    }
}

/// The value masks of a constraint's machine. Values that several machines share are cached with
/// the vocabulary.
#[derive(Debug, Default)]
pub(crate) struct ValueMasks {
    lists: ValueLists,
}

impl ValueMasks {
    /// Appends the items that are viable from a mask class below a node that was read, or from the
    /// root.
    pub(crate) fn below(
        &self,
        keys: &impl MaskAutomaton,
        table: TokenTable<'_>,
        (node, key): (Option<u32>, MaskClassId),
        found: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let Some(value_tokens) = keys.isolated_value(key)? else {
            let mut all = ValueTokens { found: std::mem::take(found), ..ValueTokens::default() };
            let read = self.read(keys, table, (node, key), &mut all, false);
            *found = all.found;
            return read;
        };
        let value_tokens = self.value_tokens(keys, table, (node, value_tokens))?;
        found.extend_from_slice(&value_tokens.found);
        self.around(keys, table, (node, key), &value_tokens, found)
    }

    /// Returns the mask of a mask class over the tokens of a table.
    pub(crate) fn mask(
        &self,
        keys: &impl MaskAutomaton,
        table: TokenTable<'_>,
        (key, words): (MaskClassId, usize),
    ) -> Result<Mask, Error> {
        // Most masks list many tokens, and touching fresh memory costs as much as the walk.
        let mut found = SCRATCH.take();
        found.clear();
        let mask = self.mask_of(keys, table, (key, words), &mut found);
        if found.capacity() <= MAX_SCRATCH_TOKENS {
            SCRATCH.set(found);
        }
        mask
    }

    fn mask_of(
        &self,
        keys: &impl MaskAutomaton,
        table: TokenTable<'_>,
        (key, words): (MaskClassId, usize),
        found: &mut Vec<u32>,
    ) -> Result<Mask, Error> {
        if let Some(isolated) = keys.isolated_value(key)? {
            let value_tokens = self.value_tokens(keys, table, (None, isolated))?;
            self.around(keys, table, (None, key), &value_tokens, found)?;
            if value_tokens.found.len() > MAX_SPARSE_TOKENS
                && keys.shared_value_id(isolated).is_some()
            {
                let base = value_tokens.words.get_or_init(|| {
                    let mut all = vec![0; words];
                    patch(&mut all, &value_tokens.found, &[]);
                    all.into()
                });
                return Ok(Mask::patched(base, found.clone(), Vec::new()));
            }
            found.extend_from_slice(&value_tokens.found);
        } else {
            self.below(keys, table, (None, key), found)?;
        }
        Ok(Mask::from_ids(found, words))
    }

    /// Appends the items that are viable after the end of an isolated value.
    fn around(
        &self,
        keys: &impl MaskAutomaton,
        table: TokenTable<'_>,
        (node, key): (Option<u32>, MaskClassId),
        value_tokens: &ValueTokens,
        found: &mut Vec<u32>,
    ) -> Result<(), Error> {
        if value_tokens.exits.is_empty() && !value_tokens.ends {
            return Ok(());
        }
        let Some(after_value) = keys.after_value(key)? else { return Ok(()) };
        for &exit in &value_tokens.exits {
            self.below(keys, table, (Some(exit), after_value), found)?;
        }
        if value_tokens.ends {
            self.below(keys, table, (node, after_value), found)?;
        }
        Ok(())
    }

    fn value_tokens(
        &self,
        keys: &impl MaskAutomaton,
        table: TokenTable<'_>,
        (node, key): (Option<u32>, MaskClassId),
    ) -> Result<Arc<ValueTokens>, Error> {
        let shared = table.vocabulary().and_then(Vocabulary::extension::<SharedStringMasks>);
        let (lists, value) = match (shared, keys.shared_value_id(key)) {
            (Some(shared), Some(value)) => (&shared.values, Some(value)),
            _ => (&self.lists, keys.cacheable_class(key).map(|kept| kept.number().into())),
        };
        let Some(value) = value else { return self.read_isolated(keys, table, (node, key)) };
        let at = (value, table.number(), node);
        if let Some(found) = lists.lock().get(&at) {
            return Ok(Arc::clone(found));
        }
        let value_tokens = self.read_isolated(keys, table, (node, key))?;
        let known = &mut *lists.lock();
        if known.len() == MAX_LISTS {
            known.clear();
        }
        known.insert(at, Arc::clone(&value_tokens));
        Ok(value_tokens)
    }

    fn read_isolated(
        &self,
        keys: &impl MaskAutomaton,
        table: TokenTable<'_>,
        from: (Option<u32>, MaskClassId),
    ) -> Result<Arc<ValueTokens>, Error> {
        let mut value_tokens = ValueTokens::default();
        self.read(keys, table, from, &mut value_tokens, true)?;
        Ok(Arc::new(value_tokens))
    }

    /// Reads on from a mask class; inside an isolated value, up to its end.
    fn read(
        &self,
        keys: &impl MaskAutomaton,
        table: TokenTable<'_>,
        (node, key): (Option<u32>, MaskClassId),
        value_tokens: &mut ValueTokens,
        is_isolated: bool,
    ) -> Result<(), Error> {
        let mut first = match (node, keys.possible_bytes(key)?) {
            (Some(_), _) => None,
            (None, Some(few)) => Some(few),
            (None, None) => Some(keys.live_bytes(key)?),
        };
        if is_isolated && let ValueEnd::MayEnd(bytes) = keys.value_end(key)? {
            value_tokens.ends = true;
            first = first.map(|first| first.intersection(bytes));
        }
        let first = first.iter().flat_map(|first| first.iter());
        let found = &mut value_tokens.found;
        match table {
            TokenTable::Tokens(vocabulary) | TokenTable::Unopened(vocabulary, _) => {
                let trie = vocabulary.trie();
                let mut walk = if is_isolated {
                    TrieWalk::inside_value(keys, trie)
                } else {
                    TrieWalk::new(keys, trie)
                };
                let emit = &mut |tokens: &[u32]| found.extend_from_slice(tokens);
                let excluded = match table {
                    TokenTable::Unopened(_, StringOpening::Quote) => Some(b'"'),
                    TokenTable::Unopened(_, StringOpening::SpaceAndQuote) => Some(b' '),
                    _ => None,
                };
                match node {
                    Some(node) => walk.below(node, key, emit)?,
                    None => {
                        for byte in first {
                            match excluded {
                                Some(b' ') if byte == b' ' => {
                                    walk.tokens_without(key, (b' ', b'"'), emit)?
                                }
                                Some(excluded) if byte == excluded => {}
                                _ => walk.tokens(key, [byte], emit)?,
                            }
                        }
                    }
                }
                value_tokens.exits = walk.into_exits();
            }
            TokenTable::Suffixes(strings) => {
                let exits = is_isolated.then_some(&mut value_tokens.exits);
                let roots = first.filter_map(|byte| strings.suffix_root(byte));
                let roots: Vec<(u32, bool)> = match node {
                    Some(node) => vec![(node, true)],
                    None => roots.map(|root| (root, false)).collect(),
                };
                trie_word_reading::words_within(
                    keys,
                    strings.suffixes(),
                    (&roots, key),
                    exits,
                    &mut |suffix, _| {
                        found.push(suffix);
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lists.memory_bytes()
    }
}

impl<'a> TokenTable<'a> {
    /// Returns the vocabulary, if the table lists its tokens.
    fn vocabulary(self) -> Option<&'a Vocabulary> {
        match self {
            TokenTable::Tokens(vocabulary) | TokenTable::Unopened(vocabulary, _) => {
                Some(vocabulary)
            }
            TokenTable::Suffixes(_) => None,
        }
    }
}

impl TokenTable<'_> {
    /// Returns the number of a table; the lists of a constraint are for one vocabulary.
    fn number(self) -> usize {
        match self {
            TokenTable::Tokens(_) => 0,
            TokenTable::Unopened(_, opening) => 1 + opening as usize,
            TokenTable::Suffixes(strings) => std::ptr::from_ref(strings) as usize,
        }
    }
}
