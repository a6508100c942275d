//! An interner (distinct entries numbered in order of arrival) and a map with the same layout.
//!
//! The hash index holds only hashes and positions; the entries lie in a `Vec`. So each entry is
//! stored once, and interners of all types share the machine code that grows the index. That
//! matters at start-up: a schema fills about forty tables with a few entries each before its first
//! mask, where cold code costs more than the work. Up to eight entries are scanned without hashes.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

/// Number of entries for which [`Interner::clear`] keeps the allocation. Larger tables are freed.
/// Chosen, not measured.
pub(crate) const RETAINED_CAPACITY: usize = 512;

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
#[derive(Debug, Default)]
struct HashSlots {
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
    fn take(&mut self, hash: u32, id: u32) {
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

    fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.used = 0;
    }

    fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }
}

/// Mixes the hash once more: the low bits choose the slot, and FxHash maps lists of small numbers
/// to similar low bits.
fn hash_of<T: Hash + ?Sized>(entry: &T) -> u32 {
    let hash = FxBuildHasher.hash_one(entry);
    ((hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

/// Returns the position of an entry, by scan or by index.
#[inline]
fn find<T>(
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
fn index_last<T>(list: &[T], slots: &mut HashSlots, hash: impl Fn(&T) -> u32) {
    if list.len() <= LINEAR_SCAN_MAX && slots.used == 0 {
        return;
    }
    for (at, entry) in list.iter().enumerate().skip(slots.used) {
        slots.add(hash(entry), at as u32);
    }
}

/// Pushes an entry; a large list grows by a quarter rather than to twice its size.
#[inline]
fn push<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() && list.len() >= SLOW_GROWTH_MIN {
        list.reserve_exact(list.len() / 4);
    }
    list.push(entry);
}

/// A set of distinct entries, numbered in order of arrival.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    list: Vec<T>,
    slots: HashSlots,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { list: Vec::new(), slots: HashSlots::default() }
    }
}

impl<T: Eq + Hash> Interner<T> {
    pub(crate) fn intern(&mut self, entry: T) -> u32 {
        match self.find(&entry) {
            Some(id) => id,
            None => self.add(entry),
        }
    }

    /// Returns the number of the entry equal to `like`, inserting what `make` returns if there is
    /// none.
    pub(crate) fn intern_borrowed<Q>(&mut self, like: &Q, make: impl FnOnce() -> T) -> u32
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.find(like) {
            Some(id) => id,
            None => self.add(make()),
        }
    }

    fn add(&mut self, entry: T) -> u32 {
        let id = self.list.len() as u32;
        push(&mut self.list, entry);
        index_last(&self.list, &mut self.slots, hash_of);
        id
    }

    /// Returns the number of an entry that is already interned.
    pub(crate) fn find<Q>(&self, entry: &Q) -> Option<u32>
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        find(&self.list, &self.slots, || hash_of(entry), |one| one.borrow() == entry)
    }

    /// Removes all entries. Keeps the allocation unless it is large.
    pub(crate) fn clear(&mut self) {
        if self.list.len() > RETAINED_CAPACITY {
            *self = Interner::default();
            return;
        }
        self.list.clear();
        self.slots.clear();
    }

    /// Removes all entries from number `length` on.
    pub(crate) fn truncate(&mut self, length: usize) {
        if self.slots.used > 0 {
            for (at, entry) in self.list.iter().enumerate().skip(length) {
                self.slots.take(hash_of(entry), at as u32);
            }
        }
        self.list.truncate(length);
    }

    pub(crate) fn get(&self, id: u32) -> &T {
        &self.list[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.list.iter()
    }

    /// Returns the memory of the table itself, in bytes, without what the entries point to.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<T>() + self.slots.memory_bytes()
    }
}

/// A hash map that keeps its entries in insertion order.
#[derive(Debug)]
pub(crate) struct CompactMap<K, V> {
    list: Vec<(K, V)>,
    slots: HashSlots,
}

impl<K, V> Default for CompactMap<K, V> {
    fn default() -> CompactMap<K, V> {
        CompactMap { list: Vec::new(), slots: HashSlots::default() }
    }
}

impl<K: Eq + Hash, V> CompactMap<K, V> {
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let found = self.find(key)?;
        Some(&self.list[found as usize].1)
    }

    fn find<Q>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        find(&self.list, &self.slots, || hash_of(key), |one| one.0.borrow() == key)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the keys in the order in which they were first inserted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.list.iter().map(|one| &one.0)
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.find(&key) {
            Some(id) => self.list[id as usize].1 = value,
            None => self.insert_new(key, value),
        }
    }

    /// Sets the value of a key that has none.
    pub(crate) fn insert_new(&mut self, key: K, value: V) {
        debug_assert!(self.find(&key).is_none(), "the key has no value");
        push(&mut self.list, (key, value));
        index_last(&self.list, &mut self.slots, |one| hash_of(&one.0));
    }

    /// Returns the value of a key, inserting `value` if it has none.
    pub(crate) fn get_or_insert(&mut self, key: K, value: V) -> &V {
        let id = self.find(&key).unwrap_or_else(|| {
            self.insert(key, value);
            self.list.len() as u32 - 1
        });
        &self.list[id as usize].1
    }

    /// Returns the memory of the map itself, in bytes, without what the entries point to.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<(K, V)>() + self.slots.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An entry type with many hash collisions.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct CollidingEntry(u8);

    impl Hash for CollidingEntry {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            (self.0 / 16).hash(state);
        }
    }

    proptest! {
        #[test]
        fn an_interner_agrees_with_a_linear_list(
            steps in proptest::collection::vec((any::<u8>(), 0u8..20), 0..400),
        ) {
            let mut table = Interner::default();
            let mut list: Vec<CollidingEntry> = Vec::new();
            for (entry, what) in steps {
                let entry = CollidingEntry(entry);
                match what {
                    0 => {
                        let length = list.len() * usize::from(entry.0) / 256;
                        table.truncate(length);
                        list.truncate(length);
                    }
                    1 if entry.0 < 20 => {
                        table.clear();
                        list.clear();
                    }
                    _ => {
                        let known = list.iter().position(|one| *one == entry);
                        prop_assert_eq!(table.find(&entry), known.map(|at| at as u32));
                        let at = known.unwrap_or_else(|| {
                            list.push(entry.clone());
                            list.len() - 1
                        });
                        prop_assert_eq!(table.intern(entry), at as u32);
                    }
                }
                prop_assert_eq!(table.len(), list.len());
                for (at, one) in list.iter().enumerate() {
                    prop_assert_eq!(table.find(one), Some(at as u32));
                    prop_assert_eq!(table.get(at as u32), one);
                }
            }
        }

        #[test]
        fn a_map_returns_the_last_value_of_each_key(
            steps in proptest::collection::vec((any::<u8>(), any::<u32>()), 0..400),
        ) {
            let mut map = CompactMap::default();
            let mut all = std::collections::HashMap::new();
            for (key, value) in steps {
                map.insert(CollidingEntry(key), value);
                all.insert(key, value);
            }
            for key in 0..=255 {
                prop_assert_eq!(map.get(&CollidingEntry(key)), all.get(&key));
            }
        }
    }
}
