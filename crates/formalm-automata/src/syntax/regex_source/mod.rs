//! The language of patterns: which texts are patterns of the ecma dialect, references included.
//!
//! Groups nest and names are defined once, so this is no regular language. What is read is what
//! [`parse`](super::parse) reads, without its limits of size, and references beside it: a number
//! up to that of the groups, or the name of one.

mod escapes;
mod property_names;
mod state_equivalence;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::escapes::{Escape, Spot};
use super::unicode::properties::{identifier_part, identifier_start};
use crate::runtime::Lock;
use crate::{Recognizer, Resemblance};

/// Where between the parts of a pattern the text is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Lexed {
    /// Between items; whether the last one may be repeated.
    Item(bool),
    /// After a quantifier: a question mark makes it lazy.
    Repeated,
    /// After a brace that is a quantifier's or means itself; digits without leading zeros.
    Brace { repeats: bool, low: Option<String>, high: Option<String> },
    /// Inside an escape.
    Escape(Escape),
    /// A reference by number: how many groups it needs.
    Reference(u64),
    /// A reference by name; none before its bracket.
    Named(Option<String>),
    /// After a parenthesis.
    Open,
    /// After `(?`.
    Kind,
    /// After `(?<`.
    Angle,
    /// A name of a group.
    Name(String),
    /// Flags: those seen as bits, and whether they are switched off.
    Modifiers(u8, bool),
    /// After the bracket of a class.
    Class,
    /// Before a member of a class, which a hyphen does not join to the one before.
    Members,
    /// After a member: its number unless it is a set.
    After(Option<u32>),
    /// After a member and a hyphen.
    Hyphen(Option<u32>),
}

/// A pattern that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Source {
    lexed: Lexed,
    /// Open parentheses: whether what they enclose may be repeated.
    open: Vec<bool>,
    groups: u64,
    /// Groups that references need.
    needed: u64,
    /// Names of groups, and of references to groups that have not come yet; sorted.
    names: Arc<[String]>,
    missing: Arc<[String]>,
}

impl Source {
    fn new() -> Source {
        Source {
            lexed: Lexed::Item(false),
            open: Vec::new(),
            groups: 0,
            needed: 0,
            names: Arc::default(),
            missing: Arc::default(),
        }
    }

    fn to(&self, lexed: Lexed) -> Option<Source> {
        Some(Source { lexed, ..self.clone() })
    }

    /// The pattern after one more character; `None` if no pattern continues so.
    fn after(&self, c: char) -> Option<Source> {
        match &self.lexed {
            &Lexed::Item(repeats) => self.after_item(repeats, c),
            Lexed::Repeated if c == '?' => self.to(Lexed::Item(false)),
            Lexed::Repeated => self.after_item(false, c),
            Lexed::Brace { .. } => self.after_brace(c),
            Lexed::Escape(escape) => self.after_escape(escape, c),
            &Lexed::Reference(number) => match c.to_digit(10) {
                Some(digit) => {
                    let number = number.saturating_mul(10).saturating_add(u64::from(digit));
                    let next = Source { needed: self.needed.max(number), ..self.clone() };
                    next.to(Lexed::Reference(number))
                }
                None => self.after_item(true, c),
            },
            Lexed::Named(None) => {
                if c == '<' {
                    self.to(Lexed::Named(Some(String::new())))
                } else {
                    None
                }
            }
            Lexed::Named(Some(name)) if c == '>' => self.refer_to(name),
            Lexed::Named(Some(name)) => self.to(Lexed::Named(Some(longer(name, c)?))),
            Lexed::Name(name) if c == '>' => self.define(name),
            Lexed::Name(name) => self.to(Lexed::Name(longer(name, c)?)),
            Lexed::Open if c == '?' => self.to(Lexed::Kind),
            Lexed::Open => self.enter(true, true).after_item(false, c),
            Lexed::Kind => match c {
                ':' => Some(self.enter(true, false)),
                '=' | '!' => Some(self.enter(false, false)),
                '<' => self.to(Lexed::Angle),
                _ => self.after_modifier(0, false, c),
            },
            Lexed::Angle if matches!(c, '=' | '!') => Some(self.enter(false, false)),
            Lexed::Angle => self.to(Lexed::Name(longer("", c)?)),
            &Lexed::Modifiers(seen, off) => self.after_modifier(seen, off, c),
            Lexed::Class if c == '^' => self.to(Lexed::Members),
            Lexed::Class | Lexed::Members => self.after_member(Spot::Low, c),
            &Lexed::After(low) if c == '-' => self.to(Lexed::Hyphen(low)),
            Lexed::After(_) => self.after_member(Spot::Low, c),
            &Lexed::Hyphen(low) => self.after_member(Spot::High(low), c),
        }
    }

    fn after_item(&self, repeats: bool, c: char) -> Option<Source> {
        match c {
            '\\' => self.to(Lexed::Escape(Escape::Begun(Spot::Outside))),
            '(' => self.to(Lexed::Open),
            ')' => {
                let mut open = self.open.clone();
                let repeats = open.pop()?;
                Some(Source { open, lexed: Lexed::Item(repeats), ..self.clone() })
            }
            '[' => self.to(Lexed::Class),
            '|' | '^' | '$' => self.to(Lexed::Item(false)),
            '*' | '+' | '?' => {
                if repeats {
                    self.to(Lexed::Repeated)
                } else {
                    None
                }
            }
            '{' => self.to(Lexed::Brace { repeats, low: None, high: None }),
            _ => self.to(Lexed::Item(true)),
        }
    }

    /// Inside braces, which mean themselves if they turn out to be no quantifier.
    fn after_brace(&self, c: char) -> Option<Source> {
        let Lexed::Brace { repeats, low, high } = self.lexed.clone() else { return None };
        let lexed = match (low, high, c) {
            (low, None, '0'..='9') => {
                Lexed::Brace { repeats, low: Some(counted(low, c)), high: None }
            }
            (low, high @ Some(_), '0'..='9') => {
                Lexed::Brace { repeats, low, high: Some(counted(high, c)) }
            }
            (low @ Some(_), None, ',') => Lexed::Brace { repeats, low, high: Some(String::new()) },
            (Some(low), high, '}') => {
                let high = high.filter(|high| !high.is_empty());
                let ordered = high.is_none_or(|high| (low.len(), &low) <= (high.len(), &high));
                if !repeats || !ordered {
                    return None;
                }
                Lexed::Repeated
            }
            _ => return self.after_item(true, c),
        };
        self.to(lexed)
    }

    /// Inside the parentheses that have been opened.
    fn enter(&self, repeats: bool, captures: bool) -> Source {
        let mut open = self.open.clone();
        open.push(repeats);
        let groups = self.groups + u64::from(captures);
        Source { lexed: Lexed::Item(false), open, groups, ..self.clone() }
    }

    fn define(&self, name: &String) -> Option<Source> {
        let at = self.names.binary_search(name).err()?;
        let mut names = self.names.to_vec();
        names.insert(at, name.clone());
        let missing = self.missing.iter().filter(|one| *one != name).cloned().collect();
        Some(Source { names: names.into(), missing, ..self.enter(true, true) })
    }

    fn refer_to(&self, name: &String) -> Option<Source> {
        if name.is_empty() {
            return None;
        }
        let next = Source { lexed: Lexed::Item(true), ..self.clone() };
        let Err(at) = self.missing.binary_search(name) else { return Some(next) };
        if self.names.binary_search(name).is_ok() {
            return Some(next);
        }
        let mut missing = self.missing.to_vec();
        missing.insert(at, name.clone());
        Some(Source { missing: missing.into(), ..next })
    }

    fn after_modifier(&self, seen: u8, off: bool, c: char) -> Option<Source> {
        if c == ':' {
            return (seen > 0).then(|| self.enter(true, false));
        }
        if c == '-' && !off {
            return self.to(Lexed::Modifiers(seen, true));
        }
        let flag = 1 << "ims".find(c)?;
        if seen & flag == 0 { self.to(Lexed::Modifiers(seen | flag, off)) } else { None }
    }

    fn is_complete(&self) -> bool {
        let ends = match &self.lexed {
            Lexed::Item(_) | Lexed::Repeated | Lexed::Brace { .. } | Lexed::Reference(_) => true,
            Lexed::Escape(escape) => escape.may_end_pattern(),
            _ => false,
        };
        ends && self.open.is_empty() && self.missing.is_empty() && self.needed <= self.groups
    }

    /// A pattern that reads every character beyond ASCII in the same way, and is one for many.
    fn before_wide(&self) -> Source {
        match &self.lexed {
            Lexed::Item(_) | Lexed::Repeated | Lexed::Brace { .. } | Lexed::Reference(_) => {
                Source { lexed: Lexed::Item(false), ..self.clone() }
            }
            Lexed::Open => self.enter(true, true),
            Lexed::Class | Lexed::Members | Lexed::After(_) => {
                Source { lexed: Lexed::Members, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Whether one of some characters, none of them ASCII, may come.
    fn takes_wide(&self, first: char, last: char) -> bool {
        match &self.lexed {
            Lexed::Item(_)
            | Lexed::Repeated
            | Lexed::Brace { .. }
            | Lexed::Reference(_)
            | Lexed::Open
            | Lexed::Class
            | Lexed::Members
            | Lexed::After(_)
            | Lexed::Hyphen(None) => true,
            &Lexed::Hyphen(Some(low)) => low <= last.into(),
            Lexed::Named(None) | Lexed::Kind | Lexed::Modifiers(..) => false,
            Lexed::Angle => identifier_start().meets(first, last),
            Lexed::Name(name) | Lexed::Named(Some(name)) if name.is_empty() => {
                identifier_start().meets(first, last)
            }
            Lexed::Name(_) | Lexed::Named(_) => identifier_part().meets(first, last),
            Lexed::Escape(escape) => escape.takes_wide(last),
        }
    }
}

/// A count with one more digit.
fn counted(digits: Option<String>, digit: char) -> String {
    let mut digits = digits.unwrap_or_default();
    if digits == "0" {
        digits.clear();
    }
    digits.push(digit);
    digits
}

/// A name with one more character, if names have it there.
fn longer(name: &str, c: char) -> Option<String> {
    let class = if name.is_empty() { identifier_start() } else { identifier_part() };
    class.contains(c).then(|| format!("{name}{c}"))
}

/// Reads patterns of the ecma dialect; see [`Source`].
#[derive(Debug, Default)]
pub struct PatternTexts(Lock<Read>);

/// Patterns by number.
#[derive(Clone, Debug, Default)]
struct Read {
    list: Vec<Source>,
    ids: FxHashMap<Source, u32>,
}

impl PatternTexts {
    fn read<X>(&self, question: impl FnOnce(&mut Read) -> X) -> X {
        question(&mut self.0.lock())
    }
}

impl Read {
    fn intern(&mut self, source: Source) -> u32 {
        if let Some(&id) = self.ids.get(&source) {
            return id;
        }
        let id = self.list.len() as u32;
        self.list.push(source.clone());
        self.ids.insert(source, id);
        id
    }
}

impl Recognizer for PatternTexts {
    fn start(&self) -> u32 {
        self.read(|read| read.intern(Source::new()))
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        self.read(|read| {
            let next = read.list[state as usize].after(character)?;
            Some(read.intern(next))
        })
    }

    fn some_within(&self, state: u32, first: char, last: char) -> bool {
        self.read(|read| read.list[state as usize].takes_wide(first, last))
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.read(|read| read.list[state as usize].is_complete())
    }

    fn after_any(&self, state: u32, first: char, _: char) -> Option<u32> {
        self.read(|read| {
            let source = &read.list[state as usize];
            let is_item = matches!(source.before_wide().lexed, Lexed::Item(_));
            if is_item { source.after(first).map(|next| read.intern(next)) } else { None }
        })
    }

    fn span(&self, state: u32, character: u8) -> (u8, u8) {
        self.read(|read| read.list[state as usize].span(character))
    }

    fn like(&self, state: u32) -> Option<Resemblance<u32>> {
        Some(self.read(|read| {
            let (source, first, anywhere) = read.list[state as usize].like();
            let name = format!("{:?}", source.lexed);
            let state = read.intern(source);
            Resemblance { state, name, first, anywhere, most: u32::MAX, far: u32::MAX }
        }))
    }

    fn losses(&self) -> u32 {
        self.0.losses()
    }

    fn missing(&self, state: u32) -> u32 {
        self.read(|read| read.list[state as usize].missing())
    }

    fn before_wide(&self, state: u32) -> u32 {
        self.read(|read| {
            let source = read.list[state as usize].before_wide();
            read.intern(source)
        })
    }

    fn copy(&self) -> Option<Arc<dyn Recognizer>> {
        let copy = PatternTexts::default();
        copy.read(|own| *own = self.read(|read| read.clone()));
        Some(Arc::new(copy))
    }
}

#[cfg(test)]
mod tests;
