//! An append-only table of `u32` slots that is read without a lock.
//!
//! Slots live in chunks that double in size and never move, so a reader takes no lock and waits
//! for nobody.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::OnceSlice;
use crate::memory_bytes::buffer_bytes;

/// Slots of the first chunk; each further chunk has twice as many.
const FIRST_CHUNK_LEN: usize = 256;

/// A growing table of `u32` slots, zero until set.
#[derive(Debug)]
pub struct AppendVec {
    chunks: [OnceSlice<AtomicU32>; 24],
    /// One more than the highest index that was set.
    len: AtomicUsize,
}

impl Default for AppendVec {
    fn default() -> AppendVec {
        AppendVec { chunks: std::array::from_fn(|_| OnceSlice::new()), len: AtomicUsize::new(0) }
    }
}

impl AppendVec {
    #[inline]
    fn locate(index: usize) -> (usize, usize) {
        let shifted = index + FIRST_CHUNK_LEN;
        let chunk = (shifted / FIRST_CHUNK_LEN).ilog2() as usize;
        (chunk, shifted - (FIRST_CHUNK_LEN << chunk))
    }

    /// Returns a slot, zero where nothing was set.
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        let (chunk, offset) = AppendVec::locate(index);
        match self.chunks.get(chunk).and_then(OnceSlice::get) {
            Some(slots) => slots[offset].load(Ordering::Acquire),
            None => 0,
        }
    }

    /// Returns four consecutive slots, starting at a multiple of four.
    #[inline]
    pub fn get_four(&self, index: usize) -> [u32; 4] {
        let (chunk, offset) = AppendVec::locate(index);
        match self.chunks.get(chunk).and_then(OnceSlice::get) {
            Some(slots) => std::array::from_fn(|at| slots[offset + at].load(Ordering::Acquire)),
            None => [0; 4],
        }
    }

    /// Sets a slot and grows the table as needed. Slots beyond 2³² are dropped.
    pub fn set(&self, index: usize, value: u32) {
        let (chunk, offset) = AppendVec::locate(index);
        if let Some(slots) = self.chunks.get(chunk) {
            let slots =
                slots.get_or_init(FIRST_CHUNK_LEN << chunk, || zeros(FIRST_CHUNK_LEN << chunk));
            slots[offset].store(value, Ordering::Release);
            if index >= self.len.load(Ordering::Relaxed) {
                self.len.fetch_max(index + 1, Ordering::Relaxed);
            }
        }
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let mut rest = self.len.load(Ordering::Relaxed);
        let mut bytes = 0;
        for (chunk, slots) in self.chunks.iter().enumerate() {
            let len = FIRST_CHUNK_LEN << chunk;
            if slots.get().is_some() {
                bytes += buffer_bytes(rest.min(len), len, size_of::<AtomicU32>());
            }
            rest = rest.saturating_sub(len);
        }
        bytes
    }
}

/// Allocates zeroed slots in memory that the system maps on first use. Writing them all at once
/// would make one step in a thousand slow.
fn zeros(count: usize) -> Box<[AtomicU32]> {
    let zeros = Box::into_raw(vec![0u32; count].into_boxed_slice());
    // SAFETY: an atomic has the size, alignment and values of its integer, and nobody else has it.
    unsafe { Box::from_raw(zeros as *mut [AtomicU32]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_values_as_the_table_grows() {
        let chunks = AppendVec::default();
        for index in [0, 1, 255, 256, 767, 768, 100_000, 3_000_000] {
            assert_eq!(chunks.get(index), 0);
            chunks.set(index, index as u32 + 7);
            assert_eq!(chunks.get(index), index as u32 + 7);
            assert_eq!(chunks.get_four(index & !3)[index & 3], index as u32 + 7);
        }
    }

    #[test]
    fn only_pages_up_to_the_last_slot_count() {
        let slots = AppendVec::default();
        slots.set(0, 1);
        assert_eq!(slots.memory_bytes(), 4 * FIRST_CHUNK_LEN);
        // The chunk of this index begins one below it and has as many slots.
        slots.set((1 << 20) - FIRST_CHUNK_LEN, 1);
        assert_eq!(slots.memory_bytes(), 4 * FIRST_CHUNK_LEN + 4096);
    }
}
