//! Memory accounting: the bytes that a value owns on the heap.
//!
//! Budgets of epochs and limits of machines compare these numbers, and users see them as
//! `memory_bytes`. Containers count their capacity, not their length, and what their entries own. Of a
//! large buffer only the pages up to its length count: the system maps the others when they are
//! written. A table whose entries own nothing is measured without a look at them.
//!
//! [`memory_bytes!`](macro@crate::memory_bytes) implements the trait for a struct: it lists the fields
//! that count, and after a semicolon those that do not. A field in neither list does not compile.
//!
//! Some tables count by hand: those that a lookahead rolls back (by length, so that the number is
//! the same afterwards), values that several owners share, and structures that keep a running sum.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{AppendVec, ByteSet, CompactMap, ForkSafeMutex, Interner, MaskClassId, StateId};

/// A value that knows the memory it owns.
///
/// ```
/// use formalm_core::MemoryBytes;
///
/// struct Table {
///     rows: Vec<u32>,
///     names: Vec<Box<str>>,
///     width: usize,
/// }
///
/// formalm_core::memory_bytes!(Table { rows, names; width });
///
/// let table = Table { rows: Vec::with_capacity(3), names: vec!["ab".into()], width: 1 };
/// assert_eq!(table.memory_bytes(), 3 * 4 + 16 + 2);
/// ```
pub trait MemoryBytes {
    /// `false` if no value of the type owns memory.
    const OWNS_MEMORY: bool = true;

    /// Returns the bytes on the heap that the value owns, without the value itself.
    fn memory_bytes(&self) -> usize;
}

/// Implements [`MemoryBytes`] for a struct by its fields, or for types that own no memory.
#[macro_export]
macro_rules! memory_bytes {
    ($type:ident { $($field:ident),* $(,)? $(; $($other:ident),* $(,)?)? }) => {
        impl $crate::MemoryBytes for $type {
            fn memory_bytes(&self) -> usize {
                #[allow(unused_imports)]
                use $crate::MemoryBytes as _;
                let $type { $($field,)* $($($other: _,)*)? } = self;
                0 $(+ $field.memory_bytes())*
            }
        }
    };
    (none: $($type:ty),* $(,)?) => {
        $(impl $crate::MemoryBytes for $type {
            const OWNS_MEMORY: bool = false;

            #[inline]
            fn memory_bytes(&self) -> usize {
                0
            }
        })*
    };
}

memory_bytes!(none: (), bool, char, u8, u16, u32, u64, u128, usize, i32, i64, f32, f64);
memory_bytes!(none: ByteSet, StateId, MaskClassId);

/// Returns the bytes that the entries of a table own.
fn entries_bytes<'a, T: MemoryBytes + 'a>(entries: impl IntoIterator<Item = &'a T>) -> usize {
    if T::OWNS_MEMORY { entries.into_iter().map(T::memory_bytes).sum() } else { 0 }
}

/// Returns the bytes of a hash table of the standard library: at most seven eighths of its slots
/// are used, and each has a control byte.
fn hash_table_bytes(capacity: usize, entry_bytes: usize) -> usize {
    let slots = match capacity {
        0 => 0,
        1..=7 => capacity + 1,
        _ => capacity / 7 * 8,
    };
    slots * (entry_bytes + 1)
}

/// Size of a page of memory, in bytes.
const PAGE_BYTES: usize = 4096;

/// Returns the bytes of a growing buffer that the process holds. An allocator takes large buffers from
/// the system, which maps a page when it is first written.
pub(crate) fn buffer_bytes(len: usize, capacity: usize, entry_bytes: usize) -> usize {
    let all = capacity * entry_bytes;
    if all <= 16 * PAGE_BYTES {
        all
    } else {
        all.min((len * entry_bytes).next_multiple_of(PAGE_BYTES))
    }
}

/// Returns the bytes of a map's slots, without what its entries own.
pub fn map_slot_bytes<K, V>(map: &FxHashMap<K, V>) -> usize {
    hash_table_bytes(map.capacity(), size_of::<(K, V)>())
}

/// Returns the bytes of a set's slots, without what its entries own.
pub fn set_slot_bytes<T>(set: &FxHashSet<T>) -> usize {
    hash_table_bytes(set.capacity(), size_of::<T>())
}

impl<T: MemoryBytes> MemoryBytes for [T] {
    fn memory_bytes(&self) -> usize {
        entries_bytes(self)
    }
}

impl MemoryBytes for str {
    fn memory_bytes(&self) -> usize {
        0
    }
}

impl<T: MemoryBytes, const N: usize> MemoryBytes for [T; N] {
    const OWNS_MEMORY: bool = T::OWNS_MEMORY;

    fn memory_bytes(&self) -> usize {
        entries_bytes(self)
    }
}

impl<T: MemoryBytes> MemoryBytes for Option<T> {
    const OWNS_MEMORY: bool = T::OWNS_MEMORY;

    fn memory_bytes(&self) -> usize {
        self.as_ref().map_or(0, T::memory_bytes)
    }
}

impl<A: MemoryBytes, B: MemoryBytes> MemoryBytes for (A, B) {
    const OWNS_MEMORY: bool = A::OWNS_MEMORY || B::OWNS_MEMORY;

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes() + self.1.memory_bytes()
    }
}

impl<A: MemoryBytes, B: MemoryBytes, C: MemoryBytes> MemoryBytes for (A, B, C) {
    const OWNS_MEMORY: bool = A::OWNS_MEMORY || B::OWNS_MEMORY || C::OWNS_MEMORY;

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes() + self.1.memory_bytes() + self.2.memory_bytes()
    }
}

impl<T: MemoryBytes + ?Sized> MemoryBytes for Box<T> {
    fn memory_bytes(&self) -> usize {
        size_of_val(&**self) + (**self).memory_bytes()
    }
}

/// Each owner counts the value: only for tables that do not share it.
impl<T: MemoryBytes + ?Sized> MemoryBytes for Arc<T> {
    fn memory_bytes(&self) -> usize {
        2 * size_of::<usize>() + size_of_val(&**self) + (**self).memory_bytes()
    }
}

impl<T: MemoryBytes> MemoryBytes for Vec<T> {
    fn memory_bytes(&self) -> usize {
        buffer_bytes(self.len(), self.capacity(), size_of::<T>()) + entries_bytes(self)
    }
}

impl MemoryBytes for String {
    fn memory_bytes(&self) -> usize {
        self.capacity()
    }
}

impl<K: MemoryBytes, V: MemoryBytes> MemoryBytes for FxHashMap<K, V> {
    fn memory_bytes(&self) -> usize {
        map_slot_bytes(self) + entries_bytes(self.keys()) + entries_bytes(self.values())
    }
}

impl<T: MemoryBytes> MemoryBytes for FxHashSet<T> {
    fn memory_bytes(&self) -> usize {
        set_slot_bytes(self) + entries_bytes(self)
    }
}

impl<T: MemoryBytes> MemoryBytes for Interner<T> {
    fn memory_bytes(&self) -> usize {
        self.table_bytes() + entries_bytes(self.as_slice())
    }
}

impl<K: MemoryBytes, V: MemoryBytes> MemoryBytes for CompactMap<K, V> {
    fn memory_bytes(&self) -> usize {
        self.table_bytes() + entries_bytes(self.as_slice())
    }
}

impl<T: MemoryBytes> MemoryBytes for ForkSafeMutex<T> {
    fn memory_bytes(&self) -> usize {
        self.lock().memory_bytes()
    }
}

impl MemoryBytes for AppendVec {
    fn memory_bytes(&self) -> usize {
        AppendVec::memory_bytes(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Inner {
        list: Vec<u16>,
    }

    struct Outer {
        inner: Inner,
        names: Vec<Box<str>>,
        flag: bool,
    }

    memory_bytes!(Inner { list });
    memory_bytes!(Outer { inner, names; flag });

    #[test]
    fn containers_count_capacity_and_what_their_entries_own() {
        let names: Vec<Box<str>> = vec!["ab".into(), "cde".into()];
        let outer = Outer { inner: Inner { list: Vec::with_capacity(10) }, names, flag: true };
        assert!(outer.flag);
        assert_eq!(outer.memory_bytes(), 20 + 2 * 16 + 5);
        assert_eq!(Some(Box::new(7u64)).memory_bytes(), 8);
        assert_eq!(Arc::<[u32]>::from([1, 2, 3]).memory_bytes(), 16 + 12);
        assert_eq!((String::with_capacity(9), vec![1u8, 2], ()).memory_bytes(), 9 + 2);
    }

    #[test]
    fn pages_that_were_never_written_do_not_count() {
        let mut list: Vec<u64> = Vec::with_capacity(1 << 20);
        assert_eq!(list.memory_bytes(), 0);
        list.extend(0..1000);
        assert_eq!(list.memory_bytes(), 8192);
        list.extend(0..(1 << 20) - 1000);
        assert_eq!(list.memory_bytes(), 8 << 20);
    }

    #[test]
    fn a_map_counts_its_slots() {
        let mut map: FxHashMap<u32, u32> = FxHashMap::default();
        assert_eq!(map.memory_bytes(), 0);
        map.insert(1, 2);
        assert_eq!(map.memory_bytes(), 4 * 9);
        map.extend((0..100).map(|one| (one, one)));
        // 128 slots hold at most 112 entries.
        assert_eq!(map.memory_bytes(), 128 * 9);
    }

    #[test]
    fn an_interner_counts_entries_only_if_they_own_memory() {
        let plain: Interner<u32> = (0..3).collect();
        assert_eq!(plain.memory_bytes(), plain.table_bytes());
        let owning: Interner<Box<[u8]>> =
            [vec![1], vec![1, 2]].into_iter().map(Box::from).collect();
        assert_eq!(owning.memory_bytes(), owning.table_bytes() + 3);
    }
}
