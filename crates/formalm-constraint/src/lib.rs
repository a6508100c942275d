//! Machines over bytes lifted to vocabularies: masks, steps and cursors.
//!
//! A token is allowed iff some member of the language starts with the text followed by the
//! token's bytes; an end token is allowed iff the text is a member. Everything here is a fast way
//! to that definition, which [`reference`] spells out.

mod canonical;
mod completions;
mod composed;
mod compute;
mod constraint;
mod endless;
mod epoch;
mod explained;
mod explicit;
mod form;
mod lexical;
mod mask;
mod matcher;
mod memo;
mod ordered;
pub mod reference;
mod repetition;
mod strings;
mod values;
mod walk;
mod within;
mod words;

pub use composed::ComposedKeys;
pub use constraint::{Constraint, Stats};
pub use epoch::{Position, Sizes, StateEpoch, Unfollowed};
pub use explained::Explanation;
pub use form::Form;
pub use mask::{Mask, MaskWords};
pub use matcher::{Matcher, Read, Refusal};
