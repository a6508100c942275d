//! A cache of masks by mask class: lock-free reads, bounded memory.
//!
//! A slot is an atomic pointer. A full cache evicts in the order of insertion but spares entries
//! used since they were last considered (the *clock* rule), so masks in use stay.
//!
//! Many masks of one language are similar. A bitmask is therefore stored as a patch of one of the
//! latest ones if the difference is small.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;
use formalm_core::{ForkSafeMutex, OnceSlice};

use crate::mask::{Mask, MaskWords};

/// Slots of the first chunk; each further chunk doubles.
const FIRST_CHUNK_SLOTS: usize = 64;

/// Number of recent bitmasks that a new one is compared with. Chosen, not measured.
const MAX_COMPARED_BASES: usize = 4;

#[derive(Debug)]
struct CachedMask {
    mask: Mask,
    used: AtomicBool,
}

/// The bytes that an entry takes beside its mask: a reference count, its place in the order, and
/// what the allocator rounds up to.
const ENTRY_BYTES: usize =
    size_of::<CachedMask>() - size_of::<Mask>() + 2 * size_of::<usize>() + 16;

/// The bytes that a shared bitmask takes beside its words.
const SHARED_BYTES: usize = 2 * size_of::<usize>() + size_of::<(Arc<MaskWords>, usize)>();

type CacheSlot = ArcSwapOption<CachedMask>;

/// The memory of a cache, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct MaskMemory {
    /// Bytes that no other cache can take.
    own: usize,
    /// Bytes that several caches share beyond their own.
    shared: Option<Arc<SharedMaskMemory>>,
}

/// Memory that several caches share.
#[derive(Debug)]
struct SharedMaskMemory {
    limit: usize,
    used: AtomicUsize,
}

impl MaskMemory {
    /// Creates the memory of a single cache.
    pub(crate) fn of_one(limit_bytes: usize) -> MaskMemory {
        MaskMemory { own: limit_bytes, shared: None }
    }

    /// Creates the memory of `count` caches; to be cloned for each. Half of it is divided equally.
    /// The other half serves whichever caches are used: of the many parts of a machine, an input
    /// visits few.
    pub(crate) fn of_several(limit_bytes: usize, count: usize) -> MaskMemory {
        let shared = SharedMaskMemory { limit: limit_bytes / 2, used: AtomicUsize::new(0) };
        MaskMemory { own: limit_bytes / 2 / count.max(1), shared: Some(Arc::new(shared)) }
    }

    /// Returns `true` if a cache of `bytes` bytes may grow by `more` bytes.
    fn has_room(&self, bytes: usize, more: usize) -> bool {
        bytes + more <= self.own
            || self.shared.as_ref().is_some_and(|shared| {
                let beyond = (bytes + more - self.own).min(more);
                shared.used.load(Ordering::Relaxed) + beyond <= shared.limit
            })
    }

    /// Returns the size of the largest cache.
    fn largest(&self) -> usize {
        self.own + self.shared.as_ref().map_or(0, |shared| shared.limit)
    }

    /// Records that a cache of `before` bytes now has `after`.
    fn resize(&self, before: usize, after: usize) {
        let Some(shared) = &self.shared else { return };
        let beyond = |bytes: usize| bytes.saturating_sub(self.own);
        shared.used.fetch_add(beyond(after), Ordering::Relaxed);
        shared.used.fetch_sub(beyond(before), Ordering::Relaxed);
    }
}

/// A growing table of masks.
#[derive(Debug)]
pub(crate) struct MaskCache {
    chunks: [OnceSlice<CacheSlot>; 26],
    state: ForkSafeMutex<CacheState>,
    memory: MaskMemory,
}

#[derive(Debug, Default)]
struct CacheState {
    order: VecDeque<u32>,
    bytes: usize,
    /// Shared bitmasks, the latest last, with the number of masks that use each.
    shared: Vec<(Arc<MaskWords>, usize)>,
}

impl CacheState {
    /// Stores a mask as a patch of a recent bitmask, or its bitmask as a new one to share.
    fn shared(&mut self, mask: Mask) -> Mask {
        let words = match mask {
            Mask::Dense(words) => words,
            Mask::Patched { ref base, .. } => {
                // Whoever else shares the bitmask may drop it first.
                match self.shared.iter_mut().rev().find(|one| Arc::ptr_eq(&one.0, base)) {
                    Some((_, count)) => *count += 1,
                    None => {
                        self.bytes += 4 * base.len();
                        self.shared.push((Arc::clone(base), 1));
                    }
                }
                return mask;
            }
            mask @ Mask::Sparse(_) => return mask,
        };
        for (base, count) in self.shared.iter_mut().rev().take(MAX_COMPARED_BASES) {
            if let Some(near) = Mask::as_patch_of(base, &words) {
                *count += 1;
                return near;
            }
        }
        let mask = Mask::patched(&words, Vec::new(), Vec::new());
        self.bytes += SHARED_BYTES + 4 * words.len();
        self.shared.push((words, 1));
        mask
    }

    /// Subtracts the memory of an evicted mask.
    fn subtract(&mut self, mask: &Mask) {
        self.bytes -= ENTRY_BYTES + mask.memory_bytes();
        let Mask::Patched { base, .. } = mask else { return };
        let at = self.shared.iter().position(|(words, _)| Arc::ptr_eq(words, base));
        if let Some(at) = at {
            self.shared[at].1 -= 1;
            if self.shared[at].1 == 0 {
                self.bytes -= SHARED_BYTES + 4 * base.len();
                self.shared.remove(at);
            }
        }
    }
}

impl MaskCache {
    pub(crate) fn new(limit_bytes: usize) -> MaskCache {
        MaskCache::within(MaskMemory::of_one(limit_bytes))
    }

    /// Creates a cache that takes its memory from `memory`.
    pub(crate) fn within(memory: MaskMemory) -> MaskCache {
        MaskCache {
            chunks: std::array::from_fn(|_| OnceSlice::new()),
            state: ForkSafeMutex::default(),
            memory,
        }
    }

    fn slot(&self, key: u32, grow: bool) -> Option<&CacheSlot> {
        let shifted = key as usize + FIRST_CHUNK_SLOTS;
        let chunk = (shifted / FIRST_CHUNK_SLOTS).ilog2() as usize;
        let slots = self.chunks.get(chunk)?;
        let slots = if grow {
            let count = FIRST_CHUNK_SLOTS << chunk;
            slots.get_or_init(count, || {
                std::iter::repeat_with(CacheSlot::empty).take(count).collect()
            })
        } else {
            slots.get()?
        };
        slots.get(shifted - (FIRST_CHUNK_SLOTS << chunk))
    }

    /// Passes the mask of a class to `use_mask`, if it is cached.
    #[inline]
    pub(crate) fn with<R>(&self, key: u32, use_mask: impl FnOnce(&Mask) -> R) -> Option<R> {
        let entry = self.slot(key, false)?.load();
        let entry = entry.as_ref()?;
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(use_mask(&entry.mask))
    }

    /// Returns `true` if the mask of a class is cached.
    #[inline]
    pub(crate) fn has(&self, key: u32) -> bool {
        self.slot(key, false).is_some_and(|slot| slot.load().is_some())
    }

    /// Returns `true` if the cache can hold a mask of `bytes` bytes.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.memory.largest()
    }

    /// Inserts a mask, and evicts others if there is no room.
    pub(crate) fn insert(&self, key: u32, mask: Mask) {
        let most = ENTRY_BYTES + SHARED_BYTES + mask.memory_bytes();
        let Some(slot) = self.slot(key, true) else { return };
        if !self.has_room_for(most) {
            return;
        }
        let mut state = self.state.lock();
        if slot.load().is_some() {
            return;
        }
        while !self.memory.has_room(state.bytes, most) {
            let Some(oldest) = state.order.pop_front() else { break };
            let before = state.bytes;
            self.evict(oldest, &mut state);
            self.memory.resize(before, state.bytes);
        }
        let before = state.bytes;
        let mask = state.shared(mask);
        state.bytes += ENTRY_BYTES + mask.memory_bytes();
        self.memory.resize(before, state.bytes);
        state.order.push_back(key);
        slot.store(Some(Arc::new(CachedMask { mask, used: AtomicBool::new(false) })));
    }

    fn evict(&self, key: u32, state: &mut CacheState) {
        let Some(slot) = self.slot(key, false) else { return };
        let entry = slot.load();
        let Some(entry) = entry.as_ref() else { return };
        if entry.used.swap(false, Ordering::Relaxed) {
            state.order.push_back(key);
        } else {
            state.subtract(&entry.mask);
            slot.store(None);
        }
    }

    /// Returns the number of cached masks and their memory in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.state.lock();
        let chunks = self.chunks.iter().filter_map(OnceSlice::get);
        let slots: usize = chunks.map(size_of_val::<[CacheSlot]>).sum();
        (state.order.len(), state.bytes + slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(id: u32) -> Mask {
        Mask::from_ids(&(0..300).map(|at| at + id).collect::<Vec<u32>>(), 64)
    }

    #[test]
    fn similar_masks_share_their_words() {
        let memo = MaskCache::new(60_000);
        let similar = |id: u32| {
            Mask::from_ids(&(0..1000).filter(|&one| one != id).collect::<Vec<u32>>(), 1000)
        };
        memo.insert(0, similar(0));
        let (_, one) = memo.size();
        for key in 1..100 {
            memo.insert(key, similar(key));
        }
        let (count, all) = memo.size();
        assert!(count == 100 && all < one + 100 * 140, "{one} {all}");
        let holds = |key, id| memo.with(key, |mask| mask.contains(id));
        assert_eq!((holds(7, 7), holds(7, 8)), (Some(false), Some(true)));
        // Other masks take their place and, with it, the memory of the words they shared.
        let others = (100..1_000).map(|key| (key, (0..1000).filter(move |id| id % 11 != key % 11)));
        for (key, ids) in others {
            memo.insert(key, Mask::from_ids(&ids.collect::<Vec<u32>>(), 1000 + key as usize));
        }
        let (_, bytes) = memo.size();
        let slots = 64 * 31 * size_of::<CacheSlot>();
        assert!(memo.with(0, |_| ()).is_none() && bytes <= 60_000 + slots, "{bytes}");
        let state = memo.state.lock();
        let shared: usize = state.shared.iter().map(|(words, _)| 4 * words.len()).sum();
        let counted: usize = state.shared.iter().map(|one| one.1).sum();
        assert!(shared <= state.bytes && counted == state.order.len());
    }

    #[test]
    fn caches_that_share_memory_take_what_others_leave() {
        let memory = MaskMemory::of_several(200_000, 20);
        let caches: Vec<MaskCache> = (0..20).map(|_| MaskCache::within(memory.clone())).collect();
        let held = |memo: &MaskCache| memo.state.lock().bytes;
        for key in 0..2_000 {
            caches[0].insert(key, mask(key));
        }
        // One cache has its own share and all that is shared.
        assert!((95_000..=105_000).contains(&held(&caches[0])), "{}", held(&caches[0]));
        for key in 0..2_000 {
            for memo in &caches[1..] {
                memo.insert(key, mask(key));
            }
        }
        let all: usize = caches.iter().map(held).sum();
        assert!((150_000..=200_000).contains(&all), "{all}");
        assert!(caches.iter().all(|memo| held(memo) > 3_500));
        let beyond = caches.iter().map(|memo| held(memo).saturating_sub(memory.own)).sum::<usize>();
        let used = memory.shared.as_ref().map(|shared| shared.used.load(Ordering::Relaxed));
        assert_eq!(used, Some(beyond));
    }

    #[test]
    fn memory_stays_bounded_and_used_masks_stay() {
        let memo = MaskCache::new(20_000);
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
