//! Texts of grammars: one reader a syntax, one tree, one way from the tree to a [`Grammar`].

mod atoms;
mod build;
mod ebnf;
mod gbnf;
mod lark;
mod lookaround;
mod parse_options;
mod quantifiers;
mod regular_rules;
mod scanner;
mod syntax_tree;
mod terminal_order;
mod wrong_syntax_hint;

use formalm_automata::{Error, Expression, Span};

use crate::grammar::{Grammar, Lexing};
use crate::trees::tree_shape::{Shaped, Shown};
use atoms::Atom;
pub use build::indent_terminals::Levels;
use lark::definition_attributes::DefinitionAttributes;
pub use lark::inline_languages::{Inlined, inlined};
pub use parse_options::{Options, Syntax};

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
    let start = start.map(str::to_owned);
    parse_with(text, &Options { lexing, start, ..Options::new(syntax) })
}

/// Reads a text with all that goes with it.
///
/// # Errors
///
/// As [`parse`]; also for languages of names that the text does not declare, and for readings and
/// syntaxes that have no place for them.
pub fn parse_with(text: &str, options: &Options) -> Result<Grammar, Error> {
    let (grammar, _) = read(text, options, false)?;
    Ok(regular_rules::merge_regular_rules(grammar))
}

/// Reads a text with what it says of trees. All parts stay as they are written, where a machine
/// would read regular ones as one symbol.
///
/// # Errors
///
/// As [`parse_with`].
pub fn parse_shaped(text: &str, options: &Options) -> Result<Shaped, Error> {
    let (grammar, shown) = read(text, options, true)?;
    Ok(Shaped { grammar, shown })
}

fn read(text: &str, options: &Options, shaped: bool) -> Result<(Grammar, Vec<Shown>), Error> {
    options.check()?;
    let source = read_source(text, options.syntax)
        .map_err(|error| wrong_syntax_hint::with_syntax_hint(error, text, options.syntax))?;
    build::grammar(text, source, options, shaped)
}

fn read_source(text: &str, syntax: Syntax) -> Result<GrammarSource, Error> {
    match syntax {
        Syntax::Lark => lark::read(text),
        Syntax::Gbnf => gbnf::read(text),
        Syntax::Ebnf => ebnf::read(text),
    }
}

/// A right-hand side as written.
#[derive(Clone, Debug)]
enum SyntaxTree {
    Atom(Atom),
    Name(String, Vec<SyntaxTree>, Span),
    Sequence(Vec<SyntaxTree>),
    Choice(Vec<SyntaxTree>),
    Repeat(Box<SyntaxTree>, u32, Option<u32>),
    /// An optional part that leaves a mark in trees where it is not there.
    Optional(Box<SyntaxTree>),
    /// What is in the first and not in the second; both are regular.
    Difference(Box<SyntaxTree>, Box<SyntaxTree>, Span),
    /// What is in all of them; they are regular.
    Intersection(Vec<SyntaxTree>, Span),
    /// The texts that are not in it; it is regular.
    Complement(Box<SyntaxTree>, Span),
}

/// A definition of a rule or, in Lark, of a template.
#[derive(Clone, Debug)]
struct RuleSource {
    name: String,
    parameters: Vec<String>,
    body: SyntaxTree,
    span: Span,
    shown: Shown,
    attributes: DefinitionAttributes,
}

/// A definition of a terminal.
#[derive(Clone, Debug)]
struct TerminalSource {
    name: String,
    priority: i64,
    body: SyntaxTree,
    span: Span,
    attributes: DefinitionAttributes,
    /// Its name in `common`, if it is imported from there.
    imported: Option<&'static str>,
}

/// Everything a text defines.
#[derive(Clone, Debug, Default)]
struct GrammarSource {
    rules: Vec<RuleSource>,
    terminals: Vec<TerminalSource>,
    ignored: Vec<(SyntaxTree, Span)>,
    whole: Vec<(SyntaxTree, Span)>,
    declared: Vec<(String, Span)>,
    inlined: Vec<Inlined>,
    /// Special tokens by their names, each once.
    special: Vec<(String, Expression)>,
    /// Trees keep all lexemes in all rules.
    keeps_all: bool,
    /// Optional parts leave no marks in trees where they are not there.
    without_placeholders: bool,
    notes: Vec<crate::grammar::Note>,
}
