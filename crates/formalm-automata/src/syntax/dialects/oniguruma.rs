//! Escapes, classes and groups of the oniguruma and fancy dialects: as much as pre-tokenizers use.

use crate::charset::CharSet;
use crate::error::Error;
use crate::syntax::ast::Node;
use crate::syntax::dialects::ecma_escapes;
use crate::syntax::parser::{Kind, Parser};
use crate::syntax::pattern_cursor::{Cursor, Token};
use crate::syntax::unresolved_items::{Atom, Item, Member};
use crate::syntax::{Dialect, Flags};

/// An escape outside a class; the backslash was at `start`.
pub(in crate::syntax) fn escape(
    parser: &mut Parser,
    letter: char,
    start: usize,
) -> Result<Item, Error> {
    Ok(Item::Atom(Atom::member(member(parser, letter, start)?)))
}

/// An escape that means the same inside and outside a class, and the same as to ECMA-262 but for
/// the characters of `\d` and `\s`.
fn member(parser: &mut Parser, letter: char, start: usize) -> Result<Member, Error> {
    let braced = parser.cursor.peek() == Some(Token::Char('{'));
    match letter {
        'x' | 'u' if braced => Err(unread(&parser.cursor, start)),
        'd' | 'D' | 's' | 'S' | 'p' | 'P' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | 'u' => {
            ecma_escapes::member(parser, letter, start)
        }
        _ if letter.is_ascii_alphanumeric() => Err(unread(&parser.cursor, start)),
        _ => Ok(Member::Literal(letter.into())),
    }
}

/// One element of a class.
pub(in crate::syntax) fn class_member(
    parser: &mut Parser,
    token: Token,
    start: usize,
) -> Result<Member, Error> {
    match token {
        // Classes within classes, and intersections of classes.
        Token::Char('[') => Err(unread(&parser.cursor, start)),
        Token::Char('&') if parser.cursor.peek() == Some(Token::Char('&')) => {
            Err(unread(&parser.cursor, start))
        }
        // Differences of classes.
        Token::Char(twice @ ('-' | '~'))
            if parser.dialect == Dialect::Fancy
                && parser.cursor.peek() == Some(Token::Char(twice)) =>
        {
            Err(unread(&parser.cursor, start))
        }
        Token::Char(character) => Ok(Member::Literal(character.into())),
        Token::Escape(letter) => member(parser, letter, start),
    }
}

/// Reads what follows the parenthesis at `start`: what it opens and the flags inside.
pub(in crate::syntax) fn open(
    parser: &mut Parser,
    start: usize,
) -> Result<Option<(Kind, Flags)>, Error> {
    let flags = parser.open.flags;
    if !parser.cursor.eat('?') {
        return Ok(Some((parser.capture(start, None)?, flags)));
    }
    let kind = match parser.cursor.next().and_then(Token::plain) {
        Some(':') => Kind::Plain,
        Some('>') => Kind::Atomic,
        Some('=') => Kind::Look { ahead: true, negative: false },
        Some('!') => Kind::Look { ahead: true, negative: true },
        Some('i') if parser.cursor.eat(':') => {
            return Ok(Some((Kind::Scoped, Flags { ignore_case: true, ..flags })));
        }
        _ => return Err(unread(&parser.cursor, start)),
    };
    Ok(Some((kind, flags)))
}

/// The end of the text: no character follows.
pub(in crate::syntax) fn text_end() -> Node {
    let node = Box::new(Node::Class(CharSet::all()));
    Node::Look { ahead: true, negative: true, node }
}

/// Why something that Oniguruma reads is not read here.
pub(in crate::syntax) fn unread(cursor: &Cursor, start: usize) -> Error {
    let message = format!("{} is not read in patterns of pre-tokenizers", cursor.text(start));
    let hint = "its exact meaning to the tokenizer is not known here";
    cursor.refuse(start, message, hint)
}
