//! Escapes and classes of the ECMA-262 dialect.

use std::sync::Arc;

use formalm_core::Error;

use crate::PatternDialect;
use crate::dialects::oniguruma;
use crate::parser::PatternParser;
use crate::pattern_cursor::{PatternCursor, PatternToken};
use crate::unicode::properties::ecma_property;
use crate::unresolved_items::{AnchorKind, CharAtom, ClassMember, PerlClass, UnresolvedItem};

/// Reads an escape outside a class; the backslash was at `start`.
pub(crate) fn escape(
    parser: &mut PatternParser,
    letter: char,
    start: usize,
) -> Result<UnresolvedItem, Error> {
    match letter {
        'b' => return Ok(UnresolvedItem::Anchor(AnchorKind::Boundary(false))),
        'B' => return Ok(UnresolvedItem::Anchor(AnchorKind::Boundary(true))),
        '1'..='9' => {
            parser.cursor.digits(10, usize::MAX);
            return Err(reference(&parser.cursor, start));
        }
        'k' => {
            if parser.cursor.eat('<') {
                parser.cursor.until('>');
            }
            return Err(reference(&parser.cursor, start));
        }
        _ => {}
    }
    Ok(UnresolvedItem::Atom(CharAtom::member(member(parser, letter, start)?)))
}

fn reference(cursor: &PatternCursor, start: usize) -> Error {
    cursor.refuse(
        start,
        "backreferences are not regular",
        "repeat the group's pattern, or list the possible strings as alternatives",
    )
}

/// Reads an escape that means the same inside and outside a class.
pub(crate) fn member(
    parser: &mut PatternParser,
    letter: char,
    start: usize,
) -> Result<ClassMember, Error> {
    if let Some((perl, negated)) = PerlClass::of(letter) {
        return Ok(ClassMember::Perl(perl, negated));
    }
    let cursor = &mut parser.cursor;
    let code = match letter {
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        '0' => null(cursor, start)?,
        'c' => control(cursor, start)?,
        'x' => hexadecimal(cursor, 2, start)?,
        'u' => unicode(cursor, start)?,
        'p' | 'P' => return property(parser, letter == 'P', start),
        _ if letter.is_ascii_alphanumeric() => return Err(bad_escape(cursor, letter, start)),
        _ => letter.into(),
    };
    Ok(ClassMember::Literal(code))
}

fn bad_escape(cursor: &PatternCursor, letter: char, start: usize) -> Error {
    let message = format!("\\{letter} is not a valid escape in this dialect");
    let hint = match letter {
        'A' => "write ^ for the start of the string",
        'Z' | 'z' => "write $ for the end of the string",
        'U' | 'N' => "write \\u{h…} with hexadecimal digits h",
        '0'..='9' => "write \\xhh to give a character by its code",
        _ => "write the letter without the backslash, or \\\\ for a backslash",
    };
    cursor.refuse(start, message, hint)
}

fn null(cursor: &mut PatternCursor, start: usize) -> Result<u32, Error> {
    if cursor.digits(10, 1).0 > 0 {
        let hint = "write \\xhh with hexadecimal digits h";
        return Err(cursor.refuse(start, "octal escapes are not allowed", hint));
    }
    Ok(0)
}

fn control(cursor: &mut PatternCursor, start: usize) -> Result<u32, Error> {
    match cursor.next() {
        Some(PatternToken::Char(letter)) if letter.is_ascii_alphabetic() => {
            Ok(u32::from(letter) & 0x1f)
        }
        _ => {
            let hint = "write a letter after \\c, as in \\cJ";
            Err(cursor.refuse(start, "the control escape has no letter", hint))
        }
    }
}

fn hexadecimal(cursor: &mut PatternCursor, digits: usize, start: usize) -> Result<u32, Error> {
    let (count, value) = cursor.digits(16, digits);
    match u32::try_from(value) {
        Ok(code) if count == digits => Ok(code),
        _ => {
            let message = format!("the escape {} is incomplete", cursor.text(start));
            let hint = "write \\xhh, \\uhhhh or \\u{h…} with hexadecimal digits h";
            Err(cursor.refuse(start, message, hint))
        }
    }
}

/// Reads `\uhhhh`, two of them that form a surrogate pair, or `\u{h…}`.
fn unicode(cursor: &mut PatternCursor, start: usize) -> Result<u32, Error> {
    if cursor.eat('{') {
        let (count, value) = cursor.digits(16, usize::MAX);
        return match u32::try_from(value) {
            Ok(code) if count > 0 && code <= 0x10_ffff && cursor.eat('}') => Ok(code),
            _ => {
                let message = format!("{} is not a valid character", cursor.text(start));
                Err(cursor.refuse(start, message, "the largest code point is \\u{10ffff}"))
            }
        };
    }
    let lead = hexadecimal(cursor, 4, start)?;
    let after = cursor.position();
    if (0xd800..0xdc00).contains(&lead) && cursor.next() == Some(PatternToken::Escape('u')) {
        let (count, trail) = cursor.digits(16, 4);
        if let (4, Ok(trail @ 0xdc00..0xe000)) = (count, u32::try_from(trail)) {
            return Ok(0x1_0000 + ((lead - 0xd800) << 10) + (trail - 0xdc00));
        }
    }
    cursor.seek(after);
    Ok(lead)
}

fn property(parser: &mut PatternParser, negated: bool, start: usize) -> Result<ClassMember, Error> {
    let cursor = &mut parser.cursor;
    let name = if cursor.eat('{') { cursor.until('}') } else { None };
    let Some(name) = name else {
        let hint = "write, for example, \\p{Lu} or \\p{Script=Greek}";
        return Err(cursor.refuse(start, "the character property must be named in braces", hint));
    };
    if let Some(class) = parser.properties.get(&name) {
        return Ok(ClassMember::Property(Arc::clone(class), negated));
    }
    match ecma_property(&name).map(Arc::new) {
        Some(class) => {
            parser.properties.insert(name, Arc::clone(&class));
            Ok(ClassMember::Property(class, negated))
        }
        None => {
            let message = format!("unknown character property '{name}'");
            let hint = "use a general category, a binary property, or a script as in Script=Greek; \
                        spelling and case matter";
            Err(cursor.refuse(start, message, hint))
        }
    }
}

/// Reads a class; the bracket at `start` has been read.
pub(crate) fn class(parser: &mut PatternParser, start: usize) -> Result<CharAtom, Error> {
    let negated = parser.cursor.eat('^');
    let mut members = Vec::new();
    loop {
        let first = parser.cursor.position();
        let symbol = next_in_class(&mut parser.cursor, start)?;
        if symbol == PatternToken::Char(']') {
            if members.is_empty() && parser.dialect.is_pre_tokenizer_dialect() {
                return Err(oniguruma::unread(&parser.cursor, start));
            }
            return Ok(CharAtom::Set { negated, members });
        }
        let low = class_member(parser, symbol, first)?;
        let hyphen = parser.cursor.position();
        if !parser.cursor.eat('-') || parser.cursor.peek() == Some(PatternToken::Char(']')) {
            parser.cursor.seek(hyphen);
            members.push(low);
            continue;
        }
        let second = parser.cursor.position();
        if parser.dialect == PatternDialect::Fancy
            && parser.cursor.peek() == Some(PatternToken::Char('-'))
        {
            return Err(oniguruma::unread(&parser.cursor, first));
        }
        let symbol = next_in_class(&mut parser.cursor, start)?;
        let high = class_member(parser, symbol, second)?;
        match (low, high) {
            (ClassMember::Literal(low), ClassMember::Literal(high)) if low <= high => {
                members.push(ClassMember::Range(low, high));
            }
            (ClassMember::Literal(_), ClassMember::Literal(_)) => {
                return Err(bad_range(parser, first));
            }
            // Annex B: next to a class escape the hyphen is a member.
            (low, high) => members.extend([low, ClassMember::Literal('-'.into()), high]),
        }
    }
}

fn next_in_class(cursor: &mut PatternCursor, start: usize) -> Result<PatternToken, Error> {
    cursor.next().ok_or_else(|| {
        let hint = "add the missing ], or escape the [ with a backslash";
        cursor.refuse(start, "the character class is not closed", hint)
    })
}

fn class_member(
    parser: &mut PatternParser,
    symbol: PatternToken,
    start: usize,
) -> Result<ClassMember, Error> {
    if parser.dialect.is_pre_tokenizer_dialect() {
        return oniguruma::class_member(parser, symbol, start);
    }
    match symbol {
        PatternToken::Char(character) => Ok(ClassMember::Literal(character.into())),
        PatternToken::Escape('b') => Ok(ClassMember::Literal(0x08)),
        PatternToken::Escape(letter) => member(parser, letter, start),
    }
}

fn bad_range(parser: &PatternParser, start: usize) -> Error {
    let message = format!("{} is not a valid character range", parser.cursor.text(start));
    let hint = "write the lower character first, or escape the hyphen with a backslash";
    parser.cursor.refuse(start, message, hint)
}
