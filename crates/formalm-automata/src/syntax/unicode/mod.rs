//! Unicode data of the parser: character properties, their names, and case folding.

pub(super) mod case_folding;
pub(super) mod name_tables;
pub(super) mod properties;
