//! The transition table of a grammar automaton, readable without a lock.
//!
//! Most states are visited by one input only and left by one byte. A state therefore has four
//! slots: one byte class, its successor, the row for all other classes, and flags.
//!
//! Batched reading builds a state only at the end of a run. The positions in between are
//! *waypoints*: they have transitions, and a target state once that state was needed.

use std::sync::atomic::{AtomicU32, Ordering};

use formalm_core::{AppendVec, memory_bytes};

/// A successor that was not computed yet.
pub(crate) const UNKNOWN: u32 = 0;

/// The bit that marks the id of a waypoint.
const WAYPOINT: u32 = 1 << 31;

/// Slots per state or waypoint, and their indices.
const SLOTS: usize = 4;
const FIRST_CLASS: usize = 0;
const FIRST_SUCCESSOR: usize = 1;
const ROW: usize = 2;
/// Flags of a state, or the target of a waypoint.
const FLAGS_OR_TARGET: usize = 3;

/// Transitions and flags by state, and transitions by waypoint.
#[derive(Debug)]
pub(crate) struct TransitionTable {
    states: AppendVec,
    waypoints: AppendVec,
    waypoint_count: AtomicU32,
    /// Successors by row and byte class.
    rows: AppendVec,
    count: AtomicU32,
    width: usize,
}

memory_bytes!(TransitionTable { states, waypoints, rows; waypoint_count, count, width });

impl TransitionTable {
    /// Returns an empty table for `width` byte classes.
    pub(crate) fn new(width: usize) -> TransitionTable {
        TransitionTable {
            states: AppendVec::default(),
            waypoints: AppendVec::default(),
            waypoint_count: AtomicU32::new(0),
            rows: AppendVec::default(),
            count: AtomicU32::new(0),
            width,
        }
    }

    /// Returns the number of byte classes.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns a new waypoint. The caller must be the only writer.
    pub(crate) fn waypoint(&self) -> u32 {
        WAYPOINT | self.waypoint_count.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn waypoint_count(&self) -> u32 {
        self.waypoint_count.load(Ordering::Relaxed)
    }

    pub(crate) fn is_waypoint(number: u32) -> bool {
        number & WAYPOINT != 0
    }

    /// Returns the target state of a waypoint; [`UNKNOWN`] if it was not set.
    #[inline]
    pub(crate) fn target(&self, waypoint: u32) -> u32 {
        self.waypoints.get((waypoint & !WAYPOINT) as usize * SLOTS + FLAGS_OR_TARGET)
    }

    pub(crate) fn set_target(&self, waypoint: u32, state: u32) {
        self.waypoints.set((waypoint & !WAYPOINT) as usize * SLOTS + FLAGS_OR_TARGET, state);
    }

    #[inline]
    fn slots(&self, number: u32) -> (&AppendVec, usize) {
        match TransitionTable::is_waypoint(number) {
            true => (&self.waypoints, (number & !WAYPOINT) as usize * SLOTS),
            false => (&self.states, number as usize * SLOTS),
        }
    }

    /// Returns the successor of a state or waypoint; [`UNKNOWN`] if it was not set.
    #[inline]
    pub(crate) fn get(&self, number: u32, class: u8) -> u32 {
        let (slots, at) = self.slots(number);
        let [first, next, row, _] = slots.get_four(at);
        if first == u32::from(class) + 1 {
            return next;
        }
        match row.checked_sub(1) {
            Some(row) => self.rows.get(row as usize * self.width + usize::from(class)),
            None => UNKNOWN,
        }
    }

    /// Sets the successor of a state or waypoint. The caller must be the only writer.
    pub(crate) fn set(&self, number: u32, class: u8, next: u32) {
        let (slots, at) = self.slots(number);
        let [first, _, row, _] = slots.get_four(at);
        if first == 0 {
            slots.set(at + FIRST_SUCCESSOR, next);
            // Written last: a reader that sees the class also sees the successor.
            return slots.set(at + FIRST_CLASS, u32::from(class) + 1);
        }
        if first == u32::from(class) + 1 {
            return;
        }
        let row = match row.checked_sub(1) {
            Some(row) => row,
            None => self.count.fetch_add(1, Ordering::Relaxed),
        };
        self.rows.set(row as usize * self.width + usize::from(class), next);
        slots.set(at + ROW, row + 1);
    }

    #[inline]
    pub(crate) fn flags(&self, state: u32) -> u32 {
        self.states.get(state as usize * SLOTS + FLAGS_OR_TARGET)
    }

    pub(crate) fn set_flags(&self, state: u32, flags: u32) {
        self.states.set(state as usize * SLOTS + FLAGS_OR_TARGET, flags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_successors_are_returned() {
        let rows = TransitionTable::new(7);
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

    #[test]
    fn waypoints_do_not_collide_with_states() {
        let rows = TransitionTable::new(3);
        rows.set(0, 1, 7);
        let waypoints: Vec<u32> = (0..300).map(|_| rows.waypoint()).collect();
        assert_eq!(rows.waypoint_count(), 300);
        for &one in &waypoints {
            assert!(TransitionTable::is_waypoint(one));
            assert_eq!((rows.get(one, 1), rows.target(one)), (UNKNOWN, UNKNOWN));
            rows.set(one, 2, one);
            rows.set(one, 1, 5);
            rows.set_target(one, 9);
        }
        for &one in &waypoints {
            assert_eq!((rows.get(one, 2), rows.get(one, 1), rows.get(one, 0)), (one, 5, UNKNOWN));
            assert_eq!(rows.target(one), 9);
        }
        assert_eq!((rows.get(0, 1), rows.get(0, 2), rows.flags(0)), (7, UNKNOWN, 0));
    }
}
