//! Successors of a term by whole characters.

use std::sync::Arc;

use formalm_core::BudgetExhausted;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::terms::byte_equivalence::ByteSpan;
use crate::terms::derivative::Deriver;
use crate::terms::{EMPTY, TermId, TermNode};

/// The successors of a term by a character: each distinct one once, with the smallest character
/// that leads to it.
pub(super) type CharOutcomes = Arc<[(char, TermId)]>;

/// A cache of successors by term, and of the union of all successors.
#[derive(Clone, Debug, Default)]
pub(crate) struct CharSuccessors {
    outcomes: FxHashMap<TermId, CharOutcomes>,
    dropped: FxHashMap<TermId, TermId>,
}

impl CharSuccessors {
    pub(super) fn memory_bytes(&self) -> usize {
        self.outcomes.values().map(|list| 48 + list.len() * 8).sum::<usize>()
            + self.dropped.len() * 16
    }
}

/// First bytes of characters, grouped by the length of the character.
const FIRST_BYTES: [(u8, u8); 4] = [(0x00, 0x7F), (0xC2, 0xDF), (0xE0, 0xEF), (0xF0, 0xF4)];

impl Deriver {
    /// Returns the language without the first character of its strings.
    pub(super) fn drop_first_char(&mut self, id: TermId) -> Result<TermId, BudgetExhausted> {
        if let Some(&known) = self.images.successors.dropped.get(&id) {
            return Ok(known);
        }
        let mut left = Vec::new();
        if let TermNode::Alt(list) = self.terms.get(id) {
            for &one in list.clone().iter() {
                left.push(self.drop_first_char(one)?);
            }
        } else {
            left.extend(self.char_outcomes(id)?.iter().map(|&(_, next)| next));
        }
        let dropped = self.terms.alt(left);
        self.images.successors.dropped.insert(id, dropped);
        Ok(dropped)
    }

    /// Returns the successors of `id` by each character: each distinct one with its smallest
    /// character.
    pub(super) fn char_outcomes(&mut self, id: TermId) -> Result<CharOutcomes, BudgetExhausted> {
        if let Some(known) = self.images.successors.outcomes.get(&id) {
            return Ok(known.clone());
        }
        let found = SuccessorSearch::run(self, id)?;
        let outcomes: CharOutcomes = found
            .into_iter()
            .filter_map(|(code, next)| char::from_u32(code).map(|character| (character, next)))
            .collect();
        self.images.successors.outcomes.insert(id, outcomes.clone());
        Ok(outcomes)
    }
}

/// The search for the successors of one term.
struct SuccessorSearch<'a> {
    deriver: &'a mut Deriver,
    /// Terms visited, each with the bytes of its character that were left.
    seen: FxHashSet<(TermId, usize)>,
    found: Vec<(u32, TermId)>,
}

impl SuccessorSearch<'_> {
    /// Returns each distinct successor with the code point of its smallest character.
    fn run(deriver: &mut Deriver, id: TermId) -> Result<Vec<(u32, TermId)>, BudgetExhausted> {
        let mut search = SuccessorSearch { deriver, seen: FxHashSet::default(), found: Vec::new() };
        for (depth, (low, high)) in FIRST_BYTES.into_iter().enumerate() {
            for (byte, next) in search.byte_outcomes(id, low, high)? {
                let bits = if depth == 0 { 0x7F } else { 0x3F >> depth };
                search.rest_of_character(next, depth, u32::from(byte & bits))?;
            }
        }
        Ok(search.found)
    }

    /// Returns each distinct derivative by a byte of the range, with the lowest byte of its run.
    fn byte_outcomes(
        &mut self,
        id: TermId,
        low: u8,
        high: u8,
    ) -> Result<Vec<(u8, TermId)>, BudgetExhausted> {
        let mut outcomes = Vec::new();
        let mut byte = low;
        loop {
            let (_, end) = ByteSpan::around(&self.deriver.terms, id, byte);
            let next = self.deriver.derive(id, byte, &[])?;
            if next != EMPTY {
                outcomes.push((byte, next));
            }
            if end >= high {
                return Ok(outcomes);
            }
            byte = end + 1;
        }
    }

    /// Reads the `depth` remaining bytes of a character. A term visited before with as many bytes
    /// left leads nowhere new.
    fn rest_of_character(
        &mut self,
        id: TermId,
        depth: usize,
        code: u32,
    ) -> Result<(), BudgetExhausted> {
        if !self.seen.insert((id, depth)) {
            return Ok(());
        }
        if depth == 0 {
            self.found.push((code, id));
            return Ok(());
        }
        for (byte, next) in self.byte_outcomes(id, 0x80, 0xBF)? {
            self.rest_of_character(next, depth - 1, code << 6 | u32::from(byte & 0x3F))?;
        }
        Ok(())
    }
}
