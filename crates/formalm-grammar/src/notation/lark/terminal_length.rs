//! Lengths of terminal patterns, for Lark's terminal order: higher priority, longer maximum match,
//! longer pattern, then name. The pattern's length is that of the expression Lark would write out.

use crate::notation::atoms::Atom;
use crate::notation::lookaround::char_width;
use crate::notation::{SyntaxTree, TerminalSource};

/// The lengths of a pattern with all its terminals written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::notation) struct PatternLengths {
    pub(in crate::notation) min_chars: u64,
    /// Maximum characters of a match; the largest number is unbounded.
    pub(in crate::notation) max_chars: u64,
    /// Characters of the pattern, or of the string it stands for.
    pub(in crate::notation) len: u64,
    /// Characters of the pattern as part of another one.
    written_len: u64,
    /// Characters of the notation of its flags there.
    flags_len: u64,
    /// `true` if all of it ignores case.
    pub(in crate::notation) ignores_case: bool,
}

impl PatternLengths {
    pub(in crate::notation) fn of_atom(atom: &Atom) -> PatternLengths {
        let (min_chars, max_chars) = char_width(&atom.node);
        let max_chars = max_chars.unwrap_or(u64::MAX);
        // A flag is written around the pattern: `(?i:…)`.
        let flags_len = 5 * atom.flags.chars().count() as u64;
        let (written_len, ignores_case) = (atom.escaped_len + flags_len, atom.flags.contains('i'));
        PatternLengths { min_chars, max_chars, len: atom.len, written_len, flags_len, ignores_case }
    }

    /// Returns the lengths of an unbounded pattern of which nothing else is known.
    pub(in crate::notation) fn unbounded() -> PatternLengths {
        PatternLengths::composite(0, 0, u64::MAX)
    }

    fn composite(len: u64, min_chars: u64, max_chars: u64) -> PatternLengths {
        PatternLengths {
            min_chars,
            max_chars,
            len,
            written_len: len,
            flags_len: 0,
            ignores_case: false,
        }
    }

    /// Returns the key that sorts alternatives inside a terminal.
    pub(in crate::notation) fn alternative_rank(&self) -> (u64, u64, u64) {
        (u64::MAX - self.max_chars, u64::MAX - self.min_chars, u64::MAX - self.len)
    }

    pub(in crate::notation) fn sequence(parts: &[PatternLengths]) -> PatternLengths {
        if let [one] = parts {
            return *one;
        }
        let sum =
            |of: fn(&PatternLengths) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
        PatternLengths::composite(
            sum(|one| one.written_len),
            sum(|one| one.min_chars),
            sum(|one| one.max_chars),
        )
    }

    pub(in crate::notation) fn choice(parts: &[PatternLengths]) -> PatternLengths {
        if let [one] = parts {
            return *one;
        }
        let written_len: u64 = parts.iter().map(|one| one.written_len + 1).sum();
        let min_chars = parts.iter().map(|one| one.min_chars).min().unwrap_or(0);
        let max_chars = parts.iter().map(|one| one.max_chars).max().unwrap_or(0);
        PatternLengths::composite(written_len + 3, min_chars, max_chars)
    }

    pub(in crate::notation) fn repeated(self, min: u32, max: Option<u32>) -> PatternLengths {
        let sign = match (min, max) {
            (0 | 1, None) | (0, Some(1)) => 1,
            (min, Some(max)) if min == max => 2 + digits(min),
            (min, max) => 3 + digits(min) + max.map_or(0, digits),
        };
        let max_chars = match max {
            _ if self.max_chars == 0 => 0,
            Some(max) => self.max_chars.saturating_mul(u64::from(max)),
            None => u64::MAX,
        };
        let min_chars = self.min_chars.saturating_mul(u64::from(min));
        let len = self.written_len + 4 + sign;
        // Its flags are those of the whole as well.
        let (written_len, flags_len, ignores_case) =
            (len + self.flags_len, self.flags_len, self.ignores_case);
        PatternLengths {
            written_len,
            flags_len,
            ignores_case,
            ..PatternLengths::composite(len, min_chars, max_chars)
        }
    }
}

fn digits(number: u32) -> u64 {
    number.to_string().len() as u64
}

/// Names that Lark gives to strings in rules.
const NAMES: [(&str, &str); 36] = [
    (".", "DOT"),
    (",", "COMMA"),
    (":", "COLON"),
    (";", "SEMICOLON"),
    ("+", "PLUS"),
    ("-", "MINUS"),
    ("*", "STAR"),
    ("/", "SLASH"),
    ("\\", "BACKSLASH"),
    ("|", "VBAR"),
    ("?", "QMARK"),
    ("!", "BANG"),
    ("@", "AT"),
    ("#", "HASH"),
    ("$", "DOLLAR"),
    ("%", "PERCENT"),
    ("^", "CIRCUMFLEX"),
    ("&", "AMPERSAND"),
    ("_", "UNDERSCORE"),
    ("<", "LESSTHAN"),
    (">", "MORETHAN"),
    ("=", "EQUAL"),
    ("\"", "DBLQUOTE"),
    ("'", "QUOTE"),
    ("`", "BACKQUOTE"),
    ("~", "TILDE"),
    ("(", "LPAR"),
    (")", "RPAR"),
    ("{", "LBRACE"),
    ("}", "RBRACE"),
    ("[", "LSQB"),
    ("]", "RSQB"),
    ("\n", "NEWLINE"),
    ("\r\n", "CRLF"),
    ("\t", "TAB"),
    (" ", "SPACE"),
];

/// Returns the name that sorts a string or pattern in a rule, the `number`th without one of its
/// own.
pub(in crate::notation) fn anonymous_name(
    atom: &Atom,
    number: usize,
    taken: impl Fn(&str) -> bool,
) -> String {
    let given = atom.text.as_deref().and_then(|text| {
        let known = NAMES
            .iter()
            .find(|(known, _)| *known == text)
            .map(|&(_, anonymous_name)| anonymous_name);
        let is_name = text.chars().all(|one| one.is_alphanumeric() || one == '_')
            && !text.starts_with(|one: char| one.is_numeric());
        known.map(str::to_owned).or_else(|| is_name.then(|| text.to_uppercase()))
    });
    let free = given.filter(|name| !taken(name));
    free.unwrap_or_else(|| format!("__ANON_{number}"))
}

/// Replaces the escapes of single characters in a pattern.
pub(in crate::notation) fn unescape_pattern(pattern: &str) -> String {
    let mut characters = pattern.chars();
    let mut read = String::new();
    while let Some(one) = characters.next() {
        if one != '\\' {
            read.push(one);
            continue;
        }
        let digits = match characters.clone().next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        match characters.next() {
            Some('n') => read.push('\n'),
            Some('f') => read.push('\u{c}'),
            Some('t') => read.push('\t'),
            Some('r') => read.push('\r'),
            Some('"') => read.push('"'),
            Some('x' | 'u' | 'U') => {
                let digits: String = characters.by_ref().take(digits).collect();
                let named = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                read.push(named.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => read.extend(['\\'].into_iter().chain(other)),
        }
    }
    read
}

/// Returns the length of a string with pattern metacharacters escaped.
pub(in crate::notation) fn escaped_len(text: &str) -> u64 {
    const SPECIAL: &str = "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}";
    text.chars().map(|one| if SPECIAL.contains(one) { 2 } else { 1 }).sum()
}

/// Returns the lengths of a part of a terminal; undefined names count as empty.
pub(in crate::notation) fn pattern_lengths<'a>(
    tree: &SyntaxTree,
    defined: &impl Fn(&str) -> Option<&'a TerminalSource>,
    depth: usize,
) -> PatternLengths {
    let nothing = PatternLengths::composite(0, 0, 0);
    if depth == 0 {
        return nothing;
    }
    let all = |list: &[SyntaxTree]| -> Vec<PatternLengths> {
        list.iter().map(|one| pattern_lengths(one, defined, depth - 1)).collect()
    };
    match tree {
        SyntaxTree::Atom(atom) => PatternLengths::of_atom(atom),
        SyntaxTree::Name(anonymous_name, ..) => defined(anonymous_name)
            .map_or(nothing, |source| pattern_lengths(&source.body, defined, depth - 1)),
        SyntaxTree::Sequence(list) => PatternLengths::sequence(&all(list)),
        SyntaxTree::Choice(list) => PatternLengths::choice(&all(list)),
        // Not part of Lark's syntax.
        SyntaxTree::Difference(..) | SyntaxTree::Intersection(..) | SyntaxTree::Complement(..) => {
            nothing
        }
        SyntaxTree::Optional(one) => pattern_lengths(one, defined, depth - 1).repeated(0, Some(1)),
        SyntaxTree::Repeat(one, min, max) => {
            pattern_lengths(one, defined, depth - 1).repeated(*min, *max)
        }
    }
}
