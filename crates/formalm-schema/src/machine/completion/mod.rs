//! Shortest completions of a state, and their reuse for states that differ only in what must not
//! repeat.
//!
//! ```text
//! search ───────── A* over positions, bounded below by `min_bytes`
//!   ├─ pruning ─── the bytes that a lexicographically least completion may continue with
//!   └─ unique_items   arrays under `uniqueItems`, item by item
//! abstract_state ─ the state without used names and items
//!   └─ repetition_check   the tokens for which its completion may be invalid
//! ```

pub(crate) mod abstract_state;
pub(crate) mod pruning;
pub(crate) mod repetition_check;
pub(crate) mod search;
pub(crate) mod unique_items;
