//! The next tokens of evaluated nodes, by rank, under a byte budget.
//!
//! A row takes as much memory as the model's answer, so only the latest ones are kept. What a search
//! needs for good are sums over ranges of ranks; a row serves to split such a range by the next
//! byte. A row that was evicted is computed again from a new answer of the model.

use std::collections::VecDeque;

use formalm_logits::{ElementType, LOG_SUM_ERROR, exponential_sum, exponential_sums};
use rustc_hash::FxHashMap;

use crate::log_sum::log_sum;
use crate::sorted_tokens::SortedTokens;
use crate::token_rows::{Continuations, TokenScan};

/// Up to this share of a vocabulary, allowed tokens are kept as a sorted list; sorting more takes
/// longer than a pass over all ranks.
const LISTED_SHARE: usize = 64;

/// Values that are gathered at a time.
const PART: usize = 256;
/// Sums below this are added in float64: float32 exponentials end at 1e-37.
const TINY: f64 = 1e-28;

/// The log-probabilities of the tokens after a node; minus infinity where no token may follow.
#[derive(Debug)]
pub(crate) struct StoredRow {
    values: RowValues,
    /// The logarithm of the sum of a row of logits.
    offset: f64,
    /// Log-sums by first byte, which the first split of a row needs.
    by_byte: Option<Box<[f64; 256]>>,
}

#[derive(Debug)]
enum RowValues {
    /// By id. Sorting them by rank would take longer than what is read of most rows.
    Narrow(Box<[f32]>),
    /// By rank.
    Wide(Box<[f64]>),
    /// Ranks, ascending, and their values.
    Few(Box<[u32]>, Box<[f64]>),
}

impl StoredRow {
    /// Returns the row of a node without continuations.
    pub(crate) fn empty() -> StoredRow {
        StoredRow {
            values: RowValues::Few(Box::default(), Box::default()),
            offset: 0.0,
            by_byte: None,
        }
    }

    /// Returns the allowed part of an answer, after a look at the mask.
    pub(crate) fn of(
        scan: &mut TokenScan,
        answer: Continuations<'_>,
        kept: Option<&[(u32, f64)]>,
        tokens: &SortedTokens,
    ) -> StoredRow {
        let (row, offset) = match (answer, kept) {
            (Continuations::All(row, offset), None) => (row, offset),
            _ => {
                let kept = kept.unwrap_or_default().iter().copied();
                return StoredRow::few(kept.filter(|one| scan.allows(one.0)), tokens);
            }
        };
        if scan.allowed_count() as usize <= tokens.len() / LISTED_SHARE {
            let mut few = Vec::new();
            scan.each_allowed(|id| few.push((id, (row.get(id as usize) - offset).min(0.0))));
            return StoredRow::few(few.into_iter(), tokens);
        }
        if row.element_type() == ElementType::Float64 {
            let value = |&id: &u32| {
                if scan.allows(id) { row.get(id as usize) } else { f64::NEG_INFINITY }
            };
            let values = RowValues::Wide(tokens.token_ids().iter().map(value).collect());
            return StoredRow { values, offset, by_byte: None };
        }
        let values = scan.masked(row);
        let mut sums = exponential_sums(&values, offset, tokens.first_bytes());
        let mut row = StoredRow { values: RowValues::Narrow(values), offset, by_byte: None };
        let all = (0, tokens.len() as u32);
        for (byte, sum) in sums.iter_mut().enumerate() {
            *sum = if *sum == 0.0 {
                f64::NEG_INFINITY
            } else if *sum < TINY {
                row.log_sum(tokens.narrow(all, 0, byte as u8), tokens)
            } else {
                sum.ln() + LOG_SUM_ERROR
            };
        }
        row.by_byte = Some(sums);
        row
    }

    /// Returns upper bounds on the log-sums by first byte, if they are known.
    pub(crate) fn by_byte(&self) -> Option<&[f64; 256]> {
        self.by_byte.as_deref()
    }

    fn few(kept: impl Iterator<Item = (u32, f64)>, tokens: &SortedTokens) -> StoredRow {
        let mut few: Vec<(u32, f64)> = kept
            .filter(|one| one.1 > f64::NEG_INFINITY)
            .filter_map(|(id, value)| Some((tokens.rank(id)?, value)))
            .collect();
        few.sort_unstable_by_key(|one| one.0);
        let ranks = few.iter().map(|one| one.0).collect();
        let values = RowValues::Few(ranks, few.iter().map(|one| one.1).collect());
        StoredRow { values, offset: 0.0, by_byte: None }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        96 + 2048 * usize::from(self.by_byte.is_some())
            + match &self.values {
                RowValues::Narrow(values) => size_of_val::<[f32]>(values),
                RowValues::Wide(values) => size_of_val::<[f64]>(values),
                RowValues::Few(ranks, _) => 12 * ranks.len(),
            }
    }

    /// Returns the value of a rank.
    #[inline]
    pub(crate) fn get(&self, rank: u32, tokens: &SortedTokens) -> f64 {
        match &self.values {
            RowValues::Narrow(values) => {
                let id = tokens.token_ids()[rank as usize];
                (f64::from(values[id as usize]) - self.offset).min(0.0)
            }
            RowValues::Wide(values) => (values[rank as usize] - self.offset).min(0.0),
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
            _ => low,
        }
    }

    /// Returns an upper bound on the logarithm of the sum of exponentials over a range of ranks. It
    /// exceeds the sum by no more than twice [`LOG_SUM_ERROR`].
    pub(crate) fn log_sum(&self, (low, high): (u32, u32), tokens: &SortedTokens) -> f64 {
        let range = low as usize..high as usize;
        match &self.values {
            RowValues::Narrow(_) if range.len() == 1 => self.get(low, tokens),
            RowValues::Narrow(values) => {
                let mut part = [f32::NEG_INFINITY; PART];
                let mut sum = 0.0;
                for ids in tokens.token_ids()[range].chunks(PART) {
                    for (to, &id) in part.iter_mut().zip(ids) {
                        *to = values[id as usize];
                    }
                    sum += exponential_sum(&part[..ids.len()], self.offset);
                }
                if sum == 0.0 {
                    f64::NEG_INFINITY
                } else if sum < TINY {
                    log_sum_of(&(low..high).map(|at| self.get(at, tokens)).collect::<Vec<f64>>())
                } else {
                    sum.ln() + LOG_SUM_ERROR
                }
            }
            RowValues::Wide(values) => log_sum_of(&values[range]) - self.offset,
            RowValues::Few(ranks, values) => {
                let start = ranks.partition_point(|&rank| rank < low);
                let end = ranks.partition_point(|&rank| rank < high);
                log_sum_of(&values[start..end])
            }
        }
    }
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
    bytes: usize,
    budget_bytes: usize,
    /// Nodes that were computed again for a step that has not been completed.
    needed: Vec<u32>,
}

impl RowCache {
    pub(crate) fn new(budget_bytes: usize) -> RowCache {
        RowCache {
            rows: FxHashMap::default(),
            order: VecDeque::new(),
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
        match self.rows.insert(node, row) {
            Some(before) => self.bytes -= before.memory_bytes(),
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
                self.bytes -= gone.memory_bytes();
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
