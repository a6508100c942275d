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
    let splitter = encoder.splitter();
    let kind = encoder.origin(token);
    let bytes = context.vocabulary.token_bytes(token).unwrap_or_default();
    BOUNDARIES.into_iter().filter_map(move |boundary| {
        let begins = boundary != Boundary::Inside;
        let fits = match begins {
            true => encoder.pretoken_may_end(pretoken),
            false => encoder.may_follow(last, token),
        };
        if !fits || bytes.is_empty() {
            return None;
        }
        let pretoken = context.pretoken_step(pretoken, token, begins)?;
        let splitter_state = match kind {
            TokenOrigin::Byte(byte) => splitter.step_byte_token(splitter_state, byte, boundary),
            _ => {
                bytes.iter().enumerate().try_fold(splitter_state, |splitter_state, (at, &byte)| {
                    splitter.step(
                        splitter_state,
                        byte,
                        if at == 0 { boundary } else { Boundary::Inside },
                    )
                })
            }
        };
        let splitter_state = splitter_state.filter(|&splitter_state| {
            kind.fits(boundary, splitter.is_in_added_token(splitter_state))
        })?;
        Some((splitter_state, pretoken))
    })
}
