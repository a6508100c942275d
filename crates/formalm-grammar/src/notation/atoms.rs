//! Atoms: strings, patterns and character classes, each read as one symbol.

use formalm_automata::Expression;
use formalm_core::{CharSet, Error, SourceSpan};
use formalm_regex::{self as syntax, Pattern, PatternDialect, PatternFlags};

use crate::notation::lark::terminal_length::{escaped_len, unescape_pattern};
use crate::notation::scanner::Scanner;

/// A string, pattern or character class.
#[derive(Clone, Debug)]
pub(super) struct Atom {
    pub(super) node: syntax::PatternNode,
    /// Its source form, also used in messages.
    pub(super) source_text: String,
    /// Atoms with equal identities are one terminal: equal strings, and patterns that are equal
    /// once their escapes are read.
    pub(super) identity: String,
    /// `true` for a string, which trees omit unless all lexemes are kept.
    pub(super) is_string: bool,
    /// The string, if it is one.
    pub(super) text: Option<String>,
    /// Flags that apply to all of it.
    pub(super) flags: String,
    /// Length of the string or pattern in characters, and of the pattern with a string escaped.
    pub(super) len: u64,
    pub(super) escaped_len: u64,
    pub(super) span: SourceSpan,
}

impl Atom {
    /// Builds the atom of a string, optionally ignoring case.
    pub(super) fn text(text: &str, flags: PatternFlags, span: SourceSpan) -> Result<Atom, Error> {
        let ignore_case = flags.ignore_case;
        let node = if ignore_case {
            syntax::parse(&escaped(text), PatternDialect::Python, flags)?.root
        } else {
            let single = |one| syntax::PatternNode::Class(CharSet::single(one));
            syntax::PatternNode::Concat(text.chars().map(single).collect())
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

    /// Builds the atom of a pattern in Python's dialect, which starts at a character of the
    /// scanner's text.
    pub(super) fn pattern(
        scanner: &Scanner,
        pattern: &str,
        start: usize,
        flags: PatternFlags,
        letters: &str,
    ) -> Result<Atom, Error> {
        let span = scanner.span(start);
        let parsed =
            syntax::parse(pattern, PatternDialect::Python, flags).map_err(|error| match error {
                Error::Language { message, span, hint } => {
                    let at = start + span.map_or(0, |span| span.start);
                    let end = start + span.map_or(1, |span| span.end);
                    let hint = grammar_hint(&message, pattern).or(hint.as_deref());
                    let refused = scanner.refuse(at, &message, hint);
                    match refused {
                        Error::Language { message, hint, .. } => {
                            Error::at(message, SourceSpan { start: at, end }, hint.as_deref())
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

    /// Builds the atom of one character from some ranges, or from their complement.
    pub(super) fn ranges(
        scanner: &Scanner,
        start: usize,
        ranges: Vec<(char, char)>,
        negated: bool,
    ) -> Result<Atom, Error> {
        if ranges.is_empty() {
            // Other implementations read no characters there, or read the brackets as the empty
            // string.
            return Err(scanner.refuse(start, "the character class is empty", None));
        }
        let set = CharSet::from_ranges(ranges);
        let set = if negated { set.complement() } else { set };
        let source_text = class_name(&set);
        Ok(Atom::class(set, source_text, scanner.span(start)))
    }

    /// Builds the atom of one character from a set.
    pub(super) fn class(set: CharSet, source_text: String, span: SourceSpan) -> Atom {
        let len = source_text.chars().count() as u64;
        Atom {
            node: syntax::PatternNode::Class(set),
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

/// Returns a hint that fits patterns in grammars, where the pattern dialect's own hint does not:
/// there is no other dialect to choose.
fn grammar_hint(message: &str, pattern: &str) -> Option<&'static str> {
    if message.starts_with(r"\p") || message.starts_with(r"\P") {
        return Some(
            r#"patterns in a grammar use the syntax of Python's re, without \p: list the characters, or declare a terminal and pass it as a language: %declare WORD and languages={"WORD": Regex(r"\p{L}+", dialect="ecma")}"#,
        );
    }
    let named = message.starts_with("(?<") && pattern.contains("(?<");
    named.then_some(
        "groups cannot be referenced in a grammar: write (?:…), or (?P<name>…) as in Python",
    )
}

/// Returns the identity of a pattern with its escapes read, and with its flags.
pub(super) fn pattern_key(read: &str, letters: &str) -> String {
    let mut letters: Vec<char> = letters.chars().collect();
    letters.sort_unstable();
    format!("/{read}/{}", String::from_iter(letters))
}

/// Returns a pattern that matches exactly `text`.
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

/// Returns the language of a terminal's pattern, without captures.
pub(super) fn pattern_expression(root: syntax::PatternNode) -> Expression {
    Expression::pattern(Pattern { root, groups: Vec::new(), dialect: PatternDialect::Python })
}

/// As [`pattern_expression`], for a pattern with lookahead.
pub(super) fn lookahead_expression(root: syntax::PatternNode) -> Expression {
    Expression::lexeme(Pattern { root, groups: Vec::new(), dialect: PatternDialect::Python })
}

/// Renders a character set; equal sets are rendered equally.
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
