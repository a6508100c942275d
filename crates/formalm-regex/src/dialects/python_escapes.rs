//! Escapes and classes of the Python dialect.

use formalm_core::Error;

use crate::PatternDialect;
use crate::alternation_merging::unique;
use crate::parser::PatternParser;
use crate::pattern_cursor::{PatternCursor, PatternToken};
use crate::unresolved_items::{AnchorKind, CharAtom, ClassMember, PerlClass, UnresolvedItem};

/// Reads an escape outside a class; the backslash was at `start`.
pub(crate) fn escape(
    parser: &mut PatternParser,
    letter: char,
    start: usize,
) -> Result<UnresolvedItem, Error> {
    let anchor = match letter {
        'A' => Some(AnchorKind::TextStart),
        'Z' => Some(AnchorKind::TextEnd),
        'z' if parser.dialect == PatternDialect::Python314 => Some(AnchorKind::TextEnd),
        'b' => Some(AnchorKind::Boundary(false)),
        'B' => Some(AnchorKind::Boundary(true)),
        _ => None,
    };
    if let Some(anchor) = anchor {
        return Ok(UnresolvedItem::Anchor(anchor));
    }
    let atom = match letter {
        '0' => octal(&mut parser.cursor, start)?,
        '1'..='9' => numbered(parser, letter, start)?,
        _ => member(&mut parser.cursor, letter, start)?,
    };
    Ok(UnresolvedItem::Atom(CharAtom::member(atom)))
}

/// Reads an escape that means the same inside and outside a class.
fn member(cursor: &mut PatternCursor, letter: char, start: usize) -> Result<ClassMember, Error> {
    if let Some((perl, negated)) = PerlClass::of(letter) {
        return Ok(ClassMember::Perl(perl, negated));
    }
    let code = match letter {
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        'x' => hexadecimal(cursor, 2, start)?,
        'u' => hexadecimal(cursor, 4, start)?,
        'U' => hexadecimal(cursor, 8, start)?,
        'N' => return Err(named_character(cursor, start)),
        _ if letter.is_ascii_alphabetic() => return Err(bad_escape(cursor, letter, start)),
        _ => letter.into(),
    };
    Ok(ClassMember::Literal(code))
}

fn hexadecimal(cursor: &mut PatternCursor, digits: usize, start: usize) -> Result<u32, Error> {
    let (count, value) = cursor.digits(16, digits);
    if count < digits {
        let message = format!("the escape {} is incomplete", cursor.text(start));
        let hint = "write \\xhh, \\uhhhh or \\Uhhhhhhhh with hexadecimal digits h";
        return Err(cursor.refuse(start, message, hint));
    }
    match u32::try_from(value) {
        Ok(code) if code <= 0x10_ffff => Ok(code),
        _ => {
            let message = format!("{} is not a valid character", cursor.text(start));
            Err(cursor.refuse(start, message, "the largest code point is \\U0010ffff"))
        }
    }
}

/// Refuses `\N{…}`: a table of all names would be larger than the rest of the library.
fn named_character(cursor: &mut PatternCursor, start: usize) -> Error {
    if cursor.eat('{') {
        cursor.until('}');
    }
    let hint = "write the character itself, or \\uhhhh or \\Uhhhhhhhh";
    cursor.refuse(start, "named characters (\\N{…}) are not supported", hint)
}

fn bad_escape(cursor: &PatternCursor, letter: char, start: usize) -> Error {
    let message = format!("\\{letter} is not a valid escape in this dialect");
    let hint = match letter {
        'z' => "write \\Z for the end of the string; Python supports \\z from version 3.14",
        'p' | 'P' => "list the characters in a class, or use the ecma dialect for \\p{…}",
        'k' | 'g' => "backreferences are not regular; repeat the group's pattern instead",
        _ => "write the letter without the backslash, or \\\\ for a backslash",
    };
    cursor.refuse(start, message, hint)
}

/// Reads `\0` with up to two more octal digits.
fn octal(cursor: &mut PatternCursor, start: usize) -> Result<ClassMember, Error> {
    cursor.seek(start + 1);
    octal_digits(cursor, start)
}

/// Reads up to three octal digits.
fn octal_digits(cursor: &mut PatternCursor, start: usize) -> Result<ClassMember, Error> {
    let (_, value) = cursor.digits(8, 3);
    match u32::try_from(value) {
        Ok(code) if code <= 0o377 => Ok(ClassMember::Literal(code)),
        _ => {
            let message = format!("the octal escape {} is too large", cursor.text(start));
            Err(cursor.refuse(
                start,
                message,
                "the largest is \\377; write \\uhhhh for larger codes",
            ))
        }
    }
}

/// Reads three octal digits as a character; anything else refers to a group.
fn numbered(parser: &mut PatternParser, letter: char, start: usize) -> Result<ClassMember, Error> {
    let cursor = &mut parser.cursor;
    cursor.seek(start + 1);
    let (digits, _) = cursor.digits(8, 3);
    cursor.seek(start + 1);
    if digits == 3 && letter <= '7' {
        return octal_digits(cursor, start);
    }
    let (_, number) = cursor.digits(10, 2);
    Err(reference(parser, number, start))
}

/// Refuses a reference to a group by number.
fn reference(parser: &PatternParser, number: u64, start: usize) -> Error {
    if number > parser.groups.len() as u64 {
        let message = format!("backreference to group {number}, which does not exist");
        let hint = "write \\xhh to give a character by its code";
        return parser.cursor.refuse(start, message, hint);
    }
    not_regular(&parser.cursor, start)
}

/// Refuses any reference to a group.
pub(crate) fn not_regular(cursor: &PatternCursor, start: usize) -> Error {
    cursor.refuse(
        start,
        "backreferences are not regular",
        "repeat the group's pattern, or list the possible strings as alternatives",
    )
}

/// Reads a class; the bracket at `start` has been read.
pub(crate) fn class(cursor: &mut PatternCursor, start: usize) -> Result<CharAtom, Error> {
    let negated = cursor.eat('^');
    let mut members = Vec::new();
    loop {
        let first = cursor.position();
        let symbol = cursor.next().ok_or_else(|| unterminated(cursor, start))?;
        if symbol == PatternToken::Char(']') && !members.is_empty() {
            break;
        }
        let low = class_member(cursor, symbol, first)?;
        if !cursor.eat('-') {
            members.push(low);
            continue;
        }
        let second = cursor.position();
        let symbol = cursor.next().ok_or_else(|| unterminated(cursor, start))?;
        if symbol == PatternToken::Char(']') {
            members.extend([low, ClassMember::Literal('-'.into())]);
            break;
        }
        let high = class_member(cursor, symbol, second)?;
        members.push(range(cursor, low, high, first)?);
    }
    let members = unique(members);
    Ok(match (members.as_slice(), negated) {
        (&[ClassMember::Literal(code)], false) => CharAtom::Literal(code),
        (&[ClassMember::Literal(code)], true) => CharAtom::NotLiteral(code),
        _ => CharAtom::Set { negated, members },
    })
}

fn class_member(
    cursor: &mut PatternCursor,
    symbol: PatternToken,
    start: usize,
) -> Result<ClassMember, Error> {
    match symbol {
        PatternToken::Char(character) => Ok(ClassMember::Literal(character.into())),
        PatternToken::Escape('b') => Ok(ClassMember::Literal(0x08)),
        PatternToken::Escape(digit @ '0'..='9') if digit <= '7' => {
            cursor.seek(start + 1);
            octal_digits(cursor, start)
        }
        PatternToken::Escape(letter @ '8'..='9') => Err(bad_escape(cursor, letter, start)),
        PatternToken::Escape(letter) => member(cursor, letter, start),
    }
}

fn range(
    cursor: &PatternCursor,
    low: ClassMember,
    high: ClassMember,
    start: usize,
) -> Result<ClassMember, Error> {
    if let (ClassMember::Literal(low), ClassMember::Literal(high)) = (low, high)
        && low <= high
    {
        return Ok(ClassMember::Range(low, high));
    }
    let message = format!("{} is not a valid character range", cursor.text(start));
    let hint = "write the lower character first, or escape the hyphen with a backslash";
    Err(cursor.refuse(start, message, hint))
}

fn unterminated(cursor: &PatternCursor, start: usize) -> Error {
    let hint = "add the missing ], or escape the [ with a backslash; a ] in first position is a \
                literal character of the class";
    cursor.refuse(start, "the character class is not closed", hint)
}
