//! The trie nodes at which lexemes of a terminal end, and the effect of the tokens below them in a
//! lexer context.

use std::sync::Arc;

use formalm_core::Error;
use formalm_machines::{LexerContextId, LexerStateId, LexicalMachine};
use formalm_vocabulary::Vocabulary;
use rustc_hash::FxHashMap;

use super::LexicalTables;
use super::node_list::NodeList;
use super::parser_filter::Branch;
use super::summary::{LexemeSummary, ROOT};
use crate::mask::{Mask, MaskWords};

/// Number of tokens above which a bitmask is stored, which is faster to join. Chosen, not measured.
const MIN_BITMASK_TOKENS: u32 = 512;

/// The tokens of several summaries.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum JoinedTokens {
    /// Ranges of the trie's order.
    Ranges(Arc<[(u32, u32)]>),
    /// A bitmask.
    MaskWords(Arc<MaskWords>),
    /// A shared bitmask, with tokens to add and to remove.
    Patched(Arc<MaskWords>, Box<[u32]>, Box<[u32]>),
}

/// Several summaries as one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct JoinedSummary {
    pub(super) tokens: JoinedTokens,
    /// Terminals with the node list at which their lexemes end: a number of
    /// [`LexicalTables::lists`].
    pub(super) groups: u32,
    pub(super) doubtful: bool,
}

impl JoinedSummary {
    fn memory_bytes(&self) -> usize {
        let tokens = match &self.tokens {
            JoinedTokens::Ranges(ranges) => 8 * ranges.len(),
            JoinedTokens::MaskWords(words) => 4 * words.len(),
            JoinedTokens::Patched(_, add, remove) => 4 * (add.len() + remove.len()),
        };
        100 + tokens
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.tokens, JoinedTokens::Ranges(ranges) if ranges.is_empty())
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
        let summary = self.summary(lexemes, vocabulary, ROOT, lexer_state)?;
        let joined = self
            .join(vocabulary, LexemeSummary { parts: vec![summary], ..LexemeSummary::default() });
        let number = self.join_number(joined);
        self.roots.insert(lexer_state.0, number);
        Ok(number)
    }

    /// Interns a join. Contexts that differ only in what no token spells have equal ones.
    pub(super) fn join_number(&mut self, joined: JoinedSummary) -> u32 {
        self.bytes += 20;
        let (before, bytes) = (self.joins.len(), joined.memory_bytes());
        let number = self.joins.intern(joined);
        self.bytes += if self.joins.len() > before { bytes } else { 0 };
        number
    }

    /// Returns the effect of the tokens below the nodes of a list in a context, as a number of
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
        let node_list = Arc::clone(&self.groups[group]);
        let (mut all, mut stack) = (LexemeSummary::default(), Vec::new());
        // The leftover state is nearly always one of very few.
        let mut lexer_states: FxHashMap<u32, Option<LexerStateId>> = FxHashMap::default();
        let mut last: Option<(u32, Option<LexerStateId>)> = None;
        for (node, leftover) in node_list.iter() {
            self.spend(1)?;
            let lexer_state = match last {
                Some((known, lexer_state)) if known == leftover => lexer_state,
                _ => match lexer_states.get(&leftover) {
                    Some(&lexer_state) => lexer_state,
                    None => {
                        all.doubtful |= !lexemes.threads_fit(context, leftover)?;
                        let lexer_state = lexemes.lexer_start(context, leftover);
                        lexer_states.insert(leftover, lexer_state);
                        lexer_state
                    }
                },
            };
            last = Some((leftover, lexer_state));
            if let Some(lexer_state) = lexer_state {
                self.add_below(lexemes, vocabulary, (node, lexer_state), (&mut all, &mut stack))?;
            }
        }
        let joined = self.join(vocabulary, all);
        let number = self.join_number(joined);
        self.joined.insert((group, context.0), number);
        Ok(number)
    }

    fn join(&mut self, vocabulary: &Vocabulary, all: LexemeSummary) -> JoinedSummary {
        let LexemeSummary { mut tokens, mut endings, parts: mut open, mut doubtful } = all;
        while let Some(one) = open.pop() {
            let summary = &self.list[one];
            tokens.extend_from_slice(&summary.tokens);
            endings.extend_from_slice(&summary.endings);
            open.extend_from_slice(&summary.parts);
            doubtful |= summary.doubtful;
        }
        endings.sort_unstable();
        endings.dedup();
        let by_terminal = endings.chunk_by(|one, other| one.0 == other.0);
        let groups: Vec<(u32, Branch)> = by_terminal
            .map(|list| {
                let group = self.group(list.iter().map(|one| (one.1, one.2)).collect());
                (list[0].0, Branch::Ends(group))
            })
            .collect();
        let tokens = self.tokens(vocabulary, tokens);
        JoinedSummary { tokens, groups: self.list_number(groups), doubtful }
    }

    pub(super) fn list_number(&mut self, list: Vec<(u32, Branch)>) -> u32 {
        if let Some(known) = self.lists.find(&list[..]) {
            return known;
        }
        self.bytes += 80 + 12 * list.len();
        self.lists.intern_new(list.into())
    }

    fn tokens(&mut self, vocabulary: &Vocabulary, mut ranges: Vec<(u32, u32)>) -> JoinedTokens {
        let count: u32 = ranges.iter().map(|range| range.1 - range.0).sum();
        if count <= MIN_BITMASK_TOKENS {
            // In order, so that equal ranges compare equal.
            ranges.sort_unstable();
            return JoinedTokens::Ranges(ranges.into());
        }
        let order = vocabulary.trie().order();
        let mut words = vec![0u32; vocabulary.len().div_ceil(32)];
        for (from, to) in ranges {
            for &id in &order[from as usize..to as usize] {
                words[id as usize >> 5] |= 1 << (id & 31);
            }
        }
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

    pub(super) fn group(&mut self, node_list: Vec<(u32, u32)>) -> u32 {
        let node_list = Arc::new(NodeList::new(&node_list));
        if let Some(known) = self.groups.find(&node_list) {
            return known;
        }
        self.bytes += 80 + node_list.memory_bytes();
        self.groups.intern_new(node_list)
    }
}
