//! Unicode data of the parser: character properties, their names, and case folding.

pub(crate) mod case_folding;
pub mod properties;
pub mod script_and_compatibility_tables;
