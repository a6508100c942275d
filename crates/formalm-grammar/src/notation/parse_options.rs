//! Parse options: notation, lexing, start rule, and the languages that a grammar text refers to.

use formalm_automata::Expression;
use formalm_core::Error;

use crate::grammar::{Lexing, Sublanguage};
use crate::notation::GrammarSource;
use crate::notation::grammar_builder::indent_terminals::IndentationNames;

/// The notation of a grammar text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// Lark's notation.
    Lark,
    /// GBNF, the notation of llama.cpp.
    Gbnf,
    /// EBNF, in the form of ISO/IEC 14977 or of the W3C.
    Ebnf,
}

/// Options for parsing a grammar text.
#[derive(Clone, Debug)]
pub struct ParseOptions {
    /// The notation.
    pub syntax: Syntax,
    /// The lexing mode; by default the longest lexeme for Lark, and [`Lexing::Any`] for other
    /// notations.
    pub lexing: Option<Lexing>,
    /// The start rule; by default `start` (Lark), `root` (GBNF) or the first rule (EBNF).
    pub start: Option<String>,
    /// Languages of terminals that a Lark text declares. They compete as patterns of unbounded
    /// length, written where they first occur.
    pub languages: Vec<(String, Expression)>,
    /// Languages of any kind, by the rule names that a Lark text declares or by the names of
    /// inline ones.
    pub sublanguages: Vec<(String, Sublanguage)>,
    /// The names of the indentation terminals in a Lark text.
    pub indentation: Option<IndentationNames>,
}

fn refused(message: &str, hint: &str) -> Error {
    Error::language(message, Some(hint))
}

impl ParseOptions {
    /// Returns the default options of a notation.
    pub fn new(syntax: Syntax) -> ParseOptions {
        let (lexing, start, languages) = (None, None, Vec::new());
        ParseOptions {
            syntax,
            lexing,
            start,
            languages,
            sublanguages: Vec::new(),
            indentation: None,
        }
    }

    /// Refuses options that the notation or the lexing mode does not support.
    pub(super) fn check(&self) -> Result<(), Error> {
        let (lark, first) = (self.syntax == Syntax::Lark, self.lexing == Some(Lexing::First));
        if self.indentation.is_some() && !lark {
            return Err(refused(
                "indentation requires syntax=\"lark\", whose terminals have names",
                "write the grammar in Lark syntax",
            ));
        }
        if !self.languages.is_empty() && (!lark || first) {
            return Err(refused(
                "languages as terminals require syntax=\"lark\" and lexing=\"longest\" or \"any\"",
                "write them as patterns instead",
            ));
        }
        if !self.sublanguages.is_empty() && !lark {
            return Err(refused(
                "embedded languages require syntax=\"lark\"",
                "write the grammar in Lark syntax",
            ));
        }
        if !self.sublanguages.is_empty() && self.indentation.is_some() {
            return Err(refused(
                "embedded languages cannot be combined with indentation, because their lines would \
                 not be indented",
                "write the rules of the other language into this grammar",
            ));
        }
        if first && !lark {
            return Err(refused(
                "lexing=\"first\" requires syntax=\"lark\"",
                "use lexing=\"any\" or lexing=\"longest\"",
            ));
        }
        Ok(())
    }

    /// Returns the lexing mode.
    pub(super) fn reading(&self) -> Lexing {
        let default = if self.syntax == Syntax::Lark { Lexing::Longest } else { Lexing::Any };
        self.lexing.unwrap_or(default)
    }

    /// Returns the start rule of a grammar text.
    pub(super) fn start_of(&self, source: &GrammarSource) -> String {
        if let Some(start) = &self.start {
            return start.clone();
        }
        match self.syntax {
            Syntax::Lark => "start".to_owned(),
            Syntax::Gbnf => "root".to_owned(),
            Syntax::Ebnf => source.rules.first().map(|rule| rule.name.clone()).unwrap_or_default(),
        }
    }
}
