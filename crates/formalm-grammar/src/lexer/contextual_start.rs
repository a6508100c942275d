//! The contextual lexer: start states restricted to the terminals that the parser allows, and the
//! shift of the lexeme that results.

use formalm_core::Error;
use rustc_hash::FxHashSet;

use crate::grammar::Lexing;
use crate::grammar_state::GrammarState;
use crate::list_interner::{NOTHING, union};
use crate::lr0::elements;

/// Lexer states explored before lexing is assumed to be ambiguous. Chosen, not measured.
const MAX_LEXER_STATES: usize = 1_000;

impl GrammarState {
    /// Returns the threads before a lexeme in a parser state.
    pub(crate) fn context(&mut self, parser_state: u32) -> Result<u32, Error> {
        let lines = self.has_lines(parser_state);
        self.context_on(self.stacks_of(parser_state), lines)
    }

    /// As [`GrammarState::context`] for some stacks, where lines matter or not.
    pub(crate) fn context_on(&mut self, stacks: u32, lines: bool) -> Result<u32, Error> {
        let allowed = self.gss.allowed(stacks)?;
        Ok(self.context_of(allowed, lines))
    }

    /// As [`GrammarState::context`] for a set of terminals allowed by the stacks.
    pub(crate) fn context_of(&mut self, allowed: u32, lines: bool) -> u32 {
        if let Some(&start) = self.contexts.get(&(allowed, lines)) {
            return start;
        }
        let set = self.gss.lr0.sets.copy(allowed);
        let allowed_terminals = elements(&set).filter_map(|number| number.checked_sub(1));
        let mut all = union(&allowed_terminals.collect::<Vec<u32>>(), &self.ignored);
        all = union(&all, &self.uncuttable);
        if let Some(indentation) = self.indentation.as_ref().filter(|_| !lines) {
            // Inside brackets, line breaks are whitespace.
            all = union(&all, &[indentation.newline]);
        }
        if let Some(indentation) = self.indentation.as_ref().filter(|_| lines)
            && all.binary_search(&indentation.newline).is_err()
        {
            all.retain(|one| !indentation.line_comments.contains(one));
        }
        let start = self.start_of(&all, lines);
        self.contexts.insert((allowed, lines), start);
        start
    }

    /// Returns the threads before a lexeme of one of these terminals.
    fn start_of(&mut self, all: &[u32], lines: bool) -> u32 {
        let newline =
            self.indentation.as_ref().filter(|_| lines).map(|indentation| indentation.newline);
        if self.lexing != Lexing::First {
            return self.lexer.start_with_columns(all.iter().copied(), newline);
        }
        let here = |at: usize| all.binary_search(&(at as u32)).is_ok();
        let replaced = |text: u32, only: bool| {
            let mut of_it = self.replaced.iter().filter(|one| one.text == text as usize);
            of_it.any(|one| here(one.pattern) && (one.only || !only))
        };
        let read = all.iter().copied().filter(|&one| !replaced(one, true));
        let watched = all
            .iter()
            .filter(|&&one| replaced(one, false))
            .map(|one| self.replacement_terminal(*one));
        let threads: Vec<u32> = read.chain(watched).collect();
        self.lexer.start_with_columns(threads.into_iter(), newline)
    }

    /// Returns the threads that read all of `terminals` except `without`, and track all possible
    /// replacements.
    pub(crate) fn start_of_all(&mut self, terminals: &[u32], without: &[u32]) -> u32 {
        let all = union(&union(terminals, &self.ignored), &self.uncuttable);
        let watched = self.replaced.iter().map(|one| self.replacement_terminal(one.text as u32));
        let read = all.iter().copied().filter(|one| !without.contains(one));
        let mut threads: Vec<u32> = read.chain(watched).collect();
        threads.sort_unstable();
        threads.dedup();
        let newline = self.indentation.as_ref().map(|indentation| indentation.newline);
        self.lexer.start_with_columns(threads.into_iter(), newline)
    }

    /// Returns the threads that read some terminals and all ignored ones, ignoring replacements and
    /// lines.
    pub(crate) fn start_of_terminal(&mut self, terminals: &[u32]) -> u32 {
        let mut all = union(terminals, &self.ignored);
        if let Some(indentation) = &self.indentation {
            all = union(&all, &[indentation.newline]);
        }
        self.lexer.start(all.into_iter())
    }

    /// Returns `true` if every lexeme of these terminals is read in one way in every context: none
    /// is a lexeme of another terminal or a prefix of one. `false` may also mean that this is
    /// unknown.
    pub(crate) fn lexes_uniquely(&mut self, terminals: &[u32]) -> Result<bool, Error> {
        let start = self.start_of_all(terminals, &[]);
        let mut visited = vec![start];
        let mut seen = FxHashSet::from_iter([start]);
        while let Some(set) = visited.pop() {
            self.gss.meter.reset();
            for byte in self.lexer.representatives().to_vec() {
                let read = self.lexer.step(set, byte, &mut self.gss.meter)?;
                let matches = self.lexer.lists.get(read.matches).len();
                let can_continue = usize::from(read.next != NOTHING);
                if matches + can_continue > 1
                    || read.conditions != NOTHING
                    || seen.len() > MAX_LEXER_STATES
                {
                    return Ok(false);
                }
                if read.next != NOTHING && seen.insert(read.next) {
                    visited.push(read.next);
                }
            }
        }
        Ok(true)
    }

    /// Returns the id of lexemes of other terminals that became `terminal`.
    pub(crate) fn replacement_terminal(&self, terminal: u32) -> u32 {
        self.terminals + terminal
    }

    /// Returns the terminal that the stacks shift for a lexeme.
    pub(crate) fn shifted_terminal(&self, terminal: u32) -> u32 {
        terminal.checked_sub(self.terminals).unwrap_or(terminal)
    }

    /// Returns `true` if a terminal is never read and no lexeme may end inside it.
    pub(crate) fn is_uncuttable(&self, terminal: u32) -> bool {
        self.uncuttable.binary_search(&terminal).is_ok()
    }

    pub(crate) fn is_ignored(&self, terminal: u32) -> bool {
        self.ignored.binary_search(&terminal).is_ok()
    }

    /// Returns `true` if a lexeme became an ignored terminal. It is not skipped then, and the rules
    /// may have no place for it.
    pub(crate) fn is_lost_replacement(&self, terminal: u32) -> bool {
        terminal.checked_sub(self.terminals).is_some_and(|one| self.is_ignored(one))
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
        if terminal >= self.terminals || !self.is_ignored(terminal) {
            return self.gss.shift(stacks, self.shifted_terminal(terminal));
        }
        if self.lexing != Lexing::Any {
            return Ok(stacks);
        }
        match self.gss.shift(stacks, terminal)? {
            NOTHING => Ok(stacks),
            shifted_terminal => Ok(self.gss.union(stacks, shifted_terminal)),
        }
    }
}
