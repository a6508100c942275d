//! Where lexemes begin and what comes of them: the lexer's side of the stacks.

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use crate::grammar::Lexing;
use crate::interner::{NOTHING, union};
use crate::lr0::elements;
use crate::state::GrammarState;

/// Lexer states looked at before lexemes are taken to be read in several ways.
const MAX_LEXER_STATES: usize = 1_000;

impl GrammarState {
    /// The lexer state in front of a lexeme that may follow at a place.
    pub(crate) fn context(&mut self, parser_state: u32) -> Result<u32, Error> {
        let lines = self.has_lines(parser_state);
        self.context_on(self.stacks_of(parser_state), lines)
    }

    /// The same of some stacks, where lines matter or not.
    pub(crate) fn context_on(&mut self, stacks: u32, lines: bool) -> Result<u32, Error> {
        let allowed = self.gss.allowed(stacks)?;
        Ok(self.context_of(allowed, lines))
    }

    /// The same of a set of terminals that the stacks allow.
    pub(crate) fn context_of(&mut self, allowed: u32, lines: bool) -> u32 {
        if let Some(&start) = self.contexts.get(&(allowed, lines)) {
            return start;
        }
        let set = self.gss.lr0.sets.copy(allowed);
        let allowed_terminals = elements(&set).filter_map(|number| number.checked_sub(1));
        let mut all = union(&allowed_terminals.collect::<Vec<u32>>(), &self.ignored);
        all = union(&all, &self.uncuttable);
        if let Some(indentation) = self.indentation.as_ref().filter(|_| !lines) {
            // In brackets line breaks are blanks.
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

    /// The lexer state in front of one of these terminals.
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

    /// The lexer state that reads all of these terminals but some, and watches for all that
    /// lexemes may become.
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

    /// The lexer state that reads some terminals and what may stand anywhere, whatever lexemes
    /// become and wherever lines matter.
    pub(crate) fn start_of_terminal(&mut self, terminals: &[u32]) -> u32 {
        let mut all = union(terminals, &self.ignored);
        if let Some(indentation) = &self.indentation {
            all = union(&all, &[indentation.newline]);
        }
        self.lexer.start(all.into_iter())
    }

    /// Whether every lexeme of these terminals is read in one way, whatever stands around it: none is
    /// another one too, or its beginning. `false` may also mean that it was not seen.
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

    /// The number of lexemes of other terminals that became this one.
    pub(crate) fn replacement_terminal(&self, terminal: u32) -> u32 {
        self.terminals + terminal
    }

    /// The terminal that the stacks shift for a lexeme.
    pub(crate) fn shifted_terminal(&self, terminal: u32) -> u32 {
        terminal.checked_sub(self.terminals).unwrap_or(terminal)
    }

    /// Whether a terminal is never read: lexemes must not end within it.
    pub(crate) fn is_uncuttable(&self, terminal: u32) -> bool {
        self.uncuttable.binary_search(&terminal).is_ok()
    }

    pub(crate) fn is_ignored(&self, terminal: u32) -> bool {
        self.ignored.binary_search(&terminal).is_ok()
    }

    /// Whether a lexeme became a terminal that is ignored: it is not skipped then, and may have no
    /// place in the rules.
    pub(crate) fn is_lost_replacement(&self, terminal: u32) -> bool {
        terminal.checked_sub(self.terminals).is_some_and(|one| self.is_ignored(one))
    }

    /// The place after a lexeme; [`NOTHING`] if it cannot stand here. What is ignored may be in a
    /// rule too: where lexemes are read in any way, or if another lexeme became it.
    #[inline]
    pub(crate) fn after(&mut self, parser_state: u32, terminal: u32) -> Result<u32, Error> {
        match self.indentation {
            None => self.after_on(parser_state, terminal),
            Some(_) => self.after_with_indentation(parser_state, terminal),
        }
    }

    /// The stacks after a lexeme, where they are all there is of a place.
    fn after_on(&mut self, stacks: u32, terminal: u32) -> Result<u32, Error> {
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
