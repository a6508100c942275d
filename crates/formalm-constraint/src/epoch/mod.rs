//! A language lifted to a vocabulary, with all that was interned for it: positions, mask classes,
//! masks.
//!
//! ```text
//! Constraint ──current──► StateEpoch 3 ◄── matchers that began or moved here
//!                         StateEpoch 2 ◄── a matcher that has not moved; freed with it
//!                         (1 is freed)
//! ```
//!
//! Everything in an epoch is named by numbers that only this epoch knows, so it is replaced as a
//! whole, by [`crate::Constraint`], and never cleaned up: nothing that a reader without a lock holds
//! can go away.

mod advance;
mod finish_budget;
mod growth;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formalm_automata::{
    Ahead, Error, KeyId, Keys, Lookahead, Machine, StateId, Viability, exact_only,
};
use formalm_vocabulary::Vocabulary;
use formalm_vocabulary::bpe::BpeEncoder;

use crate::canonical::{Canonical, NONE};
use crate::json_string::length::Rests;
use crate::lexical::Lexical;
use crate::mask::{Mask, MaskWords, has, patch};
use crate::mask_builder;
use crate::mask_cache::Memo;
use crate::matcher::Refusal;

use self::finish_budget::Completing;
use self::growth::Growth;

/// Masks and steps of one language over one vocabulary; shared freely between threads.
///
/// `K` are the keys of the language's machine, those of a regular language unless it says else.
#[derive(Debug)]
pub struct StateEpoch<K: Keys = Viability> {
    keys: K,
    vocabulary: Arc<Vocabulary>,
    memo: Memo,
    lexical: Lexical,
    rests: Rests,
    completing: Completing<K::Machine>,
    /// To look ahead of texts with.
    ahead: Lookahead<K::Machine>,
    forgets_items: bool,
    /// Apart, because most constraints have none.
    canonical: Option<Box<Canonical<K>>>,
    growth: Growth,
    /// Where it is told, once the epoch is gone, how many questions it left open.
    open: Option<Arc<Open>>,
}

/// Questions that epochs which are gone have left open.
#[derive(Debug, Default)]
pub(crate) struct Open {
    undecided: AtomicUsize,
    given_up: AtomicUsize,
}

impl Open {
    /// See [`StateEpoch::undecided_count`].
    pub(crate) fn undecided(&self) -> usize {
        self.undecided.load(Ordering::Relaxed)
    }

    /// See [`StateEpoch::given_up_count`].
    pub(crate) fn given_up(&self) -> usize {
        self.given_up.load(Ordering::Relaxed)
    }
}

impl<K: Keys> Drop for StateEpoch<K> {
    fn drop(&mut self) {
        let Some(open) = &self.open else { return };
        let undecided = self.canonical.as_deref().map_or(0, Canonical::undecided_count);
        open.undecided.fetch_add(undecided, Ordering::Relaxed);
        open.given_up.fetch_add(self.completing.given_up_count(), Ordering::Relaxed);
    }
}

/// Memory of an epoch in bytes, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The language's machine: its states and what they are made of.
    pub machine: usize,
    /// Mask classes of states, and what masks are put together from.
    pub classes: usize,
    /// Shortest completions, and how values end.
    pub completions: usize,
    /// Positions of canonical tokens.
    pub canonical: usize,
    /// Masks.
    pub masks: usize,
}

impl Sizes {
    /// All parts together.
    pub fn total(&self) -> usize {
        self.machine + self.classes + self.completions + self.canonical + self.masks
    }
}

/// Why no text can follow tokens that are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfollowed {
    /// The tokenizer makes other tokens of every text that has more than the first `good` of them.
    Prompt {
        /// Tokens that may stand.
        good: usize,
    },
    /// No member of the language goes on after them in canonical tokens.
    Language,
    /// The machine outgrew its limits.
    Failed(Error),
}

impl From<Error> for Unfollowed {
    fn from(error: Error) -> Unfollowed {
        Unfollowed::Failed(error)
    }
}

/// Where a sequence of tokens is in a constraint; meaningless in any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    state: StateId,
    /// The last token, where it matters.
    last: u32,
}

impl Position {
    /// A number for the position: equal numbers, equal futures.
    pub fn number(self) -> u64 {
        u64::from(self.state.number()) << 24 | u64::from(self.last & 0xff_ffff)
    }
}

impl<K: Keys> StateEpoch<K> {
    /// Lifts any machine to a vocabulary, given its keys for texts as long as the longest token.
    pub fn over(keys: K, vocabulary: Arc<Vocabulary>, memory_limit_bytes: usize) -> StateEpoch<K> {
        let memo = Memo::new(memory_limit_bytes);
        let (lexical, rests) = (Lexical::default(), Rests::default());
        let forgets_items = keys.forgets_items();
        StateEpoch {
            keys,
            vocabulary,
            memo,
            lexical,
            rests,
            completing: Completing::default(),
            ahead: Lookahead::default(),
            forgets_items,
            canonical: None,
            growth: Growth::unbounded(),
            open: None,
        }
    }

    /// The same for canonical tokens only, as [`crate::Constraint::canonical`]. Where `begins` is false,
    /// members may lack canonical tokens of their own: the text begins with
    /// [`StateEpoch::start_after`].
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
    ) -> Result<StateEpoch<K>, Error> {
        let machine = &**keys.machine();
        exact_only(machine, "canonical tokens", "use tokenization=\"all\"")?;
        if vocabulary.has_special_bytes() && encoder.prepends_space() {
            return Err(Error::Language {
                message: "the tokenizer puts a space in front of texts, also behind the special \
                          tokens that the language has in it"
                    .to_owned(),
                span: None,
                hint: Some("use tokenization=\"all\"".to_owned()),
            });
        }
        let canonical = Canonical::new(&keys, (&vocabulary, encoder), memory_limit_bytes, begins)?;
        let mut epoch = StateEpoch::over(keys, vocabulary, memory_limit_bytes);
        epoch.canonical = Some(Box::new(canonical));
        Ok(epoch)
    }

    /// Tells `open`, once the epoch is gone, how many questions it left open.
    pub(crate) fn leave_open_to(&mut self, open: &Arc<Open>) {
        self.open = Some(Arc::clone(open));
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The keys of the machine's states.
    pub(crate) fn keys(&self) -> &K {
        &self.keys
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<K::Machine> {
        self.keys.machine()
    }

    /// Number of words that a bitmask over the vocabulary needs.
    pub fn words(&self) -> usize {
        self.vocabulary.len().div_ceil(32)
    }

    /// Whether only canonical tokens are allowed.
    pub fn is_canonical(&self) -> bool {
        self.canonical.is_some()
    }

    /// The position before anything was read.
    #[inline]
    pub fn start(&self) -> Position {
        let state = match &self.canonical {
            Some(canonical) => canonical.start(),
            None => self.machine().start(),
        };
        Position { state, last: NONE }
    }

    /// The position before anything was read where the text goes on after tokens. They matter where
    /// tokens must be canonical: together with them, from the last special token on.
    ///
    /// # Errors
    ///
    /// [`Unfollowed`].
    pub fn start_after(&self, tokens: &[u32]) -> Result<Position, Unfollowed> {
        let Some(canonical) = &self.canonical else { return Ok(self.start()) };
        let special =
            |&token: &u32| self.vocabulary.without_special_bytes().token_bytes(token).is_none();
        let first = tokens.iter().rposition(special).map_or(0, |at| at + 1);
        match canonical.start_after(&self.keys, &tokens[first..]) {
            Ok((state, last)) => Ok(Position { state, last }),
            Err(Unfollowed::Prompt { good }) => Err(Unfollowed::Prompt { good: first + good }),
            Err(other) => Err(other),
        }
    }

    /// Whether the text read is a member, by the tokens it was read in if they must be canonical.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine would outgrow its limits.
    #[inline]
    pub fn is_accepting(&self, position: Position) -> Result<bool, Error> {
        match &self.canonical {
            Some(canonical) => Ok(canonical.is_accepting(position.state)),
            None => self.machine().is_accepting(position.state),
        }
    }

    /// Writes the mask of a position over `out`: tokens after which a member is reachable, and the
    /// end tokens if the text is a member. Words beyond the vocabulary become zero.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine would outgrow its limits; `out` is then unspecified.
    pub fn fill(&self, position: Position, out: &mut MaskWords) -> Result<(), Error> {
        match &self.canonical {
            Some(canonical) => {
                canonical.fill(&self.keys, (position.state, position.last), out)?;
            }
            None => {
                self.with_mask(position.state, |mask| mask.fill(out))?;
                self.correct(position.state, out)?;
            }
        }
        self.add_end(position, out)
    }

    /// The same if the mask is stored, which takes less than a microsecond; `false`, and nothing is
    /// written, if it is not.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`].
    #[inline]
    pub fn fill_ready(&self, position: Position, out: &mut MaskWords) -> Result<bool, Error> {
        match &self.canonical {
            Some(canonical) if canonical.is_ready(position.state) => {
                canonical.fill(&self.keys, (position.state, position.last), out)?;
            }
            Some(_) => return Ok(false),
            None => {
                let Some(key) = self.keys.known_key(position.state) else { return Ok(false) };
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
    fn add_end(&self, position: Position, out: &mut MaskWords) -> Result<(), Error> {
        if self.is_accepting(position)? {
            patch(out, self.vocabulary.end_token_ids(), &[]);
        }
        Ok(())
    }

    /// Corrects the tokens that the key of a state does not answer for.
    #[inline]
    fn correct(&self, state: StateId, out: &mut MaskWords) -> Result<(), Error> {
        let unsure = self.unsure_tokens(state);
        if unsure.is_empty() { Ok(()) } else { self.ask_unsure(state, unsure, out) }
    }

    /// Whether there is room for any mask to be stored.
    pub(crate) fn keeps_masks(&self) -> bool {
        self.memo.has_room_for(4 * self.words())
    }

    /// The tokens that the key of a state, which was asked for, does not answer for.
    #[inline]
    pub(crate) fn unsure_tokens(&self, state: StateId) -> &[u32] {
        if self.keys.is_unsure(state) {
            self.vocabulary.item_joining_tokens()
        } else if self.forgets_items {
            self.vocabulary.whole_item_tokens()
        } else {
            &[]
        }
    }

    fn ask_unsure(&self, state: StateId, unsure: &[u32], out: &mut MaskWords) -> Result<(), Error> {
        let is_unsure = self.keys.is_unsure(state);
        let ahead = self.ahead.of(self.machine());
        let (machine, from) = match &ahead {
            Some(ahead) => (&ahead.machine, ahead.enter(state)?),
            None => (self.machine(), state),
        };
        for &token in unsure {
            let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
            if has(out, token)
                && (!is_unsure || self.keys.may_tell(state, bytes)?)
                && machine.walk(from, bytes)?.is_err()
            {
                patch(out, &[], &[token]);
            }
        }
        Ok(())
    }

    /// Whether one token is allowed, without computing the mask.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`].
    pub fn allows(&self, position: Position, token_id: u32) -> Result<bool, Error> {
        if self.vocabulary.is_end_token(token_id) {
            return self.is_accepting(position);
        }
        if let Some(canonical) = &self.canonical {
            return canonical.allows(&self.keys, (position.state, position.last), token_id);
        }
        if let Some(ahead) = self.ahead.of(self.machine()) {
            let Some(bytes) = self.vocabulary.token_bytes(token_id) else { return Ok(false) };
            return Ok(ahead.machine.walk(ahead.enter(position.state)?, bytes)?.is_ok());
        }
        match self.read(position, token_id) {
            Ok(_) => Ok(true),
            Err(Refusal::Failed(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// The machine to look ahead with; none if the machine itself will do.
    pub(crate) fn ahead(&self) -> Option<Arc<Ahead<K::Machine>>> {
        self.ahead.of(self.machine())
    }

    /// The language's state at a position.
    pub fn state(&self, position: Position) -> StateId {
        match &self.canonical {
            Some(canonical) => canonical.machine_state(position.state),
            None => position.state,
        }
    }

    /// Uses the stored mask of a state, which leaves end tokens out.
    pub(crate) fn with_mask<R>(
        &self,
        state: StateId,
        use_mask: impl FnOnce(&Mask) -> R,
    ) -> Result<R, Error> {
        let key = self.keys.key(state)?;
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
        result.ok_or(Error::Language {
            message: "a mask was used twice".to_owned(),
            span: None,
            hint: None,
        })
    }

    fn compute(&self, key: KeyId) -> Result<Mask, Error> {
        let (vocabulary, lexical) = (&self.vocabulary, &self.lexical);
        let (memo, rests) = (&self.memo, &self.rests);
        self.keys.read(mask_builder::MaskOf { key, vocabulary, lexical, memo, rests })
    }

    /// Memory in use, in bytes, by part.
    pub fn sizes(&self) -> Sizes {
        let canonical = self.canonical.as_deref();
        let keys_masks = self.keys.mask_bytes();
        Sizes {
            machine: self.machine().memory_bytes() + self.ahead.memory_bytes(),
            classes: self.keys.memory_bytes() - keys_masks + self.lexical.memory_bytes(),
            completions: self.completing.memory_bytes() + self.rests.memory_bytes(),
            canonical: canonical.map_or(0, Canonical::memory_bytes),
            masks: self.memo.size().1 + keys_masks + canonical.map_or(0, Canonical::mask_bytes),
        }
    }

    /// Number of questions that the masks so far have left open, and answered by yes: whether a
    /// member can be completed in canonical tokens. None for machines with finitely many states.
    pub fn undecided_count(&self) -> usize {
        self.canonical.as_deref().map_or(0, Canonical::undecided_count)
    }

    /// Number of masks kept.
    pub fn mask_count(&self) -> usize {
        match &self.canonical {
            Some(canonical) => canonical.mask_count(),
            None => self.memo.size().0,
        }
    }
}
