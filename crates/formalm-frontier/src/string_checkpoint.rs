//! Saved string searches: arrays of the strings, the queue and the readings.

use crate::TokenLanguage;
use crate::prefix_strings::PrefixStrings;
use crate::sequence_tree::NodeArrays;
use crate::sorted_tokens::SortedTokens;
use crate::string_entries::{ByteBits, EntryQueue, StringEntry, TokenRange};
use crate::string_search::StringSearch;

impl StringSearch {
    /// Returns the strings, the queue and the readings for a checkpoint. No batch may be in progress.
    pub fn entry_arrays(&self) -> EntryArrays {
        let mut arrays = EntryArrays { ends: self.ends.clone(), ..EntryArrays::default() };
        for string in 0..self.strings.len() as u32 {
            let (parent, byte) = self.strings.last(string);
            arrays.string_parents.push(parent);
            arrays.string_bytes.push(byte);
        }
        for entry in self.queue.entries() {
            arrays.strings.push(entry.string);
            arrays.contexts.push(entry.context);
            arrays.members.push(entry.member);
            arrays.bounds.push(entry.bound);
            arrays.done.extend_from_slice(&entry.done.0);
            arrays.exact_lengths.push(entry.exact.len() as u32);
            arrays.exact.extend_from_slice(&entry.exact);
            arrays.pending_lengths.push(entry.pending.len() as u32);
            arrays.pending.extend_from_slice(&entry.pending);
            arrays.range_lengths.push(entry.ranges.len() as u32);
            for range in &entry.ranges {
                arrays.ranges.extend_from_slice(&[range.node, range.low, range.high]);
                arrays.range_logprobs.push(range.logprob);
            }
        }
        arrays
    }

    /// Restores a new search to the state that `SequenceTree::arrays` and
    /// [`StringSearch::entry_arrays`] described.
    ///
    /// # Errors
    ///
    /// [`InvalidSearch::Arrays`] if the arrays do not describe a search; this one must not be used
    /// then. [`InvalidSearch::Language`] as [`TokenLanguage::step_byte`].
    pub fn restore<L: TokenLanguage>(
        &mut self,
        nodes: &NodeArrays,
        arrays: &EntryArrays,
        vocabulary_size: usize,
        cut_by_context: bool,
        language: &mut L,
    ) -> Result<(), InvalidSearch<L::Error>> {
        let roots = self.tree.len();
        if !self.tree.restore(nodes, vocabulary_size) || !self.restore_readings(roots, arrays) {
            return Err(InvalidSearch::Arrays);
        }
        let strings = arrays.string_parents.len();
        if arrays.string_bytes.len() != strings || strings < roots {
            return Err(InvalidSearch::Arrays);
        }
        for string in 0..strings {
            let (parent, byte) = (arrays.string_parents[string], arrays.string_bytes[string]);
            if string < roots {
                if parent != u32::MAX {
                    return Err(InvalidSearch::Arrays);
                }
                continue;
            }
            if parent as usize >= string {
                return Err(InvalidSearch::Arrays);
            }
            let state = self.strings.state(parent);
            let state = language.step_byte(state, byte).map_err(InvalidSearch::Language)?;
            self.strings.add(parent, byte, state);
        }
        let Some(entries) = arrays.entries(&self.strings, self.tree.len(), roots, &self.tokens)
        else {
            return Err(InvalidSearch::Arrays);
        };
        let fits = |range: &TokenRange, entry: &StringEntry| {
            let (length, size) =
                (self.lengths[range.node as usize], self.strings.length(entry.string));
            let depth = size.checked_sub(length);
            let longer = |depth| (range.low..range.high).all(|at| self.tokens.length(at) > depth);
            depth.is_some_and(longer) && !self.ends[range.node as usize].is_nan()
        };
        if !entries.iter().all(|entry| entry.ranges.iter().all(|range| fits(range, entry))) {
            return Err(InvalidSearch::Arrays);
        }
        self.queue = EntryQueue::default();
        for entry in entries {
            self.queue.push(&self.strings, Box::new(entry));
        }
        self.cut_by_context = cut_by_context;
        Ok(())
    }

    fn restore_readings(&mut self, roots: usize, arrays: &EntryArrays) -> bool {
        if arrays.ends.len() != self.tree.len() || arrays.ends.iter().any(|&end| end > 1e-6) {
            return false;
        }
        for node in roots as u32..self.tree.len() as u32 {
            let (parent, token) = (self.tree.parent(node), self.tree.token(node) as u32);
            let (Some(parent), Some(rank)) = (parent, self.tokens.rank(token)) else {
                return false;
            };
            self.lengths.push(self.lengths[parent as usize] + self.tokens.length(rank));
            self.children.insert((parent, token), node);
        }
        self.ends.clone_from(&arrays.ends);
        true
    }
}

/// The reason why a search was not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidSearch<E> {
    /// The arrays do not describe a search.
    Arrays,
    /// The language rejects what the search read.
    Language(E),
}

/// The arrays of a string search that a checkpoint stores.
#[derive(Clone, Debug, Default)]
pub struct EntryArrays {
    /// For each node, the log-probability of ending there; NaN if it was not evaluated.
    pub ends: Vec<f64>,
    /// For each string, the one without its last byte; `u32::MAX` for empty ones.
    pub string_parents: Vec<u32>,
    /// For each string, its last byte.
    pub string_bytes: Vec<u8>,
    /// The string of each entry.
    pub strings: Vec<u32>,
    /// The context of each entry.
    pub contexts: Vec<u32>,
    /// Whether each entry stands for a member.
    pub members: Vec<bool>,
    /// The bound of each entry.
    pub bounds: Vec<f64>,
    /// For each entry, four words with a bit for each byte that was followed.
    pub done: Vec<u64>,
    /// Numbers of readings that spell each entry.
    pub exact_lengths: Vec<u32>,
    /// These readings.
    pub exact: Vec<u32>,
    /// Numbers of pending readings of each entry.
    pub pending_lengths: Vec<u32>,
    /// These readings.
    pub pending: Vec<u32>,
    /// Numbers of ranges of each entry.
    pub range_lengths: Vec<u32>,
    /// Node, first rank and end of each range.
    pub ranges: Vec<u32>,
    /// The log-probability of each range.
    pub range_logprobs: Vec<f64>,
}

impl EntryArrays {
    /// Returns the entries, or `None` if the arrays do not fit each other, the strings, the nodes,
    /// the contexts or the tokens.
    fn entries(
        &self,
        strings: &PrefixStrings,
        nodes: usize,
        contexts: usize,
        tokens: &SortedTokens,
    ) -> Option<Vec<StringEntry>> {
        let count = self.strings.len();
        let sum = |lengths: &[u32]| lengths.iter().map(|&length| length as usize).sum::<usize>();
        let fits = [self.contexts.len(), self.members.len(), self.bounds.len()] == [count; 3]
            && [self.exact_lengths.len(), self.pending_lengths.len()] == [count; 2]
            && self.range_lengths.len() == count
            && self.done.len() == 4 * count
            && self.exact.len() == sum(&self.exact_lengths)
            && self.pending.len() == sum(&self.pending_lengths)
            && self.range_logprobs.len() == sum(&self.range_lengths)
            && self.ranges.len() == 3 * self.range_logprobs.len()
            && self.strings.iter().all(|&string| (string as usize) < strings.len())
            && self.contexts.iter().all(|&context| (context as usize) < contexts)
            && self.exact.iter().chain(&self.pending).all(|&node| (node as usize) < nodes)
            && self.bounds.iter().chain(&self.range_logprobs).all(|bound| !bound.is_nan());
        if !fits {
            return None;
        }
        let (mut exact, mut pending, mut ranges) = (0, 0, 0);
        let mut entries = Vec::with_capacity(count);
        for at in 0..count {
            let mut entry = StringEntry::new(self.strings[at], self.contexts[at], self.members[at]);
            entry.bound = self.bounds[at];
            entry.done = ByteBits([0, 1, 2, 3].map(|word| self.done[4 * at + word]));
            let end = exact + self.exact_lengths[at] as usize;
            entry.exact = self.exact[exact..end].to_vec();
            exact = end;
            let end = pending + self.pending_lengths[at] as usize;
            entry.pending = self.pending[pending..end].to_vec();
            (entry.pending_sum, entry.pending_top) = (f64::NAN, f64::NAN);
            pending = end;
            for _ in 0..self.range_lengths[at] {
                let (node, low, high) = (
                    self.ranges[3 * ranges],
                    self.ranges[3 * ranges + 1],
                    self.ranges[3 * ranges + 2],
                );
                if node as usize >= nodes || low > high || high as usize > tokens.len() {
                    return None;
                }
                let logprob = self.range_logprobs[ranges];
                entry.ranges.push(TokenRange { node, low, high, logprob });
                ranges += 1;
            }
            entries.push(entry);
        }
        Some(entries)
    }
}
