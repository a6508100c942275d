//! Reader of WordPiece models in `tokenizer.json`.
//!
//! Decoding writes a space before every word, and none elsewhere. The split step of such a tokenizer
//! matches words together with that space; text that it does not match is not given back.

use std::borrow::Cow;

use formalm_core::CharSet;
use formalm_regex::PatternNode;
use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::Error;
use crate::bpe::base_symbols::BaseSymbols;
use crate::bpe::pretoken_model::PretokenModel;
use crate::bpe::pretokenizer::pretokenizer_config::{PUNCTUATION, SplitSteps, character_set};
use crate::bpe::spec::refused;
use crate::normalization::{IDEOGRAPHS, white_space};
use crate::tokenizer_json::{PieceDecoding, TokenizerFile, kind, steps};
use crate::unigram::UnigramPiece;
use crate::wordpiece::WordPieceModel;

/// The length in characters of the longest word that is not unknown, by default.
const MAX_WORD_CHARACTERS: u32 = 100;

/// Reads the model.
///
/// # Errors
///
/// The model does something that we cannot reproduce exactly.
pub(in crate::bpe) fn read(
    file: &TokenizerFile<'_>,
    pieces: &[(Cow<'_, str>, u32)],
) -> Result<(PretokenModel, BaseSymbols), Error> {
    let prefix = file.model.continuing_subword_prefix.as_deref().unwrap_or("##");
    let hidden: FxHashSet<u32> = file.added_tokens.iter().map(|token| token.id).collect();
    let unknown = file.model.unk_token.as_deref().unwrap_or("[UNK]");
    let (mut first, mut further) = (Vec::new(), Vec::new());
    for (text, token) in pieces {
        let has_text = !hidden.contains(token) && text != unknown;
        let piece = |text: &str| UnigramPiece {
            text: text.as_bytes().to_vec(),
            score: 0.0,
            token: *token,
            has_text,
        };
        if text.is_empty() || text.len() > 255 {
            return Err(refused("a piece is empty or too long").at("model.vocab"));
        }
        // A word may begin with the mark of the other pieces.
        match text.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
            Some(rest) if !prefix.is_empty() => {
                further.push(piece(rest));
                first.push(UnigramPiece { has_text: false, ..piece(text) });
            }
            _ => first.push(piece(text)),
        }
    }
    let model = WordPieceModel::new(first, further);
    Ok((
        PretokenModel::WordPiece(Box::new(model)),
        BaseSymbols::Characters(Default::default(), None),
    ))
}

/// Returns the split step: words with the space that decoding writes before them.
///
/// # Errors
///
/// The pre-tokenizer is not known.
pub(in crate::bpe) fn split_steps(
    file: &TokenizerFile<'_>,
    spelling: &PieceDecoding,
) -> Result<SplitSteps, Error> {
    let PieceDecoding::Words { cleans_up, .. } = spelling else {
        return Err(refused("its decoder does not write words").at("decoder"));
    };
    let longest = file.model.max_input_chars_per_word.unwrap_or(MAX_WORD_CHARACTERS);
    if longest == 0 {
        return Err(refused("every word is too long for it").at("model"));
    }
    let steps_of = |value: &Value, list: &str| -> Vec<String> {
        steps(value, list).into_iter().map(|step| kind(step).to_owned()).collect()
    };
    let (mut word, single) = match &steps_of(&file.pre_tokenizer, "pretokenizers")[..] {
        [one] if one == "BertPreTokenizer" => {
            let punctuation = character_set(PUNCTUATION)?;
            (punctuation.union(&white_space()).complement(), punctuation)
        }
        [one] if one == "WhitespaceSplit" => (white_space().complement(), CharSet::empty()),
        _ => {
            return Err(refused(
                "its pre-tokenizer is neither BertPreTokenizer nor WhitespaceSplit",
            )
            .at("pre_tokenizer"));
        }
    };
    let mut single = single;
    for step in steps(&file.normalizer, "normalizers") {
        if kind(step) != "BertNormalizer" {
            continue;
        }
        let on = |name: &str| step[name].as_bool().unwrap_or(true);
        if on("handle_chinese_chars") {
            let ideographs = CharSet::from_ranges(IDEOGRAPHS);
            word = word.difference(&ideographs);
            single = single.union(&ideographs);
        }
    }
    let space = || PatternNode::Class(CharSet::single(' '));
    // Decoding drops the space before these.
    let joined = character_set("[.,?!]")?;
    let repeat = |set: &CharSet, min: u32, max: u32| PatternNode::Repeat {
        node: Box::new(PatternNode::Class(set.clone())),
        min,
        max: Some(max),
        lazy: false,
    };
    let mut choices = Vec::new();
    let is_whole = *cleans_up && word.contains('.');
    if *cleans_up {
        if is_whole {
            // A word that begins with a mark could begin a text only.
            let rest = repeat(&word, 0, longest.saturating_sub(1));
            let first = PatternNode::Class(word.difference(&joined));
            choices.push(PatternNode::Concat(vec![space(), first, rest]));
        } else {
            choices.push(PatternNode::Class(joined.intersection(&single)));
            single = single.difference(&joined);
        }
    }
    if !is_whole {
        choices.push(PatternNode::Concat(vec![space(), repeat(&word, 1, longest)]));
    }
    choices.push(PatternNode::Concat(vec![space(), PatternNode::Class(single)]));
    SplitSteps::of_matches(&PatternNode::Alternation(choices))
}
