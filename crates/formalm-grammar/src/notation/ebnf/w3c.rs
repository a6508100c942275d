//! W3C EBNF, as in the XML specification: `name ::= definition` with parts in sequence.

use formalm_core::Error;
use formalm_regex::PatternFlags;

use super::{group, is_name, quoted, rule};
use crate::notation::atoms::Atom;
use crate::notation::quantifiers::repeated;
use crate::notation::scanner::Scanner;
use crate::notation::{GrammarSource, SyntaxTree};

pub(super) fn read(text: &str) -> Result<GrammarSource, Error> {
    let mut scanner = Scanner::new(text);
    let mut source = GrammarSource::default();
    blanks(&mut scanner)?;
    let numbered = after_number(&scanner).is_some();
    while scanner.peek().is_some() {
        if numbered {
            number(&mut scanner);
        }
        blanks(&mut scanner)?;
        let start = scanner.at;
        let name = name(&mut scanner)?;
        blanks(&mut scanner)?;
        if scanner.peek() == Some('=') {
            let message = "found \"=\" in a grammar whose first rule uses \"::=\"";
            let hint = Some("use the same sign in all rules");
            return Err(scanner.refuse(scanner.at, message, hint));
        }
        scanner.expect("::=", "after the rule name")?;
        let body = choice(&mut scanner, numbered)?;
        source.rules.push(rule(&scanner, name, body, start));
        if !is_definition(&scanner, numbered) && scanner.peek().is_some() {
            return Err(scanner.unexpected("a part of the rule or the next rule"));
        }
    }
    Ok(source)
}

fn blanks(scanner: &mut Scanner) -> Result<(), Error> {
    super::blanks(scanner, ("/*", "*/"))
}

fn skip(scanner: &mut Scanner) {
    scanner.take_while(char::is_whitespace);
}

/// Reads the bracketed number of a definition, if there is one.
pub(super) fn number(scanner: &mut Scanner) -> bool {
    let behind = after_number(scanner);
    scanner.at = behind.unwrap_or(scanner.at);
    behind.is_some()
}

fn after_number(scanner: &Scanner) -> Option<usize> {
    let inner = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '-' | '\'' | ' ');
    let mut at = 1;
    while scanner.peek_at(at).is_some_and(inner) {
        at += 1;
    }
    let first = (1..at).filter_map(|at| scanner.peek_at(at)).find(|&one| one != ' ');
    let number = scanner.peek() == Some('[')
        && first.is_some_and(|one| one.is_ascii_alphanumeric())
        && scanner.peek_at(at) == Some(']');
    number.then_some(scanner.at + at + 1)
}

/// Returns `true` if the next definition starts here: a name with `::=`, after its number on the
/// same line if definitions are numbered. Elsewhere a bracket is a class, as in `[01]`.
fn is_definition(scanner: &Scanner, numbered: bool) -> bool {
    let behind = after_number(scanner).filter(|_| numbered);
    let mut at = behind.map_or(0, |behind| behind - scanner.at);
    let blank = |at: usize| scanner.peek_at(at).is_some_and(char::is_whitespace);
    while blank(at) {
        if behind.is_some() && scanner.peek_at(at) == Some('\n') {
            return false;
        }
        at += 1;
    }
    let from = at;
    while scanner.peek_at(at).is_some_and(is_name) {
        at += 1;
    }
    let named = at > from;
    while blank(at) {
        at += 1;
    }
    named
        && ":=:".chars().zip([at + 1, at + 2, at]).all(|(one, at)| scanner.peek_at(at) == Some(one))
}

/// Returns `true` if a bracket names a well-formedness or validity constraint, as in `[WFC: Unique
/// Att Spec]`.
fn is_constraint(scanner: &Scanner) -> bool {
    let behind: String = (1..).map_while(|at| scanner.peek_at(at)).take(8).collect();
    let behind = behind.trim_start().to_ascii_lowercase();
    behind.starts_with("wfc:") || behind.starts_with("vc:")
}

fn name(scanner: &mut Scanner) -> Result<String, Error> {
    let name = scanner.take_while(is_name);
    if name.is_empty() { Err(scanner.unexpected("a name")) } else { Ok(name) }
}

fn choice(scanner: &mut Scanner, numbered: bool) -> Result<SyntaxTree, Error> {
    let mut list = vec![sequence(scanner, numbered)?];
    while scanner.eat("|") {
        list.push(sequence(scanner, numbered)?);
    }
    Ok(SyntaxTree::Choice(list))
}

fn sequence(scanner: &mut Scanner, numbered: bool) -> Result<SyntaxTree, Error> {
    let mut list = Vec::new();
    loop {
        blanks(scanner)?;
        let ended = matches!(scanner.peek(), None | Some('|' | ')' | ';'));
        if ended || is_definition(scanner, numbered) {
            return Ok(SyntaxTree::Sequence(list));
        }
        let start = scanner.at;
        let first = part(scanner, numbered)?;
        blanks(scanner)?;
        if !scanner.eat("-") {
            list.push(first);
            continue;
        }
        blanks(scanner)?;
        let second = part(scanner, numbered)?;
        let span = scanner.span(start);
        list.push(SyntaxTree::Difference(Box::new(first), Box::new(second), span));
    }
}

fn part(scanner: &mut Scanner, numbered: bool) -> Result<SyntaxTree, Error> {
    let atom = atom(scanner, numbered)?;
    repeated(scanner, atom, skip, |_| Ok(None))
}

fn atom(scanner: &mut Scanner, numbered: bool) -> Result<SyntaxTree, Error> {
    let start = scanner.at;
    match scanner.peek() {
        Some('"' | '\'') => quoted(scanner),
        Some('(') if scanner.eat("(") => group(scanner, ")", |scanner| choice(scanner, numbered)),
        Some('[') if is_constraint(scanner) => {
            let message = "constraints (wfc or vc) are not enforced";
            Err(scanner.refuse(
                start,
                message,
                Some("remove the constraint and check it separately"),
            ))
        }
        Some('[') => class(scanner),
        Some('#') if scanner.peek_at(1) != Some('x') => {
            let hint = Some("comments are written /* … */, and the character itself '#'");
            Err(scanner.refuse(start, "# starts a character code, as in #x20", hint))
        }
        Some('#') => {
            let one = character(scanner)?;
            let atom = Atom::text(&one.to_string(), PatternFlags::default(), scanner.span(start))?;
            Ok(SyntaxTree::Atom(atom))
        }
        Some('{') => {
            let hint = Some("write (…)* for repetition, or use \"=\" in all rules");
            Err(scanner.refuse(start, "{ belongs to the EBNF that uses \"=\"", hint))
        }
        Some('@') => {
            let hint = Some("remove it, and write whitespace and comments where they may occur");
            Err(scanner.refuse(start, "annotations that start with @ are not supported", hint))
        }
        Some(one) if is_name(one) && !"-.".contains(one) => {
            Ok(SyntaxTree::Name(name(scanner)?, Vec::new(), scanner.span(start)))
        }
        _ => Err(scanner.unexpected("a name, a string, a character class or a bracket")),
    }
}

/// Reads a character, or `#xN` for a code point.
fn character(scanner: &mut Scanner) -> Result<char, Error> {
    let start = scanner.at;
    if !scanner.eat("#x") {
        return scanner.next().ok_or_else(|| scanner.unexpected("a character"));
    }
    let digits = scanner.take_while(|one| one.is_ascii_hexdigit());
    let number = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
    number.ok_or_else(|| scanner.refuse(start, "the code is not a valid Unicode character", None))
}

fn class(scanner: &mut Scanner) -> Result<SyntaxTree, Error> {
    let start = scanner.at;
    scanner.at += 1;
    let negated = scanner.eat("^");
    let mut ranges = Vec::new();
    while !scanner.eat("]") {
        if matches!(scanner.peek(), None | Some('\n')) {
            return Err(scanner.refuse(start, "the character class has no closing bracket", None));
        }
        let place = scanner.at;
        let low = character(scanner)?;
        let is_range = scanner.peek() == Some('-') && scanner.peek_at(1) != Some(']');
        scanner.at += usize::from(is_range);
        let high = if is_range { character(scanner)? } else { low };
        if high < low {
            return Err(scanner.refuse(
                place,
                "the end of the range is smaller than its start",
                None,
            ));
        }
        ranges.push((low, high));
    }
    Ok(SyntaxTree::Atom(Atom::ranges(scanner, start, ranges, negated)?))
}
