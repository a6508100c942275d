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
use crate::bpe::pretokenizer::pretokenizer_config::{SplitSteps, prepend_scheme};
use crate::bpe::sources::{unigram, wordpiece};
use crate::bpe::spec::{BpeSpec, refused};
use crate::normalization::{InsertedSpace, NormalizerAnswers, SpaceMarks, TextNormalizer};
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
            let list = steps(&file.normalizer, "normalizers");
            let is_marked = spelling.reads_marks() && list.into_iter().any(is_marking);
            SplitSteps::read(&file.pre_tokenizer, is_marked)?
        }
    };
    if split_steps.byte_level != (spelling == PieceDecoding::ByteLevel) {
        return Err(refused("its pre-tokenizer and its decoder represent bytes differently")
            .at("pre_tokenizer"));
    }
    let (text, rules) = normalizer.filter(answers)?;
    let mut filter = SectionFilter { name: normalizer.name(), text, rules, added_separates: false };
    // A continued text may begin with white space; only after the inserted space it is stripped.
    filter.rules.begins_with_space = spaces.prepends && filter.rules.strips_start;
    let added = added_texts(&file, spaces, &mut filter)?;
    let is_needed = filter.text.is_some() || !filter.rules.is_empty();
    let filter = is_needed.then_some(filter);
    if file.model.kind.as_deref() == Some("Unigram") {
        if split_steps.byte_level {
            return Err(refused("its pieces are segmented over bytes").at("model.type"));
        }
        let bytes = unigram_bytes(&file)?;
        let marks_spaces = spelling.reads_marks();
        let (model, symbols) = unigram::of_tokenizer_json(&file, marks_spaces, bytes)?;
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
    /// It does so after added tokens, unless the text goes on with a space.
    before_sections: bool,
}

/// Returns the added tokens that match in text, and enters their effect on the sections between them
/// into `filter`. Special tokens do not match: their names in a text are ordinary text.
fn added_texts<'f>(
    file: &'f TokenizerFile<'_>,
    spaces: PrependedSpaces,
    filter: &mut SectionFilter,
) -> Result<Vec<&'f AddedToken>, Error> {
    let mut texts: Vec<&AddedToken> =
        file.added_tokens.iter().filter(|token| !token.special).collect();
    if !steps(&file.normalizer, "normalizers").is_empty() {
        // No text contains the mark of spaces itself.
        let is_mark = |token: &AddedToken| token.content.contains('\u{2581}');
        texts.retain(|token| token.normalized || !is_mark(token));
    }
    let begins_white = |token: &&&AddedToken| token.content.starts_with(char::is_whitespace);
    let white = texts.iter().find(begins_white).copied();
    for token in &texts {
        let absorbs_white = token.rstrip && white.is_some();
        let strange = token.lstrip || token.single_word || token.content.is_empty();
        if strange || absorbs_white {
            let message =
                format!("the added token {:?} depends on the surrounding text", token.content);
            return Err(refused(&message).at("added_tokens"));
        }
    }
    let Some(any) = texts.first() else { return Ok(texts) };
    let is_separate = |token: &&AddedToken| !token.normalized;
    let added_separates = is_separate(any);
    if spaces.in_normalizer
        && let Some(token) = texts.iter().find(|token| token.normalized)
    {
        // The library prepends a space to the token's own string.
        let message = format!(
            "the added token {:?} matches in normalized text, and the normalizer prepends a space",
            token.content
        );
        return Err(refused(&message).at("added_tokens"));
    }
    filter.rules.added_separates = added_separates;
    filter.added_separates = added_separates;
    filter.rules.inserted = match () {
        () if spaces.in_normalizer => InsertedSpace::Always,
        () if spaces.before_sections => InsertedSpace::UnlessThere,
        () => InsertedSpace::Never,
    };
    filter.rules.begins_with_space = spaces.prepends;
    if texts.iter().any(|token| token.rstrip) {
        let rule = |token: &&AddedToken| (token.content.chars().collect(), token.rstrip);
        filter.rules.added = texts.iter().map(rule).collect();
    }
    if filter.text.is_none() && filter.rules.is_empty() {
        return Ok(texts);
    }
    if let Some(other) = texts.iter().find(|token| is_separate(token) != added_separates) {
        let (raw, normalized) = if added_separates { (any, other) } else { (other, any) };
        let message = format!(
            "the added token {:?} matches in normalized text, and {:?} in raw text",
            normalized.content, raw.content
        );
        return Err(refused(&message).at("added_tokens"));
    }
    let is_changed = |token: &&&AddedToken| {
        let text = filter.text.as_ref().and_then(|filter| filter.first_change(&token.content));
        text.or_else(|| filter.rules.first_change(&token.content)).is_some()
    };
    if !added_separates && let Some(token) = texts.iter().find(is_changed) {
        let message =
            format!("the normalizer changes the content of the added token {:?}", token.content);
        return Err(refused(&message).at("added_tokens"));
    }
    Ok(texts)
}

/// Returns how spaces are prepended, and the steps that change text. The others write the mark of
/// spaces, which decoding undoes.
///
/// # Errors
///
/// The normalizer has a step of another kind, or steps that may restore each other's changes.
fn normalizer(
    file: &TokenizerFile<'_>,
    spelling: &PieceDecoding,
) -> Result<(PrependedSpaces, TextNormalizer), Error> {
    let mut spaces = PrependedSpaces::default();
    let mut normalizer = TextNormalizer::default();
    let reads_marks = spelling.reads_marks();
    let mut marks = if reads_marks { SpaceMarks::Later } else { SpaceMarks::None };
    let list = steps(&file.normalizer, "normalizers");
    for step in &list {
        match kind(step) {
            "Prepend" if reads_marks && step["prepend"].as_str() == Some("\u{2581}") => {
                spaces = PrependedSpaces {
                    prepends: true,
                    prepends_after_special: true,
                    in_normalizer: true,
                    before_sections: false,
                };
            }
            "Replace" if is_marking(step) && reads_marks => marks = SpaceMarks::Written,
            other => {
                let is_known = normalizer.add(step, marks);
                let is_known =
                    is_known.map_err(|error| refused(&error.message).at("normalizer"))?;
                if !is_known {
                    let message =
                        format!("its normalizer has the step {other}, which changes text");
                    return Err(refused(&message).at("normalizer"));
                }
            }
        }
    }
    for step in steps(&file.pre_tokenizer, "pretokenizers") {
        if kind(step) == "Metaspace" {
            marks = SpaceMarks::Written;
            let scheme = prepend_scheme(step);
            spaces.prepends |= scheme != "never";
            spaces.prepends_after_special |= scheme == "always";
            spaces.before_sections |= scheme == "always";
        }
    }
    if reads_marks != (marks == SpaceMarks::Written) {
        return Err(
            refused("its encoder and its decoder treat spaces differently").at("normalizer")
        );
    }
    if matches!(spelling, PieceDecoding::Words { .. }) {
        normalizer.keep_ideographs();
        if normalizer.rules().changes_sections() {
            let message = format!(
                "its normalizer has the steps {}, and decoding writes words with spaces",
                normalizer.name()
            );
            return Err(refused(&message).at("normalizer"));
        }
    }
    if spaces.in_normalizer && normalizer.maps_clusters() {
        return Err(refused("its normalizer prepends a space and has the step Precompiled")
            .at("normalizer"));
    }
    if spaces.in_normalizer && normalizer.rules().strips_start {
        return Err(refused("its normalizer strips the start of a text, and a space is put there")
            .at("normalizer"));
    }
    normalizer.check().map_err(|error| refused(&error.message).at("normalizer"))?;
    Ok((spaces, normalizer))
}

/// Returns `true` for the step that writes spaces as marks.
fn is_marking(step: &Value) -> bool {
    kind(step) == "Replace"
        && step["pattern"]["String"].as_str() == Some(" ")
        && step["content"].as_str() == Some("\u{2581}")
}
