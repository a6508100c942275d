//! Masks of machines that read lexemes.
//!
//! What tokens do within one lexeme is a *summary* ([`summary`]): it depends on the lexer alone, and
//! a vocabulary and a lexer have few. Tokens that go on beyond the end of a lexeme are a *group*
//! for each terminal: nodes of the trie with what the lexeme left behind. Whatever the stacks are,
//! what a group does in a context is remembered too ([`groups`]). So a mask asks the stacks only
//! which terminals can follow each other: once for each sequence of terminals that tokens spell.
//! What they answer depends on the upper part of the stacks nearly always, and is remembered for
//! all stacks that look alike from their tops ([`reach`]).

mod lexeme_ends;
mod node_list;
mod parser_filter;
mod self_loops;
mod summary;

use std::hash::Hasher;
use std::sync::Arc;

use formalm_automata::deadline::check_deadline;
use formalm_automata::{Error, KeyId, Lexemes, Lock, Outline, Resource};
use formalm_vocabulary::Vocabulary;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::mask::{Mask, MaskWords, has, patch};
use lexeme_ends::{Joined, Tokens};
use node_list::Members;
use parser_filter::{Reach, Way};
use summary::Summary;

/// What all tables may take; when they have more they begin anew.
const BYTES: usize = 8 << 20;
/// What masks that are shared may take; others are kept and counted one by one.
const SHARED_BYTES: usize = 16 << 20;
/// With more masks, those that are much like another one are kept as what differs.
const MANY: usize = 8;
/// Sequences of terminals and summaries made for one mask.
const STEPS: u64 = 2_000_000;

/// What was found out about a vocabulary and a lexer.
#[derive(Debug, Default)]
pub(crate) struct Lexical {
    tables: Lock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    summaries: FxHashMap<(u32, u32), u32>,
    list: Vec<Summary>,
    /// Numbers of summaries by their hash.
    numbers: FxHashMap<u64, u32>,
    loops: FxHashMap<u32, self_loops::Loops>,
    /// Nodes with what was left, by group.
    groups: Vec<Arc<Members>>,
    group_ids: FxHashMap<Arc<Members>, u32>,
    joins: Vec<Joined>,
    /// Bitmasks of joins, in the order in which they came.
    wholes: Vec<Arc<MaskWords>>,
    /// Numbers of joins by their hash.
    join_ids: FxHashMap<u64, u32>,
    /// Numbers of joins: of a group in a context, and of all tokens from a place of the lexer.
    joined: FxHashMap<(u32, u32), u32>,
    roots: FxHashMap<u32, u32>,
    /// Lists of terminals with groups, as joins have them.
    lists: Vec<Arc<[(u32, u32)]>>,
    list_ids: FxHashMap<Arc<[(u32, u32)]>, u32>,
    /// What such a list comes to, by the outline of a place.
    reaches: FxHashMap<(u32, Outline), Arc<Reach>>,
    /// Ways that are open still: most lists are open at many places.
    opens: FxHashSet<Arc<[Way]>>,
    /// Masks by the joins they are made of: many states come to the same ones.
    sums: FxHashMap<Box<[u32]>, Mask>,
    /// Whole masks by their hash, so that equal ones are one.
    masks: FxHashMap<u64, Arc<MaskWords>>,
    /// The same in the order in which they came.
    bases: Vec<Arc<MaskWords>>,
    bytes: usize,
    steps: u64,
}

impl Lexical {
    /// The mask of a key; `None` if it has to be found byte by byte.
    pub(crate) fn mask(
        &self,
        lexemes: &impl Lexemes,
        vocabulary: &Vocabulary,
        key: KeyId,
    ) -> Result<Option<Mask>, Error> {
        let mut tables = self.tables.lock();
        if tables.bytes > BYTES {
            let masks = std::mem::take(&mut tables.masks);
            *tables = Tables { masks, ..Tables::default() };
        }
        tables.steps = 0;
        tables.mask(lexemes, vocabulary, key)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.tables.lock().memory_bytes()
    }
}

impl Tables {
    fn mask<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        key: KeyId,
    ) -> Result<Option<Mask>, Error> {
        let Some(readings) = lexemes.readings(key)? else { return Ok(None) };
        let mut parts: Vec<u32> = Vec::new();
        for (scan, place) in readings {
            let root = self.root(lexemes, vocabulary, scan)?;
            let joined = &self.joins[root];
            if joined.doubtful {
                return Ok(None);
            }
            parts.extend((!joined.is_empty()).then_some(root as u32));
            let from = (place, joined.groups);
            if !self.reached(lexemes, vocabulary, from, &mut parts)? {
                return Ok(None);
            }
        }
        parts.sort_unstable();
        parts.dedup();
        Ok(Some(self.sum_of(vocabulary, &parts)))
    }

    /// The mask of all tokens of some joins.
    fn sum_of(&mut self, vocabulary: &Vocabulary, parts: &[u32]) -> Mask {
        if let Some(known) = self.sums.get(parts) {
            return known.clone();
        }
        let size = vocabulary.len().div_ceil(32);
        let mut sum = Sum { order: vocabulary.trie().order(), only: None, words: Vec::new() };
        for &part in parts {
            sum.add(&self.joins[part as usize].tokens, size);
        }
        let mask = self.shared(sum, size);
        self.bytes += mask.memory_bytes() + 4 * parts.len() + 40;
        self.sums.insert(parts.into(), mask.clone());
        mask
    }

    fn spend(&mut self, steps: u64) -> Result<(), Error> {
        self.steps += steps;
        check_deadline()?;
        if self.steps > STEPS {
            let (needed, allowed) = (self.steps, STEPS);
            return Err(Error::Limit { resource: Resource::Steps, needed, allowed });
        }
        Ok(())
    }

    /// The mask of a sum; equal ones share their words.
    fn shared(&mut self, sum: Sum<'_>, size: usize) -> Mask {
        let words = match sum.only {
            Some(words) if sum.words.is_empty() => words,
            _ => {
                let mut words = sum.words;
                words.resize(size, 0);
                match Mask::from_words(words) {
                    Mask::Dense(words) => words.into(),
                    sparse => return sparse,
                }
            }
        };
        let hash = hash_of(&words);
        match self.masks.get(&hash) {
            Some(known) if *known == words => Mask::patched(known, Vec::new(), Vec::new()),
            None => match self.near(&words) {
                Some(mask) => mask,
                None if self.keep(hash, &words) => Mask::patched(&words, Vec::new(), Vec::new()),
                None => Mask::Dense(words.to_vec().into_boxed_slice()),
            },
            Some(_) => Mask::Dense(words.to_vec().into_boxed_slice()),
        }
    }

    /// A mask as what differs from one much like it, once there are many.
    fn near(&self, words: &MaskWords) -> Option<Mask> {
        if self.masks.len() < MANY {
            return None;
        }
        self.bases.iter().find_map(|base| Mask::near(base, words))
    }

    /// Keeps words so that equal ones share them, if there is room.
    fn keep(&mut self, hash: u64, words: &Arc<MaskWords>) -> bool {
        let room = SHARED_BYTES / (4 * words.len() + 40);
        if self.masks.len() >= room {
            self.bases.clear();
            self.masks.retain(|_, mask| Arc::strong_count(mask) > 1);
        }
        if self.masks.len() >= room {
            return false;
        }
        self.masks.insert(hash, Arc::clone(words));
        self.bases.push(Arc::clone(words));
        true
    }

    fn memory_bytes(&self) -> usize {
        let masks: usize = self.masks.values().map(|mask| 4 * mask.len() + 40).sum();
        self.bytes + masks
    }
}

fn hash_of(words: &MaskWords) -> u64 {
    let mut hasher = FxHasher::default();
    words.chunks(2).for_each(|pair| {
        hasher.write_u64(u64::from(pair[0]) << 32 | u64::from(*pair.last().unwrap_or(&0)));
    });
    hasher.finish()
}

/// Tokens that came together so far.
struct Sum<'a> {
    order: &'a [u32],
    /// All of them, as long as they are one shared bitmask.
    only: Option<Arc<MaskWords>>,
    words: Vec<u32>,
}

impl Sum<'_> {
    fn add(&mut self, tokens: &Tokens, size: usize) {
        match tokens {
            Tokens::MaskWords(words) if self.words.is_empty() && self.only.is_none() => {
                self.only = Some(Arc::clone(words));
            }
            Tokens::MaskWords(words) => {
                self.begin(size);
                for (word, more) in self.words.iter_mut().zip(&**words) {
                    *word |= more;
                }
            }
            Tokens::Near(base, add, remove) => {
                self.begin(size);
                let mut others = remove.to_vec();
                others.retain(|&id| has(&self.words, id));
                for (word, more) in self.words.iter_mut().zip(&**base) {
                    *word |= more;
                }
                patch(&mut self.words, &[], remove);
                patch(&mut self.words, add, &[]);
                patch(&mut self.words, &others, &[]);
            }
            Tokens::Ranges(ranges) => {
                if !ranges.is_empty() {
                    self.begin(size);
                }
                for &(from, to) in &**ranges {
                    for &id in &self.order[from as usize..to as usize] {
                        self.words[id as usize >> 5] |= 1 << (id & 31);
                    }
                }
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
    fn a_sum_has_the_tokens_of_all_its_parts() {
        let base: Arc<MaskWords> = vec![0b1111, 0, 0b11].into();
        let near = |add: &[u32], remove: &[u32]| {
            Tokens::Near(Arc::clone(&base), add.into(), remove.into())
        };
        let ranges = Tokens::Ranges(vec![(0, 2)].into());
        let own = Tokens::MaskWords(vec![0b100, 0, 0].into());
        // What one part leaves out another one may have, whichever comes first.
        let parts = [near(&[40], &[2, 65]), ranges, own, near(&[33], &[0, 1, 2])];
        let order = [3, 70];
        let alone = |part: &Tokens| summed(&[part], &order);
        let all = alone(&parts[0])
            .into_iter()
            .zip(parts[1..].iter().fold(vec![0; 3], |sum: Vec<u32>, part| {
                sum.into_iter().zip(alone(part)).map(|(one, other)| one | other).collect()
            }))
            .map(|(one, other)| one | other)
            .collect::<Vec<u32>>();
        assert_eq!(alone(&parts[0]), [0b1011, 1 << 8, 0b01]);
        for turn in 0..parts.len() {
            let turned: Vec<&Tokens> = parts[turn..].iter().chain(&parts[..turn]).collect();
            assert_eq!(summed(&turned, &order), all);
            let back: Vec<&Tokens> = turned.into_iter().rev().collect();
            assert_eq!(summed(&back, &order), all);
        }
    }

    fn summed(parts: &[&Tokens], order: &[u32]) -> Vec<u32> {
        let mut sum = Sum { order, only: None, words: Vec::new() };
        parts.iter().for_each(|part| sum.add(part, 3));
        match sum.only {
            Some(words) if sum.words.is_empty() => words.to_vec(),
            _ => sum.words,
        }
    }
}
