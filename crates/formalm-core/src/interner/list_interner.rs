//! An interner of integer lists: equal lists have equal ids.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// Interned lists in one flat buffer. Id 0 is the empty list.
#[derive(Debug)]
pub struct ListInterner {
    items: Vec<u32>,
    /// Start offset of each list, and the end of the last one.
    starts: Vec<u32>,
    ids: HashTable<u32>,
}

/// Bytes per list besides its items: its offset and its hash table entry.
const ENTRY_OVERHEAD_BYTES: usize = 14;

/// The buffer shrinks after a truncation if its capacity exceeds `MAX_SLACK` times its use, but not
/// below `MIN_SHRINK_ITEMS` items. Chosen, not measured.
const MAX_SLACK: usize = 4;
const MIN_SHRINK_ITEMS: usize = 1 << 16;

impl Default for ListInterner {
    fn default() -> ListInterner {
        ListInterner { items: Vec::new(), starts: vec![0, 0], ids: HashTable::new() }
    }
}

impl ListInterner {
    /// The id of the empty list.
    pub const EMPTY: u32 = 0;

    /// Returns the id of a list, inserting it if it is new.
    #[inline]
    pub fn intern(&mut self, list: &[u32]) -> u32 {
        if list.is_empty() {
            return ListInterner::EMPTY;
        }
        let hash = hash_of(list);
        let (items, starts) = (&self.items, &self.starts);
        if let Some(&id) = self.ids.find(hash, |&id| at(items, starts, id) == list) {
            return id;
        }
        let id = self.starts.len() as u32 - 1;
        self.items.extend_from_slice(list);
        self.starts.push(self.items.len() as u32);
        let (items, starts) = (&self.items, &self.starts);
        self.ids.insert_unique(hash, id, |&id| hash_of(at(items, starts, id)));
        id
    }

    /// Returns a list by id.
    #[inline]
    pub fn get(&self, id: u32) -> &[u32] {
        at(&self.items, &self.starts, id)
    }

    /// Returns a copy of the list, for use while others are interned.
    pub fn copy(&self, id: u32) -> Box<[u32]> {
        self.get(id).into()
    }

    /// Returns the number of lists, the empty one included.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns `false`: the empty list is always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Drops all lists with ids from `len` on.
    pub fn truncate(&mut self, len: usize) {
        for id in (len..self.len()).rev() {
            let hash = hash_of(self.get(id as u32));
            if let Ok(entry) = self.ids.find_entry(hash, |&one| one == id as u32) {
                entry.remove();
            }
        }
        self.starts.truncate(len + 1);
        self.items.truncate(self.starts[len] as usize);
        if self.items.capacity() > MAX_SLACK * self.items.len().max(MIN_SHRINK_ITEMS) {
            self.items.shrink_to(2 * self.items.len());
        }
    }

    /// Returns the memory of the lists, in bytes, by their number: it is the same before and after
    /// lists that [`ListInterner::truncate`] drops.
    pub fn memory_bytes(&self) -> usize {
        4 * self.items.len() + ENTRY_OVERHEAD_BYTES * self.len()
    }
}

#[inline]
fn at<'a>(items: &'a [u32], starts: &[u32], id: u32) -> &'a [u32] {
    &items[starts[id as usize] as usize..starts[id as usize + 1] as usize]
}

#[inline]
fn hash_of(list: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    list.iter().for_each(|&one| hasher.write_u32(one));
    hasher.finish()
}

/// Returns the sorted union of two sorted lists without duplicates.
pub fn sorted_union(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut joined = [left, right].concat();
    joined.sort_unstable();
    joined.dedup();
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_share_an_id_until_truncated() {
        let mut lists = ListInterner::default();
        let list = |seed: u32| (0..seed % 5).map(|at| seed * at % 7).collect::<Vec<u32>>();
        let ids: Vec<u32> = (0..300).map(|seed| lists.intern(&list(seed))).collect();
        for (seed, &id) in (0..).zip(&ids) {
            assert_eq!(lists.get(id), list(seed));
            assert_eq!(*lists.copy(id), list(seed));
            assert_eq!(lists.intern(&list(seed)), id);
        }
        assert_eq!(lists.intern(&[]), ListInterner::EMPTY);
        let (len, bytes) = (lists.len(), lists.memory_bytes());
        let more: Vec<u32> = (0..200).map(|one| lists.intern(&[900, one])).collect();
        lists.truncate(len);
        assert_eq!((lists.len(), lists.memory_bytes()), (len, bytes));
        // Dropped lists are not found; kept ones are.
        assert_eq!(lists.intern(&[900, 199]), more[0]);
        assert_eq!(lists.intern(&[900, 0]), more[1]);
        assert!((0..).zip(&ids).all(|(seed, &id)| lists.intern(&list(seed)) == id));
    }
}
