//! Machines of tests as automata: whatever implements `Machine` has all drivers of the package.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::lazy_automaton::Automaton;

#[path = "../../formalm-constraint/tests/support/balanced_brackets.rs"]
mod machine;

/// Returns the automaton of balanced brackets.
#[pyfunction]
pub(crate) fn balanced_brackets() -> Automaton {
    Automaton::new(AnyMachine::Test(Arc::new(machine::BalancedBrackets)))
}
