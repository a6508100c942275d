//! States of the language joined with places of the marked text, where texts have come to.
//!
//! What is looked at beyond them is numbered elsewhere ([`super::search`]), and forgotten.

use formalm_automata::{Error, Keys, Machine, StateId};
use formalm_vocabulary::bpe::SplitterState;
use rustc_hash::FxHashMap;

/// Where a text has come to, by number.
pub(crate) type Position = u32;

/// The positions that texts have come to.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    ids: FxHashMap<(u32, SplitterState), Position>,
    list: Vec<(StateId, SplitterState)>,
    /// Of a machine with a stack the state that serves for all of a key.
    common: FxHashMap<u32, StateId>,
}

impl Positions {
    /// The number of a state with a place.
    pub(crate) fn intern(&mut self, state: StateId, place: SplitterState) -> Position {
        let next = self.list.len() as Position;
        let position = *self.ids.entry((state.number(), place)).or_insert(next);
        if position == next {
            self.list.push((state, place));
        }
        position
    }

    /// The state and the place of a position.
    #[inline]
    pub(crate) fn parts(&self, position: Position) -> (StateId, SplitterState) {
        self.list[position as usize]
    }

    /// The position that serves for one in all questions of what may follow. Of a machine with a
    /// stack it has the first state that had the same key: no token tells the two apart, and what
    /// was read can make a state of every text.
    pub(crate) fn common(
        &mut self,
        keys: &impl Keys,
        position: Position,
    ) -> Result<Position, Error> {
        if keys.machine().is_finite() {
            return Ok(position);
        }
        let (state, place) = self.parts(position);
        let key = keys.lasting_key(state)?;
        let state = *self.common.entry(key.number()).or_insert(state);
        Ok(self.intern(state, place))
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        8 * self.list.capacity() + 17 * self.ids.capacity() + 9 * self.common.capacity()
    }
}
