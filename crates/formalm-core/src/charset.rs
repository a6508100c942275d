//! Sets of Unicode scalar values ([`CharSet`]), and how much of four coarse parts of Unicode they
//! cover.

use std::sync::Arc;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::SetOnce;

/// The extent to which a set covers a part of Unicode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClassCover {
    /// No character.
    #[default]
    None,
    /// Some characters.
    Partial,
    /// All characters.
    Full,
}

/// Number of parts into which the non-ASCII characters are divided, see [`wide_parts`].
pub const WIDE_PARTS: usize = 4;

/// The non-ASCII parts that some characters are in, one bit each in the order of [`wide_parts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WideParts(u8);

impl WideParts {
    /// All parts.
    pub const ALL: WideParts = WideParts((1 << WIDE_PARTS) - 1);

    /// Returns the parts that a cover has whole.
    pub fn full(cover: [ClassCover; WIDE_PARTS]) -> WideParts {
        let full = cover.iter().enumerate().filter(|(_, part)| **part == ClassCover::Full);
        WideParts(full.fold(0, |bits, (at, _)| bits | 1 << at))
    }

    /// Returns the parts of which a cover has any character.
    pub fn touched(cover: [ClassCover; WIDE_PARTS]) -> WideParts {
        let touched = cover.iter().enumerate().filter(|(_, part)| **part != ClassCover::None);
        WideParts(touched.fold(0, |bits, (at, _)| bits | 1 << at))
    }

    /// Returns one part, by its index.
    pub fn one(part: usize) -> WideParts {
        WideParts(1 << part & WideParts::ALL.0)
    }

    /// Returns the parts in either set.
    pub fn union(self, other: WideParts) -> WideParts {
        WideParts(self.0 | other.0)
    }

    /// Returns the parts in both sets.
    pub fn intersection(self, other: WideParts) -> WideParts {
        WideParts(self.0 & other.0)
    }

    /// Returns the parts that are not in another set.
    pub fn without(self, other: WideParts) -> WideParts {
        WideParts(self.0 & !other.0)
    }

    /// Returns `true` if all parts are in another set.
    #[inline]
    pub fn is_within(self, other: WideParts) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns `true` if there is no part.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Returns the non-ASCII characters in four disjoint parts: letters and numbers without decimal
/// digits; decimal digits; whitespace, with the byte order mark, which is some in ECMAScript;
/// everything else. Common classes cover all or nothing of nearly each.
pub fn wide_parts() -> &'static [CharSet; WIDE_PARTS] {
    static PARTS: SetOnce<[CharSet; WIDE_PARTS]> = SetOnce::new();
    PARTS.get_or_init(|| {
        let wide = CharSet { ranges: [('\u{80}', char::MAX)].into() };
        let digits = property(r"\p{Nd}").intersection(&wide);
        let words = property(r"[\p{L}\p{N}]").intersection(&wide).difference(&digits);
        let blanks = property(r"[\s\u{feff}]").intersection(&wide).difference(&words);
        let named = words.union(&digits).union(&blanks);
        let others = wide.difference(&named);
        [words, digits, blanks, others]
    })
}

/// Parses a class in the syntax of `regex-syntax`. The patterns used here are valid.
fn property(pattern: &str) -> CharSet {
    match regex_syntax::parse(pattern).map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => class.into(),
        _ => CharSet::empty(),
    }
}

/// A set of characters as sorted, disjoint, non-adjacent ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CharSet {
    /// Shared, because a pattern may name a large class very often.
    ranges: Arc<[(char, char)]>,
}

impl CharSet {
    /// Returns the empty set.
    pub fn empty() -> CharSet {
        CharSet::default()
    }

    /// Returns the set of all characters.
    pub fn all() -> CharSet {
        CharSet { ranges: [('\0', char::MAX)].into() }
    }

    /// Returns the set of one character.
    pub fn single(character: char) -> CharSet {
        CharSet { ranges: [(character, character)].into() }
    }

    /// Returns the union of inclusive ranges, given in any order.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (char, char)>) -> CharSet {
        CharSet::from(ClassUnicode::new(
            ranges.into_iter().map(|(low, high)| ClassUnicodeRange::new(low, high)),
        ))
    }

    /// Returns the inclusive ranges, sorted.
    pub fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns `true` if the set has a character in `first..=last`.
    pub fn intersects_range(&self, first: char, last: char) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < first);
        self.ranges.get(at).is_some_and(|range| range.0 <= last)
    }

    /// Returns `true` if `character` is in the set.
    pub fn contains(&self, character: char) -> bool {
        let after = self.ranges.partition_point(|&(low, _)| low <= character);
        after > 0 && character <= self.ranges[after - 1].1
    }

    /// Returns the characters in either set.
    pub fn union(&self, other: &CharSet) -> CharSet {
        let mut class = self.class();
        class.union(&other.class());
        class.into()
    }

    /// Returns the characters in both sets.
    pub fn intersection(&self, other: &CharSet) -> CharSet {
        let mut class = self.class();
        class.intersect(&other.class());
        class.into()
    }

    /// Returns the characters in this set only.
    pub fn difference(&self, other: &CharSet) -> CharSet {
        let mut class = self.class();
        class.difference(&other.class());
        class.into()
    }

    /// Returns the characters outside the set.
    pub fn complement(&self) -> CharSet {
        let mut class = self.class();
        class.negate();
        class.into()
    }

    /// Returns the cover of each of the [`wide_parts`].
    pub fn wide_cover(&self) -> [ClassCover; WIDE_PARTS] {
        match self.ranges.last() {
            Some(&(low, high)) if low <= '\u{80}' && high == char::MAX => {
                return [ClassCover::Full; WIDE_PARTS];
            }
            Some(&(_, high)) if high >= '\u{80}' => {}
            _ => return [ClassCover::None; WIDE_PARTS],
        }
        std::array::from_fn(|part| self.cover(&wide_parts()[part]))
    }

    /// Returns the cover of `part`.
    fn cover(&self, part: &CharSet) -> ClassCover {
        let (mut common, mut missing) = (false, false);
        let mut rest = &*part.ranges;
        for &(from, to) in &*self.ranges {
            let before = rest.partition_point(|one| one.1 < from);
            missing |= before > 0;
            rest = &rest[before..];
            // Ranges are not adjacent, so a single range of the set must contain the whole range.
            while let Some(&(low, high)) = rest.first().filter(|one| one.0 <= to) {
                common = true;
                missing |= from > low || to < high;
                if missing {
                    return ClassCover::Partial;
                }
                rest = &rest[1..];
            }
        }
        match (common, missing || !rest.is_empty()) {
            (true, true) => ClassCover::Partial,
            (true, false) => ClassCover::Full,
            (false, _) => ClassCover::None,
        }
    }

    fn class(&self) -> ClassUnicode {
        ClassUnicode::new(self.ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)))
    }
}

impl From<ClassUnicode> for CharSet {
    fn from(class: ClassUnicode) -> CharSet {
        let mut ranges: Vec<(char, char)> = Vec::with_capacity(class.ranges().len());
        for range in class.iter() {
            match ranges.last_mut() {
                // Only surrogates lie between these, and they are not characters.
                Some(last) if last.1 == '\u{D7FF}' && range.start() == '\u{E000}' => {
                    last.1 = range.end();
                }
                _ => ranges.push((range.start(), range.end())),
            }
        }
        CharSet { ranges: ranges.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_and_its_complement_partition_the_characters() {
        let around = CharSet::from_ranges([('\0', '\u{D7FF}'), ('\u{E000}', 'ﬀ')]);
        let rest = around.complement();
        for character in ['\u{D7FF}', '\u{E000}', 'ﬀ', 'ﬁ', char::MAX] {
            assert_ne!(around.contains(character), rest.contains(character));
        }
        assert_eq!(around.union(&rest), CharSet::all());
        assert!(CharSet::all().complement().is_empty());
    }

    #[test]
    fn wide_cover_distinguishes_all_some_and_no_characters() {
        assert_eq!(CharSet::single('\n').complement().wide_cover(), [ClassCover::Full; WIDE_PARTS]);
        assert_eq!(CharSet::single('a').wide_cover(), [ClassCover::None; WIDE_PARTS]);
        let some = CharSet::from_ranges([('à', 'ü')]).wide_cover();
        assert_eq!(
            some,
            [ClassCover::Partial, ClassCover::None, ClassCover::None, ClassCover::Partial]
        );
        let word = wide_parts()[0].union(&wide_parts()[1]).wide_cover();
        assert_eq!(word, [ClassCover::Full, ClassCover::Full, ClassCover::None, ClassCover::None]);
    }
}
