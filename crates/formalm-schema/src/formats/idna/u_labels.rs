//! Labels of Unicode characters (U-labels): RFC 5891 to 5893, or UTS #46.
//!
//! A label is read in one pass with a fixed-size state. Four groups of rules apply:
//!
//! * which characters are allowed, and that no combining mark comes first;
//! * contextual rules: `·` only between two `l`, joiners after a virama, and so on (RFC 5892,
//!   appendix A);
//! * the Bidi rule: one direction per label (RFC 5893);
//! * normal form C: combining marks in order, and no pair that has a composed form.
//!
//! Every viable prefix can be completed by one of a few letters.

use formalm_core::{CharSet, Error};
use formalm_regex::{PatternDialect, PatternFlags, PatternNode, parse};
use rustc_hash::{FxHashMap, FxHashSet};

use super::unicode_tables::UnicodeTables;

/// A requirement on the next character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RequiredNeighbor {
    Any,
    /// Another `l`, after `l·`.
    LatinL,
    /// A Greek character, after the lower numeral sign.
    Greek,
    /// A letter that joins to the right, after a non-joiner that follows a joining letter. Marks
    /// may lie between.
    Joined,
}

/// The standard that defines labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Standard {
    /// RFC 5891 and 5892, which the formats of JSON Schema refer to.
    Idna2008,
    /// UTS #46 with the options of the URL standard: only CheckBidi and CheckJoiners.
    Uts46,
}

/// The kind of name that contains the label: without or with a right-to-left label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NameDirection {
    LeftToRight,
    RightToLeft,
}

/// The direction of a label (RFC 5893).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Direction {
    Open,
    LeftToRight,
    RightToLeft,
}

/// The state of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ULabelState {
    /// Number of characters read, saturated at 4.
    length: u8,
    /// Number of hyphens at the end, saturated at 2.
    hyphens: u8,
    /// The last character is `l`.
    after_l: bool,
    /// The last character is a virama.
    after_virama: bool,
    /// The last character is Hebrew.
    after_hebrew: bool,
    /// The last character, marks aside, joins to the left.
    after_joining: bool,
    next: RequiredNeighbor,
    /// A Katakana middle dot occurred, but no Japanese letter.
    requires_japanese: bool,
    has_japanese: bool,
    /// Arabic-Indic and extended Arabic-Indic digits occurred; a label has one kind only.
    digits: [bool; 2],
    has_non_ascii: bool,
    direction: Direction,
    /// Bidi classes EN and AN occurred.
    bidi_numbers: [bool; 2],
    /// `true` if the Bidi rule lets the label end here.
    may_end: bool,
    /// The last character that a mark may compose with.
    starter: Option<char>,
    /// The combining class of the last character.
    combining_class: u8,
}

const EMPTY: ULabelState = ULabelState {
    length: 0,
    hyphens: 0,
    after_l: false,
    after_virama: false,
    after_hebrew: false,
    after_joining: false,
    next: RequiredNeighbor::Any,
    requires_japanese: false,
    has_japanese: false,
    digits: [false; 2],
    has_non_ascii: false,
    direction: Direction::Open,
    bidi_numbers: [false; 2],
    may_end: false,
    starter: None,
    combining_class: 0,
};

/// The rules of labels under one standard, in one kind of name.
#[derive(Debug)]
pub(super) struct ULabels {
    standard: Standard,
    name_direction: NameDirection,
    right_to_left: CharSet,
    arabic_digits: CharSet,
    european_digits: CharSet,
    left_to_right: CharSet,
    nonspacing_marks: CharSet,
    pub(super) valid: CharSet,
    marks: CharSet,
    virama: CharSet,
    joins_left: CharSet,
    joins_right: CharSet,
    transparent: CharSet,
    greek: CharSet,
    hebrew: CharSet,
    japanese: CharSet,
    /// Nonzero combining classes by range of characters, sorted.
    combining_classes: Vec<(char, char, u8)>,
    /// The starters that each mark composes with.
    composing_starters: FxHashMap<char, CharSet>,
    starters: FxHashSet<char>,
}

/// Returns `true` if a Hangul character may compose with the next: a leading consonant, or a
/// syllable without a trailing one.
fn begins_syllable(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{1112}')
        || matches!(c, '\u{AC00}'..='\u{D7A3}') && (u32::from(c) - 0xAC00).is_multiple_of(28)
}

/// Returns `true` if two characters compose to a Hangul syllable.
fn are_one_syllable(first: char, second: char) -> bool {
    let seconds = match first {
        '\u{1100}'..='\u{1112}' => '\u{1161}'..='\u{1175}',
        _ => '\u{11A8}'..='\u{11C2}',
    };
    begins_syllable(first) && seconds.contains(&second)
}

/// Returns the characters of a class in pattern syntax.
fn script_class(source: &str) -> Result<CharSet, Error> {
    let pattern = parse(source, PatternDialect::Ecma, PatternFlags::default())?;
    Ok(match pattern.root {
        PatternNode::Class(set) => set,
        _ => CharSet::empty(),
    })
}

impl ULabels {
    /// Returns the rules, read from the generated tables.
    pub(super) fn new(
        tables: &UnicodeTables,
        standard: Standard,
        name_direction: NameDirection,
    ) -> Result<ULabels, Error> {
        let mut combining_classes = Vec::new();
        for (combining_class, set) in tables.with_prefix("order:") {
            let combining_class = combining_class.parse().unwrap_or(0);
            combining_classes
                .extend(set.ranges().iter().map(|&(first, last)| (first, last, combining_class)));
        }
        combining_classes.sort_unstable();
        let mut composing_starters = FxHashMap::default();
        let mut starters = FxHashSet::default();
        for (mark, set) in tables.with_prefix("compose:") {
            let mark = u32::from_str_radix(mark, 16).ok().and_then(char::from_u32);
            let ranges = set.ranges().iter();
            starters.extend(ranges.flat_map(|&(first, last)| first..=last));
            composing_starters.extend(mark.map(|mark| (mark, set)));
        }
        let valid = match standard {
            Standard::Idna2008 => tables.set("valid"),
            Standard::Uts46 => tables.set("url"),
        };
        Ok(ULabels {
            standard,
            name_direction,
            right_to_left: tables.set("R"),
            arabic_digits: tables.set("AN"),
            european_digits: tables.set("EN"),
            left_to_right: tables.set("L"),
            nonspacing_marks: tables.set("NSM"),
            valid,
            marks: tables.set("mark"),
            virama: tables.set("virama"),
            joins_left: tables.set("left"),
            joins_right: tables.set("right"),
            transparent: tables.set("transparent"),
            greek: script_class("\\p{Script=Greek}")?,
            hebrew: script_class("\\p{Script=Hebrew}")?,
            japanese: script_class("[\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Han}]")?,
            combining_classes,
            composing_starters,
            starters,
        })
    }

    /// Returns the canonical combining class of a character.
    fn combining_class(&self, c: char) -> u8 {
        let after = self.combining_classes.partition_point(|&(first, ..)| first <= c);
        let found = after.checked_sub(1).map(|at| self.combining_classes[at]);
        found.filter(|&(_, last, _)| c <= last).map_or(0, |(.., combining_class)| combining_class)
    }

    /// Returns the state after one more character, or `None` if no label continues with it.
    pub(super) fn after(&self, label: ULabelState, c: char) -> Option<ULabelState> {
        let is_strict = self.standard == Standard::Idna2008;
        if !self.valid.contains(c) || label.length == 0 && self.marks.contains(c) {
            return None;
        }
        let mut next = ULabelState { length: (label.length + 1).min(4), ..label };
        self.read_neighbors(label, c, &mut next)?;
        self.read_normal(label, c, &mut next)?;
        self.read_direction(label, c, &mut next)?;
        next.has_non_ascii |= !c.is_ascii();
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
        next.has_japanese |= self.japanese.contains(c);
        next.requires_japanese = (label.requires_japanese || c == '\u{30FB}') && !next.has_japanese;
        Some(next)
    }

    /// Applies the contextual rules: characters that require others before or after them.
    fn read_neighbors(&self, label: ULabelState, c: char, next: &mut ULabelState) -> Option<()> {
        let is_strict = self.standard == Standard::Idna2008;
        let is_transparent = self.transparent.contains(c);
        let waits = label.next == RequiredNeighbor::Joined && is_transparent;
        let fits = match label.next {
            RequiredNeighbor::Any => true,
            RequiredNeighbor::LatinL => c == 'l',
            RequiredNeighbor::Greek => self.greek.contains(c),
            RequiredNeighbor::Joined => is_transparent || self.joins_right.contains(c),
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
            '\u{B7}' => RequiredNeighbor::LatinL,
            '\u{375}' => RequiredNeighbor::Greek,
            _ => RequiredNeighbor::Any,
        };
        next.after_l = c == 'l';
        next.after_virama = self.virama.contains(c);
        next.after_hebrew = self.hebrew.contains(c);
        next.after_joining = self.joins_left.contains(c) || label.after_joining && is_transparent;
        Some(())
    }

    /// Applies the Bidi rule: letters of one direction, and a letter or digit at the end.
    fn read_direction(&self, label: ULabelState, c: char, next: &mut ULabelState) -> Option<()> {
        let (is_left_to_right, is_right_to_left) =
            (self.left_to_right.contains(c), self.right_to_left.contains(c));
        let (is_european, is_arabic) =
            (self.european_digits.contains(c), self.arabic_digits.contains(c));
        if self.name_direction == NameDirection::LeftToRight {
            next.may_end = true;
            return (!is_right_to_left && !is_arabic).then_some(());
        }
        next.direction = match label.direction {
            Direction::Open if is_left_to_right => Direction::LeftToRight,
            Direction::Open if is_right_to_left => Direction::RightToLeft,
            Direction::Open => return None,
            known => known,
        };
        next.bidi_numbers =
            [label.bidi_numbers[0] || is_european, label.bidi_numbers[1] || is_arabic];
        let fits = match next.direction {
            Direction::RightToLeft => {
                // These require left-to-right letters later, which cannot come.
                let is_strict = self.standard == Standard::Idna2008;
                let lacking = is_strict && matches!(c, '\u{375}' | '\u{30FB}');
                !is_left_to_right && !lacking && next.bidi_numbers != [true, true]
            }
            _ => !is_right_to_left && !is_arabic,
        };
        if !self.nonspacing_marks.contains(c) {
            next.may_end = is_left_to_right || is_right_to_left || is_european || is_arabic;
        }
        fits.then_some(())
    }

    /// Applies normal form C: marks in canonical order, and none that composes with its starter.
    fn read_normal(&self, label: ULabelState, c: char, next: &mut ULabelState) -> Option<()> {
        let combining_class = self.combining_class(c);
        if combining_class > 0 && combining_class < label.combining_class {
            return None;
        }
        let reaches = if combining_class > 0 {
            label.combining_class < combining_class
        } else {
            label.combining_class == 0
        };
        let composes = |starter: &char| {
            self.composing_starters.get(&c).is_some_and(|starters| starters.contains(*starter))
                || are_one_syllable(*starter, c)
        };
        if reaches && label.starter.as_ref().is_some_and(composes) {
            return None;
        }
        next.combining_class = combining_class;
        if combining_class == 0 {
            let composes = |c: &char| self.starters.contains(c) || begins_syllable(*c);
            next.starter = Some(c).filter(composes);
        }
        Some(())
    }
}

impl ULabels {
    /// Returns the state after a string, or `None` if no label starts with it.
    pub(super) fn read(&self, text: impl IntoIterator<Item = char>) -> Option<ULabelState> {
        text.into_iter().try_fold(EMPTY, |label, c| self.after(label, c))
    }

    /// Returns the characters of labels from `first` to `last`.
    pub(super) fn valid_within(&self, first: char, last: char) -> impl Iterator<Item = char> {
        let within = CharSet::from_ranges([(first, last)]).intersection(&self.valid);
        let ranges = within.ranges().to_vec().into_iter();
        ranges.flat_map(|(first, last)| first..=last)
    }
}

impl ULabelState {
    /// Returns `true` if the string read is a label.
    pub(super) fn is_complete(self) -> bool {
        self.has_non_ascii
            && self.may_end
            && self.hyphens == 0
            && self.next == RequiredNeighbor::Any
            && !self.requires_japanese
    }
}
