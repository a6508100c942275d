//! Languages of `pattern` and `patternProperties`: a pattern is searched for, not matched against
//! the whole string.
//!
//! The search language of `p` is `.*p.*`. Anchors at the edges of the pattern or of its
//! alternatives are removed instead of compiled, since most patterns have them there. What is left
//! mostly needs no look-around.

use formalm_automata::Expression;
use formalm_core::{CharSet, Error};
use formalm_regex::{Pattern, PatternDialect, PatternFlags, PatternNode, parse};

/// The language of a pattern.
pub(crate) struct PatternLanguage {
    /// The strings that match; `None` for all strings.
    pub(crate) language: Option<Expression>,
    /// Every string certainly is a prefix of one that matches.
    pub(crate) is_extensible: bool,
    /// The pattern was read in another dialect than JSON Schema's.
    pub(crate) is_other_dialect: bool,
}

/// How a pattern is applied to a string, by the names of Python's `re`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchMethod {
    /// Anywhere in the string.
    Search,
    /// At the start of the string.
    Match,
    /// The whole string.
    FullMatch,
}

impl MatchMethod {
    pub(crate) fn from_name(name: &str) -> Option<MatchMethod> {
        match name {
            "search" => Some(MatchMethod::Search),
            "match" => Some(MatchMethod::Match),
            "fullmatch" => Some(MatchMethod::FullMatch),
            _ => None,
        }
    }
}

/// Returns the strings in which a JSON Schema pattern is found: ECMA-262, or Python syntax if that
/// fails. Fails with the first error if both do.
pub(crate) fn search_language(source: &str) -> Result<PatternLanguage, Error> {
    let (pattern, foreign) = match parse(source, PatternDialect::Ecma, PatternFlags::default()) {
        Ok(pattern) => (pattern, false),
        Err(error) => {
            let flags = PatternFlags { ascii: true, ..PatternFlags::default() };
            (parse(source, PatternDialect::Python, flags).map_err(|_| error)?, true)
        }
    };
    Ok(PatternLanguage { is_other_dialect: foreign, ..searched(pattern) })
}

/// Returns the strings that a pattern matches, in a given dialect. Fails if the pattern is invalid.
pub(crate) fn match_language(
    source: &str,
    dialect: PatternDialect,
    flags: PatternFlags,
    method: MatchMethod,
) -> Result<PatternLanguage, Error> {
    let mut pattern = parse(source, dialect, flags)?;
    match method {
        MatchMethod::Search => {}
        MatchMethod::Match => {
            pattern.root = PatternNode::Concat(vec![PatternNode::TextStart, pattern.root])
        }
        MatchMethod::FullMatch => {
            let texts = Some(Expression::pattern(pattern));
            return Ok(PatternLanguage {
                language: texts,
                is_extensible: false,
                is_other_dialect: false,
            });
        }
    }
    Ok(searched(pattern))
}

/// Returns the language of a pattern that is searched for.
fn searched(pattern: Pattern) -> PatternLanguage {
    let pattern = whole_string_pattern(pattern);
    let open = is_extensible(&pattern.root);
    let texts = (!accepts_any(&pattern.root)).then(|| Expression::pattern(pattern));
    PatternLanguage { language: texts, is_extensible: open, is_other_dialect: false }
}

/// Returns the pattern `.*` over all characters.
pub(crate) fn any_string() -> PatternNode {
    any_chars(0, None)
}

/// Returns the pattern `.{min,max}` over all characters.
pub(crate) fn any_chars(min: u32, max: Option<u32>) -> PatternNode {
    let node = Box::new(PatternNode::Class(CharSet::all()));
    PatternNode::Repeat { node, min, max, lazy: false }
}

/// Returns the pattern of whole strings in which `pattern` is found.
///
/// Anchors at the edges (of the pattern, or of its alternatives) become the absence of `.*`.
/// Without them most patterns have no look-around left, so their language stays a plain regular
/// expression.
fn whole_string_pattern(pattern: Pattern) -> Pattern {
    Pattern { root: pad_unanchored(pattern.root), ..pattern }
}

/// Returns `true` if the node certainly matches every string.
fn accepts_any(node: &PatternNode) -> bool {
    let may_be_empty = |node: &PatternNode| {
        matches!(node, PatternNode::Empty | PatternNode::Repeat { min: 0, .. })
    };
    match node {
        PatternNode::Concat(list) => list.contains(&any_string()) && list.iter().all(may_be_empty),
        PatternNode::Alternation(list) => list.iter().any(accepts_any),
        PatternNode::Group { node, .. } => accepts_any(node),
        _ => false,
    }
}

/// Returns `true` if every string certainly is a prefix of one that the node matches.
fn is_extensible(node: &PatternNode) -> bool {
    match node {
        PatternNode::Concat(list) => {
            let around = list.first() == Some(&any_string()) && list.last() == Some(&any_string());
            around && list.iter().all(certainly_matches)
        }
        PatternNode::Alternation(list) => list.iter().any(is_extensible),
        PatternNode::Group { node, .. } => is_extensible(node),
        _ => false,
    }
}

/// Returns `true` if the node certainly matches some string in every context.
fn certainly_matches(node: &PatternNode) -> bool {
    match node {
        PatternNode::Empty => true,
        PatternNode::Class(set) => *set != CharSet::default(),
        PatternNode::Concat(list) | PatternNode::Alternation(list) => {
            list.iter().all(certainly_matches)
        }
        PatternNode::Repeat { node, .. } | PatternNode::Group { node, .. } => {
            certainly_matches(node)
        }
        _ => false,
    }
}

/// Returns `true` if the node, or one of its alternatives, begins or ends with an anchor.
fn has_anchors(node: &PatternNode) -> bool {
    match node {
        PatternNode::TextStart | PatternNode::TextEnd => true,
        PatternNode::Concat(list) => {
            [list.first(), list.last()].into_iter().flatten().any(has_anchors)
        }
        PatternNode::Alternation(list) => list.iter().any(has_anchors),
        PatternNode::Group { node, .. } => has_anchors(node),
        _ => false,
    }
}

/// Surrounds the node with `.*` on each side that has no anchor.
fn pad_unanchored(node: PatternNode) -> PatternNode {
    let mut list = match node {
        PatternNode::Alternation(list) if list.iter().any(has_anchors) => {
            return PatternNode::Alternation(list.into_iter().map(pad_unanchored).collect());
        }
        PatternNode::Group { index, node } if has_anchors(&node) => {
            return PatternNode::Group { index, node: Box::new(pad_unanchored(*node)) };
        }
        PatternNode::Concat(list) => list,
        one => vec![one],
    };
    let from_start = matches!(list.first(), Some(PatternNode::TextStart));
    if from_start {
        list.remove(0);
    }
    let to_end = matches!(list.last(), Some(PatternNode::TextEnd));
    if to_end {
        list.pop();
    }
    if !from_start {
        list.insert(0, any_string());
    }
    if !to_end {
        list.push(any_string());
    }
    PatternNode::Concat(list)
}
