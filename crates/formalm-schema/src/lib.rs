//! JSON Schema as a lazy deterministic machine over bytes.
//!
//! A schema is no grammar here. At each place of a text stands one Boolean formula over a dozen
//! kinds of atoms ([`formula`]); reading a name or an item takes its derivative, in which the
//! child appears as the statement that it satisfies a node. The child evaluates its own formulas
//! and tells the truths that were asked for when it closes. Whether a state can be completed is
//! asked of a small search with a theory for each type ([`solve`]).

mod alternatives;
mod approximations;
mod core;
mod decimal;
mod difference;
mod document;
mod expand;
mod formats;
mod formula;
mod machine;
mod names;
mod nested;
mod node;
mod options;
mod pattern;
mod pruned;
mod read;
mod shared;
mod solve;
mod source;
mod table;
mod tree;
mod unevaluated;
mod value;

pub use difference::Described;
pub use document::Document;
pub use formalm_automata::spelling::Escapes;
pub use formats::NAMES as FORMATS;
pub use machine::{SchemaAutomaton, SchemaKeys};
pub use node::{Effect, Note};
pub use options::{Blanks, Formats, Layout, Limits, Options, Order};
#[cfg(feature = "solver-clock")]
pub use solve::solver_time;
