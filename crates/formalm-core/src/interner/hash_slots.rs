//! The hash index below the tables of this folder: it holds only hashes and positions.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

/// Maximum number of entries that are scanned without an index. Chosen, not measured.
const LINEAR_SCAN_MAX: usize = 8;

/// Number of entries from which a list grows by a quarter instead of doubling, to save memory.
/// Chosen, not measured.
const SLOW_GROWTH_MIN: usize = 1024;

/// Slots of the smallest index.
const MIN_SLOTS: usize = 32;

/// An empty slot; positions are stored plus one.
const EMPTY: u64 = 0;

/// An open-addressing index from hashes to positions, at most three quarters full. It is unused
/// while there are few entries.
#[derive(Clone, Debug, Default)]
pub(super) struct HashSlots {
    /// The hash in the upper half, the position plus one in the lower.
    slots: Vec<u64>,
    used: usize,
}

impl HashSlots {
    /// Returns the position of an entry with this hash for which `is_it` holds.
    #[inline]
    fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return None;
            }
            let id = slot as u32 - 1;
            if (slot >> 32) as u32 == hash && is_it(id) {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a position that is not in the index.
    fn add(&mut self, hash: u32, id: u32) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow_index();
        }
        self.put(u64::from(hash) << 32 | u64::from(id + 1));
        self.used += 1;
    }

    /// Doubles the index and rehashes it.
    #[cold]
    fn grow_index(&mut self) {
        let larger = vec![EMPTY; (self.slots.len() * 2).max(MIN_SLOTS)];
        let slots = std::mem::replace(&mut self.slots, larger);
        for slot in slots {
            if slot != EMPTY {
                self.put(slot);
            }
        }
    }

    /// Stores a slot at the next free place of its probe sequence.
    fn put(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (slot >> 32) as usize & mask;
        while self.slots[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// Removes a position that is in the index (backward-shift deletion).
    pub(super) fn take(&mut self, hash: u32, id: u32) {
        let mask = self.slots.len() - 1;
        let slot = u64::from(hash) << 32 | u64::from(id + 1);
        let mut hole = hash as usize & mask;
        while self.slots[hole] != slot {
            hole = (hole + 1) & mask;
        }
        // Entries that were displaced past the hole move up.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let other = self.slots[at];
            if other == EMPTY {
                break;
            }
            let home = (other >> 32) as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = other;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
        self.used -= 1;
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.used = 0;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }
}

/// Mixes the hash once more: the low bits choose the slot, and FxHash maps lists of small numbers
/// to similar low bits.
pub(super) fn hash_of<T: Hash + ?Sized>(entry: &T) -> u32 {
    let hash = FxBuildHasher.hash_one(entry);
    ((hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

/// Returns the position of an entry, by scan or by index.
#[inline]
pub(super) fn find<T>(
    list: &[T],
    slots: &HashSlots,
    hash: impl FnOnce() -> u32,
    mut is_it: impl FnMut(&T) -> bool,
) -> Option<u32> {
    if slots.used == 0 {
        return list.iter().position(is_it).map(|at| at as u32);
    }
    slots.find(hash(), |id| is_it(&list[id as usize]))
}

/// Adds the entries that are not yet in the index, usually the last one.
#[inline]
pub(super) fn index_last<T>(list: &[T], slots: &mut HashSlots, hash: impl Fn(&T) -> u32) {
    if list.len() <= LINEAR_SCAN_MAX && slots.used == 0 {
        return;
    }
    for (at, entry) in list.iter().enumerate().skip(slots.used) {
        slots.add(hash(entry), at as u32);
    }
}

/// Pushes an entry; a large list grows by a quarter rather than to twice its size.
#[inline]
pub(super) fn push<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() && list.len() >= SLOW_GROWTH_MIN {
        list.reserve_exact(list.len() / 4);
    }
    list.push(entry);
}

/// Removes the entries from number `length` on from the index.
pub(super) fn unindex_from<T>(
    list: &[T],
    length: usize,
    slots: &mut HashSlots,
    hash: impl Fn(&T) -> u32,
) {
    if slots.used > 0 {
        for (at, entry) in list.iter().enumerate().skip(length) {
            slots.take(hash(entry), at as u32);
        }
    }
}
