//! Every kind of machine as one type, so that constraints and matchers are written once.
//!
//! The kind is asked for once a call: walks and masks run on the machine itself.

use std::sync::Arc;

use formalm_automata::{
    Automaton, ByteSet, Error, KeyId, Keys, Machine, Purpose, StateId, Viability,
};
use formalm_grammar::{GrammarAutomaton, GrammarKeys};
use formalm_schema::{SchemaAutomaton, SchemaKeys};
use formalm_vocabulary::Vocabulary;

/// A machine of any kind.
#[derive(Debug)]
pub(crate) enum AnyMachine {
    Regular(Arc<Automaton>),
    Grammar(Arc<GrammarAutomaton>),
    Schema(Arc<SchemaAutomaton>),
}

macro_rules! on_any {
    ($any:expr, $type:ident, $one:ident => $result:expr) => {
        match $any {
            $type::Regular($one) => $result,
            $type::Grammar($one) => $result,
            $type::Schema($one) => $result,
        }
    };
}

impl AnyMachine {
    pub(crate) fn state_count(&self) -> usize {
        on_any!(self, AnyMachine, one => one.state_count())
    }

    /// Whether every member is known to be UTF-8.
    pub(crate) fn is_text(&self) -> bool {
        on_any!(self, AnyMachine, one => one.is_text())
    }
}

impl Machine for AnyMachine {
    fn start(&self) -> StateId {
        on_any!(self, AnyMachine, one => one.start())
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        on_any!(self, AnyMachine, one => one.step(state, byte))
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> bool {
        on_any!(self, AnyMachine, one => one.is_accepting(state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        on_any!(self, AnyMachine, one => one.live_bytes(state))
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        on_any!(self, AnyMachine, one => one.shortest(state))
    }

    fn memory_bytes(&self) -> usize {
        on_any!(self, AnyMachine, one => one.memory_bytes())
    }

    #[inline]
    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        on_any!(self, AnyMachine, one => one.walk(state, text))
    }
}

/// Keys of any kind.
#[derive(Debug)]
pub(crate) struct AnyKeys {
    machine: Arc<AnyMachine>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Regular(Box<Viability>),
    Grammar(GrammarKeys),
    Schema(Box<SchemaKeys>),
}

impl AnyKeys {
    /// Keys for the tokens of a vocabulary.
    pub(crate) fn new(machine: Arc<AnyMachine>, vocabulary: &Vocabulary) -> AnyKeys {
        let horizon = vocabulary.longest_token_bytes();
        let kind = match &*machine {
            AnyMachine::Regular(one) => {
                Kind::Regular(Box::new(Viability::new(Arc::clone(one), horizon)))
            }
            AnyMachine::Grammar(one) => Kind::Grammar(GrammarKeys::new(Arc::clone(one))),
            AnyMachine::Schema(one) => {
                let joins_names = vocabulary.joins_names();
                Kind::Schema(Box::new(SchemaKeys::new(Arc::clone(one), horizon, joins_names)))
            }
        };
        AnyKeys { machine, kind }
    }
}

impl Keys for AnyKeys {
    type Machine = AnyMachine;

    fn machine(&self) -> &Arc<AnyMachine> {
        &self.machine
    }

    #[inline]
    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        on_any!(&self.kind, Kind, one => one.key(state))
    }

    #[inline]
    fn known_key(&self, state: StateId) -> Option<KeyId> {
        on_any!(&self.kind, Kind, one => one.known_key(state))
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        on_any!(&self.kind, Kind, one => one.read(purpose))
    }

    fn memory_bytes(&self) -> usize {
        on_any!(&self.kind, Kind, one => one.memory_bytes())
    }
}
