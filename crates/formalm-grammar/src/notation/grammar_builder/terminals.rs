//! The terminals of a grammar under construction. Includes those of `%ignore` and `%whole`.

use formalm_automata::Expression;
use formalm_core::{Error, SourceSpan};
use formalm_regex::{self as syntax};
use rustc_hash::FxHashMap;

use super::{Definitions, MAX_DEPTH};
use crate::grammar::{GrammarNote, Lexing, Terminal};
use crate::notation::SyntaxTree;
use crate::notation::atoms::{Atom, lookahead_expression, pattern_expression};
use crate::notation::lark::terminal_length::PatternLengths;
use crate::notation::lookaround::{is_lazy, lookaround_of, prefers_longest};
use crate::notation::syntax_tree::{to_source, unwrap_single};
use crate::notation::terminal_order::{RankedTerminal, TerminalRank};

/// The terminals so far, with what they were made of.
#[derive(Default)]
pub(super) struct TerminalTable {
    pub(super) terminals: Vec<RankedTerminal>,
    by_name: FxHashMap<String, usize>,
    by_atom: FxHashMap<String, usize>,
    /// Names that sort anonymous atoms, by identity.
    anonymous_names: FxHashMap<String, String>,
    pub(super) notes: Vec<GrammarNote>,
}

impl TerminalTable {
    pub(super) fn new(names: &Definitions<'_>) -> Result<TerminalTable, Error> {
        let anonymous_names = names.anonymous_names();
        let mut terminals = TerminalTable { anonymous_names, ..TerminalTable::default() };
        terminals.add_indent_terminals(names)?;
        Ok(terminals)
    }

    pub(super) fn push(&mut self, terminal: Terminal, kind: TerminalRank) -> usize {
        self.terminals.push(RankedTerminal { terminal, kind });
        self.terminals.len() - 1
    }

    /// Returns the terminal of a string or pattern in a rule.
    pub(super) fn anonymous(
        &mut self,
        atom: &Atom,
        names: &Definitions<'_>,
    ) -> Result<usize, Error> {
        if let Some(&at) = self.by_atom.get(&atom.identity) {
            // Rules are translated in order of use, so an earlier occurrence may come later.
            let span = &mut self.terminals[at].terminal.span;
            *span = span.map(|met| if atom.span.start < met.start { atom.span } else { met });
            return Ok(at);
        }
        if let Some(&source) = names.named_atoms.get(&atom.identity) {
            return self.named(&source.name, source.span, names);
        }
        let sort_name = self.anonymous_names.get(&atom.identity).cloned().unwrap_or_default();
        let kind = TerminalRank {
            priority: 0,
            text: atom.text.clone(),
            pattern_lengths: PatternLengths::of_atom(atom),
            sort_name,
        };
        let (name, node) = (atom.source_text.clone(), atom.node.clone());
        let at = self.terminal(name, node, kind, atom.span, names)?;
        self.by_atom.insert(atom.identity.clone(), at);
        Ok(at)
    }

    /// Returns the terminal of a name.
    pub(super) fn named(
        &mut self,
        name: &str,
        span: SourceSpan,
        names: &Definitions<'_>,
    ) -> Result<usize, Error> {
        if let Some(&at) = self.by_name.get(name) {
            return Ok(at);
        }
        if let Some(&language) = names.given.get(name) {
            if name.starts_with('<') {
                let at = self.special_terminal(name, language.clone(), span);
                self.by_name.insert(name.to_owned(), at);
                return Ok(at);
            }
            let declared = names.source.declared.iter().find(|one| one.0 == *name);
            let span = declared.map_or(span, |one| one.1);
            return self.language_terminal(name, 0, language.clone(), span, names);
        }
        if names.embedded.contains_key(name) {
            let message = format!("{name} is an embedded language, which is allowed in rules only");
            let hint = Some("if it is regular, declare it with a name in capitals");
            return Err(names.refuse(span, &message, hint));
        }
        let Some(&source) = names.defined.get(name) else {
            return Err(names.undefined(name, span));
        };
        if names.algebra_terminals.contains(name) {
            let language = names.terminal_language(source, MAX_DEPTH)?;
            return self.language_terminal(name, source.priority, language, source.span, names);
        }
        let node = names.pattern(&source.body, MAX_DEPTH, source.span)?;
        let kind = TerminalRank {
            priority: source.priority,
            text: names.single_atom(&source.body, MAX_DEPTH).and_then(|atom| atom.text.clone()),
            pattern_lengths: names.pattern_lengths(&source.body),
            sort_name: name.to_owned(),
        };
        let name = name.to_owned();
        let at = self.terminal(name.clone(), node, kind, source.span, names)?;
        self.by_name.insert(name, at);
        Ok(at)
    }

    /// Adds a terminal given as a language; it competes as a pattern of unbounded length.
    pub(super) fn language_terminal(
        &mut self,
        name: &str,
        priority: i64,
        language: Expression,
        span: SourceSpan,
        names: &Definitions<'_>,
    ) -> Result<usize, Error> {
        if names.lexing == Lexing::First {
            let message = format!(
                "{name} is defined by language operators, which lexing=\"first\" does not support"
            );
            let hint = Some("use lexing=\"longest\" or lexing=\"any\"");
            return Err(names.refuse(span, &message, hint));
        }
        let kind = TerminalRank {
            priority,
            text: None,
            pattern_lengths: PatternLengths::unbounded(),
            sort_name: name.to_owned(),
        };
        self.by_name.insert(name.to_owned(), self.terminals.len());
        let terminal =
            Terminal { name: name.to_owned(), language, sublanguage: None, span: Some(span) };
        Ok(self.push(terminal, kind))
    }

    /// Returns the terminal of a language of any kind, if a name denotes one.
    pub(super) fn embedded(
        &mut self,
        name: &str,
        span: SourceSpan,
        names: &Definitions<'_>,
    ) -> Option<usize> {
        let embedded = Some((*names.embedded.get(name)?).clone());
        if let Some(&at) = self.by_name.get(name) {
            return Some(at);
        }
        self.by_name.insert(name.to_owned(), self.terminals.len());
        // An inline language is named by its notation.
        let shown = name.split('@').next().unwrap_or(name).to_owned();
        let kind = TerminalRank {
            priority: 0,
            text: None,
            pattern_lengths: PatternLengths::unbounded(),
            sort_name: name.to_owned(),
        };
        let language = Expression::literals(Vec::new());
        let terminal = Terminal { name: shown, language, sublanguage: embedded, span: Some(span) };
        Some(self.push(terminal, kind))
    }

    pub(super) fn terminal(
        &mut self,
        name: String,
        mut root: syntax::PatternNode,
        kind: TerminalRank,
        span: SourceSpan,
        names: &Definitions<'_>,
    ) -> Result<usize, Error> {
        let lookaround = lookaround_of(&root);
        if let Some(why) = lookaround.before {
            let message = format!("the terminal {name} is not supported: {why}");
            let hint = "a lexeme starts where the previous one ended, so the assertion can often \
                        be removed";
            return Err(names.refuse(span, &message, Some(hint)));
        }
        if names.lexing == Lexing::Longest && is_lazy(&root) {
            let message = format!(
                "the terminal {name} has lazy quantifiers: its lexemes are its preferred matches, \
                 not the longest"
            );
            self.notes.push(GrammarNote { message, span: Some(span) });
            root = syntax::PatternNode::Atomic(Box::new(root));
        }
        if names.lexing == Lexing::First && kind.text.is_none() && !prefers_longest(&root) {
            root = syntax::PatternNode::Atomic(Box::new(root));
        }
        let language =
            if lookaround.ahead { lookahead_expression(root) } else { pattern_expression(root) };
        let terminal = Terminal { name, language, sublanguage: None, span: Some(span) };
        Ok(self.push(terminal, kind))
    }

    pub(super) fn ignored_terminals(
        &mut self,
        names: &Definitions<'_>,
    ) -> Result<Vec<usize>, Error> {
        names.source.ignored.iter().map(|(tree, span)| self.ignored(tree, *span, names)).collect()
    }

    fn ignored(
        &mut self,
        tree: &SyntaxTree,
        span: SourceSpan,
        names: &Definitions<'_>,
    ) -> Result<usize, Error> {
        match unwrap_single(tree) {
            SyntaxTree::Name(name, _, span) => self.named(name, *span, names),
            // A terminal of its own, even if another one has the same string.
            SyntaxTree::Atom(atom) if names.lexing == Lexing::First => {
                let sort_name = format!("__IGNORE_{}", self.terminals.len());
                let (text, pattern_lengths) = (atom.text.clone(), PatternLengths::of_atom(atom));
                let kind = TerminalRank { priority: 0, text, pattern_lengths, sort_name };
                let (name, node) = (atom.source_text.clone(), atom.node.clone());
                let at = self.terminal(name, node, kind, atom.span, names)?;
                self.by_atom.insert(atom.identity.clone(), at);
                Ok(at)
            }
            SyntaxTree::Atom(atom) => self.anonymous(atom, names),
            tree if names.uses_algebra(tree) => {
                let language = names.regular(tree, MAX_DEPTH, span)?;
                self.language_terminal(&to_source(tree), 0, language, span, names)
            }
            tree => {
                let node = names.pattern(tree, MAX_DEPTH, span)?;
                let sort_name = format!("__IGNORE_{}", self.terminals.len());
                let kind = TerminalRank {
                    priority: 0,
                    text: None,
                    pattern_lengths: names.pattern_lengths(tree),
                    sort_name,
                };
                self.terminal(to_source(tree), node, kind, span, names)
            }
        }
    }

    /// Returns the terminals that no lexeme may end inside. They are distinct from those of rules.
    pub(super) fn uncuttable_terminals(
        &mut self,
        names: &Definitions<'_>,
    ) -> Result<Vec<usize>, Error> {
        names.source.whole.iter().map(|(tree, span)| self.whole(tree, *span, names)).collect()
    }

    fn whole(
        &mut self,
        tree: &SyntaxTree,
        span: SourceSpan,
        names: &Definitions<'_>,
    ) -> Result<usize, Error> {
        if names.lexing != Lexing::Longest {
            let message = "%whole requires lexing=\"longest\"";
            let hint = Some("pass lexing=\"longest\", or remove %whole");
            return Err(names.refuse(span, message, hint));
        }
        let name = format!("%whole {}", to_source(tree));
        let language = names.regular(tree, MAX_DEPTH, span)?;
        let kind = TerminalRank {
            priority: i64::MIN,
            text: None,
            pattern_lengths: PatternLengths::default(),
            sort_name: name.clone(),
        };
        let terminal = Terminal { name, language, sublanguage: None, span: Some(span) };
        Ok(self.push(terminal, kind))
    }

    /// Adds the terminal of a special token. No other terminal shares a prefix with it, so its
    /// priority is irrelevant.
    pub(super) fn special_terminal(
        &mut self,
        name: &str,
        language: Expression,
        span: SourceSpan,
    ) -> usize {
        let (pattern_lengths, sort_name) = (PatternLengths::default(), name.to_owned());
        let kind = TerminalRank { priority: 0, text: None, pattern_lengths, sort_name };
        let terminal =
            Terminal { name: name.to_owned(), language, sublanguage: None, span: Some(span) };
        self.push(terminal, kind)
    }

    /// Returns the terminal of a difference.
    pub(super) fn difference(
        &mut self,
        first: &SyntaxTree,
        second: &SyntaxTree,
        span: SourceSpan,
        names: &Definitions<'_>,
    ) -> Result<usize, Error> {
        let name = format!("{} - {}", to_source(first), to_source(second));
        if let Some(&at) = self.by_atom.get(&name) {
            return Ok(at);
        }
        let whole = names.regular(first, MAX_DEPTH, span)?;
        let without = names.regular(second, MAX_DEPTH, span)?;
        let language = whole.difference(without)?;
        let terminal =
            Terminal { name: name.clone(), language, sublanguage: None, span: Some(span) };
        let (pattern_lengths, sort_name) = (PatternLengths::default(), name.clone());
        let kind = TerminalRank { priority: 0, text: None, pattern_lengths, sort_name };
        let at = self.push(terminal, kind);
        self.by_atom.insert(name, at);
        Ok(at)
    }
}
