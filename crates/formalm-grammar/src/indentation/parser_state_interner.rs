//! Interned places of a text with lines: equal places have equal numbers.

use rustc_hash::FxHashMap;

use crate::interner::{Lists, NOTHING};

/// A place between lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    pub(crate) stacks: u32,
    /// How many brackets are open.
    pub(crate) depth: u32,
    /// Columns of the open levels, as a number of [`Places::levels`].
    pub(crate) levels: u32,
}

/// Places by number; 0 is none.
#[derive(Debug)]
pub(crate) struct Places {
    spots: Vec<Spot>,
    ids: FxHashMap<Spot, u32>,
    /// Lists of columns, the innermost level last; kept, as there are few.
    levels: Lists,
}

impl Default for Places {
    fn default() -> Places {
        let none = Spot { stacks: NOTHING, depth: 0, levels: NOTHING };
        Places { spots: vec![none], ids: FxHashMap::default(), levels: Lists::default() }
    }
}

impl Places {
    /// The number of a place; [`NOTHING`] without stacks.
    pub(crate) fn number(&mut self, spot: Spot) -> u32 {
        if spot.stacks == NOTHING {
            return NOTHING;
        }
        let spots = &mut self.spots;
        *self.ids.entry(spot).or_insert_with(|| {
            spots.push(spot);
            spots.len() as u32 - 1
        })
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Spot {
        self.spots[place as usize]
    }

    /// The columns of the open levels of a place.
    pub(crate) fn levels(&self, place: u32) -> &[u32] {
        self.levels.get(self.get(place).levels)
    }

    /// Columns by their number.
    pub(crate) fn list(&self, levels: u32) -> &[u32] {
        self.levels.get(levels)
    }

    /// The number of some columns.
    pub(crate) fn levels_number(&mut self, columns: &[u32]) -> u32 {
        self.levels.intern(columns)
    }

    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    /// Forgets places from number `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        for spot in self.spots.drain(len..) {
            self.ids.remove(&spot);
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.spots.len() * 40 + self.levels.memory_bytes()
    }
}
