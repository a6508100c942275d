//! A least-recently-used cache within a total size.

use std::borrow::Borrow;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by key, each with a size and the time of its last use. The sizes sum up to at most
/// `MAX_SIZE`: bytes, or the number of values if each has size 1. The newest value stays whatever
/// its size.
///
/// Eviction scans the entries for the oldest, because there are at most some hundred and each takes
/// far longer to compute.
///
/// ```
/// use formalm_core::LruCache;
///
/// let mut cache: LruCache<&str, u32, 2> = LruCache::default();
/// cache.insert("a", 1, 1);
/// cache.insert("b", 2, 1);
/// assert_eq!(cache.get("a"), Some(1));
/// cache.insert("c", 3, 1);
/// assert_eq!((cache.get("b"), cache.size()), (None, 2));
/// ```
#[derive(Debug)]
pub struct LruCache<K, V, const MAX_SIZE: usize> {
    known: FxHashMap<K, CachedValue<V>>,
    size: usize,
    clock: u64,
}

#[derive(Debug)]
struct CachedValue<V> {
    value: V,
    size: usize,
    used_at: u64,
}

impl<K, V, const MAX_SIZE: usize> Default for LruCache<K, V, MAX_SIZE> {
    fn default() -> LruCache<K, V, MAX_SIZE> {
        LruCache { known: FxHashMap::default(), size: 0, clock: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone, const MAX_SIZE: usize> LruCache<K, V, MAX_SIZE> {
    /// Returns the value of a key and marks it as used.
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let known = self.known.get_mut(key)?;
        known.used_at = self.clock;
        Some(known.value.clone())
    }

    /// Inserts a value as the most recently used, and evicts others if there is no room.
    pub fn insert(&mut self, key: K, value: V, size: usize) {
        self.clock += 1;
        self.remove(&key);
        self.known.insert(key, CachedValue { value, size, used_at: self.clock });
        self.size += size;
        while self.size > MAX_SIZE && self.known.len() > 1 {
            self.evict_oldest();
        }
    }

    /// Removes a key.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.size -= self.known.remove(key).map_or(0, |known| known.size);
    }

    /// Evicts the least recently used value; returns whether there was one.
    pub fn evict_oldest(&mut self) -> bool {
        let oldest = self.known.iter().min_by_key(|(_, known)| known.used_at);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return false };
        self.remove(&key);
        true
    }

    /// Returns the sum of the sizes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the values in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.known.values().map(|known| &known.value)
    }
}
