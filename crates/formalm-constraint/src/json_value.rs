//! Values read by themselves, once for all places that they stand in.
//!
//! What tokens do inside of a value does not depend on what is around it: those that end within it
//! are listed once, and the nodes at which it has ended. From there on tokens belong to what is
//! around the value, which may be a part of a value again.

use std::cell::Cell;
use std::sync::{Arc, MutexGuard};

use formalm_automata::{Ended, Error, KeyId, Lock, SetOnce, Steps};
use formalm_vocabulary::{JsonStringTokens, Vocabulary};
use rustc_hash::FxHashMap;

use crate::json_string::regular::Kept;
use crate::mask::{Mask, MaskWords, SPARSE, patch};
use crate::trie_strings;
use crate::trie_walk::Walk;

/// Lists of tokens that are kept; with more they are found anew.
const LISTS: usize = 1024;

/// Tokens that a list has room for between one mask and the next.
const SPARE: usize = 1 << 18;

thread_local! {
    /// The list that masks are found with.
    static FOUND: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

/// The prefix tree that is walked, and what is listed.
#[derive(Clone, Copy)]
pub(crate) enum Table<'a> {
    /// Tokens.
    Tokens(&'a Vocabulary),
    /// Tokens but those that begin with a quote.
    Unquoted(&'a Vocabulary),
    /// Rests behind the quotes of strings.
    Rests(&'a JsonStringTokens),
}

/// A list by the number of a value read by itself, the table and the node.
type At = (u64, usize, Option<u32>);

/// What is viable from a key within its value.
#[derive(Debug, Default)]
pub(crate) struct Inner {
    /// Tokens or rests at whose end the value goes on or has just ended.
    found: Vec<u32>,
    /// Nodes, with others below them, at which the value has ended.
    exits: Vec<u32>,
    /// Whether it may have ended already.
    ends: bool,
    /// What was found as a bitmask, where that is much and machines have the value in common.
    words: SetOnce<Arc<MaskWords>>,
}

impl Inner {
    fn memory_bytes(&self) -> usize {
        let words = self.words.get().map_or(0, |words| words.len());
        4 * (self.found.len() + self.exits.len() + words) + 120
    }
}

/// Lists of what is viable within values.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    known: Lock<FxHashMap<At, Arc<Inner>>>,
}

impl Lists {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<At, Arc<Inner>>> {
        self.known.lock()
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lock().values().map(|one| one.memory_bytes()).sum()
    }
}

/// What tokens do in the values of a constraint's machine. What values are that machines have in
/// common is kept beside the vocabulary.
#[derive(Debug, Default)]
pub(crate) struct Values {
    lists: Lists,
}

impl Values {
    /// What is viable from a key below a node that has been read, or from the beginning.
    pub(crate) fn below(
        &self,
        keys: &impl Steps,
        table: Table<'_>,
        (node, key): (Option<u32>, KeyId),
        found: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let Some(inner) = keys.apart(key)? else {
            let mut all = Inner { found: std::mem::take(found), ..Inner::default() };
            let read = self.read(keys, table, (node, key), &mut all, false);
            *found = all.found;
            return read;
        };
        let inner = self.inner(keys, table, (node, inner))?;
        found.extend_from_slice(&inner.found);
        self.around(keys, table, (node, key), &inner, found)
    }

    /// The mask of a key by the tokens of a table.
    pub(crate) fn mask(
        &self,
        keys: &impl Steps,
        table: Table<'_>,
        (key, words): (KeyId, usize),
    ) -> Result<Mask, Error> {
        // What most masks are found with is much, and memory that is not touched yet costs as much
        // as the walk.
        let mut found = FOUND.take();
        found.clear();
        let mask = self.mask_of(keys, table, (key, words), &mut found);
        if found.capacity() <= SPARE {
            FOUND.set(found);
        }
        mask
    }

    fn mask_of(
        &self,
        keys: &impl Steps,
        table: Table<'_>,
        (key, words): (KeyId, usize),
        found: &mut Vec<u32>,
    ) -> Result<Mask, Error> {
        if let Some(apart) = keys.apart(key)? {
            let inner = self.inner(keys, table, (None, apart))?;
            self.around(keys, table, (None, key), &inner, found)?;
            if inner.found.len() > SPARSE && keys.common(apart).is_some() {
                let base = inner.words.get_or_init(|| {
                    let mut all = vec![0; words];
                    patch(&mut all, &inner.found, &[]);
                    all.into()
                });
                return Ok(Mask::patched(base, found.clone(), Vec::new()));
            }
            found.extend_from_slice(&inner.found);
        } else {
            self.below(keys, table, (None, key), found)?;
        }
        Ok(Mask::from_ids(found, words))
    }

    /// What is viable behind the ends of a value that was read by itself.
    fn around(
        &self,
        keys: &impl Steps,
        table: Table<'_>,
        (node, key): (Option<u32>, KeyId),
        inner: &Inner,
        found: &mut Vec<u32>,
    ) -> Result<(), Error> {
        if inner.exits.is_empty() && !inner.ends {
            return Ok(());
        }
        let Some(behind) = keys.behind(key)? else { return Ok(()) };
        for &exit in &inner.exits {
            self.below(keys, table, (Some(exit), behind), found)?;
        }
        if inner.ends {
            self.below(keys, table, (node, behind), found)?;
        }
        Ok(())
    }

    fn inner(
        &self,
        keys: &impl Steps,
        table: Table<'_>,
        (node, key): (Option<u32>, KeyId),
    ) -> Result<Arc<Inner>, Error> {
        let shared = table.vocabulary().and_then(Vocabulary::extension::<Kept>);
        let (lists, value) = match (shared, keys.common(key)) {
            (Some(shared), Some(value)) => (&shared.values, Some(value)),
            _ => (&self.lists, keys.kept(key).map(|kept| kept.number().into())),
        };
        let Some(value) = value else { return self.read_apart(keys, table, (node, key)) };
        let at = (value, table.number(), node);
        if let Some(found) = lists.lock().get(&at) {
            return Ok(Arc::clone(found));
        }
        let inner = self.read_apart(keys, table, (node, key))?;
        let known = &mut *lists.lock();
        if known.len() == LISTS {
            known.clear();
        }
        known.insert(at, Arc::clone(&inner));
        Ok(inner)
    }

    fn read_apart(
        &self,
        keys: &impl Steps,
        table: Table<'_>,
        from: (Option<u32>, KeyId),
    ) -> Result<Arc<Inner>, Error> {
        let mut inner = Inner::default();
        self.read(keys, table, from, &mut inner, true)?;
        Ok(Arc::new(inner))
    }

    /// Reads on from a key; where it is in a value by itself, as far as that goes.
    fn read(
        &self,
        keys: &impl Steps,
        table: Table<'_>,
        (node, key): (Option<u32>, KeyId),
        inner: &mut Inner,
        is_apart: bool,
    ) -> Result<(), Error> {
        let mut first = match (node, keys.few(key)?) {
            (Some(_), _) => None,
            (None, Some(few)) => Some(few),
            (None, None) => Some(keys.live_bytes(key)?),
        };
        if is_apart && let Ended::May(bytes) = keys.ended(key)? {
            inner.ends = true;
            first = first.map(|first| first.intersection(bytes));
        }
        let first = first.iter().flat_map(|first| first.iter());
        let found = &mut inner.found;
        match table {
            Table::Tokens(vocabulary) | Table::Unquoted(vocabulary) => {
                let trie = vocabulary.trie();
                let mut walk =
                    if is_apart { Walk::apart(keys, trie) } else { Walk::new(keys, trie) };
                let emit = &mut |tokens: &[u32]| found.extend_from_slice(tokens);
                let quoted = matches!(table, Table::Tokens(_));
                let first = first.filter(|&byte| quoted || byte != b'"');
                match node {
                    Some(node) => walk.below(node, key, emit)?,
                    None => walk.tokens(key, first, emit)?,
                }
                inner.exits = walk.into_exits();
            }
            Table::Rests(strings) => {
                let exits = is_apart.then_some(&mut inner.exits);
                let roots = first.filter_map(|byte| strings.suffix_root(byte));
                let roots: Vec<(u32, bool)> = match node {
                    Some(node) => vec![(node, true)],
                    None => roots.map(|root| (root, false)).collect(),
                };
                trie_strings::words_within(
                    keys,
                    strings.suffix_nodes(),
                    (&roots, key),
                    exits,
                    &mut |rest, _| {
                        found.push(rest);
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lists.memory_bytes()
    }
}

impl<'a> Table<'a> {
    /// The vocabulary, where the table is one of its tokens.
    fn vocabulary(self) -> Option<&'a Vocabulary> {
        match self {
            Table::Tokens(vocabulary) | Table::Unquoted(vocabulary) => Some(vocabulary),
            Table::Rests(_) => None,
        }
    }
}

impl Table<'_> {
    /// Different for different tables; lists of a constraint are of one vocabulary.
    fn number(self) -> usize {
        match self {
            Table::Tokens(_) => 0,
            Table::Unquoted(_) => 1,
            Table::Rests(strings) => std::ptr::from_ref(strings) as usize,
        }
    }
}
