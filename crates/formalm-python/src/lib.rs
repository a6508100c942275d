//! The extension module `formalm._core`: conversions, the interpreter lock and error mapping.
//!
//! It decides nothing by itself.

mod any_machine;
mod cached_mask_arrays;
mod constraint;
mod encoder;
mod errors;
mod frontiers;
mod gil_cell;
mod grammar;
mod graph_cache;
mod interruptible;
mod json_schema;
mod lazy_automaton;
mod logits;
mod matcher;
mod materialized_graphs;
mod parse_trees;
mod parser;
mod prepared_types;
mod regular_language;
mod shared_machine;
#[cfg(feature = "test-machines")]
mod test_machines;
mod vocabulary;

use formalm_core::pool;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rejects an invalid number of threads in the environment, which would be ignored later.
fn checked_threads(py: Python<'_>) -> PyResult<()> {
    let name = pool::THREAD_VARIABLES[0];
    match std::env::var(name) {
        Ok(value) if pool::parse_thread_count(&value).is_none() => {
            let message = format!("{name} must be a number from 1 to 1024, got {value:?}");
            Err(errors::argument(
                py,
                &message,
                Some("unset it to use one thread per core, at most 8"),
            ))
        }
        _ => Ok(()),
    }
}

/// The Rust core of formalm. Private: the Python package wraps it.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::constraint::Constraint;
    #[pymodule_export]
    use super::encoder::Encoder;
    #[pymodule_export]
    use super::frontiers::mass_frontier::MassFrontier;
    #[pymodule_export]
    use super::frontiers::search_frontiers::{StringFrontier, TokenFrontier};
    #[pymodule_export]
    use super::frontiers::search_parts::Frontier;
    #[pymodule_export]
    use super::frontiers::walk_frontier::WalkFrontier;
    #[pymodule_export]
    use super::grammar::{Grammar, GrammarText, IndentationLevels};
    #[pymodule_export]
    use super::interruptible::Deadline;
    #[pymodule_export]
    use super::json_schema::{JsonSchema, SchemaOptions};
    #[pymodule_export]
    use super::lazy_automaton::Automaton;
    #[pymodule_export]
    use super::logits::draft_masks::fill_drafts;
    #[pymodule_export]
    use super::logits::logit_rows::{
        best_tokens, generation_step, log_sums, masked_log_sums, row_error,
    };
    #[pymodule_export]
    use super::logits::masked_logits::masked_scores;
    #[pymodule_export]
    use super::logits::numpy_bitmasks::apply_bitmask;
    #[pymodule_export]
    use super::matcher::{Matcher, fill_bitmasks};
    #[pymodule_export]
    use super::materialized_graphs::{Graph, Members};
    #[pymodule_export]
    use super::parse_trees::Trees;
    #[pymodule_export]
    use super::parser::Parser;
    #[pymodule_export]
    use super::regular_language::{Expression, Grouping};
    #[pymodule_export]
    use super::vocabulary::{Vocabulary, checksum};

    #[cfg(feature = "test-machines")]
    #[pymodule_export]
    use super::test_machines::balanced_brackets;

    /// Nanoseconds that this thread has spent in the schema solver so far.
    #[cfg(feature = "solver-clock")]
    #[pyfunction]
    fn solver_nanoseconds() -> u128 {
        formalm_schema::solver_time().as_nanos()
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        formalm_core::process_fork::watch();
        checked_threads(module.py())?;
        // NumPy's interface is loaded at its first use, which an interrupt would turn into a panic.
        module.py().import("numpy")?;
        numpy::PyArray1::<u8>::zeros(module.py(), 0, false);
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
