//! The parser: sets of stacks, and the indentation levels around them if lines matter.
//!
//! A *parser state* is a set of stacks of the GSS. With indentation it is the id of a
//! [`ParserStates`](crate::indentation::parser_state::ParserStates) entry: stacks, bracket depth and
//! open levels. Everything above asks for parser states and does not see the difference.

use std::sync::Arc;

use formalm_core::{Error, ListInterner, memory_bytes};
use formalm_machines::NEEDS_DEEPER_STACK;

use crate::NOTHING;
use crate::grammar::Lexing;
use crate::gss::Gss;
use crate::indentation::line_terminals::LineTerminals;
use crate::indentation::min_bytes::IndentedSuffixes;
use crate::indentation::parser_state::{
    IndentationState, JOINED_LINE, OUT_OF_SIGHT, ParserStateParts, is_closed, is_joined,
};
use crate::indentation::{FIRST_COLUMN, widths};
use crate::lexer::terminal_rules::TerminalRules;
use crate::lr0::elements;

/// The stacks of a grammar, with their indentation.
#[derive(Debug)]
pub(crate) struct Parser {
    pub(crate) rules: Arc<TerminalRules>,
    pub(crate) gss: Gss,
    /// The indentation tables, for grammars in which indentation matters.
    pub(crate) indentation: Option<IndentationState>,
    /// Interned prefixes of parser states, see [`Parser::prefix_of`].
    prefixes: ListInterner,
}

memory_bytes!(Parser { gss, indentation, prefixes; rules });

impl Parser {
    pub(crate) fn new(rules: Arc<TerminalRules>, gss: Gss) -> Parser {
        let indentation = rules.lines.as_ref().map(IndentationState::new);
        Parser { rules, gss, indentation, prefixes: ListInterner::default() }
    }

    /// Returns the parser state before any input.
    pub(crate) fn start(&mut self) -> u32 {
        let stacks = self.gss.start();
        let Some(indentation) = &mut self.indentation else { return stacks };
        let depth = indentation.depth_at_line_start();
        indentation.intern_parts(&ParserStateParts { stacks, depth, levels: vec![FIRST_COLUMN] })
    }

    /// Returns the terminals that a parser state can shift, as an id of the GSS's terminal sets.
    pub(crate) fn allowed(&mut self, parser_state: u32) -> Result<u32, Error> {
        self.gss.allowed(self.stacks_of(parser_state))
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

    /// Returns the parser state after a lexeme; [`NOTHING`] if it is not allowed. An ignored
    /// terminal may also occur in a rule, with [`Lexing::Any`] or as a replacement.
    #[inline]
    pub(crate) fn shift_lexeme(&mut self, parser_state: u32, terminal: u32) -> Result<u32, Error> {
        match self.indentation {
            None => self.shift_on_stacks(parser_state, terminal),
            Some(_) => self.shift_with_indentation(parser_state, terminal),
        }
    }

    /// Returns the stacks after a lexeme, for grammars without indentation.
    fn shift_on_stacks(&mut self, stacks: u32, terminal: u32) -> Result<u32, Error> {
        if terminal >= self.rules.terminals || !self.rules.is_ignored(terminal) {
            return self.gss.shift(stacks, self.rules.shifted_terminal(terminal));
        }
        if self.rules.lexing != Lexing::Any {
            return Ok(stacks);
        }
        match self.gss.shift(stacks, terminal)? {
            NOTHING => Ok(stacks),
            shifted_terminal => Ok(self.gss.union(stacks, shifted_terminal)),
        }
    }

    /// Returns the parser state after a terminal, for grammars with indentation.
    pub(crate) fn shift_with_indentation(
        &mut self,
        parser_state: u32,
        terminal: u32,
    ) -> Result<u32, Error> {
        let Some(indentation) = &self.indentation else { return Ok(NOTHING) };
        if let Some((column, joined)) = indentation.lines.column(terminal) {
            return self.start_line(parser_state, column, joined);
        }
        let mut key = indentation.parser_states.get(parser_state);
        let (newline, bracket) = (indentation.lines.newline, indentation.lines.bracket(terminal));
        if terminal == newline
            || (terminal < self.rules.terminals && self.rules.is_ignored(terminal))
        {
            return Ok(parser_state);
        }
        key.stacks = self.gss.shift(key.stacks, self.rules.shifted_terminal(terminal))?;
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
        let LineTerminals { newline, indent, dedent, max_levels, .. } = indentation.lines;
        if !is_closed(depth) {
            stacks = self.gss.shift(stacks, newline)?;
        }
        let top = |levels: &[u32]| match levels.last() {
            Some(&OUT_OF_SIGHT) => Err(NEEDS_DEEPER_STACK),
            top => Ok(top.map_or((0, 0), |&top| widths(top))),
        };
        let (first_wide, first_narrow) = top(&levels)?;
        if wide > first_wide {
            if narrow <= first_narrow || levels.len() >= max_levels as usize {
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
        let rules = &self.rules;
        let continues = elements(set)
            .filter_map(|number| number.checked_sub(1))
            .any(|terminal| !rules.is_level(terminal));
        Ok(if continues || self.may_end(next)? { next } else { NOTHING })
    }

    /// Returns `true` if the input may end in a parser state between lexemes.
    pub(crate) fn may_end(&mut self, parser_state: u32) -> Result<bool, Error> {
        let Some(indentation) = &self.indentation else {
            return self.gss.is_accepting(parser_state);
        };
        let ParserStateParts { stacks, depth, levels } = indentation.parts(parser_state);
        let newline = indentation.lines.newline;
        let is_line_open = indentation.lines.is_python() && depth == 0;
        if is_joined(depth) {
            return Ok(false);
        }
        if self.completes_after_dedents(stacks, levels.len())? {
            return Ok(true);
        }
        let stacks = if is_line_open { self.gss.shift(stacks, newline)? } else { NOTHING };
        self.completes_after_dedents(stacks, levels.len())
    }

    /// Returns the terminals that the end of the input stands for, where it may end: between
    /// lexemes or inside one.
    pub(crate) fn terminals_at_end(
        &mut self,
        parser_state: u32,
        is_between: bool,
    ) -> Result<Vec<u32>, Error> {
        let Some(indentation) = &self.indentation else { return Ok(Vec::new()) };
        let ParserStateParts { stacks, depth, levels } = indentation.parts(parser_state);
        let LineTerminals { newline, dedent, .. } = indentation.lines;
        let mut terminals = vec![dedent; levels.len() - 1];
        let is_complete = is_between && self.completes_after_dedents(stacks, levels.len())?;
        if !is_complete && !is_closed(depth) {
            terminals.insert(0, newline);
        }
        Ok(terminals)
    }

    /// Returns `true` if the stacks are complete once `levels` levels end.
    fn completes_after_dedents(&mut self, mut stacks: u32, levels: usize) -> Result<bool, Error> {
        let dedent = self.rules.lines.as_ref().map_or(NOTHING, |lines| lines.dedent);
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
            .map(|indentation| (indentation.lines.newline, indentation.parts(parser_state)));
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

    /// Rolls the stacks back to their checkpoint, and drops parser states with ids from `len` on.
    pub(crate) fn rollback(&mut self, len: usize) {
        if let Some(indentation) = &mut self.indentation {
            indentation.parser_states.truncate(len);
            indentation.suffix_bounds.clear();
        }
        self.gss.rollback();
    }

    pub(crate) fn parser_state_count(&self) -> usize {
        self.indentation.as_ref().map_or(0, |indentation| indentation.parser_states.len())
    }

    /// Returns `true` if the input may end in a parser state after the end of a line.
    pub(crate) fn may_end_after_line(&mut self, parser_state: u32) -> Result<bool, Error> {
        let Some(indentation) = &self.indentation else { return Ok(false) };
        let ParserStateParts { stacks, depth, levels } = indentation.parts(parser_state);
        let newline = indentation.lines.newline;
        let stacks = if is_closed(depth) { stacks } else { self.gss.shift(stacks, newline)? };
        self.completes_after_dedents(stacks, levels.len())
    }

    /// Returns the id of a parser state's prefix down to a stack depth. Prefixes are never dropped.
    /// Returns `None` if the prefix is too large.
    pub(crate) fn prefix_of(&mut self, parser_state: u32, depth: u32) -> Option<u32> {
        let mut list = Vec::with_capacity(4 * depth as usize + 8);
        let is_complete = match &self.indentation {
            None => true,
            Some(indentation) => indentation.push_prefix(parser_state, depth, &mut list),
        };
        let stacks = self.stacks_of(parser_state);
        let is_complete = is_complete && self.gss.graph.push_prefix(stacks, depth, &mut list);
        is_complete.then(|| self.prefixes.intern(&list))
    }

    /// Returns a parser state that consists of a prefix only. An operation that needs more fails
    /// with `NEEDS_DEEPER_STACK`.
    pub(crate) fn state_of_prefix(&mut self, prefix: u32) -> u32 {
        let list = self.prefixes.copy(prefix);
        let Some(indentation) = &mut self.indentation else {
            return self.gss.graph.stacks_of_prefix(&list, prefix, &self.gss.lr0);
        };
        let (front, rest) = indentation.split_prefix(&list);
        match self.gss.graph.stacks_of_prefix(rest, prefix, &self.gss.lr0) {
            NOTHING => NOTHING,
            stacks => indentation.state_of_prefix(stacks, front),
        }
    }

    /// Returns the graph of stack suffixes; `None` without indentation.
    fn indented_suffixes(&mut self) -> Option<IndentedSuffixes<'_>> {
        let indentation = self.indentation.as_mut()?;
        Some(IndentedSuffixes::new(&mut self.gss, indentation))
    }

    /// Returns the minimum bytes that complete a parser state between lexemes.
    pub(crate) fn min_bytes(&mut self, parser_state: u32) -> Result<u32, Error> {
        let Some(mut suffixes) = self.indented_suffixes() else {
            return self.gss.min_completion_bytes(parser_state);
        };
        suffixes.min_bytes(parser_state)
    }

    /// Returns the minimum bytes after the end of a line that has reached `column`.
    pub(crate) fn line_min_bytes(&mut self, parser_state: u32, column: u32) -> Result<u32, Error> {
        match self.indented_suffixes() {
            Some(mut suffixes) => suffixes.line_min_bytes(parser_state, column),
            None => Ok(0),
        }
    }
}
