//! What is kept until others have been asked for more lately.

use std::borrow::Borrow;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by key, each with the number of the question when it was last asked for. They are few, so
/// the one that was asked for longest ago is looked for.
#[derive(Debug)]
pub struct Recent<K, V> {
    known: FxHashMap<K, (V, u64)>,
    clock: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent { known: FxHashMap::default(), clock: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    /// The value of a key, which has been asked for now.
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let (value, asked) = self.known.get_mut(key)?;
        *asked = self.clock;
        Some(value.clone())
    }

    /// Keeps a value, as the one asked for last.
    pub fn insert(&mut self, key: K, value: V) {
        self.known.insert(key, (value, self.clock));
    }

    /// Lets go of a key.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.known.remove(key);
    }

    /// Lets go of what was asked for longest ago; whether there was anything.
    pub fn remove_oldest(&mut self) -> bool {
        let oldest = self.known.iter().min_by_key(|(_, one)| one.1).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.known.remove(&key).is_some())
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.known.values().map(|one| &one.0)
    }
}
