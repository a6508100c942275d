//! A hash map that keeps its entries in insertion order.

use std::borrow::Borrow;
use std::hash::Hash;

use crate::memory_bytes::buffer_bytes;

use super::hash_slots::{HashSlots, find, hash_of, index_last, push, unindex_from};

/// A hash map that keeps its entries in insertion order, each with a position.
///
/// ```
/// use formalm_core::CompactMap;
///
/// let mut lengths = CompactMap::default();
/// lengths.insert("be", 2);
/// let at = lengths.position_or_insert_with("to", || 0);
/// *lengths.value_mut(at) += 2;
/// assert_eq!((at, lengths.get(&"to")), (1, Some(&2)));
/// ```
#[derive(Clone, Debug)]
pub struct CompactMap<K, V> {
    list: Vec<(K, V)>,
    slots: HashSlots,
}

impl<K, V> Default for CompactMap<K, V> {
    fn default() -> CompactMap<K, V> {
        CompactMap { list: Vec::new(), slots: HashSlots::default() }
    }
}

impl<K, V> CompactMap<K, V> {
    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the keys in the order in which they were first inserted.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.list.iter().map(|one| &one.0)
    }

    /// Returns the entries in insertion order, without the index.
    pub fn into_entries(self) -> Vec<(K, V)> {
        self.list
    }

    /// Returns the entries in insertion order.
    #[inline]
    pub fn as_slice(&self) -> &[(K, V)] {
        &self.list
    }

    /// Returns the key at a position.
    #[inline]
    pub fn key(&self, position: u32) -> &K {
        &self.list[position as usize].0
    }

    /// Returns the value at a position.
    #[inline]
    pub fn value(&self, position: u32) -> &V {
        &self.list[position as usize].1
    }

    /// Returns the value at a position, to be changed.
    #[inline]
    pub fn value_mut(&mut self, position: u32) -> &mut V {
        &mut self.list[position as usize].1
    }

    /// Returns the memory of the map itself, in bytes, without what the entries point to.
    pub fn table_bytes(&self) -> usize {
        buffer_bytes(self.list.len(), self.list.capacity(), size_of::<(K, V)>())
            + self.slots.memory_bytes()
    }
}

impl<K: Eq + Hash, V> CompactMap<K, V> {
    /// Returns the value of a key.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let found = self.find(key)?;
        Some(&self.list[found as usize].1)
    }

    /// Returns the position of a key.
    #[inline]
    pub fn find<Q>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        find(&self.list, &self.slots, || hash_of(key), |one| one.0.borrow() == key)
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        match self.find(&key) {
            Some(id) => self.list[id as usize].1 = value,
            None => self.insert_new(key, value),
        }
    }

    /// Sets the value of a key that has none.
    pub fn insert_new(&mut self, key: K, value: V) {
        debug_assert!(self.find(&key).is_none(), "the key has no value");
        push(&mut self.list, (key, value));
        index_last(&self.list, &mut self.slots, |one| hash_of(&one.0));
    }

    /// Returns the value of a key, inserting `value` if it has none.
    pub fn get_or_insert(&mut self, key: K, value: V) -> &V {
        let position = self.position_or_insert_with(key, || value);
        self.value(position)
    }

    /// Returns the position of a key, inserting what `make` returns if it has none.
    #[inline]
    pub fn position_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> u32 {
        self.find(&key).unwrap_or_else(|| {
            self.insert_new(key, make());
            self.list.len() as u32 - 1
        })
    }

    /// Removes all entries from a position on.
    pub fn truncate(&mut self, length: usize) {
        unindex_from(&self.list, length, &mut self.slots, |one| hash_of(&one.0));
        self.list.truncate(length);
    }
}
