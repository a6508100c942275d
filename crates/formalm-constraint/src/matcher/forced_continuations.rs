//! The bytes and tokens that must follow a position, because nothing else may.

use formalm_core::{Error, InterruptCheck, LazyDfa};
use formalm_machines::{MaskClasses, len_outside_special};

use crate::mask::MaskWords;
use crate::matcher::{Matcher, STEPS_OF_A_STATE};

/// Interrupt-check steps that computing a new mask counts as. Chosen, not measured.
const STEPS_OF_A_MASK: usize = 1 << 14;

impl<K: MaskClasses> Matcher<K> {
    /// Returns the bytes with which every string in the language continues here.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn forced_bytes(&self, poll: &mut InterruptCheck<'_>) -> Result<Vec<u8>, Error> {
        self.answer(|one| one.forced_bytes_here(poll))
    }

    fn forced_bytes_here(&self, poll: &mut InterruptCheck<'_>) -> Result<Vec<u8>, Error> {
        let mut forced = Vec::new();
        if self.ended {
            return Ok(forced);
        }
        let state = self.epoch.state(self.position());
        let ahead = self.epoch.ahead();
        let (machine, mut state) = match &ahead {
            Some(ahead) => (&ahead.machine, ahead.import_state(state)?),
            None => (self.epoch.machine(), state),
        };
        // Every state is live, so a chain of single choices ends at an accepting state.
        while !machine.is_accepting(state)? {
            let live = machine.live_bytes(state)?;
            let (Some(byte), 1) = (live.iter().next(), live.len()) else { break };
            let Some(next) = machine.step(state, byte)? else { break };
            forced.push(byte);
            state = next;
            poll.tick(STEPS_OF_A_STATE)?;
        }
        if self.epoch.vocabulary().has_special_bytes() {
            forced.truncate(len_outside_special(&forced));
        }
        Ok(forced)
    }

    /// Returns the tokens that must follow because each is the only one allowed.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn forced_tokens(&self, poll: &mut InterruptCheck<'_>) -> Result<Vec<u32>, Error> {
        let mut ahead = self.clone();
        let mut words = vec![0; self.epoch.words()];
        let mut forced = Vec::new();
        while !ahead.ended && !ahead.is_accepting()? {
            ahead.fill(&mut words)?;
            let Some(only) = only_bit(&words) else { break };
            if ahead.advance(only).is_err() {
                break;
            }
            forced.push(only);
            poll.tick(STEPS_OF_A_MASK)?;
        }
        Ok(forced)
    }
}

/// Returns the index of the only set bit.
fn only_bit(words: &MaskWords) -> Option<u32> {
    let mut only = None;
    for (at, &word) in words.iter().enumerate() {
        if word != 0 {
            if only.is_some() || !word.is_power_of_two() {
                return None;
            }
            only = Some(at as u32 * 32 + word.trailing_zeros());
        }
    }
    only
}
