//! Case folding of classes: simple folding for ECMA-262, and CPython's rules for Python.
//!
//! ECMA-262 is simple: two characters match if their simple case foldings agree, and a class is
//! closed under that. CPython lowers the character of the *input* and looks it up in a class that
//! was prepared from the pattern. How it is prepared depends on how the class was written. We
//! follow CPython exactly, including two quirks for characters beyond U+FFFF:
//!
//! * in a class of several members such a letter stands for itself as written, so that a capital
//!   one matches nothing;
//! * a range that reaches there also matches a character whose upper case begins in the range, even
//!   under the ASCII flag.

use std::collections::BTreeMap;

use formalm_core::{CharSet, SetOnce};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::class_resolution::scalars;
use crate::unicode::properties::property;
use crate::unresolved_items::ClassMember;

/// The last character of the basic multilingual plane, where CPython's prepared classes end.
const LAST_BASIC: u32 = 0xffff;

/// Pairs of characters, sorted by the first.
type CharPairs = Vec<(char, char)>;

/// The case mappings that the rules below need.
struct CaseTables {
    /// A character and its lower case, where they differ.
    lower: CharPairs,
    /// These pairs, reversed.
    raised: CharPairs,
    /// The first character of a character's upper case and the character, where they differ.
    upper: CharPairs,
    /// Lower-case characters and others that have the same upper case.
    siblings: CharPairs,
    /// A character and the others with the same simple case folding.
    folded: CharPairs,
    /// Characters that are not their own lower case.
    unlowered: CharSet,
    /// Characters that are not their own lower or upper case.
    cased: CharSet,
}

/// Returns the lower case of a character as CPython's `re` sees it: the first character of the full
/// mapping.
fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

/// Returns the upper case of a character, likewise.
fn upper(character: char) -> char {
    character.to_uppercase().next().unwrap_or(character)
}

fn cases() -> &'static CaseTables {
    static CASES: SetOnce<CaseTables> = SetOnce::new();
    CASES.get_or_init(|| {
        // All case mappings are between characters of these two properties.
        let candidates: Vec<char> = ["Changes_When_Casemapped", "Changes_When_Casefolded"]
            .iter()
            .filter_map(|name| property(name))
            .fold(CharSet::empty(), |all, class| all.union(&class))
            .ranges()
            .iter()
            .flat_map(|&(low, high)| low..=high)
            .collect();
        CaseTables::of(&candidates)
    })
}

impl CaseTables {
    fn of(candidates: &[char]) -> CaseTables {
        let changed = |map: fn(char) -> char| {
            candidates.iter().map(move |&c| (c, map(c))).filter(|(from, to)| from != to)
        };
        let lower: CharPairs = changed(self::lower).collect();
        let upper: CharPairs = changed(self::upper).collect();
        let firsts = |pairs: &CharPairs| CharSet::from_ranges(pairs.iter().map(|&(c, _)| (c, c)));
        let unlowered = firsts(&lower);
        CaseTables {
            cased: unlowered.union(&firsts(&upper)),
            siblings: siblings(candidates),
            folded: folded(candidates),
            raised: swapped(&lower),
            upper: swapped(&upper),
            lower,
            unlowered,
        }
    }

    /// Returns the lower case of `class`, with which characters of the input are compared.
    fn lowered(&self, class: &CharSet) -> CharSet {
        class.difference(&self.unlowered).union(&image(&self.lower, class))
    }

    /// Returns the characters whose lower case is in `class`.
    fn with_lower_in(&self, class: &CharSet) -> CharSet {
        class.difference(&self.unlowered).union(&image(&self.raised, class))
    }
}

fn swapped(pairs: &CharPairs) -> CharPairs {
    let mut swapped: CharPairs = pairs.iter().map(|&(from, to)| (to, from)).collect();
    swapped.sort_unstable();
    swapped
}

/// Returns different lower-case characters with one upper case, such as `ſ` and `s`, which CPython
/// keeps in a table.
fn siblings(candidates: &[char]) -> CharPairs {
    let mut by_upper: BTreeMap<Vec<char>, Vec<char>> = BTreeMap::new();
    for &character in candidates.iter().filter(|&&c| lower(c) == c) {
        by_upper.entry(character.to_uppercase().collect()).or_default().push(character);
    }
    let mut pairs = CharPairs::new();
    for group in by_upper.values() {
        for &one in group {
            pairs.extend(group.iter().filter(|&&other| other != one).map(|&other| (one, other)));
        }
    }
    pairs.sort_unstable();
    pairs
}

fn folded(candidates: &[char]) -> CharPairs {
    let mut pairs = CharPairs::new();
    for &character in candidates {
        let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
        // The tables are compiled in; without them nothing would fold.
        if class.try_case_fold_simple().is_ok() {
            let others = class.iter().flat_map(|range| range.start()..=range.end());
            pairs
                .extend(others.filter(|&other| other != character).map(|other| (character, other)));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Returns the second characters of the pairs whose first is in `class`.
fn image(pairs: &CharPairs, class: &CharSet) -> CharSet {
    let mut found = Vec::new();
    for &(low, high) in class.ranges() {
        let start = pairs.partition_point(|&(first, _)| first < low);
        let matching = pairs[start..].iter().take_while(|&&(first, _)| first <= high);
        found.extend(matching.map(|&(_, second)| (second, second)));
    }
    CharSet::from_ranges(found)
}

/// Returns the characters with the same simple case folding as one in `class` (ECMA-262).
pub(crate) fn close_over_case(class: &CharSet) -> CharSet {
    class.union(&image(&cases().folded, class))
}

/// Returns the characters that a class matches under Python's IGNORECASE: the literals and ranges
/// of `members`, and `others`, the characters of its categories. `alone` says that the pattern has
/// a single character here and no class.
pub(crate) fn python_ignoring_case(
    members: &[ClassMember],
    others: CharSet,
    alone: bool,
    ascii: bool,
) -> CharSet {
    let mut written = Vec::new();
    let mut astral = Vec::new();
    for member in members {
        match *member {
            ClassMember::Literal(code) if code > LAST_BASIC && !alone => {
                astral.extend(scalars(code, code));
            }
            ClassMember::Literal(code) => written.extend(scalars(code, code)),
            ClassMember::Range(low, high) if high > LAST_BASIC => {
                written.extend(scalars(low, high.min(LAST_BASIC)));
                astral.extend(scalars(low, high));
            }
            ClassMember::Range(low, high) => written.extend(scalars(low, high)),
            ClassMember::Perl(..) | ClassMember::Property(..) => {}
        }
    }
    let written = CharSet::from_ranges(written);
    let astral = CharSet::from_ranges(astral);
    if astral.is_empty() && !has_case(&written, ascii) {
        return written.union(&others);
    }
    let compared =
        prepared(&written, ascii).union(&astral).union(&others).union(&begins_upper_in(members));
    if ascii { ascii_with_lower_in(&compared) } else { cases().with_lower_in(&compared) }
}

fn has_case(class: &CharSet, ascii: bool) -> bool {
    let letters = CharSet::from_ranges([('A', 'Z'), ('a', 'z')]);
    let cased = if ascii { &letters } else { &cases().cased };
    !class.intersection(cased).is_empty()
}

/// Returns the class as CPython prepares it for lowered characters.
fn prepared(written: &CharSet, ascii: bool) -> CharSet {
    if ascii {
        return written.difference(&ascii_capitals()).union(&shifted(written, 'A', 'a'));
    }
    let lowered = cases().lowered(written);
    lowered.union(&image(&cases().siblings, &lowered))
}

/// Returns the characters whose upper case begins in a range that reaches beyond the basic plane.
fn begins_upper_in(members: &[ClassMember]) -> CharSet {
    let reaching = members.iter().filter_map(|member| match *member {
        ClassMember::Range(low, high) if high > LAST_BASIC => Some(scalars(low, high)),
        _ => None,
    });
    image(&cases().upper, &CharSet::from_ranges(reaching.flatten()))
}

fn ascii_with_lower_in(class: &CharSet) -> CharSet {
    class.difference(&ascii_capitals()).union(&shifted(class, 'a', 'A'))
}

fn ascii_capitals() -> CharSet {
    CharSet::from_ranges([('A', 'Z')])
}

/// Returns the ASCII letters of `class` in the alphabet that begins at `from`, moved to the one
/// that begins at `to`.
fn shifted(class: &CharSet, from: char, to: char) -> CharSet {
    let alphabet =
        (0u8..26).map(|index| (char::from(from as u8 + index), char::from(to as u8 + index)));
    CharSet::from_ranges(alphabet.filter(|&(from, _)| class.contains(from)).map(|(_, to)| (to, to)))
}
