//! A handle to an automaton that is asked only about whole strings, so that a child of a fork can
//! replace it.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use formalm_core::Renewal;

use crate::automaton::Automaton;

/// An automaton that is rebuilt in a child of a fork if it was being changed there.
#[derive(Debug)]
pub(crate) struct ForkSafeAutomaton {
    original: Arc<Automaton>,
    replacement: AtomicPtr<Automaton>,
}

impl ForkSafeAutomaton {
    pub(crate) fn new(given: Arc<Automaton>) -> ForkSafeAutomaton {
        ForkSafeAutomaton { original: given, replacement: AtomicPtr::default() }
    }

    /// Returns the automaton for one query; its states are meaningless in the next.
    pub(crate) fn get(&self) -> &Automaton {
        let known = self.replacement.load(Ordering::Acquire);
        // SAFETY: what was published is freed no earlier than this value.
        let machine = unsafe { known.as_ref() }.unwrap_or(&self.original);
        if !machine.is_abandoned() {
            return machine;
        }
        // The automaton was built before with the same limits.
        let Ok(Some(made)) = machine.fresh_copy() else { return machine };
        let made = Box::into_raw(Box::new(made));
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        match self.replacement.compare_exchange(known, made, done, failed) {
            // SAFETY: as above. What was there before is leaked.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: nobody else knows it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as above.
                unsafe { &*other }
            }
        }
    }
}

impl Drop for ForkSafeAutomaton {
    fn drop(&mut self) {
        let instead = *self.replacement.get_mut();
        if !instead.is_null() {
            // SAFETY: it comes from a box, and nobody else has it.
            drop(unsafe { Box::from_raw(instead) });
        }
    }
}
