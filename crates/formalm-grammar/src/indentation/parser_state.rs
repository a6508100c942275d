//! Parser states with indentation: stacks, bracket depth, and the columns of the open levels.
//!
//! The end of a line is a lexeme that ends at a column, and each column has a terminal id of its
//! own. At its end, the open levels determine which indent and dedent terminals follow. They are
//! shifted at once, so the stacks see an ordinary sequence of terminals.

use formalm_core::{Interner, ListInterner, memory_bytes};

use crate::NOTHING;
use crate::indentation::line_terminals::LineTerminals;
use crate::indentation::min_bytes::SuffixBounds;
use crate::indentation::widths;

/// The bracket depth between lines, as before the first line and, with Python's rules, after the
/// end of each line. A further line end is ignored there.
const BETWEEN_LINES: u32 = u32::MAX;

/// As [`BETWEEN_LINES`], after a backslash joined the previous line: the input cannot end here.
pub(crate) const JOINED_LINE: u32 = u32::MAX - 1;

/// In place of the column of a level that a prefix cuts off.
pub(crate) const OUT_OF_SIGHT: u32 = u32::MAX;

/// Levels that a prefix shows where lines matter. Chosen, not measured.
const VISIBLE_LEVELS: usize = 2;
/// Stack depth from which on a prefix shows levels. Few tokens end a line, so that it rarely matters
/// which levels are open.
const LEVELS_DEPTH: u32 = 4;

/// The indentation tables of a grammar.
#[derive(Debug)]
pub(crate) struct IndentationState {
    pub(crate) lines: LineTerminals,
    /// The interned parser states.
    pub(crate) parser_states: ParserStates,
    /// Maximum number of further levels that completing any stack takes; `None` if it is not proven
    /// that levels, lines and brackets are balanced.
    pub(crate) needed_levels: Option<u32>,
    /// Symbols whose nonempty strings all end with a line end.
    pub(crate) ends_lines: Vec<bool>,
    /// Minimum completion bytes of stack suffixes inside levels.
    pub(crate) suffix_bounds: SuffixBounds,
}

memory_bytes!(IndentationState { parser_states, suffix_bounds; lines, needed_levels, ends_lines });

/// The components of a parser state.
pub(crate) struct ParserStateParts {
    pub(crate) stacks: u32,
    pub(crate) depth: u32,
    pub(crate) levels: Vec<u32>,
}

impl IndentationState {
    pub(crate) fn new(lines: &LineTerminals) -> IndentationState {
        IndentationState {
            lines: lines.clone(),
            parser_states: ParserStates::default(),
            needed_levels: None,
            ends_lines: Vec::new(),
            suffix_bounds: SuffixBounds::default(),
        }
    }

    /// Returns the bracket depth at the start of a line.
    pub(crate) fn depth_at_line_start(&self) -> u32 {
        if self.lines.is_python() { BETWEEN_LINES } else { 0 }
    }

    pub(crate) fn parts(&self, parser_state: u32) -> ParserStateParts {
        let ParserStateKey { stacks, depth, .. } = self.parser_states.get(parser_state);
        ParserStateParts { stacks, depth, levels: self.parser_states.levels(parser_state).to_vec() }
    }

    pub(crate) fn intern_parts(&mut self, parts: &ParserStateParts) -> u32 {
        let levels = self.parser_states.intern_levels(&parts.levels);
        self.parser_states.number(ParserStateKey {
            stacks: parts.stacks,
            depth: parts.depth,
            levels,
        })
    }

    /// Returns the terminals that a line end stands for, given the parser states before and after
    /// it; `None` for other lexemes.
    pub(crate) fn terminals_between(
        &self,
        terminal: u32,
        before: u32,
        after: u32,
    ) -> Option<Vec<u32>> {
        if self.lines.column(terminal).is_none() {
            return (terminal == self.lines.newline).then(Vec::new);
        }
        let (before, after) = (self.parts(before), self.parts(after));
        let (old, new) = (before.levels.len(), after.levels.len());
        let mut terminals =
            if is_closed(before.depth) { Vec::new() } else { vec![self.lines.newline] };
        terminals.extend(std::iter::repeat_n(self.lines.indent, new.saturating_sub(old)));
        terminals.extend(std::iter::repeat_n(self.lines.dedent, old.saturating_sub(new)));
        Some(terminals)
    }

    /// Appends the bracket depth and the levels of a parser state, as far as they matter down to a
    /// stack depth. Returns `false` if a limit is near.
    pub(crate) fn push_prefix(&self, parser_state: u32, depth: u32, list: &mut Vec<u32>) -> bool {
        let (brackets, levels) =
            (self.parser_states.get(parser_state).depth, self.parser_states.levels(parser_state));
        if !self.fits_limits(parser_state) {
            return false;
        }
        if self.is_in_brackets(parser_state) {
            // Each open bracket has a state of its own, and lines matter after the last one.
            list.extend([1, brackets.min(depth + 1), OUT_OF_SIGHT]);
            return true;
        }
        if depth < LEVELS_DEPTH {
            list.extend([1, brackets, OUT_OF_SIGHT]);
            return true;
        }
        list.extend([levels.len() as u32, brackets]);
        let hidden = levels.len().saturating_sub(VISIBLE_LEVELS);
        list.extend(std::iter::repeat_n(OUT_OF_SIGHT, hidden));
        list.extend_from_slice(&levels[hidden..]);
        true
    }

    /// Splits a prefix into its indentation and its stacks.
    pub(crate) fn split_prefix<'a>(&self, push_prefix: &'a [u32]) -> (&'a [u32], &'a [u32]) {
        push_prefix.split_at(push_prefix[0] as usize + 2)
    }

    /// Returns the parser state with these stacks and an encoded indentation.
    pub(crate) fn state_of_prefix(&mut self, stacks: u32, front: &[u32]) -> u32 {
        self.intern_parts(&ParserStateParts {
            stacks,
            depth: front[1],
            levels: front[2..].to_vec(),
        })
    }

    pub(crate) fn is_in_brackets(&self, parser_state: u32) -> bool {
        !matches!(self.parser_states.get(parser_state).depth, 0 | BETWEEN_LINES | JOINED_LINE)
    }

    /// Returns `true` if all levels that completing a parser state may take fit the limits.
    pub(crate) fn fits_limits(&self, parser_state: u32) -> bool {
        let Some(needed_levels) = self.needed_levels else { return false };
        let levels = self.parser_states.levels(parser_state);
        let top = match levels.last() {
            // Hidden levels were checked before, and no level starts unseen.
            None | Some(&OUT_OF_SIGHT) => 0,
            Some(&top) => widths(top).0,
        };
        levels.len() as u32 + needed_levels <= self.lines.max_levels
            && top + needed_levels <= self.lines.columns.widest
    }
}

/// Returns `true` if no line is open at a bracket depth.
pub(crate) fn is_closed(depth: u32) -> bool {
    depth == BETWEEN_LINES || depth == JOINED_LINE
}

/// Returns `true` if the line at a bracket depth is joined to the previous one.
pub(crate) fn is_joined(depth: u32) -> bool {
    depth == JOINED_LINE
}

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
    keys: Interner<ParserStateKey>,
    /// Interned lists of columns, innermost level last. They are few and never dropped.
    levels: ListInterner,
}

impl Default for ParserStates {
    fn default() -> ParserStates {
        let none = ParserStateKey { stacks: NOTHING, depth: 0, levels: NOTHING };
        ParserStates { keys: Interner::from_iter([none]), levels: ListInterner::default() }
    }
}

impl ParserStates {
    /// Interns a parser state; [`NOTHING`] without stacks.
    pub(crate) fn number(&mut self, key: ParserStateKey) -> u32 {
        if key.stacks == NOTHING {
            return NOTHING;
        }
        self.keys.intern(key)
    }

    #[inline]
    pub(crate) fn get(&self, parser_state: u32) -> ParserStateKey {
        self.keys[parser_state]
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
        self.keys.truncate(len);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.len() * 28 + self.levels.memory_bytes()
    }
}
