//! Orders of tokens in which the tokens that one merge rule forbids are one interval.

use formalm_core::memory_bytes;

use super::adjacency::NONE;

/// The tokens that one rule forbids as neighbors.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForbiddenInterval {
    pub(super) time: u32,
    pub(super) start: u32,
    pub(super) end: u32,
}

memory_bytes!(none: ForbiddenInterval);

/// The intervals by the token next to which they are forbidden, in the order of one side.
#[derive(Debug, Default)]
pub(super) struct AdjacencySide {
    /// Tokens in depth-first order.
    pub(super) order: Vec<u32>,
    pub(super) offsets: Vec<u32>,
    pub(super) intervals: Vec<ForbiddenInterval>,
}

memory_bytes!(AdjacencySide { order, offsets, intervals });

/// Returns the tokens in depth-first order, the position of each, and the end of its descendants.
pub(super) fn depth_first(
    latest: &[u32],
    children: &Csr,
    parent: &[u32],
) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let len = parent.len();
    let mut order = Vec::with_capacity(latest.len());
    let (mut position, mut end) = (vec![0; len], vec![0; len]);
    let mut stack: Vec<(u32, bool)> = Vec::new();
    for &root in latest.iter().filter(|&&token| parent[token as usize] == NONE) {
        stack.push((root, false));
        while let Some((token, done)) = stack.pop() {
            if done {
                end[token as usize] = order.len() as u32;
                continue;
            }
            position[token as usize] = order.len() as u32;
            order.push(token);
            stack.push((token, true));
            stack.extend(children.of(token).iter().rev().map(|&child| (child, false)));
        }
    }
    (order, position, end)
}

impl AdjacencySide {
    /// Returns the intervals of a token, earliest rules first.
    #[inline]
    pub(super) fn of(&self, token: u32) -> &[ForbiddenInterval] {
        let at = token as usize;
        &self.intervals[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }
}

/// Items grouped by a token (compressed sparse rows); each group keeps the given order.
pub(super) struct Csr {
    pub(super) offsets: Vec<u32>,
    pub(super) items: Vec<u32>,
}

impl Csr {
    pub(super) fn new(items: &[u32], len: usize, key: impl Fn(u32) -> u32) -> Csr {
        let mut offsets = vec![0u32; len + 1];
        for &item in items {
            if key(item) != NONE {
                offsets[key(item) as usize + 1] += 1;
            }
        }
        for at in 0..len {
            offsets[at + 1] += offsets[at];
        }
        let mut next = offsets.clone();
        let mut grouped = vec![0; offsets[len] as usize];
        for &item in items {
            if key(item) != NONE {
                let slot = &mut next[key(item) as usize];
                grouped[*slot as usize] = item;
                *slot += 1;
            }
        }
        Csr { offsets, items: grouped }
    }

    pub(super) fn of(&self, token: u32) -> &[u32] {
        let at = token as usize;
        &self.items[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }
}
