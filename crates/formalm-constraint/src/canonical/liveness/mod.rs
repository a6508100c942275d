//! Which tokens can be followed up to the end of a member.
//!
//! After a token at a pair that is clean, anything that completes the text will do. Elsewhere the
//! piece must go on with a neighbour of the token. *Witnesses*, tokens known to lead to a member
//! from a pair, settle nearly every question; what they leave open is searched, and a search that
//! ends without success proves that everything it met leads nowhere.

mod witnesses;

use formalm_automata::deadline::check_deadline;
use formalm_automata::{Error, Keys, Machine, Resource};
use formalm_vocabulary::bpe::{Boundary, PretokenState, TokenOrigin, TokenSet};
use rustc_hash::{FxHashMap, FxHashSet};

use self::witnesses::{first_clean, first_witnesses};
use super::joint_targets::{self, Goal, Tokens};
use super::language_targets::Reaches;
use super::product::{Pair, Pairs};
use super::subsets::Member;
use super::{Context, FEW, MOST_STEPS};
use crate::mask::{MaskWords, patch};

/// Positions that one search may look at.
const MOST_POSITIONS: usize = 500_000;

/// Witnesses of a pair that are kept.
const MOST_WITNESSES: usize = 8;

/// Bytes that are looked for as witnesses inside of a character.
const BYTES: usize = 3;

/// Tokens by the member that they lead to.
type Groups = Vec<(Member, Tokens)>;

/// What was learnt.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    witnesses: FxHashMap<Pair, Vec<u32>>,
    dead: FxHashSet<(Member, u32)>,
    /// What a bounded search left open.
    undecided: FxHashSet<(Member, u32)>,
    reaches: Reaches,
}

impl Liveness {
    /// Whether a member of the language can be completed after `last`.
    pub(crate) fn is_live<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        member: Member,
        last: u32,
    ) -> Result<bool, Error> {
        let member = Member { pair: pairs.common(context, member.pair)?, ..member };
        match self.quick(context, pairs, member, last)? {
            Some(live) => Ok(live),
            None => self.search(context, pairs, member, last),
        }
    }

    /// The answer if it takes no search.
    fn quick<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        member: Member,
        last: u32,
    ) -> Result<Option<bool>, Error> {
        let encoder = context.encoder;
        if encoder.pretoken_may_end(member.path) && pairs.is_clean(context, member.pair)? {
            return Ok(Some(true));
        }
        // Nothing goes on with an added token, or with a piece that is taken whole.
        let complete = encoder.splitter().is_in_added_token(pairs.parts(member.pair).1);
        if complete
            || encoder.pretoken_must_end(member.path)
            || !pairs.is_productive(context, member.pair)?
        {
            return Ok(Some(false));
        }
        if self.dead.contains(&(member, last)) {
            return Ok(Some(false));
        }
        if self.undecided.contains(&(member, last)) {
            return Ok(Some(true));
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
    fn witnesses<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        pair: Pair,
    ) -> Result<&[u32], Error> {
        if !self.witnesses.contains_key(&pair) {
            let mut found = self.next_bytes(context, pairs, pair)?;
            if found.is_empty() {
                found = first_witnesses(context, pairs, pair)?;
            }
            self.witnesses.insert(pair, found);
        }
        Ok(self.witnesses.get(&pair).map(Vec::as_slice).unwrap_or_default())
    }

    /// Witnesses inside of a character: single bytes that go on with it, where each is a symbol.
    fn next_bytes<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        pair: Pair,
    ) -> Result<Vec<u32>, Error> {
        let (state, place) = pairs.parts(pair);
        let (encoder, splitter) = (context.encoder, context.encoder.splitter());
        let mut found = Vec::new();
        if splitter.is_between_characters(place) || splitter.is_in_added_token(place) {
            return Ok(found);
        }
        for byte in context.machine.live_bytes(state)?.iter() {
            let Some(symbol) = encoder.symbol(byte) else { break };
            let plain = encoder.origin(symbol) == TokenOrigin::Merged
                && encoder.pretoken_step(PretokenState::PLAIN, symbol, false)
                    == Some(PretokenState::PLAIN);
            let Some(next) = pairs.step(context, pair, (byte, Boundary::Inside))? else { continue };
            let (_, place) = pairs.parts(next);
            let leads = plain
                && !splitter.is_in_added_token(place)
                && match splitter.is_between_characters(place) {
                    true => pairs.is_clean(context, next)?,
                    false => {
                        let further = self.witnesses(context, pairs, next)?;
                        further.iter().any(|&witness| encoder.may_follow(symbol, witness))
                    }
                };
            if leads {
                found.push(symbol);
                if found.len() == BYTES {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn add_witness(&mut self, pair: Pair, token: u32) {
        let list = self.witnesses.entry(pair).or_default();
        if list.len() < MOST_WITNESSES && !list.contains(&token) {
            list.push(token);
        }
    }

    /// Looks for a way to a member; the piece goes on.
    fn search<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        member: Member,
        last: u32,
    ) -> Result<bool, Error> {
        // Positions, each with the one it was reached from.
        let mut came: Vec<(Member, u32, usize)> = vec![(member, last, 0)];
        let mut seen: FxHashSet<(Member, u32)> = FxHashSet::from_iter([(member, last)]);
        let mut left = vec![0];
        while let Some(at) = left.pop() {
            check_deadline()?;
            let (member, last, _) = came[at];
            let groups = self.groups(context, pairs, member, Boundary::Inside)?;
            if let Some((next, token)) = first_clean(context, pairs, &groups, last)? {
                came.push((next, token, at));
                self.trace(&came);
                return Ok(true);
            }
            for (next, tokens) in groups {
                let mut fitting = Vec::new();
                tokens.find(|token| {
                    if context.encoder.may_follow(last, token) && seen.insert((next, token)) {
                        fitting.push(token);
                    }
                    None::<()>
                });
                for token in fitting {
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
            if !context.machine.is_finite() && came.len() > MOST_STEPS {
                self.undecided.insert((came[0].0, came[0].1));
                return Ok(true);
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
    fn groups<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        member: Member,
        mark: Boundary,
    ) -> Result<Groups, Error> {
        let (state, place) = pairs.parts(member.pair);
        let from = Goal { state, place, path: member.path };
        let mut groups = Groups::new();
        for (goal, tokens) in joint_targets::tokens(context, &mut self.reaches, from, mark)? {
            let pair = pairs.intern(goal.state, goal.place)?;
            let pair = pairs.common(context, pair)?;
            if pairs.is_productive(context, pair)? {
                groups.push((Member { pair, path: goal.path }, tokens));
            }
        }
        Ok(groups)
    }

    /// Sets the tokens that may follow a member and lead to a member of the language: those that go
    /// on with the piece, neighbours aside, and those that begin one.
    pub(crate) fn allowed<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        member: Member,
        (inside, begins): (&mut MaskWords, &mut MaskWords),
    ) -> Result<(), Error> {
        if !context.encoder.pretoken_must_end(member.path) {
            for (next, tokens) in self.groups(context, pairs, member, Boundary::Inside)? {
                self.keep_live(context, pairs, next, &tokens, inside)?;
            }
        }
        if context.encoder.pretoken_may_end(member.path) {
            for (token, _) in pairs.behind_special(context, member.pair)? {
                patch(begins, &[token], &[]);
            }
            for mark in [Boundary::Pretoken, Boundary::Added] {
                for (next, tokens) in self.groups(context, pairs, member, mark)? {
                    self.keep_live(context, pairs, next, &tokens, begins)?;
                }
            }
        }
        Ok(())
    }

    /// Sets those of some tokens that lead to `next` after which a member can be completed.
    fn keep_live<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        next: Member,
        tokens: &TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        if context.encoder.pretoken_may_end(next.path) && pairs.is_clean(context, next.pair)? {
            tokens.add_to(words);
            return Ok(());
        }
        if let TokenSet::List(list) = tokens
            && list.len() <= FEW
        {
            for &token in list {
                if self.is_live(context, pairs, next, token)? {
                    patch(words, &[token], &[]);
                }
            }
            return Ok(());
        }
        self.keep_many(context, pairs, next, tokens.clone(), words)
    }

    /// The same for many tokens: what one witness settles is settled for all of them at once.
    fn keep_many<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pairs: &mut Pairs,
        next: Member,
        mut left: TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let added = context.encoder.splitter().is_in_added_token(pairs.parts(next.pair).1);
        let may_witness = next == Member::new(next.pair) && !added;
        let mut known = 0;
        loop {
            check_deadline()?;
            if may_witness {
                let witnesses = self.witnesses(context, pairs, next.pair)?;
                for &witness in &witnesses[known..] {
                    let before = context.encoder.forbidden_mask(context.vocabulary, witness, false);
                    left = settled(left, &before, words);
                }
                known = witnesses.len();
            }
            // One by one; each may have taught a further witness.
            let mut list = left.into_list();
            let Some(token) = list.pop() else { return Ok(()) };
            if self.is_live(context, pairs, next, token)? {
                patch(words, &[token], &[]);
            }
            left = TokenSet::List(list);
        }
    }

    /// Number of positions that a bounded search left open.
    pub(crate) fn undecided_count(&self) -> usize {
        self.undecided.len()
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        64 * self.witnesses.len() + 16 * self.dead.len() + self.reaches.memory_bytes()
    }
}

/// Sets those of some tokens that are not in a bitmask, and hands out the others.
fn settled(tokens: TokenSet, before: &MaskWords, words: &mut MaskWords) -> TokenSet {
    match tokens {
        TokenSet::Mask(mut mask) => {
            for ((left, before), word) in mask.iter_mut().zip(before).zip(words) {
                *word |= *left & !before;
                *left &= before;
            }
            TokenSet::from_words(mask)
        }
        TokenSet::List(mut list) => {
            list.retain(|&token| {
                let fits = before[token as usize >> 5] >> (token & 31) & 1 == 0;
                if fits {
                    patch(words, &[token], &[]);
                }
                !fits
            });
            TokenSet::List(list)
        }
    }
}
