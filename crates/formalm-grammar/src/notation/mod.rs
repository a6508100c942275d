//! Notations for grammars: readers for Lark, GBNF and EBNF, and the translation of their syntax
//! trees to a [`Grammar`].
//!
//! ```text
//!  text ─► lark │ gbnf │ ebnf ─► GrammarSource of SyntaxTrees ─► grammar_builder ─► terminal_order ─► regular_rules ─► Grammar
//! ```

mod atoms;
mod ebnf;
mod gbnf;
mod grammar_builder;
mod lark;
mod lookaround;
mod parse_options;
mod quantifiers;
mod regular_rules;
mod scanner;
mod syntax_tree;
mod terminal_order;
mod wrong_syntax_hint;

use formalm_automata::Expression;
use formalm_core::{Error, SourceSpan};

use crate::grammar::{Grammar, Lexing};
use crate::trees::tree_shape::{RuleTreeShape, ShapedGrammar};
use atoms::Atom;
pub use grammar_builder::indent_terminals::IndentationNames;
use lark::definition_attributes::DefinitionAttributes;
pub use lark::inline_languages::{InlineLanguage, inline_languages};
pub use parse_options::{ParseOptions, Syntax};

/// Parses a grammar text. `lexing` defaults to the longest lexeme for Lark and to [`Lexing::Any`]
/// for other notations. `start` defaults to `start` (Lark), `root` (GBNF) or the first rule (EBNF).
///
/// # Errors
///
/// [`Error::Language`] with the position, and with the line in its message, for syntax errors and
/// unsupported constructs; [`Error::Limit`] for excessive nesting and endless templates.
///
/// ```
/// use formalm_grammar::{Syntax, parse};
///
/// let grammar = parse("root ::= \"(\" root \")\" | [0-9]+", Syntax::Gbnf, None, None)?;
/// assert_eq!(grammar.rules.len(), 1);
/// # Ok::<(), formalm_core::Error>(())
/// ```
pub fn parse(
    text: &str,
    syntax: Syntax,
    lexing: Option<Lexing>,
    start: Option<&str>,
) -> Result<Grammar, Error> {
    let start = start.map(str::to_owned);
    parse_with(text, &ParseOptions { lexing, start, ..ParseOptions::new(syntax) })
}

/// Parses a grammar text with all options.
///
/// # Errors
///
/// As [`parse`]; also for languages under names that the text does not declare, and for notations
/// and lexing modes that do not support an option.
pub fn parse_with(text: &str, options: &ParseOptions) -> Result<Grammar, Error> {
    let (grammar, _) = read(text, options, false)?;
    Ok(regular_rules::merge_regular_rules(grammar))
}

/// Parses a grammar text with its tree shapes. Rules stay as written, while [`parse_with`] merges
/// regular ones into terminals.
///
/// # Errors
///
/// As [`parse_with`].
pub fn parse_shaped(text: &str, options: &ParseOptions) -> Result<ShapedGrammar, Error> {
    let (grammar, shown) = read(text, options, true)?;
    Ok(ShapedGrammar { grammar, tree_shapes: shown })
}

fn read(
    text: &str,
    options: &ParseOptions,
    shaped: bool,
) -> Result<(Grammar, Vec<RuleTreeShape>), Error> {
    options.check()?;
    let source = read_source(text, options.syntax)
        .map_err(|error| wrong_syntax_hint::with_syntax_hint(error, text, options.syntax))?;
    grammar_builder::grammar(text, source, options, shaped)
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
    Name(String, Vec<SyntaxTree>, SourceSpan),
    Sequence(Vec<SyntaxTree>),
    Choice(Vec<SyntaxTree>),
    Repeat(Box<SyntaxTree>, u32, Option<u32>),
    /// An optional part that leaves a placeholder in trees if absent.
    Optional(Box<SyntaxTree>),
    /// The first language without the second; both are regular.
    Difference(Box<SyntaxTree>, Box<SyntaxTree>, SourceSpan),
    /// The intersection of regular languages.
    Intersection(Vec<SyntaxTree>, SourceSpan),
    /// The complement of a regular language.
    Complement(Box<SyntaxTree>, SourceSpan),
}

/// The definition of a rule or, in Lark, of a template.
#[derive(Clone, Debug)]
struct RuleSource {
    name: String,
    parameters: Vec<String>,
    body: SyntaxTree,
    span: SourceSpan,
    shown: RuleTreeShape,
    attributes: DefinitionAttributes,
}

/// The definition of a terminal.
#[derive(Clone, Debug)]
struct TerminalSource {
    name: String,
    priority: i64,
    body: SyntaxTree,
    span: SourceSpan,
    attributes: DefinitionAttributes,
    /// Its name in `common`, if it was imported.
    imported: Option<&'static str>,
}

/// All definitions of a grammar text.
#[derive(Clone, Debug, Default)]
struct GrammarSource {
    rules: Vec<RuleSource>,
    terminals: Vec<TerminalSource>,
    ignored: Vec<(SyntaxTree, SourceSpan)>,
    whole: Vec<(SyntaxTree, SourceSpan)>,
    declared: Vec<(String, SourceSpan)>,
    inlined: Vec<InlineLanguage>,
    /// Special tokens by name, each once.
    special: Vec<(String, Expression)>,
    /// `true` if trees keep all lexemes in all rules.
    keeps_all: bool,
    /// `true` if absent optional parts leave no placeholders in trees.
    without_placeholders: bool,
    notes: Vec<crate::grammar::GrammarNote>,
}
