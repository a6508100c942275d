//! Places as far as they can be seen from their tops: many places look alike, and what may follow
//! is nearly always the same for all of them.

use crate::interner::NOTHING;
use crate::state::Core;

impl Core {
    /// The number of what can be seen of a place down to a depth of its stacks, kept for good;
    /// `None` if that is too much.
    pub(crate) fn outline(&mut self, place: u32, depth: u32) -> Option<u32> {
        let mut list = Vec::with_capacity(4 * depth as usize + 8);
        let drawn = match &self.layout {
            None => true,
            Some(layout) => layout.outline(place, depth, &mut list),
        };
        let stacks = self.stacks_of(place);
        let drawn = drawn && self.stacks.outline(stacks, depth, &mut list);
        drawn.then(|| self.outlines.intern(&list))
    }

    /// A place of which nothing is there but an outline. What needs more fails with
    /// [`formalm_automata::BEYOND`].
    pub(crate) fn drawn(&mut self, outline: u32) -> u32 {
        let list = self.outlines.copy(outline);
        let Some(layout) = &mut self.layout else { return self.stacks.drawn(&list, outline) };
        let (front, rest) = layout.taken_apart(&list);
        match self.stacks.drawn(rest, outline) {
            NOTHING => NOTHING,
            stacks => layout.drawn(stacks, front),
        }
    }
}
