//! What the user wrote: rules over terminals, before any machine.

use std::sync::Arc;

use formalm_automata::{Error, Expression, Machine, Resource, Span};

use crate::indentation::{Indentation, MAX_COLUMN};
use crate::limits::check;

/// How a text is cut into lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lexing {
    /// In every way there is: the pure context-free language.
    Any,
    /// The longest lexeme of a terminal that may stand here, always. Of terminals that match the
    /// same text the one that comes first in [`Grammar::terminals`] is read.
    Longest,
    /// The first terminal of [`Grammar::terminals`] that may stand here and matches anything, and
    /// its longest lexeme. A terminal's language holds the lexemes that its pattern prefers.
    First,
}

/// A context-free grammar: immutable data that front-ends make.
#[derive(Clone, Debug)]
pub struct Grammar {
    /// The terminals, in order of preference.
    pub terminals: Vec<Terminal>,
    /// The rules; nodes refer to them by their place.
    pub rules: Vec<Rule>,
    /// Terminals that may stand before, between and after all others.
    pub ignored: Vec<usize>,
    /// Terminals that are never read, and that no lexeme may end within: the longest of them that
    /// goes on beyond a lexeme forbids that lexeme. With [`Lexing::Longest`] only.
    pub whole: Vec<usize>,
    /// The rule whose texts are the members.
    pub start: usize,
    /// How texts are cut into lexemes.
    pub lexing: Lexing,
    /// Texts that are read as the lexemes of patterns, with [`Lexing::First`].
    pub replaced: Vec<LexemeReplacement>,
    /// How lines and their indentation are told, if they are.
    pub indentation: Option<Indentation>,
    /// What the text of a member holds under a name.
    pub captures: Vec<Capture>,
    /// Names of the special tokens in its own text, in the order in which they are met.
    pub special: Vec<String>,
    /// Names that the text's start rule needs, be it in what becomes a terminal, such as the sides of
    /// a difference, or in an alternative that derives nothing.
    pub needed: Vec<String>,
    /// What the user should know about how the grammar was read.
    pub notes: Vec<Note>,
}

/// A lexeme of one terminal that becomes one of another, where both may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LexemeReplacement {
    /// The terminal that is read.
    pub pattern: usize,
    /// What it becomes if that matches the lexeme too; of several the one that comes first.
    pub text: usize,
    /// The text is not read by itself where the pattern may stand.
    pub only: bool,
}

/// A rule or a terminal whose texts have a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What they are captured as.
    pub name: String,
    /// The rule or terminal.
    pub of: String,
    /// Bytes at their end that are not captured.
    pub stop: usize,
    /// Where it is written.
    pub span: Span,
}

/// Something that was read but means less than one may think.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One sentence, no full stop.
    pub message: String,
    /// Where in the source.
    pub span: Option<Span>,
}

/// A language of another kind, which has a member.
#[derive(Clone, Debug)]
pub struct Embedded {
    /// Its machine; exact.
    pub machine: Arc<dyn Machine>,
    /// Every member is valid UTF-8.
    pub is_text: bool,
}

/// A language that is read as one symbol.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// What it is called in messages.
    pub name: String,
    /// The texts; an [`Expression::lexeme`] if it looks ahead.
    pub language: Expression,
    /// In place of the texts a language of any kind. Nothing competes with it, and it ends wherever
    /// a member of it does, however lexemes are read.
    pub embedded: Option<Embedded>,
    /// Where it is written.
    pub span: Option<Span>,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// The right-hand side.
    pub body: Node,
    /// Where it is written.
    pub span: Option<Span>,
}

/// A right-hand side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The empty text.
    Empty,
    /// A terminal, by its place.
    Terminal(usize),
    /// A rule, by its place.
    Rule(usize),
    /// One after the other.
    Sequence(Vec<Node>),
    /// Any of these.
    Choice(Vec<Node>),
    /// From so many to so many times; `None` is without end.
    Repeat(Box<Node>, u32, Option<u32>),
}

/// The nesting of one right-hand side that is accepted.
pub(crate) const NESTING: u64 = 200;

impl Grammar {
    /// Refuses numbers of terminals that are not there, and lines where lexemes are free.
    fn check_indentation(&self) -> Result<(), Error> {
        let Some(one) = &self.indentation else { return Ok(()) };
        let refused = |message: &str, hint: &str| {
            let (message, hint) = (message.to_owned(), Some(hint.to_owned()));
            Err(Error::Language { message, span: None, hint })
        };
        if self.lexing == Lexing::Any {
            return refused(
                "indentation cannot be told where lexemes are read in any way: a line could begin \
                 at any of its blanks",
                "read the longest lexemes, or the first ones as Lark does",
            );
        }
        let told = [one.newline, one.indent, one.dedent];
        let mut all = told.iter().chain(&one.opening).chain(&one.closing);
        if all.any(|&at| at >= self.terminals.len()) {
            return refused("indentation is told by a terminal that there is not", "name another");
        }
        if told.iter().any(|at| self.ignored.contains(at)) {
            return refused(
                "a terminal that tells lines or levels is ignored",
                "line breaks within brackets are left out anyway",
            );
        }
        if one.tab == 0
            || one.tab > 100
            || one.widest == 0
            || one.widest > MAX_COLUMN
            || one.levels < 2
        {
            return refused(
                "a tab is 1 to 100 columns wide, an indentation 1 to 4095, and levels are at least 2",
                "leave them out for the usual ones",
            );
        }
        Ok(())
    }

    /// Refuses numbers that are not of the grammar and bodies that are nested too deeply.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let unknown = |what: &str| Error::Language {
            message: format!("the grammar refers to a {what} that it does not have"),
            span: None,
            hint: None,
        };
        if self.start >= self.rules.len() {
            return Err(unknown("start rule"));
        }
        self.check_indentation()?;
        if self.ignored.iter().chain(&self.whole).any(|&at| at >= self.terminals.len()) {
            return Err(unknown("terminal"));
        }
        for rule in &self.rules {
            let mut stack = vec![(&rule.body, 1u64)];
            while let Some((node, depth)) = stack.pop() {
                check(Resource::Nesting, depth, NESTING)?;
                match node {
                    Node::Empty => {}
                    Node::Terminal(at) if *at >= self.terminals.len() => {
                        return Err(unknown("terminal"));
                    }
                    Node::Rule(at) if *at >= self.rules.len() => return Err(unknown("rule")),
                    Node::Terminal(_) | Node::Rule(_) => {}
                    Node::Sequence(list) | Node::Choice(list) => {
                        stack.extend(list.iter().map(|one| (one, depth + 1)));
                    }
                    Node::Repeat(one, min, max) => {
                        if max.is_some_and(|max| max < *min) {
                            let message = format!("a repetition from {min} to less is empty");
                            return Err(Error::Language { message, span: rule.span, hint: None });
                        }
                        stack.push((one, depth + 1));
                    }
                }
            }
        }
        Ok(())
    }
}
