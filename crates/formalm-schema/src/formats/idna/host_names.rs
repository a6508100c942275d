//! Names of hosts, read label by label.

use std::sync::Arc;

use formalm_automata::{CharRecognizer, RepresentativeState};

use super::a_labels::ALabels;
use super::punycode::encode;
use super::state_interner::StateInterner;
use super::u_labels::{ULabelState, ULabels};

/// Octets of a label, and of a name without its last dot.
const MAX_LABEL_OCTETS: usize = 63;
const MAX_NAME_OCTETS: usize = 253;

/// What an encoded label begins with.
pub(super) const ACE_PREFIX: &str = "xn--";

/// ASCII characters that labels take alike, but for those of the mark.
const ALIKE: [(u8, u8); 10] = [
    (0, b','),
    (b'-', b'-'),
    (b'.', b'.'),
    (b'/', b'/'),
    (b'0', b'9'),
    (b':', b'@'),
    (b'A', b'Z'),
    (b'[', b'`'),
    (b'a', b'z'),
    (b'{', 0x7F),
];

/// What ends every label that letters are still missing from: a letter after a hyphen, one beyond
/// ASCII, and those that other characters need.
const ENDS: [&str; 11] = ["", "a", "ü", "l", "lア", "α", "αア", "ア", "ᠠ", "ب", "א"];

/// Octets that any of them may take.
const END: usize = 16;

/// A name that is being read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct HostNameState {
    /// Octets of the labels before, dots included.
    before: usize,
    /// The label under way.
    label: String,
    /// Whether the labels so far may stand in a name without labels from right to left, and in
    /// one with such.
    fits: [bool; 2],
}

/// Reads the names of hosts.
#[derive(Debug)]
pub(super) struct HostNames {
    /// Whether labels of other characters than ASCII may stand as they are.
    is_wide: bool,
    /// The rules of labels in names of either kind.
    letters: [Arc<ULabels>; 2],
    encoded: Arc<[ALabels; 2]>,
    places: StateInterner<HostNameState>,
}

/// How far a label is.
#[derive(Clone, Copy, Default)]
struct LabelProgress {
    /// Some label begins so.
    goes_on: bool,
    /// This is a label.
    is_complete: bool,
}

/// Octets of a label as it is sent.
fn octets(label: &str) -> usize {
    if label.is_ascii() {
        return label.len();
    }
    let text: Vec<char> = label.chars().collect();
    ACE_PREFIX.len() + encode(&text).len()
}

/// Octets that the label behind so many may have.
fn room(before: usize) -> usize {
    MAX_LABEL_OCTETS.min(MAX_NAME_OCTETS.saturating_sub(before))
}

/// Whether a name that ends within `most` characters may have at least so many: labels of a letter
/// can be added.
fn may_be_longer(name: &HostNameState, least: u32, most: u32) -> Option<bool> {
    let octets = name.before + MAX_LABEL_OCTETS + least as usize + 2;
    (most > least && octets <= MAX_NAME_OCTETS).then_some(true)
}

/// Whether a label is encoded or may yet be.
fn may_be_encoded(label: &str) -> bool {
    let (beginning, mark) = (label.as_bytes(), ACE_PREFIX.as_bytes());
    let shared = beginning.len().min(mark.len());
    beginning[..shared].eq_ignore_ascii_case(&mark[..shared])
}

/// A label of ASCII that fits, as any that goes on alike: what matters is its length, whether a
/// hyphen is last, and the text of one that is encoded or may yet be.
fn alike(label: String) -> String {
    if may_be_encoded(&label) {
        return label;
    }
    let last = if label.ends_with('-') { "-" } else { "a" };
    format!("{}{last}", "a".repeat(label.len() - 1))
}

impl HostNames {
    pub(super) fn new(letters: &[Arc<ULabels>; 2], is_wide: bool) -> HostNames {
        let encoded = [0, 1].map(|kind: usize| ALabels::new(Arc::clone(&letters[kind])));
        let (letters, encoded) = (letters.clone(), Arc::new(encoded));
        HostNames { is_wide, letters, encoded, places: StateInterner::default() }
    }

    fn is_dot(&self, c: char) -> bool {
        c == '.' || self.is_wide && matches!(c, '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
    }

    /// How far a label is in a name of a kind, with room for so many octets.
    fn progress(&self, label: &str, kind: usize, room: usize) -> LabelProgress {
        let lower = label.to_ascii_lowercase();
        if let Some(code) = lower.strip_prefix(ACE_PREFIX) {
            let room = room.saturating_sub(ACE_PREFIX.len());
            return LabelProgress {
                goes_on: self.encoded[kind].is_viable(code, room),
                is_complete: self.encoded[kind].is_member(code),
            };
        }
        let ascii = self.ascii(label, kind, room);
        if !self.is_wide {
            return ascii;
        }
        let spelled = self.spelled(label, kind, room);
        LabelProgress {
            goes_on: ascii.goes_on || spelled.goes_on,
            is_complete: ascii.is_complete || spelled.is_complete,
        }
    }

    /// Labels of letters, digits and hyphens; beside labels from right to left, no digit first.
    fn ascii(&self, label: &str, kind: usize, room: usize) -> LabelProgress {
        let begins = |c: char| c.is_ascii_alphabetic() || kind == 0 && c.is_ascii_digit();
        let is_reserved = self.is_wide && label.get(2..4) == Some("--");
        if !label.starts_with(begins)
            || !label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            || is_reserved && !label.to_ascii_lowercase().starts_with(ACE_PREFIX)
        {
            return LabelProgress::default();
        }
        let is_complete = !label.ends_with('-');
        let length = label.len() + usize::from(!is_complete);
        LabelProgress { goes_on: length <= room, is_complete }
    }

    /// Labels of other characters.
    fn spelled(&self, label: &str, kind: usize, room: usize) -> LabelProgress {
        let letters = &self.letters[kind];
        let Some(read) = letters.read(label.chars()) else { return LabelProgress::default() };
        let length = octets(label);
        let has_end = || self.has_end(label, kind, room, u32::MAX);
        let goes_on = length <= room && (length + END <= room || has_end());
        LabelProgress { goes_on, is_complete: read.is_complete() }
    }

    /// Whether a label of other characters ends with so many more.
    fn has_end(&self, label: &str, kind: usize, room: usize, characters: u32) -> bool {
        let letters = &self.letters[kind];
        let Some(read) = letters.read(label.chars()) else { return false };
        ENDS.iter().filter(|end| end.chars().count() <= characters as usize).any(|end| {
            let read = end.chars().try_fold(read, |label, c| letters.after(label, c));
            read.is_some_and(ULabelState::is_complete) && octets(&format!("{label}{end}")) <= room
        })
    }

    /// Whether a label that is begun ends with so many characters more.
    fn ends_within(&self, label: &str, kind: usize, room: usize, characters: u32) -> bool {
        let room_here = room.min(label.len() + characters as usize);
        let progress = self.progress(label, kind, if label.is_ascii() { room_here } else { room });
        progress.is_complete
            || label.is_ascii() && progress.goes_on
            || self.is_wide && self.has_end(label, kind, room, characters)
    }

    fn after(&self, name: &HostNameState, c: char) -> Option<HostNameState> {
        if self.is_dot(c) {
            let fits = self.complete(name);
            let before = name.before + octets(&name.label) + 1;
            let goes_on = fits != [false; 2] && before < MAX_NAME_OCTETS;
            return goes_on.then(|| HostNameState { before, label: String::new(), fits });
        }
        let label = format!("{}{c}", name.label);
        let goes_on =
            |kind: usize| name.fits[kind] && self.progress(&label, kind, room(name.before)).goes_on;
        let fits = [goes_on(0), goes_on(1)];
        let label = if self.is_wide { label } else { alike(label) };
        (fits != [false; 2]).then_some(HostNameState { before: name.before, label, fits })
    }

    /// The kinds of names that may end here.
    fn complete(&self, name: &HostNameState) -> [bool; 2] {
        [0, 1].map(|kind| {
            name.fits[kind] && self.progress(&name.label, kind, MAX_LABEL_OCTETS).is_complete
        })
    }
}

impl CharRecognizer for HostNames {
    fn start(&self) -> u32 {
        self.places.intern(HostNameState { fits: [true; 2], ..HostNameState::default() })
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        let next = self.after(&self.places.get(state), character)?;
        Some(self.places.intern(next))
    }

    fn accepts_some_in_range(&self, state: u32, first: char, last: char) -> bool {
        if !self.is_wide {
            return false;
        }
        let name = self.places.get(state);
        let is_encoded = name.label.len() >= ACE_PREFIX.len() && may_be_encoded(&name.label);
        let dots = ['\u{3002}', '\u{FF0E}', '\u{FF61}'].into_iter();
        let mut dots = dots.filter(|dot| (first..=last).contains(dot));
        // Characters near those of the label are the shortest, and most often allowed.
        let mut near = name.label.chars().filter(|c| (first..=last).contains(c));
        dots.any(|c| self.after(&name, c).is_some())
            // Encoded labels have ASCII characters alone.
            || !is_encoded && near.any(|c| self.after(&name, c).is_some())
            || !is_encoded
                && self.letters[1].valid_within(first, last).any(|c| self.after(&name, c).is_some())
    }

    fn search_min_chars(&self, state: u32) -> u32 {
        let name = self.places.get(state);
        if self.complete(&name) != [false; 2] {
            return 0;
        }
        let label = name.label.to_ascii_lowercase();
        let Some(code) = label.strip_prefix(ACE_PREFIX) else { return 1 };
        let kinds = (0..2).filter(|&kind| name.fits[kind]);
        kinds.map(|kind| self.encoded[kind].missing(code)).min().unwrap_or(1)
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.complete(&self.places.get(state)) != [false; 2]
    }

    fn ascii_span(&self, state: u32, character: u8) -> (u8, u8) {
        let label = self.places.get(state).label;
        let is_begun = may_be_encoded(&label);
        let (low, high) = match ALIKE.iter().find(|(_, high)| character <= *high) {
            Some(&span) if !self.is_wide && (!is_begun || label.len() < ACE_PREFIX.len()) => span,
            _ => return (character, character),
        };
        let next = if is_begun { ACE_PREFIX.as_bytes()[label.len()] } else { b'-' };
        match [next, next.to_ascii_uppercase()].into_iter().find(|one| (low..=high).contains(one)) {
            Some(next) if next < character => (next + 1, high),
            Some(next) if next > character => (low, next - 1),
            Some(next) => (next, next),
            None => (low, high),
        }
    }

    fn has_member_of_length(&self, state: u32, least: u32, most: u32) -> Option<bool> {
        let name = self.places.get(state);
        let ends = match name.label.as_str() {
            "" => most > 0,
            label => [0, 1].iter().any(|&kind| {
                name.fits[kind] && self.ends_within(label, kind, room(name.before), most)
            }),
        };
        match ends {
            true if least > 0 => may_be_longer(&name, least, most),
            ends => Some(ends),
        }
    }

    fn has_member_after_non_ascii(&self, state: u32, least: u32, most: u32) -> Option<bool> {
        let far = ENDS.iter().map(|end| end.chars().count()).max()? as u32;
        match most >= far {
            true if least > 0 => may_be_longer(&self.places.get(state), least, most),
            true => Some(true),
            false => None,
        }
    }

    fn representative(&self, state: u32) -> Option<RepresentativeState<u32>> {
        let name = self.places.get(state);
        if self.is_wide || name.label.len() >= ACE_PREFIX.len() && may_be_encoded(&name.label) {
            return None;
        }
        // Labels begun behind it have all the room that labels have.
        let read = name.before + name.label.len();
        let most = (MAX_LABEL_OCTETS - 1)
            .checked_sub(name.label.len())?
            .min((MAX_NAME_OCTETS - MAX_LABEL_OCTETS).checked_sub(read)?);
        let label = match name.label.as_str() {
            short if may_be_encoded(short) => short.to_ascii_lowercase(),
            other => if other.ends_with('-') { "a-" } else { "a" }.to_owned(),
        };
        let base = HostNameState { before: 0, label, fits: name.fits };
        let name = format!("{base:?}");
        let (state, most) = (self.places.intern(base), most as u32);
        // A label is complete within its length.
        let far = MAX_LABEL_OCTETS as u32;
        Some(RepresentativeState {
            state,
            name,
            excluded_first: 0,
            excluded_anywhere: 0,
            max_chars: most,
            max_completion_chars: far,
        })
    }

    fn losses(&self) -> u32 {
        self.places.losses()
    }

    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        let (letters, encoded) = (self.letters.clone(), Arc::clone(&self.encoded));
        let (is_wide, places) = (self.is_wide, self.places.clone());
        Some(Arc::new(HostNames { is_wide, letters, encoded, places }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &HostNames, start: u32, text: &str) -> Option<u32> {
        text.chars().try_fold(start, |state, c| names.step(state, c))
    }

    /// Whether a member has so many characters more, by trying all that labels may have.
    fn goes_on(names: &HostNames, state: u32, least: u32, most: u32) -> bool {
        let valid = || names.letters[1].valid_within('-', char::MAX).chain('-'..='z');
        let after = |c: char| names.step(state, c);
        least == 0 && names.is_accepting(state)
            || most > 0
                && valid()
                    .filter_map(after)
                    .any(|next| goes_on(names, next, least.saturating_sub(1), most - 1))
    }

    #[test]
    fn how_far_members_are_is_what_trying_finds() {
        let letters = super::super::letters(super::super::Standard::Idna2008).unwrap();
        let names = HostNames::new(letters, true);
        let short =
            ["", "a-", "é", "l·", "α͵", "ア・", "・", "a.l·", "ב-", "xn--td", "xn--", "é.-"];
        let long = |label: &str| format!("{}{label}", "a".repeat(62 - label.len()));
        let long = [long("-"), long(""), format!("{}l·", "a".repeat(53))];
        let mut told = [0; 3];
        for beginning in short.into_iter().map(str::to_owned).chain(long) {
            let Some(state) = read(&names, names.start(), &beginning) else { continue };
            for (least, most) in [(0, 0), (0, 1), (1, 1)] {
                let found = names.has_member_of_length(state, least, most);
                let tried = goes_on(&names, state, least, most);
                assert!(found.is_none_or(|found| found == tried), "{beginning:?}");
                assert!(found.is_some() || least > 0);
                told[found.map_or(2, usize::from)] += 1;
            }
        }
        assert!(told.iter().all(|&count| count > 5), "{told:?}");
        let reads = |text: &str, lengths: [(u32, u32); 2]| {
            let state = read(&names, names.start(), text).unwrap();
            lengths.map(|(least, most)| names.has_member_of_length(state, least, most))
        };
        // Encoded labels end behind a search for their ends.
        assert_eq!(reads("xn--", [(0, 2), (0, 3)]), [Some(false), Some(true)]);
        assert_eq!(reads("l·", [(0, 1), (0, 2)]), [Some(true); 2]);
        assert_eq!(reads("a-", [(100, 101), (187, 188)]), [Some(true), Some(true)]);
        assert_eq!(reads("a-", [(100, 100), (240, 260)]), [None; 2]);
    }

    #[test]
    fn names_go_on_as_those_that_they_are_like() {
        let letters = super::super::letters(super::super::Standard::Idna2008).unwrap();
        let names = HostNames::new(letters, false);
        let long = |count: usize| format!("{}.", "a".repeat(61)).repeat(count);
        let beginnings =
            ["", "a", "9", "a-", "X", "xn", "xN-", "a.xn", "abc-d.", "b.9-", "-", "x."];
        let beginnings = beginnings.map(str::to_owned).into_iter();
        let more = [long(2) + "ab", long(3), "a".repeat(50), "a".repeat(58) + "-"];
        let pieces = ["a", "b9", "-", ".", "x", "n", "xn--", "tda", "_", "é"];
        let mut told = 0;
        for beginning in beginnings.chain(more) {
            let Some(state) = read(&names, names.start(), &beginning) else { continue };
            for character in 0..0x80_u8 {
                let (low, high) = names.ascii_span(state, character);
                assert!((low..=high).contains(&character));
                let after = names.step(state, character.into());
                let same = (low..=high).all(|one| names.step(state, one.into()) == after);
                assert!(same, "{beginning:?} {low} {high}");
            }
            let Some(like) = names.representative(state) else { continue };
            assert_eq!((like.excluded_first, like.excluded_anywhere), (0, 0));
            let fits = |text: &str| text.len() <= like.max_chars as usize;
            let check = |text: &str| {
                let goes = |from: u32| read(&names, from, text).is_some();
                assert_eq!(goes(state), goes(like.state), "{beginning:?} {text:?}");
            };
            for one in pieces {
                for other in pieces {
                    for last in pieces {
                        let text = [one, other, last].concat();
                        if fits(&text) {
                            check(&text);
                            told += 1;
                        }
                    }
                }
            }
            let longer = (0..70).map(|count| "a".repeat(count));
            let longer = longer.flat_map(|text| [format!("{text}-"), text]);
            longer.filter(|text| fits(text)).for_each(|text| check(&text));
        }
        assert!(told > 10_000, "{told}");
    }
}
