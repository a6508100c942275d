//! Group openers of the ECMA-262 dialect: what follows a parenthesis.

use formalm_core::Error;

use crate::PatternFlags;
use crate::parser::{GroupKind, PatternParser};
use crate::pattern_cursor::PatternToken;
use crate::unicode::properties::is_ecma_identifier;

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
        Some('=') => GroupKind::Look { ahead: true, negative: false },
        Some('!') => GroupKind::Look { ahead: true, negative: true },
        Some('<') => angle(parser, start)?,
        Some(letter @ ('i' | 'm' | 's' | '-')) => {
            return modifiers(parser, letter, start).map(Some);
        }
        other => return Err(unknown(parser, other, start)),
    };
    Ok(Some((kind, flags)))
}

fn unknown(parser: &PatternParser, letter: Option<char>, start: usize) -> Error {
    let message = format!("{} does not start a valid group", parser.cursor.text(start));
    let hint = match letter {
        Some('>') => "only the python dialect supports atomic groups",
        Some('P') => "write (?<name>…) for a named group",
        Some('#') => "only the python dialect supports comments",
        Some('(') => "conditionals are not regular; write both cases as alternatives",
        Some('a' | 'L' | 'u' | 'x') => "the modifiers are i, m and s, as in (?i:…)",
        _ => "write (?:…) to group, (?<name>…) to name, or escape the parenthesis",
    };
    parser.cursor.refuse(start, message, hint)
}

/// Reads lookbehind or a named group, after `(?<`.
fn angle(parser: &mut PatternParser, start: usize) -> Result<GroupKind, Error> {
    if parser.cursor.eat('=') {
        return Ok(GroupKind::Look { ahead: false, negative: false });
    }
    if parser.cursor.eat('!') {
        return Ok(GroupKind::Look { ahead: false, negative: true });
    }
    let hint = "a group name consists of letters, digits, $ and underscores and does not start \
                with a digit";
    match parser.cursor.until('>') {
        Some(name) if is_ecma_identifier(&name) => parser.capture(start, Some(name)),
        Some(name) => {
            let message = format!("'{name}' is not a valid group name");
            Err(parser.cursor.refuse(start, message, hint))
        }
        None => Err(parser.cursor.refuse(start, "the group name is not closed", hint)),
    }
}

/// Reads `(?i:…)` or `(?i-s:…)`, after the first letter or hyphen.
fn modifiers(
    parser: &mut PatternParser,
    first: char,
    start: usize,
) -> Result<(GroupKind, PatternFlags), Error> {
    let mut flags = parser.open.flags;
    let (mut seen, mut value) = (String::new(), true);
    let mut letter = Some(first);
    while letter != Some(':') {
        match letter {
            Some('-') if value => value = false,
            Some(flag @ ('i' | 'm' | 's')) if !seen.contains(flag) => {
                seen.push(flag);
                match flag {
                    'i' => flags.ignore_case = value,
                    'm' => flags.multi_line = value,
                    _ => flags.dot_all = value,
                }
            }
            _ => return Err(bad_modifiers(parser, start)),
        }
        letter = parser.cursor.next().and_then(PatternToken::plain);
    }
    if seen.is_empty() {
        return Err(bad_modifiers(parser, start));
    }
    Ok((GroupKind::Scoped, flags))
}

fn bad_modifiers(parser: &PatternParser, start: usize) -> Error {
    let hint = "write each of i, m and s at most once, followed by a colon, as in (?i-s:…)";
    parser.cursor.refuse(start, "the modifiers are invalid", hint)
}
