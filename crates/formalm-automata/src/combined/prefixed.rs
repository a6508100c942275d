//! A fixed prefix before every member of a machine's language.
//!
//! ```text
//!  states:  0 ─p₀─► 1 ─p₁─► … ─► len (prefix read) ─► machine states, shifted by len + 1
//! ```
//!
//! Unlike concatenation of languages, this works with every kind of machine.

use std::sync::Arc;

use crate::automaton::StateId;
use crate::automaton::{KeyId, Repetition};
use crate::byte_set::ByteSet;
use crate::combined::{Lookahead, Plainly};
use crate::error::Error;
use crate::json_string_state::InText;
use crate::machine::NoLexemes;
use crate::machine::{EndPurpose, Keys, Machine, Purpose};
use crate::machine::{Steps, Texts};
use crate::spelling::Escapes;

/// The prefix of every member.
#[derive(Clone, Debug)]
pub struct Front {
    /// The bytes of the prefix.
    pub text: Vec<u8>,
    /// `true` if the empty member has no prefix.
    pub unless_empty: bool,
    /// A byte that no member may begin with.
    pub refused: Option<u8>,
}

/// A machine whose members have a prefix.
#[derive(Debug)]
pub struct Prefixed<M> {
    front: Front,
    rest: Arc<M>,
}

impl<M: Machine> Prefixed<M> {
    /// Creates the machine.
    pub fn new(front: Front, rest: Arc<M>) -> Prefixed<M> {
        Prefixed { front, rest }
    }

    /// Returns the machine after the prefix.
    pub fn rest(&self) -> &Arc<M> {
        &self.rest
    }

    /// Returns the prefix.
    pub fn front(&self) -> &Front {
        &self.front
    }
}

impl Front {
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
                .filter(|&byte| Some(byte) != self.refused)
                .for_each(|byte| set.insert(byte)),
        }
        set
    }
}

impl<M: Machine> Machine for Prefixed<M> {
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
            None if front.refused == Some(byte) => return Ok(None),
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

    fn is_finite(&self) -> bool {
        self.rest.is_finite()
    }

    fn is_exact(&self) -> bool {
        self.rest.is_exact()
    }

    fn ahead(&self) -> Option<Prefixed<M>> {
        Some(Prefixed::new(self.front.clone(), Arc::new(self.rest.ahead()?)))
    }

    fn enter(&self, state: StateId) -> Result<StateId, Error> {
        let Some(inner) = self.front.inner(state.number()) else { return Ok(state) };
        let inner = self.rest.enter(StateId::from_number(inner))?;
        Ok(StateId::from_number(self.front.outer(inner.number())))
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        match self.front.inner(state.number()) {
            Some(inner) => self.rest.shortest(StateId::from_number(inner)),
            None if self.is_accepting(state)? => Ok(Vec::new()),
            None => {
                let rest = self.rest.shortest(self.rest.start())?;
                Ok([self.front.left(state.number()), &rest].concat())
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.front.text.len() + self.rest.memory_bytes()
    }

    fn is_abandoned(&self) -> bool {
        self.rest.is_abandoned()
    }

    fn renewed(&self) -> Result<Option<Prefixed<M>>, Error> {
        let rest = self.rest.renewed()?;
        Ok(rest.map(|rest| Prefixed::new(self.front.clone(), Arc::new(rest))))
    }
}

/// The mask classes of a machine with a prefix.
#[derive(Debug)]
pub struct PrefixedKeys<K: Keys> {
    machine: Arc<Prefixed<K::Machine>>,
    keys: K,
    ahead: Lookahead<Prefixed<K::Machine>>,
}

impl<K: Keys> PrefixedKeys<K> {
    /// Creates the classes of `machine` from those of its inner machine.
    pub fn new(machine: Arc<Prefixed<K::Machine>>, keys: K) -> PrefixedKeys<K> {
        PrefixedKeys { machine, keys, ahead: Lookahead::default() }
    }

    fn front(&self) -> &Front {
        &self.machine.front
    }

    /// Returns the class of a state by that of the inner machine.
    fn map_inner_class(
        &self,
        state: StateId,
        key: impl FnOnce(StateId) -> Result<KeyId, Error>,
    ) -> Result<KeyId, Error> {
        Ok(KeyId::from_number(match self.front().inner(state.number()) {
            Some(inner) => self.front().outer(key(StateId::from_number(inner))?.number()),
            None => state.number(),
        }))
    }
}

impl<K: Keys> Keys for PrefixedKeys<K> {
    type Machine = Prefixed<K::Machine>;

    fn machine(&self) -> &Arc<Self::Machine> {
        &self.machine
    }

    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        self.map_inner_class(state, |state| self.keys.key(state))
    }

    fn lasting_key(&self, state: StateId) -> Result<KeyId, Error> {
        self.map_inner_class(state, |state| self.keys.lasting_key(state))
    }

    fn known_key(&self, state: StateId) -> Option<KeyId> {
        let Some(inner) = self.front().inner(state.number()) else {
            return Some(KeyId::from_number(state.number()));
        };
        let known = self.keys.known_key(StateId::from_number(inner))?;
        Some(KeyId::from_number(self.front().outer(known.number())))
    }

    fn is_unsure(&self, state: StateId) -> bool {
        let inner = self.front().inner(state.number()).map(StateId::from_number);
        inner.is_some_and(|inner| self.keys.is_unsure(inner))
    }

    fn forgets_items(&self) -> bool {
        self.keys.forgets_items()
    }

    fn over(&self, ahead: &Arc<Prefixed<K::Machine>>) -> Option<PrefixedKeys<K>> {
        Some(PrefixedKeys::new(Arc::clone(ahead), self.keys.over(ahead.rest())?))
    }

    fn read_ends<P: EndPurpose>(&self, state: StateId, purpose: P) -> Result<P::Result, Error> {
        let key = KeyId::from_number(state.number());
        Ok(match self.ahead.of(&self.machine) {
            Some(ahead) => purpose.read(&ahead.steps(), key),
            None => purpose.read(&Plainly::new(&*self.machine), key),
        })
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        let start = self.keys.key(self.machine.rest.start());
        self.keys.read(PrefixedVisitor { purpose, front: self.front(), start })
    }

    fn mask_bytes(&self) -> usize {
        self.keys.mask_bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.ahead.memory_bytes()
    }
}

/// A visitor of the inner classes, with the prefix.
struct PrefixedVisitor<'a, P> {
    purpose: P,
    front: &'a Front,
    start: Result<KeyId, Error>,
}

impl<P: Purpose> Purpose for PrefixedVisitor<'_, P> {
    type Result = P::Result;

    fn read(self, steps: &impl Steps) -> P::Result {
        self.purpose.read(&PrefixedMaskAutomaton { steps, front: self.front, start: self.start })
    }
}

struct PrefixedMaskAutomaton<'a, S> {
    steps: &'a S,
    front: &'a Front,
    /// The first class of the inner machine.
    start: Result<KeyId, Error>,
}

impl<S> PrefixedMaskAutomaton<'_, S> {
    /// Returns the class in the inner machine.
    fn inner(&self, key: KeyId) -> Option<KeyId> {
        self.front.inner(key.number()).map(KeyId::from_number)
    }

    fn outer(&self, key: KeyId) -> KeyId {
        KeyId::from_number(self.front.outer(key.number()))
    }
}

impl<S: Steps> Steps for PrefixedMaskAutomaton<'_, S> {
    type Lexemes = NoLexemes;

    const KNOWS_FEW: bool = S::KNOWS_FEW;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let (front, number) = (self.front, key.number());
        if !front.left(number).is_empty() {
            return Ok(front.step(number, byte).map(KeyId::from_number));
        }
        let from = match front.inner(number) {
            Some(inner) => KeyId::from_number(inner),
            None if front.refused == Some(byte) => return Ok(None),
            None => self.start.clone()?,
        };
        let next = self.steps.step(from, byte)?;
        Ok(next.map(|next| KeyId::from_number(front.outer(next.number()))))
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        match self.front.inner(key.number()) {
            Some(inner) => self.steps.live_bytes(KeyId::from_number(inner)),
            None => {
                let start = self.steps.live_bytes(self.start.clone()?)?;
                Ok(self.front.live(key.number(), start))
            }
        }
    }

    fn mask(&self, key: KeyId) -> Result<Option<Vec<u32>>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.mask(inner))
    }

    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        let Some(inner) = self.inner(key) else { return Ok(None) };
        let repetition = self.steps.repetition(inner)?;
        Ok(repetition.map(|one| {
            let exit = one.exit.map(|exit| self.outer(exit));
            Repetition { exit, ..one }
        }))
    }

    fn few(&self, key: KeyId) -> Result<Option<ByteSet>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.few(inner))
    }

    fn any_digits(&self, key: KeyId) -> Result<bool, Error> {
        self.inner(key).map_or(Ok(false), |inner| self.steps.any_digits(inner))
    }

    fn reference(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let Some(inner) = self.inner(key) else { return Ok(None) };
        Ok(self.steps.reference(inner)?.map(|reference| self.outer(reference)))
    }

    fn in_open_string(&self, key: KeyId) -> Result<Option<Escapes>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.in_open_string(inner))
    }

    fn in_text(&self, key: KeyId) -> Result<Option<InText>, Error> {
        self.inner(key).map_or(Ok(None), |inner| self.steps.in_text(inner))
    }

    fn in_text_at(&self, key: KeyId, state: StateId) -> Result<KeyId, Error> {
        let Some(inner) = self.inner(key) else { return Ok(key) };
        self.steps.in_text_at(inner, state).map(|other| self.outer(other))
    }

    fn texts(&self, key: KeyId, reference: Option<KeyId>) -> Result<Option<Texts>, Error> {
        let inner = reference.map(|reference| self.inner(reference));
        match (self.inner(key), inner) {
            (Some(key), None) => self.steps.texts(key, None),
            (Some(key), Some(Some(reference))) => self.steps.texts(key, Some(reference)),
            _ => Ok(None),
        }
    }

    fn differing(&self, first: KeyId, second: KeyId) -> Result<Option<ByteSet>, Error> {
        match (self.inner(first), self.inner(second)) {
            (Some(first), Some(second)) => self.steps.differing(first, second),
            _ => Ok(None),
        }
    }
}
