//! Where a tokenizer's marked text is after tokens that are given.

use formalm_automata::Keys;
use formalm_vocabulary::bpe::{Kind, MARKS, Mark, Path, Place};

use super::walks::fits_kind;
use super::{Context, NONE};

/// What may be true of a text after tokens: places with the tokens of the current piece.
type Places = Vec<(Place, Path)>;

/// What may be true after tokens, none of them special, that begin a text.
///
/// # Errors
///
/// How many of the tokens some text begins with, if not all.
pub(super) fn places<K: Keys>(context: Context<'_, K>, tokens: &[u32]) -> Result<Places, usize> {
    let encoder = context.encoder;
    let mut places: Places = vec![(encoder.splitter().start(), Path::PLAIN)];
    let mut last = NONE;
    for (at, &token) in tokens.iter().enumerate() {
        let mut next = Places::new();
        for &from in &places {
            for goal in after(context, from, last, token) {
                if !next.contains(&goal) {
                    next.push(goal);
                }
            }
        }
        if next.is_empty() {
            return Err(at);
        }
        (places, last) = (next, token);
    }
    Ok(places)
}

/// Where one token leads, neighbours considered.
pub(super) fn after<K: Keys>(
    context: Context<'_, K>,
    (place, path): (Place, Path),
    last: u32,
    token: u32,
) -> impl Iterator<Item = (Place, Path)> {
    let encoder = context.encoder;
    let splitter = encoder.splitter();
    let kind = encoder.kind(token);
    let bytes = context.vocabulary.token_bytes(token).unwrap_or_default();
    MARKS.into_iter().filter_map(move |mark| {
        let begins = mark != Mark::Inside;
        let fits = match begins {
            true => encoder.may_end(path),
            false => encoder.may_follow(last, token),
        };
        if !fits || bytes.is_empty() {
            return None;
        }
        let path = encoder.path(path, token, begins)?;
        let place = match kind {
            Kind::Byte(byte) => splitter.step_alone(place, byte, mark),
            _ => bytes.iter().enumerate().try_fold(place, |place, (at, &byte)| {
                splitter.step(place, byte, if at == 0 { mark } else { Mark::Inside })
            }),
        };
        let place = place.filter(|&place| fits_kind(kind, mark, splitter.is_added(place)))?;
        Some((place, path))
    })
}
