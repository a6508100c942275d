//! Nodes at which lexemes of one terminal end, and what tokens below them do in a context.

use std::hash::BuildHasher;
use std::sync::Arc;

use formalm_automata::{Context, Error, Lexemes, Scan};
use formalm_vocabulary::Vocabulary;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::Tables;
use super::node_list::Members;
use super::summary::{ROOT, Summary};
use crate::mask::{Mask, MaskWords};

/// Above this many tokens a bitmask is kept: it is quicker to join.
const MANY: u32 = 512;

/// Tokens of several summaries.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Tokens {
    /// Ranges of the trie's order.
    Ranges(Arc<[(u32, u32)]>),
    /// A bitmask.
    MaskWords(Arc<MaskWords>),
    /// A bitmask that others share, with tokens to add and to remove.
    Near(Arc<MaskWords>, Box<[u32]>, Box<[u32]>),
}

/// Several summaries as one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Joined {
    pub(super) tokens: Tokens,
    /// Terminals with the group of nodes at which their lexemes end: a number of
    /// [`Tables::lists`].
    pub(super) groups: u32,
    pub(super) doubtful: bool,
}

impl Joined {
    fn memory_bytes(&self) -> usize {
        let tokens = match &self.tokens {
            Tokens::Ranges(ranges) => 8 * ranges.len(),
            Tokens::MaskWords(words) => 4 * words.len(),
            Tokens::Near(_, add, remove) => 4 * (add.len() + remove.len()),
        };
        100 + tokens
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.tokens, Tokens::Ranges(ranges) if ranges.is_empty())
    }
}

impl Tables {
    /// What all tokens do from one place of the lexer, as a number of [`Tables::joins`].
    pub(super) fn root<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        scan: Scan,
    ) -> Result<usize, Error> {
        if let Some(&known) = self.roots.get(&scan.0) {
            return Ok(known as usize);
        }
        let summary = self.summary(lexemes, vocabulary, ROOT, scan)?;
        let joined = self.join(vocabulary, Summary { parts: vec![summary], ..Summary::default() });
        let number = self.join_number(joined);
        self.roots.insert(scan.0, number);
        Ok(number as usize)
    }

    /// The number of a join: contexts that differ in what no token spells have equal ones.
    fn join_number(&mut self, joined: Joined) -> u32 {
        self.bytes += 20;
        let hash = FxBuildHasher.hash_one(&joined);
        let fresh = self.joins.len() as u32;
        let known = self.join_ids.get(&hash).copied();
        if let Some(known) = known.filter(|&known| self.joins[known as usize] == joined) {
            return known;
        }
        self.bytes += joined.memory_bytes();
        self.joins.push(joined);
        self.join_ids.entry(hash).or_insert(fresh);
        fresh
    }

    /// What the tokens below the nodes of a group do in a context, in the same way.
    pub(super) fn joined<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        group: u32,
        context: Context,
    ) -> Result<usize, Error> {
        if let Some(&known) = self.joined.get(&(group, context.0)) {
            return Ok(known as usize);
        }
        let members = Arc::clone(&self.groups[group as usize]);
        let (mut all, mut stack) = (Summary::default(), Vec::new());
        // What is left is nearly always one of very few.
        let mut scans: FxHashMap<u32, Option<Scan>> = FxHashMap::default();
        let mut last: Option<(u32, Option<Scan>)> = None;
        for (node, left) in members.iter() {
            self.spend(1)?;
            let scan = match last {
                Some((known, scan)) if known == left => scan,
                _ => match scans.get(&left) {
                    Some(&scan) => scan,
                    None => {
                        all.doubtful |= !lexemes.fits(context, left)?;
                        let scan = lexemes.scan(context, left);
                        scans.insert(left, scan);
                        scan
                    }
                },
            };
            last = Some((left, scan));
            if let Some(scan) = scan {
                self.add_below(lexemes, vocabulary, (node, scan), (&mut all, &mut stack))?;
            }
        }
        let joined = self.join(vocabulary, all);
        let number = self.join_number(joined);
        self.joined.insert((group, context.0), number);
        Ok(number as usize)
    }

    fn join(&mut self, vocabulary: &Vocabulary, all: Summary) -> Joined {
        let Summary { mut tokens, mut endings, parts: mut open, mut doubtful } = all;
        while let Some(one) = open.pop() {
            let summary = &self.list[one as usize];
            tokens.extend_from_slice(&summary.tokens);
            endings.extend_from_slice(&summary.endings);
            open.extend_from_slice(&summary.parts);
            doubtful |= summary.doubtful;
        }
        endings.sort_unstable();
        endings.dedup();
        let by_terminal = endings.chunk_by(|left, right| left.0 == right.0);
        let groups: Vec<(u32, u32)> = by_terminal
            .map(|list| (list[0].0, self.group(list.iter().map(|one| (one.1, one.2)).collect())))
            .collect();
        let tokens = self.tokens(vocabulary, tokens);
        Joined { tokens, groups: self.list_number(groups), doubtful }
    }

    fn list_number(&mut self, list: Vec<(u32, u32)>) -> u32 {
        if let Some(&known) = self.list_ids.get(&list[..]) {
            return known;
        }
        self.bytes += 80 + 8 * list.len();
        let list: Arc<[(u32, u32)]> = list.into();
        self.lists.push(Arc::clone(&list));
        self.list_ids.insert(list, self.lists.len() as u32 - 1);
        self.lists.len() as u32 - 1
    }

    fn tokens(&mut self, vocabulary: &Vocabulary, mut ranges: Vec<(u32, u32)>) -> Tokens {
        let count: u32 = ranges.iter().map(|range| range.1 - range.0).sum();
        if count <= MANY {
            // In order, so that equal ones are seen to be equal.
            ranges.sort_unstable();
            return Tokens::Ranges(ranges.into());
        }
        let order = vocabulary.trie().order();
        let mut words = vec![0u32; vocabulary.len().div_ceil(32)];
        for (from, to) in ranges {
            for &id in &order[from as usize..to as usize] {
                words[id as usize >> 5] |= 1 << (id & 31);
            }
        }
        // Of a string or a comment nearly all tokens stay within, and it has many beginnings.
        match self.wholes.iter().find_map(|base| Mask::near(base, &words)) {
            Some(Mask::Patched { base, add, remove }) if add.is_empty() && remove.is_empty() => {
                Tokens::MaskWords(base)
            }
            Some(Mask::Patched { base, add, remove }) => Tokens::Near(base, add, remove),
            _ => {
                let words: Arc<MaskWords> = words.into();
                self.wholes.push(Arc::clone(&words));
                Tokens::MaskWords(words)
            }
        }
    }

    fn group(&mut self, members: Vec<(u32, u32)>) -> u32 {
        let members = Arc::new(Members::new(&members));
        if let Some(&known) = self.group_ids.get(&members) {
            return known;
        }
        self.bytes += 80 + members.memory_bytes();
        self.groups.push(Arc::clone(&members));
        self.group_ids.insert(members, self.groups.len() as u32 - 1);
        self.groups.len() as u32 - 1
    }
}
