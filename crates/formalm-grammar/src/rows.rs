//! Successors of states, read without a lock.
//!
//! Most states are met within one text only and left by one byte, so a state has four slots: a
//! class of bytes, its successor, the number of a row for all other classes, and flags.

use std::sync::atomic::{AtomicU32, Ordering};

use formalm_automata::Chunks;

/// A successor that was not looked for yet.
pub(crate) const UNKNOWN: u32 = 0;

/// Slots of a state.
const SLOTS: usize = 4;
const CLASS: usize = 0;
const NEXT: usize = 1;
const ROW: usize = 2;
const FLAGS: usize = 3;

/// What is known of the states of a machine.
#[derive(Debug)]
pub(crate) struct Rows {
    states: Chunks,
    /// Successors by row and class.
    rows: Chunks,
    count: AtomicU32,
    width: usize,
}

impl Rows {
    /// Nothing known yet, of so many classes of bytes.
    pub(crate) fn new(width: usize) -> Rows {
        Rows { states: Chunks::default(), rows: Chunks::default(), count: AtomicU32::new(0), width }
    }

    /// The successor of a state, [`UNKNOWN`] if it was not set.
    #[inline]
    pub(crate) fn get(&self, state: u32, class: u8) -> u32 {
        let [first, next, row, _] = self.states.four(state as usize * SLOTS);
        if first == u32::from(class) + 1 {
            return next;
        }
        match row.checked_sub(1) {
            Some(row) => self.rows.get(row as usize * self.width + usize::from(class)),
            None => UNKNOWN,
        }
    }

    /// Sets the successor of a state. Only one thread at a time may do so.
    pub(crate) fn set(&self, state: u32, class: u8, next: u32) {
        let at = state as usize * SLOTS;
        let [first, _, row, _] = self.states.four(at);
        if first == 0 {
            self.states.set(at + NEXT, next);
            // Last: who sees the class sees the successor too.
            return self.states.set(at + CLASS, u32::from(class) + 1);
        }
        if first == u32::from(class) + 1 {
            return;
        }
        let number = match row.checked_sub(1) {
            Some(row) => row,
            None => self.count.fetch_add(1, Ordering::Relaxed),
        };
        self.rows.set(number as usize * self.width + usize::from(class), next);
        self.states.set(at + ROW, number + 1);
    }

    #[inline]
    pub(crate) fn flags(&self, state: u32) -> u32 {
        self.states.get(state as usize * SLOTS + FLAGS)
    }

    pub(crate) fn set_flags(&self, state: u32, flags: u32) {
        self.states.set(state as usize * SLOTS + FLAGS, flags);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.states.memory_bytes() + self.rows.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors_are_what_was_set() {
        let rows = Rows::new(7);
        for state in 0..400 {
            for class in (0..7u8).rev().filter(|&class| u32::from(class) <= state % 7) {
                assert_eq!(rows.get(state, class), UNKNOWN);
                rows.set(state, class, 10 * state + u32::from(class) + 1);
            }
            rows.set_flags(state, state % 2);
        }
        for state in 0..400 {
            for class in 0..7u8 {
                let is_set = u32::from(class) <= state % 7;
                let next = if is_set { 10 * state + u32::from(class) + 1 } else { UNKNOWN };
                assert_eq!(rows.get(state, class), next);
            }
            assert_eq!(rows.flags(state), state % 2);
        }
        assert_eq!(rows.get(5000, 0), UNKNOWN);
    }
}
