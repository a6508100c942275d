//! Lowering of pattern syntax trees to terms.

use formalm_core::{BudgetExhausted, CharSet, StepMeter, deadline::check_deadline};
use formalm_regex::{Pattern, PatternNode};

use crate::language_expression::{Expression, LEXEME_END};
use crate::terms::{EMPTY, EPSILON, FULL, MARK, TermArena, TermId, TermNode, UNBOUNDED};
use crate::transduce::{EditsId, RewriteRule, RulesId};

/// The lowering of one pattern; its lookbehinds are numbered as they are met.
struct PatternLowering<'a> {
    terms: &'a mut TermArena,
    behinds: Vec<TermId>,
    region: Option<EditRegion<'a>>,
    edge: LexemeEdge,
}

/// The meaning of the end-of-lexeme byte at a position of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LexemeEdge {
    /// There is none: the input is the lexeme.
    Missing,
    /// It is ahead: what is read here ends before it.
    Ahead,
    /// It may be skipped before any character.
    Passed,
}

/// The groups in which edits are allowed.
struct EditRegion<'a> {
    groups: Vec<u32>,
    edits: EditsId,
    work: &'a mut StepMeter,
    spent: Option<BudgetExhausted>,
}

/// Lowers a pattern to a term that is independent of its context.
pub(crate) fn pattern(terms: &mut TermArena, pattern: &Pattern) -> TermId {
    let mut lowering =
        PatternLowering { terms, behinds: Vec::new(), region: None, edge: LexemeEdge::Missing };
    let body = lowering.node(&pattern.root, false);
    let behinds = lowering.behinds.into();
    terms.scope(body, behinds)
}

/// Lowers a pattern to its lexemes with what follows them, see [`Expression::lexeme`].
pub(crate) fn lexeme(terms: &mut TermArena, pattern: &Pattern) -> TermId {
    let mut lowering =
        PatternLowering { terms, behinds: Vec::new(), region: None, edge: LexemeEdge::Ahead };
    let body = lowering.node(&pattern.root, false);
    let behinds = lowering.behinds.into();
    let edge = literals(terms, vec![vec![LEXEME_END]]);
    let others = literals(terms, (0..LEXEME_END).map(|byte| vec![byte]).collect());
    let others = terms.repeat(others, 0, UNBOUNDED, false);
    let tail = terms.cat(edge, others);
    let body = terms.cat(body, tail);
    let body = terms.scope(body, behinds);
    // Preferring a longer match skips the end of the lexeme, and must not wait for another one.
    let once = terms.cat(others, tail);
    terms.and(vec![body, once])
}

/// Lowers a pattern with edits in its groups called `name`.
pub(crate) fn edited_pattern(
    terms: &mut TermArena,
    pattern: &Pattern,
    name: &str,
    edits: EditsId,
    work: &mut StepMeter,
) -> Result<TermId, BudgetExhausted> {
    let region = Some(EditRegion { groups: pattern.groups_named(name), edits, work, spent: None });
    let mut lowering =
        PatternLowering { terms, behinds: Vec::new(), region, edge: LexemeEdge::Missing };
    let body = lowering.node(&pattern.root, false);
    if let Some(spent) = lowering.region.and_then(|region| region.spent) {
        return Err(spent);
    }
    let behinds = lowering.behinds.into();
    Ok(terms.scope(body, behinds))
}

/// Lowers rewrite rules.
pub(crate) fn rules(
    terms: &mut TermArena,
    rules: &[(String, Expression)],
    optional: bool,
    work: &mut StepMeter,
) -> Result<RulesId, BudgetExhausted> {
    let mut lowered = Vec::with_capacity(rules.len());
    for (source, target) in rules {
        let target = target.lower(terms, work)?;
        let vanishes = terms.nullable(target, &[]);
        let target = if vanishes { without_empty(terms, target) } else { target };
        lowered.push(RewriteRule { source: source.clone().into_bytes(), target, vanishes });
    }
    Ok(terms.rewrite_plan(lowered, optional))
}

/// Returns the term without the empty string.
fn without_empty(terms: &mut TermArena, id: TermId) -> TermId {
    match *terms.get(id) {
        TermNode::Epsilon => return EMPTY,
        TermNode::Dawg(dag) => {
            let dag = terms.dawgs.without_empty(dag);
            return terms.dawg(dag);
        }
        _ => {}
    }
    let something = terms.not(EPSILON);
    terms.and(vec![id, something])
}

/// Returns the language of all strings: any number of characters.
pub(crate) fn any_string(terms: &mut TermArena) -> TermId {
    let any = class(terms, &CharSet::all());
    let all = terms.repeat(any, 0, UNBOUNDED, false);
    terms.any_string = Some(all);
    all
}

/// Returns the language of some strings, which need not be sorted.
pub(crate) fn literals(terms: &mut TermArena, mut texts: Vec<Vec<u8>>) -> TermId {
    texts.sort_unstable();
    texts.dedup();
    match terms.dawgs.words(&texts) {
        Some(dag) => terms.dawg(dag),
        None => EMPTY,
    }
}

/// Lowers many strings, under the deadline of this thread.
pub(crate) fn checked_literals(
    terms: &mut TermArena,
    mut texts: Vec<Vec<u8>>,
) -> Result<TermId, BudgetExhausted> {
    texts.sort_unstable();
    texts.dedup();
    let found =
        terms.dawgs.words_checked(&texts, || check_deadline().map_err(|_| BudgetExhausted))?;
    Ok(found.map_or(EMPTY, |dag| terms.dawg(dag)))
}

/// Returns `x{min,max}`, merging it with an inner repetition where that is exact.
///
/// `(x{m,n}){p,q}` is `x{pm,qn}` if the intervals `[cm, cn]` for `c = p..q` leave no gap.
pub(crate) fn repeat(terms: &mut TermArena, body: TermId, min: u32, max: u32) -> TermId {
    if let Some((inner, m, n)) = terms.repetition(body) {
        let first = min.max(1);
        let no_gap = u64::from(first + 1) * u64::from(m) <= u64::from(first) * u64::from(n) + 1;
        let from_zero = min > 0 || m <= 1;
        let product = |a: u32, b: u32| {
            if a == 0 || b == 0 {
                return Some(0);
            }
            if a == UNBOUNDED || b == UNBOUNDED {
                return Some(UNBOUNDED);
            }
            a.checked_mul(b).filter(|&product| product != UNBOUNDED)
        };
        if let (true, true, Some(low), Some(high)) = (
            (n == UNBOUNDED || no_gap || max <= first),
            from_zero,
            product(min, m),
            product(max, n),
        ) {
            return terms.repeat(inner, low, high, false);
        }
    }
    terms.repeat(body, min, max, false)
}

pub(crate) fn class(terms: &mut TermArena, set: &CharSet) -> TermId {
    match terms.dawgs.class(set) {
        Some(dag) => terms.dawg(dag),
        None => EMPTY,
    }
}

/// Returns the only character of a class node.
fn only_char(node: &PatternNode) -> Option<char> {
    match node {
        PatternNode::Group { node, .. } => only_char(node),
        PatternNode::Class(set) => match set.ranges() {
            &[(low, high)] if low == high => Some(low),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the only string of a node that is a sequence of characters.
fn only_text(node: &PatternNode) -> Option<String> {
    match node {
        PatternNode::Empty => Some(String::new()),
        PatternNode::Group { node, .. } => only_text(node),
        PatternNode::Concat(list) => list.iter().map(only_text).collect(),
        node => only_char(node).map(String::from),
    }
}

impl PatternLowering<'_> {
    /// Lowers a node. `ordered` is `true` inside an atomic group, where preference is part of the
    /// meaning.
    fn node(&mut self, node: &PatternNode, ordered: bool) -> TermId {
        match node {
            PatternNode::Empty => EPSILON,
            PatternNode::Class(set) => {
                let class = class(self.terms, set);
                self.allow_edge_before(class)
            }
            PatternNode::Concat(list) => self.concat(list, ordered),
            PatternNode::Alternation(list) => self.alternation(list, ordered),
            PatternNode::Repeat { node, min, max: Some(1), .. } if self.region.is_some() => {
                // Not a repetition: the search for edits of a region finds it in a union.
                let body = self.node(node, ordered);
                if *min == 0 { self.terms.alt(vec![EPSILON, body]) } else { body }
            }
            PatternNode::Repeat { node, min, max, lazy } => {
                let body = self.node(node, ordered);
                let max = max.unwrap_or(UNBOUNDED);
                if ordered {
                    self.terms.repeat(body, *min, max, *lazy)
                } else {
                    repeat(self.terms, body, *min, max)
                }
            }
            PatternNode::Group { index, node } => self.group(*index, node, ordered),
            PatternNode::Atomic(node) => {
                let body = self.past_edge(node, true);
                self.terms.atomic(body)
            }
            PatternNode::Look { ahead: true, negative, node } => {
                let body = self.past_edge(node, false);
                let rest = self.terms.cat(body, FULL);
                let rest = if *negative { self.terms.not(rest) } else { rest };
                self.terms.assert(rest)
            }
            PatternNode::Look { ahead: false, negative, node } => {
                let body = self.node(node, false);
                self.look_behind(body, *negative)
            }
            PatternNode::TextStart => self.text_start(false),
            PatternNode::TextEnd => {
                let end = self.end();
                self.terms.assert(end)
            }
            PatternNode::WordBoundary { negative, word, empty_fails } => {
                self.word_boundary(*negative, word, *empty_fails)
            }
        }
    }

    /// Lowers a node that is read past the end of the lexeme, if there is one: it looks ahead, or
    /// determines preference.
    fn past_edge(&mut self, node: &PatternNode, ordered: bool) -> TermId {
        self.with_edge_passed(|it| it.node(node, ordered))
    }

    fn with_edge_passed(&mut self, read: impl FnOnce(&mut Self) -> TermId) -> TermId {
        let before = self.edge;
        if before == LexemeEdge::Ahead {
            self.edge = LexemeEdge::Passed;
        }
        let body = read(self);
        self.edge = before;
        body
    }

    /// Returns what remains at the end of the input.
    fn end(&mut self) -> TermId {
        if self.edge == LexemeEdge::Missing {
            return EPSILON;
        }
        let edge = literals(self.terms, vec![vec![LEXEME_END]]);
        self.terms.alt(vec![EPSILON, edge])
    }

    /// Returns a character that may follow the end of the lexeme.
    fn allow_edge_before(&mut self, class: TermId) -> TermId {
        if self.edge != LexemeEdge::Passed {
            return class;
        }
        let edge = self.end();
        self.terms.cat(edge, class)
    }

    fn group(&mut self, index: u32, node: &PatternNode, ordered: bool) -> TermId {
        let body = self.node(node, ordered);
        match &mut self.region {
            Some(region) if region.groups.contains(&index) && region.spent.is_none() => {
                let edited = self.terms.edits(body, region.edits, region.work);
                edited.unwrap_or_else(|spent| {
                    region.spent = Some(spent);
                    EMPTY
                })
            }
            _ => body,
        }
    }

    fn concat(&mut self, list: &[PatternNode], ordered: bool) -> TermId {
        let mut tail = EPSILON;
        let mut end = list.len();
        while end > 0 {
            // A run of single characters is one leaf instead of a chain of terms.
            let passes = self.region.is_some() || self.edge == LexemeEdge::Passed;
            let plain = |node: &&PatternNode| only_char(node).is_some() && !passes;
            let run = list[..end].iter().rev().take_while(plain).count();
            let head = if run > 1 {
                let text: String = list[end - run..end].iter().filter_map(only_char).collect();
                literals(self.terms, vec![text.into_bytes()])
            } else {
                self.node(&list[end - 1], ordered)
            };
            tail = self.terms.cat(head, tail);
            end -= run.max(1);
        }
        tail
    }

    fn alternation(&mut self, list: &[PatternNode], ordered: bool) -> TermId {
        if ordered {
            let list = list.iter().map(|node| self.node(node, true)).collect();
            return self.terms.ordered(list);
        }
        let mut words = Vec::new();
        let mut characters = CharSet::empty();
        let mut others = Vec::new();
        for node in list {
            if self.region.is_some() || self.edge == LexemeEdge::Passed {
                others.push(self.node(node, false));
            } else if let PatternNode::Class(set) = node {
                characters = characters.union(set);
            } else if let Some(text) = only_text(node) {
                words.push(text.into_bytes());
            } else {
                others.push(self.node(node, false));
            }
        }
        others.push(literals(self.terms, words));
        others.push(class(self.terms, &characters));
        self.terms.alt(others)
    }

    /// Lowers lookbehind: the body has just been read.
    fn look_behind(&mut self, body: TermId, negative: bool) -> TermId {
        let any = class(self.terms, &CharSet::all());
        let any = self.allow_edge_before(any);
        let any = self.terms.repeat(any, 0, UNBOUNDED, false);
        let marked = self.terms.cat(body, MARK);
        let behind = self.terms.cat(any, marked);
        self.number_look_behind(behind, negative)
    }

    /// The start of the input is a mark that no byte has carried away.
    fn text_start(&mut self, negative: bool) -> TermId {
        self.number_look_behind(MARK, negative)
    }

    fn number_look_behind(&mut self, behind: TermId, negative: bool) -> TermId {
        let known = self.behinds.iter().position(|&known| known == behind);
        let index = known.unwrap_or_else(|| {
            self.behinds.push(behind);
            self.behinds.len() - 1
        });
        self.terms.look_behind(index as u32, negative)
    }

    fn word_boundary(&mut self, negative: bool, word: &CharSet, empty_fails: bool) -> TermId {
        let word = class(self.terms, word);
        let after = self.look_behind(word, false);
        let not_after = self.look_behind(word, true);
        let ahead = self.with_edge_passed(|it| it.allow_edge_before(word));
        let rest = self.terms.cat(ahead, FULL);
        let before = self.terms.assert(rest);
        let rest = self.terms.not(rest);
        let not_before = self.terms.assert(rest);
        if !negative {
            let leaving = self.terms.cat(after, not_before);
            let entering = self.terms.cat(not_after, before);
            return self.terms.alt(vec![leaving, entering]);
        }
        let within = self.terms.cat(after, before);
        let mut outside = self.terms.cat(not_after, not_before);
        if empty_fails {
            let end = self.end();
            let something = self.terms.not(end);
            let ahead = self.terms.assert(something);
            let behind = self.text_start(true);
            let nonempty = self.terms.alt(vec![ahead, behind]);
            outside = self.terms.cat(nonempty, outside);
        }
        self.terms.alt(vec![within, outside])
    }
}
