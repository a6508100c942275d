//! The trie nodes at which lexemes of a terminal end, and the effect of the tokens below them in a
//! lexer context.
//!
//! ```text
//!  group ──► node lists, one for each summary  ──context──► lexer state before the next lexeme
//!                                                                       │
//!  join ◄── tokens and groups of all of them ◄── summary of each ◄──canonical lexer state
//! ```
//!
//! The nodes at which names end are thousands, and nearly the same ones inside each name that may
//! yet become a keyword. A group is therefore not one list but those of the subtrees of the trie,
//! nearly all of which are in many groups. Contexts mostly differ in words that cannot follow
//! directly: what is found below a list is kept by what the lexer does there.

use std::sync::Arc;

use formalm_core::{ByteSet, Error};
use formalm_machines::{LexemeStep, LexerContextId, LexerStateId, LexicalMachine};
use formalm_vocabulary::{TokenTrie, Vocabulary};

use super::LexicalTables;
use super::joined_tokens::{JoinedTokens, MaskUnion, TokenUnion};
use super::node_list::NodeList;
use super::parser_filter::Branch;
use super::summary::{ROOT, SummaryBuilder};
use crate::mask::{Mask, MaskWords};

/// Number of tokens above which a bitmask is stored, which is faster to join. Chosen, not measured.
const MIN_BITMASK_TOKENS: u32 = 512;
/// As [`MIN_BITMASK_TOKENS`], for the tokens of one summary. Chosen, not measured.
const MIN_SUMMARY_BITMASK_TOKENS: u32 = 2048;
/// Number of nodes below those of a list from which they are read from canonical lexer states, for
/// which all bytes must be read once. Chosen, not measured.
const MIN_CANONICAL_NODES: u32 = 5000;
/// In place of a lexer state: nothing may follow.
const NO_START: u32 = u32::MAX >> 1;

/// Several summaries as one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct JoinedSummary {
    pub(super) tokens: TokenUnion,
    /// Terminals with the group at which their lexemes end: a number of
    /// [`LexicalTables::lists`].
    pub(super) groups: u32,
    pub(super) doubtful: bool,
}

impl JoinedSummary {
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

impl LexicalTables {
    /// Returns the effect of all tokens from a lexer state, as a number of
    /// [`LexicalTables::joins`].
    pub(super) fn root<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        lexer_state: LexerStateId,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.roots.get(&lexer_state.0) {
            return Ok(known);
        }
        let canonical = lexemes.canonical_state(lexer_state);
        let summary = self.summary(lexemes, vocabulary, ROOT, canonical)?;
        let number = self.join(&[summary]);
        self.bytes += 20;
        self.roots.insert(lexer_state.0, number);
        Ok(number)
    }

    /// Interns a join. Contexts that differ only in what no token spells have equal ones.
    pub(super) fn join_number(&mut self, joined: JoinedSummary) -> u32 {
        let (before, bytes) = (self.joins.len(), joined.tokens.memory_bytes());
        let number = self.joins.intern(joined);
        self.bytes += if self.joins.len() > before { 100 + bytes } else { 0 };
        number
    }

    /// Returns the effect of the tokens below the nodes of a group in a context, as a number of
    /// [`LexicalTables::joins`].
    pub(super) fn joined<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        group: u32,
        context: LexerContextId,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.joined.get(&(group, context.0)) {
            return Ok(known);
        }
        let node_lists = self.groups.copy(group);
        let mut summaries = Vec::with_capacity(node_lists.len());
        for &node_list in &*node_lists {
            self.spend(1)?;
            let starts = self.starts_in(lexemes, node_list, context)?;
            let summary = match self.below_lists.get(&(node_list, starts)) {
                Some(&known) => known,
                None => self.below_list(lexemes, vocabulary, (node_list, starts))?,
            };
            if !self.list[summary].is_empty() {
                summaries.push(summary);
            }
        }
        summaries.sort_unstable();
        summaries.dedup();
        let number = self.join(&summaries);
        self.bytes += 20;
        self.joined.insert((group, context.0), number);
        Ok(number)
    }

    /// Returns the lexer states of a context after the leftover states of a node list, as a list of
    /// [`LexicalTables::number_lists`].
    fn starts_in<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        node_list: u32,
        context: LexerContextId,
    ) -> Result<u32, Error> {
        let (leftovers, is_large) = self.leftovers[node_list as usize];
        if let Some(&known) = self.start_lists.get(&(leftovers, is_large, context.0)) {
            return Ok(known);
        }
        // The first context has none to be equal to.
        let is_canonical = is_large && !self.first_contexts.insert(leftovers);
        let mut starts = self.number_lists.copy(leftovers);
        for one in &mut starts {
            let is_doubtful = !lexemes.threads_fit(context, *one)?;
            let start = match lexemes.lexer_start(context, *one) {
                Some(lexer_state) if is_canonical => lexemes.canonical_state(lexer_state).0,
                Some(lexer_state) => lexer_state.0,
                None => NO_START,
            };
            *one = start << 1 | u32::from(is_doubtful);
        }
        let list = self.number_lists.intern(&starts);
        self.bytes += 24;
        self.start_lists.insert((leftovers, is_large, context.0), list);
        Ok(list)
    }

    /// Reads the tokens below the nodes of a list, from one lexer state for each leftover state.
    fn below_list<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        (number, starts): (u32, u32),
    ) -> Result<u32, Error> {
        let node_list = Arc::clone(&self.node_lists[number]);
        let leftovers = self.number_lists.copy(self.leftovers[number as usize].0);
        let starts_by_leftover = self.number_lists.copy(starts);
        let (mut all, mut stack) = (SummaryBuilder::default(), Vec::new());
        all.doubtful = starts_by_leftover.iter().any(|start| start & 1 != 0);
        let (trie, is_large) = (vocabulary.trie(), self.leftovers[number as usize].1);
        let mut live = vec![LiveBytes::default(); leftovers.len()];
        for (node, leftover) in node_list.iter() {
            self.spend(1)?;
            // There is nearly always one.
            let at = leftovers.binary_search(&leftover).unwrap_or(0);
            let lexer_state = LexerStateId(starts_by_leftover[at] >> 1);
            if lexer_state.0 == NO_START {
                continue;
            }
            if !is_large {
                self.add_below(lexemes, vocabulary, (node, lexer_state), (&mut all, &mut stack))?;
                continue;
            }
            let depth = trie.nodes()[node as usize].depth();
            let (bytes, children) = trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children) {
                if !live[at].may_read(lexemes, lexer_state, byte) {
                    continue;
                }
                let range = (child, trie.nodes()[child as usize].end(), depth);
                let from = (range, lexer_state);
                self.read_nodes(lexemes, vocabulary, from, (&mut all, &mut stack))?;
            }
        }
        let summary = self.number_of(vocabulary.trie(), all);
        self.bytes += 20;
        self.below_lists.insert((number, starts), summary);
        Ok(summary)
    }

    /// Joins summaries, whose numbers ascend.
    fn join(&mut self, summaries: &[u32]) -> u32 {
        let list = self.number_lists.intern(summaries);
        if let Some(&known) = self.joins_of_summaries.get(&list) {
            return known;
        }
        let (mut tokens, mut endings, mut doubtful) = (Vec::new(), Vec::new(), false);
        let mut open = summaries.to_vec();
        while let Some(one) = open.pop() {
            let summary = &self.list[one];
            tokens.extend((summary.tokens != 0).then_some(summary.tokens));
            endings.extend_from_slice(&summary.endings);
            open.extend_from_slice(&summary.parts);
            doubtful |= summary.doubtful;
        }
        tokens.sort_unstable();
        tokens.dedup();
        endings.sort_unstable();
        endings.dedup();
        let tokens = TokenUnion::Ranges(self.number_lists.intern(&tokens));
        let by_terminal = endings.chunk_by(|one, other| one.0 == other.0);
        let groups: Vec<(u32, Branch)> = by_terminal
            .map(|list| {
                let node_lists: Vec<u32> = list.iter().map(|one| one.1).collect();
                (list[0].0, Branch::Ends(self.groups.intern(&node_lists)))
            })
            .collect();
        let groups = self.list_number(groups);
        let number = self.join_number(JoinedSummary { tokens, groups, doubtful });
        self.bytes += 16;
        self.joins_of_summaries.insert(list, number);
        number
    }

    pub(super) fn list_number(&mut self, list: Vec<(u32, Branch)>) -> u32 {
        if let Some(known) = self.lists.find(&list[..]) {
            return known;
        }
        self.bytes += 80 + 12 * list.len();
        self.lists.intern_new(list.into())
    }

    /// Returns the group of one list of nodes.
    pub(super) fn group(&mut self, trie: &TokenTrie, nodes: &[(u32, u32)]) -> u32 {
        let node_list = self.node_list(trie, nodes);
        self.groups.intern(&[node_list])
    }

    /// Returns the nodes of a group, ascending within each list.
    pub(super) fn nodes_of_group(&self, group: u32) -> Vec<(u32, u32)> {
        let node_lists = self.groups.get(group).iter();
        node_lists.flat_map(|&one| self.node_lists[one].iter()).collect()
    }

    /// Interns a sorted list of nodes with leftover states.
    pub(super) fn node_list(&mut self, trie: &TokenTrie, nodes: &[(u32, u32)]) -> u32 {
        let node_list = Arc::new(NodeList::new(nodes));
        if let Some(known) = self.node_lists.find(&node_list) {
            return known;
        }
        let mut leftovers: Vec<u32> = nodes.iter().map(|one| one.1).collect();
        leftovers.sort_unstable();
        leftovers.dedup();
        let below = |one: &(u32, u32)| trie.nodes()[one.0 as usize].end() - one.0;
        let is_large = nodes.iter().map(below).sum::<u32>() > MIN_CANONICAL_NODES;
        self.leftovers.push((self.number_lists.intern(&leftovers), is_large));
        self.bytes += 84 + node_list.memory_bytes();
        self.node_lists.intern_new(node_list)
    }

    /// Interns ranges of the trie's order; zero if there are none.
    pub(super) fn ranges_number(&mut self, ranges: Vec<(u32, u32)>) -> u32 {
        if self.ranges.is_empty() {
            self.ranges.intern_new(Box::default());
        }
        match self.ranges.find(&ranges[..]) {
            Some(known) => known,
            None => {
                self.bytes += 40 + 8 * ranges.len();
                self.ranges.intern_new(ranges.into())
            }
        }
    }

    /// Returns the union of the tokens of some joins as words, or as one shared bitmask.
    pub(super) fn union_of<'a>(
        &mut self,
        vocabulary: &'a Vocabulary,
        joins: &[u32],
    ) -> MaskUnion<'a> {
        let size = vocabulary.len().div_ceil(32);
        let mut sum = MaskUnion { order: vocabulary.trie().order(), only: None, words: Vec::new() };
        for &join in joins {
            match &self.joins[join].tokens {
                TokenUnion::Made(tokens) => sum.add(tokens, size),
                &TokenUnion::Ranges(list) => {
                    if !self.tokens.contains_key(&list) {
                        let tokens = self.joined_tokens(vocabulary, list);
                        self.bytes += 40 + tokens.memory_bytes();
                        self.tokens.insert(list, tokens);
                    }
                    sum.add(&self.tokens[&list], size);
                }
            }
        }
        sum
    }

    /// Returns the tokens of several lists of ranges.
    fn joined_tokens(&mut self, vocabulary: &Vocabulary, list: u32) -> JoinedTokens {
        let (order, size) = (vocabulary.trie().order(), vocabulary.len().div_ceil(32));
        let all = self.number_lists.copy(list);
        let counted = all.iter().map(|&one| token_count(&self.ranges[one]));
        if counted.sum::<u32>() <= MIN_BITMASK_TOKENS {
            let ranges = all.iter().flat_map(|&one| self.ranges[one].iter().copied());
            return JoinedTokens::Ranges(ranges.collect());
        }
        let mut sum = MaskUnion { order, only: None, words: vec![0; size] };
        for &one in &all {
            let ranges = &self.ranges[one];
            if token_count(ranges) < MIN_SUMMARY_BITMASK_TOKENS {
                sum.add_ranges(ranges);
                continue;
            }
            if !self.range_bitmasks.contains_key(&one) {
                let mut alone = MaskUnion { order, only: None, words: vec![0; size] };
                alone.add_ranges(ranges);
                self.bytes += 40 + 4 * size;
                self.range_bitmasks.insert(one, alone.words.into());
            }
            sum.add_words(&self.range_bitmasks[&one]);
        }
        let words = sum.words;
        // Nearly all tokens stay inside a string or a comment, which has many beginnings.
        match self.join_bitmasks.iter().find_map(|base| Mask::as_patch_of(base, &words)) {
            Some(Mask::Patched { base, add, remove }) if add.is_empty() && remove.is_empty() => {
                JoinedTokens::MaskWords(base)
            }
            Some(Mask::Patched { base, add, remove }) => JoinedTokens::Patched(base, add, remove),
            _ => {
                let words: Arc<MaskWords> = words.into();
                self.join_bitmasks.push(Arc::clone(&words));
                JoinedTokens::MaskWords(words)
            }
        }
    }
}

fn token_count(ranges: &[(u32, u32)]) -> u32 {
    ranges.iter().map(|range| range.1 - range.0).sum()
}

/// The bytes that a lexer state may read, as far as they were asked for.
#[derive(Clone, Debug, Default)]
struct LiveBytes {
    asked: ByteSet,
    live: ByteSet,
}

impl LiveBytes {
    fn may_read(
        &mut self,
        lexemes: &impl LexicalMachine,
        lexer_state: LexerStateId,
        byte: u8,
    ) -> bool {
        if !self.asked.contains(byte) {
            self.asked.insert(byte);
            let step = lexemes.read_byte(lexer_state, byte);
            let is_dead =
                |one: LexemeStep| one.next.is_none() && one.ends == 0 && !one.context_dependent;
            // A limit is met again where the byte is read.
            if !step.is_ok_and(is_dead) {
                self.live.insert(byte);
            }
        }
        self.live.contains(byte)
    }
}
