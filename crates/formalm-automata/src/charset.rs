//! Sets of characters (Unicode scalar values).

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// A set of characters as sorted, disjoint, non-adjacent ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CharSet {
    ranges: Vec<(char, char)>,
}

impl CharSet {
    /// The empty set.
    pub fn empty() -> CharSet {
        CharSet::default()
    }

    /// Every character.
    pub fn all() -> CharSet {
        CharSet { ranges: vec![('\0', char::MAX)] }
    }

    /// One character.
    pub fn single(character: char) -> CharSet {
        CharSet { ranges: vec![(character, character)] }
    }

    /// The union of the given inclusive ranges, in any order.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (char, char)>) -> CharSet {
        CharSet::from(ClassUnicode::new(
            ranges.into_iter().map(|(low, high)| ClassUnicodeRange::new(low, high)),
        ))
    }

    /// The inclusive ranges, sorted.
    pub fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Whether no character is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether `character` is in the set.
    pub fn contains(&self, character: char) -> bool {
        let after = self.ranges.partition_point(|&(low, _)| low <= character);
        after > 0 && character <= self.ranges[after - 1].1
    }

    /// Characters in either set.
    pub fn union(&self, other: &CharSet) -> CharSet {
        let mut class = self.class();
        class.union(&other.class());
        class.into()
    }

    /// Characters in both sets.
    pub fn intersection(&self, other: &CharSet) -> CharSet {
        let mut class = self.class();
        class.intersect(&other.class());
        class.into()
    }

    /// Characters in this set only.
    pub fn difference(&self, other: &CharSet) -> CharSet {
        let mut class = self.class();
        class.difference(&other.class());
        class.into()
    }

    /// Characters outside the set.
    pub fn complement(&self) -> CharSet {
        let mut class = self.class();
        class.negate();
        class.into()
    }

    fn class(&self) -> ClassUnicode {
        ClassUnicode::new(self.ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)))
    }
}

impl From<ClassUnicode> for CharSet {
    fn from(class: ClassUnicode) -> CharSet {
        CharSet { ranges: class.iter().map(|range| (range.start(), range.end())).collect() }
    }
}
