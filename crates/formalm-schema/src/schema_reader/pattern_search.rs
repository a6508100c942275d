//! Patterns of `pattern` and `patternProperties`: searched for, not matched whole.

use formalm_automata::syntax::{Dialect, Flags, Node, Pattern, parse};
use formalm_automata::{CharSet, Error, Expression};

/// The texts in which a pattern is found.
pub(crate) struct Search {
    /// `None`: all texts.
    pub(crate) texts: Option<Expression>,
    /// Whether every text is the beginning of one of them.
    pub(crate) open: bool,
    /// Whether it is written in another dialect than JSON Schema's.
    pub(crate) foreign: bool,
}

/// Where a pattern has to match, by the names that Python's `re` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Anywhere.
    Search,
    /// From the start of the text.
    Match,
    /// From end to end.
    FullMatch,
}

impl Method {
    pub(crate) fn named(name: &str) -> Option<Method> {
        match name {
            "search" => Some(Method::Search),
            "match" => Some(Method::Match),
            "fullmatch" => Some(Method::FullMatch),
            _ => None,
        }
    }
}

/// The texts in which a pattern of JSON Schema is found.
pub(crate) fn search(source: &str) -> Result<Search, Error> {
    let (pattern, foreign) = match parse(source, Dialect::Ecma, Flags::default()) {
        Ok(pattern) => (pattern, false),
        Err(error) => {
            let flags = Flags { ascii: true, ..Flags::default() };
            (parse(source, Dialect::Python, flags).map_err(|_| error)?, true)
        }
    };
    Ok(Search { foreign, ..found_in(pattern) })
}

/// The texts that a pattern of any dialect matches.
pub(crate) fn matched(
    source: &str,
    dialect: Dialect,
    flags: Flags,
    method: Method,
) -> Result<Search, Error> {
    let mut pattern = parse(source, dialect, flags)?;
    match method {
        Method::Search => {}
        Method::Match => pattern.root = Node::Concat(vec![Node::TextStart, pattern.root]),
        Method::FullMatch => {
            let texts = Some(Expression::pattern(pattern));
            return Ok(Search { texts, open: false, foreign: false });
        }
    }
    Ok(found_in(pattern))
}

fn found_in(pattern: Pattern) -> Search {
    let pattern = unanchored(pattern);
    let open = is_open(&pattern.root);
    let texts = (!takes_all(&pattern.root)).then(|| Expression::pattern(pattern));
    Search { texts, open, foreign: false }
}

/// Any number of any characters.
pub(crate) fn anything() -> Node {
    repeated(0, None)
}

/// `min` to `max` of any characters.
pub(crate) fn repeated(min: u32, max: Option<u32>) -> Node {
    let node = Box::new(Node::Class(CharSet::all()));
    Node::Repeat { node, min, max, lazy: false }
}

/// The whole texts of a pattern that is searched for.
///
/// Anchors at the edges, or at those of alternatives, are what most patterns have; without them no
/// look-around is left, which keeps the language plain.
fn unanchored(pattern: Pattern) -> Pattern {
    Pattern { root: found(pattern.root), ..pattern }
}

/// Whether a node certainly takes every text: any characters, and nothing that has to be there.
fn takes_all(node: &Node) -> bool {
    let may_be_empty = |node: &Node| matches!(node, Node::Empty | Node::Repeat { min: 0, .. });
    match node {
        Node::Concat(list) => list.contains(&anything()) && list.iter().all(may_be_empty),
        Node::Alternation(list) => list.iter().any(takes_all),
        Node::Group { node, .. } => takes_all(node),
        _ => false,
    }
}

/// Whether every text is certainly the beginning of one in which something is found anywhere.
fn is_open(node: &Node) -> bool {
    match node {
        Node::Concat(list) => {
            let around = list.first() == Some(&anything()) && list.last() == Some(&anything());
            around && list.iter().all(is_somewhere)
        }
        Node::Alternation(list) => list.iter().any(is_open),
        Node::Group { node, .. } => is_open(node),
        _ => false,
    }
}

/// Whether a node certainly matches some text, wherever it stands.
fn is_somewhere(node: &Node) -> bool {
    match node {
        Node::Empty => true,
        Node::Class(set) => *set != CharSet::default(),
        Node::Concat(list) | Node::Alternation(list) => list.iter().all(is_somewhere),
        Node::Repeat { node, .. } | Node::Group { node, .. } => is_somewhere(node),
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
fn found(node: Node) -> Node {
    let mut list = match node {
        Node::Alternation(list) if list.iter().any(has_anchors) => {
            return Node::Alternation(list.into_iter().map(found).collect());
        }
        Node::Group { index, node } if has_anchors(&node) => {
            return Node::Group { index, node: Box::new(found(*node)) };
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
        list.insert(0, anything());
    }
    if !to_end {
        list.push(anything());
    }
    Node::Concat(list)
}
