//! A recognizer of the language of valid patterns: which strings are patterns of the `ecma`
//! dialect, references included.
//!
//! Groups nest and names are defined once, so the language is not regular. It is what
//! [`parse`](formalm_regex::parse) accepts, without its size limits, plus references: a number up to that
//! of the groups, or the name of one.

mod escapes;
mod property_names;
mod state_equivalence;

use std::sync::Arc;

use formalm_core::{ForkSafeMutex, Interner};
use formalm_regex::unicode::properties::{identifier_part, identifier_start};

use self::escapes::{CharRole, EscapeProgress};
use crate::{
    CharRecognizer, CompletionLengths, ExcludedStrings, GrowingStates, MemberLengths,
    RecognizerAlphabet, RefusedLengths, RepresentativeLanguage, RepresentativeState,
    StateRepresentatives,
};

/// A position between or inside the parts of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SourcePosition {
    /// Between items; `true` if the last one may be repeated.
    Item(bool),
    /// After a quantifier, which a question mark makes lazy.
    Repeated,
    /// After a brace that begins a quantifier or means itself; digits without leading zeros.
    Brace { repeats: bool, low: Option<String>, high: Option<String> },
    /// Inside an escape.
    Escape(EscapeProgress),
    /// Inside a reference by number: the number of groups it needs.
    Reference(u64),
    /// Inside a reference by name; `None` before its bracket.
    Named(Option<String>),
    /// After a parenthesis.
    Open,
    /// After `(?`.
    Kind,
    /// After `(?<`.
    Angle,
    /// Inside the name of a group.
    Name(String),
    /// Inside flags: those seen as bits, and whether they are being switched off.
    Modifiers(u8, bool),
    /// After the bracket of a class.
    Class,
    /// Before a member of a class that no hyphen joins to the previous one.
    Members,
    /// After a member: its code point unless it is a set.
    After(Option<u32>),
    /// After a member and a hyphen.
    Hyphen(Option<u32>),
}

/// The state of a pattern that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RegexSourceState {
    position: SourcePosition,
    /// Open parentheses: `true` if their contents may be repeated.
    open: Vec<bool>,
    groups: u64,
    /// Number of groups that references need.
    groups_needed: u64,
    /// Names of groups, and of references to groups that have not occurred yet; sorted.
    names: Arc<[String]>,
    undefined_names: Arc<[String]>,
}

impl RegexSourceState {
    fn new() -> RegexSourceState {
        RegexSourceState {
            position: SourcePosition::Item(false),
            open: Vec::new(),
            groups: 0,
            groups_needed: 0,
            names: Arc::default(),
            undefined_names: Arc::default(),
        }
    }

    fn to(&self, lexed: SourcePosition) -> Option<RegexSourceState> {
        Some(RegexSourceState { position: lexed, ..self.clone() })
    }

    /// Returns the state after one more character, or `None` if no pattern continues with it.
    fn after(&self, c: char) -> Option<RegexSourceState> {
        match &self.position {
            &SourcePosition::Item(repeats) => self.after_item(repeats, c),
            SourcePosition::Repeated if c == '?' => self.to(SourcePosition::Item(false)),
            SourcePosition::Repeated => self.after_item(false, c),
            SourcePosition::Brace { .. } => self.after_brace(c),
            SourcePosition::Escape(escape) => self.after_escape(escape, c),
            &SourcePosition::Reference(number) => match c.to_digit(10) {
                Some(digit) => {
                    let number = number.saturating_mul(10).saturating_add(u64::from(digit));
                    let next = RegexSourceState {
                        groups_needed: self.groups_needed.max(number),
                        ..self.clone()
                    };
                    next.to(SourcePosition::Reference(number))
                }
                None => self.after_item(true, c),
            },
            SourcePosition::Named(None) => {
                if c == '<' {
                    self.to(SourcePosition::Named(Some(String::new())))
                } else {
                    None
                }
            }
            SourcePosition::Named(Some(name)) if c == '>' => self.refer_to(name),
            SourcePosition::Named(Some(name)) => {
                self.to(SourcePosition::Named(Some(longer(name, c)?)))
            }
            SourcePosition::Name(name) if c == '>' => self.define(name),
            SourcePosition::Name(name) => self.to(SourcePosition::Name(longer(name, c)?)),
            SourcePosition::Open if c == '?' => self.to(SourcePosition::Kind),
            SourcePosition::Open => self.enter(true, true).after_item(false, c),
            SourcePosition::Kind => match c {
                ':' => Some(self.enter(true, false)),
                '=' | '!' => Some(self.enter(false, false)),
                '<' => self.to(SourcePosition::Angle),
                _ => self.after_modifier(0, false, c),
            },
            SourcePosition::Angle if matches!(c, '=' | '!') => Some(self.enter(false, false)),
            SourcePosition::Angle => self.to(SourcePosition::Name(longer("", c)?)),
            &SourcePosition::Modifiers(seen, off) => self.after_modifier(seen, off, c),
            SourcePosition::Class if c == '^' => self.to(SourcePosition::Members),
            SourcePosition::Class | SourcePosition::Members => self.after_member(CharRole::Low, c),
            &SourcePosition::After(low) if c == '-' => self.to(SourcePosition::Hyphen(low)),
            SourcePosition::After(_) => self.after_member(CharRole::Low, c),
            &SourcePosition::Hyphen(low) => self.after_member(CharRole::High(low), c),
        }
    }

    fn after_item(&self, repeats: bool, c: char) -> Option<RegexSourceState> {
        match c {
            '\\' => self.to(SourcePosition::Escape(EscapeProgress::Begun(CharRole::Outside))),
            '(' => self.to(SourcePosition::Open),
            ')' => {
                let mut open = self.open.clone();
                let repeats = open.pop()?;
                Some(RegexSourceState {
                    open,
                    position: SourcePosition::Item(repeats),
                    ..self.clone()
                })
            }
            '[' => self.to(SourcePosition::Class),
            '|' | '^' | '$' => self.to(SourcePosition::Item(false)),
            '*' | '+' | '?' => {
                if repeats {
                    self.to(SourcePosition::Repeated)
                } else {
                    None
                }
            }
            '{' => self.to(SourcePosition::Brace { repeats, low: None, high: None }),
            _ => self.to(SourcePosition::Item(true)),
        }
    }

    /// Reads a character inside braces, which mean themselves if they turn out to be no quantifier.
    fn after_brace(&self, c: char) -> Option<RegexSourceState> {
        let SourcePosition::Brace { repeats, low, high } = self.position.clone() else {
            return None;
        };
        let lexed = match (low, high, c) {
            (low, None, '0'..='9') => {
                SourcePosition::Brace { repeats, low: Some(counted(low, c)), high: None }
            }
            (low, high @ Some(_), '0'..='9') => {
                SourcePosition::Brace { repeats, low, high: Some(counted(high, c)) }
            }
            (low @ Some(_), None, ',') => {
                SourcePosition::Brace { repeats, low, high: Some(String::new()) }
            }
            (Some(low), high, '}') => {
                let high = high.filter(|high| !high.is_empty());
                let ordered = high.is_none_or(|high| (low.len(), &low) <= (high.len(), &high));
                if !repeats || !ordered {
                    return None;
                }
                SourcePosition::Repeated
            }
            _ => return self.after_item(true, c),
        };
        self.to(lexed)
    }

    /// Enters the parentheses that were just opened.
    fn enter(&self, repeats: bool, captures: bool) -> RegexSourceState {
        let mut open = self.open.clone();
        open.push(repeats);
        let groups = self.groups + u64::from(captures);
        RegexSourceState { position: SourcePosition::Item(false), open, groups, ..self.clone() }
    }

    fn define(&self, name: &String) -> Option<RegexSourceState> {
        let at = self.names.binary_search(name).err()?;
        let mut names = self.names.to_vec();
        names.insert(at, name.clone());
        let missing = self.undefined_names.iter().filter(|one| *one != name).cloned().collect();
        Some(RegexSourceState {
            names: names.into(),
            undefined_names: missing,
            ..self.enter(true, true)
        })
    }

    fn refer_to(&self, name: &String) -> Option<RegexSourceState> {
        if name.is_empty() {
            return None;
        }
        let next = RegexSourceState { position: SourcePosition::Item(true), ..self.clone() };
        let Err(at) = self.undefined_names.binary_search(name) else { return Some(next) };
        if self.names.binary_search(name).is_ok() {
            return Some(next);
        }
        let mut missing = self.undefined_names.to_vec();
        missing.insert(at, name.clone());
        Some(RegexSourceState { undefined_names: missing.into(), ..next })
    }

    fn after_modifier(&self, seen: u8, off: bool, c: char) -> Option<RegexSourceState> {
        if c == ':' {
            return (seen > 0).then(|| self.enter(true, false));
        }
        if c == '-' && !off {
            return self.to(SourcePosition::Modifiers(seen, true));
        }
        let flag = 1 << "ims".find(c)?;
        if seen & flag == 0 { self.to(SourcePosition::Modifiers(seen | flag, off)) } else { None }
    }

    fn is_complete(&self) -> bool {
        let ends = match &self.position {
            SourcePosition::Item(_)
            | SourcePosition::Repeated
            | SourcePosition::Brace { .. }
            | SourcePosition::Reference(_) => true,
            SourcePosition::Escape(escape) => escape.may_end_pattern(),
            _ => false,
        };
        ends && self.open.is_empty()
            && self.undefined_names.is_empty()
            && self.groups_needed <= self.groups
    }

    /// Returns a state that reads every non-ASCII character alike; many states share it.
    fn merge_before_non_ascii(&self) -> RegexSourceState {
        match &self.position {
            SourcePosition::Item(_)
            | SourcePosition::Repeated
            | SourcePosition::Brace { .. }
            | SourcePosition::Reference(_) => {
                RegexSourceState { position: SourcePosition::Item(false), ..self.clone() }
            }
            SourcePosition::Open => self.enter(true, true),
            SourcePosition::Class | SourcePosition::Members | SourcePosition::After(_) => {
                RegexSourceState { position: SourcePosition::Members, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Returns `true` if one of some non-ASCII characters may follow.
    fn accepts_non_ascii(&self, first: char, last: char) -> bool {
        match &self.position {
            SourcePosition::Item(_)
            | SourcePosition::Repeated
            | SourcePosition::Brace { .. }
            | SourcePosition::Reference(_)
            | SourcePosition::Open
            | SourcePosition::Class
            | SourcePosition::Members
            | SourcePosition::After(_)
            | SourcePosition::Hyphen(None) => true,
            &SourcePosition::Hyphen(Some(low)) => low <= last.into(),
            SourcePosition::Named(None) | SourcePosition::Kind | SourcePosition::Modifiers(..) => {
                false
            }
            SourcePosition::Angle => identifier_start().intersects_range(first, last),
            SourcePosition::Name(name) | SourcePosition::Named(Some(name)) if name.is_empty() => {
                identifier_start().intersects_range(first, last)
            }
            SourcePosition::Name(_) | SourcePosition::Named(_) => {
                identifier_part().intersects_range(first, last)
            }
            SourcePosition::Escape(escape) => escape.accepts_non_ascii(last),
        }
    }
}

/// Appends a digit to a count.
fn counted(digits: Option<String>, digit: char) -> String {
    let mut digits = digits.unwrap_or_default();
    if digits == "0" {
        digits.clear();
    }
    digits.push(digit);
    digits
}

/// Appends a character to a name, if names may have it there.
fn longer(name: &str, c: char) -> Option<String> {
    let class = if name.is_empty() { identifier_start() } else { identifier_part() };
    class.contains(c).then(|| format!("{name}{c}"))
}

/// A recognizer of patterns of the `ecma` dialect; see the module documentation.
#[derive(Debug, Default)]
pub struct RegexSourceRecognizer(ForkSafeMutex<Interner<RegexSourceState>>);

impl RegexSourceRecognizer {
    fn read<X>(&self, question: impl FnOnce(&mut Interner<RegexSourceState>) -> X) -> X {
        question(&mut self.0.lock())
    }
}

impl CharRecognizer for RegexSourceRecognizer {
    fn start(&self) -> u32 {
        self.read(|read| read.intern(RegexSourceState::new()))
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        self.read(|read| {
            let next = read.get(state).after(character)?;
            Some(read.intern(next))
        })
    }

    fn accepts_some_in_range(&self, state: u32, first: char, last: char) -> bool {
        self.read(|read| read.get(state).accepts_non_ascii(first, last))
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.read(|read| read.get(state).is_complete())
    }

    fn alphabet(&self) -> Option<&dyn RecognizerAlphabet> {
        Some(self)
    }

    fn member_lengths(&self) -> Option<&dyn MemberLengths> {
        Some(self)
    }

    fn representatives(&self) -> Option<&dyn StateRepresentatives> {
        Some(self)
    }

    fn growing_states(&self) -> Option<&dyn GrowingStates> {
        Some(self)
    }
}

impl RecognizerAlphabet for RegexSourceRecognizer {
    fn ascii_span(&self, state: u32, character: u8) -> (u8, u8) {
        self.read(|read| read.get(state).ascii_span(character))
    }

    fn step_range(&self, state: u32, first: char, _: char) -> Option<u32> {
        self.read(|read| {
            let source = &read.get(state);
            let is_item =
                matches!(source.merge_before_non_ascii().position, SourcePosition::Item(_));
            if is_item { source.after(first).map(|next| read.intern(next)) } else { None }
        })
    }

    fn merge_before_non_ascii(&self, state: u32) -> u32 {
        self.read(|read| {
            let source = read.get(state).merge_before_non_ascii();
            read.intern(source)
        })
    }
}

impl MemberLengths for RegexSourceRecognizer {
    fn estimated_missing_chars(&self, state: u32) -> u32 {
        self.read(|read| read.get(state).estimated_missing_chars())
    }
}

impl StateRepresentatives for RegexSourceRecognizer {
    fn representative(&self, state: u32) -> Option<RepresentativeState<u32>> {
        Some(self.read(|read| {
            let (source, first, anywhere) = read.get(state).representative();
            let name = format!("{:?}", source.position);
            let state = read.intern(source);
            RepresentativeState {
                reads: RepresentativeLanguage::State { state, name },
                excluded: ExcludedStrings { first, anywhere, ..ExcludedStrings::default() },
                max_chars: u32::MAX,
                refused: RefusedLengths::default(),
                completions: CompletionLengths::UNKNOWN,
            }
        }))
    }
}

impl GrowingStates for RegexSourceRecognizer {
    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        let copy = RegexSourceRecognizer::default();
        copy.read(|own| *own = self.read(|read| read.clone()));
        Some(Arc::new(copy))
    }

    fn losses(&self) -> u32 {
        self.0.losses()
    }
}

#[cfg(test)]
mod tests;
