//! Names of hosts, read label by label.

use std::sync::Arc;

use formalm_automata::{Recognizer, Resemblance};

use super::encoded::Encoded;
use super::letters::{Label, Letters};
use super::places::Places;
use super::punycode::encode;

/// Octets of a label, and of a name without its last dot.
const LABEL: usize = 63;
const NAME: usize = 253;

/// What an encoded label begins with.
pub(super) const MARK: &str = "xn--";

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
struct Name {
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
pub(super) struct Names {
    /// Whether labels of other characters than ASCII may stand as they are.
    is_wide: bool,
    /// The rules of labels in names of either kind.
    letters: [Arc<Letters>; 2],
    encoded: Arc<[Encoded; 2]>,
    places: Places<Name>,
}

/// How far a label is.
#[derive(Clone, Copy, Default)]
struct Progress {
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
    MARK.len() + encode(&text).len()
}

/// Whether a label is encoded or may yet be.
fn may_be_encoded(label: &str) -> bool {
    let (beginning, mark) = (label.as_bytes(), MARK.as_bytes());
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

impl Names {
    pub(super) fn new(letters: &[Arc<Letters>; 2], is_wide: bool) -> Names {
        let encoded = [0, 1].map(|kind: usize| Encoded::new(Arc::clone(&letters[kind])));
        let (letters, encoded) = (letters.clone(), Arc::new(encoded));
        Names { is_wide, letters, encoded, places: Places::default() }
    }

    fn is_dot(&self, c: char) -> bool {
        c == '.' || self.is_wide && matches!(c, '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
    }

    /// How far a label is in a name of a kind, with room for so many octets.
    fn progress(&self, label: &str, kind: usize, room: usize) -> Progress {
        let lower = label.to_ascii_lowercase();
        if let Some(code) = lower.strip_prefix(MARK) {
            let room = room.saturating_sub(MARK.len());
            return Progress {
                goes_on: self.encoded[kind].is_viable(code, room),
                is_complete: self.encoded[kind].is_member(code),
            };
        }
        let ascii = self.ascii(label, kind, room);
        if !self.is_wide {
            return ascii;
        }
        let spelled = self.spelled(label, kind, room);
        Progress {
            goes_on: ascii.goes_on || spelled.goes_on,
            is_complete: ascii.is_complete || spelled.is_complete,
        }
    }

    /// Labels of letters, digits and hyphens; beside labels from right to left, no digit first.
    fn ascii(&self, label: &str, kind: usize, room: usize) -> Progress {
        let begins = |c: char| c.is_ascii_alphabetic() || kind == 0 && c.is_ascii_digit();
        let is_reserved = self.is_wide && label.get(2..4) == Some("--");
        if !label.starts_with(begins)
            || !label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            || is_reserved && !label.to_ascii_lowercase().starts_with(MARK)
        {
            return Progress::default();
        }
        let is_complete = !label.ends_with('-');
        let length = label.len() + usize::from(!is_complete);
        Progress { goes_on: length <= room, is_complete }
    }

    /// Labels of other characters.
    fn spelled(&self, label: &str, kind: usize, room: usize) -> Progress {
        let letters = &self.letters[kind];
        let Some(read) = letters.read(label.chars()) else { return Progress::default() };
        let length = octets(label);
        let has_end = || {
            ENDS.iter().any(|end| {
                let read = end.chars().try_fold(read, |label, c| letters.after(label, c));
                read.is_some_and(Label::is_complete) && octets(&format!("{label}{end}")) <= room
            })
        };
        let goes_on = length <= room && (length + END <= room || has_end());
        Progress { goes_on, is_complete: read.is_complete() }
    }

    fn after(&self, name: &Name, c: char) -> Option<Name> {
        let room = |before: usize| LABEL.min(NAME.saturating_sub(before));
        if self.is_dot(c) {
            let fits = self.complete(name);
            let before = name.before + octets(&name.label) + 1;
            let goes_on = fits != [false; 2] && before < NAME;
            return goes_on.then(|| Name { before, label: String::new(), fits });
        }
        let label = format!("{}{c}", name.label);
        let goes_on =
            |kind: usize| name.fits[kind] && self.progress(&label, kind, room(name.before)).goes_on;
        let fits = [goes_on(0), goes_on(1)];
        let label = if self.is_wide { label } else { alike(label) };
        (fits != [false; 2]).then_some(Name { before: name.before, label, fits })
    }

    /// The kinds of names that may end here.
    fn complete(&self, name: &Name) -> [bool; 2] {
        [0, 1].map(|kind| name.fits[kind] && self.progress(&name.label, kind, LABEL).is_complete)
    }
}

impl Recognizer for Names {
    fn start(&self) -> u32 {
        self.places.intern(Name { fits: [true; 2], ..Name::default() })
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        let next = self.after(&self.places.get(state), character)?;
        Some(self.places.intern(next))
    }

    fn some_within(&self, state: u32, first: char, last: char) -> bool {
        if !self.is_wide {
            return false;
        }
        let name = self.places.get(state);
        let dots = ['\u{3002}', '\u{FF0E}', '\u{FF61}'].into_iter();
        let mut dots = dots.filter(|dot| (first..=last).contains(dot));
        // Characters near those of the label are the shortest, and most often allowed.
        let mut near = name.label.chars().filter(|c| (first..=last).contains(c));
        dots.any(|c| self.after(&name, c).is_some())
            || near.any(|c| self.after(&name, c).is_some())
            || self.letters[1].valid_within(first, last).any(|c| self.after(&name, c).is_some())
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.complete(&self.places.get(state)) != [false; 2]
    }

    fn span(&self, state: u32, character: u8) -> (u8, u8) {
        let label = self.places.get(state).label;
        let is_begun = may_be_encoded(&label);
        let (low, high) = match ALIKE.iter().find(|(_, high)| character <= *high) {
            Some(&span) if !self.is_wide && (!is_begun || label.len() < MARK.len()) => span,
            _ => return (character, character),
        };
        let next = if is_begun { MARK.as_bytes()[label.len()] } else { b'-' };
        match [next, next.to_ascii_uppercase()].into_iter().find(|one| (low..=high).contains(one)) {
            Some(next) if next < character => (next + 1, high),
            Some(next) if next > character => (low, next - 1),
            Some(next) => (next, next),
            None => (low, high),
        }
    }

    fn like(&self, state: u32) -> Option<Resemblance<u32>> {
        let name = self.places.get(state);
        if self.is_wide || name.label.len() >= MARK.len() && may_be_encoded(&name.label) {
            return None;
        }
        // Labels begun behind it have all the room that labels have.
        let read = name.before + name.label.len();
        let most =
            (LABEL - 1).checked_sub(name.label.len())?.min((NAME - LABEL).checked_sub(read)?);
        let label = match name.label.as_str() {
            short if may_be_encoded(short) => short.to_ascii_lowercase(),
            other => if other.ends_with('-') { "a-" } else { "a" }.to_owned(),
        };
        let base = Name { before: 0, label, fits: name.fits };
        let name = format!("{base:?}");
        let (state, most) = (self.places.intern(base), most as u32);
        // A label is complete within its length.
        let far = LABEL as u32;
        Some(Resemblance { state, name, first: 0, anywhere: 0, most, far })
    }

    fn copy(&self) -> Option<Arc<dyn Recognizer>> {
        let (letters, encoded) = (self.letters.clone(), Arc::clone(&self.encoded));
        let (is_wide, places) = (self.is_wide, self.places.clone());
        Some(Arc::new(Names { is_wide, letters, encoded, places }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &Names, start: u32, text: &str) -> Option<u32> {
        text.chars().try_fold(start, |state, c| names.step(state, c))
    }

    #[test]
    fn names_go_on_as_those_that_they_are_like() {
        let letters = super::super::letters().unwrap();
        let names = Names::new(letters, false);
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
                let (low, high) = names.span(state, character);
                assert!((low..=high).contains(&character));
                let after = names.step(state, character.into());
                let same = (low..=high).all(|one| names.step(state, one.into()) == after);
                assert!(same, "{beginning:?} {low} {high}");
            }
            let Some(like) = names.like(state) else { continue };
            assert_eq!((like.first, like.anywhere), (0, 0));
            let fits = |text: &str| text.len() <= like.most as usize;
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
