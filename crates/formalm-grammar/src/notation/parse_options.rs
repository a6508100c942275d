//! How a text is read, and what it refers to.

use formalm_automata::{Error, Expression};

use crate::grammar::{Embedded, Lexing};
use crate::notation::GrammarSource;
use crate::notation::build::indent_terminals::Levels;

/// In which syntax a grammar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// Lark's.
    Lark,
    /// That of llama.cpp.
    Gbnf,
    /// That of ISO/IEC 14977, or that of the W3C.
    Ebnf,
}

/// How the text of a grammar is read, and what it refers to.
#[derive(Clone, Debug)]
pub struct Options {
    /// In which syntax it is written.
    pub syntax: Syntax,
    /// How texts are cut into lexemes. Without a choice Lark's lexemes are the longest, and those
    /// of the other syntaxes are read in any way.
    pub lexing: Option<Lexing>,
    /// The rule to start with. Without one it is `start`, `root`, or the first rule, as the syntax
    /// has it.
    pub start: Option<String>,
    /// Languages of terminals that a text of Lark declares. They compete as patterns without end
    /// that are written where they first occur.
    pub languages: Vec<(String, Expression)>,
    /// Languages of any kind, by names that a text of Lark declares as those of rules, or by those
    /// of [`Inlined`](crate::Inlined) ones.
    pub embedded: Vec<(String, Embedded)>,
    /// How columns tell two of the terminals, in a text of Lark.
    pub levels: Option<Levels>,
}

fn refused(message: &str, hint: &str) -> Error {
    Error::Language { message: message.to_owned(), span: None, hint: Some(hint.to_owned()) }
}

impl Options {
    /// A text that refers to nothing.
    pub fn new(syntax: Syntax) -> Options {
        let (lexing, start, languages) = (None, None, Vec::new());
        Options { syntax, lexing, start, languages, embedded: Vec::new(), levels: None }
    }

    /// Refuses what the syntax or the reading has no place for.
    pub(super) fn check(&self) -> Result<(), Error> {
        let (lark, first) = (self.syntax == Syntax::Lark, self.lexing == Some(Lexing::First));
        if self.levels.is_some() && !lark {
            return Err(refused(
                "indentation is told in Lark text, whose terminals have names",
                "write the grammar in the syntax of Lark",
            ));
        }
        if !self.languages.is_empty() && (!lark || first) {
            return Err(refused(
                "languages are terminals of Lark text whose lexemes are the longest, or read in \
                 any way",
                "write them as patterns",
            ));
        }
        if !self.embedded.is_empty() && !lark {
            return Err(refused(
                "languages are embedded in Lark text only",
                "write the grammar in the syntax of Lark",
            ));
        }
        if !self.embedded.is_empty() && self.levels.is_some() {
            return Err(refused(
                "languages cannot be embedded where indentation is told: their lines would have \
                 none",
                "write the rules of the other language into this text",
            ));
        }
        if first && !lark {
            return Err(refused(
                "the first lexeme in Lark's order is a reading of Lark text only",
                "read lexemes in any way, or the longest",
            ));
        }
        Ok(())
    }

    /// How a text is cut into lexemes.
    pub(super) fn reading(&self) -> Lexing {
        let default = if self.syntax == Syntax::Lark { Lexing::Longest } else { Lexing::Any };
        self.lexing.unwrap_or(default)
    }

    /// The rule that a text starts with.
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
