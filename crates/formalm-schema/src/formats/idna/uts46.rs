//! Hosts of URLs: ASCII labels, and encoded ones (`xn--`) under UTS #46.
//!
//! The URL standard decodes every label that starts with `xn--`. It rejects the host unless
//! encoding the result gives the label back. It requires CheckBidi and CheckJoiners, but neither
//! checks hyphens, DNS lengths, nor the contextual rules of IDNA 2008. The `idna` crate, which
//! Pydantic uses through `url`, has limits of its own for such labels.
//!
//! ```text
//!  xn--ab ──► may still be the ASCII part ──► xn--ab-vja, which decodes to `abü`
//! ```
//!
//! So any prefix short enough to be the ASCII part is viable. Only longer ones need a search.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use formalm_core::Error;

use super::ACE_PREFIX;
use super::punycode::{PunycodeDecoder, encode};
use super::u_labels::{Standard, ULabelState, ULabels};

/// Maximum number of characters after `xn--`, the limit of the `idna` crate.
const MAX_CODE_CHARS: usize = 2000;

/// Maximum number of characters of a decoded label, the limit of the `idna` crate.
const MAX_DECODED_CHARS: usize = 1000;

/// Maximum number of characters after `xn--` that can always be the ASCII part of a label: a label
/// may need one more character at either end.
const MAX_BASIC_CHARS: usize = MAX_DECODED_CHARS - 2;

/// Maximum number of characters tried at the end of a longer label. DNS labels have at most 63, so
/// such labels are rare. Chosen, not measured.
const MAX_TRIES: usize = 500;

/// The state of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::formats) struct Domain {
    /// `true` if the labels so far may occur in a host without a right-to-left label, and in one
    /// with such a label.
    kinds: [bool; 2],
    label: LabelPart,
}

/// The state of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LabelPart {
    /// A prefix of `xn--`, by length.
    AcePrefix(usize),
    /// ASCII characters, and whether a letter or digit is last.
    Ascii { may_end: bool },
    /// The characters after `xn--`.
    Encoded(String),
    /// An encoded label that can be continued by any characters of labels.
    AnyEncoded,
}

/// The rules of hosts in URLs.
#[derive(Debug)]
pub(in crate::formats) struct Domains {
    label_rules: [Arc<ULabels>; 2],
    /// Set when a search exceeds its limit.
    limit_reached: AtomicBool,
}

impl Domain {
    /// Returns the state before the first character.
    pub(in crate::formats) fn start() -> Domain {
        Domain { kinds: [true; 2], label: LabelPart::AcePrefix(0) }
    }

    /// Returns a state that continues as this one over any characters of labels, and over how many;
    /// `None` outside encoded labels.
    pub(in crate::formats) fn within_encoded(&self) -> Option<(Domain, usize)> {
        let LabelPart::Encoded(code) = &self.label else { return None };
        let domain = Domain { kinds: self.kinds, label: LabelPart::AnyEncoded };
        Some((domain, MAX_BASIC_CHARS.saturating_sub(code.len())))
    }

    /// Returns `true` if the next character is decided by itself, without the label so far.
    pub(in crate::formats) fn is_free(&self) -> bool {
        !matches!(self.label, LabelPart::Encoded(_) | LabelPart::AnyEncoded)
    }
}

impl Domains {
    /// Returns the rules.
    pub(in crate::formats) fn new() -> Result<Domains, Error> {
        let label_rules = super::label_rules(Standard::Uts46)?.clone();
        Ok(Domains { label_rules, limit_reached: AtomicBool::default() })
    }

    /// Returns `true` if an ASCII character occurs in labels.
    pub(in crate::formats) fn has_letter(&self, c: char) -> bool {
        self.label_rules[0].valid.contains(c)
    }

    /// Returns the state after one more character, or `None` if no host continues with it.
    pub(in crate::formats) fn after(&self, domain: &Domain, c: char) -> Option<Domain> {
        if c == '.' {
            let kinds = self.complete(domain);
            return (kinds != [false; 2])
                .then_some(Domain { kinds, label: LabelPart::AcePrefix(0) });
        }
        if !c.is_ascii() || !self.has_letter(c) {
            return None;
        }
        let mut kinds = domain.kinds;
        let label = match &domain.label {
            LabelPart::AcePrefix(read) if ACE_PREFIX[*read..].starts_with(c) => match read + 1 {
                all if all == ACE_PREFIX.len() => LabelPart::Encoded(String::new()),
                read => LabelPart::AcePrefix(read),
            },
            LabelPart::AcePrefix(0) => {
                // In a host with a right-to-left label, each label starts with a letter.
                kinds[1] &= c.is_ascii_lowercase();
                LabelPart::Ascii { may_end: c.is_ascii_alphanumeric() }
            }
            LabelPart::AcePrefix(_) | LabelPart::Ascii { .. } => {
                LabelPart::Ascii { may_end: c.is_ascii_alphanumeric() }
            }
            LabelPart::Encoded(code) => {
                let code = format!("{code}{c}");
                let is_viable = |kind| {
                    if domain.kinds[kind] { self.is_viable(&code, kind) } else { Some(false) }
                };
                let viable = [0, 1].map(is_viable);
                if !viable.contains(&Some(true)) && viable.contains(&None) {
                    self.limit_reached.store(true, Ordering::Relaxed);
                }
                kinds = viable.map(|viable| viable != Some(false));
                LabelPart::Encoded(code)
            }
            LabelPart::AnyEncoded => LabelPart::AnyEncoded,
        };
        (kinds != [false; 2]).then_some(Domain { kinds, label })
    }

    /// Returns `true` if a host may end here.
    pub(in crate::formats) fn is_complete(&self, domain: &Domain) -> bool {
        self.complete(domain) != [false; 2]
    }

    /// Returns a lower bound on the characters that complete a host. It is exact up to two.
    pub(in crate::formats) fn min_missing_chars(&self, domain: &Domain) -> u32 {
        let LabelPart::Encoded(code) = &domain.label else {
            return u32::from(!self.is_complete(domain));
        };
        if self.is_complete(domain) {
            return 0;
        }
        let kinds = || [0, 1].into_iter().filter(|&kind| domain.kinds[kind]);
        let completes_within =
            |code: &str, count: usize| kinds().any(|kind| self.completes_within(code, kind, count));
        match () {
            () if code.len() > MAX_BASIC_CHARS || completes_within(code, 1) => 1,
            // One more hyphen turns everything before it into the ASCII part.
            () if completes_within(code, 2) || completes_within(&format!("{code}-"), 1) => 2,
            () => 3,
        }
    }

    /// Returns and clears the flag that a search exceeded its limit.
    pub(in crate::formats) fn take_limit_reached(&self) -> bool {
        self.limit_reached.swap(false, Ordering::Relaxed)
    }

    /// Returns which kinds of hosts may end here.
    fn complete(&self, domain: &Domain) -> [bool; 2] {
        let may_end = |kind: usize| match &domain.label {
            LabelPart::AcePrefix(read) => kind == 0 || *read < 3,
            LabelPart::Ascii { may_end } => kind == 0 || *may_end,
            LabelPart::Encoded(code) => self.is_label(code, kind),
            LabelPart::AnyEncoded => false,
        };
        [0, 1].map(|kind| domain.kinds[kind] && may_end(kind))
    }

    /// Returns `true` if a decoded string is a valid label.
    fn is_decoded(&self, text: &[char], kind: usize) -> bool {
        text.len() <= MAX_DECODED_CHARS
            && self.label_rules[kind]
                .read(text.iter().copied())
                .is_some_and(ULabelState::is_complete)
    }

    /// Returns `true` if `code`, after the prefix, encodes a valid label.
    fn is_label(&self, code: &str, kind: usize) -> bool {
        code.len() <= MAX_CODE_CHARS
            && decoder(code).is_some_and(|decoder| {
                decoder.is_at_character_boundary() && self.is_decoded(&decoder.text, kind)
            })
    }

    /// Returns whether some code starts with `code`, or `None` if the search exceeds its limit.
    fn is_viable(&self, code: &str, kind: usize) -> Option<bool> {
        if code.len() <= MAX_BASIC_CHARS
            || code.len() < MAX_DECODED_CHARS && self.is_viable_basic_part(code, kind)
        {
            return Some(true);
        }
        match (MAX_CODE_CHARS.checked_sub(code.len()), self.decoder(code, kind)) {
            (Some(room), Some(decoder)) => self.is_viable_code(&decoder, kind, room),
            _ => Some(false),
        }
    }

    /// Returns whether at most `room` more digits complete a label, or `None` if the search exceeds
    /// its limit.
    fn is_viable_code(&self, decoder: &PunycodeDecoder, kind: usize, room: usize) -> Option<bool> {
        if decoder.is_at_character_boundary() && self.is_decoded(&decoder.text, kind) {
            return Some(true);
        }
        let left = MAX_DECODED_CHARS - decoder.text.len();
        if left == 0 || room == 0 {
            return Some(false);
        }
        let valid = &self.label_rules[kind].valid;
        let mut rest = 0;
        for _ in 0..MAX_TRIES {
            let completed = decoder.complete_with(rest).filter(|&(.., digits)| digits <= room);
            let above = |code| valid.ranges().partition_point(|&(_, last)| u32::from(last) < code);
            let next = completed.and_then(|(code, ..)| valid.ranges().get(above(code)));
            let (Some((code, place, _)), Some(&(first, _))) = (completed, next) else {
                // No single further character completes the label, but two may.
                return if left == 1 { Some(false) } else { None };
            };
            if u32::from(first) > code {
                rest = decoder.first_number_reaching(first);
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

    /// Returns `true` if one more character at either end makes `code` the ASCII part of a label.
    fn is_viable_basic_part(&self, code: &str, kind: usize) -> bool {
        let front: Vec<char> = ['ü'].into_iter().chain(code.chars()).collect();
        let back: Vec<char> = code.chars().chain(['ü']).collect();
        [front, back]
            .iter()
            .any(|text| self.is_decoded(text, kind) && encode(text).len() <= MAX_CODE_CHARS)
    }

    /// Returns the decoder after the digits of a code, or `None` if no label starts with it.
    fn decoder(&self, code: &str, kind: usize) -> Option<PunycodeDecoder> {
        let (basic, digits) = split_code(code)?;
        let mut decoder = PunycodeDecoder::new(basic);
        let read = digits.chars().all(|digit| self.read_digit(&mut decoder, digit, kind));
        read.then_some(decoder)
    }

    /// Reads a digit. Returns `false` if no label continues so: an invalid character stays in it.
    fn read_digit(&self, decoder: &mut PunycodeDecoder, digit: char, kind: usize) -> bool {
        let read = match decoder.read(digit) {
            None => false,
            Some(Some(character)) => self.label_rules[kind].valid.contains(character),
            Some(None) => true,
        };
        read && decoder.text.len() + usize::from(!decoder.is_at_character_boundary())
            <= MAX_DECODED_CHARS
    }

    /// Returns `true` if at most `digits` more digits complete the code.
    fn completes_within(&self, code: &str, kind: usize, digits: usize) -> bool {
        let decoder = self.decoder(code, kind);
        decoder.is_some_and(|decoder| self.completes_by_trial(&decoder, kind, digits))
    }

    /// Returns `true` if at most `room` more digits complete a label, by exhaustive search.
    fn completes_by_trial(&self, decoder: &PunycodeDecoder, kind: usize, room: usize) -> bool {
        if decoder.is_at_character_boundary()
            && decoder.text.iter().any(|c| !c.is_ascii())
            && self.is_decoded(&decoder.text, kind)
        {
            return true;
        }
        room > 0
            && ('a'..='z').chain('0'..='9').any(|digit| {
                let mut next = decoder.clone();
                self.read_digit(&mut next, digit, kind)
                    && self.completes_by_trial(&next, kind, room - 1)
            })
    }
}

/// Splits a code into its ASCII part and its digits.
fn split_code(code: &str) -> Option<(&str, &str)> {
    match code.rsplit_once('-') {
        // A hyphen requires a nonempty part before it.
        Some(("", _)) => None,
        Some(split) => Some(split),
        None => Some(("", code)),
    }
}

/// Returns the decoder after a complete code.
fn decoder(code: &str) -> Option<PunycodeDecoder> {
    let (basic, digits) = split_code(code).filter(|(_, digits)| !digits.is_empty())?;
    let mut decoder = PunycodeDecoder::new(basic);
    digits.chars().all(|digit| decoder.read(digit).is_some()).then_some(decoder)
}
