//! The source-independent description of a BPE tokenizer.

use super::base_symbols::BaseSymbols;
use super::merge_derivations::MergeDerivations;
use super::pretoken_model::PretokenModel;
use super::pretokenizer::pretoken_splitter::SectionFilter;
use super::pretokenizer::pretokenizer_config::SplitSteps;
use crate::Error;

/// The description into which every source is read, and from which the encoder is built.
pub(super) struct BpeSpec {
    /// The base symbols that merging starts from.
    pub(super) symbols: BaseSymbols,
    /// The derivations of the other tokens.
    pub(super) merges: MergeDerivations,
    /// The split steps of the pre-tokenizer, without added tokens.
    pub(super) split_steps: SplitSteps,
    /// Added tokens with their strings, which are cut out before anything else.
    pub(super) added: Vec<(String, u32)>,
    /// Strings that become one token if they are a pre-token, although merging does not make it.
    pub(super) whole_tokens: Vec<(Vec<u8>, u32)>,
    /// Names that no pre-token of a text may equal.
    pub(super) reserved: Vec<String>,
    /// The model that makes tokens of a pre-token. If it is not merging, there are no `merges`.
    pub(super) model: PretokenModel,
    /// `true` if encoding prepends a space.
    pub(super) prepends: bool,
    /// `true` if it does so after special tokens too.
    pub(super) prepends_after_special: bool,
    /// The texts that the normalizer leaves unchanged, unless all are.
    pub(super) filter: Option<SectionFilter>,
}

pub(super) fn refused(reason: &str) -> Error {
    Error::new(format!("canonical tokenization is not supported for this tokenizer: {reason}"))
        .hint("use tokenization=\"all\" with this vocabulary")
}
