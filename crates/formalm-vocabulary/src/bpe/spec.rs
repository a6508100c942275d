//! A tokenizer that merges, whatever file it was read from.

use super::base_symbols::Symbols;
use super::merge_derivations::Merges;
use super::pretokenizer_config::Divisions;
use crate::Error;

/// What every source of a tokenizer is read into, and all that an encoder is made of.
pub(super) struct Description {
    /// What is merged to begin with.
    pub(super) symbols: Symbols,
    /// What is made of it.
    pub(super) merges: Merges,
    /// How text is cut, added tokens aside.
    pub(super) divisions: Divisions,
    /// Texts that are cut out before anything else, and are tokens.
    pub(super) added: Vec<(String, u32)>,
    /// Texts that are one token where they are a piece, although merging does not make it.
    pub(super) wholes: Vec<(Vec<u8>, u32)>,
    /// Names that no piece of a text may be.
    pub(super) reserved: Vec<String>,
    /// Whether a space is put in front of text.
    pub(super) prepends: bool,
}

pub(super) fn refused(reason: &str) -> Error {
    Error::new(format!("canonical tokens of this tokenizer are not known exactly: {reason}"))
        .hint("use tokenization=\"all\" with this vocabulary")
}
