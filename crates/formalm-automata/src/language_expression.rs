//! Regular languages as expression graphs: set algebra, edits and rewrites, before any automaton is
//! built.

use std::sync::Arc;

use formalm_core::{CharSet, Error, Resource, check_limit};
use formalm_regex::{CaptureGroup, Pattern};

use crate::terms::UNBOUNDED;
use crate::terms::custom_language::CharRecognizer;
use crate::transduce::EditRules;

/// Maximum nesting depth of expressions; unions and concatenations of any length are flat. Chosen,
/// not measured.
const MAX_NESTING: u32 = 200;

/// Maximum number of groups of one expression; operands used twice count twice.
const MAX_GROUPS: u64 = 1 << 20;

/// The byte that marks the end of a lexeme in [`Expression::lexeme`]. UTF-8 has no such byte.
pub const LEXEME_END: u8 = 0xff;

/// A regular language, immutable and cheap to clone. Set algebra is relative to valid UTF-8.
#[derive(Clone, Debug)]
pub struct Expression {
    node: Arc<ExpressionNode>,
    depth: u32,
    /// Every member is known to be valid UTF-8.
    utf8: bool,
    /// Number of groups of its patterns, counted once per occurrence.
    groups: u64,
}

#[derive(Debug)]
pub(crate) enum ExpressionNode {
    Pattern(Pattern),
    Lexeme(Pattern),
    Literals(Vec<Vec<u8>>),
    /// A recognizer, with its name if it is the same in all processes.
    Custom(Arc<dyn CharRecognizer>, Option<&'static str>),
    Union(Vec<Expression>),
    Concat(Vec<Expression>),
    Repeat(Expression, u32, u32),
    Intersection(Vec<Expression>),
    Difference(Expression, Expression),
    Complement(Expression),
    Edits(Expression, EditRules),
    Rewrite {
        original: Expression,
        rules: Vec<(String, Expression)>,
        optional: bool,
    },
}

impl Expression {
    /// Returns the language of a parsed pattern that must match whole strings.
    pub fn pattern(pattern: Pattern) -> Expression {
        Expression::leaf(ExpressionNode::Pattern(pattern))
    }

    /// Returns the language of a pattern matched at the beginning of a longer input, together with
    /// that input. Members are a match, [`LEXEME_END`], and what follows it, without another
    /// `LEXEME_END`. Lookahead and the end of the input see what follows the match; lookbehind
    /// and the start of the input see only the match.
    pub fn lexeme(pattern: Pattern) -> Expression {
        Expression::leaf(ExpressionNode::Lexeme(pattern))
    }

    /// Returns `true` if this is an [`Expression::lexeme`].
    pub fn is_lexeme(&self) -> bool {
        matches!(&*self.node, ExpressionNode::Lexeme(_))
    }

    /// Returns the listed strings if the language is given by a list.
    pub(crate) fn as_literals(&self) -> Option<&[Vec<u8>]> {
        match &*self.node {
            ExpressionNode::Literals(texts) => Some(texts),
            _ => None,
        }
    }

    /// Returns the character set of each position if the language is a pattern that is a plain
    /// sequence of sets.
    pub(crate) fn as_class_sequence(&self) -> Option<Vec<&CharSet>> {
        let ExpressionNode::Pattern(pattern) = &*self.node else { return None };
        let mut sets = Vec::new();
        let mut open = vec![&pattern.root];
        while let Some(node) = open.pop() {
            match node {
                formalm_regex::PatternNode::Empty => {}
                formalm_regex::PatternNode::Class(set) => sets.push(set),
                formalm_regex::PatternNode::Concat(list) => open.extend(list.iter().rev()),
                formalm_regex::PatternNode::Group { node, .. } => open.push(node),
                _ => return None,
            }
        }
        Some(sets)
    }

    /// Returns the language of the given strings, which may be any bytes.
    pub fn literals(texts: Vec<Vec<u8>>) -> Expression {
        Expression::leaf(ExpressionNode::Literals(texts))
    }

    /// Returns the language of a recognizer, which must be nonempty.
    pub fn custom(recognizer: Arc<dyn CharRecognizer>) -> Expression {
        Expression::leaf(ExpressionNode::Custom(recognizer, None))
    }

    /// Returns the language of a recognizer with a name. The name and the number of a state must
    /// determine what the recognizer reads on, in every process.
    pub fn named_custom(name: &'static str, recognizer: Arc<dyn CharRecognizer>) -> Expression {
        Expression::leaf(ExpressionNode::Custom(recognizer, Some(name)))
    }

    /// Returns the union of the languages.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when expressions are nested too deeply, as for every combinator.
    pub fn union(list: Vec<Expression>) -> Result<Expression, Error> {
        let flat = flatten(list, |node| match node {
            ExpressionNode::Union(list) => Some(list),
            _ => None,
        });
        let mut list = join_literals(flat);
        match list.pop() {
            Some(only) if list.is_empty() => Ok(only),
            last => {
                list.extend(last);
                Expression::combine(ExpressionNode::Union(list))
            }
        }
    }

    /// Returns the concatenation of the languages.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when expressions are nested too deeply.
    pub fn concat(list: Vec<Expression>) -> Result<Expression, Error> {
        let flat = flatten(list, |node| match node {
            ExpressionNode::Concat(list) => Some(list),
            _ => None,
        });
        Expression::combine(ExpressionNode::Concat(flat))
    }

    /// Returns `min` to `max` repetitions; `None` is unbounded.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when expressions are nested too deeply.
    pub fn repeat(self, min: u32, max: Option<u32>) -> Result<Expression, Error> {
        Expression::combine(ExpressionNode::Repeat(self, min, max.unwrap_or(UNBOUNDED)))
    }

    /// Returns the intersection of the languages.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when expressions are nested too deeply.
    pub fn intersection(list: Vec<Expression>) -> Result<Expression, Error> {
        let flat = flatten(list, |node| match node {
            ExpressionNode::Intersection(list) => Some(list),
            _ => None,
        });
        Expression::combine(ExpressionNode::Intersection(flat))
    }

    /// Returns the members of this language that are not members of the other.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when expressions are nested too deeply.
    pub fn difference(self, other: Expression) -> Result<Expression, Error> {
        Expression::combine(ExpressionNode::Difference(self, other))
    }

    /// Returns the valid UTF-8 strings that are not members.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when expressions are nested too deeply.
    pub fn complement(self) -> Result<Expression, Error> {
        Expression::combine(ExpressionNode::Complement(self))
    }

    /// Returns `true` if every member is valid UTF-8; `false` may also mean that this is unknown.
    pub fn is_utf8(&self) -> bool {
        self.utf8
    }

    fn leaf(node: ExpressionNode) -> Expression {
        let (text, groups) = (node.is_utf8(), node.groups());
        Expression { node: Arc::new(node), depth: 1, utf8: text, groups }
    }

    /// Returns the characters of a language whose members are single characters, if it is written
    /// as such.
    pub fn as_class(&self) -> Option<CharSet> {
        let only = |text: &Vec<u8>| {
            let mut characters = std::str::from_utf8(text).ok()?.chars();
            characters.next().filter(|_| characters.next().is_none())
        };
        match &*self.node {
            ExpressionNode::Pattern(pattern) => formalm_regex::class_of(&pattern.root),
            ExpressionNode::Literals(list) => {
                let characters: Option<Vec<char>> = list.iter().map(only).collect();
                Some(CharSet::from_ranges(characters?.into_iter().map(|one| (one, one))))
            }
            ExpressionNode::Union(list) => list
                .iter()
                .try_fold(CharSet::empty(), |joined, one| Some(joined.union(&one.as_class()?))),
            _ => None,
        }
    }

    /// Returns the pattern if the expression is one.
    pub fn as_pattern(&self) -> Option<&Pattern> {
        match &*self.node {
            ExpressionNode::Pattern(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Returns the groups of all its patterns in the order written. Patterns that are subtracted,
    /// complemented, edited or rewritten have none, since no member matches them.
    pub fn groups(&self) -> Vec<&CaptureGroup> {
        let mut groups = Vec::new();
        self.add_groups(&mut groups);
        groups
    }

    /// Returns `true` if there are any [`Expression::groups`].
    pub(crate) fn has_groups(&self) -> bool {
        self.groups > 0
    }

    fn add_groups<'a>(&'a self, groups: &mut Vec<&'a CaptureGroup>) {
        if !self.has_groups() {
            return;
        }
        match &*self.node {
            ExpressionNode::Pattern(pattern) => groups.extend(&pattern.groups),
            ExpressionNode::Union(list)
            | ExpressionNode::Concat(list)
            | ExpressionNode::Intersection(list) => {
                list.iter().for_each(|one| one.add_groups(groups));
            }
            ExpressionNode::Repeat(one, ..) | ExpressionNode::Difference(one, _) => {
                one.add_groups(groups)
            }
            ExpressionNode::Lexeme(_)
            | ExpressionNode::Literals(_)
            | ExpressionNode::Custom(..)
            | ExpressionNode::Complement(_)
            | ExpressionNode::Edits(..)
            | ExpressionNode::Rewrite { .. } => {}
        }
    }

    pub(crate) fn node(&self) -> &ExpressionNode {
        &self.node
    }

    /// Returns the identity of the node, if other expressions may share it and it has parts.
    pub(crate) fn shared_address(&self) -> Option<usize> {
        let is_shared = self.depth > 1 && Arc::strong_count(&self.node) > 1;
        is_shared.then(|| Arc::as_ptr(&self.node).addr())
    }

    pub(crate) fn combine(node: ExpressionNode) -> Result<Expression, Error> {
        let below = match &node {
            ExpressionNode::Pattern(_)
            | ExpressionNode::Lexeme(_)
            | ExpressionNode::Literals(_)
            | ExpressionNode::Custom(..) => 0,
            ExpressionNode::Union(list)
            | ExpressionNode::Concat(list)
            | ExpressionNode::Intersection(list) => {
                list.iter().map(|one| one.depth).max().unwrap_or(0)
            }
            ExpressionNode::Repeat(one, ..) | ExpressionNode::Complement(one) => one.depth,
            ExpressionNode::Difference(left, right) => left.depth.max(right.depth),
            ExpressionNode::Edits(one, edits) => {
                let regions = [&edits.after, &edits.before].into_iter().flatten();
                regions.map(|region| region.depth).max().unwrap_or(0).max(one.depth)
            }
            ExpressionNode::Rewrite { original, rules, .. } => {
                let targets = rules.iter().map(|(_, target)| target.depth);
                targets.max().unwrap_or(0).max(original.depth)
            }
        };
        check_limit(Resource::Nesting, u64::from(below) + 1, u64::from(MAX_NESTING))?;
        let (text, groups) = (node.is_utf8(), node.groups());
        check_limit(Resource::Terms, groups, MAX_GROUPS)?;
        Ok(Expression { node: Arc::new(node), depth: below + 1, utf8: text, groups })
    }
}

impl ExpressionNode {
    /// Returns the number of groups, from that of the parts.
    fn groups(&self) -> u64 {
        match self {
            ExpressionNode::Pattern(pattern) => pattern.groups.len() as u64,
            ExpressionNode::Union(list)
            | ExpressionNode::Concat(list)
            | ExpressionNode::Intersection(list) => {
                list.iter().fold(0, |all, one| all.saturating_add(one.groups))
            }
            ExpressionNode::Repeat(one, ..) | ExpressionNode::Difference(one, _) => one.groups,
            ExpressionNode::Lexeme(_)
            | ExpressionNode::Literals(_)
            | ExpressionNode::Custom(..)
            | ExpressionNode::Complement(_)
            | ExpressionNode::Edits(..)
            | ExpressionNode::Rewrite { .. } => 0,
        }
    }

    /// Returns `true` if every member is known to be valid UTF-8, from what is known of the parts.
    fn is_utf8(&self) -> bool {
        match self {
            ExpressionNode::Pattern(_)
            | ExpressionNode::Custom(..)
            | ExpressionNode::Complement(_) => true,
            ExpressionNode::Lexeme(_) => false,
            ExpressionNode::Literals(list) => {
                list.iter().all(|text| std::str::from_utf8(text).is_ok())
            }
            ExpressionNode::Union(list) | ExpressionNode::Concat(list) => {
                list.iter().all(Expression::is_utf8)
            }
            ExpressionNode::Intersection(list) => list.iter().any(Expression::is_utf8),
            ExpressionNode::Repeat(one, ..)
            | ExpressionNode::Difference(one, _)
            | ExpressionNode::Edits(one, _) => one.is_utf8(),
            ExpressionNode::Rewrite { original, rules, .. } => {
                original.is_utf8() && rules.iter().all(|(_, target)| target.is_utf8())
            }
        }
    }
}

/// Merges adjacent lists of strings into one list, which is read in one step per byte.
fn join_literals(list: Vec<Expression>) -> Vec<Expression> {
    let mut kept: Vec<Expression> = Vec::with_capacity(list.len());
    let mut texts: Vec<&Vec<u8>> = Vec::new();
    let mut at = 0;
    while at < list.len() {
        let run = list[at..]
            .iter()
            .take_while(|one| matches!(&*one.node, ExpressionNode::Literals(_)))
            .count();
        if run < 2 {
            kept.push(list[at].clone());
            at += 1;
            continue;
        }
        for one in &list[at..at + run] {
            if let ExpressionNode::Literals(some) = &*one.node {
                texts.extend(some);
            }
        }
        kept.push(Expression::literals(texts.drain(..).cloned().collect()));
        at += run;
    }
    kept
}

fn flatten(
    list: Vec<Expression>,
    inner: fn(&ExpressionNode) -> Option<&Vec<Expression>>,
) -> Vec<Expression> {
    let mut flat = Vec::with_capacity(list.len());
    for one in list {
        match inner(&one.node) {
            Some(members) => flat.extend_from_slice(members),
            None => flat.push(one),
        }
    }
    flat
}
