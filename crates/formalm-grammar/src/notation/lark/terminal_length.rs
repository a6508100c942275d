//! The order in which Lark tries terminals: higher priority, then more characters at most, then a
//! longer pattern, then the name. So what a pattern would look like when written out counts.

use crate::notation::atoms::Leaf;
use crate::notation::lookaround::width;
use crate::notation::{TerminalSource, Tree};

/// What is known of a pattern once all its terminals are written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::notation) struct Shape {
    pub(in crate::notation) least: u64,
    /// Most characters; the largest number stands for no end.
    pub(in crate::notation) most: u64,
    /// Characters of the pattern, or of the text that it stands for.
    pub(in crate::notation) length: u64,
    /// Characters of the pattern as a part of another one.
    written: u64,
    /// Characters of what its flags are written as there, in front of it and behind it.
    flags: u64,
    /// Case is ignored in all of it.
    pub(in crate::notation) folds: bool,
}

impl Shape {
    pub(in crate::notation) fn of_leaf(leaf: &Leaf) -> Shape {
        let (least, most) = width(&leaf.node);
        let most = most.unwrap_or(u64::MAX);
        // A flag is written around the pattern: (?i:…).
        let flags = 5 * leaf.flags.chars().count() as u64;
        let (written, folds) = (leaf.written_length + flags, leaf.flags.contains('i'));
        Shape { least, most, length: leaf.length, written, flags, folds }
    }

    /// That of a pattern without end of which nothing else is known.
    pub(in crate::notation) fn endless() -> Shape {
        Shape::joined(0, 0, u64::MAX)
    }

    fn joined(length: u64, least: u64, most: u64) -> Shape {
        Shape { least, most, length, written: length, flags: 0, folds: false }
    }

    /// The key that sorts alternatives within a terminal.
    pub(in crate::notation) fn rank(&self) -> (u64, u64, u64) {
        (u64::MAX - self.most, u64::MAX - self.least, u64::MAX - self.length)
    }

    pub(in crate::notation) fn sequence(parts: &[Shape]) -> Shape {
        if let [one] = parts {
            return *one;
        }
        let sum = |of: fn(&Shape) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
        Shape::joined(sum(|one| one.written), sum(|one| one.least), sum(|one| one.most))
    }

    pub(in crate::notation) fn choice(parts: &[Shape]) -> Shape {
        if let [one] = parts {
            return *one;
        }
        let written: u64 = parts.iter().map(|one| one.written + 1).sum();
        let least = parts.iter().map(|one| one.least).min().unwrap_or(0);
        let most = parts.iter().map(|one| one.most).max().unwrap_or(0);
        Shape::joined(written + 3, least, most)
    }

    pub(in crate::notation) fn repeated(self, min: u32, max: Option<u32>) -> Shape {
        let sign = match (min, max) {
            (0 | 1, None) | (0, Some(1)) => 1,
            (min, Some(max)) if min == max => 2 + digits(min),
            (min, max) => 3 + digits(min) + max.map_or(0, digits),
        };
        let most = match max {
            _ if self.most == 0 => 0,
            Some(max) => self.most.saturating_mul(u64::from(max)),
            None => u64::MAX,
        };
        let least = self.least.saturating_mul(u64::from(min));
        let length = self.written + 4 + sign;
        // Its flags are those of the whole as well.
        let (written, flags, folds) = (length + self.flags, self.flags, self.folds);
        Shape { written, flags, folds, ..Shape::joined(length, least, most) }
    }
}

fn digits(number: u32) -> u64 {
    number.to_string().len() as u64
}

/// Names that Lark gives to texts within rules.
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

/// The name that sorts a text or pattern within a rule, the `number`th without one.
pub(in crate::notation) fn name(
    leaf: &Leaf,
    number: usize,
    taken: impl Fn(&str) -> bool,
) -> String {
    let given = leaf.text.as_deref().and_then(|text| {
        let known = NAMES.iter().find(|(known, _)| *known == text).map(|&(_, name)| name);
        let is_name = text.chars().all(|one| one.is_alphanumeric() || one == '_')
            && !text.starts_with(|one: char| one.is_numeric());
        known.map(str::to_owned).or_else(|| is_name.then(|| text.to_uppercase()))
    });
    let free = given.filter(|name| !taken(name));
    free.unwrap_or_else(|| format!("__ANON_{number}"))
}

/// A pattern once its escapes that name a character are that character.
pub(in crate::notation) fn pattern_read(pattern: &str) -> String {
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

/// Characters of a text once what means something in a pattern is escaped.
pub(in crate::notation) fn escaped_length(text: &str) -> u64 {
    const SPECIAL: &str = "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}";
    text.chars().map(|one| if SPECIAL.contains(one) { 2 } else { 1 }).sum()
}

/// The shape of a part of a terminal; names of terminals that are not defined have none.
pub(in crate::notation) fn shape<'a>(
    tree: &Tree,
    defined: &impl Fn(&str) -> Option<&'a TerminalSource>,
    depth: usize,
) -> Shape {
    let nothing = Shape::joined(0, 0, 0);
    if depth == 0 {
        return nothing;
    }
    let all = |list: &[Tree]| -> Vec<Shape> {
        list.iter().map(|one| shape(one, defined, depth - 1)).collect()
    };
    match tree {
        Tree::Leaf(leaf) => Shape::of_leaf(leaf),
        Tree::Name(name, ..) => {
            defined(name).map_or(nothing, |source| shape(&source.body, defined, depth - 1))
        }
        Tree::Sequence(list) => Shape::sequence(&all(list)),
        Tree::Choice(list) => Shape::choice(&all(list)),
        // Not of Lark's syntax.
        Tree::Except(..) | Tree::Both(..) | Tree::Outside(..) => nothing,
        Tree::Maybe(one) => shape(one, defined, depth - 1).repeated(0, Some(1)),
        Tree::Repeat(one, min, max) => shape(one, defined, depth - 1).repeated(*min, *max),
    }
}
