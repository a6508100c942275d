//! ISO/IEC 14977 EBNF: `name = definition ;` with commas between parts.

use formalm_core::Error;

use super::{group, is_name, quoted, rule};
use crate::notation::scanner::Scanner;
use crate::notation::{GrammarSource, SyntaxTree};

pub(super) fn read(text: &str) -> Result<GrammarSource, Error> {
    let mut scanner = Scanner::new(text);
    let mut source = GrammarSource::default();
    blanks(&mut scanner)?;
    while scanner.peek().is_some() {
        let start = scanner.at;
        let name = name(&mut scanner)?;
        if scanner.peek() == Some(':') {
            let message = "found \"::=\" in a grammar whose first rule uses \"=\"";
            let hint = Some("use the same sign in all rules");
            return Err(scanner.refuse(scanner.at, message, hint));
        }
        scanner.expect("=", "after the rule name")?;
        let body = choice(&mut scanner)?;
        if !scanner.eat(";") {
            scanner.expect(".", "or \";\" at the end of the rule")?;
        }
        source.rules.push(rule(&scanner, name, body, start));
        blanks(&mut scanner)?;
    }
    Ok(source)
}

fn blanks(scanner: &mut Scanner) -> Result<(), Error> {
    super::blanks(scanner, ("(*", "*)"))
}

/// Reads a name: words separated by spaces.
fn name(scanner: &mut Scanner) -> Result<String, Error> {
    let mut words: Vec<String> = Vec::new();
    loop {
        let word = scanner.take_while(|one| is_name(one) && one != '.' && one != '-');
        if word.is_empty() {
            break;
        }
        words.push(word);
        blanks(scanner)?;
    }
    if words.is_empty() { Err(scanner.unexpected("a name")) } else { Ok(words.join(" ")) }
}

fn choice(scanner: &mut Scanner) -> Result<SyntaxTree, Error> {
    let mut list = vec![sequence(scanner)?];
    while matches!(scanner.peek(), Some('|' | '!')) || is_slash(scanner) {
        scanner.at += 1;
        list.push(sequence(scanner)?);
    }
    Ok(SyntaxTree::Choice(list))
}

fn is_slash(scanner: &Scanner) -> bool {
    scanner.peek() == Some('/') && scanner.peek_at(1) != Some(')')
}

fn sequence(scanner: &mut Scanner) -> Result<SyntaxTree, Error> {
    let mut list = vec![term(scanner)?];
    while scanner.eat(",") {
        list.push(term(scanner)?);
    }
    Ok(SyntaxTree::Sequence(list))
}

/// Reads a factor and its exception.
fn term(scanner: &mut Scanner) -> Result<SyntaxTree, Error> {
    let start = scanner.at;
    let first = factor(scanner)?;
    blanks(scanner)?;
    if !scanner.eat("-") {
        return Ok(first);
    }
    match (first, factor(scanner)?) {
        // `{ x }-` is one or more: it excludes the empty repetition.
        (SyntaxTree::Repeat(one, 0, None), SyntaxTree::Sequence(none)) if none.is_empty() => {
            Ok(SyntaxTree::Repeat(one, 1, None))
        }
        (first, second) => {
            let span = scanner.span(start);
            Ok(SyntaxTree::Difference(Box::new(first), Box::new(second), span))
        }
    }
}

/// Reads a part with an optional repetition count; nothing is the empty string.
fn factor(scanner: &mut Scanner) -> Result<SyntaxTree, Error> {
    blanks(scanner)?;
    if !scanner.peek().is_some_and(|one| one.is_ascii_digit()) {
        return primary(scanner);
    }
    let count = scanner.count()?;
    blanks(scanner)?;
    scanner.expect("*", "after a repetition count")?;
    blanks(scanner)?;
    Ok(SyntaxTree::Repeat(Box::new(primary(scanner)?), count, Some(count)))
}

fn primary(scanner: &mut Scanner) -> Result<SyntaxTree, Error> {
    let start = scanner.at;
    let tree = match scanner.peek() {
        Some('"' | '\'') => quoted(scanner)?,
        Some('(') if scanner.eat("(/") => optional(group(scanner, "/)", choice)?),
        Some('(') if scanner.eat("(:") => repeated(group(scanner, ":)", choice)?),
        Some('(') if scanner.eat("(") => group(scanner, ")", choice)?,
        Some('[') if scanner.eat("[") => optional(group(scanner, "]", choice)?),
        Some('{') if scanner.eat("{") => repeated(group(scanner, "}", choice)?),
        Some('?') => {
            let message = "special sequences have no standard meaning and are not supported";
            let hint = Some("write out what the sequence stands for");
            return Err(scanner.refuse(start, message, hint));
        }
        Some(one) if is_name(one) && one != '.' && one != '-' => {
            let name = name(scanner)?;
            SyntaxTree::Name(name, Vec::new(), scanner.span(start))
        }
        _ => SyntaxTree::Sequence(Vec::new()),
    };
    blanks(scanner)?;
    Ok(tree)
}

fn optional(tree: SyntaxTree) -> SyntaxTree {
    SyntaxTree::Repeat(Box::new(tree), 0, Some(1))
}

fn repeated(tree: SyntaxTree) -> SyntaxTree {
    SyntaxTree::Repeat(Box::new(tree), 0, None)
}
