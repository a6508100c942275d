//! Escapes, classes and groups of the `oniguruma` and `fancy` dialects, as far as pre-tokenizers
//! use them.

use formalm_core::{CharSet, Error};

use crate::ast::PatternNode;
use crate::dialects::ecma_escapes;
use crate::parser::{GroupKind, PatternParser};
use crate::pattern_cursor::{PatternCursor, PatternToken};
use crate::unresolved_items::{CharAtom, ClassMember, UnresolvedItem};
use crate::{PatternDialect, PatternFlags};

/// Reads an escape outside a class; the backslash was at `start`.
pub(crate) fn escape(
    parser: &mut PatternParser,
    letter: char,
    start: usize,
) -> Result<UnresolvedItem, Error> {
    Ok(UnresolvedItem::Atom(CharAtom::member(member(parser, letter, start)?)))
}

/// Reads an escape that means the same inside and outside a class, and in ECMA-262, except for the
/// characters of `\d` and `\s`.
fn member(parser: &mut PatternParser, letter: char, start: usize) -> Result<ClassMember, Error> {
    let braced = parser.cursor.peek() == Some(PatternToken::Char('{'));
    match letter {
        'x' | 'u' if braced => Err(unread(&parser.cursor, start)),
        'd' | 'D' | 's' | 'S' | 'p' | 'P' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | 'u' => {
            ecma_escapes::member(parser, letter, start)
        }
        _ if letter.is_ascii_alphanumeric() => Err(unread(&parser.cursor, start)),
        _ => Ok(ClassMember::Literal(letter.into())),
    }
}

/// Reads one element of a class.
pub(crate) fn class_member(
    parser: &mut PatternParser,
    symbol: PatternToken,
    start: usize,
) -> Result<ClassMember, Error> {
    match symbol {
        // Nested classes, and intersections of classes.
        PatternToken::Char('[') => Err(unread(&parser.cursor, start)),
        PatternToken::Char('&') if parser.cursor.peek() == Some(PatternToken::Char('&')) => {
            Err(unread(&parser.cursor, start))
        }
        // Differences of classes.
        PatternToken::Char(twice @ ('-' | '~'))
            if parser.dialect == PatternDialect::Fancy
                && parser.cursor.peek() == Some(PatternToken::Char(twice)) =>
        {
            Err(unread(&parser.cursor, start))
        }
        PatternToken::Char(character) => Ok(ClassMember::Literal(character.into())),
        PatternToken::Escape(letter) => member(parser, letter, start),
    }
}

/// Reads what follows the parenthesis at `start`; returns the kind of group and the flags inside.
pub(crate) fn open(
    parser: &mut PatternParser,
    start: usize,
) -> Result<Option<(GroupKind, PatternFlags)>, Error> {
    let flags = parser.open.flags;
    if !parser.cursor.eat('?') {
        return Ok(Some((parser.capture(start, None)?, flags)));
    }
    let kind = match parser.cursor.next().and_then(PatternToken::plain) {
        Some(':') => GroupKind::Plain,
        Some('>') => GroupKind::Atomic,
        Some('=') => GroupKind::Look { ahead: true, negative: false },
        Some('!') => GroupKind::Look { ahead: true, negative: true },
        Some('i') if parser.cursor.eat(':') => {
            return Ok(Some((GroupKind::Scoped, PatternFlags { ignore_case: true, ..flags })));
        }
        _ => return Err(unread(&parser.cursor, start)),
    };
    Ok(Some((kind, flags)))
}

/// Returns the end of the string: no character follows.
pub(crate) fn text_end() -> PatternNode {
    let node = Box::new(PatternNode::Class(CharSet::all()));
    PatternNode::Look { ahead: true, negative: true, node }
}

/// Refuses syntax that is valid in Oniguruma but not read here.
pub(crate) fn unread(cursor: &PatternCursor, start: usize) -> Error {
    let message = format!("{} is not supported in pre-tokenizer patterns", cursor.text(start));
    let hint = "its exact meaning in the tokenizer is unknown";
    cursor.refuse(start, message, hint)
}
