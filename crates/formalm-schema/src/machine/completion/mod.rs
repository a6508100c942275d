//! TODO

pub(crate) mod abstract_state;
pub(crate) mod pruning;
pub(crate) mod repetition_check;
pub(crate) mod search;
pub(crate) mod unique_items;
