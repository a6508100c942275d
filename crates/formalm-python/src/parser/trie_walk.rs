//! Walks of a parser along the trie of the vocabulary.
//!
//! Tokens that begin alike share what was appended for that. Parsers that compare by value are
//! joined where they are equal, and then each character is appended to each of them once;
//! others are copied at each fork of the trie, and runs without a fork are appended at once.

use formalm_automata::Error;
use formalm_vocabulary::TokenTrie;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashMap;

use super::parser_machine::{COMPARING, width};
use super::python_calls::{Calls, raised};
use super::token_groups::Mix;

/// Parsers joined for one mask; beyond that they are walked one by one.
const JOINED: usize = 4096;

/// A character, or a byte where bytes are read, and the node it leads to.
#[derive(Clone, Copy)]
struct Unit {
    node: u32,
    /// Its bytes, the number of them in the last place.
    bytes: [u8; 5],
}

impl Unit {
    fn text(&self) -> &[u8] {
        &self.bytes[..usize::from(self.bytes[4])]
    }
}

/// One walk, which writes a bitmask.
pub(super) struct Walk<'a> {
    pub(super) calls: &'a Calls,
    pub(super) trie: &'a TokenTrie,
    /// Which tokens have to be read; all of them if there are no groups.
    pub(super) mix: Option<&'a Mix>,
    pub(super) words: &'a mut [u32],
}

/// Parsers that compare by value, met on one walk.
struct Joined<'py> {
    numbers: Bound<'py, PyDict>,
    parsers: Vec<Bound<'py, PyAny>>,
    steps: FxHashMap<(u32, [u8; 5]), Option<u32>>,
}

/// A parser with what may follow it.
struct Fork<'py> {
    parser: Bound<'py, PyAny>,
    /// Whether nobody else has it, so that the last unit needs no copy.
    is_own: bool,
    units: Vec<Unit>,
}

impl Walk<'_> {
    /// Tokens below a node, or all, that a parser does not refuse; it is not changed.
    pub(super) fn below(
        &mut self,
        node: Option<u32>,
        parser: &Bound<'_, PyAny>,
        compares: bool,
    ) -> Result<(), Error> {
        let units = self.units(node);
        if compares {
            self.joined(units, parser)
        } else {
            self.plain(Fork { parser: parser.clone(), is_own: false, units })
        }
    }

    /// Marks the tokens at a node that have to be read; whether there are any.
    fn emit(&mut self, node: u32) {
        for &id in self.trie.tokens_at(node) {
            if self.mix.is_none_or(|mix| mix.is_open(id)) {
                self.words[id as usize >> 5] |= 1 << (id & 31);
            }
        }
    }

    fn ends_token(&self, node: u32) -> bool {
        let mix = self.mix;
        self.trie.tokens_at(node).iter().any(|&id| mix.is_none_or(|mix| mix.is_open(id)))
    }

    /// Whether a token that has to be read is at a node or below.
    fn is_wanted(&self, node: u32) -> bool {
        let Some(mix) = self.mix else { return true };
        let (rank, end) = (self.trie.rank(), self.trie.nodes()[node as usize].end());
        mix.is_open_between(rank[node as usize], rank[end as usize])
    }

    /// The characters, or bytes, that tokens go on with below a node; the last one first.
    fn units(&self, node: Option<u32>) -> Vec<Unit> {
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
                let wanted = if self.calls.reads_bytes { 1 } else { width(byte) };
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

    /// All ways to complete a character of `wanted` bytes.
    fn complete(&self, node: u32, bytes: &mut Vec<u8>, wanted: usize, units: &mut Vec<Unit>) {
        if bytes.len() < wanted {
            for (byte, child) in self.children(node) {
                bytes.push(byte);
                self.complete(child, bytes, wanted, units);
                bytes.pop();
            }
        } else if self.is_wanted(node)
            && (self.calls.reads_bytes || std::str::from_utf8(bytes).is_ok())
        {
            let mut unit = Unit { node, bytes: [0; 5] };
            unit.bytes[..wanted].copy_from_slice(bytes);
            unit.bytes[4] = wanted as u8;
            units.push(unit);
        }
    }

    fn plain(&mut self, fork: Fork<'_>) -> Result<(), Error> {
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
                    stack.push(Fork { parser, is_own: true, units });
                }
            }
        }
        Ok(())
    }

    /// A unit with those behind it up to the end of a token or a fork, and what follows.
    fn run(&self, unit: Unit) -> (u32, Vec<u8>, Vec<Unit>) {
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

    fn joined<'py>(&mut self, units: Vec<Unit>, parser: &Bound<'py, PyAny>) -> Result<(), Error> {
        let mut joined = Joined {
            numbers: PyDict::new(parser.py()),
            parsers: Vec::new(),
            steps: FxHashMap::default(),
        };
        let start = joined.number(parser)?.unwrap_or_default();
        let mut stack = vec![(start, units)];
        while let Some((state, units)) = stack.last_mut() {
            let Some(unit) = units.pop() else {
                stack.pop();
                continue;
            };
            let state = *state;
            let next = match joined.steps.get(&(state, unit.bytes)) {
                Some(&next) => next,
                None => {
                    let parser = self.calls.copy(&joined.parsers[state as usize])?;
                    let read = self.calls.append(&parser, unit.text())?;
                    let next = if read { joined.number(&parser)? } else { None };
                    if read && next.is_none() {
                        self.emit(unit.node);
                        let units = self.units(Some(unit.node));
                        self.plain(Fork { parser, is_own: true, units })?;
                        continue;
                    }
                    joined.steps.insert((state, unit.bytes), next);
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

impl<'py> Joined<'py> {
    /// The number of a parser equal to one; none if it is new and there is no more room.
    fn number(&mut self, parser: &Bound<'py, PyAny>) -> Result<Option<u32>, Error> {
        let failed = |error| raised(parser.py(), error, COMPARING);
        if let Some(number) = self.numbers.get_item(parser).map_err(failed)? {
            return number.extract().map(Some).map_err(failed);
        }
        if self.parsers.len() >= JOINED {
            return Ok(None);
        }
        let number = self.parsers.len() as u32;
        self.numbers.set_item(parser, number).map_err(failed)?;
        self.parsers.push(parser.clone());
        Ok(Some(number))
    }
}
