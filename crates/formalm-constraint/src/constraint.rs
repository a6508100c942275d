//! A language over a vocabulary that serves requests forever in bounded memory.
//!
//! Everything interned while reading lives in a [`StateEpoch`]. It depends on the inputs (property
//! names, items, stacks), so an epoch that outgrows its budget is replaced: new matchers begin in
//! the next one, and the old one is freed with its last matcher. A matcher moves by reading its own
//! tokens again.
//!
//! Rejected alternatives: clearing tables in place, which lock-free readers do not allow;
//! reference-counting states, which every table would have to do at each step.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use formalm_automata::{
    Automaton,
    materialized::{DfaSizeLimits, MaterializedDfa},
};
use formalm_core::{Error, ForkSafeMutex, InterruptCheck, process_fork};
use formalm_machines::{MaskClasses, RegularMaskClasses};
use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};

use crate::canonical::TextBegin;
use crate::epoch::{MemorySizes, StateEpoch, UndecidedCounts};
use crate::token_graph::token_graph;
use crate::warm_up::WarmUpSignal;

/// Split of a constraint's memory into equal parts. Masks get [`MASK_SHARES`]. The state of an
/// epoch gets one part before it is replaced, and another one before its matchers have to leave.
const MEMORY_SHARES: usize = 4;
const MASK_SHARES: usize = 2;

/// Work that creating a matcher counts as, in tokens, when growth is measured. Chosen, not
/// measured.
const TOKENS_PER_MATCHER: u32 = 16;

/// Masks and steps of one language over one vocabulary, for any number of requests and threads.
#[derive(Debug)]
pub struct Constraint<K: MaskClasses = RegularMaskClasses> {
    current: ArcSwap<StateEpoch<K>>,
    recipe: EpochRecipe,
    /// 1 + the number of process forks in which a thread is making the next epoch; 0 if no thread
    /// is.
    renewing: AtomicU64,
    replacements: AtomicUsize,
    /// All epochs but the first, and some that are gone.
    others: ForkSafeMutex<Vec<Weak<StateEpoch<K>>>>,
    warm_up: WarmUpSignal,
}

/// Everything an epoch is made from, except its mask classes.
#[derive(Debug)]
struct EpochRecipe {
    vocabulary: Arc<Vocabulary>,
    encoder: Option<Arc<BpeEncoder>>,
    /// The place at which texts begin; see [`StateEpoch::canonical_over`].
    begin: TextBegin,
    memory_limit_bytes: usize,
    /// Counts of undecided queries of epochs that are gone.
    open: Arc<UndecidedCounts>,
    /// Testing aid: replace epochs after this many steps of a matcher, whatever their size; 0 is
    /// never.
    replace_every: u32,
}

/// Memory of a constraint, and statistics of its epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstraintStats {
    /// Memory of the current epoch.
    pub current: MemorySizes,
    /// Memory of other epochs, which matchers keep alive, in bytes.
    pub pinned: usize,
    /// Number of such epochs.
    pub pinned_epochs: usize,
    /// Number of times an epoch was replaced.
    pub replacements: usize,
    /// Memory limit in bytes, without what matchers keep alive.
    pub limit: usize,
}

impl Constraint {
    /// Lifts an automaton to a vocabulary, with at most `memory_limit_bytes` for states and masks.
    pub fn new(
        automaton: Arc<Automaton>,
        vocabulary: Arc<Vocabulary>,
        memory_limit_bytes: usize,
    ) -> Constraint {
        let keys = RegularMaskClasses::new(automaton, vocabulary.longest_token_bytes());
        Constraint::over(keys, vocabulary, memory_limit_bytes)
    }

    /// Lifts an automaton to a vocabulary and allows canonical tokens only: sequences that extend
    /// to the tokenizer's own encoding of a string in the language.
    ///
    /// # Errors
    ///
    /// No string in the language has canonical tokens; [`Error::Limit`].
    pub fn canonical(
        automaton: Arc<Automaton>,
        vocabulary: Arc<Vocabulary>,
        encoder: Arc<BpeEncoder>,
        memory_limit_bytes: usize,
    ) -> Result<Constraint, Error> {
        let keys = RegularMaskClasses::new(automaton, vocabulary.longest_token_bytes());
        Constraint::canonical_over(
            keys,
            vocabulary,
            encoder,
            memory_limit_bytes,
            TextBegin::Anywhere,
        )
    }
}

impl<K: MaskClasses> Constraint<K> {
    /// Lifts any machine to a vocabulary. `keys` are its mask classes for inputs as long as the
    /// longest token.
    pub fn over(keys: K, vocabulary: Arc<Vocabulary>, memory_limit_bytes: usize) -> Constraint<K> {
        let recipe = EpochRecipe::new(vocabulary, None, TextBegin::Anywhere, memory_limit_bytes);
        let epoch = recipe.plain(keys);
        Constraint::of(recipe, epoch)
    }

    /// Lifts any machine and allows canonical tokens only.
    ///
    /// # Errors
    ///
    /// Texts begin anywhere, and no string in the language has canonical tokens; [`Error::Limit`].
    pub fn canonical_over(
        keys: K,
        vocabulary: Arc<Vocabulary>,
        encoder: Arc<BpeEncoder>,
        memory_limit_bytes: usize,
        begin: TextBegin,
    ) -> Result<Constraint<K>, Error> {
        let recipe = EpochRecipe::new(vocabulary, Some(encoder), begin, memory_limit_bytes);
        let epoch = recipe.epoch(keys)?;
        Ok(Constraint::of(recipe, epoch))
    }

    fn of(recipe: EpochRecipe, epoch: StateEpoch<K>) -> Constraint<K> {
        Constraint {
            current: ArcSwap::from_pointee(epoch),
            recipe,
            renewing: AtomicU64::new(0),
            replacements: AtomicUsize::new(0),
            others: ForkSafeMutex::default(),
            warm_up: WarmUpSignal::default(),
        }
    }

    /// Returns the signal that ends warm-ups.
    #[inline]
    pub(crate) fn warm_up_signal(&self) -> &WarmUpSignal {
        &self.warm_up
    }

    /// Replaces epochs after each `steps` steps of a matcher, whatever their size. For tests, so
    /// that a matcher moves at any point.
    #[must_use]
    pub fn replacing_every(mut self, steps: u32) -> Constraint<K> {
        self.recipe.replace_every = steps;
        self
    }

    /// See [`Constraint::replacing_every`].
    pub(crate) fn replace_every(&self) -> u32 {
        self.recipe.replace_every
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.recipe.vocabulary
    }

    /// Returns the number of words of a bitmask over the vocabulary.
    pub fn words(&self) -> usize {
        self.vocabulary().len().div_ceil(32)
    }

    /// Returns the epoch in which new matchers begin.
    pub fn current(&self) -> Arc<StateEpoch<K>> {
        let now = self.here();
        now.note(TOKENS_PER_MATCHER);
        if !now.is_retired() {
            return now;
        }
        self.replace(now)
    }

    /// Returns `true` in a forked child if a thread of the parent was changing the current epoch,
    /// and the language cannot be compiled again. No other method may be called then.
    pub fn is_lost(&self) -> bool {
        self.here().is_abandoned()
    }

    /// Returns the current epoch, or the next one in a forked child that cannot use it.
    fn here(&self) -> Arc<StateEpoch<K>> {
        let now = self.current.load_full();
        if now.is_abandoned() { self.replace(now) } else { now }
    }

    /// Returns the epoch after a retired one. One thread makes it; the others continue meanwhile.
    #[cold]
    fn replace(&self, retired: Arc<StateEpoch<K>>) -> Arc<StateEpoch<K>> {
        // A thread of the parent process never finishes what it began.
        let (here, before) =
            (1 + u64::from(process_fork::epoch()), self.renewing.load(Ordering::Acquire));
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
            // Another thread was faster, or this epoch cannot be made again.
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

    /// Replaces the current epoch by a fresh one, see [`Constraint::replacing_every`].
    pub(crate) fn replace_now(&self) -> Arc<StateEpoch<K>> {
        let now = self.here();
        now.retire();
        self.replace(now)
    }

    /// Returns a fresh epoch like another one; `None` if the machine cannot be made again.
    pub(crate) fn alone(&self, epoch: &StateEpoch<K>) -> Result<Option<Arc<StateEpoch<K>>>, Error> {
        match epoch.keys().fresh_copy()? {
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

    /// Returns the minimal graph of all token sequences that spell a string in the language. End
    /// tokens are left out; states before them are accepting.
    ///
    /// A token after which no token sequence completes a string is no edge, even if the mask has it
    /// because some string would.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if there are too many states or edges before minimization;
    /// [`Error::Interrupted`].
    pub fn graph(
        &self,
        size: DfaSizeLimits,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<MaterializedDfa, Error> {
        let epoch = self.current();
        match token_graph(&epoch, size, poll) {
            Err(error) if error.is_limit() => match self.alone(&epoch)? {
                Some(epoch) => token_graph(&epoch, size, poll),
                None => Err(error),
            },
            other => other,
        }
    }

    /// Returns the memory in use by part, and statistics of the epochs.
    pub fn stats(&self) -> ConstraintStats {
        let current = self.here();
        let pinned = self.pinned();
        ConstraintStats {
            current: current.sizes(),
            pinned: pinned.iter().map(|one| one.sizes().total()).sum(),
            pinned_epochs: pinned.len(),
            replacements: self.replacements.load(Ordering::Relaxed),
            limit: self.recipe.memory_limit_bytes,
        }
    }

    /// Returns the epochs other than the current one that matchers keep alive.
    fn pinned(&self) -> Vec<Arc<StateEpoch<K>>> {
        let current = self.current.load();
        let others = self.others.lock();
        let alive = others.iter().filter_map(Weak::upgrade);
        alive.filter(|one| !Arc::ptr_eq(one, &current) && !one.is_abandoned()).collect()
    }

    /// Returns the number of queries that masks left undecided and answered with yes: whether
    /// canonical tokens can be completed. It is 0 for machines with finitely many states.
    pub fn undecided_count(&self) -> usize {
        self.recipe.open.undecided() + self.sum(StateEpoch::undecided_count)
    }

    /// Returns the number of states whose completion search gave up. With a budget (`finish=True`),
    /// tokens that lead to them are masked out.
    pub fn given_up_count(&self) -> usize {
        self.recipe.open.given_up() + self.sum(StateEpoch::given_up_count)
    }

    fn sum(&self, count: impl Fn(&StateEpoch<K>) -> usize) -> usize {
        count(&self.here()) + self.pinned().iter().map(|one| count(one)).sum::<usize>()
    }
}

impl EpochRecipe {
    fn new(
        vocabulary: Arc<Vocabulary>,
        encoder: Option<Arc<BpeEncoder>>,
        begin: TextBegin,
        memory_limit_bytes: usize,
    ) -> EpochRecipe {
        let open = Arc::default();
        EpochRecipe { vocabulary, encoder, begin, memory_limit_bytes, open, replace_every: 0 }
    }

    fn epoch<K: MaskClasses>(&self, keys: K) -> Result<StateEpoch<K>, Error> {
        let Some(encoder) = &self.encoder else { return Ok(self.plain(keys)) };
        let (vocabulary, encoder) = (Arc::clone(&self.vocabulary), Arc::clone(encoder));
        let epoch =
            StateEpoch::canonical_over(keys, vocabulary, encoder, self.mask_bytes(), self.begin)?;
        Ok(self.limited(epoch))
    }

    fn plain<K: MaskClasses>(&self, keys: K) -> StateEpoch<K> {
        let epoch = StateEpoch::over(keys, Arc::clone(&self.vocabulary), self.mask_bytes());
        self.limited(epoch)
    }

    fn limited<K: MaskClasses>(&self, mut epoch: StateEpoch<K>) -> StateEpoch<K> {
        epoch.leave_open_to(&self.open);
        epoch.limit_growth(self.memory_limit_bytes / MEMORY_SHARES);
        epoch
    }

    fn mask_bytes(&self) -> usize {
        self.memory_limit_bytes / MEMORY_SHARES * MASK_SHARES
    }
}
