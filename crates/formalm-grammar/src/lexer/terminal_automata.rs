//! The automata of terminals: a compact one for literals, a general one otherwise.

use std::sync::Arc;

use formalm_automata::{
    Automaton, AutomatonLimits as TerminalLimits, LEXEME_END, LiteralAutomaton, literal_automata,
};
use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, LazyDfa, ReadingHints, Renewal,
    ScratchCopies, StateId,
};

use crate::grammar::{Grammar, Lexing};
use crate::indentation::parser_state::IndentationState;

/// The automaton of a terminal.
#[derive(Debug)]
pub(crate) enum TerminalAutomaton {
    /// A keyword, or another terminal with equally simple strings.
    Word(LiteralAutomaton),
    /// Any other terminal.
    Automaton(Box<Automaton>),
}

impl TerminalAutomaton {
    /// Returns the bytes at which a new class starts; bytes of one class are never distinguished.
    pub(crate) fn class_starts(&self) -> &[u8] {
        match self {
            TerminalAutomaton::Word(one) => one.class_starts(),
            TerminalAutomaton::Automaton(one) => one.class_starts(),
        }
    }

    /// Returns `true` if a state reads some byte, ignoring the lexeme edge of terminals with
    /// lookahead.
    pub(crate) fn reads_more(&self, has_lookahead: bool, state: StateId) -> Result<bool, Error> {
        let automaton = match self {
            TerminalAutomaton::Word(one) => return Ok(!one.live_bytes(state)?.is_empty()),
            TerminalAutomaton::Automaton(one) => one,
        };
        for &byte in automaton.class_starts() {
            if !(has_lookahead && byte == LEXEME_END) && automaton.step(state, byte)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl TerminalAutomaton {
    /// Returns `true` if a state is accepting.
    #[inline]
    pub fn is_accepting(&self, state: StateId) -> bool {
        match self {
            TerminalAutomaton::Word(one) => one.is_accepting(state),
            TerminalAutomaton::Automaton(one) => one.is_accepting(state),
        }
    }
}

impl LazyDfa for TerminalAutomaton {
    fn start(&self) -> StateId {
        match self {
            TerminalAutomaton::Word(one) => one.start(),
            TerminalAutomaton::Automaton(one) => one.start(),
        }
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        match self {
            TerminalAutomaton::Word(one) => one.step(state, byte),
            TerminalAutomaton::Automaton(one) => one.step(state, byte),
        }
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(TerminalAutomaton::is_accepting(self, state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        match self {
            TerminalAutomaton::Word(one) => one.live_bytes(state),
            TerminalAutomaton::Automaton(one) => one.live_bytes(state),
        }
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        match self {
            TerminalAutomaton::Word(one) => one.shortest_completion(state),
            TerminalAutomaton::Automaton(one) => one.shortest_completion(state),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            TerminalAutomaton::Word(one) => one.memory_bytes(),
            TerminalAutomaton::Automaton(one) => one.memory_bytes(),
        }
    }
}

impl ReadingHints for TerminalAutomaton {}

impl CompletionHints for TerminalAutomaton {}

impl CompletionClasses for TerminalAutomaton {}

impl ScratchCopies for TerminalAutomaton {}

impl Renewal for TerminalAutomaton {}

/// Terminal automata by terminal; `None` for terminals without one.
pub(crate) type TerminalAutomata = Vec<Option<Arc<TerminalAutomaton>>>;

/// Builds the automata of all terminals, `None` for those without strings, and tells which
/// terminals match the empty string. Fails if such a terminal has lookahead or lexemes are ordered.
pub(crate) fn build_terminal_automata(
    grammar: &Grammar,
) -> Result<(TerminalAutomata, Vec<bool>), Error> {
    let mut automata = Vec::with_capacity(grammar.terminals.len());
    let mut nullable = Vec::with_capacity(grammar.terminals.len());
    let literals = literal_automata(grammar.terminals.iter().map(|one| &one.language));
    for (one, word) in grammar.terminals.iter().zip(literals) {
        if let Some(one) = &one.sublanguage {
            nullable.push(one.machine.is_accepting(one.machine.start())?);
            automata.push(None);
            continue;
        }
        let made = |word| Ok(TerminalAutomaton::Word(word));
        let general = || {
            let general = Automaton::new(&one.language, TerminalLimits::default())?;
            Ok(TerminalAutomaton::Automaton(Box::new(general)))
        };
        let automaton = match word.map_or_else(general, made) {
            Ok(automaton) => Some(Arc::new(automaton)),
            Err(Error::Language { .. }) => None,
            Err(limit) => return Err(limit),
        };
        let has_lookahead = one.language.is_lexeme();
        let empty = match &automaton {
            Some(one) if has_lookahead => one.step(one.start(), LEXEME_END)?.is_some(),
            Some(one) => one.is_accepting(one.start()),
            None => false,
        };
        if empty && (has_lookahead || grammar.lexing != Lexing::Any) {
            let ignored = grammar.ignored.contains(&automata.len());
            return Err(Error::Language {
                message: format!("the terminal {} matches the empty string", one.name),
                span: one.span,
                hint: Some(nullable_hint(has_lookahead, ignored).to_owned()),
            });
        }
        nullable.push(empty);
        automata.push(automaton);
    }
    Ok((automata, nullable))
}

/// Returns the hint for a terminal that matches the empty string. With lookahead, no lexing mode
/// supports it.
fn nullable_hint(has_lookahead: bool, ignored: bool) -> &'static str {
    match (has_lookahead, ignored) {
        (true, _) => "make it optional where it is used instead: (A)? in a rule",
        (_, true) => {
            "ignored terminals are optional anyway: match one or more characters, as in /[ ]+/, or \
             use lexing=\"any\""
        }
        _ => "make it optional where it is used instead: (A)? in a rule; or use lexing=\"any\"",
    }
}

/// Returns the terminals of which no lexeme reaches the parser.
///
/// # Errors
///
/// [`Error::Limit`].
pub(crate) fn unproductive_terminals(
    grammar: &Grammar,
    automata: &[Option<Arc<TerminalAutomaton>>],
) -> Result<Vec<bool>, Error> {
    // With ordered lexemes, an ignored lexeme never reaches the parser unless it is replaced.
    let reaches_parser = |at: usize| grammar.replacements.iter().any(|one| one.text == at);
    let ordered = grammar.lexing != Lexing::Any;
    let unread = |at: usize| ordered && grammar.ignored.contains(&at) && !reaches_parser(at);
    let indentation = IndentationState::new(grammar);
    let is_level = |at: usize| indentation.as_ref().is_some_and(|one| one.is_level(at as u32));
    let mut unproductive = Vec::with_capacity(automata.len());
    for (at, one) in automata.iter().enumerate() {
        let is_read = match &grammar.terminals[at].sublanguage {
            Some(one) => !one.machine.live_bytes(one.machine.start())?.is_empty(),
            None => one.is_some() || is_level(at),
        };
        unproductive.push(!is_read || unread(at));
    }
    Ok(unproductive)
}
