//! Group openers of the Python dialect: what follows a parenthesis.

use formalm_core::Error;

use crate::PatternFlags;
use crate::dialects::python_escapes::not_regular;
use crate::parser::{GroupKind, PatternParser};
use crate::pattern_cursor::PatternToken;
use crate::unicode::properties::is_identifier;

/// Reads what follows the parenthesis at `start`; returns the kind of group and the flags inside.
/// Returns `None` after a comment or flags for the whole pattern, which are complete.
pub(crate) fn open(
    parser: &mut PatternParser,
    start: usize,
) -> Result<Option<(GroupKind, PatternFlags)>, Error> {
    let flags = parser.open.flags;
    if !parser.cursor.eat('?') {
        return Ok(Some((parser.capture(start, None)?, flags)));
    }
    let kind = match parser.cursor.next().and_then(PatternToken::plain) {
        Some('P') => return Ok(Some((named(parser, start)?, flags))),
        Some('#') => return comment(parser, start).map(|()| None),
        Some(':') => GroupKind::Plain,
        Some('>') => GroupKind::Atomic,
        Some('=') => GroupKind::Look { ahead: true, negative: false },
        Some('!') => GroupKind::Look { ahead: true, negative: true },
        Some('<') => look_behind(parser, start)?,
        Some('(') => return Err(conditional(parser, start)),
        Some(letter) if is_flag(letter) || letter == '-' => {
            return inline_flags(parser, letter, start);
        }
        _ => return Err(unknown(parser, start)),
    };
    Ok(Some((kind, flags)))
}

fn unknown(parser: &PatternParser, start: usize) -> Error {
    let message = format!("{} does not start a valid group", parser.cursor.text(start));
    let hint = "write (?:…) to group, (?P<name>…) to name, or escape the parenthesis";
    parser.cursor.refuse(start, message, hint)
}

fn comment(parser: &mut PatternParser, start: usize) -> Result<(), Error> {
    if parser.cursor.until(')').is_none() {
        let hint = "add the missing )";
        return Err(parser.cursor.refuse(start, "the comment is not closed", hint));
    }
    Ok(())
}

fn look_behind(parser: &mut PatternParser, start: usize) -> Result<GroupKind, Error> {
    match parser.cursor.next() {
        Some(PatternToken::Char('=')) => Ok(GroupKind::Look { ahead: false, negative: false }),
        Some(PatternToken::Char('!')) => Ok(GroupKind::Look { ahead: false, negative: true }),
        _ => {
            let message = format!("{} does not start a valid group", parser.cursor.text(start));
            let hint = "Python writes (?P<name>…) for a named group and (?<=…) for a lookbehind";
            Err(parser.cursor.refuse(start, message, hint))
        }
    }
}

/// Reads a named group or reference, after `(?P`.
fn named(parser: &mut PatternParser, start: usize) -> Result<GroupKind, Error> {
    if parser.cursor.eat('=') {
        let name = name(parser, ')', start)?;
        if !parser.names.contains_key(&name) {
            let message = format!("backreference to group '{name}', which does not exist");
            let hint = "backreferences are not regular and therefore not supported";
            return Err(parser.cursor.refuse(start, message, hint));
        }
        return Err(not_regular(&parser.cursor, start));
    }
    if !parser.cursor.eat('<') {
        parser.cursor.next();
        return Err(unknown(parser, start));
    }
    let name = name(parser, '>', start)?;
    parser.capture(start, Some(name))
}

fn name(parser: &mut PatternParser, terminator: char, start: usize) -> Result<String, Error> {
    let hint =
        "a group name consists of letters, digits and underscores and does not start with a digit";
    match parser.cursor.until(terminator) {
        Some(name) if is_identifier(&name) => Ok(name),
        Some(name) => {
            let message = format!("'{name}' is not a valid group name");
            Err(parser.cursor.refuse(start, message, hint))
        }
        None => Err(parser.cursor.refuse(start, "the group name is not closed", hint)),
    }
}

fn conditional(parser: &mut PatternParser, start: usize) -> Error {
    parser.cursor.until(')');
    parser.cursor.refuse(
        start,
        "conditionals on a group are not regular",
        "write both cases as alternatives",
    )
}

fn is_flag(letter: char) -> bool {
    "aiLmsux".contains(letter)
}

/// Flags that are turned on and off, by their letters.
struct FlagChanges {
    on: String,
    off: String,
}

/// Reads `(?i)` or `(?i-s:…)`, after a first flag letter or hyphen.
fn inline_flags(
    parser: &mut PatternParser,
    first: char,
    start: usize,
) -> Result<Option<(GroupKind, PatternFlags)>, Error> {
    let mut changes = FlagChanges { on: String::new(), off: String::new() };
    let mut letter = first;
    while letter != ':' && letter != ')' && letter != '-' {
        check_on(parser, &changes, letter, start)?;
        changes.on.push(letter);
        letter = flag_letter(parser, ":)-", start)?;
    }
    if letter == ')' {
        return global_flags(parser, &changes, start).map(|()| None);
    }
    if letter == '-' {
        letter = flag_letter(parser, "", start)?;
        while letter != ':' {
            check_off(parser, letter, start)?;
            changes.off.push(letter);
            letter = flag_letter(parser, ":", start)?;
        }
    }
    if changes.on.chars().any(|letter| changes.off.contains(letter)) {
        let hint = "keep the flag on one side of the hyphen";
        return Err(parser.cursor.refuse(start, "a flag is turned both on and off", hint));
    }
    Ok(Some((GroupKind::Scoped, changes.apply(parser.open.flags))))
}

/// Reads the next flag letter, or one of `others`.
fn flag_letter(parser: &mut PatternParser, others: &str, start: usize) -> Result<char, Error> {
    match parser.cursor.next().and_then(PatternToken::plain) {
        Some(letter) if is_flag(letter) || others.contains(letter) => Ok(letter),
        _ => {
            let hint = "the flags are a, i, m, s, u and x, as in (?im) or (?i-s:…)";
            Err(parser.cursor.refuse(start, "the inline flags are invalid", hint))
        }
    }
}

fn check_on(
    parser: &PatternParser,
    changes: &FlagChanges,
    letter: char,
    start: usize,
) -> Result<(), Error> {
    let other = if letter == 'a' { 'u' } else { 'a' };
    if letter == 'L' {
        let hint = "strings are Unicode; remove the L";
        return Err(parser.cursor.refuse(
            start,
            "the locale flag is valid for bytes patterns only",
            hint,
        ));
    }
    if "au".contains(letter) && changes.on.contains(other) {
        let message = "the flags a and u are mutually exclusive";
        return Err(parser.cursor.refuse(start, message, "keep one of them"));
    }
    Ok(())
}

fn check_off(parser: &PatternParser, letter: char, start: usize) -> Result<(), Error> {
    if "auL".contains(letter) {
        let hint = "write (?u:…) to undo a, and (?a:…) to undo u";
        let message = "the flags a, u and L cannot be turned off";
        return Err(parser.cursor.refuse(start, message, hint));
    }
    Ok(())
}

fn global_flags(
    parser: &mut PatternParser,
    changes: &FlagChanges,
    start: usize,
) -> Result<(), Error> {
    if !parser.is_at_start() {
        return Err(parser.cursor.refuse(
            start,
            "flags for the whole pattern must be at its start",
            "move them to the start, or write (?i:…) around the part they apply to",
        ));
    }
    parser.says_unicode |= changes.on.contains('u');
    let ascii = parser.open.flags.ascii || changes.on.contains('a');
    if parser.says_unicode && ascii {
        let message = "the flags a and u are mutually exclusive";
        return Err(parser.cursor.refuse(start, message, "keep one of them"));
    }
    parser.open.flags = changes.apply(parser.open.flags);
    Ok(())
}

impl FlagChanges {
    fn apply(&self, mut flags: PatternFlags) -> PatternFlags {
        for (letters, value) in [(&self.on, true), (&self.off, false)] {
            for letter in letters.chars() {
                match letter {
                    'a' => flags.ascii = true,
                    'u' => flags.ascii = false,
                    'i' => flags.ignore_case = value,
                    'm' => flags.multi_line = value,
                    's' => flags.dot_all = value,
                    _ => flags.verbose = value,
                }
            }
        }
        flags
    }
}
