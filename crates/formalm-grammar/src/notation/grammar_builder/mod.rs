//! Translation of syntax trees to a [`Grammar`]: names become indices, and the parts of a terminal
//! become one pattern.

pub(super) mod indent_terminals;
mod name_resolution;
mod omission_markers;
mod rule_bodies;
mod special_tokens;
mod terminal_algebra;
mod terminals;

use std::cell::Cell;

use formalm_automata::Expression;
use formalm_core::{Error, SourceSpan};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar::{Grammar, GrammarNote, Lexing, Rule, Sublanguage};
use crate::notation::grammar_builder::indent_terminals::IndentationNames;
use crate::notation::grammar_builder::omission_markers::TreeMarker;
use crate::notation::parse_options::ParseOptions;
use crate::notation::scanner::refusal;
use crate::notation::terminal_order::RankedTerminal;
use crate::notation::{GrammarSource, RuleSource, SyntaxTree, TerminalSource, terminal_order};
use crate::trees::tree_shape::RuleTreeShape;
pub(super) use rule_bodies::argument_context;

/// Maximum nesting of names in terminals. Chosen, not measured; the builder recurses to this depth.
pub(super) const MAX_DEPTH: usize = 100;
/// Maximum parts of all terminals together. Chosen, not measured.
pub(super) const MAX_PARTS: u64 = 1_000_000;

pub(super) struct GrammarBuilder<'a> {
    text: &'a str,
    pub(super) source: &'a GrammarSource,
    /// The names of the indentation terminals, if indentation matters.
    pub(super) levels: Option<&'a IndentationNames>,
    pub(super) lexing: Lexing,
    pub(super) defined: FxHashMap<&'a str, &'a TerminalSource>,
    /// Declared terminals given as languages.
    pub(super) given: FxHashMap<&'a str, &'a Expression>,
    /// Declared rules and inline languages given as languages of any kind.
    embedded: FxHashMap<&'a str, &'a Sublanguage>,
    /// Terminals combined from languages, not patterns.
    pub(super) algebra_terminals: FxHashSet<&'a str>,
    pub(super) templates: FxHashMap<&'a str, &'a RuleSource>,
    pub(super) terminals: Vec<RankedTerminal>,
    by_name: FxHashMap<String, usize>,
    pub(super) by_atom: FxHashMap<String, usize>,
    /// Named terminals that consist of one string or pattern, by its identity.
    pub(super) named_atoms: FxHashMap<String, &'a TerminalSource>,
    pub(super) rules: Vec<Rule>,
    /// The tree shape of each rule.
    pub(super) shown: Vec<RuleTreeShape>,
    /// `true` if rules are added for what trees omit.
    pub(super) shaped: bool,
    /// Rules of omitted lexemes and of placeholders.
    pub(super) tree_markers: FxHashMap<TreeMarker, usize>,
    instances: FxHashMap<String, usize>,
    /// Rules to translate: index, definition, and template arguments.
    queue: Vec<(usize, &'a RuleSource, Vec<SyntaxTree>)>,
    pub(super) notes: Vec<GrammarNote>,
    /// Names that sort anonymous atoms, by identity.
    anonymous_names: FxHashMap<String, String>,
    pub(super) parts: Cell<u64>,
    /// Parts of template arguments expanded so far.
    argument_context: Cell<u64>,
    /// `true` if rules may occur inside languages, because the notation has no terminals.
    pub(super) rules_within: bool,
}

/// Builds the grammar of a text.
pub(super) fn grammar(
    text: &str,
    source: GrammarSource,
    options: &ParseOptions,
    shaped: bool,
) -> Result<(Grammar, Vec<RuleTreeShape>), Error> {
    let (lexing, start) = (options.reading(), options.start_of(&source));
    let mut build = GrammarBuilder {
        text,
        source: &source,
        levels: options.indentation.as_ref(),
        lexing,
        defined: FxHashMap::default(),
        given: options
            .languages
            .iter()
            .chain(&source.special)
            .map(|(name, one)| (name.as_str(), one))
            .collect(),
        embedded: options.sublanguages.iter().map(|(name, one)| (name.as_str(), one)).collect(),
        algebra_terminals: FxHashSet::default(),
        templates: FxHashMap::default(),
        terminals: Vec::new(),
        by_name: FxHashMap::default(),
        by_atom: FxHashMap::default(),
        named_atoms: FxHashMap::default(),
        rules: Vec::new(),
        shown: Vec::new(),
        shaped,
        tree_markers: FxHashMap::default(),
        instances: FxHashMap::default(),
        queue: Vec::new(),
        notes: source.notes.clone(),
        anonymous_names: FxHashMap::default(),
        parts: Cell::new(0),
        argument_context: Cell::new(0),
        rules_within: source.terminals.is_empty(),
    };
    build.collect_names(&options.languages)?;
    build.anonymous_names = build.anonymous_names();
    build.check_sublanguage_names(&options.sublanguages)?;
    build.check_references()?;
    build.find_algebra_terminals();
    build.add_indent_terminals()?;
    let nowhere = SourceSpan { start: 0, end: 0 };
    let Some(&first) = build.templates.get(start.as_str()) else {
        return Err(build.missing_start(&start));
    };
    if !first.parameters.is_empty() {
        return Err(build.refuse(first.span, "a template cannot be the start rule", None));
    }
    // In Lark's order, an ignored string is ignored in rules too.
    let first = if lexing == Lexing::First { build.ignored_terminals()? } else { Vec::new() };
    let needed_symbols = build.needed_symbols(&start);
    build.check_unused_terminals(&needed_symbols)?;
    let unused_symbol_notes = build.unused_symbol_notes(&needed_symbols);
    let pattern_concat_notes = if lexing == Lexing::First {
        build.pattern_concat_notes(&needed_symbols)
    } else {
        Vec::new()
    };
    let mut needed: Vec<String> = needed_symbols.into_iter().map(str::to_owned).collect();
    needed.sort_unstable();
    build.notes.extend(unused_symbol_notes.into_iter().chain(pattern_concat_notes));
    let start = build.rule(&start, Vec::new(), nowhere)?;
    for rule in &source.rules {
        if rule.parameters.is_empty() {
            build.rule(&rule.name, Vec::new(), rule.span)?;
        }
    }
    let mut at = 0;
    while at < build.queue.len() {
        let (place, rule, arguments) = build.queue[at].clone();
        build.rules[place].body = match rule.attributes.are_bounds() {
            true => build.bounded_rule_body(rule)?,
            false => build.body(&rule.body, rule, &arguments)?,
        };
        at += 1;
    }
    let ignored = if lexing == Lexing::First { first } else { build.ignored_terminals()? };
    let whole = build.uncuttable_terminals()?;
    build.note_unreachable_captures();
    if lexing == Lexing::Any {
        build.note_unused_priorities();
    }
    if lexing == Lexing::Any && !ignored.is_empty() {
        let message = "lexing=\"any\" requires no separator between lexemes, so words may touch \
                       where whitespace is ignored";
        build.notes.push(GrammarNote { message: message.to_owned(), span: None });
    }
    let (indentation, captures) = (build.indentation()?, build.captures());
    let special = source.special.iter().map(|one| one.0.clone()).collect();
    let GrammarBuilder { terminals, rules, shown, notes, .. } = build;
    let grammar = terminal_order::order_terminals(
        terminals,
        Grammar {
            terminals: Vec::new(),
            rules,
            ignored,
            whole,
            start,
            lexing,
            replacements: Vec::new(),
            indentation,
            captures,
            special_tokens: special,
            needed_names: needed,
            notes,
        },
    )?;
    Ok((grammar, shown))
}

impl<'a> GrammarBuilder<'a> {
    pub(super) fn has_terminal(&self, name: &str) -> bool {
        self.defined.contains_key(name) || self.given.contains_key(name)
    }

    /// Builds the error for a missing start rule.
    fn missing_start(&self, name: &str) -> Error {
        let Some(first) = self.source.rules.first() else {
            let message = format!("the grammar has no start rule {name}, nor any other rule");
            return Error::Language { message, span: None, hint: None };
        };
        let message = format!("the grammar has no start rule {name}");
        let hint = format!("the first rule is {0}: rename it, or pass start=\"{0}\"", first.name);
        self.refuse(first.span, &message, Some(&hint))
    }

    /// Returns `true` for the name of a language of any kind.
    pub(super) fn is_embedded(&self, name: &str) -> bool {
        self.embedded.contains_key(name)
    }

    pub(super) fn refuse(&self, span: SourceSpan, message: &str, hint: Option<&str>) -> Error {
        refusal(self.text, span, message, hint)
    }
}
