//! EBNF in two dialects, ISO/IEC 14977 and the W3C's, distinguished by the first definition:
//! `=` or `::=`.

mod iso_14977;
mod w3c;

use formalm_core::Error;
use formalm_regex::PatternFlags;

use crate::notation::atoms::Atom;
use crate::notation::lark::definition_attributes::DefinitionAttributes;
use crate::notation::scanner::Scanner;
use crate::notation::{GrammarSource, RuleSource, SyntaxTree};
use crate::trees::tree_shape::RuleTreeShape;

pub(super) fn read(text: &str) -> Result<GrammarSource, Error> {
    let mut scanner = Scanner::new(text);
    let is_w3c = is_w3c(&mut scanner)?;
    if is_w3c { w3c::read(text) } else { iso_14977::read(text) }
}

/// Returns `true` if the first definition uses `::=`.
fn is_w3c(scanner: &mut Scanner) -> Result<bool, Error> {
    let mut named = false;
    loop {
        blanks(scanner, ("/*", "*/"))?;
        blanks(scanner, ("(*", "*)"))?;
        match scanner.peek() {
            Some(':') if scanner.eat("::=") => return Ok(true),
            Some('=') => return Ok(false),
            Some('[') if !named && w3c::number(scanner) => {}
            Some(one) if is_name(one) => {
                scanner.at += 1;
                named = true;
            }
            _ => return Err(scanner.unexpected("a rule name and \"=\" or \"::=\"")),
        }
    }
}

fn is_name(one: char) -> bool {
    one.is_alphanumeric() || matches!(one, '_' | '-' | '.')
}

/// Skips whitespace, line ends and comments. ISO comments nest.
fn blanks(scanner: &mut Scanner, (open, close): (&str, &str)) -> Result<(), Error> {
    loop {
        scanner.take_while(char::is_whitespace);
        let start = scanner.at;
        if !scanner.eat(open) {
            return Ok(());
        }
        let mut opened = 1;
        while opened > 0 {
            if scanner.eat(close) {
                opened -= 1;
            } else if open == "(*" && scanner.eat(open) {
                opened += 1;
            } else if scanner.next().is_none() {
                return Err(scanner.refuse(start, "the comment is not closed", None));
            }
        }
    }
}

/// Reads a string in quotes of either kind, without escapes.
fn quoted(scanner: &mut Scanner) -> Result<SyntaxTree, Error> {
    let start = scanner.at;
    let quote = scanner.next();
    let text = scanner.take_while(|one| Some(one) != quote && one != '\n');
    if scanner.next() != quote {
        return Err(scanner.refuse(start, "the string has no closing quote", None));
    }
    Ok(SyntaxTree::Atom(Atom::text(&text, PatternFlags::default(), scanner.span(start))?))
}

/// Reads the contents of a bracket and its end.
fn group(
    scanner: &mut Scanner,
    close: &str,
    choice: impl Fn(&mut Scanner) -> Result<SyntaxTree, Error>,
) -> Result<SyntaxTree, Error> {
    scanner.enter()?;
    let inner = choice(scanner)?;
    scanner.leave();
    scanner.expect(close, "at the end of a group")?;
    Ok(inner)
}

fn rule(scanner: &Scanner, name: String, body: SyntaxTree, start: usize) -> RuleSource {
    let end = start + name.chars().count();
    let span = formalm_core::SourceSpan { start, end: end.min(scanner.at) };
    RuleSource {
        name,
        parameters: Vec::new(),
        body,
        span,
        shown: RuleTreeShape::ALL,
        attributes: DefinitionAttributes::NONE,
    }
}
