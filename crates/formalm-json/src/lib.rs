#![doc = include_str!("../README.md")]

pub mod escapes;
mod name_tokens;
mod string_state;

pub use name_tokens::NameTokens;
pub use string_state::{JsonStringState, step_json_string};
