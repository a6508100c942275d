//! What is read as one symbol, as written: texts, patterns, classes.

use formalm_automata::syntax::{self, Dialect, Flags, Pattern};
use formalm_automata::{CharSet, Error, Expression, Span};

use crate::notation::lark::terminal_length::{escaped_length, pattern_read};
use crate::notation::scanner::Scanner;

/// A text, pattern or class.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) node: syntax::Node,
    /// How it is written, and named in messages.
    pub(super) written: String,
    /// Those with equal keys are one terminal: texts, and patterns that are alike once their escapes
    /// are read.
    pub(super) key: String,
    /// A text, which trees leave out where not all lexemes are kept.
    pub(super) literal: bool,
    /// The text, if it is one.
    pub(super) text: Option<String>,
    /// Flags that hold for all of it.
    pub(super) flags: String,
    /// Characters of the text or pattern, and of the pattern with a text escaped.
    pub(super) length: u64,
    pub(super) written_length: u64,
    pub(super) span: Span,
}

impl Leaf {
    /// Exactly a text, or one that differs from it in case only.
    pub(super) fn text(text: &str, flags: Flags, span: Span) -> Result<Leaf, Error> {
        let ignore_case = flags.ignore_case;
        let node = if ignore_case {
            syntax::parse(&escaped(text), Dialect::Python, flags)?.root
        } else {
            let single = |one| syntax::Node::Class(CharSet::single(one));
            syntax::Node::Concat(text.chars().map(single).collect())
        };
        let written = format!("{text:?}{}", if ignore_case { "i" } else { "" });
        Ok(Leaf {
            node,
            key: written.clone(),
            written,
            literal: true,
            text: Some(text.to_owned()),
            flags: if ignore_case { "i".to_owned() } else { String::new() },
            length: text.chars().count() as u64,
            written_length: escaped_length(text),
            span,
        })
    }

    /// A pattern in Python's dialect, which begins at a character of the scanner's text.
    pub(super) fn pattern(
        scanner: &Scanner,
        pattern: &str,
        begins: usize,
        flags: Flags,
        letters: &str,
    ) -> Result<Leaf, Error> {
        let span = scanner.span(begins);
        let parsed =
            syntax::parse(pattern, Dialect::Python, flags).map_err(|error| match error {
                Error::Language { message, span, hint } => {
                    let at = begins + span.map_or(0, |span| span.start);
                    let end = begins + span.map_or(1, |span| span.end);
                    let hint = grammar_hint(&message, pattern).or(hint.as_deref());
                    let refused = scanner.refuse(at, &message, hint);
                    match refused {
                        Error::Language { message, hint, .. } => {
                            Error::at(message, Span { start: at, end }, hint.as_deref())
                        }
                        other => other,
                    }
                }
                limit => limit,
            })?;
        let written = format!("/{pattern}/{letters}");
        let read = pattern_read(pattern);
        let length = read.chars().count() as u64;
        Ok(Leaf {
            node: parsed.root,
            written,
            key: pattern_key(&read, letters),
            literal: false,
            text: None,
            flags: letters.to_owned(),
            length,
            written_length: length,
            span,
        })
    }

    /// One character out of ranges, or any that is in none of them.
    pub(super) fn ranges(
        scanner: &Scanner,
        start: usize,
        ranges: Vec<(char, char)>,
        negated: bool,
    ) -> Result<Leaf, Error> {
        if ranges.is_empty() {
            // Others read nothing there, and the brackets as the empty text.
            return Err(scanner.refuse(start, "the class has no characters", None));
        }
        let set = CharSet::from_ranges(ranges);
        let set = if negated { set.complement() } else { set };
        let written = class_name(&set);
        Ok(Leaf::class(set, written, scanner.span(start)))
    }

    /// One character out of a set.
    pub(super) fn class(set: CharSet, written: String, span: Span) -> Leaf {
        let length = written.chars().count() as u64;
        Leaf {
            node: syntax::Node::Class(set),
            key: written.clone(),
            written,
            literal: false,
            text: None,
            flags: String::new(),
            length,
            written_length: length,
            span,
        }
    }
}

/// Advice that fits patterns of grammars where that of the dialect does not: they have no other one.
fn grammar_hint(message: &str, pattern: &str) -> Option<&'static str> {
    if message.starts_with(r"\p") || message.starts_with(r"\P") {
        return Some(
            r#"patterns here are those of Python's re, without \p: list the characters, or declare a terminal and give it: %declare WORD and languages={"WORD": Regex(r"\p{L}+", dialect="ecma")}"#,
        );
    }
    let named = message.starts_with("(?<") && pattern.contains("(?<");
    named.then_some(
        "nothing in a grammar refers to groups: write (?:…), or (?P<name>…) as Python does",
    )
}

/// The key of a pattern whose escapes are read, with the letters of its flags.
pub(super) fn pattern_key(read: &str, letters: &str) -> String {
    let mut letters: Vec<char> = letters.chars().collect();
    letters.sort_unstable();
    format!("/{read}/{}", String::from_iter(letters))
}

/// A pattern for exactly a text.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for one in text.chars() {
        if one.is_ascii_punctuation() || one.is_ascii_whitespace() {
            pattern.push('\\');
        }
        pattern.push(one);
    }
    pattern
}

/// The language of a terminal's pattern; nobody asks what its groups capture.
pub(super) fn language(root: syntax::Node) -> Expression {
    Expression::pattern(Pattern { root, groups: Vec::new(), dialect: Dialect::Python })
}

/// The same for a pattern that sees what stands behind its lexeme.
pub(super) fn lexeme(root: syntax::Node) -> Expression {
    Expression::lexeme(Pattern { root, groups: Vec::new(), dialect: Dialect::Python })
}

/// How a set of characters is written; equal ones are written alike.
fn class_name(set: &CharSet) -> String {
    let last = set.ranges().last().is_some_and(|one| one.1 == char::MAX);
    let turned = last.then(|| set.complement()).filter(|rest| !rest.ranges().is_empty());
    let mut name = String::from(if turned.is_some() { "[^" } else { "[" });
    for &(low, high) in turned.as_ref().unwrap_or(set).ranges() {
        push_escaped(low, &mut name);
        if low < high {
            name.push('-');
            push_escaped(high, &mut name);
        }
    }
    name.push(']');
    name
}

fn push_escaped(one: char, name: &mut String) {
    match one {
        '\\' | ']' | '[' | '^' | '-' => name.extend(['\\', one]),
        '"' | '\'' => name.push(one),
        _ => name.extend(one.escape_debug()),
    }
}
