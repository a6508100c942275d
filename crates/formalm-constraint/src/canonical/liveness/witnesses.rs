//! The first witnesses of a pair: tokens known to lead to a member.

use formalm_automata::{Error, Keys, Machine};

use super::super::Context;
use super::super::product::{Pair, Pairs};
use super::super::subsets::Member;
use super::Groups;

/// First bytes that completions are tried with, to find the first witnesses of a pair.
const TRIES: usize = 4;

/// A token that may follow `last` and leads to where the piece may end, of some groups.
pub(super) fn first_clean<K: Keys>(
    context: Context<'_, K>,
    pairs: &mut Pairs,
    groups: &Groups,
    last: u32,
) -> Result<Option<(Member, u32)>, Error> {
    for (next, tokens) in groups {
        if context.encoder.pretoken_may_end(next.path) && pairs.is_clean(context, next.pair)? {
            let fits = |token| context.encoder.may_follow(last, token).then_some(token);
            if let Some(token) = tokens.find(fits) {
                return Ok(Some((*next, token)));
            }
        }
    }
    Ok(None)
}

/// Tokens that completions of the language begin with.
pub(super) fn first_witnesses<K: Keys>(
    context: Context<'_, K>,
    pairs: &mut Pairs,
    pair: Pair,
) -> Result<Vec<u32>, Error> {
    let live = context.machine.live_bytes(pairs.parts(pair).0)?;
    let firsts = live.iter().map(Some).take(TRIES);
    let mut list = Vec::new();
    for first in [None].into_iter().chain(firsts) {
        let rest = pairs.rest_of_piece(context, pair, first)?;
        list.extend(rest.and_then(|rest| first_token(context, &rest)));
    }
    list.dedup();
    Ok(list)
}

/// The first of the tokens that are the rest of a piece.
fn first_token<K: Keys>(context: Context<'_, K>, rest: &[u8]) -> Option<u32> {
    let mut tokens = Vec::new();
    context.encoder.merge(rest, &mut tokens);
    tokens.first().copied()
}
