//! Tokenizers as tiktoken has them: a pattern whose matches are the pieces of text, and a rank for
//! every token. A piece that is a token is taken whole.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use crate::Error;
use crate::bpe::base_symbols::Symbols;
use crate::bpe::merge_derivations::Merges;
use crate::bpe::pretokenizer_config::Divisions;
use crate::bpe::rank_merges::{Ranked, every_split};
use crate::bpe::spec::{Description, refused};
use crate::token_bytes::MOST_IDS;
use crate::tokenizer_json::Text;

/// A tiktoken encoding written as JSON; special tokens are no text.
#[derive(serde::Deserialize)]
struct Encoding {
    pattern: String,
    ranks: Ranks,
    /// Added to the rank of a token it is the id.
    offset: u32,
}

/// Tokens in base 64, and their ranks.
struct Ranks(Vec<(Vec<u8>, u32)>);

impl<'de> Deserialize<'de> for Ranks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ranks, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Ranks;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map from tokens to ranks")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ranks, A::Error> {
                let mut ranks = Vec::with_capacity(1 << 17);
                while let Some((Text(token), rank)) = map.next_entry()? {
                    let token = base64(token.as_bytes())
                        .ok_or_else(|| A::Error::custom("a token that is not base 64"))?;
                    ranks.push((token, rank));
                }
                Ok(Ranks(ranks))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// Reads an encoding.
///
/// # Errors
///
/// It is not laid out as one, or does something that we cannot follow exactly.
pub(in crate::bpe) fn read(data: &[u8]) -> Result<Description, Error> {
    let encoding: Encoding = serde_json::from_slice(data)
        .map_err(|error| Error::new(format!("the encoding cannot be read: {error}")))?;
    let divisions = Divisions::of_pattern(&encoding.pattern)?;
    let offset = encoding.offset;
    let mut tokens = Vec::with_capacity(encoding.ranks.0.len());
    for (text, rank) in encoding.ranks.0 {
        let token = rank.checked_add(offset).filter(|&token| (token as usize) < MOST_IDS);
        let token = token.ok_or_else(|| Error::new(format!("ids are beyond {MOST_IDS}")))?;
        tokens.push(Ranked { text, token, rank });
    }
    tokens.sort_unstable_by_key(|each| each.rank);
    if let Some(pair) = tokens.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
        return Err(refused(&format!("two tokens have the rank {}", pair[0].rank)));
    }
    if tokens.iter().any(|each| each.text.is_empty()) {
        return Err(refused("one of its tokens is empty"));
    }
    let single = tokens.iter().filter(|each| each.text.len() == 1);
    let symbols = Symbols::of_bytes(single.map(|each| (each.text[0], each.token)))?;
    let rules = every_split(&tokens)?;
    let merges = Merges::new(&tokens, &rules, |each, out| {
        symbols.read(&each.text, out);
        (each.token, true)
    });
    let unreachable = |each: &Ranked| !merges.relation.is_reachable(each.token);
    let wholes = tokens.into_iter().filter(unreachable).map(|each| (each.text, each.token));
    Ok(Description {
        wholes: wholes.collect(),
        symbols,
        divisions,
        added: Vec::new(),
        reserved: Vec::new(),
        prepends: false,
        merges,
    })
}

/// The bytes that are written in base 64; none if it is not.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let end = text.iter().position(|&letter| letter == b'=').unwrap_or(text.len());
    let padded = text.len().is_multiple_of(4) && text.len() - end <= 2;
    if !padded || text[end..].iter().any(|&letter| letter != b'=') {
        return None;
    }
    for group in text[..end].chunks(4) {
        let mut bits = 0;
        for at in 0..4 {
            bits = bits << 6 | group.get(at).map_or(Some(0), |&letter| sextet(letter))?;
        }
        let [_, bytes @ ..] = u32::to_be_bytes(bits);
        out.extend_from_slice(bytes.get(..group.len().checked_sub(1)?)?);
    }
    Some(out)
}

fn sextet(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base_64() {
        assert_eq!(base64(b""), Some(vec![]));
        assert_eq!(base64(b"AA=="), Some(vec![0]));
        assert_eq!(base64(b"IGE="), Some(b" a".to_vec()));
        assert_eq!(base64(b"YWJj"), Some(b"abc".to_vec()));
        assert_eq!(base64(b"//79"), Some(vec![255, 254, 253]));
        for wrong in ["A", "AA", "A===", "=AAA", "AA=A", "A\u{e9}A", "AAA.", "AAAA=="] {
            assert_eq!(base64(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
