//! The extension module `formalm._core`: conversions, the interpreter lock and error mapping.
//! Nothing is decided here.

mod arrays;
mod automaton;
mod constraint;
mod encoder;
mod errors;
mod grammar;
mod graph;
mod language;
mod learnt;
mod machine;
mod masking;
mod matcher;
mod parser;
mod patient;
mod schema;
mod shared_machine;
mod trees;
mod turns;
mod views;
mod vocabulary;

use formalm_automata::pool;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Refuses a number of threads in the environment that is none, as it would be ignored later.
fn checked_threads(py: Python<'_>) -> PyResult<()> {
    let name = pool::VARIABLES[0];
    match std::env::var(name) {
        Ok(value) if pool::threads_of(&value).is_none() => {
            let message = format!("{name} must be a number from 1 to 1024, got {value:?}");
            Err(errors::argument(py, &message, Some("unset it for one thread a core, at most 8")))
        }
        _ => Ok(()),
    }
}

/// The Rust core of formalm. Private: the rooms of the package wrap it.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::arrays::apply_bitmask;
    #[pymodule_export]
    use super::automaton::Automaton;
    #[pymodule_export]
    use super::constraint::Constraint;
    #[pymodule_export]
    use super::encoder::Encoder;
    #[pymodule_export]
    use super::grammar::{Grammar, GrammarText, IndentationLevels};
    #[pymodule_export]
    use super::graph::{Graph, Members};
    #[pymodule_export]
    use super::language::{Expression, Grouping};
    #[pymodule_export]
    use super::masking::masked_scores;
    #[pymodule_export]
    use super::matcher::{Matcher, fill_bitmasks};
    #[pymodule_export]
    use super::parser::Parser;
    #[pymodule_export]
    use super::patient::Deadline;
    #[pymodule_export]
    use super::schema::{JsonSchema, SchemaOptions};
    #[pymodule_export]
    use super::trees::Trees;
    #[pymodule_export]
    use super::vocabulary::Vocabulary;

    /// Nanoseconds that this thread has spent in the solver of schemas until now.
    #[cfg(feature = "solver-clock")]
    #[pyfunction]
    fn solver_nanoseconds() -> u128 {
        formalm_schema::solver_time().as_nanos()
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        formalm_automata::fork::watch();
        checked_threads(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
