//! The merges of a tokenizer, and how they make each token.

use std::borrow::Cow;
use std::fmt;

use formalm_automata::pool;
use rustc_hash::FxHashMap;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::adjacency::{Derivation, Relation};
use super::merge_rules::{Rule, Rules};
use crate::Error;
use crate::token_bytes::MOST_IDS;
use crate::tokenizer_json::Text;

/// Pieces or merges below which the caller's thread does all: some milliseconds of work.
pub(super) const SMALL: usize = 10_000;

/// What the merges of a tokenizer make.
pub(crate) struct Merges {
    /// Neighbours that may be joined.
    pub(crate) relation: Relation,
    /// Pieces that merging does not make from their own text, and what it makes instead; none
    /// where a character of the piece is no symbol.
    pub(crate) unreachable: FxHashMap<u32, Option<Vec<u32>>>,
}

/// How a piece is made, or what is made of its text instead.
type Made = Result<Derivation, Option<Vec<u32>>>;

/// One merge as it is written: two strings, or one with a space between.
struct Written<'a>(Text<'a>, Option<Text<'a>>);

impl<'de> Deserialize<'de> for Written<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written<'de>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Written<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a merge: two pieces")
            }

            fn visit_borrowed_str<E>(self, line: &'de str) -> Result<Written<'de>, E> {
                Ok(Written(Text(line.into()), None))
            }

            fn visit_str<E>(self, line: &str) -> Result<Written<'de>, E> {
                Ok(Written(Text(line.to_owned().into()), None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Written<'de>, A::Error> {
                let missing = || A::Error::custom("a merge of fewer than two pieces");
                let left = list.next_element()?.ok_or_else(missing)?;
                let right = list.next_element()?.ok_or_else(missing)?;
                match list.next_element::<IgnoredAny>()? {
                    None => Ok(Written(left, Some(right))),
                    Some(_) => Err(A::Error::custom("a merge of more than two pieces")),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl Merges {
    /// What `rules` make of pieces. `read` appends the symbols of a piece's text and returns its id;
    /// without an id when a character of it is no symbol.
    pub(crate) fn new<P: Sync>(
        pieces: &[P],
        rules: &Rules,
        read: impl Fn(&P, &mut Vec<u32>) -> (u32, bool) + Sync,
    ) -> Merges {
        let made: Vec<(u32, Made)> = pool::map(pieces, SMALL, Vec::new, |symbols, _, piece| {
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
        Merges { relation: Relation::new(&reachable, len), unreachable }
    }

    /// Reads the merges of a model, whose pieces of one character are `symbols`.
    ///
    /// # Errors
    ///
    /// They are not laid out as merges, or name pieces that are none.
    pub(crate) fn read(
        merges: Option<&RawValue>,
        pieces: &[(Cow<'_, str>, u32)],
        symbols: &FxHashMap<char, u32>,
    ) -> Result<Merges, Error> {
        check_ids(pieces)?;
        let ids: FxHashMap<&str, u32> = pieces.iter().map(|(piece, id)| (&**piece, *id)).collect();
        let rules = Rules::new(rules(merges, &ids)?);
        Ok(Merges::new(pieces, &rules, |(piece, id), out| {
            let known = piece.chars().map_while(|character| symbols.get(&character));
            out.extend(known);
            (*id, out.len() == piece.chars().count())
        }))
    }
}

/// The pieces of one character.
pub(crate) fn characters(pieces: &[(Cow<'_, str>, u32)]) -> FxHashMap<char, u32> {
    let single = |(piece, id): &(Cow<'_, str>, u32)| {
        let mut characters = piece.chars();
        let first = characters.next()?;
        characters.next().is_none().then_some((first, *id))
    };
    pieces.iter().filter_map(single).collect()
}

/// Checks that ids are small and each is of one piece.
fn check_ids(pieces: &[(Cow<'_, str>, u32)]) -> Result<(), Error> {
    let mut ids: Vec<u32> = pieces.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    let twice = ids.windows(2).any(|pair| pair[0] == pair[1]);
    match ids.last() {
        Some(&last) if twice || last as usize >= MOST_IDS => {
            Err(Error::new(format!("ids are given twice or are beyond {MOST_IDS}"))
                .at("model.vocab"))
        }
        _ => Ok(()),
    }
}

/// The last merge that makes a piece of its symbols, or what is made of them instead.
fn derivation(symbols: &mut Vec<u32>, id: u32, rules: &Rules) -> Made {
    let (mut parts, mut rank) = (None, 0);
    rules.merge(symbols, |joined, rule| {
        parts = Some(joined);
        rank = rule.rank;
    });
    if *symbols == [id] { Ok(Derivation { parts, rank }) } else { Err(Some(symbols.clone())) }
}

/// The rules as they are written.
fn rules(
    merges: Option<&RawValue>,
    ids: &FxHashMap<&str, u32>,
) -> Result<Vec<(u32, u32, Rule)>, Error> {
    let written: Vec<Written<'_>> = match merges {
        None => return Err(Error::new("there are no merges").at("model.merges")),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
            Error::new(format!("the merges cannot be read: {error}")).at("model.merges")
        })?,
    };
    let read = pool::map(&written, SMALL, String::new, |joined, rank, written| {
        let at = || format!("model.merges[{rank}]");
        let (left, right) = match written {
            Written(left, Some(right)) => (&*left.0, &*right.0),
            Written(line, None) => line
                .0
                .split_once(' ')
                .filter(|(_, right)| !right.contains(' '))
                .ok_or_else(|| Error::new("a merge is two pieces").at(at()))?,
        };
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let id = |piece: &str| {
            ids.get(piece).copied().ok_or_else(|| {
                Error::new(format!("the merge names {piece:?}, which is no piece")).at(at())
            })
        };
        let rule = Rule { rank: rank as u32, token: id(joined)? };
        Ok((id(left)?, id(right)?, rule))
    });
    read.into_iter().collect()
}
