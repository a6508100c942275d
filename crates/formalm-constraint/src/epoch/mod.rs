//! A language lifted to a vocabulary, with everything interned for it: positions, mask classes,
//! masks.
//!
//! ```text
//! Constraint ──current──► StateEpoch 3 ◄── matchers that began or moved here
//!                         StateEpoch 2 ◄── a matcher that has not moved; freed with it
//!                         (1 is freed)
//! ```
//!
//! Everything in an epoch is named by numbers that only this epoch knows. So [`crate::Constraint`]
//! replaces it as a whole and never cleans it up: nothing that a lock-free reader holds can go
//! away.

mod advance;
mod finish_budget;
mod growth;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formalm_core::{Error, LazyDfa, MaskClassId, StateId, require_exact};
use formalm_machines::{MaskClasses, RegularMaskClasses, ScratchCache, ScratchMachine};
use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};

pub use self::advance::AdvanceError;
use self::finish_budget::FinishState;
use self::growth::EpochGrowth;
use crate::canonical::{CanonicalMasks, ExcludedMembers, NONE, TextBegin};
use crate::json_string::length::QuoteContinuations;
use crate::lexical::LexicalMasks;
use crate::mask::{Mask, MaskWords, has, patch};
use crate::mask_builder;
use crate::mask_cache::{MaskCache, MaskMemory};

/// Masks and steps of one language over one vocabulary; shared freely between threads.
///
/// `K` are the mask classes of the language's machine, by default those of a regular language.
#[derive(Debug)]
pub struct StateEpoch<K: MaskClasses = RegularMaskClasses> {
    keys: K,
    vocabulary: Arc<Vocabulary>,
    memo: MaskCache,
    lexical: LexicalMasks,
    continuations: QuoteContinuations,
    completing: FinishState<K::Machine>,
    /// The lookahead machine.
    ahead: ScratchCache<K::Machine>,
    forgets_items: bool,
    /// Boxed, because most constraints have none.
    canonical: Option<Box<CanonicalMasks<K>>>,
    growth: EpochGrowth,
    /// Receives the counts of undecided queries when the epoch is dropped.
    open: Option<Arc<UndecidedCounts>>,
}

/// Counts of undecided queries of epochs that are gone.
#[derive(Debug, Default)]
pub(crate) struct UndecidedCounts {
    undecided: AtomicUsize,
    given_up: AtomicUsize,
}

impl UndecidedCounts {
    /// See [`StateEpoch::undecided_count`].
    pub(crate) fn undecided(&self) -> usize {
        self.undecided.load(Ordering::Relaxed)
    }

    /// See [`StateEpoch::given_up_count`].
    pub(crate) fn given_up(&self) -> usize {
        self.given_up.load(Ordering::Relaxed)
    }
}

impl<K: MaskClasses> Drop for StateEpoch<K> {
    fn drop(&mut self) {
        let Some(open) = &self.open else { return };
        let undecided = self.canonical.as_deref().map_or(0, CanonicalMasks::undecided_count);
        open.undecided.fetch_add(undecided, Ordering::Relaxed);
        open.given_up.fetch_add(self.completing.given_up_count(), Ordering::Relaxed);
    }
}

/// Memory of an epoch by part, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySizes {
    /// The language's machine: its states and their parts.
    pub machine: usize,
    /// Mask classes of states, and tables from which masks are assembled.
    pub classes: usize,
    /// Shortest completions, and tables of value ends.
    pub completions: usize,
    /// Positions of canonical tokens.
    pub canonical: usize,
    /// Masks.
    pub masks: usize,
}

impl MemorySizes {
    /// Returns the sum of all parts.
    pub fn total(&self) -> usize {
        self.machine + self.classes + self.completions + self.canonical + self.masks
    }
}

/// The reason why no string can continue given tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoContinuation {
    /// The tokenizer encodes every text with more than the first `good` tokens differently.
    Prompt {
        /// Number of tokens that are canonical.
        good: usize,
    },
    /// No string in the language continues them with canonical tokens.
    Language,
    /// The machine exceeded a limit.
    Failed(Error),
}

impl From<Error> for NoContinuation {
    fn from(error: Error) -> NoContinuation {
        NoContinuation::Failed(error)
    }
}

/// The state of a token sequence in a constraint; meaningless in any other constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConstraintState {
    state: StateId,
    /// The last token, if it matters.
    last: u32,
}

impl ConstraintState {
    /// Returns a number for the state. Equal numbers mean equal futures.
    pub fn number(self) -> u64 {
        u64::from(self.state.number()) << 24 | u64::from(self.last & 0xff_ffff)
    }
}

impl<K: MaskClasses> StateEpoch<K> {
    /// Lifts any machine to a vocabulary. `keys` are its mask classes for inputs as long as the
    /// longest token.
    pub fn over(keys: K, vocabulary: Arc<Vocabulary>, memory_limit_bytes: usize) -> StateEpoch<K> {
        StateEpoch::within(keys, vocabulary, MaskMemory::of_one(memory_limit_bytes))
    }

    /// As [`StateEpoch::over`], with memory for masks that other machines may share.
    pub(crate) fn within(
        keys: K,
        vocabulary: Arc<Vocabulary>,
        memory: MaskMemory,
    ) -> StateEpoch<K> {
        let memo = MaskCache::within(memory);
        let (lexical, continuations) = (LexicalMasks::default(), QuoteContinuations::default());
        let forgets_items = keys.drops_seen_items();
        StateEpoch {
            keys,
            vocabulary,
            memo,
            lexical,
            continuations,
            completing: FinishState::default(),
            ahead: ScratchCache::default(),
            forgets_items,
            canonical: None,
            growth: EpochGrowth::unbounded(),
            open: None,
        }
    }

    /// Lifts any machine and allows canonical tokens only, as [`crate::Constraint::canonical`].
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
    ) -> Result<StateEpoch<K>, Error> {
        let machine = &**keys.machine();
        require_exact(machine, "canonical tokenization", "use tokenization=\"all\"")?;
        if vocabulary.has_special_bytes() && encoder.prepends_after_special() {
            return Err(Error::language(
                "the tokenizer inserts a space before text, also after the special tokens that \
                     the language contains",
                Some("use tokenization=\"all\""),
            ));
        }
        let canonical =
            CanonicalMasks::new(&keys, (&vocabulary, encoder), memory_limit_bytes, begin)?;
        let mut epoch = StateEpoch::over(keys, vocabulary, memory_limit_bytes);
        epoch.canonical = Some(Box::new(canonical));
        Ok(epoch)
    }

    /// Adds the number of undecided queries to `open` when the epoch is dropped.
    pub(crate) fn leave_open_to(&mut self, open: &Arc<UndecidedCounts>) {
        self.open = Some(Arc::clone(open));
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the mask classes of the machine's states.
    pub(crate) fn keys(&self) -> &K {
        &self.keys
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Arc<K::Machine> {
        self.keys.machine()
    }

    /// Returns the number of words of a bitmask over the vocabulary.
    pub fn words(&self) -> usize {
        self.vocabulary.len().div_ceil(32)
    }

    /// Returns `true` if only canonical tokens are allowed.
    pub fn is_canonical(&self) -> bool {
        self.canonical.is_some()
    }

    /// Returns the state before any input.
    #[inline]
    pub fn start(&self) -> ConstraintState {
        let state = match &self.canonical {
            Some(canonical) => canonical.start(),
            None => self.machine().start(),
        };
        ConstraintState { state, last: NONE }
    }

    /// Returns the state before any input if the text continues `tokens`. They matter only if
    /// tokens must be canonical, from the last special token on.
    ///
    /// # Errors
    ///
    /// [`NoContinuation`].
    pub fn start_after(&self, tokens: &[u32]) -> Result<ConstraintState, NoContinuation> {
        let Some(canonical) = &self.canonical else { return Ok(self.start()) };
        let special =
            |&token: &u32| self.vocabulary.without_special_bytes().token_bytes(token).is_none();
        let first = tokens.iter().rposition(special).map_or(0, |at| at + 1);
        match canonical.start_after(&self.keys, &tokens[first..]) {
            Ok((state, last)) => Ok(ConstraintState { state, last }),
            Err(NoContinuation::Prompt { good }) => {
                Err(NoContinuation::Prompt { good: first + good })
            }
            Err(other) => Err(other),
        }
    }

    /// Returns `true` if the input is in the language and, if required, its tokens are canonical.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine exceeds a limit.
    #[inline]
    pub fn is_accepting(&self, position: ConstraintState) -> Result<bool, Error> {
        match &self.canonical {
            Some(canonical) => Ok(canonical.is_accepting(position.state)),
            None => self.machine().is_accepting(position.state),
        }
    }

    /// Overwrites `out` with the mask of a state: the tokens after which a string can be completed,
    /// and the end tokens if the input is in the language. Words beyond the vocabulary become zero.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine exceeds a limit; `out` is then unspecified.
    pub fn fill(&self, position: ConstraintState, out: &mut MaskWords) -> Result<(), Error> {
        match &self.canonical {
            Some(canonical) => {
                // A new canonical mask interns more than a hundred tokens do.
                if !canonical.is_ready(position.state) {
                    self.note(growth::TOKENS_PER_MASK);
                }
                canonical.fill(&self.keys, (position.state, position.last), out)?;
            }
            None => {
                self.with_mask(position.state, |mask| mask.fill(out))?;
                self.correct(position.state, out)?;
            }
        }
        self.add_end(position, out)
    }

    /// Writes the mask if it is cached, which takes less than a microsecond. Otherwise returns
    /// `false` and writes nothing.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`].
    #[inline]
    pub fn fill_ready(
        &self,
        position: ConstraintState,
        out: &mut MaskWords,
    ) -> Result<bool, Error> {
        match &self.canonical {
            Some(canonical) if canonical.is_ready(position.state) => {
                canonical.fill(&self.keys, (position.state, position.last), out)?;
            }
            Some(_) => return Ok(false),
            None => {
                let Some(key) = self.keys.known_mask_class(position.state) else {
                    return Ok(false);
                };
                if self.memo.with(key.number(), |mask| mask.fill(out)).is_none() {
                    return Ok(false);
                }
                self.correct(position.state, out)?;
            }
        }
        self.add_end(position, out)?;
        Ok(true)
    }

    #[inline]
    fn add_end(&self, position: ConstraintState, out: &mut MaskWords) -> Result<(), Error> {
        if self.is_accepting(position)? {
            patch(out, self.vocabulary.end_token_ids(), &[]);
        }
        Ok(())
    }

    /// Rechecks the tokens that the mask class of a state leaves undecided.
    #[inline]
    fn correct(&self, state: StateId, out: &mut MaskWords) -> Result<(), Error> {
        let undecided = self.undecided_tokens(state);
        if undecided.is_empty() { Ok(()) } else { self.recheck_tokens(state, undecided, out) }
    }

    /// Returns `true` if the cache has room for any mask.
    pub(crate) fn keeps_masks(&self) -> bool {
        self.memo.has_room_for(4 * self.words())
    }

    /// Returns the tokens that the mask class of a state leaves undecided. The class must have been
    /// computed.
    #[inline]
    pub(crate) fn undecided_tokens(&self, state: StateId) -> &[u32] {
        if self.keys.is_approximate(state) {
            self.vocabulary.item_joining_tokens()
        } else if self.forgets_items {
            self.vocabulary.whole_item_tokens()
        } else {
            &[]
        }
    }

    fn recheck_tokens(
        &self,
        state: StateId,
        undecided: &[u32],
        out: &mut MaskWords,
    ) -> Result<(), Error> {
        let is_unsure = self.keys.is_approximate(state);
        let ahead = self.ahead.of(self.machine());
        let (machine, from) = match &ahead {
            Some(ahead) => (&ahead.machine, ahead.import_state(state)?),
            None => (self.machine(), state),
        };
        for &token in undecided {
            let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
            if has(out, token)
                && (!is_unsure || self.keys.may_refuse(state, bytes)?)
                && machine.walk(from, bytes)?.is_err()
            {
                patch(out, &[], &[token]);
            }
        }
        Ok(())
    }

    /// Returns `true` if one token is allowed, without computing the mask.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`].
    pub fn allows(&self, position: ConstraintState, token_id: u32) -> Result<bool, Error> {
        if self.vocabulary.is_end_token(token_id) {
            return self.is_accepting(position);
        }
        if let Some(canonical) = &self.canonical {
            return canonical.allows(&self.keys, (position.state, position.last), token_id);
        }
        if let Some(ahead) = self.ahead.of(self.machine()) {
            let Some(bytes) = self.vocabulary.token_bytes(token_id) else { return Ok(false) };
            return Ok(ahead.machine.walk(ahead.import_state(position.state)?, bytes)?.is_ok());
        }
        match self.read(position, token_id) {
            Ok(_) => Ok(true),
            Err(AdvanceError::Failed(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Returns the lookahead machine, or `None` if the machine itself serves.
    pub(crate) fn ahead(&self) -> Option<Arc<ScratchMachine<K::Machine>>> {
        self.ahead.of(self.machine())
    }

    /// Returns the language state.
    pub fn state(&self, position: ConstraintState) -> StateId {
        match &self.canonical {
            Some(canonical) => canonical.machine_state(position.state),
            None => position.state,
        }
    }

    /// Passes the mask of a state, without end tokens, to `use_mask`; computes it if it is not
    /// cached.
    pub(crate) fn with_mask<R>(
        &self,
        state: StateId,
        use_mask: impl FnOnce(&Mask) -> R,
    ) -> Result<R, Error> {
        let key = self.keys.mask_class(state)?;
        let mut use_mask = Some(use_mask);
        let hit = self.memo.with(key.number(), |mask| use_mask.take().map(|f| f(mask)));
        if let Some(Some(result)) = hit {
            return Ok(result);
        }
        self.note(growth::TOKENS_PER_MASK);
        let mask = self.compute(key)?;
        // `use_mask` is still there: it is taken only on a hit.
        let result = use_mask.take().map(|f| f(&mask));
        self.memo.insert(key.number(), mask);
        result.ok_or_else(|| Error::language("a mask was used twice", None))
    }

    fn compute(&self, key: MaskClassId) -> Result<Mask, Error> {
        let (vocabulary, lexical) = (&self.vocabulary, &self.lexical);
        let (memo, continuations) = (&self.memo, &self.continuations);
        self.keys.visit(mask_builder::MaskBuilder { key, vocabulary, lexical, memo, continuations })
    }

    /// Returns the memory in use by part, in bytes.
    pub fn sizes(&self) -> MemorySizes {
        let canonical = self.canonical.as_deref();
        MemorySizes {
            machine: self.machine().memory_bytes() + self.ahead_bytes(),
            classes: self.class_bytes(),
            completions: self.completion_bytes(),
            canonical: canonical.map_or(0, CanonicalMasks::memory_bytes),
            masks: self.mask_bytes(),
        }
    }

    /// Returns the memory of the lookahead machine, in bytes.
    pub(crate) fn ahead_bytes(&self) -> usize {
        self.ahead.memory_bytes()
    }

    /// See [`MemorySizes::classes`].
    pub(crate) fn class_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.lexical.memory_bytes()
    }

    /// See [`MemorySizes::completions`].
    pub(crate) fn completion_bytes(&self) -> usize {
        self.completing.memory_bytes() + self.continuations.memory_bytes()
    }

    /// See [`MemorySizes::masks`].
    pub(crate) fn mask_bytes(&self) -> usize {
        let canonical = self.canonical.as_deref().map_or(0, CanonicalMasks::mask_bytes);
        self.memo.size().1 + self.keys.mask_bytes() + canonical
    }

    /// Returns the number of queries that masks left undecided and answered with yes: whether
    /// canonical tokens can be completed. It is 0 for machines with finitely many states.
    pub fn undecided_count(&self) -> usize {
        self.canonical.as_deref().map_or(0, CanonicalMasks::undecided_count)
    }

    /// Returns the members that have no canonical tokens; none if tokens need not be canonical.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine exceeds a limit.
    pub fn excluded_members(&self) -> Result<ExcludedMembers, Error> {
        match &self.canonical {
            Some(canonical) => canonical.excluded_members(&self.keys),
            None => Ok(ExcludedMembers::default()),
        }
    }

    /// Prepares the part of members that a string leads into, for all languages with canonical
    /// tokens of the same encoder: its positions, as far as tokens reach them from the states that
    /// the tokenizer may be in after each of some texts. Returns the number of new positions.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine exceeds a limit.
    pub fn prepare_part(&self, string: &[u8], texts: &[Vec<u8>]) -> Result<usize, Error> {
        match &self.canonical {
            Some(canonical) => canonical.prepare_part(&self.keys, string, texts),
            None => Ok(0),
        }
    }

    /// Returns the number of cached masks.
    pub fn mask_count(&self) -> usize {
        match &self.canonical {
            Some(canonical) => canonical.mask_count(),
            None => self.memo.size().0,
        }
    }
}
