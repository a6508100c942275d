//! Machines made of machines of any kind.
//!
//! Regular languages are combined as terms ([`crate::Expression`]), which is quicker; what is here
//! asks of its parts nothing but to be machines, so that grammars and schemas can be combined too:
//! in rows, choices and repetitions ([`Composed`]), and with a regular language that filters them
//! ([`Filtered`]).

mod ahead;
mod composed;
mod filtered;
mod keys;
mod states;

pub use ahead::{AHEAD_BYTES, Ahead, Lookahead, StepsAhead};
pub use composed::{Composed, Letter};
pub use filtered::Filtered;
pub use keys::{Plainly, StateKeys};
