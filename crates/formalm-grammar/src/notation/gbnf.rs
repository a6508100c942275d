//! GBNF, the grammar notation of llama.cpp.

use formalm_core::{CharSet, Error};
use formalm_regex::PatternFlags;

use crate::notation::atoms::Atom;
use crate::notation::lark::definition_attributes::DefinitionAttributes;
use crate::notation::quantifiers::{RepeatBounds, braces, repeated};
use crate::notation::scanner::Scanner;
use crate::notation::{GrammarSource, RuleSource, SyntaxTree};
use crate::trees::tree_shape::RuleTreeShape;

pub(super) fn read(text: &str) -> Result<GrammarSource, Error> {
    let mut reader = GbnfReader { scanner: Scanner::new(text), source: GrammarSource::default() };
    reader.blanks(true);
    while reader.scanner.peek().is_some() {
        let start = reader.scanner.at;
        let name = reader.name()?;
        let span = reader.scanner.span(start);
        reader.blanks(false);
        reader.scanner.expect("::=", "after the rule name")?;
        reader.blanks(true);
        let body = reader.choice()?;
        if !reader.scanner.peek().is_none_or(ends_line) {
            return Err(reader.scanner.unexpected("the end of the rule"));
        }
        reader.source.rules.push(RuleSource {
            name,
            parameters: Vec::new(),
            body,
            span,
            shown: RuleTreeShape::ALL,
            attributes: DefinitionAttributes::NONE,
        });
        reader.blanks(true);
    }
    Ok(reader.source)
}

struct GbnfReader {
    scanner: Scanner,
    source: GrammarSource,
}

fn is_name(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '-' || one == '_'
}

fn ends_line(one: char) -> bool {
    matches!(one, '\n' | '\r')
}

/// Skips whitespace and comments, and line ends where they are insignificant.
fn skip(scanner: &mut Scanner, lines: bool) {
    loop {
        match scanner.peek() {
            Some(' ' | '\t') => scanner.at += 1,
            Some(one) if lines && ends_line(one) => scanner.at += 1,
            Some('#') => drop(scanner.take_while(|one| !ends_line(one))),
            _ => return,
        }
    }
}

/// Skips what may precede a quantifier, including line ends inside brackets.
fn skip_before_sign(scanner: &mut Scanner) {
    skip(scanner, scanner.is_nested());
}

/// Reads a count in braces.
fn counted(scanner: &mut Scanner) -> Result<Option<RepeatBounds>, Error> {
    braces(scanner, skip_before_sign)
}

impl GbnfReader {
    fn blanks(&mut self, lines: bool) {
        skip(&mut self.scanner, lines);
    }

    fn name(&mut self) -> Result<String, Error> {
        let name = self.scanner.take_while(is_name);
        if name.is_empty() { Err(self.scanner.unexpected("a rule name")) } else { Ok(name) }
    }

    fn choice(&mut self) -> Result<SyntaxTree, Error> {
        let mut list = vec![self.sequence()?];
        loop {
            // An alternative may begin on the next line.
            let before = self.scanner.at;
            self.blanks(true);
            if !self.scanner.eat("|") {
                if !self.scanner.is_nested() {
                    self.scanner.at = before;
                }
                return Ok(SyntaxTree::Choice(list));
            }
            self.blanks(true);
            list.push(self.sequence()?);
        }
    }

    fn sequence(&mut self) -> Result<SyntaxTree, Error> {
        let mut list = Vec::new();
        loop {
            self.blanks(self.scanner.is_nested());
            match self.scanner.peek() {
                None | Some('\n' | '\r' | '|' | ')') => return Ok(SyntaxTree::Sequence(list)),
                _ => {
                    let atom = self.atom()?;
                    list.push(repeated(&mut self.scanner, atom, skip_before_sign, counted)?);
                }
            }
        }
    }

    fn atom(&mut self) -> Result<SyntaxTree, Error> {
        let start = self.scanner.at;
        match self.scanner.peek() {
            Some('"') => self.text().map(SyntaxTree::Atom),
            Some('[') => self.class().map(SyntaxTree::Atom),
            Some('.') => {
                self.scanner.at += 1;
                let span = self.scanner.span(start);
                Ok(SyntaxTree::Atom(Atom::class(CharSet::all(), ".".to_owned(), span)))
            }
            Some('(') => {
                self.scanner.at += 1;
                self.scanner.enter()?;
                self.blanks(true);
                let inner = self.choice()?;
                self.blanks(true);
                self.scanner.leave();
                self.scanner.expect(")", "at the end of a group")?;
                Ok(inner)
            }
            Some('<') => self.source.special(&mut self.scanner),
            Some('!') if self.scanner.peek_at(1) == Some('<') => {
                self.scanner.take_while(|one| one != '>' && one != '\n');
                self.scanner.eat(">");
                let hint = Some("list the strings that may occur there instead");
                Err(self.scanner.refuse(start, "any token except one is not supported", hint))
            }
            Some(one) if is_name(one) => {
                let name = self.name()?;
                Ok(SyntaxTree::Name(name, Vec::new(), self.scanner.span(start)))
            }
            _ => Err(self.scanner.unexpected("a name, a string, a character class or a bracket")),
        }
    }

    fn text(&mut self) -> Result<Atom, Error> {
        let start = self.scanner.at;
        self.scanner.at += 1;
        let mut text = String::new();
        loop {
            match self.scanner.peek() {
                None => {
                    return Err(self.scanner.refuse(
                        start,
                        "the string has no closing quote",
                        None,
                    ));
                }
                Some('"') => {
                    self.scanner.at += 1;
                    return Atom::text(&text, PatternFlags::default(), self.scanner.span(start));
                }
                _ => text.push(self.character()?),
            }
        }
    }

    /// Reads a character or an escape.
    fn character(&mut self) -> Result<char, Error> {
        let start = self.scanner.at;
        let first = self.scanner.next();
        if first != Some('\\') {
            return first.ok_or_else(|| self.scanner.unexpected("a character"));
        }
        match self.scanner.next() {
            Some('x') => self.scanner.code_point(start, 2),
            Some('u') => self.scanner.code_point(start, 4),
            Some('U') => self.scanner.code_point(start, 8),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some(one @ ('\\' | '"' | '[' | ']' | '-')) => Ok(one),
            _ => {
                let hint =
                    Some(r#"valid escapes are \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH"#);
                Err(self.scanner.refuse(start, "unknown escape", hint))
            }
        }
    }

    fn class(&mut self) -> Result<Atom, Error> {
        let start = self.scanner.at;
        self.scanner.at += 1;
        let negated = self.scanner.eat("^");
        let mut ranges = Vec::new();
        loop {
            match self.scanner.peek() {
                None => {
                    return Err(self.scanner.refuse(
                        start,
                        "the character class has no closing bracket",
                        None,
                    ));
                }
                Some(']') => {
                    self.scanner.at += 1;
                    break;
                }
                _ => {}
            }
            let place = self.scanner.at;
            let low = self.character()?;
            let is_range = self.scanner.peek() == Some('-')
                && !matches!(self.scanner.peek_at(1), None | Some(']'));
            let high = if is_range {
                self.scanner.at += 1;
                self.character()?
            } else {
                low
            };
            if high < low {
                return Err(self.scanner.refuse(
                    place,
                    "the end of the range is smaller than its start",
                    None,
                ));
            }
            ranges.push((low, high));
        }
        Atom::ranges(&self.scanner, start, ranges, negated)
    }
}
