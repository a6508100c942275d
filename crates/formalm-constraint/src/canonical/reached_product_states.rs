//! The product states that inputs have reached, numbered.
//!
//! States that only a lookahead visits are numbered elsewhere ([`super::lookahead_search`]) and
//! dropped.

use formalm_core::{Error, Interner, ReadingHints, StateId, memory_bytes};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::SplitterState;
use rustc_hash::FxHashMap;

use super::{DependentStates, ProductContext};

/// The number of a position.
pub(crate) type TextPosition = u32;

/// The positions that inputs have reached.
#[derive(Debug, Default)]
pub(crate) struct TextPositions {
    list: Interner<(StateId, SplitterState)>,
    /// For machines with a stack, the representative state of each mask class.
    common: FxHashMap<u32, StateId>,
    dependent: DependentStates,
}

memory_bytes!(TextPositions { list, common, dependent });

impl TextPositions {
    /// Returns the number of a language state with a splitter state.
    pub(crate) fn intern<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
        splitter_state: SplitterState,
    ) -> Result<TextPosition, Error> {
        let splitter_state = self.dependent.settle(context, state, splitter_state)?;
        Ok(self.list.intern((state, splitter_state)))
    }

    /// Returns the language state and the splitter state.
    #[inline]
    pub(crate) fn parts(&self, position: TextPosition) -> (StateId, SplitterState) {
        self.list[position]
    }

    /// Returns the representative that answers all queries about what may follow. For a machine
    /// with a stack it has the first state of the same mask class: no token distinguishes the two,
    /// and otherwise every input could create new states.
    pub(crate) fn common<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        position: TextPosition,
    ) -> Result<TextPosition, Error> {
        if context.machine.is_finite() {
            return Ok(position);
        }
        let (state, splitter_state) = self.parts(position);
        let key = context.keys.completion_mask_class(state)?;
        let state = *self.common.entry(key.number()).or_insert(state);
        self.intern(context, state, splitter_state)
    }
}
