//! Reader of SentencePiece models: scored pieces over characters with a mark for each space. A BPE
//! model merges them, highest score first.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Error;
use crate::bpe::base_symbols::{BaseSymbols, ByteTokens, SPACE, byte_token_table};
use crate::bpe::merge_derivations::MergeDerivations;
use crate::bpe::pretoken_model::PretokenModel;
use crate::bpe::pretokenizer::pretoken_splitter::SectionFilter;
use crate::bpe::pretokenizer::pretokenizer_config::SplitSteps;
use crate::bpe::rank_merges::{RankedToken, rules_of_all_splits};
use crate::bpe::sources::unigram;
use crate::bpe::spec::{BpeSpec, refused};
use crate::normalization::{ChangedPairs, SectionRules, TextFilter};
use crate::sentencepiece::{
    BPE, BYTE, NORMAL, ScoredPiece, SentencePieceModel, UNIGRAM, UNUSED, USER_DEFINED,
    read_charsmap,
};
use crate::token_byte_table::MAX_IDS;
use crate::tokenizer_json::fallback_byte;

/// Reads a model.
///
/// # Errors
///
/// The data is not a model, or the model does something that we cannot reproduce exactly.
pub(in crate::bpe) fn read(data: &[u8]) -> Result<BpeSpec, Error> {
    let model = SentencePieceModel::read(data)?;
    model.check()?;
    let filter = model.section_filter()?;
    if model.kind == UNIGRAM {
        let bytes = if model.byte_fallback { Some(model.bytes()?) } else { None };
        let (own, symbols) = unigram::of_sentencepiece(&model, bytes)?;
        return Ok(BpeSpec {
            symbols,
            merges: MergeDerivations::none(),
            split_steps: SplitSteps::none(),
            added: Vec::new(),
            whole_tokens: Vec::new(),
            reserved: Vec::new(),
            model: own,
            prepends: model.dummy_prefix,
            prepends_after_special: model.dummy_prefix,
            filter,
        });
    }
    let of_kind = |kind: i64| {
        let pieces = model.pieces.iter().zip(0u32..);
        // Text has marks instead of spaces when pieces are matched.
        pieces.filter(move |(piece, _)| piece.kind == kind && !piece.text.contains(' '))
    };
    let added: Vec<(&str, u32)> =
        of_kind(USER_DEFINED).map(|(piece, token)| (piece.text, token)).collect();
    let mut characters: FxHashMap<char, u32> = FxHashMap::default();
    for (piece, token) in of_kind(NORMAL) {
        if let Some(character) = single(piece.text) {
            characters.insert(character, token);
        }
    }
    let frozen: FxHashSet<char> = added.iter().filter_map(|(text, _)| single(text)).collect();
    for (piece, _) in of_kind(NORMAL) {
        let strange = |c: &char| !characters.contains_key(c) && !frozen.contains(c);
        if let Some(character) = piece.text.chars().find(strange) {
            let message =
                format!("{character:?} in the piece {:?} is not itself a piece", piece.text);
            return Err(refused(&message));
        }
    }
    let bytes = if model.byte_fallback { Some(model.bytes()?) } else { None };
    let symbols = BaseSymbols::characters(&characters, bytes)?;
    let tokens = ranked(of_kind(NORMAL))?;
    let rules = rules_of_all_splits(&tokens)?;
    let merges = MergeDerivations::new(&tokens, &rules, |each, out| {
        let text = std::str::from_utf8(&each.text).unwrap_or_default();
        out.extend(text.chars().map_while(|character| characters.get(&character)));
        (each.token, out.len() == text.chars().count())
    });
    // A user-defined piece may contain characters that are no pieces.
    let added = added.iter().map(|(text, token)| (text.replace(SPACE, " "), *token)).collect();
    Ok(BpeSpec {
        symbols,
        merges,
        split_steps: SplitSteps::none(),
        added,
        whole_tokens: Vec::new(),
        reserved: Vec::new(),
        model: PretokenModel::Merges,
        prepends: model.dummy_prefix,
        prepends_after_special: model.dummy_prefix,
        filter,
    })
}

/// Returns the character of a string of exactly one character.
fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

/// Ranks pieces by score. Equal scores are equal ranks, so that position decides.
fn ranked<'a>(
    pieces: impl Iterator<Item = (&'a ScoredPiece<'a>, u32)>,
) -> Result<Vec<RankedToken>, Error> {
    // Zeros are equal whatever their sign.
    let mut list: Vec<(f32, &str, u32)> =
        pieces.map(|(piece, token)| (piece.score + 0.0, piece.text, token)).collect();
    if list.iter().any(|(score, _, _)| score.is_nan()) {
        return Err(refused("one of its scores is NaN"));
    }
    list.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (mut rank, mut last) = (0, None);
    let mut tokens = Vec::with_capacity(list.len());
    for (score, text, token) in list {
        rank += u32::from(last.is_some_and(|last| last != score));
        last = Some(score);
        tokens.push(RankedToken { text: text.as_bytes().to_vec(), token, rank });
    }
    Ok(tokens)
}

impl SentencePieceModel<'_> {
    /// Rejects, by name, everything that a model does to text besides merging.
    fn check(&self) -> Result<(), Error> {
        let kind = match self.kind {
            BPE | UNIGRAM => None,
            3 => Some("it is a model of whole words"),
            4 => Some("it is a model of single characters"),
            _ => Some("it is a model of an unknown type"),
        };
        if let Some(kind) = kind {
            return Err(refused(kind));
        }
        // A Unigram model ignores unused pieces.
        let is_unused = |piece: &ScoredPiece<'_>| piece.kind == UNUSED;
        let unused = self.kind == BPE && self.pieces.iter().any(is_unused);
        let reasons = [
            (!self.marks_spaces, "it does not mark spaces"),
            (self.suffixes_spaces, "it puts spaces after words"),
            (unused, "it splits pieces marked as unused"),
            (self.pieces.len() > MAX_IDS, "it has too many pieces"),
        ];
        match reasons.iter().find(|(holds, _)| *holds) {
            Some((_, reason)) => Err(refused(reason)),
            None => Ok(()),
        }
    }

    /// Returns the texts that the normalizer leaves unchanged, unless all are.
    ///
    /// # Errors
    ///
    /// The normalizer does something that we cannot reproduce exactly.
    fn section_filter(&self) -> Result<Option<SectionFilter>, Error> {
        let user_defined: Vec<String> = self
            .pieces
            .iter()
            .filter(|piece| piece.kind == USER_DEFINED)
            .map(|piece| piece.text.replace(SPACE, " "))
            .collect();
        // Pieces that are cut out of the text before merging are not normalized. A Unigram model
        // does not cut them out, but its normalizer skips them, too.
        let mut filter = SectionFilter { added_separates: true, ..SectionFilter::default() };
        let mut names = Vec::new();
        if self.trims_spaces {
            if let Some(piece) = user_defined.iter().find(|text| text.contains(' ')) {
                return Err(refused(&format!(
                    "it removes spaces, and the user-defined piece {piece:?} contains some"
                )));
            }
            names.push("remove_extra_whitespaces");
            filter.rules.collapses_spaces = true;
            filter.rules.strips_first_spaces = !self.dummy_prefix;
            filter.rules.strips_last_spaces = true;
        }
        if !self.charsmap.is_empty() {
            names.push(if self.normalization.is_empty() { "charsmap" } else { self.normalization });
            let map = read_charsmap(self.charsmap)
                .ok_or_else(|| refused("its character map cannot be read"))?;
            let mut changed = ChangedPairs::new(&map).map_err(|reason| refused(&reason))?;
            if let Some(piece) = user_defined.iter().find(|text| {
                let is_cut = self.kind == BPE;
                text.starts_with(|c| changed.ends(c)) || !is_cut && changed.changes(text)
            }) {
                return Err(refused(&format!(
                    "its normalizer changes characters of the user-defined piece {piece:?}"
                )));
            }
            if self.kind == UNIGRAM {
                protect(&user_defined, &mut changed, &mut filter.rules)?;
            }
            let too_many = || refused("its character map has too many classes of characters");
            filter.text = Some(TextFilter::of_pairs(&changed).ok_or_else(too_many)?);
            filter.added_separates = self.kind == BPE;
        }
        filter.name = names.join(", ");
        Ok((!names.is_empty()).then_some(filter))
    }

    /// Returns the tokens of all bytes.
    fn bytes(&self) -> Result<ByteTokens, Error> {
        let pieces = self.pieces.iter().zip(0u32..).filter(|(piece, _)| piece.kind == BYTE);
        byte_token_table(
            pieces.filter_map(|(piece, token)| Some((fallback_byte(piece.text)?, token))),
        )
        .map_err(|byte| refused(&format!("it has no piece <{byte:#04X}> for a byte")))
    }
}

/// Moves the pairs that begin with the last character of a user-defined piece from the filter to the
/// rules, where these pieces are exempt.
fn protect(
    user_defined: &[String],
    changed: &mut ChangedPairs,
    rules: &mut SectionRules,
) -> Result<(), Error> {
    let pieces: Vec<Vec<char>> = user_defined
        .iter()
        .filter(|text| !text.is_empty())
        .map(|text| text.chars().collect())
        .collect();
    let lasts: FxHashSet<char> = pieces.iter().filter_map(|text| text.last().copied()).collect();
    let lasts: Vec<char> = lasts.into_iter().filter(|&last| changed.begins(last)).collect();
    if lasts.is_empty() {
        return Ok(());
    }
    let overlaps = |one: &[char], other: &[char]| {
        let is_inside = one != other && one.windows(other.len()).any(|part| part == other);
        is_inside || (1..one.len().min(other.len())).any(|size| one.ends_with(&other[..size]))
    };
    if let Some((one, _)) = pieces
        .iter()
        .flat_map(|one| pieces.iter().map(move |other| (one, other)))
        .find(|(one, other)| overlaps(one, other))
    {
        let text: String = one.iter().collect();
        return Err(refused(&format!(
            "its normalizer changes characters, and the user-defined piece {text:?} overlaps another"
        )));
    }
    for last in lasts {
        for second in changed.pairs.remove(&last).unwrap_or_default() {
            rules.replaced.push(vec![last, second]);
        }
    }
    if rules.replaced.len() > MAX_PROTECTED_PAIRS {
        return Err(refused("its normalizer changes characters after user-defined pieces"));
    }
    rules.replaced.sort_unstable();
    rules.protected = pieces;
    Ok(())
}

/// Maximum number of changed pairs after user-defined pieces. Chosen, not measured.
const MAX_PROTECTED_PAIRS: usize = 200;
