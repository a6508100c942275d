//! Walks of a user's parser along the vocabulary trie.
//!
//! Tokens with a common prefix share the appended prefix. Parsers that compare by value are merged
//! if equal, so that each character is appended to each of them once. Others are copied at each
//! fork of the trie, and chains without a fork are appended at once.

use formalm_core::{Error, char_len};
use formalm_vocabulary::TokenTrie;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashMap;

use super::parser_machine::COMPARING;
use super::python_calls::{ParserCalls, call_error};
use super::token_groups::GroupMask;

/// Maximum number of merged parsers for one mask; further ones are walked one by one. Chosen, not
/// measured.
const MAX_MERGED_PARSERS: usize = 4096;

/// A character, or a byte if bytes are read, and the node it leads to.
#[derive(Clone, Copy)]
struct TrieUnit {
    node: u32,
    /// Its bytes; the last element is their number.
    bytes: [u8; 5],
}

impl TrieUnit {
    fn text(&self) -> &[u8] {
        &self.bytes[..usize::from(self.bytes[4])]
    }
}

/// A walk that writes a bitmask.
pub(super) struct ParserWalk<'a> {
    pub(super) calls: &'a ParserCalls,
    pub(super) trie: &'a TokenTrie,
    /// Selects the tokens that must be read; all of them without groups.
    pub(super) group_mask: Option<&'a GroupMask>,
    pub(super) words: &'a mut [u32],
}

/// Parsers that compare by value, merged during one walk.
struct MergedParsers<'py> {
    numbers: Bound<'py, PyDict>,
    parsers: Vec<Bound<'py, PyAny>>,
    steps: FxHashMap<(u32, [u8; 5]), Option<u32>>,
}

/// A parser with the units that may follow it.
struct ParserFork<'py> {
    parser: Bound<'py, PyAny>,
    /// `true` if it is unshared, so that the last unit needs no copy.
    is_own: bool,
    units: Vec<TrieUnit>,
}

impl ParserWalk<'_> {
    /// Sets the tokens below a node, or all, that the parser does not reject. The parser is not
    /// changed.
    pub(super) fn below(
        &mut self,
        node: Option<u32>,
        parser: &Bound<'_, PyAny>,
        compares: bool,
    ) -> Result<(), Error> {
        let units = self.units(node);
        if compares {
            self.merged(units, parser)
        } else {
            self.plain(ParserFork { parser: parser.clone(), is_own: false, units })
        }
    }

    /// Sets the tokens at a node that must be read.
    fn emit(&mut self, node: u32) {
        for &id in self.trie.tokens_at(node) {
            if self.group_mask.is_none_or(|group_mask| group_mask.must_read(id)) {
                self.words[id as usize >> 5] |= 1 << (id & 31);
            }
        }
    }

    fn ends_token(&self, node: u32) -> bool {
        let group_mask = self.group_mask;
        self.trie
            .tokens_at(node)
            .iter()
            .any(|&id| group_mask.is_none_or(|group_mask| group_mask.must_read(id)))
    }

    /// Returns `true` if a token that must be read is at or below a node.
    fn is_wanted(&self, node: u32) -> bool {
        let Some(group_mask) = self.group_mask else { return true };
        let (rank, end) = (self.trie.rank(), self.trie.nodes()[node as usize].end());
        group_mask.must_read_between(rank[node as usize], rank[end as usize])
    }

    /// Returns the units with which tokens continue below a node, the last one first.
    fn units(&self, node: Option<u32>) -> Vec<TrieUnit> {
        let mut units = Vec::new();
        let first: Vec<(u8, u32)> = match node {
            Some(node) => self.children(node).collect(),
            None => {
                let root = |byte| self.trie.root_child(byte).map(|node| (byte, node));
                (0..=255).filter_map(root).collect()
            }
        };
        for (byte, node) in first {
            if self.is_wanted(node) {
                let wanted = if self.calls.reads_bytes { 1 } else { char_len(byte) };
                self.complete(node, &mut vec![byte], wanted, &mut units);
            }
        }
        units.reverse();
        units
    }

    fn children(&self, node: u32) -> impl Iterator<Item = (u8, u32)> + '_ {
        let (bytes, nodes) = self.trie.children(node);
        bytes.iter().copied().zip(nodes.iter().copied())
    }

    /// Collects all completions of a character of `wanted` bytes.
    fn complete(&self, node: u32, bytes: &mut Vec<u8>, wanted: usize, units: &mut Vec<TrieUnit>) {
        if bytes.len() < wanted {
            for (byte, child) in self.children(node) {
                bytes.push(byte);
                self.complete(child, bytes, wanted, units);
                bytes.pop();
            }
        } else if self.is_wanted(node)
            && (self.calls.reads_bytes || std::str::from_utf8(bytes).is_ok())
        {
            let mut unit = TrieUnit { node, bytes: [0; 5] };
            unit.bytes[..wanted].copy_from_slice(bytes);
            unit.bytes[4] = wanted as u8;
            units.push(unit);
        }
    }

    fn plain(&mut self, fork: ParserFork<'_>) -> Result<(), Error> {
        let mut stack = vec![fork];
        while let Some(fork) = stack.last_mut() {
            let Some(unit) = fork.units.pop() else {
                stack.pop();
                continue;
            };
            let is_last = fork.units.is_empty() && fork.is_own;
            let parser = fork.parser.clone();
            if is_last {
                stack.pop();
            }
            let (node, text, units) = self.run(unit);
            let parser = if is_last { parser } else { self.calls.copy(&parser)? };
            if self.calls.append(&parser, &text)? {
                self.emit(node);
                if !units.is_empty() {
                    stack.push(ParserFork { parser, is_own: true, units });
                }
            }
        }
        Ok(())
    }

    /// Extends a unit to the end of a token or a fork. Returns the node, the bytes and what
    /// follows.
    fn run(&self, unit: TrieUnit) -> (u32, Vec<u8>, Vec<TrieUnit>) {
        let (mut node, mut text) = (unit.node, unit.text().to_vec());
        let mut units = self.units(Some(node));
        while let [only] = units[..]
            && !self.ends_token(node)
        {
            node = only.node;
            text.extend_from_slice(only.text());
            units = self.units(Some(node));
        }
        (node, text, units)
    }

    fn merged<'py>(
        &mut self,
        units: Vec<TrieUnit>,
        parser: &Bound<'py, PyAny>,
    ) -> Result<(), Error> {
        let mut merged = MergedParsers {
            numbers: PyDict::new(parser.py()),
            parsers: Vec::new(),
            steps: FxHashMap::default(),
        };
        let start = merged.number(parser)?.unwrap_or_default();
        let mut stack = vec![(start, units)];
        while let Some((state, units)) = stack.last_mut() {
            let Some(unit) = units.pop() else {
                stack.pop();
                continue;
            };
            let state = *state;
            let next = match merged.steps.get(&(state, unit.bytes)) {
                Some(&next) => next,
                None => {
                    let parser = self.calls.copy(&merged.parsers[state as usize])?;
                    let read = self.calls.append(&parser, unit.text())?;
                    let next = if read { merged.number(&parser)? } else { None };
                    if read && next.is_none() {
                        self.emit(unit.node);
                        let units = self.units(Some(unit.node));
                        self.plain(ParserFork { parser, is_own: true, units })?;
                        continue;
                    }
                    merged.steps.insert((state, unit.bytes), next);
                    next
                }
            };
            if let Some(next) = next {
                self.emit(unit.node);
                let units = self.units(Some(unit.node));
                if !units.is_empty() {
                    stack.push((next, units));
                }
            }
        }
        Ok(())
    }
}

impl<'py> MergedParsers<'py> {
    /// Returns the number of an equal parser; `None` if it is new and there is no more room.
    fn number(&mut self, parser: &Bound<'py, PyAny>) -> Result<Option<u32>, Error> {
        let failed = |error| call_error(parser.py(), error, COMPARING);
        if let Some(number) = self.numbers.get_item(parser).map_err(failed)? {
            return number.extract().map(Some).map_err(failed);
        }
        if self.parsers.len() >= MAX_MERGED_PARSERS {
            return Ok(None);
        }
        let number = self.parsers.len() as u32;
        self.numbers.set_item(parser, number).map_err(failed)?;
        self.parsers.push(parser.clone());
        Ok(Some(number))
    }
}
