//! What every machine over bytes shows, and what makes its masks quick.
//!
//! A [`Machine`] is lazy and deterministic, with interned states: small integers, so that a cursor
//! is a stack of integers. [`Keys`] are its states up to what a token can tell apart; masks are
//! computed on keys and shared by all states of a key. Both are dispatched statically: a step is a
//! few nanoseconds and is taken many thousand times for a mask.
//!
//! Most states that a question comes to are never read by any text. A machine whose states tell
//! texts apart would keep all of them, so whoever looks ahead does so on a machine of their own
//! ([`Machine::ahead`]): it shares what the language alone decides, numbers the states that it meets
//! for itself, and drops them when it is dropped. Nothing is taken back from the machine that is
//! shared, since its readers take no lock and may hold any number that it ever gave out; and a
//! machine to look ahead with is a machine, so all searches are written once.

mod lexical_machine;
mod mask_automaton;
mod random_member;
mod self_loops;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use crate::automaton::KeyId;
use crate::automaton::{Automaton, StateId};
use crate::byte_set::ByteSet;
use crate::combined::Plainly;
use crate::error::Error;

pub use lexical_machine::{
    BEYOND, Context, Ending, Lexemes, NoLexemes, Outline, Place, Progress, Scan,
};
pub use mask_automaton::{Ended, Steps, Texts};
pub use random_member::random_member;
pub use self_loops::loops_of;

/// A lazy deterministic machine over bytes that shows live states only: from each of them some
/// member is reachable.
///
/// Every method that may build states fails with [`Error::Limit`] when the machine would outgrow
/// its limits.
pub trait Machine: Debug + Send + Sync {
    /// The state before anything was read.
    fn start(&self) -> StateId;

    /// The state after `byte`; `None` if no member continues so.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error>;

    /// The state after `byte`, and whether the text is a member then; `None` if no member continues
    /// so.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn step_told(&self, state: StateId, byte: u8) -> Result<Option<(StateId, bool)>, Error> {
        match self.step(state, byte)? {
            Some(next) => Ok(Some((next, self.is_accepting(next)?))),
            None => Ok(None),
        }
    }

    /// Whether the text read so far is a member.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_accepting(&self, state: StateId) -> Result<bool, Error>;

    /// Bytes that some member continues with.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error>;

    /// The bytes that may come next, those together that go on alike: what a machine knows of this
    /// without keeping the states that follow. Some may turn out to lead nowhere.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn ways(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        alike(|byte| self.step(state, byte))
    }

    /// Whether a search through all states comes to an end. Machines with a stack have no end of
    /// them.
    fn is_finite(&self) -> bool {
        true
    }

    /// Whether every state is known to lead to a member. A machine that knows only what was not
    /// refused so far may come to a dead end; its live bytes are then those it knows nothing
    /// against, and it is asked about tokens rather than about bytes.
    fn is_exact(&self) -> bool {
        true
    }

    /// Whether a text that leads to a state may rest there. A machine that is asked about whole
    /// characters knows nothing of a text that ends inside of one.
    fn is_whole(&self, _state: StateId) -> bool {
        true
    }

    /// A machine in which a state goes on alike, and that state, to look ahead with: what it meets
    /// is dropped with it. None if the machine itself will do.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn aside(&self, _state: StateId) -> Result<Option<Aside>, Error> {
        Ok(None)
    }

    /// A machine of the same language, which keeps the states that it meets for itself: they are
    /// dropped with it. None if the machine itself will do, since its states do not tell texts apart
    /// that go on alike, or are dropped otherwise.
    fn ahead(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The same where the kind of machine is not known.
    fn ahead_of_any(&self) -> Option<Arc<dyn Machine>> {
        None
    }

    /// The state of a machine to look ahead with that goes on as a state of the machine that it was
    /// made from.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn enter(&self, state: StateId) -> Result<StateId, Error> {
        Ok(state)
    }

    /// A shortest continuation that makes the text a member; the smallest of several.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error>;

    /// The same, which gives up early where that takes a search: for whoever would rather have
    /// another text.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn shortest_soon(&self, state: StateId) -> Result<Vec<u8>, Error> {
        self.shortest(state)
    }

    /// Some continuation that makes the text a member, where a shortest one may take a search.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn some_member(&self, state: StateId) -> Result<Vec<u8>, Error> {
        self.shortest(state)
    }

    /// Bytes that a member needs at least: never more than [`Machine::shortest`] has.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn least_bytes(&self, state: StateId) -> Result<usize, Error> {
        Ok(self.shortest(state)?.len())
    }

    /// Bytes that a member needs at least, as far as that is known without looking for one.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn owed_bytes(&self, _state: StateId) -> Result<usize, Error> {
        Ok(0)
    }

    /// A state that is completed alike: by texts of the same lengths, and of the same bytes if they
    /// are the shortest. It serves in place of the state along all tokens but
    /// [unsure](Machine::is_unsure) ones, so that states that differ in what was read, and in
    /// nothing that is to come, need not be told apart.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn completes_as(&self, state: StateId) -> Result<StateId, Error> {
        Ok(state)
    }

    /// Whether a token has to be read from the state itself, see [`Machine::completes_as`].
    fn is_unsure(&self, _token: &[u8]) -> bool {
        false
    }

    /// A state that also forgets what was read where that does nothing but forbid something to come
    /// again, such as a name: all that completes the state completes it too. It serves in place of
    /// the state as that of [`Machine::completes_as`] does.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn forgetful(&self, state: StateId) -> Result<StateId, Error> {
        self.completes_as(state)
    }

    /// Which tokens from a state to a forgetful one may not be completed by a text that completes
    /// that one; none if all are. A state that is not given is that of a part of which nothing is
    /// read yet.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn doubts(
        &self,
        _state: Option<StateId>,
        _forgetful: StateId,
        _text: &[u8],
    ) -> Result<Option<Doubts>, Error> {
        Ok(None)
    }

    /// Whether a text completes a state; what is met on the way is kept where that is of use to
    /// others alone.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_completed(&self, state: StateId, text: &[u8]) -> Result<bool, Error> {
        match self.walk(state, text)? {
            Ok(end) => self.is_accepting(end),
            Err(_) => Ok(false),
        }
    }

    /// What a machine knows of the members that continue a state and that a regular language has
    /// too, from a state of it. What it finds out on the way is kept in `beside`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn completion_beside(
        &self,
        _state: StateId,
        _beside: &mut Beside,
        _at: StateId,
        _look: Look,
    ) -> Result<Completion, Error> {
        Ok(Completion::Unknown)
    }

    /// Memory in use, in bytes, to a good approximation.
    fn memory_bytes(&self) -> usize;

    /// Whether a thread was at work on the machine, or on a part of it, while the process was forked,
    /// and does not exist in this one: then nothing but [`Machine::renewed`] may be asked.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// A machine of the same language that has read nothing yet, with the same limits. `None` if it
    /// cannot be built again; this one then keeps growing as long as it is used.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], as when this machine was built.
    fn renewed(&self) -> Result<Option<Self>, Error>
    where
        Self: Sized,
    {
        Ok(None)
    }

    /// [`Machine::renewed`] for a part of another machine, whose type that one does not know.
    ///
    /// # Errors
    ///
    /// As there.
    fn renewed_part(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        Ok(None)
    }

    /// Whether a text is a member, without finding out what its beginnings lead to, which
    /// [`Machine::walk`] may do in a search; none if that makes no difference.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_member(&self, _text: &[u8]) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    /// The state after `text`, or how many of its bytes are viable.
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

/// A renewed machine as a part of another one: what implements [`Machine::renewed_part`].
///
/// # Errors
///
/// That of `renewed`.
pub fn part<M: Machine + 'static>(
    renewed: Result<Option<M>, Error>,
) -> Result<Option<Arc<dyn Machine>>, Error> {
    Ok(renewed?.map(|machine| Arc::new(machine) as Arc<dyn Machine>))
}

/// A regular language beside a machine, and what the machine remembers of the two.
#[derive(Debug)]
pub struct Beside {
    /// The regular language.
    pub regular: Arc<Automaton>,
    /// What [`Machine::completion_beside`] keeps, and nobody else reads.
    pub known: Option<Box<dyn Remembered>>,
}

/// What a machine remembers outside of itself.
pub trait Remembered: Any + Debug + Send {
    /// Memory in use, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// How closely a machine looks at what completes its states: all is right that any of them tells, and
/// closer ones tell more and take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Much is left out of account.
    Loose,
    /// Ways to read a text are looked at one by one.
    Close,
    /// The same, with what others that go on beside them do to each.
    Closest,
}

/// What is known of the members that continue a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It is not known whether there is one.
    Unknown,
    /// There is none.
    Never,
    /// They have so many bytes or more, if there are any.
    AtLeast(usize),
    /// The shortest has so many bytes.
    Exactly(usize),
}

/// Tells of a token whether there is a doubt, see [`Machine::doubts`].
pub type Doubts = Box<dyn Fn(&[u8]) -> bool + Send>;

/// A machine to look ahead with, and the state to begin at.
pub type Aside = (Arc<dyn Machine>, StateId);

/// Bytes by what they lead to; those that lead nowhere are left out.
///
/// # Errors
///
/// Those of `after`.
pub fn alike<T: PartialEq>(
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

/// Refuses to tell `what` of a machine that does not know which of its states lead to a member.
///
/// # Errors
///
/// [`Error::Language`] with the hint, unless the machine is exact.
pub fn exact_only(machine: &(impl Machine + ?Sized), what: &str, hint: &str) -> Result<(), Error> {
    if machine.is_exact() {
        return Ok(());
    }
    Err(Error::Language {
        message: format!(
            "{what} cannot be told of a parser, which knows what it refuses and not what leads to a \
             member"
        ),
        span: None,
        hint: Some(hint.to_owned()),
    })
}

/// What keys are read for; one function for every kind of key, chosen once and not at every step.
pub trait Purpose {
    /// What comes of it.
    type Result;

    /// Reads keys.
    fn read(self, steps: &impl Steps) -> Self::Result;
}

/// Steps along which it shows where the text read is a member.
pub trait EndSteps: Steps {
    /// Whether the text read up to a key is a member.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_end(&self, key: KeyId) -> Result<bool, Error>;
}

/// What keys are read for that tell members from other texts.
pub trait EndPurpose {
    /// What comes of it.
    type Result;

    /// Reads on from a key.
    fn read(self, steps: &impl EndSteps, key: KeyId) -> Self::Result;
}

/// The states of a machine up to what texts no longer than the longest token can tell apart.
///
/// Equal keys have equal masks, end tokens aside; a machine may use its states as keys.
pub trait Keys: Debug + Send + Sync {
    /// The machine whose states these are keys of.
    type Machine: Machine;

    /// The machine.
    fn machine(&self) -> &Arc<Self::Machine>;

    /// The key of a state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn key(&self, state: StateId) -> Result<KeyId, Error>;

    /// A key that also tells apart states of which members are completed in other ways, though no
    /// token tells.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn lasting_key(&self, state: StateId) -> Result<KeyId, Error> {
        self.key(state)
    }

    /// The key of a state, if it was asked for before; takes no lock.
    fn known_key(&self, state: StateId) -> Option<KeyId>;

    /// Whether the key of a state, which was asked for, forgets something that a few tokens can
    /// tell, which the vocabulary knows and which have to be asked of the state itself.
    fn is_unsure(&self, _state: StateId) -> bool {
        false
    }

    /// Whether a token that the key of an unsure state allows may be refused by the state; a key
    /// allows whatever its states do.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn may_tell(&self, _state: StateId, _token: &[u8]) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether keys forget items of JSON arrays that must be distinct once they are read, so that
    /// the other states are asked of tokens with whole items in them.
    fn forgets_items(&self) -> bool {
        false
    }

    /// The state after a token with its bytes, or how many of them are viable.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    #[inline]
    fn read_token(
        &self,
        state: StateId,
        token_id: u32,
        bytes: &[u8],
    ) -> Result<Result<StateId, usize>, Error> {
        let _ = token_id;
        self.machine().walk(state, bytes)
    }

    /// Keys of a machine to look ahead with, which [`Machine::ahead`] made of this one.
    fn over(&self, _ahead: &Arc<Self::Machine>) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Reads keys for a purpose. Keys met on the way are good for that purpose alone.
    fn read<P: Purpose>(&self, purpose: P) -> P::Result;

    /// Reads on from a state with keys that show where members end. These are states where a kind
    /// of keys has none of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn read_ends<P: EndPurpose>(&self, state: StateId, purpose: P) -> Result<P::Result, Error> {
        let key = KeyId::from_number(state.number());
        Ok(purpose.read(&Plainly::new(&**self.machine()), key))
    }

    /// Memory in use beside the machine's, in bytes.
    fn memory_bytes(&self) -> usize;

    /// How much of that are masks of the machine's parts, which have a limit of their own.
    fn mask_bytes(&self) -> usize {
        0
    }

    /// Whether a thread was at work on the keys or their machine while the process was forked, see
    /// [`Machine::is_abandoned`].
    fn is_abandoned(&self) -> bool {
        self.machine().is_abandoned()
    }

    /// Keys over a machine of the same language that has read nothing yet, see
    /// [`Machine::renewed`].
    ///
    /// # Errors
    ///
    /// As there.
    fn renewed(&self) -> Result<Option<Self>, Error>
    where
        Self: Sized,
    {
        Ok(None)
    }
}
