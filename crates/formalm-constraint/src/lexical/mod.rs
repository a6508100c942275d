//! Masks of machines with a lexer and a parser.
//!
//! ```text
//!  token bytes ──lexer──► inside one lexeme: summary            (depends on the lexer state only)
//!                    └──► lexeme ends at trie nodes ──context──► next lexeme … ──► joins
//!                               parser filter: which terminal sequences may follow? (stack prefix)
//! ```
//!
//! The effect of tokens inside one lexeme is a *summary* ([`summary`]). It depends on the lexer
//! state alone, of which a vocabulary and a lexer have few. Tokens that continue beyond the end of
//! a lexeme are a *group* per terminal: trie nodes with the leftover lexer state. The effect of a
//! group in a lexer context is cached too, whatever the parser stacks are ([`lexeme_ends`]).
//!
//! So a mask queries the stacks only for the sequences of terminals that tokens spell. The answer
//! nearly always depends on the upper part of the stacks, and is cached for all stacks with equal
//! prefixes ([`parser_filter`]). Where it depends on more, it is cached for all stacks that answer
//! the same questions alike ([`parser_traces`]).
//!
//! A sublanguage is a terminal that a machine of its own reads. Its tokens are that machine's mask,
//! and the nodes at which its members end are a group like any other ([`sublanguages`]).

mod joined_tokens;
mod lexeme_ends;
mod node_list;
mod parser_filter;
mod parser_traces;
mod self_loops;
mod sublanguages;
mod summary;

use std::hash::Hasher;
use std::sync::Arc;

use formalm_core::{
    Error, ForkSafeMutex, Interner, ListInterner, MaskClassId, Resource, check_limit,
    deadline::check_deadline,
};
use formalm_machines::{LexicalConfiguration, LexicalMachine, NEEDS_DEEPER_STACK, StackPrefixId};
use formalm_vocabulary::Vocabulary;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::mask::{Mask, MaskWords};
use joined_tokens::{JoinedTokens, MaskUnion};
use lexeme_ends::JoinedSummary;
use node_list::NodeList;
use parser_filter::{FilterResult, TerminalList};
use parser_traces::ParserTraces;
pub(crate) use sublanguages::SublanguageTokens;
use summary::LexemeSummary;

/// Memory limit of all tables, in bytes; beyond it, answers of stacks are dropped, or all tables.
/// Chosen, not measured.
const MAX_TABLE_BYTES: usize = 8 << 20;
/// Memory of the answers of stacks from which they alone are dropped, in bytes. They grow with the
/// input, while the tables of the lexer are complete at some time. Chosen, not measured.
const MIN_ANSWER_BYTES: usize = 2 << 20;
/// Memory limit of shared masks, in bytes; further masks are stored and counted one by one. 16 MiB,
/// chosen, not measured.
const MAX_SHARED_BYTES: usize = 16 << 20;
/// Number of masks above which a mask similar to another one is stored as a patch. Chosen, not
/// measured.
const MIN_MASKS_TO_PATCH: usize = 8;
/// Work limit of one mask, in sequences of terminals and summaries. Chosen, not measured.
const MAX_STEPS: u64 = 2_000_000;

/// The tables of a vocabulary and a lexer.
#[derive(Debug, Default)]
pub(crate) struct LexicalMasks {
    tables: ForkSafeMutex<LexicalTables>,
}

#[derive(Debug, Default)]
struct LexicalTables {
    summaries: FxHashMap<(u32, u32), u32>,
    list: Interner<LexemeSummary>,
    loops: self_loops::SelfLoops,
    node_lists: Interner<Arc<NodeList>>,
    /// The leftover states of each node list, as a list of `number_lists`, and whether many nodes
    /// are below.
    leftovers: Vec<(u32, bool)>,
    /// Lists of node lists, by group.
    groups: ListInterner,
    /// Lists of other numbers.
    number_lists: ListInterner,
    /// Lists of leftover states of which one context is known.
    first_contexts: FxHashSet<u32>,
    /// Lists of lexer states, by list of leftover states and context.
    start_lists: FxHashMap<(u32, bool, u32), u32>,
    /// Summaries by node list and list of lexer states.
    below_lists: FxHashMap<(u32, u32), u32>,
    /// Tokens of summaries.
    ranges: Interner<Box<[(u32, u32)]>>,
    range_bitmasks: FxHashMap<u32, Arc<MaskWords>>,
    /// Unions of them, by list.
    tokens: FxHashMap<u32, JoinedTokens>,
    joins: Interner<JoinedSummary>,
    /// Bitmasks of joins, in order of creation.
    join_bitmasks: Vec<Arc<MaskWords>>,
    /// Numbers of joins: of a list of summaries, of a group in a context, and of all tokens from a
    /// lexer state.
    joins_of_summaries: FxHashMap<u32, u32>,
    joined: FxHashMap<(u32, u32), u32>,
    roots: FxHashMap<u32, u32>,
    /// Numbers of joins: of a sublanguage from its start.
    sublanguage_starts: FxHashMap<(sublanguages::Origin, u32), u32>,
    /// Lists of groups, by a sublanguage and the mask class of its state.
    sublanguage_ends: FxHashMap<(u32, u32), u32>,
    /// A bitmask without tokens.
    no_tokens: Option<Arc<MaskWords>>,
    /// Lists of terminals, each with what follows it.
    lists: Interner<TerminalList>,
    /// The filter result of such a list, by the stack prefix.
    filter_results: FxHashMap<(u32, StackPrefixId), Arc<FilterResult>>,
    /// What the parser was asked about such a list, and what follows from the answers.
    traces: ParserTraces,
    /// Masks by the joins they are made of; many states use the same ones.
    masks_by_joins: FxHashMap<Box<[u32]>, Mask>,
    /// Bitmasks by hash, so that equal ones are shared.
    masks: FxHashMap<u64, Arc<MaskWords>>,
    /// Shared bitmasks in order of creation.
    shared_bitmasks: Vec<Arc<MaskWords>>,
    bytes: usize,
    /// The memory of `filter_results` and `traces`, in bytes.
    answer_bytes: usize,
    steps: u64,
}

impl LexicalMasks {
    /// Returns the mask of a mask class, or `None` if it must be found byte by byte. `sublanguages`
    /// has the tokens of sublanguages, if the machine has any.
    pub(crate) fn mask(
        &self,
        lexemes: &impl LexicalMachine,
        vocabulary: &Vocabulary,
        key: MaskClassId,
        sublanguages: Option<&dyn SublanguageTokens>,
    ) -> Result<Option<Mask>, Error> {
        if sublanguages.is_none() && lexemes.has_sublanguages() {
            return Ok(None);
        }
        let mut tables = self.tables.lock();
        tables.make_room();
        tables.steps = 0;
        tables.mask(lexemes, &TokenSource { vocabulary, sublanguages }, key)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.tables.lock().memory_bytes()
    }
}

impl LexicalTables {
    fn mask<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        key: MaskClassId,
    ) -> Result<Option<Mask>, Error> {
        let vocabulary = tokens.vocabulary;
        let Some(configurations) = lexemes.configurations(key)? else { return Ok(None) };
        let Some(positions) = lexemes.sublanguage_positions(key)? else { return Ok(None) };
        let mut parts: Vec<u32> = Vec::new();
        for LexicalConfiguration { lexer_state, parser_state, between } in configurations {
            let root = self.root(lexemes, vocabulary, lexer_state)?;
            let joined = &self.joins[root];
            if joined.doubtful {
                return Ok(None);
            }
            parts.extend((!joined.is_empty()).then_some(root));
            let from = (parser_state, joined.groups);
            if !self.filter_by_parser(lexemes, tokens, from, &mut parts)? {
                return Ok(None);
            }
            if let Some(threads) = between {
                let origin = sublanguages::Origin::Root(threads);
                let starts = match self.sublanguages_from(lexemes, tokens, (parser_state, origin)) {
                    Err(error) if error == NEEDS_DEEPER_STACK => return Ok(None),
                    starts => starts?,
                };
                for start in starts {
                    parts.push(start);
                    let from = (parser_state, self.joins[start].groups);
                    if !self.filter_by_parser(lexemes, tokens, from, &mut parts)? {
                        return Ok(None);
                    }
                }
            }
        }
        for position in &positions {
            let from = (position.parser_state, self.sublanguage_ends(tokens, position)?);
            if !self.filter_by_parser(lexemes, tokens, from, &mut parts)? {
                return Ok(None);
            }
        }
        parts.sort_unstable();
        parts.dedup();
        let mut masks = positions.iter().map(|position| tokens.mask_inside(position));
        if let (true, Some(first)) = (parts.is_empty() && positions.len() == 1, masks.next()) {
            return first.map(Some);
        }
        let mask = self.sum_of(vocabulary, &parts);
        if positions.is_empty() {
            return Ok(Some(mask));
        }
        let mut words = vec![0; vocabulary.len().div_ceil(32)];
        mask.join(&mut words);
        for position in &positions {
            tokens.mask_inside(position)?.join(&mut words);
        }
        Ok(Some(Mask::from_words(words)))
    }

    /// Returns the union of the tokens of some joins.
    fn sum_of(&mut self, vocabulary: &Vocabulary, parts: &[u32]) -> Mask {
        if let Some(known) = self.masks_by_joins.get(parts) {
            return known.clone();
        }
        let sum = self.union_of(vocabulary, parts);
        let mask = self.shared(sum, vocabulary.len().div_ceil(32));
        self.bytes += mask.memory_bytes() + 4 * parts.len() + 40;
        self.masks_by_joins.insert(parts.into(), mask.clone());
        mask
    }

    fn spend(&mut self, steps: u64) -> Result<(), Error> {
        self.steps += steps;
        check_deadline()?;
        check_limit(Resource::Steps, self.steps, MAX_STEPS)
    }

    /// Returns the mask of a union; equal masks share their words.
    fn shared(&mut self, sum: MaskUnion<'_>, size: usize) -> Mask {
        let words = match sum.only {
            Some(words) if sum.words.is_empty() => words,
            _ => {
                let mut words = sum.words;
                words.resize(size, 0);
                match Mask::from_words(words) {
                    Mask::Dense(words) => words,
                    sparse => return sparse,
                }
            }
        };
        let hash = hash_of(&words);
        match self.masks.get(&hash) {
            Some(known) if *known == words => Mask::patched(known, Vec::new(), Vec::new()),
            None => match self.patch_of_similar(&words) {
                Some(mask) => mask,
                None if self.keep(hash, &words) => Mask::patched(&words, Vec::new(), Vec::new()),
                None => Mask::Dense(words),
            },
            Some(_) => Mask::Dense(words),
        }
    }

    /// Stores a mask as a patch of a similar one, once there are many.
    fn patch_of_similar(&self, words: &MaskWords) -> Option<Mask> {
        if self.masks.len() < MIN_MASKS_TO_PATCH {
            return None;
        }
        self.shared_bitmasks.iter().find_map(|base| Mask::as_patch_of(base, words))
    }

    /// Shares a bitmask with later equal ones, if there is room.
    fn keep(&mut self, hash: u64, words: &Arc<MaskWords>) -> bool {
        let room = MAX_SHARED_BYTES / (4 * words.len() + 40);
        if self.masks.len() >= room {
            self.shared_bitmasks.clear();
            self.masks.retain(|_, mask| Arc::strong_count(mask) > 1);
        }
        if self.masks.len() >= room {
            return false;
        }
        self.masks.insert(hash, Arc::clone(words));
        self.shared_bitmasks.push(Arc::clone(words));
        true
    }

    fn memory_bytes(&self) -> usize {
        let masks: usize = self.masks.values().map(|mask| 4 * mask.len() + 40).sum();
        self.table_bytes() + masks
    }

    /// Returns the memory of everything but shared masks, in bytes.
    fn table_bytes(&self) -> usize {
        let lists = self.groups.memory_bytes() + self.number_lists.memory_bytes();
        self.bytes + self.answer_bytes + self.loops.memory_bytes() + lists
    }

    /// Drops tables that have grown too large.
    fn make_room(&mut self) {
        if self.table_bytes() <= MAX_TABLE_BYTES {
            return;
        }
        if self.answer_bytes >= MIN_ANSWER_BYTES {
            self.filter_results = FxHashMap::default();
            self.traces = ParserTraces::default();
            self.answer_bytes = 0;
            return;
        }
        let masks = std::mem::take(&mut self.masks);
        *self = LexicalTables { masks, ..LexicalTables::default() };
    }
}

fn hash_of(words: &MaskWords) -> u64 {
    let mut hasher = FxHasher::default();
    words.chunks(2).for_each(|pair| {
        hasher.write_u64(u64::from(pair[0]) << 32 | u64::from(*pair.last().unwrap_or(&0)));
    });
    hasher.finish()
}

/// What tokens are read from.
struct TokenSource<'a> {
    vocabulary: &'a Vocabulary,
    sublanguages: Option<&'a dyn SublanguageTokens>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_stacks_are_dropped_before_tables_of_the_lexer() {
        let mut tables =
            LexicalTables { bytes: MAX_TABLE_BYTES - 1000, ..LexicalTables::default() };
        tables.roots.insert(1, 2);
        let result = FilterResult::new(vec![3], 0);
        tables.filter_results.insert((1, StackPrefixId(2)), Arc::clone(&result));
        tables.make_room();
        assert_eq!((tables.roots.len(), tables.filter_results.len()), (1, 1));
        tables.answer_bytes = MIN_ANSWER_BYTES;
        tables.make_room();
        assert_eq!((tables.roots.len(), tables.filter_results.len()), (1, 0));
        assert_eq!(tables.answer_bytes, 0);
        tables.answer_bytes = 2000;
        tables.make_room();
        assert_eq!((tables.roots.len(), tables.bytes), (0, 0));
    }
}
