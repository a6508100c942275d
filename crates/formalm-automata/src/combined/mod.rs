//! Machines made of machines of any kind.
//!
//! Regular languages are combined as terms ([`crate::Expression`]), which is quicker; what is here
//! asks of its parts nothing but to be machines, so that grammars and schemas can be combined too:
//! in rows, choices and repetitions ([`Composed`]), and with a regular language that filters them
//! ([`Filtered`]).

mod identity_classes;
mod intersection;
mod position_automaton;
mod prefixed;
mod scratch_machine;
mod state_interner;

pub use identity_classes::{Plainly, StateKeys};
pub use intersection::Filtered;
pub use position_automaton::{Composed, Letter};
pub use prefixed::{Front, Prefixed, PrefixedKeys};
pub use scratch_machine::{Ahead, Lookahead, SCRATCH_BYTES, ScratchMaskAutomaton};
