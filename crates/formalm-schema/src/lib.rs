//! JSON Schema as a lazy deterministic machine over bytes.
//!
//! A schema is no grammar here. At each place of a text stands one Boolean formula over a dozen
//! kinds of atoms ([`formula`]); reading a name or an item takes its derivative, in which the
//! child appears as the statement that it satisfies a node. The child evaluates its own formulas
//! and tells the truths that were asked for when it closes. Whether a state can be completed is
//! asked of a small search with a theory for each type ([`solve`]).

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

// Paths that `machine` still uses.
use interner as table;
use json::{decimal, document, interned_values as value, property_names as names};
use schema_difference as difference;
use schema_nodes as node;
use schema_reader as read;
use solver as solve;
use solver::context as core;

pub use document::Document;
pub use formalm_automata::spelling::Escapes;
pub use formats::NAMES as FORMATS;
pub use machine::{SchemaAutomaton, SchemaKeys};
pub use options::{Blanks, Formats, Layout, Limits, Options, Order};
pub use schema_difference::Described;
pub use schema_nodes::{Effect, Note};
#[cfg(feature = "solver-clock")]
pub use solver::solver_time;
