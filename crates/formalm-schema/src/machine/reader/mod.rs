//! The reader: the position after one more byte of JSON.
//!
//! ```text
//! before a value ──first byte──► string │ number │ literal │ object │ array
//! object ──"──► property name ──"──► : ──► value ──► , or }
//! close_value: verdicts of the child ──► parent, whose residual is the derivative by the child
//! ```
//!
//! The number parser lives in [`super::numbers`].

pub(crate) mod byte_classes;
pub(crate) mod cache;
pub(crate) mod containers;
pub(crate) mod multi_byte_steps;
pub(crate) mod property_name;
pub(crate) mod value_start_and_strings;
pub(crate) mod whitespace;
