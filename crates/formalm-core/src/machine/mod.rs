//! The trait of a lazy byte-level automaton ([`Machine`]).
//!
//! ```text
//!    start ──byte──► state ──byte──► state       every visible state reaches a member
//! ```
//!
//! A [`Machine`] is lazy and deterministic. Its states are interned as small integers, so a cursor
//! is a stack of integers. It is dispatched statically where speed counts, because a step takes a
//! few nanoseconds.
//!
//! Searches visit many states that no input ever reaches. A machine whose states encode what was
//! read would intern all of them for good. A search therefore runs on a *scratch machine*
//! ([`ScratchCopies::scratch_copy`]). It shares the tables that depend on the language alone, numbers its
//! own states, and is dropped with them. Rejected: evicting states from the shared machine. Its
//! readers take no lock and may hold any number it ever returned. A scratch machine is a
//! [`Machine`] too, so every search is written once.

mod random_member;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use crate::{ByteSet, Error, StateId};

pub use random_member::random_member;

/// A lazy deterministic automaton over bytes whose visible states are all live: each reaches a
/// member.
///
/// Every method that may intern states fails with [`Error::Limit`] when the machine would exceed
/// its limits. Machines are [`Any`], so that the type of a part can be recovered.
pub trait LazyDfa: Any + Debug + Send + Sync {
    /// Returns the initial state.
    fn start(&self) -> StateId;

    /// Returns the state after `byte`, or `None` if no member continues with it.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error>;

    /// Returns the state after `byte` and whether it is accepting, or `None` if no member continues
    /// with it.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn step_with_acceptance(
        &self,
        state: StateId,
        byte: u8,
    ) -> Result<Option<(StateId, bool)>, Error> {
        match self.step(state, byte)? {
            Some(next) => Ok(Some((next, self.is_accepting(next)?))),
            None => Ok(None),
        }
    }

    /// Returns `true` if the input read so far is a member.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_accepting(&self, state: StateId) -> Result<bool, Error>;

    /// Returns the bytes that some member continues with.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error>;

    /// Returns the smallest of the shortest byte strings that complete the input to a member.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error>;

    /// Returns the memory in use, in bytes, to a good approximation.
    fn memory_bytes(&self) -> usize;

    /// Returns the state after `text`, or the number of its bytes that are viable.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    #[inline]
    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        let mut state = state;
        for (at, &byte) in text.iter().enumerate() {
            match self.step(state, byte)? {
                Some(next) => state = next,
                None => return Ok(Err(at)),
            }
        }
        Ok(Ok(state))
    }
}

/// What a machine may know about its states and inputs without reading byte by byte.
pub trait ReadingHints: LazyDfa {
    /// Returns the possible next bytes, grouped by equivalent behavior, as far as they are known
    /// without interning successors. Some of them may lead nowhere.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn byte_classes(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        group_by_successor(|byte| self.step(state, byte))
    }

    /// Returns `true` if an exhaustive search over the states terminates. Machines with a stack
    /// return `false`.
    fn is_finite(&self) -> bool {
        true
    }

    /// Returns `true` if every visible state is proven live. A machine that only knows what has not
    /// been refused may reach a dead end. Its live bytes are then those not refused yet, and it is
    /// queried about whole inputs rather than bytes.
    fn is_exact(&self) -> bool {
        true
    }

    /// Returns `true` if every member is known to be valid UTF-8.
    fn reads_text(&self) -> bool {
        false
    }

    /// Returns `true` if an input may stop in `state`. A machine that is queried about whole
    /// characters has no answer inside one.
    fn is_char_boundary(&self, _state: StateId) -> bool {
        true
    }

    /// Returns `true` if `text` completes `state`. States met on the way are interned only where
    /// other inputs profit.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn accepts_from(&self, state: StateId, text: &[u8]) -> Result<bool, Error> {
        match self.walk(state, text)? {
            Ok(end) => self.is_accepting(end),
            Err(_) => Ok(false),
        }
    }

    /// Decides whether `_text` is a member without resolving what its prefixes lead to, which may
    /// take [`LazyDfa::walk`] a search. Returns `None` if that makes no difference.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn membership(&self, _text: &[u8]) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    /// Returns typical input number `_number`, such as models write, or `None` beyond the last. Its
    /// bytes [`STRING_BLANK`] and [`NUMBER_BLANK`] stand for a string's content and a number that
    /// the reader chooses. It need not be the beginning of a member. Masks of its prefixes are
    /// computed before they are needed.
    fn typical_input(&self, _number: usize) -> Option<Vec<u8>> {
        None
    }
}

/// Stands for the content of a string in a [`ReadingHints::typical_input`]; no byte of UTF-8.
pub const STRING_BLANK: u8 = 0xFF;

/// Stands for a number in a [`ReadingHints::typical_input`]; no byte of UTF-8.
pub const NUMBER_BLANK: u8 = 0xFE;

/// Completions, and bounds on them, that a machine may find faster than a shortest one.
pub trait CompletionHints: LazyDfa {
    /// Returns a shortest completion as [`LazyDfa::shortest_completion`] does, but gives up early
    /// where that takes a search, for callers that can pick another input.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn quick_shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        self.shortest_completion(state)
    }

    /// Returns any completion to a member, where a shortest one may take a search.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn any_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        self.shortest_completion(state)
    }

    /// Returns a lower bound on the bytes of a completion: never more than
    /// [`LazyDfa::shortest_completion`] has.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn min_bytes(&self, state: StateId) -> Result<usize, Error> {
        Ok(self.shortest_completion(state)?.len())
    }

    /// Returns a lower bound on the bytes of a completion that is known without a search.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn min_bytes_hint(&self, _state: StateId) -> Result<usize, Error> {
        Ok(0)
    }
}

/// States with the same completions, for machines whose states also encode what was read.
pub trait CompletionClasses: LazyDfa {
    /// Returns a canonical state with the same completions: equally long ones, and the same bytes
    /// for the shortest. It replaces `state` along all inputs except those that [need a
    /// recheck](CompletionClasses::input_needs_recheck). States that differ only in what was read,
    /// and not in what may follow, share it.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn completion_class(&self, state: StateId) -> Result<StateId, Error> {
        Ok(state)
    }

    /// Returns `true` if `input` must be read from the concrete state, see
    /// [`CompletionClasses::completion_class`].
    fn input_needs_recheck(&self, _input: &[u8]) -> bool {
        false
    }

    /// Returns an abstract state that also forgets what was read where it can only forbid
    /// repetition, such as property names. Every completion of the concrete state completes the
    /// abstract one. It replaces the state as [`CompletionClasses::completion_class`] does.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn abstract_state(&self, state: StateId) -> Result<StateId, Error> {
        self.completion_class(state)
    }

    /// Returns `true` if `completion`, which completes the abstract state of `state`, is known to
    /// complete `state` as well. Nothing is interned. `false` proves nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn keeps_completion(&self, _state: StateId, _completion: &[u8]) -> Result<bool, Error> {
        Ok(false)
    }

    /// Returns a predicate for inputs whose completion in the abstract state may be invalid in the
    /// concrete one. Returns `None` if every completion carries over. A missing `_state` stands for
    /// a part of which nothing has been read.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn needs_recheck(
        &self,
        _state: Option<StateId>,
        _forgetful: StateId,
        _text: &[u8],
    ) -> Result<Option<RecheckPredicate>, Error> {
        Ok(None)
    }
}

/// Copies of a machine for searches, whose states are dropped with them.
pub trait ScratchCopies: LazyDfa {
    /// Returns a scratch machine with a state equivalent to `state`, or `None` if the machine
    /// itself may be searched. States that the search meets are dropped with the scratch machine.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn scratch_copy_at(&self, _state: StateId) -> Result<Option<ScratchPosition>, Error> {
        Ok(None)
    }

    /// Returns a machine of the same language that interns the states it meets for itself and drops
    /// them with itself. Returns `None` if searching the machine itself does no harm: its states do
    /// not distinguish equivalent inputs, or are dropped by other means.
    fn scratch_copy(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns [`ScratchCopies::scratch_copy`] as a trait object.
    fn dyn_scratch_copy(&self) -> Option<Arc<dyn Machine>> {
        None
    }

    /// Returns the state of this scratch machine that is equivalent to `state` of the machine it
    /// was copied from.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        Ok(state)
    }
}

/// How far a machine may grow, and its replacement by a new one of the same language.
pub trait Renewal: LazyDfa {
    /// Returns `true` if a thread was changing the machine, or a part of it, while the process
    /// forked and does not exist in this process. Then only [`Renewal::fresh_copy`] may be called.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Returns `true` if so many more states leave half of the machine's limits to what must be
    /// read. What only saves work asks first, so that it is never what exceeds a limit.
    fn has_room(&self, _states: usize) -> bool {
        true
    }

    /// Builds a machine of the same language and limits that has read nothing yet. Returns `None`
    /// if it cannot be rebuilt; it then grows as long as it is used.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], as when this machine was built.
    fn fresh_copy(&self) -> Result<Option<Self>, Error>
    where
        Self: Sized,
    {
        Ok(None)
    }

    /// Builds a [`Renewal::fresh_copy`] for a composite machine that does not know the type of its
    /// part.
    ///
    /// # Errors
    ///
    /// Fails as [`Renewal::fresh_copy`] does.
    fn dyn_fresh_copy(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        Ok(None)
    }
}

/// A machine with all its capabilities: what constraints and searches ask for.
///
/// A new machine implements [`LazyDfa`] and takes the defaults of the rest.
pub trait Machine:
    LazyDfa + ReadingHints + CompletionHints + CompletionClasses + ScratchCopies + Renewal
{
}

impl<T> Machine for T where
    T: LazyDfa
        + ReadingHints
        + CompletionHints
        + CompletionClasses
        + ScratchCopies
        + Renewal
        + ?Sized
{
}

/// Converts a fresh machine to a trait object; implements [`Renewal::dyn_fresh_copy`].
///
/// # Errors
///
/// Fails with the error of `renewed`.
pub fn into_dyn_machine<M: Machine + 'static>(
    renewed: Result<Option<M>, Error>,
) -> Result<Option<Arc<dyn Machine>>, Error> {
    Ok(renewed?.map(|machine| Arc::new(machine) as Arc<dyn Machine>))
}

/// Returns `true` for an input that needs a recheck, see [`CompletionClasses::needs_recheck`].
pub type RecheckPredicate = Box<dyn Fn(&[u8]) -> bool + Send>;

/// A scratch machine and the state to start from.
pub type ScratchPosition = (Arc<dyn Machine>, StateId);

/// Groups bytes by their successor; bytes without one are left out.
///
/// # Errors
///
/// Fails with the errors of `after`.
pub fn group_by_successor<T: PartialEq>(
    mut after: impl FnMut(u8) -> Result<Option<T>, Error>,
) -> Result<Vec<ByteSet>, Error> {
    let mut ways: Vec<(T, ByteSet)> = Vec::new();
    for byte in 0..=255 {
        let Some(next) = after(byte)? else { continue };
        match ways.iter_mut().find(|(known, _)| *known == next) {
            Some((_, bytes)) => bytes.insert(byte),
            None => {
                let mut bytes = ByteSet::default();
                bytes.insert(byte);
                ways.push((next, bytes));
            }
        }
    }
    Ok(ways.into_iter().map(|(_, bytes)| bytes).collect())
}

/// Fails for machines that do not know which of their states are live; `what` names the refused
/// operation.
///
/// # Errors
///
/// [`Error::Language`] with the hint, unless the machine is exact.
pub fn require_exact(
    machine: &(impl Machine + ?Sized),
    what: &str,
    hint: &str,
) -> Result<(), Error> {
    if machine.is_exact() {
        return Ok(());
    }
    Err(Error::language(
        format!(
            "{what} cannot be computed for a user-defined parser: it reports which inputs it \
             rejects, not which ones can be completed"
        ),
        Some(hint),
    ))
}
