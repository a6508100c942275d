//! The splitter states after the tokens of a prompt.

use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, PretokenState, SplitterState, TokenOrigin};

use super::{NONE, ProductContext};

/// The possible states after some tokens: splitter states with the state of the current pre-token.
type PossibleStates = Vec<(SplitterState, PretokenState)>;

/// Returns the possible states after tokens, none of them special, that begin a text.
///
/// # Errors
///
/// The number of tokens with which some canonical text begins, if not all.
pub(super) fn splitter_states<K: MaskClasses>(
    context: ProductContext<'_, K>,
    tokens: &[u32],
) -> Result<PossibleStates, usize> {
    let mut splitter_states: PossibleStates =
        vec![(context.splitter_start(), PretokenState::PLAIN)];
    let mut last = NONE;
    for (at, &token) in tokens.iter().enumerate() {
        let mut next = PossibleStates::new();
        for &from in &splitter_states {
            for target in after(context, from, last, token) {
                if !next.contains(&target) {
                    next.push(target);
                }
            }
        }
        if next.is_empty() {
            return Err(at);
        }
        (splitter_states, last) = (next, token);
    }
    Ok(splitter_states)
}

/// Returns the states after one token, adjacency included.
pub(super) fn after<K: MaskClasses>(
    context: ProductContext<'_, K>,
    (splitter_state, pretoken): (SplitterState, PretokenState),
    last: u32,
    token: u32,
) -> impl Iterator<Item = (SplitterState, PretokenState)> {
    let encoder = context.encoder;
    BOUNDARIES.into_iter().filter_map(move |boundary| {
        let fits = match boundary {
            Boundary::Inside => encoder.may_follow(last, token),
            _ => encoder.pretoken_may_end(pretoken),
        };
        fits.then(|| after_boundary(context, (splitter_state, pretoken), boundary, token))?
    })
}

/// Returns the states after a token with a boundary before it. Adjacency, and whether the pre-token
/// before may end, are not checked.
pub(super) fn after_boundary<K: MaskClasses>(
    context: ProductContext<'_, K>,
    (splitter_state, pretoken): (SplitterState, PretokenState),
    boundary: Boundary,
    token: u32,
) -> Option<(SplitterState, PretokenState)> {
    let splitter = context.encoder.splitter();
    let kind = context.encoder.origin(token);
    let bytes = context.vocabulary.token_bytes(token).filter(|bytes| !bytes.is_empty())?;
    let pretoken = context.pretoken_step(pretoken, token, boundary != Boundary::Inside)?;
    let splitter_state = match kind {
        TokenOrigin::Byte(byte) => splitter.step_byte_token(splitter_state, byte, boundary),
        _ => bytes.iter().enumerate().try_fold(splitter_state, |splitter_state, (at, &byte)| {
            let boundary = if at == 0 { boundary } else { Boundary::Inside };
            splitter.step(splitter_state, byte, boundary)
        }),
    };
    let splitter_state = splitter_state.filter(|&splitter_state| {
        kind.fits(boundary, splitter.is_in_added_token(splitter_state))
    })?;
    Some((splitter_state, pretoken))
}
