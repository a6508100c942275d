//! Where a tokenizer's marked text is after tokens that are given.

use formalm_automata::Keys;
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, PretokenState, SplitterState, TokenOrigin};

use super::joint_targets::fits_kind;
use super::{Context, NONE};

/// What may be true of a text after tokens: places with the tokens of the current piece.
type Places = Vec<(SplitterState, PretokenState)>;

/// What may be true after tokens, none of them special, that begin a text.
///
/// # Errors
///
/// How many of the tokens some text begins with, if not all.
pub(super) fn places<K: Keys>(context: Context<'_, K>, tokens: &[u32]) -> Result<Places, usize> {
    let encoder = context.encoder;
    let mut places: Places = vec![(encoder.splitter().start(), PretokenState::PLAIN)];
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
    (place, path): (SplitterState, PretokenState),
    last: u32,
    token: u32,
) -> impl Iterator<Item = (SplitterState, PretokenState)> {
    let encoder = context.encoder;
    let splitter = encoder.splitter();
    let kind = encoder.origin(token);
    let bytes = context.vocabulary.token_bytes(token).unwrap_or_default();
    BOUNDARIES.into_iter().filter_map(move |mark| {
        let begins = mark != Boundary::Inside;
        let fits = match begins {
            true => encoder.pretoken_may_end(path),
            false => encoder.may_follow(last, token),
        };
        if !fits || bytes.is_empty() {
            return None;
        }
        let path = encoder.pretoken_step(path, token, begins)?;
        let place = match kind {
            TokenOrigin::Byte(byte) => splitter.step_byte_token(place, byte, mark),
            _ => bytes.iter().enumerate().try_fold(place, |place, (at, &byte)| {
                splitter.step(place, byte, if at == 0 { mark } else { Boundary::Inside })
            }),
        };
        let place =
            place.filter(|&place| fits_kind(kind, mark, splitter.is_in_added_token(place)))?;
        Some((place, path))
    })
}
