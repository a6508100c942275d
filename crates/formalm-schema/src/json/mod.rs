//! JSON documents: parsing, uniform access, and exact interned values.

pub(crate) mod decimal;
pub(crate) mod deep_parser;
pub(crate) mod document;
pub(crate) mod flat_tape;
pub(crate) mod interned_values;
pub(crate) mod json_view;
pub(crate) mod property_names;
