//! A least-recently-used cache for few entries.

use std::borrow::Borrow;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by key, each with the time of its last use. Entries are few, so eviction scans them for
/// the oldest.
#[derive(Debug)]
pub struct LruCache<K, V> {
    known: FxHashMap<K, (V, u64)>,
    clock: u64,
}

impl<K, V> Default for LruCache<K, V> {
    fn default() -> LruCache<K, V> {
        LruCache { known: FxHashMap::default(), clock: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> LruCache<K, V> {
    /// Returns the value of a key and marks it as used.
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let (value, asked) = self.known.get_mut(key)?;
        *asked = self.clock;
        Some(value.clone())
    }

    /// Inserts a value as the most recently used.
    pub fn insert(&mut self, key: K, value: V) {
        self.known.insert(key, (value, self.clock));
    }

    /// Removes a key.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.known.remove(key);
    }

    /// Evicts the least recently used value; returns whether there was one.
    pub fn evict_oldest(&mut self) -> bool {
        let oldest = self.known.iter().min_by_key(|(_, one)| one.1).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.known.remove(&key).is_some())
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns `true` if the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the values in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.known.values().map(|one| &one.0)
    }
}
