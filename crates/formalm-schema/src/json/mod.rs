//! JSON documents: parsers, a uniform view of the result, and interned values with exact numbers.
//!
//! ```text
//! schema text ── flat_tape ───────────────┐
//!       │ (error, deep, huge)             ├── json_view ──► schema_reader
//!       └─ serde_json or deep_parser ─────┘                      │
//!                                                                ▼
//!                         interned_values (exact decimals), property_names
//! ```

pub(crate) mod decimal;
pub(crate) mod deep_parser;
pub(crate) mod document;
pub(crate) mod duplicate_names;
pub(crate) mod flat_tape;
pub(crate) mod interned_values;
pub(crate) mod json_view;
pub(crate) mod property_names;
