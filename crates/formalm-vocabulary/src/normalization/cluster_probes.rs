//! Test strings that tell how the served library divides text into grapheme clusters.
//!
//! The library has no function for that. But a map with the single pair `a + U+0301` shows it: the
//! pair is replaced unless its cluster is long, or began before it. Each string is changed unless a
//! character has the property that is asked for.

use formalm_core::{CharSet, SetOnce};
use formalm_regex::{PatternDialect, PatternFlags, PatternNode, parse};
use unicode_normalization::char::is_combining_mark;

use super::cluster_map::{ClusterParts, JOINER};

/// The kinds of probes, as [`NormalizerProbe`](super::NormalizerProbe) names them: one property each.
/// Their map also has the pair `↔ + U+0338`, which begins with a pictograph.
pub(super) const CLUSTER_PROBES: [&str; 4] = [
    "Precompiled.continuing",
    "Precompiled.prepended",
    "Precompiled.pictographs",
    "Precompiled.between",
];

/// The first of [`CLUSTER_PROBES`] that are needed if pictographs are not joined.
pub(super) const WITHOUT_JOINERS: usize = 2;

/// Returns the characters of a class of the newest version of Unicode.
fn class(pattern: &str) -> CharSet {
    match parse(pattern, PatternDialect::Rust, PatternFlags::default()).map(|one| one.root) {
        Ok(PatternNode::Class(set)) => set,
        _ => CharSet::empty(),
    }
}

/// Returns the characters that have the property of a kind in the newest version of Unicode.
fn newest(kind: usize) -> CharSet {
    class(match kind {
        0 => r"[\p{gcb=Extend}\p{gcb=SpacingMark}\p{gcb=ZWJ}]",
        1 => r"\p{gcb=Prepend}",
        2 => r"\p{Extended_Pictographic}",
        _ => r"\p{gcb=Extend}",
    })
}

/// Returns the characters that may have the property of a kind in some version.
fn candidates(kind: usize) -> Vec<char> {
    static MARKS: SetOnce<Vec<char>> = SetOnce::new();
    let newest = newest(kind);
    let mut list: Vec<char> = newest.ranges().iter().flat_map(|&(a, b)| a..=b).collect();
    if kind == 0 || kind == 3 {
        let marks = || ('\u{300}'..='\u{E01EF}').filter(|&c| is_combining_mark(c)).collect();
        list.extend(MARKS.get_or_init(marks));
        list.sort_unstable();
        list.dedup();
    }
    list
}

/// Returns the text of a kind of probes: a line for each candidate.
pub(super) fn text(kind: usize) -> String {
    let lines = candidates(kind).into_iter().map(|c| match kind {
        0 => format!("a\u{301}{c}{c}"),
        1 => format!("{c}a\u{301}"),
        2 => format!("{c}{JOINER}↔\u{338}"),
        _ => format!("☺{c}{JOINER}↔\u{338}"),
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Returns the answer to a kind of probes of a library with the newest tables.
pub(super) fn newest_answer(kind: usize, text: &str) -> String {
    let newest = newest(kind);
    let at = [2, 0, 0, 1][kind];
    let kept = |line: &str| line.chars().nth(at).is_some_and(|c| newest.contains(c));
    let lines = text.split('\n').map(|line| if kept(line) { line } else { "" });
    lines.collect::<Vec<&str>>().join("\n")
}

/// Reads which lines of each kind of probes the library changed. Returns `None` if there are too many
/// or too few.
pub(super) fn read(changed: &[Vec<bool>]) -> Option<ClusterParts> {
    let mut sets = [const { None }; CLUSTER_PROBES.len()];
    for (kind, changed) in changed.iter().enumerate() {
        let candidates = candidates(kind);
        if candidates.len() != changed.len() {
            return None;
        }
        let kept = candidates.into_iter().zip(changed).filter(|(_, changed)| !**changed);
        *sets.get_mut(kind)? = Some(CharSet::from_ranges(kept.map(|(c, _)| (c, c))));
    }
    let [continuing, prepended, pictographs, between] =
        sets.map(|set| set.unwrap_or_else(CharSet::empty));
    Some(ClusterParts { continuing, prepended, pictographs, between })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answers_read_back_as_the_newest_classes() {
        let changed = |kind: usize| {
            let text = text(kind);
            let answer = newest_answer(kind, &text);
            text.split('\n').zip(answer.split('\n')).map(|(one, other)| one != other).collect()
        };
        let parts = read(&[0, 1, 2, 3].map(changed)).expect("answers to all probes");
        for c in ['\u{301}', '\u{93E}', JOINER, '\u{FF9E}', '\u{1F3FB}', '\u{E33}'] {
            assert!(parts.continuing.contains(c), "{c:?}");
        }
        assert!(!parts.continuing.contains('a') && !parts.between.contains('\u{93E}'));
        assert!(parts.prepended.contains('\u{600}') && parts.pictographs.contains('☺'));
        assert!(read(&[vec![true]]).is_none() && read(&vec![Vec::new(); 5]).is_none());
    }
}
