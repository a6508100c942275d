//! The effect of the tokens below a trie node on the current lexeme.

use formalm_core::{Error, deadline::check_deadline};
use formalm_machines::{LexerStateId, LexicalMachine};
use formalm_vocabulary::{TokenTrie, Vocabulary};

use super::LexicalTables;
use crate::trie_walk::DEADLINE_CHECK_MASK;

/// The root of the trie, which is not one of its nodes.
pub(super) const ROOT: u32 = u32::MAX;

/// Subtree size, in nodes, above which a subtree has a shared summary of its own. Chosen, not
/// measured.
const MIN_SHARED_NODES: u32 = 200;
/// Subtree size, in nodes, up to which a subtree is read again each time. Chosen, not measured.
const MAX_READ_NODES: u32 = 32;

/// The tokens strictly below a node, read from one lexer state.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LexemeSummary {
    /// Tokens that stay in the lexeme or end with it, as ranges of the trie's order.
    pub(super) tokens: Vec<(u32, u32)>,
    /// The lexeme ends inside the token: terminal, node, leftover state.
    pub(super) endings: Vec<(u32, u32, u32)>,
    /// Summaries of large subtrees.
    pub(super) parts: Vec<u32>,
    pub(super) doubtful: bool,
}

impl LexemeSummary {
    pub(super) fn memory_bytes(&self) -> usize {
        120 + 8 * self.tokens.len() + 12 * self.endings.len() + 4 * self.parts.len()
    }

    fn take(&mut self, from: u32, to: u32) {
        match self.tokens.last_mut() {
            _ if from == to => {}
            Some(last) if last.1 == from => last.1 = to,
            _ => self.tokens.push((from, to)),
        }
    }
}

impl LexicalTables {
    /// Returns the summary of the tokens strictly below a node.
    pub(super) fn summary<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        node: u32,
        lexer_state: LexerStateId,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.summaries.get(&(node, lexer_state.0)) {
            return Ok(known);
        }
        let mut summary = LexemeSummary::default();
        self.read_below(lexemes, vocabulary, (node, lexer_state), (&mut summary, &mut Vec::new()))?;
        summary.tokens.shrink_to_fit();
        summary.endings.shrink_to_fit();
        let number = self.number_of(summary);
        self.bytes += 20;
        self.summaries.insert((node, lexer_state.0), number);
        Ok(number)
    }

    /// Interns a summary. Very many are equal, most of them empty.
    fn number_of(&mut self, summary: LexemeSummary) -> u32 {
        let (before, bytes) = (self.list.len(), summary.memory_bytes());
        let number = self.list.intern(summary);
        self.bytes += if self.list.len() > before { bytes } else { 0 };
        number
    }

    /// Adds the tokens strictly below a node to a summary. Reading a small subtree is faster than
    /// caching it, and there are very many.
    pub(super) fn add_below<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        (node, lexer_state): (u32, LexerStateId),
        (summary, stack): (&mut LexemeSummary, &mut Vec<LexerStateId>),
    ) -> Result<(), Error> {
        let end = vocabulary.trie().nodes()[node as usize].end();
        if end - node <= MAX_READ_NODES {
            return self.read_below(lexemes, vocabulary, (node, lexer_state), (summary, stack));
        }
        let part = self.summary(lexemes, vocabulary, node, lexer_state)?;
        summary.parts.push(part);
        Ok(())
    }

    fn read_below<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        (node, lexer_state): (u32, LexerStateId),
        (summary, stack): (&mut LexemeSummary, &mut Vec<LexerStateId>),
    ) -> Result<(), Error> {
        let trie = vocabulary.trie();
        let (nodes, rank) = (trie.nodes(), trie.rank());
        let (mut at, end, top) = match nodes.get(node as usize) {
            Some(here) => (node + 1, here.end(), here.depth()),
            None => (0, nodes.len() as u32, 0),
        };
        stack.clear();
        stack.push(lexer_state);
        while at < end {
            if at & DEADLINE_CHECK_MASK == 0 {
                check_deadline()?;
            }
            let here = nodes[at as usize];
            let depth = here.depth() - top;
            let progress = lexemes.read_byte(stack[depth - 1], here.byte())?;
            summary.doubtful |= progress.context_dependent;
            if progress.next.is_none() && progress.ends == 0 {
                at = here.end();
                continue;
            }
            let below = rank[at as usize + 1];
            summary.take(rank[at as usize], below);
            if here.end() == at + 1 {
                at += 1;
                continue;
            }
            if progress.ends != 0 {
                for one in &*lexemes.lexeme_ends(progress.ends) {
                    if self.may_follow(lexemes, trie, one.negative_threads, at)? {
                        summary.endings.push((one.terminal, at, one.negative_threads));
                    }
                }
            }
            let Some(next) = progress.next else {
                at = here.end();
                continue;
            };
            if self.loops.is_within_loop(lexemes, trie, at, next)? {
                summary.take(below, rank[here.end() as usize]);
                at = here.end();
            } else if here.end() - at > MIN_SHARED_NODES {
                let part = self.summary(lexemes, vocabulary, at, next)?;
                summary.doubtful |= self.list[part].doubtful;
                summary.parts.push(part);
                at = here.end();
            } else {
                stack.truncate(depth);
                stack.push(next);
                at += 1;
            }
        }
        Ok(())
    }

    /// Returns `true` if some byte below a node can follow a lexeme that ends with the
    /// negative threads `left`.
    fn may_follow(
        &mut self,
        lexemes: &impl LexicalMachine,
        trie: &TokenTrie,
        leftover: u32,
        node: u32,
    ) -> Result<bool, Error> {
        if leftover == 0 {
            return Ok(true);
        }
        let (bytes, _) = trie.children(node);
        for &byte in bytes {
            if lexemes.step_threads(leftover, byte)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
