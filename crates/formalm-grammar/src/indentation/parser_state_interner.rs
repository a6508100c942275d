//! The interner of parser states with indentation: equal states have equal ids.

use rustc_hash::FxHashMap;

use crate::interner::{ListInterner, NOTHING};

/// A parser state between lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ParserStateKey {
    pub(crate) stacks: u32,
    /// Number of open brackets, or a marker for the start of a line.
    pub(crate) depth: u32,
    /// Columns of the open levels, as an id of [`ParserStates::levels`].
    pub(crate) levels: u32,
}

/// Interned parser states; id 0 is none.
#[derive(Debug)]
pub(crate) struct ParserStates {
    keys: Vec<ParserStateKey>,
    ids: FxHashMap<ParserStateKey, u32>,
    /// Interned lists of columns, innermost level last. They are few and never dropped.
    levels: ListInterner,
}

impl Default for ParserStates {
    fn default() -> ParserStates {
        let none = ParserStateKey { stacks: NOTHING, depth: 0, levels: NOTHING };
        ParserStates {
            keys: vec![none],
            ids: FxHashMap::default(),
            levels: ListInterner::default(),
        }
    }
}

impl ParserStates {
    /// Interns a parser state; [`NOTHING`] without stacks.
    pub(crate) fn number(&mut self, key: ParserStateKey) -> u32 {
        if key.stacks == NOTHING {
            return NOTHING;
        }
        let keys = &mut self.keys;
        *self.ids.entry(key).or_insert_with(|| {
            keys.push(key);
            keys.len() as u32 - 1
        })
    }

    #[inline]
    pub(crate) fn get(&self, parser_state: u32) -> ParserStateKey {
        self.keys[parser_state as usize]
    }

    /// Returns the columns of the open levels of a parser state.
    pub(crate) fn levels(&self, parser_state: u32) -> &[u32] {
        self.levels.get(self.get(parser_state).levels)
    }

    /// Returns a list of columns.
    pub(crate) fn levels_by_id(&self, levels: u32) -> &[u32] {
        self.levels.get(levels)
    }

    /// Interns a list of columns.
    pub(crate) fn intern_levels(&mut self, columns: &[u32]) -> u32 {
        self.levels.intern(columns)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Drops parser states with ids from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        for key in self.keys.drain(len..) {
            self.ids.remove(&key);
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.len() * 40 + self.levels.memory_bytes()
    }
}
