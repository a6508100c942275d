//! Hosts of URLs: labels of ASCII, and encoded ones (`xn--`) as UTS #46 has them.
//!
//! The URL standard decodes every label that begins with `xn--` and refuses the host if the label
//! is not what encoding its characters writes. It asks for CheckBidi and CheckJoiners, and for
//! neither hyphens, the lengths of DNS, nor the rules for single characters of IDNA 2008. The `url`
//! crate, which Pydantic reads with, has limits of its own for such labels.
//!
//! Any beginning of an encoded label is viable as long as it may still be the ASCII part: `xn--ab`
//! goes on to `xn--ab-vja`, which stands for `abü`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use formalm_automata::Error;

use super::ACE_PREFIX;
use super::punycode::{PunycodeDecoder, encode};
use super::u_labels::{Standard, ULabelState, ULabels};

/// Characters after `xn--` of an encoded label, as the `idna` crate has it.
const MAX_CODE: usize = 2000;

/// Characters that an encoded label stands for, as the `idna` crate has it.
const MAX_DECODED: usize = 1000;

/// Characters after `xn--` that may all be the ASCII part of a label: one more stands at either end
/// of it.
const MAX_ASCII: usize = MAX_DECODED - 2;

/// Characters that are tried at the end of a longer label; DNS has labels of 63.
const MAX_TRIES: usize = 500;

/// A host that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::formats) struct Domain {
    /// Whether the labels so far may stand in a host without labels from right to left, and in one
    /// with such.
    fits: [bool; 2],
    label: Part,
}

/// The label under way, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// So many characters of `xn--`.
    Begun(usize),
    /// Characters of ASCII, and whether a letter or digit is last.
    Plain { may_end: bool },
    /// What follows `xn--`.
    Encoded(String),
    /// An encoded label that goes on with whatever it may have.
    AnyEncoded,
}

/// Reads the hosts of URLs.
#[derive(Debug)]
pub(in crate::formats) struct Domains {
    letters: [Arc<ULabels>; 2],
    /// Whether a search took more than its limit.
    gave_up: AtomicBool,
}

impl Domain {
    /// Before the first character.
    pub(in crate::formats) fn start() -> Domain {
        Domain { fits: [true; 2], label: Part::Begun(0) }
    }

    /// A host that goes on as this one with any characters of labels, where this is within an
    /// encoded label, and with how many.
    pub(in crate::formats) fn within_encoded(&self) -> Option<(Domain, usize)> {
        let Part::Encoded(code) = &self.label else { return None };
        let domain = Domain { fits: self.fits, label: Part::AnyEncoded };
        Some((domain, MAX_ASCII.saturating_sub(code.len())))
    }

    /// Whether what comes next is read by itself, and not with all that came before.
    pub(in crate::formats) fn is_free(&self) -> bool {
        !matches!(self.label, Part::Encoded(_) | Part::AnyEncoded)
    }
}

impl Domains {
    pub(in crate::formats) fn new() -> Result<Domains, Error> {
        let letters = super::letters(Standard::Uts46)?.clone();
        Ok(Domains { letters, gave_up: AtomicBool::default() })
    }

    /// Whether a character of ASCII occurs in labels.
    pub(in crate::formats) fn has_letter(&self, c: char) -> bool {
        self.letters[0].valid.contains(c)
    }

    /// The host after one more character; `None` if none begins so.
    pub(in crate::formats) fn after(&self, domain: &Domain, c: char) -> Option<Domain> {
        if c == '.' {
            let fits = self.complete(domain);
            return (fits != [false; 2]).then_some(Domain { fits, label: Part::Begun(0) });
        }
        if !c.is_ascii() || !self.has_letter(c) {
            return None;
        }
        let mut fits = domain.fits;
        let label = match &domain.label {
            Part::Begun(read) if ACE_PREFIX[*read..].starts_with(c) => match read + 1 {
                all if all == ACE_PREFIX.len() => Part::Encoded(String::new()),
                read => Part::Begun(read),
            },
            Part::Begun(0) => {
                // A label beside one from right to left begins with a letter.
                fits[1] &= c.is_ascii_lowercase();
                Part::Plain { may_end: c.is_ascii_alphanumeric() }
            }
            Part::Begun(_) | Part::Plain { .. } => {
                Part::Plain { may_end: c.is_ascii_alphanumeric() }
            }
            Part::Encoded(code) => {
                let code = format!("{code}{c}");
                let is_viable = |kind| {
                    if domain.fits[kind] { self.is_viable(&code, kind) } else { Some(false) }
                };
                let viable = [0, 1].map(is_viable);
                if !viable.contains(&Some(true)) && viable.contains(&None) {
                    self.gave_up.store(true, Ordering::Relaxed);
                }
                fits = viable.map(|viable| viable != Some(false));
                Part::Encoded(code)
            }
            Part::AnyEncoded => Part::AnyEncoded,
        };
        (fits != [false; 2]).then_some(Domain { fits, label })
    }

    /// Whether a host may end here.
    pub(in crate::formats) fn is_complete(&self, domain: &Domain) -> bool {
        self.complete(domain) != [false; 2]
    }

    /// Characters at least that a host misses to be complete: exact up to two.
    pub(in crate::formats) fn missing(&self, domain: &Domain) -> u32 {
        let Part::Encoded(code) = &domain.label else {
            return u32::from(!self.is_complete(domain));
        };
        if self.is_complete(domain) {
            return 0;
        }
        let kinds = || [0, 1].into_iter().filter(|&kind| domain.fits[kind]);
        let ends = |code: &str, count: usize| kinds().any(|kind| self.ends(code, kind, count));
        match () {
            () if code.len() > MAX_ASCII || ends(code, 1) => 1,
            // A hyphen more makes all before it the ASCII part.
            () if ends(code, 2) || ends(&format!("{code}-"), 1) => 2,
            () => 3,
        }
    }

    /// Whether a search was given up since this was last asked.
    pub(in crate::formats) fn gave_up(&self) -> bool {
        self.gave_up.swap(false, Ordering::Relaxed)
    }

    /// The kinds of hosts that may end here.
    fn complete(&self, domain: &Domain) -> [bool; 2] {
        let fits = |kind: usize| match &domain.label {
            Part::Begun(read) => kind == 0 || *read < 3,
            Part::Plain { may_end } => kind == 0 || *may_end,
            Part::Encoded(code) => self.is_label(code, kind),
            Part::AnyEncoded => false,
        };
        [0, 1].map(|kind| domain.fits[kind] && fits(kind))
    }

    fn is_decoded(&self, text: &[char], kind: usize) -> bool {
        text.len() <= MAX_DECODED
            && self.letters[kind].read(text.iter().copied()).is_some_and(ULabelState::is_complete)
    }

    /// Whether what follows the mark stands for a label.
    fn is_label(&self, code: &str, kind: usize) -> bool {
        code.len() <= MAX_CODE
            && decoder(code)
                .is_some_and(|decoder| decoder.is_between() && self.is_decoded(&decoder.text, kind))
    }

    /// Whether some label begins so; `None` if that takes more than a limit.
    fn is_viable(&self, code: &str, kind: usize) -> Option<bool> {
        if code.len() <= MAX_ASCII || code.len() < MAX_DECODED && self.is_viable_ascii(code, kind) {
            return Some(true);
        }
        match (MAX_CODE.checked_sub(code.len()), self.decoder(code, kind)) {
            (Some(room), Some(decoder)) => self.goes_on(&decoder, kind, room),
            _ => Some(false),
        }
    }

    /// Whether at most so many digits more end a label.
    fn goes_on(&self, decoder: &PunycodeDecoder, kind: usize, room: usize) -> Option<bool> {
        if decoder.is_between() && self.is_decoded(&decoder.text, kind) {
            return Some(true);
        }
        let left = MAX_DECODED - decoder.text.len();
        if left == 0 || room == 0 {
            return Some(false);
        }
        let valid = &self.letters[kind].valid;
        let mut rest = 0;
        for _ in 0..MAX_TRIES {
            let completed = decoder.completed(rest).filter(|&(.., digits)| digits <= room);
            let above = |code| valid.ranges().partition_point(|&(_, last)| u32::from(last) < code);
            let next = completed.and_then(|(code, ..)| valid.ranges().get(above(code)));
            let (Some((code, place, _)), Some(&(first, _))) = (completed, next) else {
                // One character more does not end it; two may.
                return if left == 1 { Some(false) } else { None };
            };
            if u32::from(first) > code {
                rest = decoder.reaching(first);
                continue;
            }
            let mut text = decoder.text.clone();
            text.insert(place, char::from_u32(code).unwrap_or(first));
            if self.is_decoded(&text, kind) {
                return Some(true);
            }
            rest += 1;
        }
        None
    }

    /// Whether a text is the ASCII part of a label with one character more at either end.
    fn is_viable_ascii(&self, code: &str, kind: usize) -> bool {
        let front: Vec<char> = ['ü'].into_iter().chain(code.chars()).collect();
        let back: Vec<char> = code.chars().chain(['ü']).collect();
        [front, back]
            .iter()
            .any(|text| self.is_decoded(text, kind) && encode(text).len() <= MAX_CODE)
    }

    /// What the digits after the last hyphen stand for; `None` if no label begins so.
    fn decoder(&self, code: &str, kind: usize) -> Option<PunycodeDecoder> {
        let (basic, digits) = parts(code)?;
        let mut decoder = PunycodeDecoder::new(basic);
        let read = digits.chars().all(|digit| self.read(&mut decoder, digit, kind));
        read.then_some(decoder)
    }

    /// Reads a digit; whether that can be: a character that no label has stays in it.
    fn read(&self, decoder: &mut PunycodeDecoder, digit: char, kind: usize) -> bool {
        let read = match decoder.read(digit) {
            None => false,
            Some(Some(character)) => self.letters[kind].valid.contains(character),
            Some(None) => true,
        };
        read && decoder.text.len() + usize::from(!decoder.is_between()) <= MAX_DECODED
    }

    /// Whether so many digits more, or fewer, make the text a label.
    fn ends(&self, code: &str, kind: usize, digits: usize) -> bool {
        let decoder = self.decoder(code, kind);
        decoder.is_some_and(|decoder| self.search(&decoder, kind, digits))
    }

    /// Whether so many digits more, or fewer, make it a label, by trying all.
    fn search(&self, decoder: &PunycodeDecoder, kind: usize, room: usize) -> bool {
        if decoder.is_between()
            && decoder.text.iter().any(|c| !c.is_ascii())
            && self.is_decoded(&decoder.text, kind)
        {
            return true;
        }
        room > 0
            && ('a'..='z').chain('0'..='9').any(|digit| {
                let mut next = decoder.clone();
                self.read(&mut next, digit, kind) && self.search(&next, kind, room - 1)
            })
    }
}

/// The ASCII part and the digits of an encoded label.
fn parts(code: &str) -> Option<(&str, &str)> {
    match code.rsplit_once('-') {
        // A hyphen stands after a part that is not empty.
        Some(("", _)) => None,
        Some(parts) => Some(parts),
        None => Some(("", code)),
    }
}

/// What a whole code stands for.
fn decoder(code: &str) -> Option<PunycodeDecoder> {
    let (basic, digits) = parts(code).filter(|(_, digits)| !digits.is_empty())?;
    let mut decoder = PunycodeDecoder::new(basic);
    digits.chars().all(|digit| decoder.read(digit).is_some()).then_some(decoder)
}
