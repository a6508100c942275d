//! Places in texts by number.

use std::hash::Hash;

use formalm_automata::ForkSafeMutex;
use rustc_hash::FxHashMap;

/// What a recognizer knows of the texts that it has read, by number.
#[derive(Debug)]
pub(in crate::formats) struct StateInterner<T>(ForkSafeMutex<(Vec<T>, FxHashMap<T, u32>)>);

impl<T> Default for StateInterner<T> {
    fn default() -> StateInterner<T> {
        StateInterner(ForkSafeMutex::default())
    }
}

impl<T: Clone> Clone for StateInterner<T> {
    fn clone(&self) -> StateInterner<T> {
        StateInterner(ForkSafeMutex::new(self.0.lock().clone()))
    }
}

impl<T: Clone + Eq + Hash> StateInterner<T> {
    pub(in crate::formats) fn intern(&self, place: T) -> u32 {
        let (list, ids) = &mut *self.0.lock();
        *ids.entry(place.clone()).or_insert_with(|| {
            list.push(place);
            (list.len() - 1) as u32
        })
    }

    pub(in crate::formats) fn get(&self, id: u32) -> T {
        self.0.lock().0[id as usize].clone()
    }

    /// How often all places were lost, see [`Recognizer::losses`].
    pub(in crate::formats) fn losses(&self) -> u32 {
        self.0.losses()
    }

    #[cfg(test)]
    pub(in crate::formats) fn count(&self) -> u32 {
        self.0.lock().0.len() as u32
    }
}
