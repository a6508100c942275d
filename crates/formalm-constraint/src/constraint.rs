//! A language over a vocabulary that serves requests forever, in bounded memory.
//!
//! All that is interned while texts are read lives in a [`StateEpoch`]. What texts leave behind in it
//! depends on them (names of properties, items, stacks), so one that outgrows its budget is replaced:
//! new matchers begin in the next one, and the old one is freed with its last matcher. A matcher is
//! carried over by reading its own tokens again. Rejected alternatives: to clear tables in place,
//! which readers without a lock do not allow; to count references of states, which every table would
//! have to do at each step.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use formalm_automata::explicit::{Graph, Poll, Size};
use formalm_automata::{Automaton, Error, Keys, Lock, Viability, fork};
use formalm_vocabulary::Vocabulary;
use formalm_vocabulary::bpe::BpeEncoder;

use crate::epoch::{Open, Sizes, StateEpoch};

/// How the memory of a constraint is split: of so many parts, masks get [`MASK_PARTS`]; the state of
/// an epoch gets one before it is replaced, and another one before its matchers have to leave.
const PARTS: usize = 4;
const MASK_PARTS: usize = 2;

/// Tokens that making a matcher counts for where growth is measured. Chosen, not measured.
const TOKENS_PER_MATCHER: u32 = 16;

/// Masks and steps of one language over one vocabulary, for any number of requests and threads.
#[derive(Debug)]
pub struct Constraint<K: Keys = Viability> {
    current: ArcSwap<StateEpoch<K>>,
    recipe: Recipe,
    /// 1 + the number of forks of the process in which somebody makes the next epoch; 0 if nobody does.
    renewing: AtomicU64,
    replacements: AtomicUsize,
    /// All epochs but the first, and some that are gone.
    others: Lock<Vec<Weak<StateEpoch<K>>>>,
}

/// What an epoch is made with, its keys aside.
#[derive(Debug)]
struct Recipe {
    vocabulary: Arc<Vocabulary>,
    encoder: Option<Arc<BpeEncoder>>,
    /// Whether members need canonical tokens of their own, see [`StateEpoch::canonical_over`].
    begins: bool,
    memory_limit_bytes: usize,
    /// Questions that epochs which are gone left open.
    open: Arc<Open>,
    /// Epochs are replaced each so many steps of a matcher, whatever they take; 0 is never. For tests.
    replace_every: u32,
}

/// The memory of a constraint, and what became of its epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Memory of the current epoch.
    pub current: Sizes,
    /// Memory of other epochs, which matchers keep alive, in bytes.
    pub pinned: usize,
    /// How many of these there are.
    pub pinned_epochs: usize,
    /// How often an epoch was replaced.
    pub replacements: usize,
    /// The limit of it all, what matchers keep alive aside.
    pub limit: usize,
}

impl Constraint {
    /// Lifts an automaton to a vocabulary, with at most `memory_limit_bytes` for states and masks.
    pub fn new(
        automaton: Arc<Automaton>,
        vocabulary: Arc<Vocabulary>,
        memory_limit_bytes: usize,
    ) -> Constraint {
        let keys = Viability::new(automaton, vocabulary.longest_token_bytes());
        Constraint::over(keys, vocabulary, memory_limit_bytes)
    }

    /// The same for canonical tokens only: sequences that extend to what the tokenizer makes of a
    /// member.
    ///
    /// # Errors
    ///
    /// No member has canonical tokens; [`Error::Limit`].
    pub fn canonical(
        automaton: Arc<Automaton>,
        vocabulary: Arc<Vocabulary>,
        encoder: Arc<BpeEncoder>,
        memory_limit_bytes: usize,
    ) -> Result<Constraint, Error> {
        let keys = Viability::new(automaton, vocabulary.longest_token_bytes());
        Constraint::canonical_over(keys, vocabulary, encoder, memory_limit_bytes, true)
    }
}

impl<K: Keys> Constraint<K> {
    /// Lifts any machine to a vocabulary, given its keys for texts as long as the longest token.
    pub fn over(keys: K, vocabulary: Arc<Vocabulary>, memory_limit_bytes: usize) -> Constraint<K> {
        let recipe = Recipe::new(vocabulary, None, true, memory_limit_bytes);
        let epoch = recipe.plain(keys);
        Constraint::of(recipe, epoch)
    }

    /// The same for canonical tokens only. Where `begins` is false, members may lack canonical tokens
    /// of their own: the text begins after tokens.
    ///
    /// # Errors
    ///
    /// `begins`, and no member has canonical tokens; [`Error::Limit`].
    pub fn canonical_over(
        keys: K,
        vocabulary: Arc<Vocabulary>,
        encoder: Arc<BpeEncoder>,
        memory_limit_bytes: usize,
        begins: bool,
    ) -> Result<Constraint<K>, Error> {
        let recipe = Recipe::new(vocabulary, Some(encoder), begins, memory_limit_bytes);
        let epoch = recipe.epoch(keys)?;
        Ok(Constraint::of(recipe, epoch))
    }

    fn of(recipe: Recipe, epoch: StateEpoch<K>) -> Constraint<K> {
        Constraint {
            current: ArcSwap::from_pointee(epoch),
            recipe,
            renewing: AtomicU64::new(0),
            replacements: AtomicUsize::new(0),
            others: Lock::default(),
        }
    }

    /// Replaces epochs after each `steps` steps of a matcher, whatever they take: for tests, in which
    /// a matcher moves in the midst of everything.
    #[must_use]
    pub fn replacing_every(mut self, steps: u32) -> Constraint<K> {
        self.recipe.replace_every = steps;
        self
    }

    /// See [`Constraint::replacing_every`].
    pub(crate) fn replace_every(&self) -> u32 {
        self.recipe.replace_every
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.recipe.vocabulary
    }

    /// Number of words that a bitmask over the vocabulary needs.
    pub fn words(&self) -> usize {
        self.vocabulary().len().div_ceil(32)
    }

    /// The epoch in which new matchers begin.
    pub fn current(&self) -> Arc<StateEpoch<K>> {
        let now = self.here();
        now.note(TOKENS_PER_MATCHER);
        if !now.is_retired() {
            return now;
        }
        self.replace(now)
    }

    /// The current epoch, or the next one in a child of a fork that cannot have it.
    fn here(&self) -> Arc<StateEpoch<K>> {
        let now = self.current.load_full();
        if now.is_abandoned() { self.replace(now) } else { now }
    }

    /// The epoch after one that is retired: one thread makes it, and the others go on meanwhile.
    #[cold]
    fn replace(&self, retired: Arc<StateEpoch<K>>) -> Arc<StateEpoch<K>> {
        // A thread of the parent process does not come back from what it began.
        let (here, before) = (1 + u64::from(fork::epoch()), self.renewing.load(Ordering::Acquire));
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let mine =
            before != here && self.renewing.compare_exchange(before, here, done, failed).is_ok();
        if !mine {
            let own = if retired.is_abandoned() { self.alone(&retired) } else { Ok(None) };
            return own.ok().flatten().unwrap_or(retired);
        }
        let now = self.current.load_full();
        let next = if Arc::ptr_eq(&now, &retired) { self.alone(&now) } else { Ok(None) };
        let next = match next {
            Ok(Some(next)) => {
                self.current.store(Arc::clone(&next));
                self.replacements.fetch_add(1, Ordering::Relaxed);
                if !now.is_abandoned() {
                    self.remember(&now);
                }
                next
            }
            // Another thread was quicker, or this one cannot be made again.
            Ok(None) | Err(_) => {
                if Arc::ptr_eq(&now, &retired) && !now.is_abandoned() {
                    now.keep_on();
                }
                now
            }
        };
        self.renewing.store(0, Ordering::Release);
        next
    }

    /// Makes the current epoch one that nothing was read in, see [`Constraint::replacing_every`].
    pub(crate) fn replace_now(&self) -> Arc<StateEpoch<K>> {
        let now = self.here();
        now.retire();
        self.replace(now)
    }

    /// An epoch like another one in which nothing was read; none if the machine cannot be made again.
    pub(crate) fn alone(&self, epoch: &StateEpoch<K>) -> Result<Option<Arc<StateEpoch<K>>>, Error> {
        match epoch.keys().renewed()? {
            Some(keys) => {
                let made = Arc::new(self.recipe.epoch(keys)?);
                self.remember(&made);
                Ok(Some(made))
            }
            None => Ok(None),
        }
    }

    fn remember(&self, epoch: &Arc<StateEpoch<K>>) {
        let mut others = self.others.lock();
        others.retain(|one| one.strong_count() > 0 && !std::ptr::eq(one.as_ptr(), &**epoch));
        others.push(Arc::downgrade(epoch));
    }

    /// The minimal graph of all token sequences that spell a member, see [`StateEpoch::graph`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn graph(&self, size: Size, poll: &mut Poll<'_>) -> Result<Graph, Error> {
        let epoch = self.current();
        match epoch.graph(size, poll) {
            Err(error) if error.is_limit() => match self.alone(&epoch)? {
                Some(epoch) => epoch.graph(size, poll),
                None => Err(error),
            },
            other => other,
        }
    }

    /// Memory in use by part, and what became of the epochs.
    pub fn stats(&self) -> Stats {
        let current = self.here();
        let pinned = self.pinned();
        Stats {
            current: current.sizes(),
            pinned: pinned.iter().map(|one| one.sizes().total()).sum(),
            pinned_epochs: pinned.len(),
            replacements: self.replacements.load(Ordering::Relaxed),
            limit: self.recipe.memory_limit_bytes,
        }
    }

    /// Epochs beside the current one that matchers keep alive.
    fn pinned(&self) -> Vec<Arc<StateEpoch<K>>> {
        let current = self.current.load();
        let others = self.others.lock();
        let alive = others.iter().filter_map(Weak::upgrade);
        alive.filter(|one| !Arc::ptr_eq(one, &current) && !one.is_abandoned()).collect()
    }

    /// Number of questions that masks have left open, and answered by yes: whether a member can be
    /// completed in canonical tokens. None for machines with finitely many states.
    pub fn undecided_count(&self) -> usize {
        self.recipe.open.undecided() + self.sum(StateEpoch::undecided_count)
    }

    /// Number of states that tokens were left out for leading to where a text has to end within a
    /// budget, since no text that completes them was found in time.
    pub fn given_up_count(&self) -> usize {
        self.recipe.open.given_up() + self.sum(StateEpoch::given_up_count)
    }

    fn sum(&self, count: impl Fn(&StateEpoch<K>) -> usize) -> usize {
        count(&self.here()) + self.pinned().iter().map(|one| count(one)).sum::<usize>()
    }
}

impl Recipe {
    fn new(
        vocabulary: Arc<Vocabulary>,
        encoder: Option<Arc<BpeEncoder>>,
        begins: bool,
        memory_limit_bytes: usize,
    ) -> Recipe {
        let open = Arc::default();
        Recipe { vocabulary, encoder, begins, memory_limit_bytes, open, replace_every: 0 }
    }

    fn epoch<K: Keys>(&self, keys: K) -> Result<StateEpoch<K>, Error> {
        let Some(encoder) = &self.encoder else { return Ok(self.plain(keys)) };
        let (vocabulary, encoder) = (Arc::clone(&self.vocabulary), Arc::clone(encoder));
        let epoch =
            StateEpoch::canonical_over(keys, vocabulary, encoder, self.mask_bytes(), self.begins)?;
        Ok(self.limited(epoch))
    }

    fn plain<K: Keys>(&self, keys: K) -> StateEpoch<K> {
        let epoch = StateEpoch::over(keys, Arc::clone(&self.vocabulary), self.mask_bytes());
        self.limited(epoch)
    }

    fn limited<K: Keys>(&self, mut epoch: StateEpoch<K>) -> StateEpoch<K> {
        epoch.leave_open_to(&self.open);
        epoch.limit_growth(self.memory_limit_bytes / PARTS);
        epoch
    }

    fn mask_bytes(&self) -> usize {
        self.memory_limit_bytes / PARTS * MASK_PARTS
    }
}
