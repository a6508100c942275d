//! Tokens that begin, continue or leave a sublanguage.
//!
//! A sublanguage is a terminal with a machine of its own. What tokens do inside depends on that
//! machine alone, as it depends on the lexer alone inside a lexeme. So its effect from a state is a
//! join too: tokens that stay inside, and a group of the nodes at which members end.

use std::sync::Arc;

use formalm_core::{Error, StateId};
use formalm_machines::{LexicalMachine, NEEDS_DEEPER_STACK, ParserStateId, SublanguagePosition};

use super::joined_tokens::{JoinedTokens, TokenUnion};
use super::lexeme_ends::JoinedSummary;
use super::parser_filter::Branch;
use super::{LexicalTables, TokenSource};
use crate::mask::Mask;

/// The tokens of sublanguages, by terminal.
pub(crate) trait SublanguageTokens {
    /// Returns the start state of a sublanguage's machine.
    fn start(&self, terminal: u32) -> Option<StateId>;

    /// Returns a number for a state that determines its tokens.
    fn class(&self, terminal: u32, state: StateId) -> Result<u32, Error>;

    /// Returns the tokens that stay inside the sublanguage, or end with a member.
    fn mask(&self, terminal: u32, state: StateId) -> Result<Mask, Error>;

    /// Returns the inner trie nodes at which a member ends, ascending.
    fn ends(&self, terminal: u32, state: StateId) -> Result<Vec<u32>, Error>;

    /// Returns the tokens at and below trie nodes, whose bytes are read from the start of the
    /// sublanguage, and the inner nodes among these at which a member ends.
    fn below(&self, terminal: u32, nodes: &[u32]) -> Result<(Vec<u32>, Vec<u32>), Error>;
}

/// Where in the trie a sublanguage begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// At the root, with the negative threads of the last lexeme.
    Root(u32),
    /// After the nodes of a group.
    Group(u32),
}

impl TokenSource<'_> {
    /// Returns the tokens that stay inside a sublanguage.
    pub(super) fn mask_inside(&self, position: &SublanguagePosition) -> Result<Mask, Error> {
        match self.sublanguages {
            Some(all) => all.mask(position.terminal, position.state),
            None => Ok(Mask::from_ids(&[], 0)),
        }
    }
}

impl LexicalTables {
    /// Returns the list of groups, of at most one group, of the nodes at which the member at hand
    /// ends.
    pub(super) fn sublanguage_ends(
        &mut self,
        tokens: &TokenSource<'_>,
        position: &SublanguagePosition,
    ) -> Result<u32, Error> {
        let Some(all) = tokens.sublanguages else { return Ok(self.list_number(Vec::new())) };
        let class = all.class(position.terminal, position.state)?;
        if let Some(&known) = self.sublanguage_ends.get(&(position.terminal, class)) {
            return Ok(known);
        }
        let ends = all.ends(position.terminal, position.state)?;
        let list = self.end_groups(tokens, position.terminal, ends);
        self.bytes += 20;
        self.sublanguage_ends.insert((position.terminal, class), list);
        Ok(list)
    }

    fn end_groups(&mut self, tokens: &TokenSource<'_>, terminal: u32, mut ends: Vec<u32>) -> u32 {
        ends.sort_unstable();
        ends.dedup();
        let groups = match ends.is_empty() {
            true => Vec::new(),
            false => {
                let nodes: Vec<(u32, u32)> = ends.into_iter().map(|node| (node, 0)).collect();
                vec![(terminal, Branch::Ends(self.group(tokens.vocabulary.trie(), &nodes)))]
            }
        };
        self.list_number(groups)
    }

    /// Returns the joins of the sublanguages that may begin in a parser state, as numbers of
    /// [`LexicalTables::joins`]; empty ones are left out. Fails with the marker error of a too
    /// shallow prefix if the result is not certain.
    pub(super) fn sublanguages_from<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, origin): (ParserStateId, Origin),
    ) -> Result<Vec<u32>, Error> {
        if tokens.sublanguages.is_none() {
            return Ok(Vec::new());
        }
        let mut joins = Vec::new();
        for terminal in lexemes.sublanguages_at(parser_state)? {
            self.spend(1)?;
            let join = self.sublanguage_start(lexemes, tokens, (origin, terminal))?;
            let joined = &self.joins[join];
            let doubtful = joined.doubtful;
            let has_ends = !self.lists[joined.groups].is_empty();
            if joined.is_empty() && !has_ends && !doubtful {
                continue;
            }
            // A member can be completed; what follows it has to be completable as well.
            let Some(after) = lexemes.after_terminal(parser_state, terminal)? else { continue };
            if doubtful || !lexemes.is_completable(after)? {
                return Err(NEEDS_DEEPER_STACK);
            }
            joins.push(join);
        }
        Ok(joins)
    }

    /// Returns the effect of tokens from the start of a sublanguage, as a number of
    /// [`LexicalTables::joins`].
    fn sublanguage_start<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (origin, terminal): (Origin, u32),
    ) -> Result<u32, Error> {
        if let Some(&known) = self.sublanguage_starts.get(&(origin, terminal)) {
            return Ok(known);
        }
        let joined = match (tokens.sublanguages, origin) {
            (None, _) => self.joined_of(tokens, terminal, (&[], Vec::new())),
            (Some(all), Origin::Root(0)) => {
                let (mask, ends) = match all.start(terminal) {
                    Some(start) => (all.mask(terminal, start)?, all.ends(terminal, start)?),
                    None => (Mask::from_ids(&[], 0), Vec::new()),
                };
                let groups = self.end_groups(tokens, terminal, ends);
                let tokens = TokenUnion::Made(self.mask_tokens(tokens, mask));
                JoinedSummary { tokens, groups, doubtful: false }
            }
            (Some(all), _) => {
                let (nodes, doubtful) = self.first_nodes(lexemes, tokens, origin)?;
                let (found, ends) = all.below(terminal, &nodes)?;
                let mut joined = self.joined_of(tokens, terminal, (&found, ends));
                // Whether a member can satisfy negative threads that go on is left to a search.
                if !doubtful.is_empty() {
                    let (found, ends) = all.below(terminal, &doubtful)?;
                    joined.doubtful = !found.is_empty() || !ends.is_empty();
                }
                joined
            }
        };
        let number = self.join_number(joined);
        self.bytes += 28;
        self.sublanguage_starts.insert((origin, terminal), number);
        Ok(number)
    }

    /// Returns the trie nodes whose bytes are the first ones after an origin, without those that
    /// negative threads forbid, and those after which such threads go on.
    fn first_nodes<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        origin: Origin,
    ) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let trie = tokens.vocabulary.trie();
        let mut nodes: Vec<(u32, u32)> = Vec::new();
        match origin {
            Origin::Root(threads) => {
                let all = (0..=255).filter_map(|byte| trie.root_child(byte));
                nodes.extend(all.map(|node| (node, threads)));
            }
            Origin::Group(group) => {
                for (node, threads) in self.nodes_of_group(group) {
                    nodes.extend(trie.children(node).1.iter().map(|&child| (child, threads)));
                }
            }
        }
        let (mut certain, mut doubtful) = (Vec::new(), Vec::new());
        for (node, threads) in nodes {
            self.spend(1)?;
            let left = match threads {
                0 => Some(0),
                _ => lexemes.step_threads(threads, trie.nodes()[node as usize].byte())?,
            };
            match left {
                Some(0) => certain.push(node),
                Some(_) => doubtful.push(node),
                None => {}
            }
        }
        certain.sort_unstable();
        certain.dedup();
        Ok((certain, doubtful))
    }

    fn joined_of(
        &mut self,
        tokens: &TokenSource<'_>,
        terminal: u32,
        (found, ends): (&[u32], Vec<u32>),
    ) -> JoinedSummary {
        let words = tokens.vocabulary.len().div_ceil(32);
        let groups = self.end_groups(tokens, terminal, ends);
        let tokens = TokenUnion::Made(self.mask_tokens(tokens, Mask::from_ids(found, words)));
        JoinedSummary { tokens, groups, doubtful: false }
    }

    /// Returns the tokens of a mask in the form of a join.
    fn mask_tokens(&mut self, tokens: &TokenSource<'_>, mask: Mask) -> JoinedTokens {
        let size = tokens.vocabulary.len().div_ceil(32);
        match mask {
            Mask::Sparse(ids) if ids.is_empty() => JoinedTokens::Ranges(Arc::default()),
            Mask::Sparse(ids) => {
                let base = self.no_tokens.get_or_insert_with(|| vec![0; size].into());
                JoinedTokens::Patched(Arc::clone(base), ids, Box::default())
            }
            mask => {
                let mut words = vec![0; size];
                mask.join(&mut words);
                JoinedTokens::MaskWords(words.into())
            }
        }
    }
}
