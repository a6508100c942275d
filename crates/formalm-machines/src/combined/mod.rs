//! Combinators over machines of any kind.
//!
//! Regular languages are combined as terms ([`formalm_automata::Expression`]), which is faster. These
//! combinators need only the trait [`formalm_core::Machine`], so that grammars and schemas can be combined
//! too: by concatenation, union and repetition ([`PositionAutomaton`]), by intersection with a
//! regular language ([`Intersection`]), and with a prefix ([`PrefixedMachine`]).

mod intersection;
mod position_automaton;
mod prefixed;
mod scratch_copies;
mod state_interner;
mod states_as_mask_classes;

pub use intersection::{
    CompletionLength, Intersection, IntersectionBounds, OpaqueCache, Precision, ProductCache,
};
pub use position_automaton::{Position, PositionAutomaton};
pub use prefixed::{Prefix, PrefixedMachine, PrefixedMaskClasses};
pub use scratch_copies::{SCRATCH_BYTES, ScratchCache, ScratchMachine, ScratchMaskAutomaton};
pub use states_as_mask_classes::{IdentityClasses, RepresentativeClasses, StatesAsClasses};
