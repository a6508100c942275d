//! Interners: distinct entries, numbered in order of arrival.
//!
//! ```text
//!  Interner<T>       entries of one type, by number and by value
//!  CompactMap<K, V>  keys that own a value each; a map in insertion order
//!  ListInterner      lists of numbers, in one buffer
//! ```
//!
//! The hash index of the first two holds only hashes and positions; the entries lie in a `Vec`. So
//! each entry is stored once, and interners of all types share the machine code that grows the
//! index. That matters at start-up: a large machine fills about forty tables with a few entries
//! each before its first answer, where cold code costs more than the work. Up to eight entries are
//! scanned without hashes.

mod compact_map;
mod hash_slots;
mod list_interner;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::hash::Hash;
use std::ops::Index;

use crate::memory_bytes::buffer_bytes;

pub use self::compact_map::CompactMap;
use self::hash_slots::{HashSlots, find, hash_of, index_last, push, unindex_from};
pub use self::list_interner::{ListInterner, sorted_union};

/// Number of entries for which [`Interner::clear`] keeps the allocation. Larger tables are freed.
/// Chosen, not measured.
pub const RETAINED_CAPACITY: usize = 512;

/// A set of distinct entries, numbered in order of arrival.
///
/// ```
/// use formalm_core::Interner;
///
/// let mut words: Interner<Box<str>> = Interner::default();
/// assert_eq!(words.intern("to".into()), 0);
/// assert_eq!(words.intern("be".into()), 1);
/// assert_eq!(words.find("to"), Some(0));
/// assert_eq!(&*words[1], "be");
/// ```
#[derive(Clone, Debug)]
pub struct Interner<T> {
    list: Vec<T>,
    slots: HashSlots,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { list: Vec::new(), slots: HashSlots::default() }
    }
}

impl<T> Index<u32> for Interner<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.list[id as usize]
    }
}

impl<T: Eq + Hash> FromIterator<T> for Interner<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Interner<T> {
        let mut interner = Interner::default();
        for entry in entries {
            interner.intern(entry);
        }
        interner
    }
}

impl<T> Interner<T> {
    /// Creates a table with space for some entries.
    pub fn with_capacity(entries: usize) -> Interner<T> {
        Interner { list: Vec::with_capacity(entries), slots: HashSlots::default() }
    }

    /// Returns an entry by number.
    #[inline]
    pub fn get(&self, id: u32) -> &T {
        &self.list[id as usize]
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the entries in order of arrival.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.list.iter()
    }

    /// Returns the entries in order of arrival.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.list
    }

    /// Returns the entries in order of arrival, without the index.
    pub fn into_entries(self) -> Vec<T> {
        self.list
    }

    /// Returns the memory of the table itself, in bytes, without what the entries point to.
    pub fn table_bytes(&self) -> usize {
        buffer_bytes(self.list.len(), self.list.capacity(), size_of::<T>())
            + self.slots.memory_bytes()
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// Returns the number of an entry, inserting it if it is new.
    #[inline]
    pub fn intern(&mut self, entry: T) -> u32 {
        match self.find(&entry) {
            Some(id) => id,
            None => self.intern_new(entry),
        }
    }

    /// Returns the number of the entry equal to `like`, inserting what `make` returns if there is
    /// none.
    #[inline]
    pub fn intern_borrowed<Q>(&mut self, like: &Q, make: impl FnOnce() -> T) -> u32
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.find(like) {
            Some(id) => id,
            None => self.intern_new(make()),
        }
    }

    /// Inserts an entry that is not interned yet, without a look-up, and returns its number.
    pub fn intern_new(&mut self, entry: T) -> u32 {
        debug_assert!(self.find(&entry).is_none(), "the entry is not interned");
        let id = self.list.len() as u32;
        push(&mut self.list, entry);
        index_last(&self.list, &mut self.slots, hash_of);
        id
    }

    /// Returns the number of an entry that is already interned.
    #[inline]
    pub fn find<Q>(&self, entry: &Q) -> Option<u32>
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        find(&self.list, &self.slots, || hash_of(entry), |one| one.borrow() == entry)
    }

    /// Removes all entries. Keeps the allocation unless it is large.
    pub fn clear(&mut self) {
        if self.list.len() > RETAINED_CAPACITY {
            *self = Interner::default();
            return;
        }
        self.list.clear();
        self.slots.clear();
    }

    /// Removes all entries from number `length` on.
    pub fn truncate(&mut self, length: usize) {
        unindex_from(&self.list, length, &mut self.slots, hash_of);
        self.list.truncate(length);
    }
}
