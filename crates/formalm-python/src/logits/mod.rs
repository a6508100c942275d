//! Bitmasks and rows of logits as Python holds them: NumPy arrays.

pub(crate) mod draft_masks;
pub(crate) mod logit_rows;
pub(crate) mod masked_logits;
pub(crate) mod numpy_bitmasks;
