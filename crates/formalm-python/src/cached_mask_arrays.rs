//! Cached read-only NumPy masks, shared by all states with an equal mask.

use std::hash::BuildHasher;

use formalm_constraint::MaskIdentity;
use numpy::{PyArrayDescr, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::gil_cell::{GilCell, GilGuard};

/// Maximum size of the arrays of one constraint, in bytes. Chosen, not measured.
const MAX_ARRAY_BYTES: usize = 3 << 18;

/// Upper bound on the number of array slots.
const MAX_SLOTS: u64 = (MAX_ARRAY_BYTES / ARRAY_OVERHEAD_BYTES + 1) as u64;

/// Approximate overhead of an array, in bytes.
const ARRAY_OVERHEAD_BYTES: usize = 256;

/// Maximum number of states with a remembered array; other states find their array by its content.
/// This number fills a hash table of 2^15 slots.
const MAX_STATES: usize = 28 << 10;

/// Size of a state's entry in a half-full table, in bytes.
const STATE_BYTES: usize = 40;

/// Approximate overhead of a mask identity in a table, in bytes.
const IDENTITY_OVERHEAD_BYTES: usize = 16;

/// Key of a state: the serial number of its epoch, and its number within the epoch.
type StateKey = (u64, u64);

/// Cache of the masks of a constraint.
pub(crate) struct SharedBitmasks {
    cache: GilCell<BitmaskCache>,
    /// The dtype of the arrays, stored because every mask needs it.
    int: Py<PyArrayDescr>,
    words: usize,
    /// Maximum number of arrays.
    max_arrays: usize,
    /// Maximum size of mask identities in bytes, and maximum number of states.
    max_identity_bytes: usize,
    max_states: usize,
}

#[derive(Default)]
struct BitmaskCache {
    arrays: Vec<CachedArray>,
    /// Array slots by the hash of their words.
    slots: FxHashMap<u64, usize>,
    /// The epoch whose states are remembered: the latest one used.
    serial: u64,
    /// Numbers of arrays by state, and by mask identity; the array may be evicted by now.
    states: FxHashMap<u64, u64>,
    identities: FxHashMap<MaskIdentity, u64>,
    /// Memory of the identities if nothing else keeps the bitmasks that they share.
    identity_bytes: usize,
    queries: u64,
}

/// A cached array.
pub(crate) struct CachedArray {
    words: Py<PyBytes>,
    array: Py<PyAny>,
    hash: u64,
    /// Its own number; modulo [`MAX_SLOTS`] it is the slot.
    number: u64,
    /// The number of the last query that used it.
    last_query: u64,
}

impl SharedBitmasks {
    /// Creates an empty cache. Arrays take at most a quarter of the memory for masks, the indexes
    /// three eighths.
    pub(crate) fn new(py: Python<'_>, width: usize, memory_limit_bytes: usize) -> SharedBitmasks {
        let words = width.div_ceil(32);
        let limit = MAX_ARRAY_BYTES.min(memory_limit_bytes / 4);
        SharedBitmasks {
            cache: GilCell::new(BitmaskCache::default()),
            int: dtype::<i32>(py).unbind(),
            words,
            max_arrays: limit / array_bytes(words),
            max_identity_bytes: limit / 2,
            max_states: MAX_STATES.min(memory_limit_bytes / 4 / STATE_BYTES),
        }
    }

    /// Borrows the cache. While it is borrowed, no interpreter function may be called and no array
    /// dropped.
    #[inline]
    fn cache<'a>(&'a self, py: Python<'a>) -> GilGuard<'a, BitmaskCache> {
        loop {
            if let Some(cache) = self.cache.take(py) {
                return cache;
            }
            // Another thread has it, for less than a microsecond.
            std::hint::spin_loop();
        }
    }

    /// Returns the array of a state, if it is remembered.
    #[inline]
    pub(crate) fn at(&self, py: Python<'_>, state: StateKey) -> Option<Py<PyAny>> {
        let cache = &mut *self.cache(py);
        if cache.serial != state.0 {
            return None;
        }
        let &number = cache.states.get(&state.1)?;
        self.numbered(py, cache, number)
    }

    /// Returns the array of a mask identity, if there is one, and remembers it for the state.
    pub(crate) fn of_identity(
        &self,
        py: Python<'_>,
        state: StateKey,
        identity: &MaskIdentity,
    ) -> Option<Py<PyAny>> {
        let cache = &mut *self.cache(py);
        let &number = cache.identities.get(identity)?;
        let array = self.numbered(py, cache, number)?;
        cache.remember(state, number, self.max_states);
        Some(array)
    }

    /// Returns the array of a state whose mask has these words, and the least recently used array
    /// if it was evicted. No lock may be held when that one is dropped.
    pub(crate) fn of(
        &self,
        py: Python<'_>,
        (state, identity): (StateKey, Option<MaskIdentity>),
        words: &[u32],
    ) -> PyResult<(Py<PyAny>, Option<CachedArray>)> {
        let hash = FxBuildHasher.hash_one(words);
        let (found, before) = match self.same(py, hash, words) {
            Some(found) => (found, None),
            None => {
                let (words, array) = array(py, words)?;
                let cache = array.clone_ref(py);
                let (number, before) = self.cache(py).keep(hash, words, cache, self.max_arrays);
                ((array, number), before)
            }
        };
        let (array, number) = found;
        let cache = &mut *self.cache(py);
        cache.remember(state, number, self.max_states);
        if let Some(identity) = identity {
            cache.remember_identity(identity, number, self.max_identity_bytes);
        }
        Ok((array, before))
    }

    /// Returns the array that has these words, and its number.
    fn same(&self, py: Python<'_>, hash: u64, words: &[u32]) -> Option<(Py<PyAny>, u64)> {
        let cache = &mut *self.cache(py);
        let &slot = cache.slots.get(&hash)?;
        let CachedArray { words: bytes, number, .. } = &cache.arrays[slot];
        let number = has(bytes.as_bytes(py), words).then_some(*number)?;
        Some((self.numbered(py, cache, number)?, number))
    }

    /// Returns the array of a number, if it is cached and unmodified.
    #[inline]
    fn numbered(&self, py: Python<'_>, cache: &mut BitmaskCache, number: u64) -> Option<Py<PyAny>> {
        let array = cache.arrays.get_mut((number % MAX_SLOTS) as usize)?;
        if array.number != number || !self.is_unmodified(py, &array.array) {
            return None;
        }
        cache.queries += 1;
        array.last_query = cache.queries;
        Some(array.array.clone_ref(py))
    }

    /// Returns `true` if an array still has its original shape and type: its words are read-only,
    /// but these can be set.
    #[inline]
    fn is_unmodified(&self, py: Python<'_>, array: &Py<PyAny>) -> bool {
        // SAFETY: only arrays made here are cached.
        let array = unsafe { array.bind(py).cast_unchecked::<PyUntypedArray>() };
        // SAFETY: the pointer is that of a living array.
        let descr = unsafe { (*array.as_array_ptr()).fields.descr };
        let is_int = std::ptr::eq(descr.cast(), self.int.as_ptr());
        is_int && array.shape() == [self.words] && array.strides() == [4]
    }

    pub(crate) fn memory_bytes(&self, py: Python<'_>) -> usize {
        let cache = self.cache(py);
        let arrays = cache.arrays.len() * array_bytes(self.words);
        let own: usize = cache
            .identities
            .keys()
            .map(|identity| identity.memory_bytes() + IDENTITY_OVERHEAD_BYTES)
            .sum();
        // Tables are at most seven eighths full.
        arrays + cache.states.capacity() * 8 / 7 * 17 + own + cache.orphaned_bytes()
    }
}

impl BitmaskCache {
    /// Inserts an array, if there is room for any. Returns its number and the evicted one.
    fn keep(
        &mut self,
        hash: u64,
        words: Py<PyBytes>,
        array: Py<PyAny>,
        max_arrays: usize,
    ) -> (u64, Option<CachedArray>) {
        let oldest = || (0..self.arrays.len()).min_by_key(|&slot| self.arrays[slot].last_query);
        let slot = match self.slots.get(&hash) {
            Some(&slot) => Some(slot),
            None if self.arrays.len() < max_arrays => Some(self.arrays.len()),
            None => oldest(),
        };
        self.queries += 1;
        let number = self.queries * MAX_SLOTS + slot.unwrap_or_default() as u64;
        let Some(slot) = slot else { return (number, None) };
        let array = CachedArray { words, array, hash, number, last_query: self.queries };
        let before = match self.arrays.get_mut(slot) {
            Some(before) => Some(std::mem::replace(before, array)),
            None => {
                self.arrays.push(array);
                None
            }
        };
        if let Some(before) = &before {
            self.slots.remove(&before.hash);
        }
        self.slots.insert(hash, slot);
        (number, before)
    }

    /// Returns the memory of bitmasks that only identities keep alive, after their masks were
    /// evicted.
    fn orphaned_bytes(&self) -> usize {
        let alone = |identity: &&MaskIdentity| {
            let sharing = self.identities.keys().filter(|other| other.shares(identity)).count();
            sharing > 0 && identity.owners() == sharing
        };
        // Each identity that shares a bitmask counts for its part.
        let part = |identity: &MaskIdentity| identity.shared_bytes() / identity.owners();
        self.identities.keys().filter(alone).map(part).sum()
    }

    fn remember_identity(&mut self, identity: MaskIdentity, number: u64, most_bytes: usize) {
        if let Some(known) = self.identities.get_mut(&identity) {
            *known = number;
            return;
        }
        let (own, shared) =
            (identity.memory_bytes() + IDENTITY_OVERHEAD_BYTES, identity.shared_bytes());
        let is_shared = self.identities.keys().any(|one| one.shares(&identity));
        self.identity_bytes += if is_shared { own } else { own + shared };
        if self.identity_bytes > most_bytes {
            self.identities.clear();
            self.identity_bytes = own + shared;
        }
        if self.identity_bytes > most_bytes {
            self.identity_bytes = 0;
        } else {
            self.identities.insert(identity, number);
        }
    }

    fn remember(&mut self, (serial, state): StateKey, number: u64, max_arrays: usize) {
        if serial < self.serial {
            return;
        }
        if serial > self.serial || self.states.len() >= max_arrays {
            self.states.clear();
            self.serial = serial;
        }
        if max_arrays > 0 {
            self.states.insert(state, number);
        }
    }
}

fn array_bytes(words: usize) -> usize {
    4 * words + ARRAY_OVERHEAD_BYTES
}

/// Returns `true` if the bytes equal the words.
fn has(bytes: &[u8], words: &[u32]) -> bool {
    let slots = bytes.as_chunks::<4>().0.iter().map(|&slot| u32::from_ne_bytes(slot));
    // Without an early exit the loop is vectorized.
    slots.zip(words).fold(0, |different, (slot, &word)| different | (slot ^ word)) == 0
}

/// Returns words as bytes, and an int32 array of them that cannot be made writable.
pub(crate) fn array(py: Python<'_>, words: &[u32]) -> PyResult<(Py<PyBytes>, Py<PyAny>)> {
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let bytes = PyBytes::new_with(py, 4 * words.len(), |out| {
        for (slot, word) in out.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(())
    })?;
    let from_buffer = FROM_BUFFER.import(py, "numpy", "frombuffer")?;
    let array = from_buffer.call1((&bytes, dtype::<i32>(py)))?;
    Ok((bytes.unbind(), array.unbind()))
}
