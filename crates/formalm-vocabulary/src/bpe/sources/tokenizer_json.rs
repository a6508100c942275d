//! Reader of BPE tokenizers in `tokenizer.json`. Whatever cannot be reproduced exactly is rejected
//! by name.

use std::borrow::Cow;

use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::Error;
use crate::bpe::base_symbols::{BaseSymbols, ByteTokens, byte_token_table};
use crate::bpe::merge_derivations::{MergeDerivations, characters};
use crate::bpe::pretoken_model::PretokenModel;
use crate::bpe::pretokenizer::pretoken_splitter::SectionFilter;
use crate::bpe::pretokenizer::pretokenizer_config::SplitSteps;
use crate::bpe::sources::{unigram, wordpiece};
use crate::bpe::spec::{BpeSpec, refused};
use crate::normalization::{NormalizerAnswers, TextFilter, TextNormalizer};
use crate::tokenizer_json::{
    AddedToken, BpeModel, PieceDecoding, TokenizerFile, VocabPieces, fallback_byte,
    is_byte_level_character, kind, steps,
};

/// Reads a file. Its normalizer is that of a library with the given answers to
/// [`normalizer_probes`](crate::normalization::normalizer_probes), or with the newest tables.
///
/// # Errors
///
/// The tokenizer is not BPE, or does something that we cannot reproduce exactly.
pub(in crate::bpe) fn read(
    data: &[u8],
    answers: Option<NormalizerAnswers<'_>>,
) -> Result<BpeSpec, Error> {
    let file = TokenizerFile::parse(data)?;
    check_model(&file.model)?;
    let (spelling, _) = PieceDecoding::of(&file)?;
    let (spaces, normalizer) = normalizer(&file, &spelling)?;
    let is_words = matches!(spelling, PieceDecoding::Words { .. });
    let split_steps = match is_words {
        true => wordpiece::split_steps(&file, &spelling)?,
        false => {
            let is_marked = |step: &&Value| {
                kind(step) == "Replace" && step["content"].as_str() == Some("\u{2581}")
            };
            let marked = steps(&file.normalizer, "normalizers").iter().any(is_marked);
            SplitSteps::read(&file.pre_tokenizer, marked)?
        }
    };
    if split_steps.byte_level != (spelling == PieceDecoding::ByteLevel) {
        return Err(refused("its pre-tokenizer and its decoder represent bytes differently")
            .at("pre_tokenizer"));
    }
    let text_filter = normalizer.filter(answers)?;
    let (added, added_separates) = added_texts(&file, spaces, text_filter.as_ref())?;
    let filter =
        text_filter.map(|text| SectionFilter { name: normalizer.name(), text, added_separates });
    if file.model.kind.as_deref() == Some("Unigram") {
        let bytes = unigram_bytes(&file)?;
        let (model, symbols) = unigram::of_tokenizer_json(&file, bytes)?;
        let added = added.iter().map(|token| (token.content.clone(), token.id)).collect();
        return Ok(BpeSpec {
            symbols,
            merges: MergeDerivations::none(),
            split_steps,
            added,
            whole_tokens: Vec::new(),
            reserved: Vec::new(),
            model,
            prepends: spaces.prepends,
            prepends_after_special: spaces.prepends_after_special,
            filter,
        });
    }
    if is_words {
        let VocabPieces::Map(pieces) = &file.model.vocab else {
            return Err(refused("its vocab must be a map from pieces to ids").at("model.vocab"));
        };
        if !added.is_empty() {
            return Err(refused("it has added tokens that match in text").at("added_tokens"));
        }
        let (model, symbols) = wordpiece::read(&file, pieces)?;
        return Ok(BpeSpec {
            symbols,
            merges: MergeDerivations::none(),
            split_steps,
            added: Vec::new(),
            whole_tokens: Vec::new(),
            reserved: Vec::new(),
            model,
            prepends: true,
            prepends_after_special: false,
            filter,
        });
    }
    let VocabPieces::Map(pieces) = &file.model.vocab else {
        return Err(refused("its vocab must be a map from pieces to ids").at("model.vocab"));
    };
    let mut single = characters(pieces);
    if split_steps.byte_level {
        // Text is mapped to characters that stand for bytes; the model never sees others.
        single.retain(|&character, _| is_byte_level_character(character));
    }
    let merges = MergeDerivations::read(file.model.merges, pieces, &single)?;
    let symbols = match split_steps.byte_level {
        true => BaseSymbols::byte_level(&single, &spelling)?,
        false => BaseSymbols::characters(&single, Some(byte_pieces(pieces)?))?,
    };
    let (mut whole_tokens, mut reserved) = (Vec::new(), Vec::new());
    let special: FxHashSet<u32> =
        file.added_tokens.iter().filter(|token| token.special).map(|token| token.id).collect();
    for (piece, id) in pieces.iter().filter(|_| file.model.ignore_merges) {
        let mut bytes = Vec::new();
        // A piece spelled in other characters is no part of any text.
        if merges.adjacency.is_reachable(*id)
            || spelling.spell(piece, &mut bytes).is_err()
            || bytes.is_empty()
        {
            continue;
        }
        if special.contains(id) {
            reserved.push(String::from_utf8_lossy(&bytes).into_owned());
        } else {
            whole_tokens.push((bytes, *id));
        }
    }
    let added = added.iter().map(|token| (token.content.clone(), token.id)).collect();
    Ok(BpeSpec {
        symbols,
        merges,
        split_steps,
        added,
        whole_tokens,
        reserved,
        model: PretokenModel::Merges,
        prepends: spaces.prepends,
        prepends_after_special: spaces.prepends_after_special,
        filter,
    })
}

/// Returns the byte tokens of a Unigram model, if it spells unknown characters in bytes.
fn unigram_bytes(file: &TokenizerFile<'_>) -> Result<Option<ByteTokens>, Error> {
    let VocabPieces::Scored(pieces) = &file.model.vocab else { return Ok(None) };
    if !file.model.byte_fallback {
        return Ok(None);
    }
    let bytes =
        pieces.iter().zip(0u32..).filter_map(|((piece, _), id)| Some((fallback_byte(piece)?, id)));
    let missing = |byte: u8| refused(&format!("it has no piece <{byte:#04X}> for a byte"));
    byte_token_table(bytes).map(Some).map_err(missing)
}

/// Returns the pieces of single bytes, such as `<0x0A>`.
fn byte_pieces(pieces: &[(Cow<'_, str>, u32)]) -> Result<ByteTokens, Error> {
    byte_token_table(pieces.iter().filter_map(|(piece, id)| Some((fallback_byte(piece)?, *id))))
        .map_err(|byte| refused(&format!("it has no piece <{byte:#04X}> for a byte")))
}

fn check_model(model: &BpeModel<'_>) -> Result<(), Error> {
    let kind = model.kind.as_deref().unwrap_or("BPE");
    let why = match kind {
        "BPE" | "Unigram" | "WordPiece" => None,
        _ => Some("how it tokenizes is unknown"),
    };
    if let Some(why) = why {
        return Err(refused(&format!("the model type is {kind}: {why}")).at("model.type"));
    }
    if model.dropout.is_some_and(|chance| chance > 0.0) {
        return Err(refused("it drops merges at random").at("model.dropout"));
    }
    Ok(())
}

/// The rule by which encoding prepends a space to texts.
#[derive(Clone, Copy, Default)]
struct PrependedSpaces {
    prepends: bool,
    prepends_after_special: bool,
    /// It does so in front of every text, not only of one that begins otherwise, and after added
    /// tokens.
    in_normalizer: bool,
}

/// Returns the added tokens that match in text, and whether they are searched for in the raw text,
/// so that the sections between them are normalized one by one. Special tokens do not match: their
/// names in a text are ordinary text.
fn added_texts<'f>(
    file: &'f TokenizerFile<'_>,
    spaces: PrependedSpaces,
    filter: Option<&TextFilter>,
) -> Result<(Vec<&'f AddedToken>, bool), Error> {
    let mut texts: Vec<&AddedToken> =
        file.added_tokens.iter().filter(|token| !token.special).collect();
    if !steps(&file.normalizer, "normalizers").is_empty() {
        // No text contains the mark of spaces itself.
        let is_mark = |token: &AddedToken| token.content.contains('\u{2581}');
        texts.retain(|token| token.normalized || !is_mark(token));
    }
    for token in &texts {
        let strange = token.lstrip || token.rstrip || token.single_word || token.content.is_empty();
        if strange {
            let message =
                format!("the added token {:?} depends on the surrounding text", token.content);
            return Err(refused(&message).at("added_tokens"));
        }
    }
    if spaces.in_normalizer && !texts.is_empty() {
        return Err(refused(
            "it has added tokens that match in text and a normalizer that prepends a space",
        )
        .at("added_tokens"));
    }
    let Some(filter) = filter else { return Ok((texts, false)) };
    let (in_normalized, in_raw): (Vec<&AddedToken>, Vec<&AddedToken>) =
        texts.iter().copied().partition(|token| token.normalized);
    if let (Some(one), Some(other)) = (in_normalized.first(), in_raw.first()) {
        let message = format!(
            "the added token {:?} matches in normalized text, and {:?} in raw text",
            one.content, other.content
        );
        return Err(refused(&message).at("added_tokens"));
    }
    if let Some(token) =
        in_normalized.iter().find(|token| filter.first_change(&token.content).is_some())
    {
        let message =
            format!("the normalizer changes the content of the added token {:?}", token.content);
        return Err(refused(&message).at("added_tokens"));
    }
    let added_separates = in_normalized.is_empty();
    Ok((texts, added_separates))
}

/// Returns how spaces are prepended, and the steps that change text. The others write the mark of
/// spaces, which decoding undoes.
///
/// # Errors
///
/// The normalizer has a step of another kind.
fn normalizer(
    file: &TokenizerFile<'_>,
    spelling: &PieceDecoding,
) -> Result<(PrependedSpaces, TextNormalizer), Error> {
    let (mut spaces, mut replaces) = (PrependedSpaces::default(), false);
    let mut normalizer = TextNormalizer::default();
    for step in steps(&file.normalizer, "normalizers") {
        if normalizer.add(step).map_err(|error| refused(&error.message).at("normalizer"))? {
            continue;
        }
        match kind(step) {
            "Prepend" if step["prepend"].as_str() == Some("\u{2581}") => {
                spaces = PrependedSpaces {
                    prepends: true,
                    prepends_after_special: true,
                    in_normalizer: true,
                };
            }
            "Replace"
                if step["pattern"]["String"].as_str() == Some(" ")
                    && step["content"].as_str() == Some("\u{2581}") =>
            {
                replaces = true;
            }
            other => {
                let message = format!("its normalizer has the step {other}, which changes text");
                return Err(refused(&message).at("normalizer"));
            }
        }
    }
    for step in steps(&file.pre_tokenizer, "pretokenizers") {
        if kind(step) == "Metaspace" {
            replaces = true;
            let scheme = step["prepend_scheme"].as_str().unwrap_or("always");
            spaces.prepends |= scheme != "never";
            spaces.prepends_after_special |= scheme == "always";
        }
    }
    let is_words = matches!(spelling, PieceDecoding::Words { .. });
    let is_bert = |step: &&Value| kind(step) == "BertNormalizer";
    if !is_words && steps(&file.normalizer, "normalizers").iter().any(is_bert) {
        return Err(refused("its normalizer is for words, but its decoder does not write words")
            .at("normalizer"));
    }
    if replaces == (is_words || *spelling == PieceDecoding::ByteLevel) {
        return Err(
            refused("its encoder and its decoder treat spaces differently").at("normalizer")
        );
    }
    Ok((spaces, normalizer))
}
