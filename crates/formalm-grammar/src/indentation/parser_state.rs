//! Parser states with indentation: stacks, bracket depth, and the columns of the open levels.
//!
//! The end of a line is a lexeme that ends at a column, and each column has a terminal id of its
//! own. At its end, the open levels determine which indent and dedent terminals follow. They are
//! shifted at once, so the stacks see an ordinary sequence of terminals.

use formalm_core::Error;
use formalm_machines::NEEDS_DEEPER_STACK;
use rustc_hash::FxHashMap;

use crate::grammar::Grammar;
use crate::grammar_state::{Configuration, GrammarState};
use crate::indentation::{
    BEFORE_LINE_BREAK, ColumnCounter, ColumnRules, FIRST_COLUMN, NO_COLUMN, is_column, may_end_at,
    widths,
};
use crate::list_interner::{ListInterner, NOTHING};
use crate::lr0::elements;

/// The bracket depth between lines, as before the first line and, with Python's rules, after the
/// end of each line. A further line end is ignored there.
const BETWEEN_LINES: u32 = u32::MAX;

/// As [`BETWEEN_LINES`], after a backslash joined the previous line: the input cannot end here.
const JOINED_LINE: u32 = u32::MAX - 1;

/// In place of the column of a level that a prefix cuts off.
pub(crate) const OUT_OF_SIGHT: u32 = u32::MAX;

/// Levels that a prefix shows where lines matter. Chosen, not measured.
const VISIBLE_LEVELS: usize = 2;

/// The indentation tables of a grammar.
#[derive(Debug)]
pub(crate) struct IndentationState {
    pub(crate) newline: u32,
    pub(crate) indent: u32,
    pub(crate) dedent: u32,
    opening: Vec<u32>,
    closing: Vec<u32>,
    pub(crate) columns: ColumnCounter,
    pub(crate) levels: u32,
    /// Terminal id of a line start at the first column; other columns follow.
    first_line_id: u32,
    /// The interned parser states.
    pub(crate) parser_states: ParserStates,
    /// Maximum number of further levels that completing any stack takes; `None` if it is not proven
    /// that levels, lines and brackets are balanced.
    pub(crate) needed_levels: Option<u32>,
    /// Threads of the newline terminal that may continue although the line has ended.
    pub(crate) line_end_threads: u32,
    /// Ignored terminals that extend to the line end, such as comments. They are read where a line
    /// may end.
    pub(crate) line_comments: Vec<u32>,
    /// The newline terminal and the lexer state for all terminals, once balance is proven.
    pub(crate) in_brackets: Option<(u32, u32)>,
    /// Symbols whose nonempty strings all end with a line end.
    pub(crate) ends_lines: Vec<bool>,
}

/// The components of a parser state.
pub(crate) struct ParserStateParts {
    pub(crate) stacks: u32,
    pub(crate) depth: u32,
    pub(crate) levels: Vec<u32>,
}

/// Returns the column counter of a grammar.
pub(crate) fn columns(grammar: &Grammar) -> Option<ColumnCounter> {
    let one = grammar.indentation.as_ref()?;
    Some(ColumnCounter { rules: one.rules, tab: one.tab, widest: one.widest })
}

impl IndentationState {
    pub(crate) fn new(grammar: &Grammar) -> Option<IndentationState> {
        let one = grammar.indentation.as_ref()?;
        let numbers = |list: &[usize]| list.iter().map(|&at| at as u32).collect();
        Some(IndentationState {
            newline: one.newline as u32,
            indent: one.indent as u32,
            dedent: one.dedent as u32,
            opening: numbers(&one.opening),
            closing: numbers(&one.closing),
            columns: columns(grammar)?,
            levels: one.levels,
            first_line_id: 2 * grammar.terminals.len() as u32,
            parser_states: ParserStates::default(),
            needed_levels: None,
            line_end_threads: NOTHING,
            line_comments: Vec::new(),
            in_brackets: None,
            ends_lines: Vec::new(),
        })
    }

    /// Returns `true` for the indent and dedent terminals.
    pub(crate) fn is_level(&self, terminal: u32) -> bool {
        terminal == self.indent || terminal == self.dedent
    }

    /// Returns `true` if the grammar has brackets.
    pub(crate) fn has_brackets(&self) -> bool {
        !self.opening.is_empty()
    }

    /// Returns the change of the bracket depth by a terminal.
    pub(crate) fn bracket(&self, terminal: u32) -> i64 {
        i64::from(self.opening.contains(&terminal)) - i64::from(self.closing.contains(&terminal))
    }

    /// Returns the bracket depth at the start of a line.
    fn depth_at_line_start(&self) -> u32 {
        if self.is_python() { BETWEEN_LINES } else { 0 }
    }

    pub(crate) fn is_python(&self) -> bool {
        self.columns.rules == ColumnRules::Python
    }

    /// Returns the terminal id of a line that starts at a column, if it is one.
    pub(crate) fn line_id(&self, column: u32) -> Option<u32> {
        let (wide, narrow) = widths(column);
        let (widest, joined) = (self.columns.widest, u32::from(!may_end_at(column)));
        is_column(column).then(|| self.first_line_id + 2 * (wide * (widest + 1) + narrow) + joined)
    }

    /// Returns the widths of a line's terminal id, and whether the line is joined to the previous
    /// one.
    fn column(&self, number: u32) -> Option<((u32, u32), bool)> {
        let at = number.checked_sub(self.first_line_id)?;
        let (wide, narrow) =
            (at / 2 / (self.columns.widest + 1), at / 2 % (self.columns.widest + 1));
        Some(((wide, narrow), at % 2 == 1))
    }

    pub(crate) fn parts(&self, parser_state: u32) -> ParserStateParts {
        let ParserStateKey { stacks, depth, .. } = self.parser_states.get(parser_state);
        ParserStateParts { stacks, depth, levels: self.parser_states.levels(parser_state).to_vec() }
    }

    fn intern_parts(&mut self, parts: &ParserStateParts) -> u32 {
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
        if self.column(terminal).is_none() {
            return (terminal == self.newline).then(Vec::new);
        }
        let (before, after) = (self.parts(before), self.parts(after));
        let (old, new) = (before.levels.len(), after.levels.len());
        let mut terminals = if is_closed(before.depth) { Vec::new() } else { vec![self.newline] };
        terminals.extend(std::iter::repeat_n(self.indent, new.saturating_sub(old)));
        terminals.extend(std::iter::repeat_n(self.dedent, old.saturating_sub(new)));
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

    fn is_in_brackets(&self, parser_state: u32) -> bool {
        !matches!(self.parser_states.get(parser_state).depth, 0 | BETWEEN_LINES | JOINED_LINE)
    }

    /// Returns `true` if all levels that completing a parser state may take fit the limits.
    fn fits_limits(&self, parser_state: u32) -> bool {
        let Some(needed_levels) = self.needed_levels else { return false };
        let levels = self.parser_states.levels(parser_state);
        let top = match levels.last() {
            // Hidden levels were checked before, and no level starts unseen.
            None | Some(&OUT_OF_SIGHT) => 0,
            Some(&top) => widths(top).0,
        };
        levels.len() as u32 + needed_levels <= self.levels
            && top + needed_levels <= self.columns.widest
    }
}

impl GrammarState {
    /// Returns the configurations before any input.
    pub(crate) fn start_configurations(&mut self) -> Result<Vec<Configuration>, Error> {
        let stacks = self.gss.start();
        let Some(indentation) = &mut self.indentation else {
            return Ok(vec![Configuration::between(stacks, NOTHING)]);
        };
        let depth = indentation.depth_at_line_start();
        let parser_state = indentation.intern_parts(&ParserStateParts {
            stacks,
            depth,
            levels: vec![FIRST_COLUMN],
        });
        if !indentation.is_python() {
            return Ok(vec![Configuration::between(parser_state, NOTHING)]);
        }
        // As if a line had just ended.
        let newline = indentation.newline;
        let start = self.lexer.start_with_columns(std::iter::once(newline), Some(newline));
        let lexeme = self.lexer.step(start, b'\n', &mut self.gss.meter)?.next;
        let negative_threads = self.lexer.without_columns(lexeme);
        let at_line_start = Configuration { lexeme, parser_state, negative_threads: NOTHING };
        Ok(vec![Configuration::between(parser_state, negative_threads), at_line_start])
    }

    /// Returns the stacks of a parser state.
    pub(crate) fn stacks_of(&self, parser_state: u32) -> u32 {
        let Some(indentation) = &self.indentation else { return parser_state };
        indentation.parser_states.get(parser_state).stacks
    }

    /// Returns the columns of the open levels, innermost last.
    pub(crate) fn indent_levels(&self, parser_state: u32) -> Vec<u32> {
        self.indentation
            .as_ref()
            .map_or_else(Vec::new, |indentation| indentation.parts(parser_state).levels)
    }

    /// Returns `true` for the newline terminal.
    pub(crate) fn ends_line(&self, terminal: u32) -> bool {
        self.indentation.as_ref().is_some_and(|indentation| indentation.newline == terminal)
    }

    /// Returns `true` if lines matter in a parser state.
    pub(crate) fn has_lines(&self, parser_state: u32) -> bool {
        self.indentation
            .as_ref()
            .is_some_and(|indentation| !indentation.is_in_brackets(parser_state))
    }

    /// Returns `true` if no indentation limit interferes with completing a parser state.
    pub(crate) fn fits_limits(&self, parser_state: u32) -> bool {
        self.indentation.as_ref().is_none_or(|indentation| indentation.fits_limits(parser_state))
    }

    /// Returns the parser state after a terminal, for grammars with indentation.
    pub(crate) fn shift_with_indentation(
        &mut self,
        parser_state: u32,
        terminal: u32,
    ) -> Result<u32, Error> {
        let Some(indentation) = &self.indentation else { return Ok(NOTHING) };
        if let Some((column, joined)) = indentation.column(terminal) {
            return self.start_line(parser_state, column, joined);
        }
        let mut key = indentation.parser_states.get(parser_state);
        let (newline, bracket) = (indentation.newline, indentation.bracket(terminal));
        if terminal == newline || (terminal < self.terminals && self.is_ignored(terminal)) {
            return Ok(parser_state);
        }
        key.stacks = self.gss.shift(key.stacks, self.shifted_terminal(terminal))?;
        let depth = if is_closed(key.depth) { 0 } else { i64::from(key.depth) };
        match u32::try_from(depth + bracket) {
            Ok(depth) => key.depth = depth,
            Err(_) => return Ok(NOTHING),
        }
        Ok(self
            .indentation
            .as_mut()
            .map_or(NOTHING, |indentation| indentation.parser_states.number(key)))
    }

    /// Returns the parser state at the start of a line with a given column.
    fn start_line(
        &mut self,
        parser_state: u32,
        (wide, narrow): (u32, u32),
        joined: bool,
    ) -> Result<u32, Error> {
        let Some(indentation) = &self.indentation else { return Ok(NOTHING) };
        let ParserStateParts { mut stacks, depth, mut levels } = indentation.parts(parser_state);
        let (newline, indent, dedent) =
            (indentation.newline, indentation.indent, indentation.dedent);
        let most = indentation.levels as usize;
        if !is_closed(depth) {
            stacks = self.gss.shift(stacks, newline)?;
        }
        let top = |levels: &[u32]| match levels.last() {
            Some(&OUT_OF_SIGHT) => Err(NEEDS_DEEPER_STACK),
            top => Ok(top.map_or((0, 0), |&top| widths(top))),
        };
        let (first_wide, first_narrow) = top(&levels)?;
        if wide > first_wide {
            if narrow <= first_narrow || levels.len() >= most {
                return Ok(NOTHING);
            }
            stacks = self.gss.shift(stacks, indent)?;
            levels.push(wide << 16 | narrow);
        }
        while stacks != NOTHING && wide < top(&levels)?.0 {
            stacks = self.gss.shift(stacks, dedent)?;
            levels.pop();
        }
        if stacks == NOTHING || top(&levels)? != (wide, narrow) {
            return Ok(NOTHING);
        }
        let Some(indentation) = &mut self.indentation else { return Ok(NOTHING) };
        let depth = if joined { JOINED_LINE } else { indentation.depth_at_line_start() };
        let next = indentation.intern_parts(&ParserStateParts { stacks, depth, levels });
        // A level that starts or ends here has a different column.
        let allowed = self.gss.allowed(stacks)?;
        let set = self.gss.lr0.sets.get(allowed);
        let is_level = |one: u32| {
            self.indentation.as_ref().is_some_and(|indentation| indentation.is_level(one))
        };
        let goes_on = elements(set).filter_map(|one| one.checked_sub(1)).any(|one| !is_level(one));
        Ok(if goes_on || self.may_end(next)? { next } else { NOTHING })
    }

    /// Returns `true` if the input may end in a parser state between lexemes.
    pub(crate) fn may_end(&mut self, parser_state: u32) -> Result<bool, Error> {
        let Some(indentation) = &self.indentation else {
            return self.gss.is_accepting(parser_state);
        };
        let ParserStateParts { stacks, depth, levels } = indentation.parts(parser_state);
        let (newline, is_line_open) = (indentation.newline, indentation.is_python() && depth == 0);
        if depth == JOINED_LINE {
            return Ok(false);
        }
        if self.completes_after_dedents(stacks, levels.len())? {
            return Ok(true);
        }
        let stacks = if is_line_open { self.gss.shift(stacks, newline)? } else { NOTHING };
        self.completes_after_dedents(stacks, levels.len())
    }

    /// Returns the terminals that the end of the input stands for, where it may end.
    pub(crate) fn terminals_at_end(
        &mut self,
        configuration: Configuration,
    ) -> Result<Vec<u32>, Error> {
        let Some(indentation) = &self.indentation else { return Ok(Vec::new()) };
        let ParserStateParts { stacks, depth, levels } =
            indentation.parts(configuration.parser_state);
        let (newline, dedent) = (indentation.newline, indentation.dedent);
        let mut terminals = vec![dedent; levels.len() - 1];
        let is_closed =
            configuration.is_between() && self.completes_after_dedents(stacks, levels.len())?;
        if !is_closed && !crate::indentation::parser_state::is_closed(depth) {
            terminals.insert(0, newline);
        }
        Ok(terminals)
    }

    /// Returns `true` if the input may end inside a lexeme: in blank lines, the last of which may
    /// be open.
    pub(crate) fn may_end_inside_lexeme(
        &mut self,
        configuration: Configuration,
    ) -> Result<bool, Error> {
        let Some(indentation) =
            self.indentation.as_ref().filter(|indentation| indentation.is_python())
        else {
            return Ok(false);
        };
        if !self.lexer.may_end(configuration.negative_threads) {
            return Ok(false);
        }
        let threads = self.lexer.lists.get(configuration.lexeme);
        let has_read_line_end =
            |one: u32| has_read_line_end(self.lexer.column(one)) && self.lexer.has_matched(one);
        if !threads.iter().any(|&one| has_read_line_end(one)) {
            return Ok(false);
        }
        let ParserStateParts { stacks, depth, levels } =
            indentation.parts(configuration.parser_state);
        let newline = indentation.newline;
        let stacks = if is_closed(depth) { stacks } else { self.gss.shift(stacks, newline)? };
        self.completes_after_dedents(stacks, levels.len())
    }

    /// Returns `true` if the stacks are complete once `levels` levels end.
    fn completes_after_dedents(&mut self, mut stacks: u32, levels: usize) -> Result<bool, Error> {
        let dedent = self.indentation.as_ref().map_or(NOTHING, |indentation| indentation.dedent);
        for _ in 1..levels {
            if stacks == NOTHING {
                return Ok(false);
            }
            stacks = self.gss.shift(stacks, dedent)?;
        }
        Ok(stacks != NOTHING && self.gss.is_accepting(stacks)?)
    }

    /// Returns the stacks after a terminal for a lower bound, ignoring levels.
    pub(crate) fn stacks_after_terminal(
        &mut self,
        parser_state: u32,
        terminal: u32,
    ) -> Result<u32, Error> {
        let newline = self
            .indentation
            .as_ref()
            .map(|indentation| (indentation.newline, indentation.parts(parser_state)));
        match newline {
            Some((newline, parts)) if terminal == newline => match parts.depth {
                0 => self.gss.shift(parts.stacks, newline),
                _ => Ok(parts.stacks),
            },
            _ => {
                let next = self.shift_lexeme(parser_state, terminal)?;
                Ok(self.stacks_of(next))
            }
        }
    }

    /// Drops parser states with ids from `len` on.
    pub(crate) fn truncate_parser_states(&mut self, len: usize) {
        if let Some(indentation) = &mut self.indentation {
            indentation.parser_states.truncate(len);
        }
    }

    pub(crate) fn parser_state_count(&self) -> usize {
        self.indentation.as_ref().map_or(0, |indentation| indentation.parser_states.len())
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

/// Returns `true` if a thread with this column has read a line end after which the input may end.
fn has_read_line_end(column: u32) -> bool {
    column != NO_COLUMN && column != BEFORE_LINE_BREAK && may_end_at(column)
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
