//! Lowering of pattern syntax trees to terms.

use formalm_core::{BudgetExhausted, CharSet};
use formalm_regex::{Pattern, PatternNode};

use crate::language_expression::LEXEME_END;
use crate::terms::derivative::Deriver;
use crate::terms::edit_and_rewrite_plans::EditsId;
use crate::terms::{EMPTY, EPSILON, FULL, MARK, TermId, UNBOUNDED};

/// The lowering of one pattern; its lookbehinds are numbered as they are met.
pub(super) struct PatternLowering<'a> {
    deriver: &'a mut Deriver,
    behinds: Vec<TermId>,
    region: Option<EditRegion>,
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
struct EditRegion {
    groups: Vec<u32>,
    edits: EditsId,
    spent: Option<BudgetExhausted>,
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
    /// Lowers a pattern to a term that is independent of its context.
    pub(super) fn pattern(deriver: &mut Deriver, pattern: &Pattern) -> TermId {
        let mut lowering = PatternLowering::new(deriver, LexemeEdge::Missing);
        let body = lowering.node(&pattern.root, false);
        let behinds = lowering.behinds.into();
        deriver.terms.scope(body, behinds)
    }

    /// Lowers a pattern to its lexemes with what follows them, see
    /// [`Expression::lexeme`](crate::Expression::lexeme).
    pub(super) fn lexeme(deriver: &mut Deriver, pattern: &Pattern) -> TermId {
        let mut lowering = PatternLowering::new(deriver, LexemeEdge::Ahead);
        let body = lowering.node(&pattern.root, false);
        let behinds = lowering.behinds.into();
        let terms = &mut deriver.terms;
        let edge = terms.literals(vec![vec![LEXEME_END]]);
        let others = terms.literals((0..LEXEME_END).map(|byte| vec![byte]).collect());
        let others = terms.repeat(others, 0, UNBOUNDED, false);
        let tail = terms.cat(edge, others);
        let body = terms.cat(body, tail);
        let body = terms.scope(body, behinds);
        // Preferring a longer match skips the end of the lexeme, and must not wait for another one.
        let once = terms.cat(others, tail);
        terms.and(vec![body, once])
    }

    /// Lowers a pattern with edits in its groups called `name`.
    pub(super) fn edited_pattern(
        deriver: &mut Deriver,
        pattern: &Pattern,
        name: &str,
        edits: EditsId,
    ) -> Result<TermId, BudgetExhausted> {
        let mut lowering = PatternLowering::new(deriver, LexemeEdge::Missing);
        let groups = pattern.groups_named(name);
        lowering.region = Some(EditRegion { groups, edits, spent: None });
        let body = lowering.node(&pattern.root, false);
        if let Some(spent) = lowering.region.and_then(|region| region.spent) {
            return Err(spent);
        }
        let behinds = lowering.behinds.into();
        Ok(deriver.terms.scope(body, behinds))
    }

    fn new(deriver: &mut Deriver, edge: LexemeEdge) -> PatternLowering<'_> {
        PatternLowering { deriver, behinds: Vec::new(), region: None, edge }
    }

    /// Lowers a node. `ordered` is `true` inside an atomic group, where preference is part of the
    /// meaning.
    fn node(&mut self, node: &PatternNode, ordered: bool) -> TermId {
        match node {
            PatternNode::Empty => EPSILON,
            PatternNode::Class(set) => {
                let class = self.deriver.terms.class(set);
                self.allow_edge_before(class)
            }
            PatternNode::Concat(list) => self.concat(list, ordered),
            PatternNode::Alternation(list) => self.alternation(list, ordered),
            PatternNode::Repeat { node, min, max: Some(1), .. } if self.region.is_some() => {
                // Not a repetition: the search for edits of a region finds it in a union.
                let body = self.node(node, ordered);
                if *min == 0 { self.deriver.terms.alt(vec![EPSILON, body]) } else { body }
            }
            PatternNode::Repeat { node, min, max, lazy } => {
                let body = self.node(node, ordered);
                let max = max.unwrap_or(UNBOUNDED);
                if ordered {
                    self.deriver.terms.repeat(body, *min, max, *lazy)
                } else {
                    self.deriver.terms.repeat_merged(body, *min, max)
                }
            }
            PatternNode::Group { index, node } => self.group(*index, node, ordered),
            PatternNode::Atomic(node) => {
                let body = self.past_edge(node, true);
                self.deriver.terms.atomic(body)
            }
            PatternNode::Look { ahead: true, negative, node } => {
                let body = self.past_edge(node, false);
                let rest = self.deriver.terms.cat(body, FULL);
                let rest = if *negative { self.deriver.terms.not(rest) } else { rest };
                self.deriver.terms.assert(rest)
            }
            PatternNode::Look { ahead: false, negative, node } => {
                let body = self.node(node, false);
                self.look_behind(body, *negative)
            }
            PatternNode::TextStart => self.text_start(false),
            PatternNode::TextEnd => {
                let end = self.end();
                self.deriver.terms.assert(end)
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
        let edge = self.deriver.terms.literals(vec![vec![LEXEME_END]]);
        self.deriver.terms.alt(vec![EPSILON, edge])
    }

    /// Returns a character that may follow the end of the lexeme.
    fn allow_edge_before(&mut self, class: TermId) -> TermId {
        if self.edge != LexemeEdge::Passed {
            return class;
        }
        let edge = self.end();
        self.deriver.terms.cat(edge, class)
    }

    fn group(&mut self, index: u32, node: &PatternNode, ordered: bool) -> TermId {
        let body = self.node(node, ordered);
        match &mut self.region {
            Some(region) if region.groups.contains(&index) && region.spent.is_none() => {
                let edited = self.deriver.edits(region.edits).image(body);
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
                self.deriver.terms.literals(vec![text.into_bytes()])
            } else {
                self.node(&list[end - 1], ordered)
            };
            tail = self.deriver.terms.cat(head, tail);
            end -= run.max(1);
        }
        tail
    }

    fn alternation(&mut self, list: &[PatternNode], ordered: bool) -> TermId {
        if ordered {
            let list = list.iter().map(|node| self.node(node, true)).collect();
            return self.deriver.terms.ordered(list);
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
        others.push(self.deriver.terms.literals(words));
        others.push(self.deriver.terms.class(&characters));
        self.deriver.terms.alt(others)
    }

    /// Lowers lookbehind: the body has just been read.
    fn look_behind(&mut self, body: TermId, negative: bool) -> TermId {
        let any = self.deriver.terms.class(&CharSet::all());
        let any = self.allow_edge_before(any);
        let any = self.deriver.terms.repeat(any, 0, UNBOUNDED, false);
        let marked = self.deriver.terms.cat(body, MARK);
        let behind = self.deriver.terms.cat(any, marked);
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
        self.deriver.terms.look_behind(index as u32, negative)
    }

    fn word_boundary(&mut self, negative: bool, word: &CharSet, empty_fails: bool) -> TermId {
        let word = self.deriver.terms.class(word);
        let after = self.look_behind(word, false);
        let not_after = self.look_behind(word, true);
        let ahead = self.with_edge_passed(|it| it.allow_edge_before(word));
        let rest = self.deriver.terms.cat(ahead, FULL);
        let before = self.deriver.terms.assert(rest);
        let rest = self.deriver.terms.not(rest);
        let not_before = self.deriver.terms.assert(rest);
        if !negative {
            let leaving = self.deriver.terms.cat(after, not_before);
            let entering = self.deriver.terms.cat(not_after, before);
            return self.deriver.terms.alt(vec![leaving, entering]);
        }
        let within = self.deriver.terms.cat(after, before);
        let mut outside = self.deriver.terms.cat(not_after, not_before);
        if empty_fails {
            let end = self.end();
            let something = self.deriver.terms.not(end);
            let ahead = self.deriver.terms.assert(something);
            let behind = self.text_start(true);
            let nonempty = self.deriver.terms.alt(vec![ahead, behind]);
            outside = self.deriver.terms.cat(nonempty, outside);
        }
        self.deriver.terms.alt(vec![within, outside])
    }
}
