//! What the certificate says of stacks.
//!
//! A place is *settled* if a member continues it behind a separator, whatever was read before (but
//! see [`Core::fits`]), and if every lexeme that may stand there leads to such a place. Sound stacks are, but for what
//! fragile terminals lead to, which is looked at here.

use formalm_automata::Error;

use crate::interner::NOTHING;
use crate::lr0::members;
use crate::state::Core;

/// Terminals in a row that are looked at.
const DEPTH: usize = 4;

impl Core {
    /// Whether the stacks of a place are settled, and limits of indentation do not matter.
    pub(crate) fn is_settled_at(&mut self, place: u32) -> Result<bool, Error> {
        let stacks = self.stacks_of(place);
        Ok(self.has_room(place) && self.is_settled(stacks)?)
    }

    /// Whether some stacks are settled; `false` may also mean that it was not found out.
    pub(crate) fn is_settled(&mut self, stacks: u32) -> Result<bool, Error> {
        self.settles_within(stacks, DEPTH)
    }

    fn settles_within(&mut self, stacks: u32, depth: usize) -> Result<bool, Error> {
        if self.certificate.fragile().is_empty() || stacks == NOTHING || depth == 0 {
            return Ok(self.certificate.fragile().is_empty() && stacks != NOTHING);
        }
        if let Some(&known) = self.settled.get(&stacks) {
            return Ok(known);
        }
        let sound = !self.stacks.is_fragile(stacks);
        let allowed = self.stacks.allowed(stacks)?;
        let allowed = self.stacks.tables.sets.copy(allowed);
        let fragile = |one: &u32| self.certificate.fragile().binary_search(one).is_ok();
        let doubted: Vec<u32> = members(&allowed)
            .filter_map(|number| number.checked_sub(1))
            .filter(|one| !sound || fragile(one))
            .collect();
        let mut settled = sound || !doubted.is_empty();
        for &terminal in &doubted {
            let next = self.stacks.shift(stacks, terminal)?;
            let good = !self.stacks.is_fragile(next) || self.settles_within(next, depth - 1)?;
            settled &= good;
            if !settled {
                break;
            }
        }
        if settled && !sound {
            settled = self.spells_one(stacks, &doubted)?;
        }
        self.note_settled(stacks, settled);
        Ok(settled)
    }

    /// Whether one of the terminals can be spelled behind a separator where they alone may stand.
    fn spells_one(&mut self, stacks: u32, terminals: &[u32]) -> Result<bool, Error> {
        let context = self.context_on(stacks, self.layout.is_some())?;
        for &terminal in terminals {
            for wanted in [terminal, self.became(terminal)] {
                if self.is_spelled_in(context, wanted)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
