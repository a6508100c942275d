//! What stands between parentheses while they are open.
//!
//! An item is kept as written until the sequence around it is complete, because Python merges
//! alternatives by what was written: `a|\W` is one class, and case folding sees it as one.

use std::sync::Arc;

use super::ast::Node;
use crate::charset::CharSet;

/// One element of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// One character.
    Atom(Atom),
    /// An anchor; it cannot be repeated.
    Anchor(Anchor),
    /// `(?:…)`: stands for its content unless a quantifier follows.
    Plain(Vec<Item>),
    /// Something with a quantifier, which takes no second one.
    Repeated(Node),
    /// A look-around; ECMA does not let it be repeated.
    Look(Node),
    /// Anything else that is complete.
    Done(Node),
}

/// One character as written; code points may be surrogates, which no text contains.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// This character.
    Literal(u32),
    /// `[^x]`.
    NotLiteral(u32),
    /// `.`
    Any,
    /// A class.
    Set {
        /// `[^…]`.
        negated: bool,
        /// What is listed.
        members: Vec<Member>,
    },
}

impl Atom {
    /// A class escape outside brackets.
    pub(super) fn member(member: Member) -> Atom {
        match member {
            Member::Literal(code) => Atom::Literal(code),
            other => Atom::Set { negated: false, members: vec![other] },
        }
    }
}

/// An element of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Member {
    /// A character.
    Literal(u32),
    /// From the first to the last, both included.
    Range(u32, u32),
    /// `\d`, `\s`, `\w`, or their negations.
    Perl(Perl, bool),
    /// `\p{…}`, already looked up, or its negation.
    Property(Arc<CharSet>, bool),
}

/// The classes with a letter of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Perl {
    /// `\d`
    Digit,
    /// `\s`
    Space,
    /// `\w`
    Word,
}

impl Perl {
    /// The class of an escape letter, and whether the letter negates it.
    pub(super) fn of(letter: char) -> Option<(Perl, bool)> {
        let perl = match letter.to_ascii_lowercase() {
            'd' => Perl::Digit,
            's' => Perl::Space,
            'w' => Perl::Word,
            _ => return None,
        };
        Some((perl, letter.is_ascii_uppercase()))
    }
}

/// Assertions without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Anchor {
    /// `^`
    Caret,
    /// `$`
    Dollar,
    /// `\A`
    TextStart,
    /// `\Z`
    TextEnd,
    /// `\b` (`false`) or `\B` (`true`).
    Boundary(bool),
}
