//! The derivation of every token: which merges make it, and which tokens merging never makes.

use std::borrow::Cow;
use std::fmt;

use formalm_core::pool;
use rustc_hash::FxHashMap;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::adjacency::{Adjacency, TokenDerivation};
use super::merge_rules::{MergeRule, MergeRules};
use crate::Error;
use crate::token_byte_table::MAX_IDS;
use crate::tokenizer_json::PieceText;

/// Number of pieces or merges below which the calling thread does all the work: some milliseconds.
pub(super) const SMALL: usize = 10_000;

/// The derivations of all pieces of a tokenizer.
pub(crate) struct MergeDerivations {
    /// The adjacency relation of the pieces that merging makes.
    pub(crate) adjacency: Adjacency,
    /// Pieces that merging does not make from their own string, with the tokens it makes instead;
    /// `None` if a character of the piece is no symbol.
    pub(crate) unreachable: FxHashMap<u32, Option<Vec<u32>>>,
}

/// The derivation of a piece, or the tokens that merging makes of its string instead.
type DerivationResult = Result<TokenDerivation, Option<Vec<u32>>>;

/// A merge as the file writes it: two strings, or one with a space between its parts.
struct WrittenMerge<'a>(PieceText<'a>, Option<PieceText<'a>>);

impl<'de> Deserialize<'de> for WrittenMerge<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WrittenMerge<'de>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = WrittenMerge<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a merge: two pieces")
            }

            fn visit_borrowed_str<E>(self, line: &'de str) -> Result<WrittenMerge<'de>, E> {
                Ok(WrittenMerge(PieceText(line.into()), None))
            }

            fn visit_str<E>(self, line: &str) -> Result<WrittenMerge<'de>, E> {
                Ok(WrittenMerge(PieceText(line.to_owned().into()), None))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<WrittenMerge<'de>, A::Error> {
                let missing = || A::Error::custom("a merge of fewer than two pieces");
                let left = list.next_element()?.ok_or_else(missing)?;
                let right = list.next_element()?.ok_or_else(missing)?;
                match list.next_element::<IgnoredAny>()? {
                    None => Ok(WrittenMerge(left, Some(right))),
                    Some(_) => Err(A::Error::custom("a merge of more than two pieces")),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl MergeDerivations {
    /// Returns the derivations of a tokenizer that does not merge.
    pub(crate) fn none() -> MergeDerivations {
        MergeDerivations { adjacency: Adjacency::new(&[], 0), unreachable: FxHashMap::default() }
    }

    /// Derives every piece under `rules`. `read` appends the base symbols of a piece and returns
    /// its id, and whether every character of it is a symbol.
    pub(crate) fn new<P: Sync>(
        pieces: &[P],
        rules: &MergeRules,
        read: impl Fn(&P, &mut Vec<u32>) -> (u32, bool) + Sync,
    ) -> MergeDerivations {
        let made: Vec<(u32, DerivationResult)> =
            pool::map(pieces, SMALL, Vec::new, |symbols, _, piece| {
                symbols.clear();
                let (id, complete) = read(piece, symbols);
                (id, if complete { derivation(symbols, id, rules) } else { Err(None) })
            });
        let len = made.iter().map(|(id, _)| *id as usize + 1).max().unwrap_or_default();
        let mut reachable = Vec::with_capacity(made.len());
        let mut unreachable = FxHashMap::default();
        for (id, derivation) in made {
            match derivation {
                Ok(derivation) => reachable.push((id, derivation)),
                Err(instead) => {
                    unreachable.insert(id, instead);
                }
            }
        }
        MergeDerivations { adjacency: Adjacency::new(&reachable, len), unreachable }
    }

    /// Parses the merges of a model and derives its pieces; `symbols` are the pieces of one
    /// character.
    ///
    /// # Errors
    ///
    /// The merges are malformed or name unknown pieces.
    pub(crate) fn read(
        merges: Option<&RawValue>,
        pieces: &[(Cow<'_, str>, u32)],
        symbols: &FxHashMap<char, u32>,
    ) -> Result<MergeDerivations, Error> {
        check_ids(pieces)?;
        let ids: FxHashMap<&str, u32> = pieces.iter().map(|(piece, id)| (&**piece, *id)).collect();
        let rules = MergeRules::new(rules(merges, &ids)?);
        Ok(MergeDerivations::new(pieces, &rules, |(piece, id), out| {
            let known = piece.chars().map_while(|character| symbols.get(&character));
            out.extend(known);
            (*id, out.len() == piece.chars().count())
        }))
    }
}

/// Returns the pieces of one character.
pub(crate) fn characters(pieces: &[(Cow<'_, str>, u32)]) -> FxHashMap<char, u32> {
    let single = |(piece, id): &(Cow<'_, str>, u32)| {
        let mut characters = piece.chars();
        let first = characters.next()?;
        characters.next().is_none().then_some((first, *id))
    };
    pieces.iter().filter_map(single).collect()
}

/// Checks that ids are within limits and unique.
fn check_ids(pieces: &[(Cow<'_, str>, u32)]) -> Result<(), Error> {
    let mut ids: Vec<u32> = pieces.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    let twice = ids.windows(2).any(|pair| pair[0] == pair[1]);
    match ids.last() {
        Some(&last) if twice || last as usize >= MAX_IDS => {
            Err(Error::new(format!("token ids must be unique and less than {MAX_IDS}"))
                .at("model.vocab"))
        }
        _ => Ok(()),
    }
}

/// Merges `symbols` in place. Returns the last merge if the result is the token `id`, otherwise the
/// tokens made instead.
fn derivation(symbols: &mut Vec<u32>, id: u32, rules: &MergeRules) -> DerivationResult {
    let (mut parts, mut rank) = (None, 0);
    rules.merge(symbols, |joined, rule| {
        parts = Some(joined);
        rank = rule.rank;
    });
    if *symbols == [id] { Ok(TokenDerivation { parts, rank }) } else { Err(Some(symbols.clone())) }
}

/// Parses the merges into rules.
fn rules(
    merges: Option<&RawValue>,
    ids: &FxHashMap<&str, u32>,
) -> Result<Vec<(u32, u32, MergeRule)>, Error> {
    let written: Vec<WrittenMerge<'_>> = match merges {
        None => return Err(Error::new("the merges are missing").at("model.merges")),
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|error| Error::new(format!("invalid merges: {error}")).at("model.merges"))?,
    };
    let read = pool::map(&written, SMALL, String::new, |joined, rank, written| {
        let at = || format!("model.merges[{rank}]");
        let (left, right) = match written {
            WrittenMerge(left, Some(right)) => (&*left.0, &*right.0),
            WrittenMerge(line, None) => line
                .0
                .split_once(' ')
                .filter(|(_, right)| !right.contains(' '))
                .ok_or_else(|| Error::new("a merge must have two pieces").at(at()))?,
        };
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let id = |piece: &str| {
            ids.get(piece).copied().ok_or_else(|| {
                Error::new(format!("the merge refers to {piece:?}, which is not a piece")).at(at())
            })
        };
        let rule = MergeRule { rank: rank as u32, token: id(joined)? };
        Ok((id(left)?, id(right)?, rule))
    });
    read.into_iter().collect()
}
