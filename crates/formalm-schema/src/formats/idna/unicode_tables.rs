//! Character classes of IDNA, generated from the Unicode data by `tables/host_names.py`.

use formalm_core::CharSet;

/// One line per class: its name, then ranges of hexadecimal code points.
const TABLES_TEXT: &str = include_str!("tables.txt");

/// Character classes by name.
pub(super) struct UnicodeTables(Vec<(&'static str, CharSet)>);

impl UnicodeTables {
    /// Parses the table.
    pub(super) fn read() -> UnicodeTables {
        let lines = TABLES_TEXT.lines().filter_map(|line| line.split_once(' '));
        UnicodeTables(lines.map(|(name, ranges)| (name, parse_ranges(ranges))).collect())
    }

    /// Returns a class, empty if there is none of that name.
    pub(super) fn set(&self, name: &str) -> CharSet {
        let found = self.0.iter().find(|entry| entry.0 == name);
        found.map(|entry| entry.1.clone()).unwrap_or_default()
    }

    /// Returns the classes whose names start with `prefix`, each with the rest of its name.
    pub(super) fn with_prefix(
        &self,
        prefix: &str,
    ) -> impl Iterator<Item = (&'static str, CharSet)> {
        self.0.iter().filter_map(move |(name, set)| Some((name.strip_prefix(prefix)?, set.clone())))
    }
}

/// Parses ranges such as `E0-F6 F8`.
fn parse_ranges(ranges: &str) -> CharSet {
    let character = |text: &str| u32::from_str_radix(text, 16).ok().and_then(char::from_u32);
    CharSet::from_ranges(ranges.split_whitespace().filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((character(first)?, character(last)?))
    }))
}
