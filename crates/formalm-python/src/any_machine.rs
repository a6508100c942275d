//! One type for all kinds of machines and mask classes, so that constraints and matchers are
//! written once.
//!
//! The kind is dispatched once per call; walks and masks run on the concrete machine.

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

use crate::parser::{GrammarParserMasks, ParserMachine, ParserMasks};
use crate::vocabulary::Vocabulary;

/// A machine of any kind.
#[derive(Debug)]
pub(crate) enum AnyMachine {
    Regular(Arc<Automaton>),
    Grammar(Arc<GrammarAutomaton>),
    Schema(Arc<SchemaAutomaton>),
    Parser(Arc<ParserMachine>),
    /// A position automaton: machines of any kind in concatenations, unions and repetitions.
    Composed(Arc<Composed<AnyMachine>>),
    /// A machine of any kind intersected with a regular one.
    Filtered(Arc<Filtered<AnyMachine>>),
    /// A machine of another kind after a fixed prefix.
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

    /// Prepends a fixed prefix; `None` if the machine has one already.
    pub(crate) fn behind(machine: &Arc<AnyMachine>, front: Front) -> Option<AnyMachine> {
        let plain = !matches!(**machine, AnyMachine::Prefixed(_));
        plain.then(|| AnyMachine::Prefixed(Arc::new(Prefixed::new(front, Arc::clone(machine)))))
    }

    /// Returns `true` if every string is known to be UTF-8.
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

/// Mask classes of any kind.
#[derive(Debug)]
pub(crate) struct AnyMaskClasses {
    machine: Arc<AnyMachine>,
    kind: MaskClassKind,
    lifted: Arc<MaskClassInputs>,
}

/// The inputs that mask classes are built from.
#[derive(Debug)]
struct MaskClassInputs {
    vocabulary: Arc<formalm_vocabulary::Vocabulary>,
    /// Token groups that parsers have used, see [`Vocabulary`].
    groups: Py<PyDict>,
    memory_limit_bytes: usize,
}

#[derive(Debug)]
enum MaskClassKind {
    UnprefixedKind(UnprefixedMaskClasses),
    Prefixed(PrefixedKeys<UnprefixedMaskClasses>),
}

/// Mask classes of a machine without a fixed prefix.
#[derive(Debug)]
struct UnprefixedMaskClasses {
    machine: Arc<AnyMachine>,
    kind: UnprefixedKind,
}

#[derive(Debug)]
enum UnprefixedKind {
    Regular(Box<Viability>),
    Grammar(GrammarKeys),
    /// Of grammars with user parsers in their rules.
    Asking(GrammarParserMasks),
    Schema(Box<SchemaKeys>),
    Parser(ParserMasks),
    /// Of position automata.
    Composed(Box<PositionMaskClasses<AnyMaskClasses>>),
    /// Of machines intersected with regular ones.
    States(StateKeys<AnyMachine>),
}

macro_rules! on_plain {
    ($any:expr, $one:ident => $result:expr) => {
        match $any {
            UnprefixedKind::Regular($one) => $result,
            UnprefixedKind::Grammar($one) => $result,
            UnprefixedKind::Asking($one) => $result,
            UnprefixedKind::Schema($one) => $result,
            UnprefixedKind::Parser($one) => $result,
            UnprefixedKind::Composed($one) => $result,
            UnprefixedKind::States($one) => $result,
        }
    };
}

macro_rules! on_kind {
    ($any:expr, $one:ident => $result:expr) => {
        match $any {
            MaskClassKind::UnprefixedKind($one) => $result,
            MaskClassKind::Prefixed($one) => $result,
        }
    };
}

impl AnyMaskClasses {
    /// Creates mask classes for a vocabulary. Masks of the machine's parts are cached in
    /// `memory_limit_bytes`.
    pub(crate) fn new(
        py: Python<'_>,
        machine: Arc<AnyMachine>,
        vocabulary: &Vocabulary,
        memory_limit_bytes: usize,
    ) -> AnyMaskClasses {
        let groups = vocabulary.groups.clone_ref(py);
        let vocabulary = Arc::clone(&vocabulary.inner);
        AnyMaskClasses::of(
            py,
            machine,
            Arc::new(MaskClassInputs { vocabulary, groups, memory_limit_bytes }),
        )
    }

    fn of(
        py: Python<'_>,
        machine: Arc<AnyMachine>,
        lifted: Arc<MaskClassInputs>,
    ) -> AnyMaskClasses {
        let (tokens, limit) = (&lifted.vocabulary, lifted.memory_limit_bytes);
        let horizon = tokens.longest_token_bytes();
        let plain = |rest: &Arc<AnyMachine>| {
            let kind = match &**rest {
                AnyMachine::Grammar(one) if !one.is_exact() => UnprefixedKind::Asking(
                    GrammarParserMasks::new(Arc::clone(one), Arc::clone(tokens)),
                ),
                AnyMachine::Grammar(one) => {
                    UnprefixedKind::Grammar(GrammarKeys::new(Arc::clone(one)))
                }
                AnyMachine::Schema(one) => {
                    let names = Arc::clone(tokens.token_names());
                    UnprefixedKind::Schema(Box::new(SchemaKeys::new(
                        Arc::clone(one),
                        horizon,
                        names,
                    )))
                }
                AnyMachine::Parser(one) => {
                    let groups = lifted.groups.clone_ref(py);
                    UnprefixedKind::Parser(ParserMasks::new(
                        py,
                        Arc::clone(one),
                        Arc::clone(tokens),
                        groups,
                    ))
                }
                AnyMachine::Regular(one) => {
                    UnprefixedKind::Regular(Box::new(Viability::new(Arc::clone(one), horizon)))
                }
                AnyMachine::Composed(one) => {
                    let parts = |part: &Arc<AnyMachine>| {
                        let regular = matches!(**part, AnyMachine::Regular(_));
                        let lifted = Arc::clone(&lifted);
                        (!regular).then(|| AnyMaskClasses::of(py, Arc::clone(part), lifted))
                    };
                    let (rest, one) = (Arc::clone(rest), Arc::clone(one));
                    let keys =
                        PositionMaskClasses::new(rest, one, Arc::clone(tokens), limit, parts);
                    UnprefixedKind::Composed(Box::new(keys))
                }
                AnyMachine::Filtered(_) => UnprefixedKind::States(StateKeys::new(Arc::clone(rest))),
                AnyMachine::Prefixed(_) => return None,
            };
            Some(UnprefixedMaskClasses { machine: Arc::clone(rest), kind })
        };
        let kind = match &*machine {
            AnyMachine::Prefixed(one) => plain(one.rest())
                .map(|keys| MaskClassKind::Prefixed(PrefixedKeys::new(Arc::clone(one), keys))),
            _ => plain(&machine).map(MaskClassKind::UnprefixedKind),
        };
        // `AnyMachine::behind` never prepends to a prefix.
        let kind = kind.unwrap_or_else(|| unreachable!("a text in front of a text"));
        AnyMaskClasses { machine, kind, lifted }
    }
}

impl UnprefixedMaskClasses {
    /// Returns the mask classes of a lookahead machine.
    fn over_any(&self, machine: &Arc<AnyMachine>) -> Option<UnprefixedMaskClasses> {
        let kind = match (&self.kind, &**machine) {
            (UnprefixedKind::Grammar(keys), AnyMachine::Grammar(one)) => {
                UnprefixedKind::Grammar(keys.over(one)?)
            }
            (UnprefixedKind::Schema(keys), AnyMachine::Schema(one)) => {
                UnprefixedKind::Schema(Box::new(keys.over(one)?))
            }
            (UnprefixedKind::Composed(keys), AnyMachine::Composed(one)) => {
                UnprefixedKind::Composed(Box::new(keys.over_composed(machine, one)?))
            }
            (UnprefixedKind::States(keys), _) => UnprefixedKind::States(keys.over(machine)?),
            _ => return None,
        };
        Some(UnprefixedMaskClasses { machine: Arc::clone(machine), kind })
    }
}

impl AnyMaskClasses {
    /// Returns the mask classes of a lookahead machine.
    fn over_any(&self, machine: &Arc<AnyMachine>) -> Option<AnyMaskClasses> {
        let kind = match (&self.kind, &**machine) {
            (MaskClassKind::UnprefixedKind(keys), _) => {
                MaskClassKind::UnprefixedKind(keys.over_any(machine)?)
            }
            (MaskClassKind::Prefixed(keys), AnyMachine::Prefixed(one)) => {
                MaskClassKind::Prefixed(keys.over(one)?)
            }
            _ => return None,
        };
        Some(AnyMaskClasses {
            machine: Arc::clone(machine),
            kind,
            lifted: Arc::clone(&self.lifted),
        })
    }
}

/// Implements mask classes by dispatch to one of several kinds.
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

hand_on!(UnprefixedMaskClasses, on_plain);
hand_on!(
    AnyMaskClasses,
    on_kind,
    fn renewed(&self) -> Result<Option<AnyMaskClasses>, Error> {
        let Some(machine) = self.machine.renewed()? else { return Ok(None) };
        let machine = Arc::new(machine);
        Ok(Some(Python::attach(|py| AnyMaskClasses::of(py, machine, Arc::clone(&self.lifted)))))
    }
);
