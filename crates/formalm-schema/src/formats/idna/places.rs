//! Places in texts by number.

use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// What a recognizer knows of the texts that it has read, by number.
#[derive(Debug)]
pub(in crate::formats) struct Places<T>(Mutex<(Vec<T>, FxHashMap<T, u32>)>);

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places(Mutex::default())
    }
}

impl<T: Clone> Clone for Places<T> {
    fn clone(&self) -> Places<T> {
        Places(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl<T: Clone + Eq + Hash> Places<T> {
    pub(in crate::formats) fn intern(&self, place: T) -> u32 {
        let (list, ids) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *ids.entry(place.clone()).or_insert_with(|| {
            list.push(place);
            (list.len() - 1) as u32
        })
    }

    pub(in crate::formats) fn get(&self, id: u32) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0[id as usize].clone()
    }

    #[cfg(test)]
    pub(in crate::formats) fn count(&self) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.len() as u32
    }
}
