//! Classes of characters, derived from Unicode's data by `tables/host_names.py`.

use formalm_automata::CharSet;

/// A line for each class: name and ranges.
const TEXT: &str = include_str!("tables.txt");

/// The classes by name.
pub(super) struct UnicodeTables(Vec<(&'static str, CharSet)>);

impl UnicodeTables {
    pub(super) fn read() -> UnicodeTables {
        let lines = TEXT.lines().filter_map(|line| line.split_once(' '));
        UnicodeTables(lines.map(|(name, ranges)| (name, set(ranges))).collect())
    }

    pub(super) fn set(&self, name: &str) -> CharSet {
        let found = self.0.iter().find(|one| one.0 == name);
        found.map(|one| one.1.clone()).unwrap_or_default()
    }

    /// Classes whose names begin so, by the rest of their names.
    pub(super) fn named(&self, prefix: &str) -> impl Iterator<Item = (&'static str, CharSet)> {
        self.0.iter().filter_map(move |(name, set)| Some((name.strip_prefix(prefix)?, set.clone())))
    }
}

fn set(ranges: &str) -> CharSet {
    let character = |text: &str| u32::from_str_radix(text, 16).ok().and_then(char::from_u32);
    CharSet::from_ranges(ranges.split_whitespace().filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((character(first)?, character(last)?))
    }))
}
