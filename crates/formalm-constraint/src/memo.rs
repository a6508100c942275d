//! Masks by key: read without a lock, bounded in memory.
//!
//! A slot is an atomic pointer. A full memo empties slots in the order in which they were filled,
//! sparing those used since they were last looked at (the *clock* rule): what is in use stays.
//!
//! Many masks of one language are equal, and kept once; others are much alike, so a bitmask is kept
//! as what differs from one of the latest, where that is little.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use rustc_hash::FxHashMap;

use crate::content::Contents;
use crate::mask::{Mask, Words};

/// Slots of the first chunk; each further chunk doubles.
const FIRST: usize = 64;

/// Bitmasks that a new one is compared with.
const LATEST: usize = 4;

#[derive(Debug)]
struct Entry {
    mask: Mask,
    /// Entries with equal numbers have equal masks.
    number: u64,
    /// That of the mask's content.
    hash: u64,
    used: AtomicBool,
}

type Slot = ArcSwapOption<Entry>;

/// A growing table of masks.
#[derive(Debug)]
pub(crate) struct Memo {
    chunks: [OnceLock<Box<[Slot]>>; 26],
    filled: Mutex<Filled>,
    limit_bytes: usize,
}

#[derive(Debug, Default)]
struct Filled {
    order: VecDeque<u32>,
    bytes: usize,
    /// Bitmasks that masks share, by address, and how many do.
    shared: FxHashMap<usize, usize>,
    /// Those of them that new masks are compared with.
    latest: VecDeque<Arc<Words>>,
    /// Masks that are kept, by the hash of their content.
    masks: FxHashMap<u64, Known>,
    /// Numbers given so far; none is given again.
    numbers: u64,
    contents: Contents,
}

/// A mask that is kept.
#[derive(Debug)]
struct Known {
    mask: Mask,
    number: u64,
    /// Keys that have it.
    keys: usize,
}

impl Known {
    /// Memory that keeping a mask takes, for however many keys.
    fn bytes(mask: &Mask) -> usize {
        mask.memory_bytes() + size_of::<(u64, Known)>()
    }
}

impl Filled {
    /// The entry of one more key that has a mask.
    fn entry(&mut self, mask: Mask) -> Entry {
        self.bytes += size_of::<Entry>();
        let mask = self.near(mask);
        let (used, hash) = (AtomicBool::new(false), self.contents.hash(&mask));
        let (masks, contents) = (&mut self.masks, &mut self.contents);
        let same = masks.get_mut(&hash).filter(|known| contents.are_equal(&known.mask, &mask));
        if let Some(known) = same {
            known.keys += 1;
            return Entry { mask: known.mask.clone(), number: known.number, hash, used };
        }
        let mask = self.shared(mask);
        self.bytes += Known::bytes(&mask);
        self.numbers += 1;
        let number = self.numbers;
        // The first of several with one hash is found, the others are kept for their keys alone.
        self.masks.entry(hash).or_insert_with(|| Known { mask: mask.clone(), number, keys: 1 });
        Entry { mask, number, hash, used }
    }

    /// A mask as what differs from one of the latest bitmasks, if that is little.
    fn near(&self, mask: Mask) -> Mask {
        let Mask::Dense(words) = mask else { return mask };
        let near = self.latest.iter().find_map(|base| Mask::near(base, &words));
        near.unwrap_or(Mask::Dense(words))
    }

    /// A mask with its bitmask as one to share.
    fn shared(&mut self, mask: Mask) -> Mask {
        let mask = match mask {
            Mask::Dense(words) => {
                let base: Arc<Words> = words.into();
                self.bytes += 4 * base.len();
                self.shared.insert(address(&base), 0);
                self.latest.push_front(Arc::clone(&base));
                self.latest.truncate(LATEST);
                Mask::patched(&base, Vec::new(), Vec::new())
            }
            mask => mask,
        };
        if let Some(masks) = base(&mask).and_then(|base| self.shared.get_mut(&address(base))) {
            *masks += 1;
        }
        mask
    }

    /// Takes back what the entry of a key that is let go of takes.
    fn forget(&mut self, entry: &Entry) {
        self.bytes -= size_of::<Entry>();
        if let Some(known) = self.masks.get_mut(&entry.hash)
            && known.number == entry.number
        {
            known.keys -= 1;
            if known.keys > 0 {
                return;
            }
            self.masks.remove(&entry.hash);
        }
        self.bytes -= Known::bytes(&entry.mask);
        let Some(base) = base(&entry.mask) else { return };
        let Some(masks) = self.shared.get_mut(&address(base)) else { return };
        *masks -= 1;
        if *masks == 0 {
            self.bytes -= 4 * base.len();
            self.shared.remove(&address(base));
            self.latest.retain(|one| !Arc::ptr_eq(one, base));
        }
    }
}

fn base(mask: &Mask) -> Option<&Arc<Words>> {
    if let Mask::Patched { base, .. } = mask { Some(base) } else { None }
}

fn address(base: &Arc<Words>) -> usize {
    base.as_ptr().addr()
}

impl Memo {
    pub(crate) fn new(limit_bytes: usize) -> Memo {
        Memo {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            filled: Mutex::default(),
            limit_bytes,
        }
    }

    fn slot(&self, key: u32, grow: bool) -> Option<&Slot> {
        let shifted = key as usize + FIRST;
        let chunk = (shifted / FIRST).ilog2() as usize;
        let slots = self.chunks.get(chunk)?;
        let slots = if grow {
            slots.get_or_init(|| std::iter::repeat_with(Slot::empty).take(FIRST << chunk).collect())
        } else {
            slots.get()?
        };
        slots.get(shifted - (FIRST << chunk))
    }

    /// Uses the mask of a key, if it is there.
    #[inline]
    pub(crate) fn with<R>(&self, key: u32, use_mask: impl FnOnce(&Mask) -> R) -> Option<R> {
        let entry = self.slot(key, false)?.load();
        let entry = entry.as_ref()?;
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(use_mask(&entry.mask))
    }

    /// The number of the mask of a key, if it is there: equal numbers, equal masks.
    #[inline]
    pub(crate) fn number(&self, key: u32) -> Option<u64> {
        let entry = self.slot(key, false)?.load();
        let entry = entry.as_ref()?;
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(entry.number)
    }

    /// Whether the mask of a key is there.
    #[inline]
    pub(crate) fn has(&self, key: u32) -> bool {
        self.slot(key, false).is_some_and(|slot| slot.load().is_some())
    }

    /// Keeps a mask, and lets go of others if there is no room.
    pub(crate) fn insert(&self, key: u32, mask: Mask) {
        let most = Known::bytes(&mask) + size_of::<Entry>();
        let Some(slot) = self.slot(key, true) else { return };
        if most > self.limit_bytes {
            return;
        }
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.load().is_some() {
            return;
        }
        while filled.bytes + most > self.limit_bytes {
            let Some(oldest) = filled.order.pop_front() else { break };
            self.let_go(oldest, &mut filled);
        }
        let entry = filled.entry(mask);
        filled.order.push_back(key);
        slot.store(Some(Arc::new(entry)));
    }

    fn let_go(&self, key: u32, filled: &mut Filled) {
        let Some(slot) = self.slot(key, false) else { return };
        let entry = slot.load();
        let Some(entry) = entry.as_ref() else { return };
        if entry.used.swap(false, Ordering::Relaxed) {
            filled.order.push_back(key);
        } else {
            filled.forget(entry);
            slot.store(None);
        }
    }

    /// Masks kept, and their memory in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        let chunks = self.chunks.iter().filter_map(OnceLock::get);
        let slots: usize = chunks.map(|slots| slots.len() * size_of::<Slot>()).sum();
        (filled.order.len(), filled.bytes + slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(id: u32) -> Mask {
        Mask::from_ids(&(0..300).map(|at| at + id).collect::<Vec<u32>>(), 64)
    }

    #[test]
    fn masks_that_are_alike_share_their_words() {
        let memo = Memo::new(60_000);
        let alike = |id: u32| {
            Mask::from_ids(&(0..1000).filter(|&one| one != id).collect::<Vec<u32>>(), 1000)
        };
        memo.insert(0, alike(0));
        let (_, one) = memo.size();
        for key in 1..100 {
            memo.insert(key, alike(key));
        }
        let (count, all) = memo.size();
        assert!(count == 100 && all < one + 100 * 240, "{one} {all}");
        let holds = |key, id| memo.with(key, |mask| mask.contains(id));
        assert_eq!((holds(7, 7), holds(7, 8)), (Some(false), Some(true)));
        // Others take their place, and what they shared with it.
        let others = (100..1_000).map(|key| (key, (0..1000).filter(move |id| id % 11 != key % 11)));
        for (key, ids) in others {
            memo.insert(key, Mask::from_ids(&ids.collect::<Vec<u32>>(), 1000 + key as usize));
        }
        let (_, bytes) = memo.size();
        let slots = 64 * 31 * size_of::<Slot>();
        assert!(memo.with(0, |_| ()).is_none() && bytes <= 60_000 + slots, "{bytes}");
        let filled = memo.filled.lock().unwrap();
        let keys: usize = filled.masks.values().map(|known| known.keys).sum();
        assert_eq!(keys, filled.order.len());
        assert_eq!(filled.shared.values().sum::<usize>(), filled.masks.len());
    }

    #[test]
    fn equal_masks_have_equal_numbers_and_are_kept_once() {
        let memo = Memo::new(100_000);
        let ids = |key: u32| (0..500).filter(move |id| id % 3 != key % 3).collect::<Vec<u32>>();
        for key in 0..600 {
            memo.insert(key, Mask::from_ids(&ids(key), 16 + key as usize % 2));
        }
        let numbers = |key| memo.number(key).expect("kept");
        assert_eq!(numbers(1), numbers(598));
        assert_ne!(numbers(1), numbers(2));
        assert_eq!(memo.number(600), None);
        assert_eq!(memo.filled.lock().unwrap().masks.len(), 3);
        let before = numbers(0);
        // Others take their place.
        for key in 600..9_000 {
            memo.insert(key, Mask::from_ids(&[key], 1000));
        }
        assert_eq!(memo.number(0), None);
        memo.insert(0, Mask::from_ids(&ids(0), 16));
        assert!(numbers(0) > before);
    }

    #[test]
    fn memory_stays_bounded_and_used_masks_stay() {
        let memo = Memo::new(20_000);
        for key in 0..200 {
            memo.insert(key, mask(key));
            assert_eq!(memo.with(0, |mask| mask.contains(0)), Some(true));
        }
        let (count, _) = memo.size();
        assert!((2..=20).contains(&count), "{count}");
        assert!(memo.with(3, |_| ()).is_none());
        assert!(memo.with(199, |mask| mask.contains(199)) == Some(true));
        assert!(memo.with(5_000_000, |_| ()).is_none());
    }
}
