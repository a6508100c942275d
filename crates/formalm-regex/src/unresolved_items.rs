//! Unresolved items: the contents of open parentheses, as written.
//!
//! Items are kept as written until the sequence around them is complete, because Python merges
//! alternatives by what was written: `a|\W` is one class, and case folding sees it as one.

use std::sync::Arc;

use formalm_core::CharSet;

use super::ast::PatternNode;

/// One element of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UnresolvedItem {
    /// One character.
    Atom(CharAtom),
    /// An anchor; it cannot be repeated.
    Anchor(AnchorKind),
    /// `(?:…)`: stands for its content unless a quantifier follows.
    Plain(Vec<UnresolvedItem>),
    /// An item with a quantifier, which takes no second one.
    Repeated(PatternNode),
    /// A lookaround; ECMA-262 does not let it be repeated.
    Look(PatternNode),
    /// Any other complete node.
    Complete(PatternNode),
}

/// One character as written; code points may be surrogates, which no string contains.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CharAtom {
    /// A literal character.
    Literal(u32),
    /// `[^x]`.
    NotLiteral(u32),
    /// `.`
    Any,
    /// A class.
    Set {
        /// `[^…]`.
        negated: bool,
        /// The listed members.
        members: Vec<ClassMember>,
    },
}

impl CharAtom {
    /// Creates the atom of a class escape outside brackets.
    pub(super) fn member(member: ClassMember) -> CharAtom {
        match member {
            ClassMember::Literal(code) => CharAtom::Literal(code),
            other => CharAtom::Set { negated: false, members: vec![other] },
        }
    }
}

/// An element of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClassMember {
    /// A character.
    Literal(u32),
    /// An inclusive range.
    Range(u32, u32),
    /// `\d`, `\s`, `\w`, or their negations.
    Perl(PerlClass, bool),
    /// `\p{…}`, already looked up, or its negation.
    Property(Arc<CharSet>, bool),
}

/// The classes with an escape letter of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PerlClass {
    /// `\d`
    Digit,
    /// `\s`
    Space,
    /// `\w`
    Word,
}

impl PerlClass {
    /// Returns the class of an escape letter, and whether the letter negates it.
    pub fn of(letter: char) -> Option<(PerlClass, bool)> {
        let perl = match letter.to_ascii_lowercase() {
            'd' => PerlClass::Digit,
            's' => PerlClass::Space,
            'w' => PerlClass::Word,
            _ => return None,
        };
        Some((perl, letter.is_ascii_uppercase()))
    }
}

/// Assertions without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AnchorKind {
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
