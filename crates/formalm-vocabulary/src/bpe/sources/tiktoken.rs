//! Reader of tiktoken encodings: a pattern whose matches are the pre-tokens, and a rank for every
//! token.
//!
//! A pre-token that is a token is taken whole.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use crate::Error;
use crate::base64::base64;
use crate::bpe::base_symbols::BaseSymbols;
use crate::bpe::merge_derivations::MergeDerivations;
use crate::bpe::pretoken_model::PretokenModel;
use crate::bpe::pretokenizer::pretokenizer_config::SplitSteps;
use crate::bpe::rank_merges::{RankedToken, rules_of_all_splits};
use crate::bpe::spec::{BpeSpec, refused};
use crate::token_byte_table::MAX_IDS;
use crate::tokenizer_json::PieceText;

/// A tiktoken encoding as JSON. Special tokens are no text and left out.
#[derive(serde::Deserialize)]
struct TiktokenEncoding {
    pattern: String,
    ranks: TokenRanks,
    /// The id of a token is its rank plus this offset.
    offset: u32,
}

/// Tokens, decoded from base64, and their ranks.
struct TokenRanks(Vec<(Vec<u8>, u32)>);

impl<'de> Deserialize<'de> for TokenRanks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TokenRanks, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = TokenRanks;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map from tokens to ranks")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TokenRanks, A::Error> {
                let mut ranks = Vec::with_capacity(1 << 17);
                while let Some((PieceText(token), rank)) = map.next_entry()? {
                    let token = base64(token.as_bytes())
                        .ok_or_else(|| A::Error::custom("a token that is not base 64"))?;
                    ranks.push((token, rank));
                }
                Ok(TokenRanks(ranks))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// Reads an encoding.
///
/// # Errors
///
/// The data is not laid out as an encoding, or does something that we cannot reproduce exactly.
pub(in crate::bpe) fn read(data: &[u8]) -> Result<BpeSpec, Error> {
    let encoding: TiktokenEncoding = serde_json::from_slice(data)
        .map_err(|error| Error::new(format!("invalid encoding file: {error}")))?;
    let split_steps = SplitSteps::of_pattern(&encoding.pattern)?;
    let offset = encoding.offset;
    let mut tokens = Vec::with_capacity(encoding.ranks.0.len());
    for (text, rank) in encoding.ranks.0 {
        let token = rank.checked_add(offset).filter(|&token| (token as usize) < MAX_IDS);
        let token =
            token.ok_or_else(|| Error::new(format!("token ids must be less than {MAX_IDS}")))?;
        tokens.push(RankedToken { text, token, rank });
    }
    tokens.sort_unstable_by_key(|each| each.rank);
    if let Some(pair) = tokens.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
        return Err(refused(&format!("two tokens have the rank {}", pair[0].rank)));
    }
    if tokens.iter().any(|each| each.text.is_empty()) {
        return Err(refused("one of its tokens is empty"));
    }
    let single = tokens.iter().filter(|each| each.text.len() == 1);
    let symbols = BaseSymbols::of_bytes(single.map(|each| (each.text[0], each.token)))?;
    let rules = rules_of_all_splits(&tokens)?;
    let merges = MergeDerivations::new(&tokens, &rules, |each, out| {
        symbols.read(&each.text, out);
        (each.token, true)
    });
    let unreachable = |each: &RankedToken| !merges.adjacency.is_reachable(each.token);
    let whole_tokens = tokens.into_iter().filter(unreachable).map(|each| (each.text, each.token));
    Ok(BpeSpec {
        whole_tokens: whole_tokens.collect(),
        symbols,
        split_steps,
        added: Vec::new(),
        reserved: Vec::new(),
        model: PretokenModel::Merges,
        prepends: false,
        prepends_after_special: false,
        filter: None,
        merges,
    })
}
