//! States as keys, read ahead of the text for masks.
//!
//! What they forget is told in [`crate::machine::mask_class::abstraction`].

pub(crate) mod abstraction;
pub(crate) mod continuation;
pub(crate) mod isolated_value;
pub(crate) mod item_spanning_tokens;
pub(crate) mod lookahead;
pub(crate) mod name_continuation;
pub(crate) mod string_hints;
pub(crate) mod string_lengths;
pub(crate) mod string_states;
pub(crate) mod unique_item_cells;

use std::sync::Arc;

use formalm_automata::{
    Chunks, EndPurpose, Error, KeyId, Keys, Machine, Purpose, StateId, TokenNames,
};

use crate::formula::TRUE;
use crate::machine::frame::{AskedId, Place};
use crate::machine::mask_class::lookahead::Ahead;
use crate::machine::{Grown, SchemaAutomaton};

/// Marks states whose keys forgot something that a few tokens can tell.
const UNSURE: u32 = 1 << 31;

/// The states of a schema's machine as keys.
#[derive(Debug)]
pub struct SchemaKeys {
    automaton: Arc<SchemaAutomaton>,
    horizon: usize,
    names: Arc<TokenNames>,
    /// Key of each state and one, where known.
    keys: Chunks,
    /// The same of keys that last.
    lasting: Chunks,
}

impl SchemaKeys {
    /// Keys of a machine for tokens of at most `horizon` bytes that have so much of names. Names are
    /// told apart by their texts, where these matter to nothing else, only if a token may end one
    /// and begin the next.
    pub fn new(
        automaton: Arc<SchemaAutomaton>,
        horizon: usize,
        names: Arc<TokenNames>,
    ) -> SchemaKeys {
        {
            let grown = &mut automaton.lock();
            grown.tells_names |= names.joins();
            let is_longer = horizon > grown.horizon;
            if grown.outlooks.add(Arc::clone(&names)) || is_longer {
                grown.horizon = grown.horizon.max(horizon);
                grown.lengths.clear();
                grown.outlooks.clear();
            }
        }
        let (keys, lasting) = (Chunks::default(), Chunks::default());
        SchemaKeys { automaton, horizon, names, keys, lasting }
    }
}

impl Keys for SchemaKeys {
    type Machine = SchemaAutomaton;

    fn machine(&self) -> &Arc<SchemaAutomaton> {
        &self.automaton
    }

    #[inline]
    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        match self.keys.get(state.number() as usize) {
            0 => {
                let grown = &mut self.automaton.lock();
                let place = grown.key_of(state.number())?;
                let forgets = place.record != grown.states.get(state.number()).record;
                let place = grown.in_common(place);
                let key = grown.keys.intern(place);
                let unsure = if forgets { UNSURE } else { 0 };
                self.keys.set(state.number() as usize, (key + 1) | unsure);
                Ok(KeyId::from_number(key))
            }
            key => Ok(KeyId::from_number((key & !UNSURE) - 1)),
        }
    }

    fn lasting_key(&self, state: StateId) -> Result<KeyId, Error> {
        match self.lasting.get(state.number() as usize) {
            0 => {
                let grown = &mut self.automaton.lock();
                let place = grown.key_of(state.number())?;
                let key = grown.keys.intern(place);
                self.lasting.set(state.number() as usize, key + 1);
                Ok(KeyId::from_number(key))
            }
            key => Ok(KeyId::from_number(key - 1)),
        }
    }

    #[inline]
    fn known_key(&self, state: StateId) -> Option<KeyId> {
        let key = self.keys.get(state.number() as usize) & !UNSURE;
        key.checked_sub(1).map(KeyId::from_number)
    }

    #[inline]
    fn is_unsure(&self, state: StateId) -> bool {
        self.keys.get(state.number() as usize) & UNSURE != 0
    }

    fn may_tell(&self, state: StateId, token: &[u8]) -> Result<bool, Error> {
        self.automaton.lock().may_tell(state.number(), token)
    }

    fn forgets_items(&self) -> bool {
        self.automaton.has_distinct
    }

    fn over(&self, ahead: &Arc<SchemaAutomaton>) -> Option<SchemaKeys> {
        let automaton = Arc::clone(ahead);
        let (horizon, names) = (self.horizon, Arc::clone(&self.names));
        let (keys, lasting) = (Chunks::default(), Chunks::default());
        Some(SchemaKeys { automaton, horizon, names, keys, lasting })
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        purpose.read(&Ahead::new(self.automaton.lock()))
    }

    fn read_ends<P: EndPurpose>(&self, state: StateId, purpose: P) -> Result<P::Result, Error> {
        let key = self.key(state)?;
        Ok(purpose.read(&Ahead::new(self.automaton.lock()), key))
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.lasting.memory_bytes()
    }

    fn renewed(&self) -> Result<Option<SchemaKeys>, Error> {
        let new = |one| SchemaKeys::new(Arc::new(one), self.horizon, Arc::clone(&self.names));
        Ok(self.automaton.renewed()?.map(new))
    }
}

impl Grown {
    /// The place of a state with everything forgotten that no token can tell within its value.
    fn key_of(&mut self, state: u32) -> Result<Place, Error> {
        let place = *self.states.get(state);
        let place = Place { frame: self.freed(place.frame)?, ..place };
        self.normal(place)
    }

    /// Whether names of all kinds are one class that may come.
    pub(crate) fn takes_any(&self, classes: AskedId) -> bool {
        let [Some((class, _))] = *self.parts.asked.get(classes.0).machines else { return false };
        self.core.class_formula(class) == TRUE
    }

    /// Whether only names that are known may still come.
    pub(crate) fn takes_none(&self, classes: AskedId) -> bool {
        self.parts.asked.get(classes.0).going_on().iter().all(Option::is_none)
    }

    /// Whether a name of which that is so may end here.
    pub(crate) fn ends_any(&self, classes: AskedId) -> bool {
        let [Some((class, state))] = *self.parts.asked.get(classes.0).machines else {
            return false;
        };
        self.takes_any(classes) && self.core.text(class).is_accepting(state)
    }
}
