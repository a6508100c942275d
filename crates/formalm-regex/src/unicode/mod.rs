//! Unicode data of the parser: character properties, their names, and case folding.

pub(crate) mod case_folding;
pub mod name_tables;
pub mod properties;
