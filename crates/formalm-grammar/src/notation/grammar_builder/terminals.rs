//! Translation of terminals: the parts of each become one pattern or one language. Includes the
//! terminals of `%ignore` and `%whole`.

use formalm_automata::Expression;
use formalm_core::{Error, Resource, SourceSpan};
use formalm_regex::{self as syntax};

use super::{GrammarBuilder, MAX_DEPTH, MAX_PARTS};
use crate::grammar::{GrammarNote, Lexing, Terminal};
use crate::limits::check;
use crate::notation::SyntaxTree;
use crate::notation::atoms::{Atom, lookahead_expression, pattern_expression};
use crate::notation::lark::terminal_length;
use crate::notation::lark::terminal_length::PatternLengths;
use crate::notation::lookaround::{is_lazy, lookaround_of, prefers_longest};
use crate::notation::syntax_tree::{to_source, unwrap_single};
use crate::notation::terminal_order::{RankedTerminal, TerminalRank};

impl<'a> GrammarBuilder<'a> {
    /// Returns the string or pattern that a part of a terminal consists of, following names.
    pub(in crate::notation) fn single_atom(
        &self,
        tree: &'a SyntaxTree,
        depth: usize,
    ) -> Option<&'a Atom> {
        match unwrap_single(tree) {
            SyntaxTree::Atom(atom) => Some(atom),
            SyntaxTree::Name(name, ..) if depth > 0 => {
                let source = self.defined.get(name.as_str())?;
                let free = !source.attributes.are_bounds();
                self.single_atom(&source.body, depth - 1).filter(|_| free)
            }
            _ => None,
        }
    }

    /// Returns the terminal of a string or pattern in a rule.
    pub(in crate::notation) fn anonymous(&mut self, atom: &Atom) -> Result<usize, Error> {
        if let Some(&at) = self.by_atom.get(&atom.identity) {
            // Rules are translated in order of use, so an earlier occurrence may come later.
            let span = &mut self.terminals[at].terminal.span;
            *span = span.map(|met| if atom.span.start < met.start { atom.span } else { met });
            return Ok(at);
        }
        if let Some(&source) = self.named_atoms.get(&atom.identity) {
            return self.named(&source.name, source.span);
        }
        let sort_name = self.anonymous_names.get(&atom.identity).cloned().unwrap_or_default();
        let kind = TerminalRank {
            priority: 0,
            text: atom.text.clone(),
            pattern_lengths: PatternLengths::of_atom(atom),
            sort_name,
        };
        let at = self.terminal(atom.source_text.clone(), atom.node.clone(), kind, atom.span)?;
        self.by_atom.insert(atom.identity.clone(), at);
        Ok(at)
    }

    /// Returns the terminal of a name.
    pub(in crate::notation) fn named(
        &mut self,
        name: &str,
        span: SourceSpan,
    ) -> Result<usize, Error> {
        if let Some(&at) = self.by_name.get(name) {
            return Ok(at);
        }
        if let Some(&language) = self.given.get(name) {
            if name.starts_with('<') {
                let at = self.special_terminal(name, language.clone(), span);
                self.by_name.insert(name.to_owned(), at);
                return Ok(at);
            }
            let declared = self.source.declared.iter().find(|one| one.0 == *name);
            let span = declared.map_or(span, |one| one.1);
            return self.language_terminal(name, 0, language.clone(), span);
        }
        if self.embedded.contains_key(name) {
            let message = format!("{name} is an embedded language, which is allowed in rules only");
            let hint = Some("if it is regular, declare it with a name in capitals");
            return Err(self.refuse(span, &message, hint));
        }
        let Some(&source) = self.defined.get(name) else {
            return Err(self.refuse(span, &format!("{name} is not defined"), None));
        };
        if self.algebra_terminals.contains(name) {
            let language = self.terminal_language(source, MAX_DEPTH)?;
            return self.language_terminal(name, source.priority, language, source.span);
        }
        let node = self.pattern(&source.body, MAX_DEPTH, source.span)?;
        let kind = TerminalRank {
            priority: source.priority,
            text: self.single_atom(&source.body, MAX_DEPTH).and_then(|atom| atom.text.clone()),
            pattern_lengths: self.pattern_lengths(&source.body),
            sort_name: name.to_owned(),
        };
        let name = name.to_owned();
        let at = self.terminal(name.clone(), node, kind, source.span)?;
        self.by_name.insert(name, at);
        Ok(at)
    }

    /// Adds a terminal given as a language; it competes as a pattern of unbounded length.
    pub(in crate::notation) fn language_terminal(
        &mut self,
        name: &str,
        priority: i64,
        language: Expression,
        span: SourceSpan,
    ) -> Result<usize, Error> {
        if self.lexing == Lexing::First {
            let message = format!(
                "{name} is defined by language operators, which lexing=\"first\" does not support"
            );
            let hint = Some("use lexing=\"longest\" or lexing=\"any\"");
            return Err(self.refuse(span, &message, hint));
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
        self.terminals.push(RankedTerminal { terminal, kind });
        Ok(self.terminals.len() - 1)
    }

    /// Notes priorities that have no effect because all lexemes are read.
    pub(super) fn note_unused_priorities(&mut self) {
        for one in self.source.terminals.iter().filter(|one| one.priority != 0) {
            let message = format!("the priority of {} has no effect with lexing=\"any\"", one.name);
            self.notes.push(GrammarNote { message, span: Some(one.span) });
        }
    }

    /// Returns the terminal of a language of any kind, if a name denotes one.
    pub(super) fn embedded(&mut self, name: &str, span: SourceSpan) -> Option<usize> {
        let embedded = Some((*self.embedded.get(name)?).clone());
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
        self.terminals.push(RankedTerminal { terminal, kind });
        Some(self.terminals.len() - 1)
    }

    /// Translates a part of a terminal to a pattern.
    pub(in crate::notation) fn pattern(
        &self,
        tree: &SyntaxTree,
        depth: usize,
        span: SourceSpan,
    ) -> Result<syntax::PatternNode, Error> {
        if depth == 0 {
            let message = "a terminal refers to itself, or is nested too deeply";
            return Err(self.refuse(span, message, Some("make it a rule: rules may be recursive")));
        }
        // Terminals inside terminals are expanded, which can double at every level.
        self.parts.set(self.parts.get() + 1);
        check(Resource::Terms, self.parts.get(), MAX_PARTS)?;
        let all = |list: &[SyntaxTree]| {
            list.iter().map(|one| self.pattern(one, depth - 1, span)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match tree {
            SyntaxTree::Atom(atom) => atom.node.clone(),
            SyntaxTree::Name(name, _, place) => match self.defined.get(name.as_str()) {
                Some(source) => self.pattern(&source.body, depth - 1, *place)?,
                None => {
                    let name = name.split('@').next().unwrap_or(name);
                    let message = format!("{name} is not a defined terminal");
                    return Err(self.refuse(
                        *place,
                        &message,
                        Some("a terminal may refer to terminals only"),
                    ));
                }
            },
            SyntaxTree::Sequence(list) => syntax::PatternNode::Concat(all(list)?),
            SyntaxTree::Choice(list) if self.lexing == Lexing::First => {
                // Lark sorts the alternatives inside a terminal in this order.
                let mut ranked: Vec<_> = list
                    .iter()
                    .map(|one| self.pattern_lengths(one).alternative_rank())
                    .zip(all(list)?)
                    .collect();
                ranked.sort_by_key(|one| one.0);
                syntax::PatternNode::Alternation(ranked.into_iter().map(|one| one.1).collect())
            }
            SyntaxTree::Choice(list) => syntax::PatternNode::Alternation(all(list)?),
            SyntaxTree::Difference(_, _, span)
            | SyntaxTree::Intersection(_, span)
            | SyntaxTree::Complement(_, span) => {
                return Err(self.refuse(
                    *span,
                    "a terminal may contain strings and patterns only",
                    None,
                ));
            }
            SyntaxTree::Optional(one) => syntax::PatternNode::Repeat {
                node: Box::new(self.pattern(one, depth - 1, span)?),
                min: 0,
                max: Some(1),
                lazy: false,
            },
            SyntaxTree::Repeat(one, min, max) => syntax::PatternNode::Repeat {
                node: Box::new(self.pattern(one, depth - 1, span)?),
                min: *min,
                max: *max,
                lazy: false,
            },
        })
    }

    pub(in crate::notation) fn pattern_lengths(&self, tree: &SyntaxTree) -> PatternLengths {
        terminal_length::pattern_lengths(tree, &|name| self.defined.get(name).copied(), MAX_DEPTH)
    }

    pub(in crate::notation) fn terminal(
        &mut self,
        name: String,
        mut root: syntax::PatternNode,
        kind: TerminalRank,
        span: SourceSpan,
    ) -> Result<usize, Error> {
        let lookaround = lookaround_of(&root);
        if let Some(why) = lookaround.before {
            let message = format!("the terminal {name} is not supported: {why}");
            let hint = "a lexeme starts where the previous one ended, so the assertion can often \
                        be removed";
            return Err(self.refuse(span, &message, Some(hint)));
        }
        if self.lexing == Lexing::Longest && is_lazy(&root) {
            let message = format!(
                "the terminal {name} has lazy quantifiers: its lexemes are its preferred matches, \
                 not the longest"
            );
            self.notes.push(GrammarNote { message, span: Some(span) });
            root = syntax::PatternNode::Atomic(Box::new(root));
        }
        if self.lexing == Lexing::First && kind.text.is_none() && !prefers_longest(&root) {
            root = syntax::PatternNode::Atomic(Box::new(root));
        }
        let language =
            if lookaround.ahead { lookahead_expression(root) } else { pattern_expression(root) };
        let terminal = Terminal { name, language, sublanguage: None, span: Some(span) };
        self.terminals.push(RankedTerminal { terminal, kind });
        Ok(self.terminals.len() - 1)
    }
}

impl GrammarBuilder<'_> {
    pub(in crate::notation) fn ignored_terminals(&mut self) -> Result<Vec<usize>, Error> {
        self.source.ignored.iter().map(|(tree, span)| self.ignored(tree, *span)).collect()
    }

    fn ignored(&mut self, tree: &SyntaxTree, span: SourceSpan) -> Result<usize, Error> {
        match unwrap_single(tree) {
            SyntaxTree::Name(name, _, span) => self.named(name, *span),
            // A terminal of its own, even if another one has the same string.
            SyntaxTree::Atom(atom) if self.lexing == Lexing::First => {
                let sort_name = format!("__IGNORE_{}", self.terminals.len());
                let (text, pattern_lengths) = (atom.text.clone(), PatternLengths::of_atom(atom));
                let kind = TerminalRank { priority: 0, text, pattern_lengths, sort_name };
                let at =
                    self.terminal(atom.source_text.clone(), atom.node.clone(), kind, atom.span)?;
                self.by_atom.insert(atom.identity.clone(), at);
                Ok(at)
            }
            SyntaxTree::Atom(atom) => self.anonymous(atom),
            tree if self.uses_algebra(tree) => {
                let language = self.regular(tree, MAX_DEPTH, span)?;
                self.language_terminal(&to_source(tree), 0, language, span)
            }
            tree => {
                let node = self.pattern(tree, MAX_DEPTH, span)?;
                let sort_name = format!("__IGNORE_{}", self.terminals.len());
                let kind = TerminalRank {
                    priority: 0,
                    text: None,
                    pattern_lengths: self.pattern_lengths(tree),
                    sort_name,
                };
                self.terminal(to_source(tree), node, kind, span)
            }
        }
    }

    /// Returns the terminals that no lexeme may end inside. They are distinct from those of rules.
    pub(in crate::notation) fn uncuttable_terminals(&mut self) -> Result<Vec<usize>, Error> {
        self.source.whole.iter().map(|(tree, span)| self.whole(tree, *span)).collect()
    }

    fn whole(&mut self, tree: &SyntaxTree, span: SourceSpan) -> Result<usize, Error> {
        if self.lexing != Lexing::Longest {
            let message = "%whole requires lexing=\"longest\"";
            let hint = Some("pass lexing=\"longest\", or remove %whole");
            return Err(self.refuse(span, message, hint));
        }
        let name = format!("%whole {}", to_source(tree));
        let language = self.regular(tree, MAX_DEPTH, span)?;
        let kind = TerminalRank {
            priority: i64::MIN,
            text: None,
            pattern_lengths: PatternLengths::default(),
            sort_name: name.clone(),
        };
        let terminal = Terminal { name, language, sublanguage: None, span: Some(span) };
        self.terminals.push(RankedTerminal { terminal, kind });
        Ok(self.terminals.len() - 1)
    }
}
