//! Translation of syntax trees to a [`Grammar`]: names become indices, and the parts of a terminal
//! become one pattern.
//!
//! ```text
//!  GrammarSource ──► Definitions     what each name denotes; terminals as patterns or languages
//!                        ▼
//!                    TerminalTable   terminals by index      ◄──┐
//!                    RuleTable       rules by index             ├── GrammarBuilder translates bodies
//! ```

mod definitions;
pub(super) mod indent_terminals;
mod rule_bodies;
mod rules;
mod special_tokens;
mod terminal_languages;
mod terminals;

use formalm_core::{Error, SourceSpan};

use crate::grammar::{Grammar, GrammarNote, Lexing};
use crate::notation::parse_options::ParseOptions;
use crate::notation::{GrammarSource, terminal_order};
use crate::trees::tree_shape::RuleTreeShape;
pub(super) use definitions::Definitions;
use rule_bodies::argument_context;
use rules::RuleTable;
use terminals::TerminalTable;

/// Maximum nesting of names in terminals. Chosen, not measured; the builder recurses to this depth.
pub(super) const MAX_DEPTH: usize = 100;

struct GrammarBuilder<'a> {
    names: Definitions<'a>,
    terminals: TerminalTable,
    rules: RuleTable<'a>,
}

/// Builds the grammar of a text.
pub(super) fn grammar(
    text: &str,
    source: GrammarSource,
    options: &ParseOptions,
    shaped: bool,
) -> Result<(Grammar, Vec<RuleTreeShape>), Error> {
    let start = options.start_of(&source);
    let names = Definitions::new(text, &source, options)?;
    let terminals = TerminalTable::new(&names)?;
    let mut build = GrammarBuilder { names, terminals, rules: RuleTable::new(&source, shaped) };
    build.names.start_rule(&start)?;
    // In Lark's order, an ignored string is ignored in rules too.
    let lexing = build.names.lexing;
    let first = match lexing {
        Lexing::First => build.terminals.ignored_terminals(&build.names)?,
        _ => Vec::new(),
    };
    let mut notes = source.notes.clone();
    let needed_symbols = build.names.needed_symbols(&start);
    build.names.check_unused_terminals(&needed_symbols)?;
    notes.extend(build.names.unused_symbol_notes(&needed_symbols));
    if lexing == Lexing::First {
        notes.extend(build.names.pattern_concat_notes(&needed_symbols));
    }
    let mut needed: Vec<String> = needed_symbols.into_iter().map(str::to_owned).collect();
    needed.sort_unstable();
    let nowhere = SourceSpan { start: 0, end: 0 };
    let start = build.rules.rule(&start, Vec::new(), nowhere, &build.names)?;
    for rule in source.rules.iter().filter(|rule| rule.parameters.is_empty()) {
        build.rules.rule(&rule.name, Vec::new(), rule.span, &build.names)?;
    }
    let mut at = 0;
    while at < build.rules.queue.len() {
        let (place, rule, arguments) = build.rules.queue[at].clone();
        build.rules.rules[place].body = match rule.attributes.are_bounds() {
            true => build.bounded_rule_body(rule)?,
            false => build.body(&rule.body, rule, &arguments)?,
        };
        at += 1;
    }
    let GrammarBuilder { names, mut terminals, rules: RuleTable { rules, shown, .. } } = build;
    let ignored = match lexing {
        Lexing::First => first,
        _ => terminals.ignored_terminals(&names)?,
    };
    let whole = terminals.uncuttable_terminals(&names)?;
    let (indentation, captures) = (terminals.indentation(&names)?, names.captures());
    notes.append(&mut terminals.notes);
    notes.extend(names.unreachable_capture_notes());
    if lexing == Lexing::Any {
        notes.extend(unused_priority_notes(&source));
    }
    if lexing == Lexing::Any && !ignored.is_empty() {
        let message = "lexing=\"any\" requires no separator between lexemes, so words may touch \
                       where whitespace is ignored";
        notes.push(GrammarNote { message: message.to_owned(), span: None });
    }
    let grammar = terminal_order::order_terminals(
        terminals.terminals,
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
            special_tokens: source.special.iter().map(|one| one.0.clone()).collect(),
            needed_names: needed,
            notes,
        },
    )?;
    Ok((grammar, shown))
}

/// Returns notes on priorities that have no effect because all lexemes are read.
fn unused_priority_notes(source: &GrammarSource) -> impl Iterator<Item = GrammarNote> + '_ {
    source.terminals.iter().filter(|one| one.priority != 0).map(|one| {
        let message = format!("the priority of {} has no effect with lexing=\"any\"", one.name);
        GrammarNote { message, span: Some(one.span) }
    })
}
