//! Canonical tokens only: masks of sequences that extend to what the tokenizer makes of a member.
//!
//! A position is a state of the language, what may be true of the marked text so far (`positions`),
//! and the last token. What lies ahead is searched on a machine of its own (`search`). A token may
//! follow if the language goes on with its bytes, the tokenizer may cut the text so, it may be the last token's neighbour unless a piece begins with it, and
//! from there some member can be completed in the same way (`live`). For machines with finitely many
//! states nothing is a guess: what cannot be decided within limits is an error. Where a stack makes
//! searches endless they are bounded, and what they leave open counts as possible and is counted.

mod joint_targets;
mod language_targets;
mod liveness;
mod lookahead_search;
mod product;
mod prompt;
mod special_tokens;
mod subsets;
#[cfg(test)]
mod tests;
mod text_positions;
mod tokens_by_target;

use std::sync::{Arc, MutexGuard};

use formalm_automata::{Chunks, Error, Keys, Lock, Machine, StateId};
use formalm_vocabulary::Vocabulary;
use formalm_vocabulary::bpe::BpeEncoder;

use crate::epoch::Unfollowed;
use crate::mask::{Mask, MaskWords, patch};
use crate::mask_cache::Memo;
use lookahead_search::{Here, Search};
use subsets::{Member, Numbered, Sets};
use text_positions::Positions;

/// No token: nothing has been read.
pub(crate) const NONE: u32 = u32::MAX;

/// Up to so many tokens are looked at one by one.
const FEW: usize = 32;

/// From so many forbidden neighbours on, a bitmask of them is used.
const MANY: usize = 2048;

/// Steps of one search where no search needs to come to an end.
const MOST_STEPS: usize = 1_000;

/// Everything that grows.
#[derive(Debug)]
struct Grown<K> {
    /// Where texts have come to.
    positions: Positions,
    /// What was looked at beyond them.
    search: Search<K>,
}

/// The canonical tokenizations of a language.
#[derive(Debug)]
pub(crate) struct Canonical<K> {
    encoder: Arc<BpeEncoder>,
    /// In which special tokens have no bytes.
    vocabulary: Arc<Vocabulary>,
    /// Special tokens that may stand between texts, with their bytes.
    special: Vec<(u32, Vec<u8>)>,
    grown: Lock<Grown<K>>,
    /// Apart from the rest, so that known masks are read while others are computed.
    sets: Lock<Sets>,
    /// Per set 1 if the text may end there.
    accepting: Chunks,
    masks: Memo,
}

/// What the searches below look at.
#[derive(Debug)]
pub(crate) struct Context<'a, K: Keys> {
    pub(crate) keys: &'a K,
    pub(crate) machine: &'a K::Machine,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) encoder: &'a BpeEncoder,
    pub(crate) special: &'a [(u32, Vec<u8>)],
}

impl<K: Keys> Clone for Context<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Keys> Copy for Context<'_, K> {}

impl<K: Keys> Canonical<K> {
    /// Where `begins` is false, a text begins only after tokens that are given.
    ///
    /// # Errors
    ///
    /// `begins`, and no member has canonical tokens; [`Error::Limit`].
    pub(crate) fn new(
        keys: &K,
        (vocabulary, encoder): (&Arc<Vocabulary>, Arc<BpeEncoder>),
        memory_limit_bytes: usize,
        begins: bool,
    ) -> Result<Canonical<K>, Error> {
        let plain = vocabulary.without_special_bytes();
        let special = match vocabulary.has_special_bytes() {
            false => Vec::new(),
            true => (0..vocabulary.len() as u32)
                .filter(|&token| plain.token_bytes(token).is_none())
                .filter_map(|token| Some((token, vocabulary.token_bytes(token)?.to_vec())))
                .collect(),
        };
        let canonical = Canonical {
            encoder,
            vocabulary: Arc::new(plain.clone()),
            special,
            grown: Lock::new(Grown { positions: Positions::default(), search: Search::new(keys) }),
            sets: Lock::new(Sets::default()),
            accepting: Chunks::default(),
            masks: Memo::new(memory_limit_bytes),
        };
        canonical.begin(keys, begins)?;
        Ok(canonical)
    }

    /// Makes the first state.
    fn begin(&self, keys: &K, begins: bool) -> Result<(), Error> {
        let context = self.context(keys);
        let Grown { positions, search } = &mut *self.lock();
        let start = (context.machine.start(), self.encoder.splitter().start());
        if begins && !search.is_productive(context, start)? {
            return Err(Error::Language {
                message: "no member of the language has canonical tokens".to_owned(),
                span: None,
                hint: Some("members must be UTF-8, and texts that decoding can give".to_owned()),
            });
        }
        let start = positions.intern(start.0, start.1);
        self.set(context, positions, vec![Member::new(start)])?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Grown<K>> {
        // A panic while the lock was held leaves at worst something unlearnt.
        self.grown.lock()
    }

    fn context<'a>(&'a self, keys: &'a K) -> Context<'a, K> {
        let (vocabulary, encoder) = (&*self.vocabulary, &*self.encoder);
        Context { keys, machine: keys.machine(), vocabulary, encoder, special: &self.special }
    }

    /// The state before anything was read.
    pub(crate) fn start(&self) -> StateId {
        StateId::new(0)
    }

    /// The state before anything was read where a text goes on after tokens, none of them special,
    /// and the last of them.
    ///
    /// # Errors
    ///
    /// [`Unfollowed`].
    pub(crate) fn start_after(
        &self,
        keys: &K,
        tokens: &[u32],
    ) -> Result<(StateId, u32), Unfollowed> {
        let context = self.context(keys);
        let places = prompt::places(context, tokens).map_err(|good| Unfollowed::Prompt { good })?;
        let last = tokens.last().copied().unwrap_or(NONE);
        let Grown { positions, search } = &mut *self.lock();
        search.limit(keys);
        let start = context.machine.start();
        let mut members = Vec::new();
        for (place, path) in places {
            if search.is_live(context, (start, place, path), last)? {
                members.push(Member { pair: positions.intern(start, place), path });
            }
        }
        if members.is_empty() {
            return Err(Unfollowed::Language);
        }
        members.sort_unstable();
        Ok((self.set(context, positions, members)?, last))
    }

    /// The number of a set of members, all of one state of the language.
    fn set(
        &self,
        context: Context<'_, K>,
        positions: &mut Positions,
        members: Vec<Member>,
    ) -> Result<StateId, Error> {
        let machine = context.machine;
        let mut accepting = false;
        for member in &members {
            let (state, place) = positions.parts(member.pair);
            let may_end = self.encoder.splitter().may_end(place)
                && self.encoder.pretoken_may_end(member.path);
            accepting = accepting || (may_end && machine.is_accepting(state)?);
        }
        let masked = members.iter().map(|&Member { pair, path }| {
            positions.common(context.keys, pair).map(|pair| Member { pair, path })
        });
        let masked: Vec<Member> = masked.collect::<Result<_, _>>()?;
        let mut sets = self.sets.lock();
        let set = sets.intern(members, masked);
        self.accepting.set(set as usize, u32::from(accepting));
        Ok(StateId::new(set))
    }

    /// Whether the text may end with the tokens read.
    #[inline]
    pub(crate) fn is_accepting(&self, state: StateId) -> bool {
        self.accepting.get(state.number() as usize) != 0
    }

    /// The language's state.
    pub(crate) fn machine_state(&self, state: StateId) -> StateId {
        let first = self.members(state)[0].member;
        self.lock().positions.parts(first.pair).0
    }

    /// The state after a token, given the one before it; none if it may not stand there.
    pub(crate) fn step(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        token: u32,
    ) -> Result<Option<StateId>, Error> {
        let context = self.context(keys);
        let Grown { positions, search } = &mut *self.lock();
        search.limit(keys);
        let mut members = Vec::new();
        for &Numbered { member, .. } in &*self.members(state) {
            let here @ (state, ..) = here(positions, member);
            let goals = search.after(context, here, (last, token))?;
            let plain = context.vocabulary.token_bytes(token);
            let special = context.special.iter().find(|one| one.0 == token);
            let Some(bytes) = plain.or(special.map(|one| &one.1[..])) else { continue };
            if goals.is_empty() {
                continue;
            }
            let Ok(state) = context.machine.walk(state, bytes)? else { continue };
            for (place, path) in goals {
                let next = Member { pair: positions.intern(state, place), path };
                if !members.contains(&next) {
                    members.push(next);
                }
            }
        }
        members.sort_unstable();
        if members.is_empty() {
            return Ok(None);
        }
        self.set(context, positions, members).map(Some)
    }

    /// Whether [`Canonical::step`] leads anywhere.
    pub(crate) fn allows(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        token: u32,
    ) -> Result<bool, Error> {
        let context = self.context(keys);
        let Grown { positions, search } = &mut *self.lock();
        search.limit(keys);
        for &Numbered { member, .. } in &*self.members(state) {
            let here = here(positions, member);
            if !search.after(context, here, (last, token))?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The members of a set.
    fn members(&self, state: StateId) -> Arc<[Numbered]> {
        self.sets.lock().members(state.number())
    }

    /// Whether the masks of a state are stored.
    pub(crate) fn is_ready(&self, state: StateId) -> bool {
        let has = |id: u32| self.masks.has(2 * id) && self.masks.has(2 * id + 1);
        self.members(state).iter().all(|member| has(member.id))
    }

    /// Writes the mask over `out`, end tokens left out.
    pub(crate) fn fill(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        out: &mut MaskWords,
    ) -> Result<(), Error> {
        let members = self.members(state);
        out.fill(0);
        let mut many = false;
        for &member in &*members {
            self.with_mask(keys, member, false, |mask| match mask {
                Mask::Sparse(ids) if ids.len() <= FEW => {
                    let fits = |id: u32| last == NONE || self.encoder.may_follow(last, id);
                    for &id in ids.iter().filter(|&&id| fits(id)) {
                        patch(out, &[id], &[]);
                    }
                }
                mask => {
                    many = true;
                    mask.join(out);
                }
            })?;
        }
        if many && last != NONE {
            self.clear_after(last, out);
        }
        for &member in &*members {
            self.with_mask(keys, member, true, |mask| mask.join(out))?;
        }
        // What keys forget a few tokens can tell.
        if keys.forgets_items() {
            let inner = self.machine_state(state);
            // The masks may be there although the key was never asked for.
            keys.key(inner)?;
            let unsure = match keys.is_unsure(inner) {
                true => self.vocabulary.item_joining_tokens(),
                false => self.vocabulary.whole_item_tokens(),
            };
            for &token in unsure {
                match self.allows(keys, (state, last), token)? {
                    true => patch(out, &[token], &[]),
                    false => patch(out, &[], &[token]),
                }
            }
        }
        Ok(())
    }

    /// Uses the mask of the tokens that begin a piece, or of those that go on with one, neighbours
    /// aside.
    fn with_mask(
        &self,
        keys: &K,
        Numbered { masked, id, .. }: Numbered,
        begins: bool,
        use_mask: impl FnOnce(&Mask),
    ) -> Result<(), Error> {
        let key = 2 * id + u32::from(begins);
        let mut use_mask = Some(use_mask);
        if self.masks.with(key, |mask| use_mask.take().map(|f| f(mask))).is_some() {
            return Ok(());
        }
        let masks = self.compute(keys, masked)?;
        // `use_mask` is still there: it is taken only on a hit.
        if let Some(f) = use_mask.take() {
            f(if begins { &masks.1 } else { &masks.0 });
        }
        self.masks.insert(2 * id, masks.0);
        self.masks.insert(2 * id + 1, masks.1);
        Ok(())
    }

    /// Clears what may not follow a token within a piece.
    fn clear_after(&self, last: u32, out: &mut MaskWords) {
        let mut count = 0;
        self.encoder.forbidden_after(last, |tokens| count += tokens.len());
        if count <= MANY {
            self.encoder.forbidden_after(last, |tokens| patch(out, &[], tokens));
            return;
        }
        let row = self.encoder.forbidden_mask(&self.vocabulary, last, true);
        for (word, forbidden) in out.iter_mut().zip(&*row) {
            *word &= !forbidden;
        }
    }

    /// The tokens that go on with a piece, neighbours aside, and those that begin one.
    fn compute(&self, keys: &K, member: Member) -> Result<(Mask, Mask), Error> {
        let context = self.context(keys);
        let Grown { positions, search } = &mut *self.lock();
        search.limit(keys);
        let words = self.vocabulary.len().div_ceil(32);
        let (mut inside, mut begins) = (vec![0; words], vec![0; words]);
        search.allowed(context, here(positions, member), (&mut inside, &mut begins))?;
        Ok((Mask::from_words(inside), Mask::from_words(begins)))
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        let grown = self.lock();
        grown.positions.memory_bytes()
            + grown.search.memory_bytes()
            + self.sets.lock().memory_bytes()
    }

    /// Memory of masks, in bytes.
    pub(crate) fn mask_bytes(&self) -> usize {
        self.masks.size().1
    }

    /// Number of questions that a bounded search left open.
    pub(crate) fn undecided_count(&self) -> usize {
        if self.grown.is_abandoned() {
            return 0;
        }
        self.lock().search.undecided_count()
    }

    /// Whether a thread was at work on its positions while the process was forked, see
    /// [`Keys::is_abandoned`].
    pub(crate) fn is_abandoned(&self) -> bool {
        self.grown.is_abandoned() || self.sets.is_abandoned()
    }

    /// Number of masks kept.
    pub(crate) fn mask_count(&self) -> usize {
        self.masks.size().0 / 2
    }
}

/// The state of the language and the place of a member.
fn here(positions: &Positions, Member { pair, path }: Member) -> Here {
    let (state, place) = positions.parts(pair);
    (state, place, path)
}
