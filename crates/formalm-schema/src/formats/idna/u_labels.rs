//! Labels of characters beyond ASCII, as RFC 5891 and 5892 or UTS #46 have them: which characters
//! there are, which need others beside them, and that they are spelled in Unicode's normal form C.

use formalm_automata::syntax::{PatternDialect, PatternFlags, PatternNode, parse};
use formalm_automata::{CharSet, Error};
use rustc_hash::{FxHashMap, FxHashSet};

use super::unicode_tables::UnicodeTables;

/// What the character that comes next has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RequiredNeighbor {
    Any,
    /// After `l·`.
    L,
    /// After a Greek lower numeral sign.
    Greek,
    /// After a non-joiner behind a letter that joins, marks aside.
    Joined,
}

/// The standard that labels follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Standard {
    /// RFC 5891 and 5892, as the formats of JSON Schema.
    Idna2008,
    /// UTS #46 with the options of the URL standard: CheckBidi and CheckJoiners, no others.
    Uts46,
}

/// Whether some label of the name reads from right to left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ContextRules {
    Left,
    Right,
}

/// The direction of a label, by RFC 5893.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Direction {
    Open,
    Left,
    Right,
}

/// A label that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ULabelState {
    /// Characters read, as far as it matters.
    length: u8,
    /// The last character, as far as it matters: `-`, `l`, a virama, a letter of Hebrew.
    hyphens: u8,
    after_l: bool,
    after_virama: bool,
    after_hebrew: bool,
    /// A letter that joins to the left, and marks since.
    after_joining: bool,
    next: RequiredNeighbor,
    /// A Katakana middle dot without a letter of Japanese so far.
    lacks_kana: bool,
    has_kana: bool,
    /// Arabic digits of either kind.
    digits: [bool; 2],
    is_wide: bool,
    direction: Direction,
    /// Digits that read from left to right, and those of Arabic.
    numbers: [bool; 2],
    /// Whether its direction lets the label end here.
    may_end: bool,
    /// The last character that marks may become one with, and the order of the last mark.
    starter: Option<char>,
    order: u8,
}

const EMPTY: ULabelState = ULabelState {
    length: 0,
    hyphens: 0,
    after_l: false,
    after_virama: false,
    after_hebrew: false,
    after_joining: false,
    next: RequiredNeighbor::Any,
    lacks_kana: false,
    has_kana: false,
    digits: [false; 2],
    is_wide: false,
    direction: Direction::Open,
    numbers: [false; 2],
    may_end: false,
    starter: None,
    order: 0,
};

/// Reads labels; every beginning can go on with letters that are needed.
#[derive(Debug)]
pub(super) struct ULabels {
    standard: Standard,
    beside: ContextRules,
    to_left: CharSet,
    arabic: CharSet,
    numbers: CharSet,
    to_right: CharSet,
    nonspacing: CharSet,
    pub(super) valid: CharSet,
    marks: CharSet,
    virama: CharSet,
    left: CharSet,
    right: CharSet,
    transparent: CharSet,
    greek: CharSet,
    hebrew: CharSet,
    kana: CharSet,
    /// Combining classes other than 0, by the characters from one to another; sorted.
    orders: Vec<(char, char, u8)>,
    /// What marks are one character with.
    composed: FxHashMap<char, CharSet>,
    starters: FxHashSet<char>,
}

/// Whether a character of Hangul may become one with the next: a leading consonant, or a syllable
/// without a trailing one.
fn begins_syllable(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{1112}')
        || matches!(c, '\u{AC00}'..='\u{D7A3}') && (u32::from(c) - 0xAC00).is_multiple_of(28)
}

/// Whether two characters are one syllable of Hangul.
fn are_one_syllable(first: char, second: char) -> bool {
    let seconds = match first {
        '\u{1100}'..='\u{1112}' => '\u{1161}'..='\u{1175}',
        _ => '\u{11A8}'..='\u{11C2}',
    };
    begins_syllable(first) && seconds.contains(&second)
}

/// The characters of a class as patterns write it.
fn written(source: &str) -> Result<CharSet, Error> {
    let pattern = parse(source, PatternDialect::Ecma, PatternFlags::default())?;
    Ok(match pattern.root {
        PatternNode::Class(set) => set,
        _ => CharSet::empty(),
    })
}

impl ULabels {
    pub(super) fn new(
        tables: &UnicodeTables,
        standard: Standard,
        beside: ContextRules,
    ) -> Result<ULabels, Error> {
        let mut orders = Vec::new();
        for (order, set) in tables.named("order:") {
            let order = order.parse().unwrap_or(0);
            orders.extend(set.ranges().iter().map(|&(first, last)| (first, last, order)));
        }
        orders.sort_unstable();
        let mut composed = FxHashMap::default();
        let mut starters = FxHashSet::default();
        for (mark, set) in tables.named("compose:") {
            let mark = u32::from_str_radix(mark, 16).ok().and_then(char::from_u32);
            let ranges = set.ranges().iter();
            starters.extend(ranges.flat_map(|&(first, last)| first..=last));
            composed.extend(mark.map(|mark| (mark, set)));
        }
        let valid = match standard {
            Standard::Idna2008 => tables.set("valid"),
            Standard::Uts46 => tables.set("url"),
        };
        Ok(ULabels {
            standard,
            beside,
            to_left: tables.set("R"),
            arabic: tables.set("AN"),
            numbers: tables.set("EN"),
            to_right: tables.set("L"),
            nonspacing: tables.set("NSM"),
            valid,
            marks: tables.set("mark"),
            virama: tables.set("virama"),
            left: tables.set("left"),
            right: tables.set("right"),
            transparent: tables.set("transparent"),
            greek: written("\\p{Script=Greek}")?,
            hebrew: written("\\p{Script=Hebrew}")?,
            kana: written("[\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Han}]")?,
            orders,
            composed,
            starters,
        })
    }

    fn order(&self, c: char) -> u8 {
        let after = self.orders.partition_point(|&(first, ..)| first <= c);
        let found = after.checked_sub(1).map(|at| self.orders[at]);
        found.filter(|&(_, last, _)| c <= last).map_or(0, |(.., order)| order)
    }

    pub(super) fn after(&self, label: ULabelState, c: char) -> Option<ULabelState> {
        let is_strict = self.standard == Standard::Idna2008;
        if !self.valid.contains(c) || label.length == 0 && self.marks.contains(c) {
            return None;
        }
        let mut next = ULabelState { length: (label.length + 1).min(4), ..label };
        self.read_neighbors(label, c, &mut next)?;
        self.read_normal(label, c, &mut next)?;
        self.read_direction(label, c, &mut next)?;
        next.is_wide |= !c.is_ascii();
        if !is_strict {
            return Some(next);
        }
        if label.length == 0 && c == '-' {
            return None;
        }
        next.hyphens = if c == '-' { label.hyphens + 1 } else { 0 }.min(2);
        if label.length == 3 && next.hyphens == 2 {
            return None;
        }
        for (at, digits) in ['\u{660}'..='\u{669}', '\u{6F0}'..='\u{6F9}'].iter().enumerate() {
            next.digits[at] |= digits.contains(&c);
        }
        if next.digits == [true, true] {
            return None;
        }
        next.has_kana |= self.kana.contains(c);
        next.lacks_kana = (label.lacks_kana || c == '\u{30FB}') && !next.has_kana;
        Some(next)
    }

    /// Characters that need others before or behind them.
    fn read_neighbors(&self, label: ULabelState, c: char, next: &mut ULabelState) -> Option<()> {
        let is_strict = self.standard == Standard::Idna2008;
        let is_through = self.transparent.contains(c);
        let waits = label.next == RequiredNeighbor::Joined && is_through;
        let fits = match label.next {
            RequiredNeighbor::Any => true,
            RequiredNeighbor::L => c == 'l',
            RequiredNeighbor::Greek => self.greek.contains(c),
            RequiredNeighbor::Joined => is_through || self.right.contains(c),
        };
        let follows = match c {
            '\u{200D}' => label.after_virama,
            '\u{200C}' => label.after_virama || label.after_joining,
            _ if !is_strict => true,
            '\u{B7}' => label.after_l,
            '\u{5F3}' | '\u{5F4}' => label.after_hebrew,
            _ => true,
        };
        if !fits || !follows {
            return None;
        }
        next.next = match c {
            _ if waits => RequiredNeighbor::Joined,
            '\u{200C}' if !label.after_virama => RequiredNeighbor::Joined,
            _ if !is_strict => RequiredNeighbor::Any,
            '\u{B7}' => RequiredNeighbor::L,
            '\u{375}' => RequiredNeighbor::Greek,
            _ => RequiredNeighbor::Any,
        };
        next.after_l = c == 'l';
        next.after_virama = self.virama.contains(c);
        next.after_hebrew = self.hebrew.contains(c);
        next.after_joining = self.left.contains(c) || label.after_joining && is_through;
        Some(())
    }

    /// Letters of one direction, ended by one of them.
    fn read_direction(&self, label: ULabelState, c: char, next: &mut ULabelState) -> Option<()> {
        let (left, right) = (self.to_right.contains(c), self.to_left.contains(c));
        let (number, arabic) = (self.numbers.contains(c), self.arabic.contains(c));
        if self.beside == ContextRules::Left {
            next.may_end = true;
            return (!right && !arabic).then_some(());
        }
        next.direction = match label.direction {
            Direction::Open if left => Direction::Left,
            Direction::Open if right => Direction::Right,
            Direction::Open => return None,
            known => known,
        };
        next.numbers = [label.numbers[0] || number, label.numbers[1] || arabic];
        let fits = match next.direction {
            Direction::Right => {
                // What needs letters that read from left to right never gets them.
                let is_strict = self.standard == Standard::Idna2008;
                let lacking = is_strict && matches!(c, '\u{375}' | '\u{30FB}');
                !left && !lacking && next.numbers != [true, true]
            }
            _ => !right && !arabic,
        };
        if !self.nonspacing.contains(c) {
            next.may_end = left || right || number || arabic;
        }
        fits.then_some(())
    }

    /// Marks in their order, and none that is one character with what it stands behind.
    fn read_normal(&self, label: ULabelState, c: char, next: &mut ULabelState) -> Option<()> {
        let order = self.order(c);
        if order > 0 && order < label.order {
            return None;
        }
        let reaches = if order > 0 { label.order < order } else { label.order == 0 };
        let composes = |starter: &char| {
            self.composed.get(&c).is_some_and(|starters| starters.contains(*starter))
                || are_one_syllable(*starter, c)
        };
        if reaches && label.starter.as_ref().is_some_and(composes) {
            return None;
        }
        next.order = order;
        if order == 0 {
            let composes = |c: &char| self.starters.contains(c) || begins_syllable(*c);
            next.starter = Some(c).filter(composes);
        }
        Some(())
    }
}

impl ULabels {
    /// The label after a text; `None` if none begins so.
    pub(super) fn read(&self, text: impl IntoIterator<Item = char>) -> Option<ULabelState> {
        text.into_iter().try_fold(EMPTY, |label, c| self.after(label, c))
    }

    /// The characters of labels from `first` to `last`.
    pub(super) fn valid_within(&self, first: char, last: char) -> impl Iterator<Item = char> {
        let within = CharSet::from_ranges([(first, last)]).intersection(&self.valid);
        let ranges = within.ranges().to_vec().into_iter();
        ranges.flat_map(|(first, last)| first..=last)
    }
}

impl ULabelState {
    /// Whether this is a whole label.
    pub(super) fn is_complete(self) -> bool {
        self.is_wide
            && self.may_end
            && self.hyphens == 0
            && self.next == RequiredNeighbor::Any
            && !self.lacks_kana
    }
}
