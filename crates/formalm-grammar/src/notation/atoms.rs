//! What is read as one symbol, as written: texts, patterns, classes.

use formalm_automata::syntax::{self, Dialect, Flags, Pattern};
use formalm_automata::{CharSet, Error, Expression, Span};

use crate::notation::lark::terminal_length::{escaped_len, unescape_pattern};
use crate::notation::scanner::Scanner;

/// A text, pattern or class.
#[derive(Clone, Debug)]
pub(super) struct Atom {
    pub(super) node: syntax::Node,
    /// How it is written, and named in messages.
    pub(super) source_text: String,
    /// Those with equal keys are one terminal: texts, and patterns that are alike once their escapes
    /// are read.
    pub(super) identity: String,
    /// A text, which trees leave out where not all lexemes are kept.
    pub(super) is_string: bool,
    /// The text, if it is one.
    pub(super) text: Option<String>,
    /// Flags that hold for all of it.
    pub(super) flags: String,
    /// Characters of the text or pattern, and of the pattern with a text escaped.
    pub(super) len: u64,
    pub(super) escaped_len: u64,
    pub(super) span: Span,
}

impl Atom {
    /// Exactly a text, or one that differs from it in case only.
    pub(super) fn text(text: &str, flags: Flags, span: Span) -> Result<Atom, Error> {
        let ignore_case = flags.ignore_case;
        let node = if ignore_case {
            syntax::parse(&escaped(text), Dialect::Python, flags)?.root
        } else {
            let single = |one| syntax::Node::Class(CharSet::single(one));
            syntax::Node::Concat(text.chars().map(single).collect())
        };
        let source_text = format!("{text:?}{}", if ignore_case { "i" } else { "" });
        Ok(Atom {
            node,
            identity: source_text.clone(),
            source_text,
            is_string: true,
            text: Some(text.to_owned()),
            flags: if ignore_case { "i".to_owned() } else { String::new() },
            len: text.chars().count() as u64,
            escaped_len: escaped_len(text),
            span,
        })
    }

    /// A pattern in Python's dialect, which begins at a character of the scanner's text.
    pub(super) fn pattern(
        scanner: &Scanner,
        pattern: &str,
        start: usize,
        flags: Flags,
        letters: &str,
    ) -> Result<Atom, Error> {
        let span = scanner.span(start);
        let parsed =
            syntax::parse(pattern, Dialect::Python, flags).map_err(|error| match error {
                Error::Language { message, span, hint } => {
                    let at = start + span.map_or(0, |span| span.start);
                    let end = start + span.map_or(1, |span| span.end);
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
        let source_text = format!("/{pattern}/{letters}");
        let read = unescape_pattern(pattern);
        let len = read.chars().count() as u64;
        Ok(Atom {
            node: parsed.root,
            source_text,
            identity: pattern_key(&read, letters),
            is_string: false,
            text: None,
            flags: letters.to_owned(),
            len,
            escaped_len: len,
            span,
        })
    }

    /// One character out of ranges, or any that is in none of them.
    pub(super) fn ranges(
        scanner: &Scanner,
        start: usize,
        ranges: Vec<(char, char)>,
        negated: bool,
    ) -> Result<Atom, Error> {
        if ranges.is_empty() {
            // Others read nothing there, and the brackets as the empty text.
            return Err(scanner.refuse(start, "the class has no characters", None));
        }
        let set = CharSet::from_ranges(ranges);
        let set = if negated { set.complement() } else { set };
        let source_text = class_name(&set);
        Ok(Atom::class(set, source_text, scanner.span(start)))
    }

    /// One character out of a set.
    pub(super) fn class(set: CharSet, source_text: String, span: Span) -> Atom {
        let len = source_text.chars().count() as u64;
        Atom {
            node: syntax::Node::Class(set),
            identity: source_text.clone(),
            source_text,
            is_string: false,
            text: None,
            flags: String::new(),
            len,
            escaped_len: len,
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
pub(super) fn pattern_expression(root: syntax::Node) -> Expression {
    Expression::pattern(Pattern { root, groups: Vec::new(), dialect: Dialect::Python })
}

/// The same for a pattern that sees what stands behind its lexeme.
pub(super) fn lookahead_expression(root: syntax::Node) -> Expression {
    Expression::lexeme(Pattern { root, groups: Vec::new(), dialect: Dialect::Python })
}

/// How a set of characters is written; equal ones are written alike.
fn class_name(set: &CharSet) -> String {
    let last = set.ranges().last().is_some_and(|one| one.1 == char::MAX);
    let complement = last.then(|| set.complement()).filter(|rest| !rest.ranges().is_empty());
    let mut name = String::from(if complement.is_some() { "[^" } else { "[" });
    for &(low, high) in complement.as_ref().unwrap_or(set).ranges() {
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
