//! The next tokens of evaluated nodes, under a byte budget.
//!
//! A row is the model's own, with the mask of the language; where the model may not keep it, a copy.
//! What a search needs for good are sums over ranges of ranks; a row serves to split such a range by
//! the next byte. A row that was evicted is read again from a new answer of the model.

use std::collections::VecDeque;

use formalm_logits::{
    Allowed, ClassScanner, ElementType, RowSum, Soundness, class_sum_error, exponential_sum,
    log_sum_error,
};
use rustc_hash::FxHashMap;

use crate::log_sum::log_sum;
use crate::shared_row::{Owner, SharedRow};
use crate::sorted_tokens::SortedTokens;
use crate::token_rows::{Continuations, TokenScan};

/// Up to this share of a vocabulary, allowed tokens are kept as a sorted list; sorting more takes
/// longer than a pass over all ranks.
const LISTED_SHARE: usize = 64;

/// Values that are gathered at a time.
const PART: usize = 256;
/// Sums below this are added in float64: float32 exponentials end at 1e-37.
const TINY: f64 = 1e-28;
/// Largest offset of sums in a row's own precision.
const LARGEST_OFFSET: f64 = 5e3;

/// The log-probabilities of the tokens after a node; minus infinity where no token may follow.
#[derive(Debug)]
pub(crate) struct StoredRow {
    values: RowValues,
    /// The logarithm of the sum of a row of logits.
    offset: f64,
    /// An upper bound on the log-sum of all allowed tokens.
    total: f64,
    /// Upper bounds on the log-sums by first byte.
    by_byte: Option<Box<[f64; 256]>>,
}

#[derive(Debug)]
enum RowValues {
    /// By id, and the allowed ones. Sorting them by rank would take longer than what is read of most
    /// rows.
    Whole(SharedRow, Box<[u32]>),
    /// Ranks, ascending, and their values.
    Few(Box<[u32]>, Box<[f64]>),
}

impl StoredRow {
    /// Returns the row of a node without continuations.
    pub(crate) fn empty() -> StoredRow {
        StoredRow {
            values: RowValues::Few(Box::default(), Box::default()),
            offset: 0.0,
            total: f64::NEG_INFINITY,
            by_byte: None,
        }
    }

    /// Returns the allowed part of an answer, after a look at the mask.
    pub(crate) fn of(
        scan: &mut TokenScan,
        classes: &mut ClassScanner,
        answer: Continuations<'_>,
        kept: Option<&[(u32, f64)]>,
        tokens: &SortedTokens,
    ) -> StoredRow {
        match (answer, kept) {
            (Continuations::All(row, offset), None) => {
                let shared = SharedRow::copied(row);
                StoredRow::read(scan, classes, &shared, Some(offset), tokens).0
            }
            _ => {
                let kept = kept.unwrap_or_default().iter().copied();
                StoredRow::few(kept.filter(|one| scan.allows(one.0)), tokens)
            }
        }
    }

    /// Returns the allowed part of a row, after a look at the mask, and the sum of the whole row.
    /// `offset` is that sum, if it is known.
    pub(crate) fn read(
        scan: &mut TokenScan,
        classes: &mut ClassScanner,
        shared: &SharedRow,
        offset: Option<f64>,
        tokens: &SortedTokens,
    ) -> (StoredRow, RowSum) {
        let row = shared.row();
        let is_few = scan.allowed_count() as usize <= tokens.len() / LISTED_SHARE;
        let found = if is_few { None } else { classes.run(row, scan.words()) };
        let Some(found) = found else {
            let sums = scan.sums(row);
            let sum = RowSum::from(sums);
            if sum.soundness != Soundness::Sound {
                return (StoredRow::empty(), sum);
            }
            let offset = offset.unwrap_or(sum.log_sum_exp);
            if is_few {
                let mut few = Vec::new();
                scan.each_allowed(|id| few.push((id, (row.get(id as usize) - offset).min(0.0))));
                return (StoredRow::few(few.into_iter(), tokens), sum);
            }
            let total = sums.log_allowed - offset + log_sum_error(row.element_type());
            let values = RowValues::Whole(shared.clone(), scan.words().into());
            return (StoredRow { values, offset, total, by_byte: None }, sum);
        };
        let sum = RowSum { log_sum_exp: found.log_sum_exp, soundness: found.soundness };
        if sum.soundness != Soundness::Sound {
            return (StoredRow::empty(), sum);
        }
        let offset = offset.unwrap_or(sum.log_sum_exp);
        let error = class_sum_error(row.element_type());
        let total = found.log_allowed - offset + error;
        let values = RowValues::Whole(shared.clone(), scan.words().into());
        let mut stored = StoredRow { values, offset, total, by_byte: None };
        let mut by_byte = found.log_by_class;
        let all = (0, tokens.len() as u32);
        for (byte, sum) in by_byte.iter_mut().enumerate() {
            *sum = if sum.is_nan() {
                stored.log_sum(tokens.narrow(all, 0, byte as u8), tokens)
            } else {
                *sum - offset + error
            };
        }
        stored.by_byte = Some(by_byte);
        (stored, sum)
    }

    /// Returns `true` if sums over the row's own type are accurate.
    fn is_summable(&self) -> bool {
        matches!(self.values, RowValues::Whole(..)) && self.offset.abs() < LARGEST_OFFSET
    }

    /// Returns upper bounds on the log-sums by first byte, if they are known.
    pub(crate) fn by_byte(&self) -> Option<&[f64; 256]> {
        self.by_byte.as_deref()
    }

    /// Returns an upper bound on the log-sum of all allowed tokens, if it is known.
    pub(crate) fn total(&self) -> Option<f64> {
        matches!(self.values, RowValues::Whole(..)).then_some(self.total)
    }

    fn few(kept: impl Iterator<Item = (u32, f64)>, tokens: &SortedTokens) -> StoredRow {
        let mut few: Vec<(u32, f64)> = kept
            .filter(|one| one.1 > f64::NEG_INFINITY)
            .filter_map(|(id, value)| Some((tokens.rank(id)?, value)))
            .collect();
        few.sort_unstable_by_key(|one| one.0);
        let ranks = few.iter().map(|one| one.0).collect();
        let values = RowValues::Few(ranks, few.iter().map(|one| one.1).collect());
        StoredRow { values, ..StoredRow::empty() }
    }

    /// Returns the memory in bytes, without that of a row's owner.
    fn memory_bytes(&self) -> usize {
        96 + match &self.values {
            RowValues::Whole(_, words) => 2048 + size_of_val::<[u32]>(words),
            RowValues::Few(ranks, _) => 12 * ranks.len(),
        }
    }

    fn owner(&self) -> Option<&Owner> {
        match &self.values {
            RowValues::Whole(row, _) => Some(row.owner()),
            RowValues::Few(..) => None,
        }
    }

    /// Returns the value of a rank.
    #[inline]
    pub(crate) fn get(&self, rank: u32, tokens: &SortedTokens) -> f64 {
        match &self.values {
            RowValues::Whole(row, words) => {
                let id = tokens.token_ids()[rank as usize];
                if has(words, id) {
                    (row.row().get(id as usize) - self.offset).min(0.0)
                } else {
                    f64::NEG_INFINITY
                }
            }
            RowValues::Few(ranks, values) => {
                ranks.binary_search(&rank).map_or(f64::NEG_INFINITY, |at| values[at])
            }
        }
    }

    /// Returns the first rank from `low` on that may have a value.
    #[inline]
    pub(crate) fn next_rank(&self, low: u32, high: u32) -> u32 {
        match &self.values {
            RowValues::Few(ranks, _) => {
                let at = ranks.partition_point(|&rank| rank < low);
                ranks.get(at).map_or(high, |&rank| rank.min(high))
            }
            RowValues::Whole(..) => low,
        }
    }

    /// Returns an upper bound on the logarithm of the sum of exponentials over a range of ranks. It
    /// exceeds the sum by no more than twice the error of the row's type.
    pub(crate) fn log_sum(&self, (low, high): (u32, u32), tokens: &SortedTokens) -> f64 {
        match &self.values {
            RowValues::Whole(..) if high - low == 1 => self.get(low, tokens),
            RowValues::Whole(shared, words) => {
                let row = shared.row();
                let exact = || {
                    log_sum_of(&(low..high).map(|at| self.get(at, tokens)).collect::<Vec<f64>>())
                };
                if row.element_type() == ElementType::Float64 || !self.is_summable() {
                    return exact();
                }
                let mut part = [f32::NEG_INFINITY; PART];
                let mut sum = 0.0;
                let allowed = Allowed::of(words, row.width());
                for ids in tokens.token_ids()[low as usize..high as usize].chunks(PART) {
                    row.gather(allowed, ids, &mut part);
                    sum += exponential_sum(&part[..ids.len()], self.offset);
                }
                if sum == 0.0 {
                    f64::NEG_INFINITY
                } else if sum < TINY {
                    exact()
                } else {
                    sum.ln() + log_sum_error(row.element_type())
                }
            }
            RowValues::Few(ranks, values) => {
                let start = ranks.partition_point(|&rank| rank < low);
                let end = ranks.partition_point(|&rank| rank < high);
                log_sum_of(&values[start..end])
            }
        }
    }
}

#[inline]
fn has(words: &[u32], id: u32) -> bool {
    words.get(id as usize >> 5).is_some_and(|word| word >> (id & 31) & 1 != 0)
}

/// Returns the logarithm of a sum, added in the order of the values.
fn log_sum_of(values: &[f64]) -> f64 {
    match values {
        [] => f64::NEG_INFINITY,
        [one] => *one,
        _ if values.len() <= 2 => log_sum(&mut [values[0], values[1]]),
        _ => {
            let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if top == f64::NEG_INFINITY {
                return top;
            }
            top + values.iter().map(|value| (value - top).exp()).sum::<f64>().ln()
        }
    }
}

/// Rows by node; the oldest are evicted. The rows that the current step needs stay.
#[derive(Debug)]
pub(crate) struct RowCache {
    rows: FxHashMap<u32, StoredRow>,
    order: VecDeque<u32>,
    /// For each owner of rows, their number. Its memory counts once.
    owners: FxHashMap<usize, usize>,
    bytes: usize,
    budget_bytes: usize,
    /// Nodes that were read again for a step that has not been completed.
    needed: Vec<u32>,
}

impl RowCache {
    pub(crate) fn new(budget_bytes: usize) -> RowCache {
        RowCache {
            rows: FxHashMap::default(),
            order: VecDeque::new(),
            owners: FxHashMap::default(),
            bytes: 0,
            budget_bytes,
            needed: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, node: u32) -> Option<&StoredRow> {
        self.rows.get(&node)
    }

    pub(crate) fn keep(&mut self, node: u32, row: StoredRow) {
        self.bytes += row.memory_bytes();
        if let Some(owner) = row.owner() {
            let rows = self.owners.entry(owner.id).or_default();
            if *rows == 0 {
                self.bytes += owner.bytes;
            }
            *rows += 1;
        }
        match self.rows.insert(node, row) {
            Some(before) => self.forget(&before),
            None => self.order.push_back(node),
        }
        // The newest row is needed next, whatever its size.
        while self.bytes > self.budget_bytes && self.order.len() > 1 + self.needed.len() {
            let Some(oldest) = self.order.pop_front() else { break };
            if self.needed.contains(&oldest) || oldest == node {
                self.order.push_back(oldest);
                continue;
            }
            if let Some(gone) = self.rows.remove(&oldest) {
                self.forget(&gone);
            }
        }
    }

    /// Subtracts the memory of a row that is no longer cached.
    fn forget(&mut self, row: &StoredRow) {
        self.bytes -= row.memory_bytes();
        if let Some(owner) = row.owner()
            && let Some(rows) = self.owners.get_mut(&owner.id)
        {
            *rows -= 1;
            if *rows == 0 {
                self.owners.remove(&owner.id);
                self.bytes -= owner.bytes;
            }
        }
    }

    /// Keeps the rows of nodes until [`RowCache::release`].
    pub(crate) fn hold(&mut self, nodes: &[u32]) {
        self.needed.extend_from_slice(nodes);
    }

    pub(crate) fn release(&mut self) {
        self.needed.clear();
    }
}
