//! Shortest completions of a state.
//!
//! ```text
//! search ───────── A* over positions, bounded below by `min_bytes`
//!   ├─ pruning ─── the bytes that a lexicographically least completion may continue with
//!   └─ unique_items   arrays under `uniqueItems`, item by item
//! ```
//!
//! Completions are shared by states that differ only in what must not repeat, where the spelling
//! finds repetitions in a text ([`CompletionReuse`](super::spelling::CompletionReuse)).

pub(crate) mod pruning;
pub(crate) mod search;
pub(crate) mod unique_items;
