//! A least-recently-used cache within a total size.

use std::borrow::Borrow;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by key, each with a size, in the order of their last use. The sizes sum up to at most
/// `MAX_SIZE`: bytes, or the number of values if each has size 1. The newest value stays whatever
/// its size.
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
    places: FxHashMap<K, u32>,
    entries: Vec<Entry<K, V>>,
    newest: u32,
    oldest: u32,
    size: usize,
}

/// The place of no entry.
const NOWHERE: u32 = u32::MAX;

/// A value in the list of all, by the time of their last use.
#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    size: usize,
    newer: u32,
    older: u32,
}

impl<K, V, const MAX_SIZE: usize> Default for LruCache<K, V, MAX_SIZE> {
    fn default() -> LruCache<K, V, MAX_SIZE> {
        let (places, entries) = Default::default();
        LruCache { places, entries, newest: NOWHERE, oldest: NOWHERE, size: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone, const MAX_SIZE: usize> LruCache<K, V, MAX_SIZE> {
    /// Returns the value of a key and marks it as used.
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = *self.places.get(key)?;
        if at != self.newest {
            self.unlink(at);
            self.link_newest(at);
        }
        Some(self.entries[at as usize].value.clone())
    }

    /// Inserts a value as the most recently used, and evicts others if there is no room.
    pub fn insert(&mut self, key: K, value: V, size: usize) {
        self.remove(&key);
        let at = self.entries.len() as u32;
        self.places.insert(key.clone(), at);
        self.entries.push(Entry { key, value, size, newer: NOWHERE, older: NOWHERE });
        self.link_newest(at);
        self.size += size;
        while self.size > MAX_SIZE && self.entries.len() > 1 {
            self.evict_oldest();
        }
    }

    /// Removes a key.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if let Some(at) = self.places.remove(key) {
            self.drop_entry(at);
        }
    }

    /// Evicts the least recently used value; returns whether there was one.
    pub fn evict_oldest(&mut self) -> bool {
        let oldest = self.oldest;
        let Some(entry) = self.entries.get(oldest as usize) else { return false };
        self.places.remove(&entry.key);
        self.drop_entry(oldest);
        true
    }

    /// Drops an entry that no key leads to. The last entry takes its place.
    fn drop_entry(&mut self, at: u32) {
        self.unlink(at);
        let last = self.entries.len() as u32 - 1;
        self.size -= self.entries.swap_remove(at as usize).size;
        if at == last {
            return;
        }
        let Entry { ref key, newer, older, .. } = self.entries[at as usize];
        if let Some(place) = self.places.get_mut(key) {
            *place = at;
        }
        *self.older_link(newer) = at;
        *self.newer_link(older) = at;
    }

    /// Takes an entry out of the list.
    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        *self.older_link(newer) = older;
        *self.newer_link(older) = newer;
    }

    /// Adds an entry to the list as the most recently used.
    fn link_newest(&mut self, at: u32) {
        let older = self.newest;
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NOWHERE, older);
        *self.newer_link(older) = at;
        self.newest = at;
    }

    /// Returns the link from an entry to the one before it; from no entry, to the newest.
    fn older_link(&mut self, at: u32) -> &mut u32 {
        match self.entries.get_mut(at as usize) {
            Some(entry) => &mut entry.older,
            None => &mut self.newest,
        }
    }

    /// Returns the link from an entry to the one after it; from no entry, to the oldest.
    fn newer_link(&mut self, at: u32) -> &mut u32 {
        match self.entries.get_mut(at as usize) {
            Some(entry) => &mut entry.newer,
            None => &mut self.oldest,
        }
    }

    /// Returns the sum of the sizes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the values in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|entry| &entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::LruCache;

    /// A cache whose oldest value is found by a scan.
    #[derive(Default)]
    struct Scanned {
        known: Vec<(u32, u32, usize)>,
    }

    impl Scanned {
        fn get(&mut self, key: u32) -> Option<u32> {
            let at = self.known.iter().position(|one| one.0 == key)?;
            let found = self.known.remove(at);
            self.known.push(found);
            Some(found.1)
        }

        fn remove(&mut self, key: u32) {
            self.known.retain(|one| one.0 != key);
        }

        fn size(&self) -> usize {
            self.known.iter().map(|one| one.2).sum()
        }

        fn insert(&mut self, key: u32, value: u32, size: usize, most: usize) {
            self.remove(key);
            self.known.push((key, value, size));
            while self.size() > most && self.known.len() > 1 {
                self.known.remove(0);
            }
        }
    }

    #[test]
    fn the_least_recently_used_goes_first_whatever_is_done_before() {
        const MOST: usize = 40;
        let mut cache: LruCache<u32, u32, MOST> = LruCache::default();
        let mut expected = Scanned::default();
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) % below) as u32
        };
        for value in 0..20_000 {
            let key = random(30);
            match random(10) {
                0 => {
                    cache.remove(&key);
                    expected.remove(key);
                }
                1 => {
                    assert_eq!(cache.evict_oldest(), !expected.known.is_empty());
                    expected.known.drain(..expected.known.len().min(1));
                }
                2..=5 => assert_eq!(cache.get(&key), expected.get(key)),
                _ => {
                    let size = random(9) as usize;
                    cache.insert(key, value, size);
                    expected.insert(key, value, size, MOST);
                }
            }
            assert_eq!(cache.size(), expected.size());
            let mut values: Vec<u32> = cache.values().copied().collect();
            let mut all: Vec<u32> = expected.known.iter().map(|one| one.1).collect();
            values.sort_unstable();
            all.sort_unstable();
            assert_eq!(values, all);
        }
    }
}
