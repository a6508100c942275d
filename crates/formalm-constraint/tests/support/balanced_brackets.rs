//! A machine in under 60 lines, which the tests of constraints and of the binding share.

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, LazyDfa, ReadingHints, Renewal,
    ScratchCopies, StateId,
};

/// Strings of balanced brackets. A state is the number of open ones.
#[derive(Debug)]
pub struct BalancedBrackets;

impl LazyDfa for BalancedBrackets {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        Ok(match byte {
            b'(' => state.number().checked_add(1),
            b')' => state.number().checked_sub(1),
            _ => None,
        }
        .map(StateId::from_number))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(state.number() == 0)
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        let mut bytes = ByteSet::default();
        bytes.insert(b'(');
        if state.number() > 0 {
            bytes.insert(b')');
        }
        Ok(bytes)
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        Ok(vec![b')'; state.number() as usize])
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

impl ReadingHints for BalancedBrackets {
    fn is_finite(&self) -> bool {
        false
    }
}

impl CompletionHints for BalancedBrackets {}
impl CompletionClasses for BalancedBrackets {}
impl ScratchCopies for BalancedBrackets {}
impl Renewal for BalancedBrackets {}
