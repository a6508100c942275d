//! What no token distinguishes, whatever the spelling: what the mask class of a state drops, and the
//! proofs that it may.
//!
//! Mask classes themselves are a capability of a spelling ([`super::spelling::json::mask_class`]):
//! what a token sees of a state depends on quotes, commas and escapes.

pub(crate) mod abstraction;
pub(crate) mod string_lengths;
pub(crate) mod unbounded_values;
pub(crate) mod unique_item_equivalence;
