//! What machines know about their completions that a regular language also has.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{Error, Machine, StateId};

/// Completion bounds of a machine in product with a regular language, without a product search.
pub trait IntersectionBounds: Machine {
    /// Returns what the machine knows, without a product search, about completions of `_state` that
    /// a regular language also has from its state `_regular_state`. Intermediate results are kept
    /// in `_product`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn intersection_completion(
        &self,
        _state: StateId,
        _product: &mut ProductCache,
        _regular_state: StateId,
        _precision: Precision,
    ) -> Result<CompletionLength, Error> {
        Ok(CompletionLength::Unknown)
    }
}

impl IntersectionBounds for Automaton {}

/// A regular language to intersect a machine with, and the machine's cache for that product.
#[derive(Debug)]
pub struct ProductCache {
    /// The regular language.
    pub regular: Arc<Automaton>,
    /// The cache of [`IntersectionBounds::intersection_completion`], opaque to everybody else.
    pub known: Option<Box<dyn OpaqueCache>>,
}

/// A cache that a machine keeps outside of itself.
pub trait OpaqueCache: Any + Debug + Send {
    /// Returns the memory in use, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// The effort a machine spends on bounding completions. Every level is correct; higher ones report
/// more and take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// Coarse bounds that ignore much of the state.
    Coarse,
    /// Parse configurations are analyzed one by one.
    Fine,
    /// Parse configurations are analyzed together with those that compete with them.
    Finest,
}

/// The known length of the shortest completion of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionLength {
    /// Nothing is known.
    Unknown,
    /// There is no completion.
    Never,
    /// Every completion has at least this many bytes, if there is one.
    AtLeast(usize),
    /// The shortest completion has this many bytes.
    Exactly(usize),
}
