//! From a tree to a grammar: names become numbers, parts of terminals one pattern.

use std::cell::Cell;

use formalm_automata::syntax;
use formalm_automata::{Error, Expression, Resource, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::edges::{is_lazy, looks_beyond, prefers_longest};
use super::leaves::{Leaf, language, lexeme};
use super::levels::Levels;
use super::marks::Mark;
use super::order::{self, Kind, Ranked};
use super::scanner::refusal;
use super::shape::{self, Shape};
use super::trees::{only_leaf, substituted, written};
use super::{RuleSource, Source, TerminalSource, Tree};
use crate::grammar::{Grammar, Lexing, Node, Note, Rule, Terminal};
use crate::limits::check;
use crate::shown::Shown;

/// Templates written out, and names within names of terminals.
const INSTANCES: usize = 10_000;
pub(super) const DEPTH: usize = 100;
/// Parts of all terminals together.
pub(super) const PARTS: u64 = 1_000_000;

pub(super) struct Build<'a> {
    text: &'a str,
    pub(super) source: &'a Source,
    /// How indentation is told, if it is.
    pub(super) levels: Option<&'a Levels>,
    pub(super) lexing: Lexing,
    pub(super) defined: FxHashMap<&'a str, &'a TerminalSource>,
    /// Declared terminals that are languages.
    pub(super) given: FxHashMap<&'a str, &'a Expression>,
    /// Terminals that are put together as languages.
    pub(super) algebra: FxHashSet<&'a str>,
    pub(super) templates: FxHashMap<&'a str, &'a RuleSource>,
    pub(super) terminals: Vec<Ranked>,
    by_name: FxHashMap<String, usize>,
    pub(super) by_text: FxHashMap<String, usize>,
    /// Terminals with a name that are one text or pattern, by how that is written.
    named_texts: FxHashMap<String, &'a TerminalSource>,
    pub(super) rules: Vec<Rule>,
    /// Of each rule, what trees show of it.
    pub(super) shown: Vec<Shown>,
    /// Whether rules are made for what trees do not show.
    pub(super) shaped: bool,
    /// Rules of lexemes that trees leave out, and of parts that are not there, by their size.
    pub(super) marks: FxHashMap<Mark, usize>,
    instances: FxHashMap<String, usize>,
    /// Rules to write out: the definition and what its parameters stand for.
    queue: Vec<(usize, &'a RuleSource, Vec<Tree>)>,
    notes: Vec<Note>,
    /// Names that texts and patterns within rules are sorted by, and how many have none.
    sorted: FxHashSet<String>,
    unnamed: usize,
    pub(super) parts: Cell<u64>,
    /// Rules may stand within what is put together as languages: there is nothing else.
    pub(super) rules_within: bool,
}

/// The grammar that a text defines.
pub(super) fn grammar(
    text: &str,
    source: Source,
    lexing: Lexing,
    start: &str,
    languages: &[(String, Expression)],
    levels: Option<&Levels>,
    shaped: bool,
) -> Result<(Grammar, Vec<Shown>), Error> {
    let mut build = Build {
        text,
        source: &source,
        levels,
        lexing,
        defined: FxHashMap::default(),
        given: languages.iter().map(|(name, language)| (name.as_str(), language)).collect(),
        algebra: FxHashSet::default(),
        templates: FxHashMap::default(),
        terminals: Vec::new(),
        by_name: FxHashMap::default(),
        by_text: FxHashMap::default(),
        named_texts: FxHashMap::default(),
        rules: Vec::new(),
        shown: Vec::new(),
        shaped,
        marks: FxHashMap::default(),
        instances: FxHashMap::default(),
        queue: Vec::new(),
        notes: source.notes.clone(),
        sorted: FxHashSet::default(),
        unnamed: 0,
        parts: Cell::new(0),
        rules_within: source.terminals.is_empty(),
    };
    build.names(languages)?;
    build.find_algebra();
    build.take_up_levels()?;
    let nowhere = Span { start: 0, end: 0 };
    let Some(&first) = build.templates.get(start) else {
        return Err(Error::Language {
            message: format!("the grammar has no rule {start} to start with"),
            span: None,
            hint: Some("name another one with start=".to_owned()),
        });
    };
    if !first.parameters.is_empty() {
        return Err(build.refuse(first.span, "a template cannot be the start", None));
    }
    // Where order is Lark's, a text that is ignored is so in rules too.
    let first = if lexing == Lexing::First { build.all_ignored()? } else { Vec::new() };
    let start = build.rule(start, Vec::new(), nowhere)?;
    for rule in &source.rules {
        if rule.parameters.is_empty() {
            build.rule(&rule.name, Vec::new(), rule.span)?;
        }
    }
    let mut at = 0;
    while at < build.queue.len() {
        let (place, rule, arguments) = build.queue[at].clone();
        build.rules[place].body = build.body(&rule.body, rule, &arguments)?;
        at += 1;
    }
    let ignored = if lexing == Lexing::First { first } else { build.all_ignored()? };
    let whole = build.all_whole()?;
    if lexing == Lexing::Any && !ignored.is_empty() {
        let message = "lexemes are read in any way: nothing has to stand between them, so that \
                       words may touch where blanks are ignored";
        build.notes.push(Note { message: message.to_owned(), span: None });
    }
    let indentation = build.indentation()?;
    let Build { terminals, rules, shown, notes, .. } = build;
    let grammar = order::ordered(
        terminals,
        Grammar {
            terminals: Vec::new(),
            rules,
            ignored,
            whole,
            start,
            lexing,
            replaced: Vec::new(),
            indentation,
            notes,
        },
    )?;
    Ok((grammar, shown))
}

impl<'a> Build<'a> {
    pub(super) fn has_terminal(&self, name: &str) -> bool {
        self.defined.contains_key(name) || self.given.contains_key(name)
    }

    pub(super) fn refuse(&self, span: Span, message: &str, hint: Option<&str>) -> Error {
        refusal(self.text, span, message, hint)
    }

    /// Takes up all names; each may be defined once.
    fn names(&mut self, languages: &[(String, Expression)]) -> Result<(), Error> {
        for one in &self.source.terminals {
            if self.defined.insert(&one.name, one).is_some() {
                return Err(self.refuse(one.span, &format!("{} is defined twice", one.name), None));
            }
        }
        for one in &self.source.rules {
            if self.templates.insert(&one.name, one).is_some() {
                return Err(self.refuse(one.span, &format!("{} is defined twice", one.name), None));
            }
        }
        for (at, (name, _)) in languages.iter().enumerate() {
            let declared = self.source.declared.iter().any(|one| one.0 == *name);
            let twice = languages[..at].iter().any(|one| one.0 == *name);
            let why = match self.defined.contains_key(name.as_str()) || twice {
                true => "is defined twice",
                false if !declared => "is not declared in the text",
                false => continue,
            };
            return Err(Error::Language {
                message: format!("the terminal {name} {why}"),
                span: None,
                hint: Some(format!("write %declare {name} on a line of its own, once")),
            });
        }
        // The same text within a rule is the same terminal.
        for one in &self.source.terminals {
            if let Some(leaf) = only_leaf(&one.body) {
                self.named_texts.entry(leaf.written.clone()).or_insert(one);
            }
        }
        Ok(())
    }

    /// The number of a rule or of a template with arguments.
    fn rule(&mut self, name: &str, arguments: Vec<Tree>, span: Span) -> Result<usize, Error> {
        let Some(&source) = self.templates.get(name) else {
            let message = format!("{name} is not defined");
            return Err(self.refuse(span, &message, None));
        };
        if source.parameters.len() != arguments.len() {
            let (takes, given) = (source.parameters.len(), arguments.len());
            let message = format!("{name} takes {takes} arguments, not {given}");
            return Err(self.refuse(span, &message, None));
        }
        let written: Vec<String> = arguments.iter().map(written).collect();
        let name = match written.len() {
            0 => name.to_owned(),
            _ => format!("{name}{{{}}}", written.join(", ")),
        };
        if let Some(&at) = self.instances.get(&name) {
            return Ok(at);
        }
        let at = self.rules.len();
        if !arguments.is_empty() && (at > INSTANCES || name.len() > 100 * DEPTH) {
            let (needed, allowed) = (at as u64 + 1, INSTANCES as u64);
            return Err(Error::Limit { resource: Resource::Terms, needed, allowed });
        }
        self.instances.insert(name.clone(), at);
        self.add_rule(Rule { name, body: Node::Empty, span: Some(source.span) }, &source.shown);
        self.queue.push((at, source, arguments));
        Ok(at)
    }

    pub(super) fn add_rule(&mut self, rule: Rule, shown: &Shown) {
        self.rules.push(rule);
        if self.shaped {
            self.shown.push(shown.clone());
        }
    }

    fn body(&mut self, tree: &Tree, rule: &RuleSource, given: &[Tree]) -> Result<Node, Error> {
        Ok(match tree {
            Tree::Leaf(leaf) if leaf.literal && leaf.written == "\"\"" => Node::Empty,
            Tree::Leaf(leaf) => {
                let at = self.anonymous(leaf)?;
                self.lexeme(at, leaf.literal && !rule.shown.keeps_all)
            }
            Tree::Name(name, arguments, span) => {
                if let Some(at) = rule.parameters.iter().position(|one| one == name) {
                    return self.body(&given[at], &PLAIN, &[]);
                }
                if self.has_terminal(name) {
                    let at = self.named(name, *span)?;
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all;
                    return Ok(self.lexeme(at, hidden));
                }
                let mut list = Vec::with_capacity(arguments.len());
                for one in arguments {
                    list.push(substituted(one, rule, given));
                }
                if let Some(at) = self.level(name) {
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all;
                    return Ok(self.lexeme(at, hidden));
                }
                if let Some((name, _)) = self.source.declared.iter().find(|one| one.0 == *name) {
                    let message = format!("the terminal {name} is declared and has no pattern");
                    let hint =
                        Some("define it, or give it as a language: languages={name: language}");
                    return Err(self.refuse(*span, &message, hint));
                }
                Node::Rule(self.rule(name, list, *span)?)
            }
            Tree::Sequence(list) => Node::Sequence(
                list.iter().map(|one| self.body(one, rule, given)).collect::<Result<_, _>>()?,
            ),
            Tree::Choice(list) => Node::Choice(
                list.iter().map(|one| self.body(one, rule, given)).collect::<Result<_, _>>()?,
            ),
            Tree::Repeat(one, min, max) => {
                Node::Repeat(Box::new(self.body(one, rule, given)?), *min, *max)
            }
            Tree::Maybe(one) => {
                let size = self.size(one, rule, given);
                let one = self.body(one, rule, given)?;
                self.maybe(one, size)
            }
            Tree::Except(first, second, span) => {
                Node::Terminal(self.difference(first, second, *span)?)
            }
            Tree::Both(_, span) | Tree::Outside(_, span) => {
                let message =
                    "& and ~ are of terminals: what a rule derives may have no complement";
                let hint = Some("give this part the name of a terminal, in capitals");
                return Err(self.refuse(*span, message, hint));
            }
        })
    }

    /// The terminal of a text or pattern within a rule.
    pub(super) fn anonymous(&mut self, leaf: &Leaf) -> Result<usize, Error> {
        if let Some(&at) = self.by_text.get(&leaf.written) {
            return Ok(at);
        }
        if let Some(&source) = self.named_texts.get(&leaf.written) {
            return self.named(&source.name, source.span);
        }
        let taken = |name: &str| self.defined.contains_key(name) || self.sorted.contains(name);
        let sorted = shape::name(leaf, self.unnamed, taken);
        self.unnamed += usize::from(sorted.starts_with("__ANON_"));
        self.sorted.insert(sorted.clone());
        let kind =
            Kind { priority: 0, text: leaf.text.clone(), shape: Shape::of_leaf(leaf), sorted };
        let at = self.terminal(leaf.written.clone(), leaf.node.clone(), kind, leaf.span)?;
        self.by_text.insert(leaf.written.clone(), at);
        Ok(at)
    }

    /// The terminal of a name.
    pub(super) fn named(&mut self, name: &str, span: Span) -> Result<usize, Error> {
        if let Some(&at) = self.by_name.get(name) {
            return Ok(at);
        }
        if let Some(&language) = self.given.get(name) {
            return self.given_terminal(name, 0, language.clone(), span);
        }
        let Some(&source) = self.defined.get(name) else {
            return Err(self.refuse(span, &format!("{name} is not defined"), None));
        };
        if self.algebra.contains(name) {
            let language = self.regular(&source.body, DEPTH, source.span)?;
            return self.given_terminal(name, source.priority, language, source.span);
        }
        let node = self.pattern(&source.body, DEPTH, source.span)?;
        let kind = Kind {
            priority: source.priority,
            text: only_leaf(&source.body).and_then(|leaf| leaf.text.clone()),
            shape: self.shape(&source.body),
            sorted: name.to_owned(),
        };
        let name = name.to_owned();
        let at = self.terminal(name.clone(), node, kind, source.span)?;
        self.by_name.insert(name, at);
        Ok(at)
    }

    /// A terminal that is a language; it competes as a pattern without end.
    pub(super) fn given_terminal(
        &mut self,
        name: &str,
        priority: i64,
        language: Expression,
        span: Span,
    ) -> Result<usize, Error> {
        if self.lexing == Lexing::First {
            let message = format!("{name} is put together as languages, which Lark does not have");
            let hint = Some("read the longest lexemes, or lexemes of any kind");
            return Err(self.refuse(span, &message, hint));
        }
        let kind = Kind { priority, text: None, shape: Shape::endless(), sorted: name.to_owned() };
        self.by_name.insert(name.to_owned(), self.terminals.len());
        let terminal = Terminal { name: name.to_owned(), language, span: Some(span) };
        self.terminals.push(Ranked { terminal, kind });
        Ok(self.terminals.len() - 1)
    }

    /// A part of a terminal as a pattern.
    pub(super) fn pattern(
        &self,
        tree: &Tree,
        depth: usize,
        span: Span,
    ) -> Result<syntax::Node, Error> {
        if depth == 0 {
            let message = "a terminal refers to itself, or to others too deeply";
            return Err(self.refuse(span, message, Some("make it a rule: rules may recur")));
        }
        // Terminals within terminals are written out, which can double at every level.
        self.parts.set(self.parts.get() + 1);
        check(Resource::Terms, self.parts.get(), PARTS)?;
        let all = |list: &[Tree]| {
            list.iter().map(|one| self.pattern(one, depth - 1, span)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match tree {
            Tree::Leaf(leaf) => leaf.node.clone(),
            Tree::Name(name, _, place) => match self.defined.get(name.as_str()) {
                Some(source) => self.pattern(&source.body, depth - 1, *place)?,
                None => {
                    let message = format!("{name} is not a terminal that is defined");
                    return Err(self.refuse(
                        *place,
                        &message,
                        Some("terminals are made of terminals"),
                    ));
                }
            },
            Tree::Sequence(list) => syntax::Node::Concat(all(list)?),
            Tree::Choice(list) if self.lexing == Lexing::First => {
                // Lark puts the alternatives within a terminal in this order.
                let mut ranked: Vec<_> =
                    list.iter().map(|one| self.shape(one).rank()).zip(all(list)?).collect();
                ranked.sort_by_key(|one| one.0);
                syntax::Node::Alternation(ranked.into_iter().map(|one| one.1).collect())
            }
            Tree::Choice(list) => syntax::Node::Alternation(all(list)?),
            Tree::Except(_, _, span) | Tree::Both(_, span) | Tree::Outside(_, span) => {
                return Err(self.refuse(*span, "a terminal is made of texts and patterns", None));
            }
            Tree::Maybe(one) => syntax::Node::Repeat {
                node: Box::new(self.pattern(one, depth - 1, span)?),
                min: 0,
                max: Some(1),
                lazy: false,
            },
            Tree::Repeat(one, min, max) => syntax::Node::Repeat {
                node: Box::new(self.pattern(one, depth - 1, span)?),
                min: *min,
                max: *max,
                lazy: false,
            },
        })
    }

    pub(super) fn shape(&self, tree: &Tree) -> Shape {
        shape::shape(tree, &|name| self.defined.get(name).copied(), DEPTH)
    }

    pub(super) fn terminal(
        &mut self,
        name: String,
        mut root: syntax::Node,
        kind: Kind,
        span: Span,
    ) -> Result<usize, Error> {
        let beyond = looks_beyond(&root);
        if let Some(why) = beyond.before {
            let message = format!("the terminal {name} is not supported: {why}");
            let hint = "lexemes begin where the one before them ended, so it can often be left out";
            return Err(self.refuse(span, &message, Some(hint)));
        }
        if beyond.ahead && self.levels.is_some() {
            let message = format!("the terminal {name} looks ahead beyond its lexeme");
            let hint = "where indentation is told, write what must follow into the rules";
            return Err(self.refuse(span, &message, Some(hint)));
        }
        if self.lexing == Lexing::Longest && is_lazy(&root) {
            let message = format!(
                "the terminal {name} has lazy quantifiers: its lexemes are those that it prefers"
            );
            self.notes.push(Note { message, span: Some(span) });
            root = syntax::Node::Atomic(Box::new(root));
        }
        if self.lexing == Lexing::First && kind.text.is_none() && !prefers_longest(&root) {
            root = syntax::Node::Atomic(Box::new(root));
        }
        let language = if beyond.ahead { lexeme(root) } else { language(root) };
        let terminal = Terminal { name, language, span: Some(span) };
        self.terminals.push(Ranked { terminal, kind });
        Ok(self.terminals.len() - 1)
    }
}

/// A rule without parameters, for arguments that were substituted already.
pub(super) static PLAIN: RuleSource = RuleSource {
    name: String::new(),
    parameters: Vec::new(),
    body: Tree::Sequence(Vec::new()),
    span: Span { start: 0, end: 0 },
    shown: Shown::SOME,
};
