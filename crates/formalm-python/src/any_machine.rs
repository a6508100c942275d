//! One type for all kinds of machines and mask classes, so that constraints and matchers are
//! written once.
//!
//! The kind is dispatched once per call; walks and masks run on the concrete machine.

use std::any::Any;
use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_constraint::{AbstractStateClasses, PositionMaskClasses, SublanguageMaskClasses};
use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, LazyDfa, Machine, MaskClassId,
    ReadingHints, RecheckPredicate, Renewal, ScratchCopies, ScratchPosition, StateId,
    into_dyn_machine,
};
use formalm_grammar::{GrammarAutomaton, GrammarMaskClasses};
use formalm_machines::{
    AcceptingVisitor, ApproximateClasses, ClassRenewal, ClassVisitor, CompletionLength,
    IdentityClasses, Intersection, IntersectionBounds, MemberEnds, PartPosition, PositionAutomaton,
    Precision, Prefix, PrefixedMachine, PrefixedMaskClasses, ProductCache, RegularMaskClasses,
    StateClasses,
};
use formalm_schema::{SchemaAutomaton, SchemaMaskClasses};
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
    Composed(Arc<PositionAutomaton<AnyMachine>>),
    /// A machine of any kind intersected with a regular one.
    Filtered(Arc<Intersection<AnyMachine>>),
    /// A machine of another kind after a fixed prefix.
    Prefixed(Arc<PrefixedMachine<AnyMachine>>),
    /// A machine of a test.
    #[cfg(feature = "test-machines")]
    Test(Arc<dyn Machine>),
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
            #[cfg(feature = "test-machines")]
            AnyMachine::Test($one) => $result,
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
            AnyMachine::Prefixed(one) => one.prefix().text.len() + one.rest().state_count(),
            #[cfg(feature = "test-machines")]
            AnyMachine::Test(_) => 0,
        }
    }

    /// Prepends a fixed prefix; `None` if the machine has one already.
    pub(crate) fn behind(machine: &Arc<AnyMachine>, front: Prefix) -> Option<AnyMachine> {
        let plain = !matches!(**machine, AnyMachine::Prefixed(_));
        plain.then(|| {
            AnyMachine::Prefixed(Arc::new(PrefixedMachine::new(front, Arc::clone(machine))))
        })
    }

    /// Returns `true` if every string is known to be UTF-8.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            AnyMachine::Regular(one) => one.is_utf8(),
            AnyMachine::Grammar(one) => one.is_text(),
            AnyMachine::Schema(one) => one.is_text(),
            AnyMachine::Parser(one) => one.is_text(),
            AnyMachine::Composed(_) | AnyMachine::Filtered(_) | AnyMachine::Prefixed(_) => false,
            #[cfg(feature = "test-machines")]
            AnyMachine::Test(_) => false,
        }
    }
}

impl AnyMachine {
    /// Returns `true` if states also encode what was read where that can only forbid repetition.
    fn has_abstract_states(&self) -> bool {
        match self {
            AnyMachine::Schema(_) => true,
            AnyMachine::Composed(one) => {
                one.positions().iter().any(|position| position.machine.has_abstract_states())
            }
            AnyMachine::Filtered(one) => one.machine().has_abstract_states(),
            AnyMachine::Prefixed(one) => one.rest().has_abstract_states(),
            AnyMachine::Regular(_) | AnyMachine::Grammar(_) | AnyMachine::Parser(_) => false,
            #[cfg(feature = "test-machines")]
            AnyMachine::Test(_) => false,
        }
    }
}

impl IntersectionBounds for AnyMachine {
    fn intersection_completion(
        &self,
        state: StateId,
        beside: &mut ProductCache,
        at: StateId,
        look: Precision,
    ) -> Result<CompletionLength, Error> {
        match self {
            AnyMachine::Grammar(one) => one.intersection_completion(state, beside, at, look),
            _ => Ok(CompletionLength::Unknown),
        }
    }
}

impl LazyDfa for AnyMachine {
    fn start(&self) -> StateId {
        on_any!(self, one => one.start())
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        on_any!(self, one => one.step(state, byte))
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        on_any!(self, one => LazyDfa::is_accepting(&**one, state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        on_any!(self, one => one.live_bytes(state))
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        on_any!(self, one => one.shortest_completion(state))
    }

    fn memory_bytes(&self) -> usize {
        on_any!(self, one => one.memory_bytes())
    }

    #[inline]
    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        on_any!(self, one => one.walk(state, text))
    }
}

impl ReadingHints for AnyMachine {
    fn byte_classes(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        on_any!(self, one => one.byte_classes(state))
    }

    fn is_finite(&self) -> bool {
        on_any!(self, one => one.is_finite())
    }

    fn is_exact(&self) -> bool {
        on_any!(self, one => one.is_exact())
    }

    fn reads_text(&self) -> bool {
        on_any!(self, one => one.reads_text())
    }

    fn is_char_boundary(&self, state: StateId) -> bool {
        on_any!(self, one => one.is_char_boundary(state))
    }

    fn accepts_from(&self, state: StateId, text: &[u8]) -> Result<bool, Error> {
        on_any!(self, one => one.accepts_from(state, text))
    }

    fn membership(&self, text: &[u8]) -> Result<Option<bool>, Error> {
        on_any!(self, one => one.membership(text))
    }

    fn typical_input(&self, number: usize) -> Option<Vec<u8>> {
        on_any!(self, one => one.typical_input(number))
    }
}

impl CompletionHints for AnyMachine {
    fn quick_shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        on_any!(self, one => one.quick_shortest_completion(state))
    }

    fn any_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        on_any!(self, one => one.any_completion(state))
    }

    fn min_bytes(&self, state: StateId) -> Result<usize, Error> {
        on_any!(self, one => one.min_bytes(state))
    }

    fn min_bytes_hint(&self, state: StateId) -> Result<usize, Error> {
        on_any!(self, one => one.min_bytes_hint(state))
    }
}

impl CompletionClasses for AnyMachine {
    fn completion_class(&self, state: StateId) -> Result<StateId, Error> {
        on_any!(self, one => one.completion_class(state))
    }

    fn input_needs_recheck(&self, token: &[u8]) -> bool {
        on_any!(self, one => one.input_needs_recheck(token))
    }

    fn abstract_state(&self, state: StateId) -> Result<StateId, Error> {
        on_any!(self, one => one.abstract_state(state))
    }

    fn keeps_completion(&self, state: StateId, completion: &[u8]) -> Result<bool, Error> {
        on_any!(self, one => one.keeps_completion(state, completion))
    }

    fn needs_recheck(
        &self,
        state: Option<StateId>,
        forgetful: StateId,
        text: &[u8],
    ) -> Result<Option<RecheckPredicate>, Error> {
        on_any!(self, one => one.needs_recheck(state, forgetful, text))
    }
}

impl ScratchCopies for AnyMachine {
    fn scratch_copy_at(&self, state: StateId) -> Result<Option<ScratchPosition>, Error> {
        on_any!(self, one => one.scratch_copy_at(state))
    }

    fn scratch_copy(&self) -> Option<AnyMachine> {
        Some(match self {
            AnyMachine::Regular(_) | AnyMachine::Parser(_) => return None,
            AnyMachine::Grammar(one) => AnyMachine::Grammar(Arc::new(one.scratch_copy()?)),
            AnyMachine::Schema(one) => AnyMachine::Schema(Arc::new(one.scratch_copy()?)),
            AnyMachine::Composed(one) => AnyMachine::Composed(Arc::new(one.scratch_copy()?)),
            AnyMachine::Filtered(one) => AnyMachine::Filtered(Arc::new(one.scratch_copy()?)),
            AnyMachine::Prefixed(one) => AnyMachine::Prefixed(Arc::new(one.scratch_copy()?)),
            #[cfg(feature = "test-machines")]
            AnyMachine::Test(one) => AnyMachine::Test(one.dyn_scratch_copy()?),
        })
    }

    fn dyn_scratch_copy(&self) -> Option<Arc<dyn Machine>> {
        Some(Arc::new(self.scratch_copy()?))
    }

    fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        on_any!(self, one => one.import_state(state))
    }
}

impl Renewal for AnyMachine {
    fn has_room(&self, states: usize) -> bool {
        on_any!(self, one => one.has_room(states))
    }

    fn is_abandoned(&self) -> bool {
        on_any!(self, one => one.is_abandoned())
    }

    fn fresh_copy(&self) -> Result<Option<AnyMachine>, Error> {
        fn renewed<M>(
            copy: Result<Option<M>, Error>,
            kind: fn(Arc<M>) -> AnyMachine,
        ) -> Result<Option<AnyMachine>, Error> {
            Ok(copy?.map(|one| kind(Arc::new(one))))
        }

        match self {
            AnyMachine::Regular(one) => renewed(one.fresh_copy(), AnyMachine::Regular),
            AnyMachine::Grammar(one) => renewed(one.fresh_copy(), AnyMachine::Grammar),
            AnyMachine::Schema(one) => renewed(one.fresh_copy(), AnyMachine::Schema),
            AnyMachine::Parser(one) => renewed(one.fresh_copy(), AnyMachine::Parser),
            AnyMachine::Composed(one) => renewed(one.fresh_copy(), AnyMachine::Composed),
            AnyMachine::Filtered(one) => renewed(one.fresh_copy(), AnyMachine::Filtered),
            AnyMachine::Prefixed(one) => renewed(one.fresh_copy(), AnyMachine::Prefixed),
            #[cfg(feature = "test-machines")]
            AnyMachine::Test(one) => Ok(one.dyn_fresh_copy()?.map(AnyMachine::Test)),
        }
    }

    fn dyn_fresh_copy(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        into_dyn_machine(self.fresh_copy())
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
    Prefixed(PrefixedMaskClasses<UnprefixedMaskClasses>),
}

/// Mask classes of a machine without a fixed prefix.
#[derive(Debug)]
struct UnprefixedMaskClasses {
    machine: Arc<AnyMachine>,
    kind: UnprefixedKind,
}

#[derive(Debug)]
enum UnprefixedKind {
    Regular(Box<RegularMaskClasses>),
    Grammar(GrammarMaskClasses),
    /// Of grammars with languages of other kinds in their rules.
    Embedding(Box<SublanguageMaskClasses<GrammarMaskClasses, AnyMaskClasses>>),
    /// Of grammars with user parsers in their rules.
    Asking(GrammarParserMasks),
    Schema(Box<SchemaMaskClasses>),
    Parser(ParserMasks),
    /// Of position automata.
    Composed(Box<PositionMaskClasses<AnyMaskClasses>>),
    /// Of schemas, and of combinations with schemas, intersected with regular languages.
    Abstract(AbstractStateClasses<AnyMachine>),
    /// Of other machines intersected with regular ones.
    States(IdentityClasses<AnyMachine>),
}

macro_rules! on_plain {
    ($any:expr, $one:ident => $result:expr) => {
        match $any {
            UnprefixedKind::Regular($one) => $result,
            UnprefixedKind::Grammar($one) => $result,
            UnprefixedKind::Embedding($one) => $result,
            UnprefixedKind::Asking($one) => $result,
            UnprefixedKind::Schema($one) => $result,
            UnprefixedKind::Parser($one) => $result,
            UnprefixedKind::Composed($one) => $result,
            UnprefixedKind::Abstract($one) => $result,
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
                    let parts = |part: &Arc<dyn Machine>| {
                        let part = any_machine(part)?;
                        Some(AnyMaskClasses::of_sublanguage(py, part, Arc::clone(&lifted)))
                    };
                    let host = GrammarMaskClasses::new(Arc::clone(one));
                    match SublanguageMaskClasses::new(host, Arc::clone(tokens), limit, parts) {
                        Ok(keys) => UnprefixedKind::Embedding(Box::new(keys)),
                        Err(host) => UnprefixedKind::Grammar(host),
                    }
                }
                AnyMachine::Schema(one) => {
                    let names = Arc::clone(tokens.token_names());
                    // Made once for each vocabulary, and now rather than while a model waits.
                    tokens.json_string_tokens(one.escapes());
                    UnprefixedKind::Schema(Box::new(SchemaMaskClasses::new(
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
                AnyMachine::Regular(one) => UnprefixedKind::Regular(Box::new(
                    RegularMaskClasses::new(Arc::clone(one), horizon),
                )),
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
                AnyMachine::Filtered(one) if one.machine().has_abstract_states() => {
                    let tokens = Arc::clone(tokens);
                    UnprefixedKind::Abstract(AbstractStateClasses::new(Arc::clone(rest), tokens))
                }
                AnyMachine::Filtered(_) => {
                    UnprefixedKind::States(IdentityClasses::new(Arc::clone(rest)))
                }
                #[cfg(feature = "test-machines")]
                AnyMachine::Test(_) => {
                    UnprefixedKind::States(IdentityClasses::new(Arc::clone(rest)))
                }
                AnyMachine::Prefixed(_) => return None,
            };
            Some(UnprefixedMaskClasses { machine: Arc::clone(rest), kind })
        };
        let kind = match &*machine {
            AnyMachine::Prefixed(one) => plain(one.rest()).map(|keys| {
                MaskClassKind::Prefixed(PrefixedMaskClasses::new(Arc::clone(one), keys))
            }),
            _ => plain(&machine).map(MaskClassKind::UnprefixedKind),
        };
        // `AnyMachine::behind` never prepends to a prefix.
        let kind = kind.unwrap_or_else(|| unreachable!("a text in front of a text"));
        AnyMaskClasses { machine, kind, lifted }
    }
}

impl AnyMaskClasses {
    /// Returns the mask classes of a sublanguage's machine, which distinguish members: those of
    /// regular machines, which do not, are its states.
    fn of_sublanguage(
        py: Python<'_>,
        machine: Arc<AnyMachine>,
        lifted: Arc<MaskClassInputs>,
    ) -> AnyMaskClasses {
        if !matches!(*machine, AnyMachine::Regular(_)) {
            return AnyMaskClasses::of(py, machine, lifted);
        }
        let kind = UnprefixedKind::States(IdentityClasses::new(Arc::clone(&machine)));
        let keys = UnprefixedMaskClasses { machine: Arc::clone(&machine), kind };
        AnyMaskClasses { machine, kind: MaskClassKind::UnprefixedKind(keys), lifted }
    }
}

/// Returns a sublanguage's machine under its own type.
fn any_machine(machine: &Arc<dyn Machine>) -> Option<Arc<AnyMachine>> {
    let machine: Arc<dyn Any + Send + Sync> = machine.clone();
    machine.downcast().ok()
}

impl UnprefixedMaskClasses {
    /// Returns the mask classes of a lookahead machine.
    fn over_any(&self, machine: &Arc<AnyMachine>) -> Option<UnprefixedMaskClasses> {
        let kind = match (&self.kind, &**machine) {
            (UnprefixedKind::Grammar(keys), AnyMachine::Grammar(one)) => {
                UnprefixedKind::Grammar(keys.over_scratch(one)?)
            }
            (UnprefixedKind::Embedding(keys), AnyMachine::Grammar(one)) => {
                let parts = |part: &AnyMaskClasses, machine: &Arc<dyn Machine>| {
                    part.over_any(&any_machine(machine)?)
                };
                let host = keys.host().over_scratch(one)?;
                UnprefixedKind::Embedding(Box::new(keys.over_scratch_host(host, parts)?))
            }
            (UnprefixedKind::Schema(keys), AnyMachine::Schema(one)) => {
                UnprefixedKind::Schema(Box::new(keys.over_scratch(one)?))
            }
            (UnprefixedKind::Composed(keys), AnyMachine::Composed(one)) => {
                UnprefixedKind::Composed(Box::new(keys.over_composed(machine, one)?))
            }
            (UnprefixedKind::Abstract(keys), _) => {
                UnprefixedKind::Abstract(keys.over_scratch(machine)?)
            }
            (UnprefixedKind::States(keys), _) => {
                UnprefixedKind::States(keys.over_scratch(machine)?)
            }
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
                MaskClassKind::Prefixed(keys.over_scratch(one)?)
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
macro_rules! delegate_mask_classes {
    ($classes:ty, $on:ident $(, $fresh_copy:item)?) => {
        impl StateClasses for $classes {
            type Machine = AnyMachine;

            fn machine(&self) -> &Arc<AnyMachine> {
                &self.machine
            }

            #[inline]
            fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
                $on!(&self.kind, one => one.mask_class(state))
            }

            fn completion_mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
                $on!(&self.kind, one => one.completion_mask_class(state))
            }

            #[inline]
            fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
                $on!(&self.kind, one => one.known_mask_class(state))
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

            fn visit<P: ClassVisitor>(&self, visitor: P) -> P::Result {
                $on!(&self.kind, one => one.visit(visitor))
            }

            fn visit_accepting<P: AcceptingVisitor>(
                &self,
                state: StateId,
                visitor: P,
            ) -> Result<P::Result, Error> {
                $on!(&self.kind, one => one.visit_accepting(state, visitor))
            }

            fn memory_bytes(&self) -> usize {
                $on!(&self.kind, one => one.memory_bytes())
            }
        }

        impl MemberEnds for $classes {
            fn last_bytes(&self) -> Result<Option<ByteSet>, Error> {
                $on!(&self.kind, one => one.last_bytes())
            }

            fn part(&self, state: StateId) -> Result<Option<PartPosition>, Error> {
                $on!(&self.kind, one => one.part(state))
            }

            fn part_name(&self, state: StateId) -> Result<Option<u128>, Error> {
                $on!(&self.kind, one => one.part_name(state))
            }
        }

        impl ApproximateClasses for $classes {
            #[inline]
            fn is_approximate(&self, state: StateId) -> bool {
                $on!(&self.kind, one => one.is_approximate(state))
            }

            fn may_refuse(&self, state: StateId, token: &[u8]) -> Result<bool, Error> {
                $on!(&self.kind, one => one.may_refuse(state, token))
            }

            fn drops_seen_items(&self) -> bool {
                $on!(&self.kind, one => one.drops_seen_items())
            }
        }

        impl ClassRenewal for $classes {
            fn over_scratch(&self, scratch: &Arc<AnyMachine>) -> Option<Self> {
                self.over_any(scratch)
            }

            fn is_abandoned(&self) -> bool {
                $on!(&self.kind, one => one.is_abandoned())
            }

            fn mask_bytes(&self) -> usize {
                $on!(&self.kind, one => one.mask_bytes())
            }

            $($fresh_copy)?
        }
    };
}

delegate_mask_classes!(UnprefixedMaskClasses, on_plain);
delegate_mask_classes!(
    AnyMaskClasses,
    on_kind,
    fn fresh_copy(&self) -> Result<Option<AnyMaskClasses>, Error> {
        let Some(machine) = self.machine.fresh_copy()? else { return Ok(None) };
        let machine = Arc::new(machine);
        Ok(Some(Python::attach(|py| AnyMaskClasses::of(py, machine, Arc::clone(&self.lifted)))))
    }
);
