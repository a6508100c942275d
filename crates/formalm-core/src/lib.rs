#![doc = include_str!("../README.md")]

mod all_non_ascii_check;
mod byte_set;
mod char_partition;
mod charset;
mod error;
mod interner;
mod machine;
mod memory_bytes;
mod runtime;
mod state_ids;

pub use all_non_ascii_check::reads_all_non_ascii;
pub use byte_set::ByteSet;
pub use char_partition::{CharPartition, Utf8Step, char_len};
pub use charset::{CharSet, ClassCover, WIDE_PARTS, WideParts, wide_parts};
pub use error::{CallbackError, Error, Resource, SourceSpan, check_limit};
pub use interner::{CompactMap, Interner, ListInterner, RETAINED_CAPACITY, sorted_union};
pub use machine::{
    CompletionClasses, CompletionHints, LazyDfa, Machine, NUMBER_BLANK, ReadingHints,
    RecheckPredicate, Renewal, STRING_BLANK, ScratchCopies, ScratchPosition, group_by_successor,
    into_dyn_machine, random_member, require_exact,
};
pub use memory_bytes::{MemoryBytes, map_slot_bytes, set_slot_bytes};
pub use runtime::{
    AppendVec, BudgetExhausted, ForkCheck, ForkSafeMutex, InterruptCheck, LruCache, OnceSlice,
    SetOnce, StepBudget, StepMeter, deadline, digest, interrupt, keyed_hash, pool, process_fork,
    record_steps, steps_taken,
};
pub use state_ids::{MaskClassId, StateId};
