//! Every kind of machine as one type, so that constraints and matchers are written once.
//!
//! The kind is asked for once a call: walks and masks run on the machine itself.

use std::sync::Arc;

use formalm_automata::{
    Aside, Automaton, Beside, ByteSet, Completion, Composed, Doubts, EndPurpose, Error, Filtered,
    Front, KeyId, Keys, Look, Machine, Prefixed, PrefixedKeys, Purpose, StateId, StateKeys,
    Viability, part,
};
use formalm_constraint::PositionMaskClasses;
use formalm_grammar::{GrammarAutomaton, GrammarKeys};
use formalm_schema::{SchemaAutomaton, SchemaKeys};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::parser::{AskingKeys, ParserKeys, ParserMachine};
use crate::vocabulary::Vocabulary;

/// A machine of any kind.
#[derive(Debug)]
pub(crate) enum AnyMachine {
    Regular(Arc<Automaton>),
    Grammar(Arc<GrammarAutomaton>),
    Schema(Arc<SchemaAutomaton>),
    Parser(Arc<ParserMachine>),
    /// Machines of any kind in rows, choices and repetitions.
    Composed(Arc<Composed<AnyMachine>>),
    /// A machine of any kind with a regular one beside it.
    Filtered(Arc<Filtered<AnyMachine>>),
    /// A machine of another kind behind a text.
    Prefixed(Arc<Prefixed<AnyMachine>>),
}

macro_rules! on_any {
    ($any:expr, $one:ident => $result:expr) => {
        match $any {
            AnyMachine::Regular($one) => $result,
            AnyMachine::Grammar($one) => $result,
            AnyMachine::Schema($one) => $result,
            AnyMachine::Parser($one) => $result,
            AnyMachine::Composed($one) => $result,
            AnyMachine::Filtered($one) => $result,
            AnyMachine::Prefixed($one) => $result,
        }
    };
}

impl AnyMachine {
    pub(crate) fn state_count(&self) -> usize {
        match self {
            AnyMachine::Regular(one) => one.state_count(),
            AnyMachine::Grammar(one) => one.state_count(),
            AnyMachine::Schema(one) => one.state_count(),
            AnyMachine::Parser(one) => one.state_count(),
            AnyMachine::Composed(one) => one.state_count(),
            AnyMachine::Filtered(one) => one.state_count(),
            AnyMachine::Prefixed(one) => one.front().text.len() + one.rest().state_count(),
        }
    }

    /// The same behind something; none if there is something in front already.
    pub(crate) fn behind(machine: &Arc<AnyMachine>, front: Front) -> Option<AnyMachine> {
        let plain = !matches!(**machine, AnyMachine::Prefixed(_));
        plain.then(|| AnyMachine::Prefixed(Arc::new(Prefixed::new(front, Arc::clone(machine)))))
    }

    /// Whether every member is known to be UTF-8.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            AnyMachine::Regular(one) => one.is_text(),
            AnyMachine::Grammar(one) => one.is_text(),
            AnyMachine::Schema(one) => one.is_text(),
            AnyMachine::Parser(one) => one.is_text(),
            AnyMachine::Composed(_) | AnyMachine::Filtered(_) | AnyMachine::Prefixed(_) => false,
        }
    }
}

impl Machine for AnyMachine {
    fn start(&self) -> StateId {
        on_any!(self, one => one.start())
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        on_any!(self, one => one.step(state, byte))
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        on_any!(self, one => Machine::is_accepting(&**one, state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        on_any!(self, one => one.live_bytes(state))
    }

    fn ways(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        on_any!(self, one => one.ways(state))
    }

    fn is_finite(&self) -> bool {
        on_any!(self, one => one.is_finite())
    }

    fn is_exact(&self) -> bool {
        on_any!(self, one => one.is_exact())
    }

    fn is_whole(&self, state: StateId) -> bool {
        on_any!(self, one => one.is_whole(state))
    }

    fn aside(&self, state: StateId) -> Result<Option<Aside>, Error> {
        on_any!(self, one => one.aside(state))
    }

    fn ahead(&self) -> Option<AnyMachine> {
        Some(match self {
            AnyMachine::Regular(_) | AnyMachine::Parser(_) => return None,
            AnyMachine::Grammar(one) => AnyMachine::Grammar(Arc::new(one.ahead()?)),
            AnyMachine::Schema(one) => AnyMachine::Schema(Arc::new(one.ahead()?)),
            AnyMachine::Composed(one) => AnyMachine::Composed(Arc::new(one.ahead()?)),
            AnyMachine::Filtered(one) => AnyMachine::Filtered(Arc::new(one.ahead()?)),
            AnyMachine::Prefixed(one) => AnyMachine::Prefixed(Arc::new(one.ahead()?)),
        })
    }

    fn ahead_of_any(&self) -> Option<Arc<dyn Machine>> {
        Some(Arc::new(self.ahead()?))
    }

    fn enter(&self, state: StateId) -> Result<StateId, Error> {
        on_any!(self, one => one.enter(state))
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        on_any!(self, one => one.shortest(state))
    }

    fn shortest_soon(&self, state: StateId) -> Result<Vec<u8>, Error> {
        on_any!(self, one => one.shortest_soon(state))
    }

    fn some_member(&self, state: StateId) -> Result<Vec<u8>, Error> {
        on_any!(self, one => one.some_member(state))
    }

    fn least_bytes(&self, state: StateId) -> Result<usize, Error> {
        on_any!(self, one => one.least_bytes(state))
    }

    fn owed_bytes(&self, state: StateId) -> Result<usize, Error> {
        on_any!(self, one => one.owed_bytes(state))
    }

    fn completes_as(&self, state: StateId) -> Result<StateId, Error> {
        on_any!(self, one => one.completes_as(state))
    }

    fn is_unsure(&self, token: &[u8]) -> bool {
        on_any!(self, one => one.is_unsure(token))
    }

    fn forgetful(&self, state: StateId) -> Result<StateId, Error> {
        on_any!(self, one => one.forgetful(state))
    }

    fn doubts(
        &self,
        state: Option<StateId>,
        forgetful: StateId,
        text: &[u8],
    ) -> Result<Option<Doubts>, Error> {
        on_any!(self, one => one.doubts(state, forgetful, text))
    }

    fn is_completed(&self, state: StateId, text: &[u8]) -> Result<bool, Error> {
        on_any!(self, one => one.is_completed(state, text))
    }

    fn completion_beside(
        &self,
        state: StateId,
        beside: &mut Beside,
        at: StateId,
        look: Look,
    ) -> Result<Completion, Error> {
        on_any!(self, one => one.completion_beside(state, beside, at, look))
    }

    fn memory_bytes(&self) -> usize {
        on_any!(self, one => one.memory_bytes())
    }

    fn is_member(&self, text: &[u8]) -> Result<Option<bool>, Error> {
        on_any!(self, one => one.is_member(text))
    }

    fn is_abandoned(&self) -> bool {
        on_any!(self, one => one.is_abandoned())
    }

    fn renewed(&self) -> Result<Option<AnyMachine>, Error> {
        Ok(match self {
            AnyMachine::Regular(one) => {
                one.renewed()?.map(|one| AnyMachine::Regular(Arc::new(one)))
            }
            AnyMachine::Grammar(one) => {
                one.renewed()?.map(|one| AnyMachine::Grammar(Arc::new(one)))
            }
            AnyMachine::Schema(one) => one.renewed()?.map(|one| AnyMachine::Schema(Arc::new(one))),
            AnyMachine::Parser(one) => one.renewed()?.map(|one| AnyMachine::Parser(Arc::new(one))),
            AnyMachine::Composed(one) => {
                one.renewed()?.map(|one| AnyMachine::Composed(Arc::new(one)))
            }
            AnyMachine::Filtered(one) => {
                one.renewed()?.map(|one| AnyMachine::Filtered(Arc::new(one)))
            }
            AnyMachine::Prefixed(one) => {
                one.renewed()?.map(|one| AnyMachine::Prefixed(Arc::new(one)))
            }
        })
    }

    fn renewed_part(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        part(self.renewed())
    }

    #[inline]
    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        on_any!(self, one => one.walk(state, text))
    }
}

/// Keys of any kind.
#[derive(Debug)]
pub(crate) struct AnyKeys {
    machine: Arc<AnyMachine>,
    kind: Kind,
    lifted: Arc<Lifted>,
}

/// What keys are made for.
#[derive(Debug)]
struct Lifted {
    vocabulary: Arc<formalm_vocabulary::Vocabulary>,
    /// Groups of tokens that parsers have asked for, see [`Vocabulary`].
    groups: Py<PyDict>,
    memory_limit_bytes: usize,
}

#[derive(Debug)]
enum Kind {
    Plain(PlainKeys),
    Prefixed(PrefixedKeys<PlainKeys>),
}

/// Keys of a machine without a text in front.
#[derive(Debug)]
struct PlainKeys {
    machine: Arc<AnyMachine>,
    kind: Plain,
}

#[derive(Debug)]
enum Plain {
    Regular(Box<Viability>),
    Grammar(GrammarKeys),
    /// Of grammars with parsers in their rules.
    Asking(AskingKeys),
    Schema(Box<SchemaKeys>),
    Parser(ParserKeys),
    /// Of machines in rows, choices and repetitions.
    Composed(Box<PositionMaskClasses<AnyKeys>>),
    /// Of machines beside regular ones.
    States(StateKeys<AnyMachine>),
}

macro_rules! on_plain {
    ($any:expr, $one:ident => $result:expr) => {
        match $any {
            Plain::Regular($one) => $result,
            Plain::Grammar($one) => $result,
            Plain::Asking($one) => $result,
            Plain::Schema($one) => $result,
            Plain::Parser($one) => $result,
            Plain::Composed($one) => $result,
            Plain::States($one) => $result,
        }
    };
}

macro_rules! on_kind {
    ($any:expr, $one:ident => $result:expr) => {
        match $any {
            Kind::Plain($one) => $result,
            Kind::Prefixed($one) => $result,
        }
    };
}

impl AnyKeys {
    /// Keys for the tokens of a vocabulary. Masks of the machine's parts are kept in
    /// `memory_limit_bytes`.
    pub(crate) fn new(
        py: Python<'_>,
        machine: Arc<AnyMachine>,
        vocabulary: &Vocabulary,
        memory_limit_bytes: usize,
    ) -> AnyKeys {
        let groups = vocabulary.groups.clone_ref(py);
        let vocabulary = Arc::clone(&vocabulary.inner);
        AnyKeys::of(py, machine, Arc::new(Lifted { vocabulary, groups, memory_limit_bytes }))
    }

    fn of(py: Python<'_>, machine: Arc<AnyMachine>, lifted: Arc<Lifted>) -> AnyKeys {
        let (tokens, limit) = (&lifted.vocabulary, lifted.memory_limit_bytes);
        let horizon = tokens.longest_token_bytes();
        let plain = |rest: &Arc<AnyMachine>| {
            let kind = match &**rest {
                AnyMachine::Grammar(one) if !one.is_exact() => {
                    Plain::Asking(AskingKeys::new(Arc::clone(one), Arc::clone(tokens)))
                }
                AnyMachine::Grammar(one) => Plain::Grammar(GrammarKeys::new(Arc::clone(one))),
                AnyMachine::Schema(one) => {
                    let names = Arc::clone(tokens.token_names());
                    Plain::Schema(Box::new(SchemaKeys::new(Arc::clone(one), horizon, names)))
                }
                AnyMachine::Parser(one) => {
                    let groups = lifted.groups.clone_ref(py);
                    Plain::Parser(ParserKeys::new(py, Arc::clone(one), Arc::clone(tokens), groups))
                }
                AnyMachine::Regular(one) => {
                    Plain::Regular(Box::new(Viability::new(Arc::clone(one), horizon)))
                }
                AnyMachine::Composed(one) => {
                    let parts = |part: &Arc<AnyMachine>| {
                        let regular = matches!(**part, AnyMachine::Regular(_));
                        let lifted = Arc::clone(&lifted);
                        (!regular).then(|| AnyKeys::of(py, Arc::clone(part), lifted))
                    };
                    let (rest, one) = (Arc::clone(rest), Arc::clone(one));
                    let keys =
                        PositionMaskClasses::new(rest, one, Arc::clone(tokens), limit, parts);
                    Plain::Composed(Box::new(keys))
                }
                AnyMachine::Filtered(_) => Plain::States(StateKeys::new(Arc::clone(rest))),
                AnyMachine::Prefixed(_) => return None,
            };
            Some(PlainKeys { machine: Arc::clone(rest), kind })
        };
        let kind = match &*machine {
            AnyMachine::Prefixed(one) => plain(one.rest())
                .map(|keys| Kind::Prefixed(PrefixedKeys::new(Arc::clone(one), keys))),
            _ => plain(&machine).map(Kind::Plain),
        };
        // `AnyMachine::behind` puts nothing in front of a text.
        let kind = kind.unwrap_or_else(|| unreachable!("a text in front of a text"));
        AnyKeys { machine, kind, lifted }
    }
}

impl PlainKeys {
    /// The same of a machine to look ahead with.
    fn over_any(&self, machine: &Arc<AnyMachine>) -> Option<PlainKeys> {
        let kind = match (&self.kind, &**machine) {
            (Plain::Grammar(keys), AnyMachine::Grammar(one)) => Plain::Grammar(keys.over(one)?),
            (Plain::Schema(keys), AnyMachine::Schema(one)) => {
                Plain::Schema(Box::new(keys.over(one)?))
            }
            (Plain::Composed(keys), AnyMachine::Composed(one)) => {
                Plain::Composed(Box::new(keys.over_composed(machine, one)?))
            }
            (Plain::States(keys), _) => Plain::States(keys.over(machine)?),
            _ => return None,
        };
        Some(PlainKeys { machine: Arc::clone(machine), kind })
    }
}

impl AnyKeys {
    /// The same of a machine to look ahead with.
    fn over_any(&self, machine: &Arc<AnyMachine>) -> Option<AnyKeys> {
        let kind = match (&self.kind, &**machine) {
            (Kind::Plain(keys), _) => Kind::Plain(keys.over_any(machine)?),
            (Kind::Prefixed(keys), AnyMachine::Prefixed(one)) => Kind::Prefixed(keys.over(one)?),
            _ => return None,
        };
        Some(AnyKeys { machine: Arc::clone(machine), kind, lifted: Arc::clone(&self.lifted) })
    }
}

/// Keys that hand everything on to one of several kinds.
macro_rules! hand_on {
    ($keys:ty, $on:ident $(, $renewed:item)?) => {
        impl Keys for $keys {
            type Machine = AnyMachine;

            fn machine(&self) -> &Arc<AnyMachine> {
                &self.machine
            }

            #[inline]
            fn key(&self, state: StateId) -> Result<KeyId, Error> {
                $on!(&self.kind, one => one.key(state))
            }

            fn lasting_key(&self, state: StateId) -> Result<KeyId, Error> {
                $on!(&self.kind, one => one.lasting_key(state))
            }

            #[inline]
            fn known_key(&self, state: StateId) -> Option<KeyId> {
                $on!(&self.kind, one => one.known_key(state))
            }

            #[inline]
            fn is_unsure(&self, state: StateId) -> bool {
                $on!(&self.kind, one => one.is_unsure(state))
            }

            fn may_tell(&self, state: StateId, token: &[u8]) -> Result<bool, Error> {
                $on!(&self.kind, one => one.may_tell(state, token))
            }

            fn forgets_items(&self) -> bool {
                $on!(&self.kind, one => one.forgets_items())
            }

            fn over(&self, ahead: &Arc<AnyMachine>) -> Option<Self> {
                self.over_any(ahead)
            }

            #[inline]
            fn read_token(
                &self,
                state: StateId,
                token_id: u32,
                bytes: &[u8],
            ) -> Result<Result<StateId, usize>, Error> {
                $on!(&self.kind, one => one.read_token(state, token_id, bytes))
            }

            fn read<P: Purpose>(&self, purpose: P) -> P::Result {
                $on!(&self.kind, one => one.read(purpose))
            }

            fn read_ends<P: EndPurpose>(
                &self,
                state: StateId,
                purpose: P,
            ) -> Result<P::Result, Error> {
                $on!(&self.kind, one => one.read_ends(state, purpose))
            }

            fn is_abandoned(&self) -> bool {
                $on!(&self.kind, one => one.is_abandoned())
            }

            fn memory_bytes(&self) -> usize {
                $on!(&self.kind, one => one.memory_bytes())
            }

            fn mask_bytes(&self) -> usize {
                $on!(&self.kind, one => one.mask_bytes())
            }

            $($renewed)?
        }
    };
}

hand_on!(PlainKeys, on_plain);
hand_on!(
    AnyKeys,
    on_kind,
    fn renewed(&self) -> Result<Option<AnyKeys>, Error> {
        let Some(machine) = self.machine.renewed()? else { return Ok(None) };
        let machine = Arc::new(machine);
        Ok(Some(Python::attach(|py| AnyKeys::of(py, machine, Arc::clone(&self.lifted)))))
    }
);
