//! The rules of a grammar under construction: template instances, and the rules that mark what
//! trees omit.
//!
//! *Tree markers* are rules added for omitted lexemes and for placeholders, so that right-hand sides
//! stay unchanged.

use std::cell::Cell;

use formalm_core::{Error, Resource, SourceSpan};
use rustc_hash::FxHashMap;

use super::rule_bodies::{HIDE_STRINGS, KEEP_STRINGS};
use super::{Definitions, MAX_DEPTH, TerminalTable};
use crate::grammar::{Rule, RuleBody};
use crate::limits::check;
use crate::notation::syntax_tree::{keep_all_strings, substitute, to_source, weight};
use crate::notation::{GrammarSource, RuleSource, SyntaxTree};
use crate::trees::tree_shape::{RuleKind, RuleTreeShape};

/// Maximum number of template instances. Chosen, not measured.
const MAX_TEMPLATE_INSTANCES: usize = 10_000;
/// Maximum parts of template arguments expanded in all rules together. Chosen, not measured.
const MAX_EXPANDED_PARTS: u64 = 200_000;

/// The meaning of a marker rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TreeMarker {
    /// A lexeme that trees omit.
    Hidden(usize),
    /// A number of absent children.
    Absent(u32),
}

/// The rules so far, and those whose bodies are still to be translated.
pub(super) struct RuleTable<'a> {
    pub(super) rules: Vec<Rule>,
    /// The tree shape of each rule, if trees are shaped.
    pub(super) shown: Vec<RuleTreeShape>,
    /// `true` if rules are added for what trees omit.
    shaped: bool,
    /// `true` if rules are added for omitted lexemes.
    omits_lexemes: bool,
    /// `true` if rules are added for placeholders.
    has_placeholders: bool,
    /// Rules of omitted lexemes and of placeholders.
    tree_markers: FxHashMap<TreeMarker, usize>,
    instances: FxHashMap<String, usize>,
    /// Rules to translate: index, definition, and template arguments.
    pub(super) queue: Vec<(usize, &'a RuleSource, Vec<SyntaxTree>)>,
    /// Parts of template arguments expanded so far.
    expanded_parts: Cell<u64>,
}

impl<'a> RuleTable<'a> {
    pub(super) fn new(source: &GrammarSource, shaped: bool) -> RuleTable<'a> {
        RuleTable {
            rules: Vec::new(),
            shown: Vec::new(),
            shaped,
            omits_lexemes: shaped && !source.keeps_all,
            has_placeholders: shaped && !source.without_placeholders,
            tree_markers: FxHashMap::default(),
            instances: FxHashMap::default(),
            queue: Vec::new(),
            expanded_parts: Cell::new(0),
        }
    }

    /// Returns the index of a rule or template instance.
    pub(super) fn rule(
        &mut self,
        name: &str,
        arguments: Vec<SyntaxTree>,
        span: SourceSpan,
        names: &Definitions<'a>,
    ) -> Result<usize, Error> {
        let Some(&source) = names.templates.get(name) else {
            return Err(names.undefined(name, span));
        };
        if source.parameters.len() != arguments.len() {
            return Err(names.wrong_argument_count(source, arguments.len(), span));
        }
        let sources: Vec<String> = arguments.iter().map(to_source).collect();
        let name = match sources.len() {
            0 => name.to_owned(),
            _ => format!("{name}{{{}}}", sources.join(", ")),
        };
        if let Some(&at) = self.instances.get(&name) {
            return Ok(at);
        }
        let at = self.rules.len();
        if !arguments.is_empty() && (at > MAX_TEMPLATE_INSTANCES || name.len() > 100 * MAX_DEPTH) {
            let (needed, allowed) = (at as u64 + 1, MAX_TEMPLATE_INSTANCES as u64);
            return Err(Error::Limit { resource: Resource::Terms, needed, allowed });
        }
        self.instances.insert(name.clone(), at);
        self.add_rule(Rule { name, body: RuleBody::Empty, span: Some(source.span) }, &source.shown);
        self.queue.push((at, source, arguments));
        Ok(at)
    }

    fn add_rule(&mut self, rule: Rule, shown: &RuleTreeShape) {
        self.rules.push(rule);
        if self.shaped {
            self.shown.push(shown.clone());
        }
    }

    /// Returns the node of a terminal in a rule.
    pub(super) fn lexeme(
        &mut self,
        terminal: usize,
        hidden: bool,
        terminals: &TerminalTable,
    ) -> RuleBody {
        if hidden && self.omits_lexemes {
            let name = terminals.terminals[terminal].terminal.name.clone();
            RuleBody::Rule(self.mark(TreeMarker::Hidden(terminal), name))
        } else {
            RuleBody::Terminal(terminal)
        }
    }

    /// Returns the node of an optional part, with placeholders for the children that it may lack.
    pub(super) fn maybe(&mut self, one: RuleBody, size: u32) -> RuleBody {
        if size > 0 && self.has_placeholders {
            RuleBody::Choice(vec![
                one,
                RuleBody::Rule(self.mark(TreeMarker::Absent(size), "nothing".to_owned())),
            ])
        } else {
            RuleBody::Repeat(Box::new(one), 0, Some(1))
        }
    }

    fn mark(&mut self, mark: TreeMarker, name: String) -> usize {
        if let Some(&at) = self.tree_markers.get(&mark) {
            return at;
        }
        let (body, kind) = match mark {
            TreeMarker::Hidden(at) => (RuleBody::Terminal(at), RuleKind::OmittedLexeme),
            TreeMarker::Absent(size) => (RuleBody::Empty, RuleKind::Placeholder(size)),
        };
        let at = self.rules.len();
        let shape = RuleTreeShape { kind, ..RuleTreeShape::ALL };
        self.add_rule(Rule { name, body, span: None }, &shape);
        self.tree_markers.insert(mark, at);
        at
    }

    /// Substitutes the arguments of a rule into those of a template inside it.
    pub(super) fn arguments(
        &self,
        arguments: &[SyntaxTree],
        rule: &RuleSource,
        given: &[SyntaxTree],
    ) -> Result<Vec<SyntaxTree>, Error> {
        let weights = match arguments {
            [] => Vec::new(),
            _ => given.iter().map(|one| weight(one, &HIDE_STRINGS, &[])).collect(),
        };
        let mut list = Vec::with_capacity(arguments.len());
        for one in arguments {
            self.count_expansion(weight(one, rule, &weights))?;
            let mut one = substitute(one, rule, given);
            // An argument already had its strings kept or not where it was written.
            if rule.shown.keeps_all_lexemes && !std::ptr::eq(rule, &KEEP_STRINGS) {
                keep_all_strings(&mut one);
            }
            list.push(one);
        }
        Ok(list)
    }

    /// Counts expanded parts: the names of endless templates grow with every expansion, and may
    /// double.
    pub(super) fn count_expansion(&self, parts: u64) -> Result<(), Error> {
        self.expanded_parts.set(self.expanded_parts.get().saturating_add(parts));
        check(Resource::Terms, self.expanded_parts.get(), MAX_EXPANDED_PARTS)
    }
}
