//! What reads the terminals.

use std::sync::Arc;

use formalm_automata::{
    Automaton, ByteSet, EDGE, Error, Limits as TerminalLimits, Machine, StateId, Word, words,
};

use crate::grammar::{Grammar, Lexing};
use crate::indentation::parser_state::Layout;

/// The machine of a terminal.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Of a keyword, or of another terminal whose texts are as simple.
    Word(Word),
    /// Of any other one.
    Automaton(Box<Automaton>),
}

impl Reader {
    /// Bytes at which a new class starts; bytes of one class are never told apart.
    pub(crate) fn class_starts(&self) -> &[u8] {
        match self {
            Reader::Word(one) => one.class_starts(),
            Reader::Automaton(one) => one.class_starts(),
        }
    }

    /// Whether something can be read from a state; the edge of a lexeme aside, if it is known.
    pub(crate) fn reads_more(&self, ahead: bool, state: StateId) -> Result<bool, Error> {
        let automaton = match self {
            Reader::Word(one) => return Ok(!one.live_bytes(state)?.is_empty()),
            Reader::Automaton(one) => one,
        };
        for &byte in automaton.class_starts() {
            if !(ahead && byte == EDGE) && automaton.step(state, byte)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Reader {
    /// Whether the text read so far is a member.
    #[inline]
    pub fn is_accepting(&self, state: StateId) -> bool {
        match self {
            Reader::Word(one) => one.is_accepting(state),
            Reader::Automaton(one) => one.is_accepting(state),
        }
    }
}

impl Machine for Reader {
    fn start(&self) -> StateId {
        match self {
            Reader::Word(one) => one.start(),
            Reader::Automaton(one) => one.start(),
        }
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        match self {
            Reader::Word(one) => one.step(state, byte),
            Reader::Automaton(one) => one.step(state, byte),
        }
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(Reader::is_accepting(self, state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        match self {
            Reader::Word(one) => one.live_bytes(state),
            Reader::Automaton(one) => one.live_bytes(state),
        }
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        match self {
            Reader::Word(one) => one.shortest(state),
            Reader::Automaton(one) => one.shortest(state),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Reader::Word(one) => one.memory_bytes(),
            Reader::Automaton(one) => one.memory_bytes(),
        }
    }
}

/// Machines of terminals, `None` for those without one.
pub(crate) type Readers = Vec<Option<Arc<Reader>>>;

/// The machines of the terminals, `None` for those without a text, and which match nothing.
pub(crate) fn terminals(grammar: &Grammar) -> Result<(Readers, Vec<bool>), Error> {
    let mut readers = Vec::with_capacity(grammar.terminals.len());
    let mut nullable = Vec::with_capacity(grammar.terminals.len());
    let simple = words(grammar.terminals.iter().map(|one| &one.language));
    for (one, word) in grammar.terminals.iter().zip(simple) {
        if let Some(one) = &one.embedded {
            nullable.push(one.machine.is_accepting(one.machine.start())?);
            readers.push(None);
            continue;
        }
        let made = |word| Ok(Reader::Word(word));
        let general = || {
            let automaton = Automaton::new(&one.language, TerminalLimits::default())?;
            Ok(Reader::Automaton(Box::new(automaton)))
        };
        let reader = match word.map_or_else(general, made) {
            Ok(reader) => Some(Arc::new(reader)),
            Err(Error::Language { .. }) => None,
            Err(limit) => return Err(limit),
        };
        let ahead = one.language.is_lexeme();
        let empty = match &reader {
            Some(one) if ahead => one.step(one.start(), EDGE)?.is_some(),
            Some(one) => one.is_accepting(one.start()),
            None => false,
        };
        if empty && (ahead || grammar.lexing != Lexing::Any) {
            let ignored = grammar.ignored.contains(&readers.len());
            return Err(Error::Language {
                message: format!("the terminal {} matches the empty text", one.name),
                span: one.span,
                hint: Some(nullable_hint(ahead, ignored).to_owned()),
            });
        }
        nullable.push(empty);
        readers.push(reader);
    }
    Ok((readers, nullable))
}

/// Advice on a terminal that matches the empty text. What looks ahead is read nowhere so.
fn nullable_hint(ahead: bool, ignored: bool) -> &'static str {
    match (ahead, ignored) {
        (true, _) => "make its use optional instead: (A)? in a rule",
        (_, true) => {
            "what is ignored may be absent anyway: let it match one character or more, as in \
             /[ ]+/; lexing=\"any\" reads it as it is"
        }
        _ => "make its use optional instead: (A)? in a rule; lexing=\"any\" reads it as it is",
    }
}

/// Terminals of which no lexeme comes to the parser.
///
/// # Errors
///
/// [`Error::Limit`].
pub(crate) fn barren(
    grammar: &Grammar,
    automata: &[Option<Arc<Reader>>],
) -> Result<Vec<bool>, Error> {
    // In ordered readings what is ignored never comes to the parser, unless it was replaced.
    let comes = |at: usize| grammar.replaced.iter().any(|one| one.text == at);
    let ordered = grammar.lexing != Lexing::Any;
    let unread = |at: usize| ordered && grammar.ignored.contains(&at) && !comes(at);
    let layout = Layout::new(grammar);
    let is_level = |at: usize| layout.as_ref().is_some_and(|one| one.is_level(at as u32));
    let mut barren = Vec::with_capacity(automata.len());
    for (at, one) in automata.iter().enumerate() {
        let is_read = match &grammar.terminals[at].embedded {
            Some(one) => !one.machine.live_bytes(one.machine.start())?.is_empty(),
            None => one.is_some() || is_level(at),
        };
        barren.push(!is_read || unread(at));
    }
    Ok(barren)
}
