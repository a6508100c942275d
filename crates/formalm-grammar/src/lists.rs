//! Interned lists of integers: equal lists have equal numbers.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Lists by number. Number 0 is the empty list.
#[derive(Debug)]
pub(crate) struct Lists {
    items: Vec<Arc<[u32]>>,
    ids: FxHashMap<Arc<[u32]>, u32>,
    bytes: usize,
}

/// The number of the empty list.
pub(crate) const NOTHING: u32 = 0;

impl Default for Lists {
    fn default() -> Lists {
        let nothing: Arc<[u32]> = [].into();
        Lists { bytes: footprint(&nothing), items: vec![nothing], ids: FxHashMap::default() }
    }
}

impl Lists {
    pub(crate) fn intern(&mut self, list: &[u32]) -> u32 {
        // Looked up, it would be compared at a place without memory, which takes the processor
        // longer than everything else here.
        if list.is_empty() {
            return NOTHING;
        }
        if let Some(&id) = self.ids.get(list) {
            return id;
        }
        let id = self.items.len() as u32;
        let list: Arc<[u32]> = list.into();
        self.bytes += footprint(&list);
        self.items.push(Arc::clone(&list));
        self.ids.insert(list, id);
        id
    }

    pub(crate) fn get(&self, id: u32) -> &[u32] {
        &self.items[id as usize]
    }

    /// The list, to be kept while others are interned.
    pub(crate) fn share(&self, id: u32) -> Arc<[u32]> {
        Arc::clone(&self.items[id as usize])
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Forgets all lists from number `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        for list in self.items.drain(len..) {
            self.bytes -= footprint(&list);
            self.ids.remove(&list);
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes of a list with its two references and its place in the map.
fn footprint(list: &[u32]) -> usize {
    64 + 4 * list.len()
}

/// The sorted union of two sorted lists without repetition.
pub(crate) fn union(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut joined = [left, right].concat();
    joined.sort_unstable();
    joined.dedup();
    joined
}
