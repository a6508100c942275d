//! Texts of grammars: one reader a syntax, one tree, one way from the tree to a [`Grammar`].

mod build;
mod common;
mod ebnf;
mod edges;
mod except;
mod gbnf;
mod ignored;
mod lark;
mod leaves;
mod levels;
mod marks;
mod order;
mod regular;
mod repeats;
mod scanner;
mod shape;
mod trees;

use formalm_automata::{Error, Expression, Span};

use crate::grammar::{Grammar, Lexing};
use crate::shown::{Shaped, Shown};
use leaves::Leaf;
pub use levels::Levels;

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

/// Reads the text of a grammar. Without a choice of `lexing`, Lark's lexemes are the longest and
/// those of the other syntaxes are read in any way. `start` is the rule to start with; without
/// one it is `start`, `root`, or the first rule, as the syntax has it.
///
/// # Errors
///
/// [`Error::Language`] with the place, and its line in the message, for what is no grammar and
/// for what is not supported; [`Error::Limit`] for nesting and templates without end.
///
/// ```
/// use formalm_grammar::{Syntax, parse};
///
/// let grammar = parse("root ::= \"(\" root \")\" | [0-9]+", Syntax::Gbnf, None, None)?;
/// assert_eq!(grammar.rules.len(), 1);
/// # Ok::<(), formalm_automata::Error>(())
/// ```
pub fn parse(
    text: &str,
    syntax: Syntax,
    lexing: Option<Lexing>,
    start: Option<&str>,
) -> Result<Grammar, Error> {
    parse_with(text, syntax, lexing, start, &[], None)
}

/// Reads a text of Lark whose declared terminals are given as languages. They compete as patterns
/// without end that are written where they first occur. With `levels`, columns tell two of them.
///
/// # Errors
///
/// As [`parse`]; also for languages of names that the text does not declare, and for readings and
/// syntaxes that have no place for them.
pub fn parse_with(
    text: &str,
    syntax: Syntax,
    lexing: Option<Lexing>,
    start: Option<&str>,
    languages: &[(String, Expression)],
    levels: Option<&Levels>,
) -> Result<Grammar, Error> {
    let (grammar, _) = read(text, syntax, lexing, start, languages, levels, false)?;
    Ok(regular::merged(grammar))
}

/// Reads a text with what it says of trees. All parts stay as they are written, where a machine
/// would read regular ones as one symbol.
///
/// # Errors
///
/// As [`parse_with`].
pub fn parse_shaped(
    text: &str,
    syntax: Syntax,
    lexing: Option<Lexing>,
    start: Option<&str>,
    languages: &[(String, Expression)],
    levels: Option<&Levels>,
) -> Result<Shaped, Error> {
    let (grammar, shown) = read(text, syntax, lexing, start, languages, levels, true)?;
    Ok(Shaped { grammar, shown })
}

fn read(
    text: &str,
    syntax: Syntax,
    lexing: Option<Lexing>,
    start: Option<&str>,
    languages: &[(String, Expression)],
    levels: Option<&Levels>,
    shaped: bool,
) -> Result<(Grammar, Vec<Shown>), Error> {
    if levels.is_some() && syntax != Syntax::Lark {
        return Err(Error::Language {
            message: "indentation is told in Lark text, whose terminals have names".to_owned(),
            span: None,
            hint: Some("write the grammar in the syntax of Lark".to_owned()),
        });
    }
    if !languages.is_empty() && (syntax != Syntax::Lark || lexing == Some(Lexing::First)) {
        return Err(Error::Language {
            message: "languages are terminals of Lark text whose lexemes are the longest, or read \
                      in any way"
                .to_owned(),
            span: None,
            hint: Some("write them as patterns".to_owned()),
        });
    }
    let source = match syntax {
        Syntax::Lark => lark::read(text)?,
        Syntax::Gbnf => gbnf::read(text)?,
        Syntax::Ebnf => ebnf::read(text)?,
    };
    if lexing == Some(Lexing::First) && syntax != Syntax::Lark {
        return Err(Error::Language {
            message: "the first lexeme in Lark's order is a reading of Lark text only".to_owned(),
            span: None,
            hint: Some("read lexemes in any way, or the longest".to_owned()),
        });
    }
    let default = if syntax == Syntax::Lark { Lexing::Longest } else { Lexing::Any };
    let lexing = lexing.unwrap_or(default);
    let first = match syntax {
        Syntax::Lark => Some("start".to_owned()),
        Syntax::Gbnf => Some("root".to_owned()),
        Syntax::Ebnf => source.rules.first().map(|rule| rule.name.clone()),
    };
    let start = start.map(str::to_owned).or(first).unwrap_or_default();
    build::grammar(text, source, lexing, &start, languages, levels, shaped)
}

/// A right-hand side as written.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(Leaf),
    Name(String, Vec<Tree>, Span),
    Sequence(Vec<Tree>),
    Choice(Vec<Tree>),
    Repeat(Box<Tree>, u32, Option<u32>),
    /// An optional part that leaves a mark in trees where it is not there.
    Maybe(Box<Tree>),
    /// What is in the first and not in the second; both are regular.
    Except(Box<Tree>, Box<Tree>, Span),
    /// What is in all of them; they are regular.
    Both(Vec<Tree>, Span),
    /// The texts that are not in it; it is regular.
    Outside(Box<Tree>, Span),
}

/// A definition of a rule or, in Lark, of a template.
#[derive(Clone, Debug)]
struct RuleSource {
    name: String,
    parameters: Vec<String>,
    body: Tree,
    span: Span,
    shown: Shown,
}

/// A definition of a terminal.
#[derive(Clone, Debug)]
struct TerminalSource {
    name: String,
    priority: i64,
    body: Tree,
    span: Span,
}

/// Everything a text defines.
#[derive(Clone, Debug, Default)]
struct Source {
    rules: Vec<RuleSource>,
    terminals: Vec<TerminalSource>,
    ignored: Vec<(Tree, Span)>,
    whole: Vec<(Tree, Span)>,
    declared: Vec<(String, Span)>,
    notes: Vec<crate::grammar::Note>,
}
