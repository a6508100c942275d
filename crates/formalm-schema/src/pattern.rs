//! Patterns of `pattern` and `patternProperties`: searched for, not matched whole.

use formalm_automata::syntax::{Dialect, Flags, Node, Pattern, parse};
use formalm_automata::{CharSet, Error, Expression};

/// The texts in which a pattern is found, and whether it is written in another dialect than
/// JSON Schema's.
pub(crate) fn search(source: &str) -> Result<(Expression, bool), Error> {
    let (pattern, foreign) = match parse(source, Dialect::Ecma, Flags::default()) {
        Ok(pattern) => (pattern, false),
        Err(error) => {
            let flags = Flags { ascii: true, ..Flags::default() };
            (parse(source, Dialect::Python, flags).map_err(|_| error)?, true)
        }
    };
    Ok((Expression::pattern(unanchored(pattern)), foreign))
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
/// Anchors at the edges are what most patterns have; without them no look-around is left, which
/// keeps the language plain.
fn unanchored(pattern: Pattern) -> Pattern {
    let mut list = match pattern.root {
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
    Pattern { root: Node::Concat(list), ..pattern }
}
