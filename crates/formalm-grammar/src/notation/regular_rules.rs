//! Merging of regular rules into single terminals, an optimization.
//!
//! With [`Lexing::Any`] and no ignored terminals, a nonrecursive part of a rule is a regular
//! language. One automaton for it is faster than a set of parser stacks. The language of the
//! grammar does not change.

use formalm_regex::{self as syntax};
use rustc_hash::FxHashMap;

use crate::grammar::{Grammar, Lexing, Rule, RuleBody, Terminal};

/// Maximum rule nesting inside one terminal. Chosen, not measured.
const MAX_DEPTH: usize = 40;
/// Maximum pattern nodes of one terminal. Chosen, not measured.
const MAX_PATTERN_NODES: usize = 4_000;

/// Returns the grammar with its largest regular parts as terminals.
pub(super) fn merge_regular_rules(grammar: Grammar) -> Grammar {
    if grammar.lexing != Lexing::Any || !grammar.ignored.is_empty() {
        return grammar;
    }
    let mut merging = RegularRuleMerger {
        rules: grammar.rules.iter().map(|_| RuleVisit::Unseen).collect(),
        old: &grammar,
        terminals: Vec::new(),
        known: FxHashMap::default(),
    };
    let rules: Vec<Rule> = grammar
        .rules
        .iter()
        .map(|rule| Rule { body: merging.rewrite(&rule.body, &rule.name), ..rule.clone() })
        .collect();
    let RegularRuleMerger { terminals, .. } = merging;
    // Rules that were merged into terminals still count as needed.
    let reachable_rules = reachable_rules(&grammar.rules, grammar.start);
    let names =
        grammar.rules.iter().zip(reachable_rules).filter(|one| one.1).map(|one| one.0.name.clone());
    let needed = grammar.needed_names.iter().cloned().chain(names).collect();
    Grammar { terminals, rules, needed_names: needed, ..grammar.clone() }
}

/// Returns, per rule, whether it is reachable from a rule.
fn reachable_rules(rules: &[Rule], from: usize) -> Vec<bool> {
    let mut reachable_rules = vec![false; rules.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut reachable_rules[at], true) {
            continue;
        }
        let mut nodes = vec![&rules[at].body];
        while let Some(node) = nodes.pop() {
            match node {
                RuleBody::Empty | RuleBody::Terminal(_) => {}
                RuleBody::Rule(at) => open.push(*at),
                RuleBody::Sequence(list) | RuleBody::Choice(list) => nodes.extend(list),
                RuleBody::Repeat(one, _, _) => nodes.push(one),
            }
        }
    }
    reachable_rules
}

#[derive(Clone)]
enum RuleVisit {
    Unseen,
    Open,
    Known(Option<(syntax::PatternNode, usize)>),
}

struct RegularRuleMerger<'a> {
    old: &'a Grammar,
    rules: Vec<RuleVisit>,
    terminals: Vec<Terminal>,
    known: FxHashMap<RuleBody, usize>,
}

impl RegularRuleMerger<'_> {
    /// Returns a node as a pattern with its size, if it is regular and small.
    fn regular(&mut self, node: &RuleBody, depth: usize) -> Option<(syntax::PatternNode, usize)> {
        if depth == 0 {
            return None;
        }
        let found = match node {
            RuleBody::Empty => Some((syntax::PatternNode::Empty, 1)),
            RuleBody::Terminal(at) => {
                let terminal = &self.old.terminals[*at];
                let pattern = terminal.language.as_pattern()?;
                Some((pattern.root.clone(), size(&pattern.root)))
            }
            RuleBody::Rule(at) => return self.rule(*at, depth),
            RuleBody::Sequence(list) => {
                let (list, size) = self.all(list, depth)?;
                Some((syntax::PatternNode::Concat(list), size))
            }
            RuleBody::Choice(list) => {
                let (list, size) = self.all(list, depth)?;
                Some((syntax::PatternNode::Alternation(list), size))
            }
            RuleBody::Repeat(one, min, max) => {
                let (one, size) = self.regular(one, depth - 1)?;
                let (node, lazy) = (Box::new(one), false);
                Some((syntax::PatternNode::Repeat { node, min: *min, max: *max, lazy }, size + 1))
            }
        };
        found.filter(|&(_, size)| size <= MAX_PATTERN_NODES)
    }

    fn all(
        &mut self,
        list: &[RuleBody],
        depth: usize,
    ) -> Option<(Vec<syntax::PatternNode>, usize)> {
        let mut size = 1;
        let mut nodes = Vec::with_capacity(list.len());
        for one in list {
            let (node, more) = self.regular(one, depth - 1)?;
            nodes.push(node);
            size += more;
            if size > MAX_PATTERN_NODES {
                return None;
            }
        }
        Some((nodes, size))
    }

    fn rule(&mut self, at: usize, depth: usize) -> Option<(syntax::PatternNode, usize)> {
        match &self.rules[at] {
            RuleVisit::Known(found) => found.clone(),
            RuleVisit::Open => None,
            RuleVisit::Unseen => {
                self.rules[at] = RuleVisit::Open;
                let old = self.old;
                let found = self.regular(&old.rules[at].body, depth - 1);
                self.rules[at] = RuleVisit::Known(found.clone());
                found
            }
        }
    }

    fn rewrite(&mut self, node: &RuleBody, name: &str) -> RuleBody {
        if matches!(node, RuleBody::Empty) {
            return RuleBody::Empty;
        }
        if let Some((pattern, _)) = self.regular(node, MAX_DEPTH) {
            return self.terminal(node, pattern, name);
        }
        match node {
            RuleBody::Sequence(list) => self.sequence(list, name),
            RuleBody::Choice(list) => {
                RuleBody::Choice(list.iter().map(|one| self.rewrite(one, name)).collect())
            }
            RuleBody::Repeat(one, min, max) => {
                RuleBody::Repeat(Box::new(self.rewrite(one, name)), *min, *max)
            }
            // What is not a pattern remains a terminal of its own.
            RuleBody::Terminal(at) => {
                let known = self.known.get(node).copied();
                RuleBody::Terminal(known.unwrap_or_else(|| {
                    self.terminals.push(self.old.terminals[*at].clone());
                    self.known.insert(node.clone(), self.terminals.len() - 1);
                    self.terminals.len() - 1
                }))
            }
            other => other.clone(),
        }
    }

    /// Merges each run of regular parts into one terminal.
    fn sequence(&mut self, list: &[RuleBody], name: &str) -> RuleBody {
        let mut parts = Vec::new();
        let mut run: Vec<RuleBody> = Vec::new();
        for one in list {
            if self.regular(one, MAX_DEPTH - 1).is_some() {
                run.push(one.clone());
                continue;
            }
            self.close(&mut run, &mut parts, name);
            parts.push(self.rewrite(one, name));
        }
        self.close(&mut run, &mut parts, name);
        RuleBody::Sequence(parts)
    }

    fn close(&mut self, run: &mut Vec<RuleBody>, parts: &mut Vec<RuleBody>, name: &str) {
        if run.is_empty() {
            return;
        }
        let whole = RuleBody::Sequence(std::mem::take(run));
        match self.regular(&whole, MAX_DEPTH) {
            Some((pattern, _)) => parts.push(self.terminal(&whole, pattern, name)),
            None => {
                let RuleBody::Sequence(list) = whole else { return };
                parts.extend(list.iter().map(|one| self.rewrite(one, name)));
            }
        }
    }

    fn terminal(&mut self, node: &RuleBody, pattern: syntax::PatternNode, name: &str) -> RuleBody {
        if let Some(&at) = self.known.get(node) {
            return RuleBody::Terminal(at);
        }
        let name = match node {
            RuleBody::Terminal(at) => self.old.terminals[*at].name.clone(),
            RuleBody::Rule(at) => self.old.rules[*at].name.clone(),
            _ => format!("{name}.{}", self.terminals.len()),
        };
        let language = super::atoms::pattern_expression(pattern);
        self.terminals.push(Terminal { name, language, sublanguage: None, span: None });
        self.known.insert(node.clone(), self.terminals.len() - 1);
        RuleBody::Terminal(self.terminals.len() - 1)
    }
}

fn size(node: &syntax::PatternNode) -> usize {
    match node {
        syntax::PatternNode::Concat(list) | syntax::PatternNode::Alternation(list) => {
            1 + list.iter().map(size).sum::<usize>()
        }
        syntax::PatternNode::Repeat { node, .. }
        | syntax::PatternNode::Group { node, .. }
        | syntax::PatternNode::Look { node, .. } => 1 + size(node),
        syntax::PatternNode::Atomic(node) => 1 + size(node),
        _ => 1,
    }
}
