//! JSON Schema as a lazy deterministic automaton over bytes.
//!
#![doc = include_str!("../README.md")]

mod expansion;
mod formats;
mod formula;
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

pub use formalm_json::escapes::EscapePolicy;
pub use formats::NAMES as FORMATS;
pub use json::document::Document;
pub use machine::{SchemaAutomaton, SchemaMaskClasses};
pub use options::{
    FormatSet, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, Whitespace, WhitespaceLayout,
};
pub use schema_difference::SchemaDescription;
pub use schema_nodes::{NoteEffect, SchemaNote};
#[cfg(feature = "solver-clock")]
pub use solver::solver_time;
