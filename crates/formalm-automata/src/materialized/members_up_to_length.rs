//! The finite automaton of the members up to a byte length, for machines with infinitely many
//! states.

use formalm_core::{Error, Machine, StateId, StepBudget, steps_taken};

use super::{DfaSizeLimits, InterruptCheck, MaterializedDfa};

impl MaterializedDfa {
    /// Returns the minimal DFA of the members of at most `most` bytes. Before minimization its
    /// states are pairs of a state and the bytes left; at most `states` of these are allowed.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], or [`Error::Interrupted`].
    pub fn with_max_len(
        machine: &(impl Machine + ?Sized),
        most: usize,
        states: u64,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<MaterializedDfa, Error> {
        let (patience, mut visited) = (StepBudget::new(steps_taken()), 0);
        let successors = |(state, left): (StateId, usize), row: &mut Vec<_>| {
            let Some(left) = left.checked_sub(1) else { return Ok(()) };
            visited += 1;
            patience.check(steps_taken(), visited)?;
            for byte in 0..=255u8 {
                let Some(next) = machine.step(state, byte)? else { continue };
                // States that cannot end in time are trimmed by minimization; this check leaves
                // most of them out.
                if machine.min_bytes_hint(next)? <= left {
                    row.push((u32::from(byte), (next, left)));
                }
            }
            Ok(())
        };
        let accepting = |(state, _)| machine.is_accepting(state);
        let size = DfaSizeLimits { states, edges: u64::MAX };
        MaterializedDfa::explore((machine.start(), most), successors, accepting, size, poll)?
            .minimized(poll)
    }
}
