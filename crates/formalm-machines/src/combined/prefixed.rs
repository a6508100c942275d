//! A fixed prefix before every member of a machine's language.
//!
//! ```text
//!  states:  0 ─p₀─► 1 ─p₁─► … ─► len (prefix read) ─► machine states, shifted by len + 1
//! ```
//!
//! Unlike concatenation of languages, this works with every kind of machine.

use std::sync::Arc;

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, LazyDfa, Machine, MaskClassId,
    ReadingHints, Renewal, ScratchCopies, StateId,
};
use formalm_json::{JsonStringState, escapes::EscapePolicy};

use crate::combined::ScratchCache;
use crate::{
    AcceptingVisitor, AlternativeStrings, ApproximateClasses, CharRepetition, ClassAutomaton,
    ClassRenewal, ClassVisitor, LiteralList, MaskAutomaton, MaskClasses, MaskShortcuts, MemberEnds,
    NoLexicalMachine, StateClasses, StatesAsClasses, StringClasses, ValueClasses,
};

/// The prefix of every member.
#[derive(Clone, Debug)]
pub struct Prefix {
    /// The bytes of the prefix.
    pub text: Vec<u8>,
    /// `true` if the empty member has no prefix.
    pub unless_empty: bool,
    /// A byte that no member may begin with.
    pub refused_first_byte: Option<u8>,
}

/// A machine whose members have a prefix.
#[derive(Debug)]
pub struct PrefixedMachine<M> {
    front: Prefix,
    rest: Arc<M>,
}

impl<M: Machine> PrefixedMachine<M> {
    /// Creates the machine.
    pub fn new(front: Prefix, rest: Arc<M>) -> PrefixedMachine<M> {
        PrefixedMachine { front, rest }
    }

    /// Returns the machine after the prefix.
    pub fn rest(&self) -> &Arc<M> {
        &self.rest
    }

    /// Returns the prefix.
    pub fn prefix(&self) -> &Prefix {
        &self.front
    }
}

impl Prefix {
    fn len(&self) -> u32 {
        self.text.len() as u32
    }

    /// Returns the number that a state or class has in the inner machine.
    fn inner(&self, number: u32) -> Option<u32> {
        number.checked_sub(self.len() + 1)
    }

    fn outer(&self, number: u32) -> u32 {
        number + self.len() + 1
    }

    /// Returns the rest of the prefix.
    fn left(&self, number: u32) -> &[u8] {
        self.text.get(number as usize..).unwrap_or_default()
    }

    /// Returns the number after a byte if it is the next one of the prefix.
    fn step(&self, number: u32, byte: u8) -> Option<u32> {
        (self.left(number).first() == Some(&byte)).then_some(number + 1)
    }

    /// Returns the live bytes, given those of the inner machine at its start.
    fn live(&self, number: u32, start: ByteSet) -> ByteSet {
        let mut set = ByteSet::default();
        match self.left(number).first() {
            Some(&byte) => set.insert(byte),
            None => start
                .iter()
                .filter(|&byte| Some(byte) != self.refused_first_byte)
                .for_each(|byte| set.insert(byte)),
        }
        set
    }
}

impl<M: Machine> LazyDfa for PrefixedMachine<M> {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let (front, number) = (&self.front, state.number());
        if !front.left(number).is_empty() {
            return Ok(front.step(number, byte).map(StateId::from_number));
        }
        let from = match front.inner(number) {
            Some(inner) => StateId::from_number(inner),
            None if front.refused_first_byte == Some(byte) => return Ok(None),
            None => self.rest.start(),
        };
        let next = self.rest.step(from, byte)?;
        Ok(next.map(|next| StateId::from_number(front.outer(next.number()))))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        let begins = match (self.front.inner(state.number()), state.number()) {
            (Some(inner), _) => return self.rest.is_accepting(StateId::from_number(inner)),
            (None, 0) if self.front.unless_empty => true,
            (None, number) => number == self.front.len() && !self.front.unless_empty,
        };
        Ok(begins && self.rest.is_accepting(self.rest.start())?)
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        match self.front.inner(state.number()) {
            Some(inner) => self.rest.live_bytes(StateId::from_number(inner)),
            None => {
                let start = self.rest.live_bytes(self.rest.start())?;
                Ok(self.front.live(state.number(), start))
            }
        }
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        match self.front.inner(state.number()) {
            Some(inner) => self.rest.shortest_completion(StateId::from_number(inner)),
            None if self.is_accepting(state)? => Ok(Vec::new()),
            None => {
                let rest = self.rest.shortest_completion(self.rest.start())?;
                Ok([self.front.left(state.number()), &rest].concat())
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.front.text.len() + self.rest.memory_bytes()
    }
}

impl<M: Machine> ReadingHints for PrefixedMachine<M> {
    fn is_finite(&self) -> bool {
        self.rest.is_finite()
    }

    fn is_exact(&self) -> bool {
        self.rest.is_exact()
    }

    fn typical_input(&self, number: usize) -> Option<Vec<u8>> {
        let rest = self.rest.typical_input(number)?;
        Some([&self.front.text[..], &rest].concat())
    }
}

impl<M: Machine> CompletionHints for PrefixedMachine<M> {}

impl<M: Machine> CompletionClasses for PrefixedMachine<M> {}

impl<M: Machine> ScratchCopies for PrefixedMachine<M> {
    fn scratch_copy(&self) -> Option<PrefixedMachine<M>> {
        Some(PrefixedMachine::new(self.front.clone(), Arc::new(self.rest.scratch_copy()?)))
    }

    fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        let Some(inner) = self.front.inner(state.number()) else { return Ok(state) };
        let inner = self.rest.import_state(StateId::from_number(inner))?;
        Ok(StateId::from_number(self.front.outer(inner.number())))
    }
}

impl<M: Machine> Renewal for PrefixedMachine<M> {
    fn is_abandoned(&self) -> bool {
        self.rest.is_abandoned()
    }

    fn fresh_copy(&self) -> Result<Option<PrefixedMachine<M>>, Error> {
        let rest = self.rest.fresh_copy()?;
        Ok(rest.map(|rest| PrefixedMachine::new(self.front.clone(), Arc::new(rest))))
    }
}

/// The mask classes of a machine with a prefix.
#[derive(Debug)]
pub struct PrefixedMaskClasses<K: MaskClasses> {
    machine: Arc<PrefixedMachine<K::Machine>>,
    keys: K,
    ahead: ScratchCache<PrefixedMachine<K::Machine>>,
}

impl<K: MaskClasses> PrefixedMaskClasses<K> {
    /// Creates the classes of `machine` from those of its inner machine.
    pub fn new(machine: Arc<PrefixedMachine<K::Machine>>, keys: K) -> PrefixedMaskClasses<K> {
        PrefixedMaskClasses { machine, keys, ahead: ScratchCache::default() }
    }

    fn front(&self) -> &Prefix {
        &self.machine.front
    }

    /// Returns the class of a state by that of the inner machine.
    fn map_inner_class(
        &self,
        state: StateId,
        key: impl FnOnce(StateId) -> Result<MaskClassId, Error>,
    ) -> Result<MaskClassId, Error> {
        Ok(MaskClassId::from_number(match self.front().inner(state.number()) {
            Some(inner) => self.front().outer(key(StateId::from_number(inner))?.number()),
            None => state.number(),
        }))
    }
}

impl<K: MaskClasses> StateClasses for PrefixedMaskClasses<K> {
    type Machine = PrefixedMachine<K::Machine>;

    fn machine(&self) -> &Arc<Self::Machine> {
        &self.machine
    }

    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        self.map_inner_class(state, |state| self.keys.mask_class(state))
    }

    fn completion_mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        self.map_inner_class(state, |state| self.keys.completion_mask_class(state))
    }

    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        let Some(inner) = self.front().inner(state.number()) else {
            return Some(MaskClassId::from_number(state.number()));
        };
        let known = self.keys.known_mask_class(StateId::from_number(inner))?;
        Some(MaskClassId::from_number(self.front().outer(known.number())))
    }

    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        purpose: P,
    ) -> Result<P::Result, Error> {
        let key = MaskClassId::from_number(state.number());
        Ok(match self.ahead.of(&self.machine) {
            Some(ahead) => purpose.visit(&ahead.mask_automaton(), key),
            None => purpose.visit(&StatesAsClasses::new(&*self.machine), key),
        })
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        let start = self.keys.mask_class(self.machine.rest.start());
        self.keys.visit(PrefixedVisitor { purpose, front: self.front(), start })
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.ahead.memory_bytes()
    }
}

impl<K: MaskClasses> MemberEnds for PrefixedMaskClasses<K> {}

impl<K: MaskClasses> ApproximateClasses for PrefixedMaskClasses<K> {
    fn is_approximate(&self, state: StateId) -> bool {
        let inner = self.front().inner(state.number()).map(StateId::from_number);
        inner.is_some_and(|inner| self.keys.is_approximate(inner))
    }

    fn drops_seen_items(&self) -> bool {
        self.keys.drops_seen_items()
    }
}

impl<K: MaskClasses> ClassRenewal for PrefixedMaskClasses<K> {
    fn over_scratch(
        &self,
        ahead: &Arc<PrefixedMachine<K::Machine>>,
    ) -> Option<PrefixedMaskClasses<K>> {
        Some(PrefixedMaskClasses::new(Arc::clone(ahead), self.keys.over_scratch(ahead.rest())?))
    }

    fn mask_bytes(&self) -> usize {
        self.keys.mask_bytes()
    }
}

/// A visitor of the inner classes, with the prefix.
struct PrefixedVisitor<'a, P> {
    purpose: P,
    front: &'a Prefix,
    start: Result<MaskClassId, Error>,
}

impl<P: ClassVisitor> ClassVisitor for PrefixedVisitor<'_, P> {
    type Result = P::Result;

    fn visit(self, steps: &impl MaskAutomaton) -> P::Result {
        self.purpose.visit(&PrefixedMaskAutomaton { steps, front: self.front, start: self.start })
    }
}

struct PrefixedMaskAutomaton<'a, S> {
    steps: &'a S,
    front: &'a Prefix,
    /// The first class of the inner machine.
    start: Result<MaskClassId, Error>,
}

impl<S> PrefixedMaskAutomaton<'_, S> {
    /// Returns the class in the inner machine.
    fn inner(&self, key: MaskClassId) -> Option<MaskClassId> {
        self.front.inner(key.number()).map(MaskClassId::from_number)
    }

    fn outer(&self, key: MaskClassId) -> MaskClassId {
        MaskClassId::from_number(self.front.outer(key.number()))
    }
}

impl<S: MaskAutomaton> ClassAutomaton for PrefixedMaskAutomaton<'_, S> {
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, key: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        let (front, number) = (self.front, key.number());
        if !front.left(number).is_empty() {
            return Ok(front.step(number, byte).map(MaskClassId::from_number));
        }
        let from = match front.inner(number) {
            Some(inner) => MaskClassId::from_number(inner),
            None if front.refused_first_byte == Some(byte) => return Ok(None),
            None => self.start.clone()?,
        };
        let next = self.steps.step(from, byte)?;
        Ok(next.map(|next| MaskClassId::from_number(front.outer(next.number()))))
    }

    fn live_bytes(&self, key: MaskClassId) -> Result<ByteSet, Error> {
        match self.front.inner(key.number()) {
            Some(inner) => self.steps.live_bytes(MaskClassId::from_number(inner)),
            None => {
                let start = self.steps.live_bytes(self.start.clone()?)?;
                Ok(self.front.live(key.number(), start))
            }
        }
    }

    fn char_repetition(&self, key: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        let Some(inner) = self.inner(key) else { return Ok(None) };
        let repetition = self.steps.char_repetition(inner)?;
        Ok(repetition.map(|one| {
            let exit = one.exit.map(|exit| self.outer(exit));
            CharRepetition { exit, ..one }
        }))
    }
}

impl<S: MaskAutomaton> MaskShortcuts for PrefixedMaskAutomaton<'_, S> {
    const KNOWS_POSSIBLE_BYTES: bool = S::KNOWS_POSSIBLE_BYTES;

    const HAS_FAST_STEPS: bool = S::HAS_FAST_STEPS;

    fn direct_mask(&self, key: MaskClassId) -> Result<Option<Vec<u32>>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.direct_mask(inner))
    }

    fn possible_bytes(&self, key: MaskClassId) -> Result<Option<ByteSet>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.possible_bytes(inner))
    }

    fn accepts_any_of(
        &self,
        key: MaskClassId,
        characters: u128,
        max_len: u8,
    ) -> Result<bool, Error> {
        let accepts = |inner| self.steps.accepts_any_of(inner, characters, max_len);
        self.inner(key).map_or(Ok(false), accepts)
    }

    fn reference_class(&self, key: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        let Some(inner) = self.inner(key) else { return Ok(None) };
        Ok(self.steps.reference_class(inner)?.map(|reference| self.outer(reference)))
    }

    fn differing_bytes(
        &self,
        first: MaskClassId,
        second: MaskClassId,
    ) -> Result<Option<ByteSet>, Error> {
        match (self.inner(first), self.inner(second)) {
            (Some(first), Some(second)) => self.steps.differing_bytes(first, second),
            _ => Ok(None),
        }
    }
}

impl<S: MaskAutomaton> StringClasses for PrefixedMaskAutomaton<'_, S> {
    fn unconstrained_string(&self, key: MaskClassId) -> Result<Option<EscapePolicy>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.unconstrained_string(inner))
    }

    fn json_string_state(&self, key: MaskClassId) -> Result<Option<JsonStringState>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.json_string_state(inner))
    }

    fn alternative_string_states(
        &self,
        key: MaskClassId,
    ) -> Result<Option<AlternativeStrings>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.alternative_string_states(inner))
    }

    fn with_string_state(&self, key: MaskClassId, state: StateId) -> Result<MaskClassId, Error> {
        let Some(inner) = self.inner(key) else { return Ok(key) };
        self.steps.with_string_state(inner, state).map(|other| self.outer(other))
    }

    fn closing_literals(
        &self,
        key: MaskClassId,
        reference: Option<MaskClassId>,
    ) -> Result<Option<LiteralList>, Error> {
        let inner = reference.map(|reference| self.inner(reference));
        match (self.inner(key), inner) {
            (Some(key), None) => self.steps.closing_literals(key, None),
            (Some(key), Some(Some(reference))) => self.steps.closing_literals(key, Some(reference)),
            _ => Ok(None),
        }
    }
}

impl<S: MaskAutomaton> ValueClasses for PrefixedMaskAutomaton<'_, S> {}
