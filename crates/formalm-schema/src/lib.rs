//! JSON Schema as a lazy deterministic automaton over bytes.
//!
#![doc = include_str!("../README.md")]

mod expansion;
mod formats;
mod formula;
mod interner;
mod json;
mod machine;
mod options;
mod schema_difference;
mod schema_nodes;
mod schema_reader;
mod shared_automata;
mod solver;
mod unique_items_exactness;
mod unreachable_subschemas;

// Old paths that `machine` still uses.
use interner as table;
use json::{decimal, document, interned_values as value, property_names as names};
use schema_difference as difference;
use schema_nodes as node;
use schema_reader as read;
use solver as solve;
use solver::context as core;

pub use formalm_automata::json_escapes::EscapePolicy;
pub use formats::NAMES as FORMATS;
pub use json::document::Document;
pub use machine::{SchemaAutomaton, SchemaKeys};
pub use options::{Blanks, Formats, Layout, Limits, Options, Order};
pub use schema_difference::Described;
pub use schema_nodes::{Effect, Note};
#[cfg(feature = "solver-clock")]
pub use solver::solver_time;
