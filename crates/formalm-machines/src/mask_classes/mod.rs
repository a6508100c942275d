//! Mask classes ([`MaskClasses`]): the states of a machine up to what a token can distinguish.
//!
//! ```text
//!    bytes ──► Machine ──mask_class──► MaskClasses ──visit──► MaskAutomaton ──► one mask per class
//!              states                  states up to what a token can distinguish
//! ```
//!
//! [`MaskClasses`] is the quotient of a [`Machine`] by mask equivalence: two states are equivalent
//! if no token distinguishes them. Masks are computed once per class and shared by its states. The
//! traits are dispatched statically, because a step takes a few nanoseconds and one mask takes many
//! thousand steps.

mod class_table;
mod lexical_machine;
mod mask_automaton;
mod regular;
mod self_loops;

use std::fmt::Debug;
use std::sync::Arc;

use formalm_core::{ByteSet, Error, LazyDfa, Machine, MaskClassId, Renewal, StateId};

use crate::combined::StatesAsClasses;

pub use class_table::ClassTable;
pub use lexical_machine::{
    LexemeEnd, LexemeStep, LexerContextId, LexerStateId, LexerTables, LexicalConfiguration,
    LexicalMachine, NEEDS_DEEPER_STACK, NoLexicalMachine, ParserStateId, ParserTables,
    StackPrefixId, SublanguagePosition, SublanguageTables,
};
pub use mask_automaton::{
    AlternativeStrings, CharRepetition, ClassAutomaton, LiteralList, MaskAutomaton, MaskShortcuts,
    StringClasses, ValueClasses, ValueEnd,
};
pub use regular::RegularMaskClasses;
pub use self_loops::self_loop_repetition;

/// A generic function over mask automata. The automaton's type is chosen once for the whole visit,
/// not at every step.
pub trait ClassVisitor {
    /// The result of the visit.
    type Result;

    /// Runs on the given mask automaton.
    fn visit(self, steps: &impl MaskAutomaton) -> Self::Result;
}

/// A mask automaton that knows in which classes the input is a member.
pub trait AcceptingMaskAutomaton: MaskAutomaton {
    /// Returns `true` if the input read up to a class is a member.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_accepting_class(&self, key: MaskClassId) -> Result<bool, Error>;
}

/// A generic function over mask automata that distinguish members from other inputs.
pub trait AcceptingVisitor {
    /// The result of the visit.
    type Result;

    /// Runs from the given class.
    fn visit(self, steps: &impl AcceptingMaskAutomaton, key: MaskClassId) -> Self::Result;
}

/// The mask classes of a machine: its states up to what inputs no longer than the longest token can
/// distinguish.
///
/// Equal classes have equal masks, end tokens aside. A machine may use its states as classes
/// ([`IdentityClasses`](crate::IdentityClasses)).
pub trait StateClasses: Debug + Send + Sync {
    /// The machine whose states are classified.
    type Machine: Machine;

    /// Returns the machine.
    fn machine(&self) -> &Arc<Self::Machine>;

    /// Returns the mask class of a state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error>;

    /// Returns a finer class that also distinguishes states with different completions, even where
    /// no token does.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn completion_mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        self.mask_class(state)
    }

    /// Returns the mask class of a state if it was computed before. Takes no lock.
    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId>;

    /// Returns the state after a token with these bytes, or the number of viable bytes.
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

    /// Runs a visitor on the mask automaton. Classes met on the way are valid for that visit only.
    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result;

    /// Runs a visitor from a state on classes that know where members end. Without a better choice
    /// these are the states themselves.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        purpose: P,
    ) -> Result<P::Result, Error> {
        let key = MaskClassId::from_number(state.number());
        Ok(purpose.visit(&StatesAsClasses::new(&**self.machine()), key))
    }

    /// Returns the memory in use in addition to the machine's and to masks, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// Where members end, for languages inside others.
pub trait MemberEnds: StateClasses {
    /// Returns a superset of the bytes that members end with, if it is small and known.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn last_bytes(&self) -> Result<Option<ByteSet>, Error> {
        Ok(None)
    }

    /// Returns the part that a state is inside of, such as a string of JSON, if what is inside does
    /// not depend on anything around it.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn part(&self, _state: StateId) -> Result<Option<PartPosition>, Error> {
        Ok(None)
    }

    /// Returns the name of what may follow inside the part that a state is inside of, if the part
    /// reads its own last byte. In all processes, positions with equal names allow the same strings
    /// up to that byte.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn part_name(&self, _state: StateId) -> Result<Option<u128>, Error> {
        Ok(None)
    }
}

/// A position inside a part of the input that is read independently of what surrounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPosition {
    /// Identifies what may follow inside the part, in all machines of this process: positions with
    /// equal digests allow the same strings and end with the same ones of them.
    pub digest: u128,
    /// The state after the part.
    pub after: StateId,
}

/// Classes that may allow a few tokens more than some of their states.
pub trait ApproximateClasses: StateClasses {
    /// Returns `true` if the class mask of `_state` may be too permissive for a few tokens. The
    /// vocabulary lists these tokens; each must be rechecked against the state. The class must have
    /// been computed.
    fn is_approximate(&self, _state: StateId) -> bool {
        false
    }

    /// Returns `true` if the approximate state may refuse a token that its class allows. A class
    /// allows whatever its states allow.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn may_refuse(&self, _state: StateId, _token: &[u8]) -> Result<bool, Error> {
        Ok(true)
    }

    /// Returns `true` if classes drop the items seen of JSON arrays with unique items. The concrete
    /// states are then queried about tokens that contain whole items.
    fn drops_seen_items(&self) -> bool {
        false
    }
}

/// Replacement of classes together with their machine, and their memory by part.
pub trait ClassRenewal: StateClasses {
    /// Returns classes over a scratch machine that
    /// [`formalm_core::ScratchCopies::scratch_copy`] made of this one.
    fn over_scratch(&self, _ahead: &Arc<Self::Machine>) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the memory of masks of the machine's parts, which have a limit of their own, in
    /// bytes.
    fn mask_bytes(&self) -> usize {
        0
    }

    /// Returns `true` if a thread was changing the classes or their machine during a fork, see
    /// [`Renewal::is_abandoned`].
    fn is_abandoned(&self) -> bool {
        self.machine().is_abandoned()
    }

    /// Builds classes over a [`Renewal::fresh_copy`].
    ///
    /// # Errors
    ///
    /// Fails as [`Renewal::fresh_copy`] does.
    fn fresh_copy(&self) -> Result<Option<Self>, Error>
    where
        Self: Sized,
    {
        Ok(None)
    }
}

/// The mask classes of a machine with all that they know.
///
/// A new kind of machine implements [`StateClasses`], or uses [`crate::IdentityClasses`].
pub trait MaskClasses: StateClasses + MemberEnds + ApproximateClasses + ClassRenewal {}

impl<T: StateClasses + MemberEnds + ApproximateClasses + ClassRenewal> MaskClasses for T {}

/// Mask classes of a machine that leaves parts of its input to the machines of sublanguages.
pub trait SublanguageHost: MaskClasses {
    /// Returns the machines of sublanguages, by terminal.
    fn sublanguage_machines(&self) -> Vec<(u32, Arc<dyn Machine>)>;

    /// Returns the configurations that a state consists of.
    fn host_configurations(&self, state: StateId) -> Vec<HostConfiguration>;
}

/// A configuration of a [`SublanguageHost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfiguration {
    /// The terminal and the state of its machine, inside a sublanguage.
    pub sublanguage: Option<(u32, StateId)>,
    /// Everything else; configurations that agree in both parts are equal.
    pub rest: [u32; 3],
}
