//! Masks by key: read without a lock, bounded in memory.
//!
//! A slot is an atomic pointer. A full memo empties slots in the order in which they were filled,
//! sparing those used since they were last looked at (the *clock* rule): what is in use stays.
//!
//! Many masks of one language are much alike, so a bitmask is kept as what differs from one of the
//! latest, where that is little.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use formalm_automata::{Lock, Segment};

use crate::mask::{Mask, MaskWords};

/// Slots of the first chunk; each further chunk doubles.
const FIRST: usize = 64;

/// Bitmasks that a new one is compared with.
const LATEST: usize = 4;

#[derive(Debug)]
struct Entry {
    mask: Mask,
    used: AtomicBool,
}

type Slot = ArcSwapOption<Entry>;

/// A growing table of masks.
#[derive(Debug)]
pub(crate) struct Memo {
    chunks: [Segment<Slot>; 26],
    filled: Lock<Filled>,
    limit_bytes: usize,
}

#[derive(Debug, Default)]
struct Filled {
    order: VecDeque<u32>,
    bytes: usize,
    /// Bitmasks that masks share, the latest last, and how many do.
    shared: Vec<(Arc<MaskWords>, usize)>,
}

impl Filled {
    /// A mask as what differs from one of the latest bitmasks, or its bitmask as one to share.
    fn shared(&mut self, mask: Mask) -> Mask {
        let Mask::Dense(words) = mask else { return mask };
        for (base, count) in self.shared.iter_mut().rev().take(LATEST) {
            if let Some(near) = Mask::near(base, &words) {
                *count += 1;
                return near;
            }
        }
        let base: Arc<MaskWords> = words.into();
        let mask = Mask::patched(&base, Vec::new(), Vec::new());
        self.bytes += 4 * base.len();
        self.shared.push((base, 1));
        mask
    }

    /// Takes back what a mask that is let go of takes.
    fn forget(&mut self, mask: &Mask) {
        self.bytes -= mask.memory_bytes();
        let Mask::Patched { base, .. } = mask else { return };
        let at = self.shared.iter().position(|(words, _)| Arc::ptr_eq(words, base));
        if let Some(at) = at {
            self.shared[at].1 -= 1;
            if self.shared[at].1 == 0 {
                self.bytes -= 4 * base.len();
                self.shared.remove(at);
            }
        }
    }
}

impl Memo {
    pub(crate) fn new(limit_bytes: usize) -> Memo {
        Memo {
            chunks: std::array::from_fn(|_| Segment::new()),
            filled: Lock::default(),
            limit_bytes,
        }
    }

    fn slot(&self, key: u32, grow: bool) -> Option<&Slot> {
        let shifted = key as usize + FIRST;
        let chunk = (shifted / FIRST).ilog2() as usize;
        let slots = self.chunks.get(chunk)?;
        let slots = if grow {
            let count = FIRST << chunk;
            slots.get_or_init(count, || std::iter::repeat_with(Slot::empty).take(count).collect())
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

    /// Whether the mask of a key is there.
    #[inline]
    pub(crate) fn has(&self, key: u32) -> bool {
        self.slot(key, false).is_some_and(|slot| slot.load().is_some())
    }

    /// Whether a mask of so many bytes is ever kept.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.limit_bytes
    }

    /// Keeps a mask, and lets go of others if there is no room.
    pub(crate) fn insert(&self, key: u32, mask: Mask) {
        let most = mask.memory_bytes() + size_of::<Mask>();
        let Some(slot) = self.slot(key, true) else { return };
        if !self.has_room_for(most) {
            return;
        }
        let mut filled = self.filled.lock();
        if slot.load().is_some() {
            return;
        }
        while filled.bytes + most > self.limit_bytes {
            let Some(oldest) = filled.order.pop_front() else { break };
            self.let_go(oldest, &mut filled);
        }
        let mask = filled.shared(mask);
        filled.bytes += mask.memory_bytes();
        filled.order.push_back(key);
        slot.store(Some(Arc::new(Entry { mask, used: AtomicBool::new(false) })));
    }

    fn let_go(&self, key: u32, filled: &mut Filled) {
        let Some(slot) = self.slot(key, false) else { return };
        let entry = slot.load();
        let Some(entry) = entry.as_ref() else { return };
        if entry.used.swap(false, Ordering::Relaxed) {
            filled.order.push_back(key);
        } else {
            filled.forget(&entry.mask);
            slot.store(None);
        }
    }

    /// Masks kept, and their memory in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let filled = self.filled.lock();
        let chunks = self.chunks.iter().filter_map(Segment::get);
        let slots: usize = chunks.map(size_of_val::<[Slot]>).sum();
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
        assert!(count == 100 && all < one + 100 * 80, "{one} {all}");
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
        let filled = memo.filled.lock();
        let shared: usize = filled.shared.iter().map(|(words, _)| 4 * words.len()).sum();
        let counted: usize = filled.shared.iter().map(|one| one.1).sum();
        assert!(shared <= filled.bytes && counted == filled.order.len());
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
