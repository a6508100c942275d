//! Patterns of `pattern` and `patternProperties`: searched for, not matched whole.

use formalm_automata::syntax::{Dialect, Flags, Node, Pattern, parse};
use formalm_automata::{CharSet, Error, Expression};

/// The texts in which a pattern is found.
pub(crate) struct PatternLanguage {
    /// `None`: all texts.
    pub(crate) language: Option<Expression>,
    /// Whether every text is the beginning of one of them.
    pub(crate) is_extensible: bool,
    /// Whether it is written in another dialect than JSON Schema's.
    pub(crate) is_other_dialect: bool,
}

/// Where a pattern has to match, by the names that Python's `re` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchMethod {
    /// Anywhere.
    Search,
    /// From the start of the text.
    Match,
    /// From end to end.
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

/// The texts in which a pattern of JSON Schema is found.
pub(crate) fn search_language(source: &str) -> Result<PatternLanguage, Error> {
    let (pattern, foreign) = match parse(source, Dialect::Ecma, Flags::default()) {
        Ok(pattern) => (pattern, false),
        Err(error) => {
            let flags = Flags { ascii: true, ..Flags::default() };
            (parse(source, Dialect::Python, flags).map_err(|_| error)?, true)
        }
    };
    Ok(PatternLanguage { is_other_dialect: foreign, ..searched(pattern) })
}

/// The texts that a pattern of any dialect matches.
pub(crate) fn match_language(
    source: &str,
    dialect: Dialect,
    flags: Flags,
    method: MatchMethod,
) -> Result<PatternLanguage, Error> {
    let mut pattern = parse(source, dialect, flags)?;
    match method {
        MatchMethod::Search => {}
        MatchMethod::Match => pattern.root = Node::Concat(vec![Node::TextStart, pattern.root]),
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

fn searched(pattern: Pattern) -> PatternLanguage {
    let pattern = whole_string_pattern(pattern);
    let open = is_extensible(&pattern.root);
    let texts = (!accepts_any(&pattern.root)).then(|| Expression::pattern(pattern));
    PatternLanguage { language: texts, is_extensible: open, is_other_dialect: false }
}

/// Any number of any characters.
pub(crate) fn any_string() -> Node {
    any_chars(0, None)
}

/// `min` to `max` of any characters.
pub(crate) fn any_chars(min: u32, max: Option<u32>) -> Node {
    let node = Box::new(Node::Class(CharSet::all()));
    Node::Repeat { node, min, max, lazy: false }
}

/// The whole texts of a pattern that is searched for.
///
/// Anchors at the edges, or at those of alternatives, are what most patterns have; without them no
/// look-around is left, which keeps the language plain.
fn whole_string_pattern(pattern: Pattern) -> Pattern {
    Pattern { root: pad_unanchored(pattern.root), ..pattern }
}

/// Whether a node certainly takes every text: any characters, and nothing that has to be there.
fn accepts_any(node: &Node) -> bool {
    let may_be_empty = |node: &Node| matches!(node, Node::Empty | Node::Repeat { min: 0, .. });
    match node {
        Node::Concat(list) => list.contains(&any_string()) && list.iter().all(may_be_empty),
        Node::Alternation(list) => list.iter().any(accepts_any),
        Node::Group { node, .. } => accepts_any(node),
        _ => false,
    }
}

/// Whether every text is certainly the beginning of one in which something is found anywhere.
fn is_extensible(node: &Node) -> bool {
    match node {
        Node::Concat(list) => {
            let around = list.first() == Some(&any_string()) && list.last() == Some(&any_string());
            around && list.iter().all(certainly_matches)
        }
        Node::Alternation(list) => list.iter().any(is_extensible),
        Node::Group { node, .. } => is_extensible(node),
        _ => false,
    }
}

/// Whether a node certainly matches some text, wherever it stands.
fn certainly_matches(node: &Node) -> bool {
    match node {
        Node::Empty => true,
        Node::Class(set) => *set != CharSet::default(),
        Node::Concat(list) | Node::Alternation(list) => list.iter().all(certainly_matches),
        Node::Repeat { node, .. } | Node::Group { node, .. } => certainly_matches(node),
        _ => false,
    }
}

/// Whether a node begins or ends with an anchor, or some alternative does.
fn has_anchors(node: &Node) -> bool {
    match node {
        Node::TextStart | Node::TextEnd => true,
        Node::Concat(list) => [list.first(), list.last()].into_iter().flatten().any(has_anchors),
        Node::Alternation(list) => list.iter().any(has_anchors),
        Node::Group { node, .. } => has_anchors(node),
        _ => false,
    }
}

/// The texts in which a node is found.
fn pad_unanchored(node: Node) -> Node {
    let mut list = match node {
        Node::Alternation(list) if list.iter().any(has_anchors) => {
            return Node::Alternation(list.into_iter().map(pad_unanchored).collect());
        }
        Node::Group { index, node } if has_anchors(&node) => {
            return Node::Group { index, node: Box::new(pad_unanchored(*node)) };
        }
        Node::Concat(list) => list,
        one => vec![one],
    };
    let from_start = matches!(list.first(), Some(Node::TextStart));
    if from_start {
        list.remove(0);
    }
    let to_end = matches!(list.last(), Some(Node::TextEnd));
    if to_end {
        list.pop();
    }
    if !from_start {
        list.insert(0, any_string());
    }
    if !to_end {
        list.push(any_string());
    }
    Node::Concat(list)
}
