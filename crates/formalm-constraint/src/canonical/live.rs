//! Which tokens can be followed up to the end of a member.
//!
//! After a token at a pair that is clean, anything that completes the text will do. Elsewhere the
//! piece must go on with a neighbour of the token. *Witnesses*, tokens known to lead to a member
//! from a pair, settle nearly every question; what they leave open is searched, and a search that
//! ends without success proves that everything it met leads nowhere.

use std::collections::hash_map::Entry;

use formalm_automata::{Error, Machine, Resource};
use formalm_vocabulary::canonical::Mark;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Context;
use super::pairs::{Pair, Pairs};
use super::prompt;
use super::sets::Member;
use super::walks::{self, Goal};
use crate::mask::{Words, patch};

/// Positions that one search may look at.
const MOST_POSITIONS: usize = 500_000;

/// Witnesses of a pair that are kept.
const MOST_WITNESSES: usize = 8;

/// First bytes that completions are tried with, to find the first witnesses of a pair.
const TRIES: usize = 4;

/// From so many tokens on, witnesses are tried on all of them at once.
const MANY: usize = 64;

/// Tokens by the member that they lead to.
type Groups = Vec<(Member, Vec<u32>)>;

/// What was learnt.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    witnesses: FxHashMap<Pair, Vec<u32>>,
    dead: FxHashSet<(Member, u32)>,
}

/// Where a token leads from a member, neighbours considered; whether to a member of the language
/// is another question.
pub(crate) fn after<M: Machine>(
    context: Context<'_, M>,
    pairs: &mut Pairs,
    member: Member,
    last: u32,
    token: u32,
) -> Result<Vec<Member>, Error> {
    let (state, place) = pairs.parts(member.pair);
    let mut list = Vec::new();
    let Some(bytes) = context.vocabulary.token_bytes(token) else { return Ok(list) };
    let Ok(state) = context.machine.walk(state, bytes)? else { return Ok(list) };
    for (place, path) in prompt::after(context, (place, member.path), last, token) {
        list.push(Member { pair: pairs.intern(state, place)?, path });
    }
    Ok(list)
}

impl Liveness {
    /// Whether a member of the language can be completed after `last`.
    pub(crate) fn is_live<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        pairs: &mut Pairs,
        member: Member,
        last: u32,
    ) -> Result<bool, Error> {
        match self.quick(context, pairs, member, last)? {
            Some(live) => Ok(live),
            None => self.search(context, pairs, member, last),
        }
    }

    /// The answer if it takes no search.
    fn quick<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        pairs: &mut Pairs,
        member: Member,
        last: u32,
    ) -> Result<Option<bool>, Error> {
        let encoder = context.encoder;
        if encoder.may_end(member.path) && pairs.is_clean(context, member.pair)? {
            return Ok(Some(true));
        }
        // Nothing goes on with an added token, or with a piece that is taken whole.
        let complete = encoder.splitter().is_added(pairs.parts(member.pair).1);
        if complete
            || encoder.must_end(member.path)
            || !pairs.is_productive(context, member.pair)?
        {
            return Ok(Some(false));
        }
        if self.dead.contains(&(member, last)) {
            return Ok(Some(false));
        }
        let plain = member == Member::new(member.pair);
        let witnessed = plain
            && self
                .witnesses(context, pairs, member.pair)?
                .iter()
                .any(|&witness| encoder.may_follow(last, witness));
        Ok(witnessed.then_some(true))
    }

    /// Tokens that go on with the piece from a pair and lead to a member.
    fn witnesses<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        pairs: &mut Pairs,
        pair: Pair,
    ) -> Result<&[u32], Error> {
        Ok(match self.witnesses.entry(pair) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(first_witnesses(context, pairs, pair)?),
        })
    }

    fn add_witness(&mut self, pair: Pair, token: u32) {
        let list = self.witnesses.entry(pair).or_default();
        if list.len() < MOST_WITNESSES && !list.contains(&token) {
            list.push(token);
        }
    }

    /// Looks for a way to a member; the piece goes on.
    fn search<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        pairs: &mut Pairs,
        member: Member,
        last: u32,
    ) -> Result<bool, Error> {
        // Positions, each with the one it was reached from.
        let mut came: Vec<(Member, u32, usize)> = vec![(member, last, 0)];
        let mut seen: FxHashSet<(Member, u32)> = FxHashSet::from_iter([(member, last)]);
        let mut left = vec![0];
        while let Some(at) = left.pop() {
            let (member, last, _) = came[at];
            for (next, tokens) in self.groups(context, pairs, member, Mark::Inside)? {
                for token in tokens {
                    if !context.encoder.may_follow(last, token) || !seen.insert((next, token)) {
                        continue;
                    }
                    came.push((next, token, at));
                    match self.quick(context, pairs, next, token)? {
                        Some(true) => {
                            self.trace(&came);
                            return Ok(true);
                        }
                        Some(false) => {}
                        None => left.push(came.len() - 1),
                    }
                }
            }
            if came.len() > MOST_POSITIONS {
                return Err(Error::Limit {
                    resource: Resource::States,
                    needed: came.len() as u64,
                    allowed: MOST_POSITIONS as u64,
                });
            }
        }
        self.dead.extend(came.into_iter().map(|(member, last, _)| (member, last)));
        Ok(false)
    }

    /// Learns from the way to the last position.
    fn trace(&mut self, came: &[(Member, u32, usize)]) {
        let mut at = came.len() - 1;
        while at != 0 {
            let (member, token, from) = came[at];
            let before = came[from].0;
            if before == Member::new(before.pair) && member == Member::new(member.pair) {
                self.add_witness(before.pair, token);
            }
            at = from;
        }
    }

    /// The tokens that may follow a member with a mark, by where they lead; only neighbours have
    /// not been looked at.
    fn groups<M: Machine>(
        &self,
        context: Context<'_, M>,
        pairs: &mut Pairs,
        member: Member,
        mark: Mark,
    ) -> Result<Groups, Error> {
        let (state, place) = pairs.parts(member.pair);
        let from = Goal { state, place, path: member.path };
        let mut groups = Groups::new();
        for (goal, tokens) in walks::tokens(context, from, mark)? {
            let pair = pairs.intern(goal.state, goal.place)?;
            if pairs.is_productive(context, pair)? {
                groups.push((Member { pair, path: goal.path }, tokens));
            }
        }
        Ok(groups)
    }

    /// Sets the tokens that may follow a member and lead to a member of the language: those that go
    /// on with the piece, neighbours aside, and those that begin one.
    pub(crate) fn allowed<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        pairs: &mut Pairs,
        member: Member,
        (inside, begins): (&mut Words, &mut Words),
    ) -> Result<(), Error> {
        if !context.encoder.must_end(member.path) {
            for (next, tokens) in self.groups(context, pairs, member, Mark::Inside)? {
                self.keep_live(context, pairs, next, tokens, inside)?;
            }
        }
        if context.encoder.may_end(member.path) {
            for mark in [Mark::Piece, Mark::Added] {
                for (next, tokens) in self.groups(context, pairs, member, mark)? {
                    self.keep_live(context, pairs, next, tokens, begins)?;
                }
            }
        }
        Ok(())
    }

    /// Sets those of some tokens that lead to `next` after which a member can be completed.
    fn keep_live<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        pairs: &mut Pairs,
        next: Member,
        mut tokens: Vec<u32>,
        words: &mut Words,
    ) -> Result<(), Error> {
        if context.encoder.may_end(next.path) && pairs.is_clean(context, next.pair)? {
            patch(words, &tokens, &[]);
            return Ok(());
        }
        if next == Member::new(next.pair) && tokens.len() > MANY {
            for witness in self.witnesses(context, pairs, next.pair)?.to_vec() {
                let mut before = vec![0; words.len()];
                context.encoder.not_before(witness, |tokens| patch(&mut before, tokens, &[]));
                let doubtful = |token: &u32| before[*token as usize >> 5] >> (token & 31) & 1 != 0;
                let (doubtful, fine): (Vec<u32>, Vec<u32>) = tokens.into_iter().partition(doubtful);
                patch(words, &fine, &[]);
                tokens = doubtful;
            }
        }
        for token in tokens {
            if self.is_live(context, pairs, next, token)? {
                patch(words, &[token], &[]);
            }
        }
        Ok(())
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        64 * self.witnesses.len() + 16 * self.dead.len()
    }
}

/// Tokens that completions of the language begin with.
fn first_witnesses<M: Machine>(
    context: Context<'_, M>,
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
fn first_token<M>(context: Context<'_, M>, rest: &[u8]) -> Option<u32> {
    let mut tokens = Vec::new();
    context.encoder.merge(rest, &mut tokens);
    tokens.first().copied()
}
