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
/// The same directly below the root, where most lexer states read the same on most bytes. Chosen,
/// not measured.
const MAX_READ_ROOT_NODES: u32 = 64;
/// Subtree size, in nodes, up to which a subtree is read again each time. Chosen, not measured.
const MAX_READ_NODES: u32 = 32;

/// The tokens strictly below a node, or below each node of a list.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LexemeSummary {
    /// Tokens that stay in the lexeme or end with it, as a number of [`LexicalTables::ranges`].
    pub(super) tokens: u32,
    /// The lexeme ends inside the token: terminal, node list.
    pub(super) endings: Box<[(u32, u32)]>,
    /// Summaries of large subtrees.
    pub(super) parts: Box<[u32]>,
    pub(super) doubtful: bool,
}

impl LexemeSummary {
    fn memory_bytes(&self) -> usize {
        80 + 8 * self.endings.len() + 4 * self.parts.len()
    }

    /// Returns `true` if nothing may follow.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens == 0 && self.endings.is_empty() && self.parts.is_empty() && !self.doubtful
    }
}

/// A summary being made.
#[derive(Debug, Default)]
pub(super) struct SummaryBuilder {
    /// Ranges of the trie's order.
    tokens: Vec<(u32, u32)>,
    /// Terminal, node, leftover state.
    endings: Vec<(u32, u32, u32)>,
    parts: Vec<u32>,
    pub(super) doubtful: bool,
}

impl SummaryBuilder {
    fn take(&mut self, from: u32, to: u32) {
        match self.tokens.last_mut() {
            _ if from == to => {}
            Some(last) if last.1 == from => last.1 = to,
            _ => self.tokens.push((from, to)),
        }
    }

    fn add_part(&mut self, number: u32, summary: &LexemeSummary) {
        if !summary.is_empty() {
            self.parts.push(number);
            self.doubtful |= summary.doubtful;
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
        let mut summary = SummaryBuilder::default();
        self.read_below(lexemes, vocabulary, (node, lexer_state), (&mut summary, &mut Vec::new()))?;
        let number = self.number_of(vocabulary.trie(), summary);
        self.bytes += 20;
        self.summaries.insert((node, lexer_state.0), number);
        Ok(number)
    }

    /// Interns a summary. Very many are equal, most of them empty.
    pub(super) fn number_of(&mut self, trie: &TokenTrie, built: SummaryBuilder) -> u32 {
        let SummaryBuilder { tokens, mut endings, mut parts, doubtful } = built;
        parts.sort_unstable();
        parts.dedup();
        endings.sort_unstable();
        endings.dedup();
        let by_terminal = endings.chunk_by(|one, other| one.0 == other.0);
        let endings = by_terminal.map(|list| {
            let nodes: Vec<(u32, u32)> = list.iter().map(|one| (one.1, one.2)).collect();
            (list[0].0, self.node_list(trie, &nodes))
        });
        let endings = endings.collect();
        let tokens = self.ranges_number(tokens);
        let summary = LexemeSummary { tokens, endings, parts: parts.into(), doubtful };
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
        (summary, stack): (&mut SummaryBuilder, &mut Vec<LexerStateId>),
    ) -> Result<(), Error> {
        let end = vocabulary.trie().nodes()[node as usize].end();
        if end - node <= MAX_READ_NODES {
            return self.read_below(lexemes, vocabulary, (node, lexer_state), (summary, stack));
        }
        let part = self.summary(lexemes, vocabulary, node, lexer_state)?;
        summary.add_part(part, &self.list[part]);
        Ok(())
    }

    fn read_below<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        (node, lexer_state): (u32, LexerStateId),
        (summary, stack): (&mut SummaryBuilder, &mut Vec<LexerStateId>),
    ) -> Result<(), Error> {
        let nodes = vocabulary.trie().nodes();
        let range = match nodes.get(node as usize) {
            Some(here) => (node + 1, here.end(), here.depth()),
            None => (0, nodes.len() as u32, 0),
        };
        self.read_nodes(lexemes, vocabulary, (range, lexer_state), (summary, stack))
    }

    /// Adds the tokens of a range of nodes to a summary: children of one node, which has depth
    /// `top`, with all below.
    pub(super) fn read_nodes<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        ((mut at, end, top), lexer_state): ((u32, u32, usize), LexerStateId),
        (summary, stack): (&mut SummaryBuilder, &mut Vec<LexerStateId>),
    ) -> Result<(), Error> {
        let trie = vocabulary.trie();
        let (nodes, rank) = (trie.nodes(), trie.rank());
        let most_read = if top == 0 { MAX_READ_ROOT_NODES } else { MIN_SHARED_NODES };
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
                    let leftover = lexemes.without_redundant_threads(one.negative_threads);
                    if self.may_follow(lexemes, trie, leftover, at)? {
                        summary.endings.push((one.terminal, at, leftover));
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
            } else if here.end() - at > most_read {
                let part = self.summary(lexemes, vocabulary, at, next)?;
                summary.add_part(part, &self.list[part]);
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
