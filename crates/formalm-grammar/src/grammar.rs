//! The data of a grammar: rules over terminals, as a notation's reader builds them.

use std::sync::Arc;

use formalm_automata::Expression;
use formalm_core::{Error, Machine, Resource, SourceSpan};

use crate::indentation::{Indentation, MAX_COLUMN};
use crate::limits::check;

/// The rule that splits the input into lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lexing {
    /// Every split counts: the pure context-free language.
    Any,
    /// The longest lexeme of an allowed terminal always wins. Among terminals that match the same
    /// string, the first in [`Grammar::terminals`] wins.
    Longest,
    /// The first terminal in [`Grammar::terminals`] that is allowed and matches wins, with its
    /// longest lexeme. The language of a terminal holds the lexemes that its pattern prefers.
    First,
}

/// A context-free grammar: immutable data, built by a notation's reader or by hand.
///
/// ```
/// use formalm_grammar::{GrammarAutomaton, Syntax, parse};
/// use formalm_core::{LazyDfa, ReadingHints};
///
/// let grammar = parse("root ::= \"(\" root \")\" | [0-9]+", Syntax::Gbnf, None, None)?;
/// let automaton = GrammarAutomaton::new(&grammar, Default::default())?;
/// assert!(automaton.accepts_from(automaton.start(), b"((42))")?);
/// assert!(!automaton.accepts_from(automaton.start(), b"((42)")?);
/// # Ok::<(), formalm_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Grammar {
    /// The terminals, in order of priority.
    pub terminals: Vec<Terminal>,
    /// The rules; bodies refer to them by index.
    pub rules: Vec<Rule>,
    /// Terminals that may occur before, between and after all others.
    pub ignored: Vec<usize>,
    /// Terminals that are never read and that no lexeme may end inside: a lexeme is rejected if the
    /// longest of these matches extends beyond it. Only with [`Lexing::Longest`].
    pub whole: Vec<usize>,
    /// The start rule.
    pub start: usize,
    /// The rule that splits the input into lexemes.
    pub lexing: Lexing,
    /// Strings that are read as lexemes of a pattern, with [`Lexing::First`].
    pub replacements: Vec<LexemeReplacement>,
    /// The terminals of lines and indentation levels, if indentation matters.
    pub indentation: Option<Indentation>,
    /// The named captures.
    pub captures: Vec<Capture>,
    /// Names of the special tokens in the grammar text, in order of occurrence.
    pub special_tokens: Vec<String>,
    /// Names that the start rule of the grammar text needs. Some occur only in what becomes a
    /// terminal, such as the sides of a difference, or in an alternative that derives nothing.
    pub needed_names: Vec<String>,
    /// Remarks for the user about how the grammar was read.
    pub notes: Vec<GrammarNote>,
}

/// A lexeme of one terminal that becomes a lexeme of another one, where both are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LexemeReplacement {
    /// The terminal that is read.
    pub pattern: usize,
    /// The terminal that the lexeme becomes if it matches too; the first of several wins.
    pub text: usize,
    /// `true` if the string is not read by itself where the pattern is allowed.
    pub only: bool,
}

/// A rule or terminal whose strings are captured under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The name of the capture.
    pub name: String,
    /// The rule or terminal.
    pub symbol: String,
    /// Trailing bytes that are not captured.
    pub stop_bytes: usize,
    /// The definition in the source.
    pub span: SourceSpan,
}

/// A remark on a construct that has less effect than it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarNote {
    /// One sentence without a full stop.
    pub message: String,
    /// The position in the source.
    pub span: Option<SourceSpan>,
}

/// A sublanguage: a nonempty language of any kind, read by a machine of its own.
#[derive(Clone, Debug)]
pub struct Sublanguage {
    /// The machine of the sublanguage; exact.
    pub machine: Arc<dyn Machine>,
    /// `true` if every member is valid UTF-8.
    pub is_text: bool,
}

/// A language that the parser sees as one symbol.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// The name shown in messages.
    pub name: String,
    /// The strings it matches; an [`Expression::lexeme`] if it has lookahead.
    pub language: Expression,
    /// A sublanguage in place of `language`. Nothing competes with it, and it may end after any of
    /// its members, regardless of [`Lexing`].
    pub sublanguage: Option<Sublanguage>,
    /// The definition in the source.
    pub span: Option<SourceSpan>,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The name of the rule.
    pub name: String,
    /// The right-hand side.
    pub body: RuleBody,
    /// The definition in the source.
    pub span: Option<SourceSpan>,
}

/// A right-hand side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleBody {
    /// The empty string.
    Empty,
    /// A terminal, by index.
    Terminal(usize),
    /// A rule, by index.
    Rule(usize),
    /// A concatenation.
    Sequence(Vec<RuleBody>),
    /// Alternatives.
    Choice(Vec<RuleBody>),
    /// A repetition with its minimum and maximum count; `None` is unbounded.
    Repeat(Box<RuleBody>, u32, Option<u32>),
}

/// Maximum nesting depth of one right-hand side. Chosen, not measured; the reader and the lowering
/// recurse to this depth.
pub(crate) const NESTING: u64 = 200;

impl Grammar {
    /// Refuses unknown terminals, and indentation combined with [`Lexing::Any`].
    fn check_indentation(&self) -> Result<(), Error> {
        let Some(one) = &self.indentation else { return Ok(()) };
        let refused = |message: &str, hint: &str| {
            let (message, hint) = (message.to_owned(), Some(hint.to_owned()));
            Err(Error::Language { message, span: None, hint })
        };
        if self.lexing == Lexing::Any {
            return refused(
                "indentation requires lexing=\"longest\" or \"first\": with lexing=\"any\", a line \
                 could start at any of its spaces",
                "use lexing=\"longest\", or \"first\" as in Lark",
            );
        }
        let line_terminals = [one.newline, one.indent, one.dedent];
        let mut all = line_terminals.iter().chain(&one.opening).chain(&one.closing);
        if all.any(|&at| at >= self.terminals.len()) {
            return refused(
                "indentation refers to a terminal that does not exist",
                "name a terminal of the grammar",
            );
        }
        if line_terminals.iter().any(|at| self.ignored.contains(at)) {
            return refused(
                "a line-break or indentation terminal is ignored",
                "remove it from %ignore; line breaks within brackets are skipped anyway",
            );
        }
        if one.tab == 0
            || one.tab > 100
            || one.widest == 0
            || one.widest > MAX_COLUMN
            || one.levels < 2
        {
            return refused(
                "tab width must be 1 to 100, maximum indentation 1 to 4095, and maximum levels at \
                 least 2",
                "omit them to use the defaults",
            );
        }
        Ok(())
    }

    /// Refuses indices that are out of range and bodies that are nested too deeply.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let unknown = |what: &str| {
            Error::language(format!("the grammar refers to a {what} that does not exist"), None)
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
                    RuleBody::Empty => {}
                    RuleBody::Terminal(at) if *at >= self.terminals.len() => {
                        return Err(unknown("terminal"));
                    }
                    RuleBody::Rule(at) if *at >= self.rules.len() => return Err(unknown("rule")),
                    RuleBody::Terminal(_) | RuleBody::Rule(_) => {}
                    RuleBody::Sequence(list) | RuleBody::Choice(list) => {
                        stack.extend(list.iter().map(|one| (one, depth + 1)));
                    }
                    RuleBody::Repeat(one, min, max) => {
                        if max.is_some_and(|max| max < *min) {
                            let message =
                                format!("a repetition with minimum {min} has a smaller maximum");
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
