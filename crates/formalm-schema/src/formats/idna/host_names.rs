//! Host names, read label by label: `hostname` and `idn-hostname`.
//!
//! ```text
//!  state = octets before the label, the label itself, which kinds of names still fit
//!
//!  a-b.xn--bcher-kva.example     kind 0: no label is right-to-left
//!      └─ decoded by ALabels     kind 1: some label is, which restricts all labels
//! ```
//!
//! Every state is viable: a label continues only if some ending fits into its octets. Those of
//! ASCII labels are known by length; for others a few endings are tried, which suffice for all
//! contextual rules. An ASCII label is represented by its length and last character, so that
//! `hostname` has few states.
//!
//! Encoded labels have as many states as there are labels; see `host_name_bounds.rs`.

use std::sync::Arc;

use formalm_automata::{
    CharRecognizer, CompletionLengths, ExcludedStrings, GrowingStates, LanguageBound,
    MemberLengths, RecognizerAlphabet, RefusedLengths, RepresentativeLanguage, RepresentativeState,
    SimpleCompletions, StateRepresentatives,
};

use super::a_labels::{ALabels, standard_suffix};
use super::host_name_bounds::{NameLanguage, has_room_for_suffix};
use super::punycode::encode;
use super::state_interner::StateInterner;
use super::u_labels::{ULabelState, ULabels};

/// Maximum octets of a label (RFC 1035).
pub(super) const MAX_LABEL_OCTETS: usize = 63;
/// Maximum octets of a name without its final dot (RFC 1035).
pub(super) const MAX_NAME_OCTETS: usize = 253;

/// The prefix of encoded labels (RFC 5890).
pub(super) const ACE_PREFIX: &str = "xn--";

/// Ranges of ASCII characters that labels do not distinguish, except for those of [`ACE_PREFIX`].
const EQUIVALENT_ASCII: [(u8, u8); 10] = [
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

/// The ASCII characters of names, as bits: letters, digits, hyphens and dots.
pub(super) const ASCII_LETTERS: u128 =
    ((1 << 26) - 1) << b'a' | ((1 << 26) - 1) << b'A' | ((1 << 10) - 1) << b'0' | 0b11 << b'-';

/// The dot, as a bit of an ASCII set.
const DOT: u128 = 1 << b'.';
/// The hyphen, as a bit of an ASCII set.
const HYPHEN: u128 = 1 << b'-';

/// Endings of which one completes every viable label: a letter after a hyphen, a non-ASCII letter,
/// and the characters that contextual rules require.
const LABEL_ENDINGS: [&str; 11] = ["", "a", "ü", "l", "lア", "α", "αア", "ア", "ᠠ", "ب", "א"];

/// Upper bound on the octets that an ending adds.
const MAX_ENDING_OCTETS: usize = 16;

/// The state of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HostNameState {
    /// Octets of the previous labels, dots included.
    pub(super) previous_octets: usize,
    /// The current label.
    pub(super) label: String,
    /// `true` if the labels so far may occur in a name without a right-to-left label, and in one
    /// with such a label.
    pub(super) kinds: [bool; 2],
    pub(super) language: NameLanguage,
}

/// A recognizer of host names.
#[derive(Debug)]
pub(super) struct HostNames {
    /// `true` if non-ASCII labels may be written as they are.
    pub(super) is_internationalized: bool,
    /// The rules of labels in names of each kind.
    pub(super) label_rules: [Arc<ULabels>; 2],
    pub(super) a_labels: Arc<[ALabels; 2]>,
    pub(super) states: StateInterner<HostNameState>,
}

/// The status of a prefix of a label.
#[derive(Clone, Copy, Default)]
pub(super) struct LabelProgress {
    /// Some label starts with it.
    pub(super) is_viable: bool,
    /// It is a label.
    is_complete: bool,
}

/// Returns the octets of a label in its encoded form.
fn octets(label: &str) -> usize {
    if label.is_ascii() {
        return label.len();
    }
    let text: Vec<char> = label.chars().collect();
    ACE_PREFIX.len() + encode(&text).len()
}

/// Returns the maximum octets of the label after `previous_octets` octets.
pub(super) fn max_octets(previous_octets: usize) -> usize {
    MAX_LABEL_OCTETS.min(MAX_NAME_OCTETS.saturating_sub(previous_octets))
}

/// Returns `Some(true)` if a name that can end within `most` more characters can have at least
/// `least` more: labels of one letter can be added.
fn may_be_longer(name: &HostNameState, least: u32, most: u32) -> Option<bool> {
    let octets = name.previous_octets + MAX_LABEL_OCTETS + least as usize + 2;
    (most > least && octets <= MAX_NAME_OCTETS).then_some(true)
}

/// Returns how many characters more than it needs any name of `octets` octets can have. Completed,
/// it grows by a letter or by a label, see [`may_be_longer`].
fn extensible_chars(octets: usize) -> u32 {
    (MAX_NAME_OCTETS - MAX_LABEL_OCTETS - 2).saturating_sub(octets) as u32
}

/// Returns `true` if a label starts with [`ACE_PREFIX`] or may still do so.
pub(super) fn may_be_encoded(label: &str) -> bool {
    let (start, prefix) = (label.as_bytes(), ACE_PREFIX.as_bytes());
    let shared = start.len().min(prefix.len());
    start[..shared].eq_ignore_ascii_case(&prefix[..shared])
}

/// Returns the representative of an ASCII label. Only its length matters, whether a hyphen is last,
/// and the label itself if it is encoded or may still be.
pub(super) fn representative_label(label: String) -> String {
    match label.chars().next_back() {
        Some(last) if !may_be_encoded(&label) => plain_representative(label.len(), last),
        _ => label,
    }
}

/// Returns the representative of labels of `length` characters that are not encoded.
pub(super) fn plain_representative(length: usize, last: char) -> String {
    let last = if last == '-' { "-" } else { "a" };
    format!("{}{last}", "a".repeat(length - 1))
}

/// Returns `true` if a label starts with [`ACE_PREFIX`].
pub(super) fn is_encoded(label: &str) -> bool {
    label.len() >= ACE_PREFIX.len() && may_be_encoded(label)
}

/// Returns `true` if a character occurs in ASCII labels.
pub(super) fn is_label_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

impl HostNameState {
    /// Returns the lengths above which no string is read: a dot must end the label in time.
    fn refused_lengths(&self) -> RefusedLengths {
        let room = max_octets(self.previous_octets).saturating_sub(self.label.len());
        RefusedLengths {
            of_characters: (ASCII_LETTERS & !DOT, room as u32),
            ..RefusedLengths::default()
        }
    }
}

impl HostNames {
    /// Returns the recognizer with the rules of labels in both kinds of names.
    pub(super) fn new(label_rules: &[Arc<ULabels>; 2], is_internationalized: bool) -> HostNames {
        let a_labels = [0, 1].map(|kind: usize| ALabels::new(Arc::clone(&label_rules[kind])));
        let (label_rules, a_labels) = (label_rules.clone(), Arc::new(a_labels));
        HostNames { is_internationalized, label_rules, a_labels, states: StateInterner::default() }
    }

    /// Returns `true` if a character occurs in labels.
    pub(super) fn has_letter(&self, c: char) -> bool {
        self.label_rules.iter().any(|rules| rules.valid.contains(c))
    }

    pub(super) fn is_dot(&self, c: char) -> bool {
        c == '.' || self.is_internationalized && matches!(c, '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
    }

    /// Returns `true` if some label of at most `max_octets` octets starts with `label`, in a name of
    /// one kind.
    fn is_viable_label(&self, label: &str, kind: usize, max_octets: usize) -> bool {
        let lower = label.to_ascii_lowercase();
        if let Some(code) = lower.strip_prefix(ACE_PREFIX) {
            let max_octets = max_octets.saturating_sub(ACE_PREFIX.len());
            return self.a_labels[kind].is_viable(code, max_octets);
        }
        self.ascii_label(label, kind, max_octets).is_viable
            || self.is_internationalized && self.is_viable_unicode_label(label, kind, max_octets)
    }

    /// Returns `true` if a label is complete, in a name of one kind.
    fn is_complete_label(&self, label: &str, kind: usize) -> bool {
        let lower = label.to_ascii_lowercase();
        if let Some(code) = lower.strip_prefix(ACE_PREFIX) {
            return self.a_labels[kind].is_member(code);
        }
        let is_unicode_label = || {
            let read = self.label_rules[kind].read(label.chars());
            read.is_some_and(ULabelState::is_complete)
        };
        self.ascii_label(label, kind, MAX_LABEL_OCTETS).is_complete
            || self.is_internationalized && is_unicode_label()
    }

    /// Returns the status of a label of letters, digits and hyphens. In a name with a right-to-left
    /// label it starts with no digit.
    pub(super) fn ascii_label(&self, label: &str, kind: usize, max_octets: usize) -> LabelProgress {
        let begins = |c: char| c.is_ascii_alphabetic() || kind == 0 && c.is_ascii_digit();
        let has_reserved_hyphens = self.is_internationalized && label.get(2..4) == Some("--");
        if !label.starts_with(begins)
            || !label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            || has_reserved_hyphens && !label.to_ascii_lowercase().starts_with(ACE_PREFIX)
        {
            return LabelProgress::default();
        }
        let is_complete = !label.ends_with('-');
        let length = label.len() + usize::from(!is_complete);
        LabelProgress { is_viable: length <= max_octets, is_complete }
    }

    /// Returns `true` if some label of at most `max_octets` octets with non-ASCII characters starts
    /// with `label`.
    fn is_viable_unicode_label(&self, label: &str, kind: usize, max_octets: usize) -> bool {
        if self.label_rules[kind].read(label.chars()).is_none() {
            return false;
        }
        let length = octets(label);
        length <= max_octets
            && (length + MAX_ENDING_OCTETS <= max_octets
                || self.ending(label, kind, max_octets, u32::MAX).is_some())
    }

    /// Returns at most `characters` characters that complete a label with non-ASCII ones, and the
    /// octets of the whole label.
    pub(super) fn ending(
        &self,
        label: &str,
        kind: usize,
        max_octets: usize,
        characters: u32,
    ) -> Option<(&'static str, usize)> {
        let label_rules = &self.label_rules[kind];
        let read = label_rules.read(label.chars())?;
        let fits = |end: &&str| end.chars().count() <= characters as usize;
        LABEL_ENDINGS.into_iter().filter(fits).find_map(|end| {
            let read = end.chars().try_fold(read, |label, c| label_rules.after(label, c))?;
            let octets = octets(&format!("{label}{end}"));
            (read.is_complete() && octets <= max_octets).then_some((end, octets))
        })
    }

    /// Returns `true` if at most `characters` more characters complete a nonempty label.
    fn ends_within(&self, label: &str, kind: usize, max_octets: usize, characters: u32) -> bool {
        let room_here = max_octets.min(label.len() + characters as usize);
        self.is_complete_label(label, kind)
            || label.is_ascii() && self.is_viable_label(label, kind, room_here)
            || self.is_internationalized
                && self.ending(label, kind, max_octets, characters).is_some()
    }

    /// Returns the state after one more character.
    fn after(&self, name: &HostNameState, c: char) -> Option<HostNameState> {
        match &name.language {
            NameLanguage::Format => self.after_in_format(name, c),
            &NameLanguage::Lower { suffix } => name.after_in_lower(self, c, suffix),
            NameLanguage::Ending { rest } => name.after_in_ending(self, c, rest),
            NameLanguage::Upper => name.after_in_upper(self, c),
        }
    }

    /// Returns the state after one more character in the format's language.
    fn after_in_format(&self, name: &HostNameState, c: char) -> Option<HostNameState> {
        if self.is_dot(c) {
            let kinds = self.complete(name);
            let previous_octets = name.previous_octets + octets(&name.label) + 1;
            let is_viable = kinds != [false; 2] && previous_octets < MAX_NAME_OCTETS;
            return is_viable.then(|| HostNameState {
                previous_octets,
                label: String::new(),
                kinds,
                language: NameLanguage::Format,
            });
        }
        let label = format!("{}{c}", name.label);
        let is_viable = |kind: usize| {
            name.kinds[kind] && self.is_viable_label(&label, kind, max_octets(name.previous_octets))
        };
        let kinds = [is_viable(0), is_viable(1)];
        let label = if self.is_internationalized { label } else { representative_label(label) };
        (kinds != [false; 2]).then_some(HostNameState {
            previous_octets: name.previous_octets,
            label,
            kinds,
            language: NameLanguage::Format,
        })
    }

    /// Returns the representative of a state inside an encoded label: over so many characters that
    /// the standard suffix still has room, any characters of labels may follow.
    fn encoded_representative_state(
        &self,
        name: &HostNameState,
    ) -> Option<RepresentativeState<u32>> {
        let octets = max_octets(name.previous_octets);
        let length = name.label.len();
        let lengths = (length..).take_while(|&length| has_room_for_suffix(length, octets));
        let suffixes = lengths.filter_map(|length| standard_suffix(length - ACE_PREFIX.len()));
        let suffixes: Vec<usize> = suffixes.map(str::len).collect();
        let most = suffixes.len().checked_sub(1).filter(|&most| most > 0)?;
        let excluded = ExcludedStrings { anywhere: DOT, ..ExcludedStrings::default() };
        let extensible_chars = extensible_chars(name.previous_octets + length + most);
        let max_chars = suffixes.into_iter().max()? as u32;
        Some(RepresentativeState {
            reads: RepresentativeLanguage::Characters(ASCII_LETTERS),
            excluded,
            max_chars: most as u32,
            refused: name.refused_lengths(),
            completions: CompletionLengths { max_chars, simple: None, extensible_chars },
        })
    }

    /// Returns which kinds of names may end here.
    pub(super) fn complete(&self, name: &HostNameState) -> [bool; 2] {
        let all_if = |is_complete: bool| if is_complete { name.kinds } else { [false; 2] };
        match &name.language {
            NameLanguage::Ending { rest } => return all_if(rest.is_empty()),
            NameLanguage::Upper => return all_if(name.is_complete_in_upper()),
            &NameLanguage::Lower { suffix } if is_encoded(&name.label) => {
                let all = standard_suffix(name.label.len() - ACE_PREFIX.len());
                return all_if(all.is_some_and(|all| all.len() == suffix));
            }
            NameLanguage::Lower { .. } | NameLanguage::Format => {}
        }
        [0, 1].map(|kind| name.kinds[kind] && self.is_complete_label(&name.label, kind))
    }
}

impl CharRecognizer for HostNames {
    fn start(&self) -> u32 {
        self.states.intern(HostNameState { kinds: [true; 2], ..HostNameState::default() })
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        let next = self.after(&self.states.get(state), character)?;
        Some(self.states.intern(next))
    }

    fn accepts_some_in_range(&self, state: u32, first: char, last: char) -> bool {
        if !self.is_internationalized {
            return false;
        }
        let name = self.states.get(state);
        let is_encoded = is_encoded(&name.label);
        let dots = ['\u{3002}', '\u{FF0E}', '\u{FF61}'].into_iter();
        let mut dots = dots.filter(|dot| (first..=last).contains(dot));
        if let NameLanguage::Ending { rest } = &name.language {
            let next = rest.chars().next();
            return next.is_some_and(|next| (first..=last).contains(&next))
                || dots.any(|c| self.after(&name, c).is_some());
        }
        // Characters of the label itself are cheap to encode again, and most often allowed.
        let mut near = name.label.chars().filter(|c| (first..=last).contains(c));
        dots.any(|c| self.after(&name, c).is_some())
            // Encoded labels consist of ASCII characters.
            || !is_encoded && near.any(|c| self.after(&name, c).is_some())
            || !is_encoded
                && !matches!(name.language, NameLanguage::Lower { .. })
                && self.label_rules[1]
                    .valid_within(first, last)
                    .any(|c| self.after(&name, c).is_some())
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.complete(&self.states.get(state)) != [false; 2]
    }

    fn alphabet(&self) -> Option<&dyn RecognizerAlphabet> {
        Some(self)
    }

    fn member_lengths(&self) -> Option<&dyn MemberLengths> {
        Some(self)
    }

    fn representatives(&self) -> Option<&dyn StateRepresentatives> {
        Some(self)
    }

    fn growing_states(&self) -> Option<&dyn GrowingStates> {
        Some(self)
    }
}

impl RecognizerAlphabet for HostNames {
    fn ascii_letters(&self) -> u128 {
        ASCII_LETTERS
    }

    fn ascii_span(&self, state: u32, character: u8) -> (u8, u8) {
        let HostNameState { label, language, .. } = self.states.get(state);
        if matches!(language, NameLanguage::Ending { .. }) {
            return (character, character);
        }
        let is_begun = may_be_encoded(&label);
        let (low, high) = match EQUIVALENT_ASCII.iter().find(|(_, high)| character <= *high) {
            Some(&span)
                if !self.is_internationalized && (!is_begun || label.len() < ACE_PREFIX.len()) =>
            {
                span
            }
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
}

impl MemberLengths for HostNames {
    fn search_min_chars(&self, state: u32) -> u32 {
        let name = self.states.get(state);
        if self.complete(&name) != [false; 2] {
            return 0;
        }
        if name.language != NameLanguage::Format {
            return 1;
        }
        let label = name.label.to_ascii_lowercase();
        let Some(code) = label.strip_prefix(ACE_PREFIX) else { return 1 };
        let kinds = (0..2).filter(|&kind| name.kinds[kind]);
        kinds.map(|kind| self.a_labels[kind].min_missing_chars(code)).min().unwrap_or(1)
    }

    fn estimated_missing_chars(&self, state: u32) -> u32 {
        let name = self.states.get(state);
        if self.complete(&name) == [false; 2] { name.missing_chars() as u32 } else { 0 }
    }

    fn has_member_of_length(&self, state: u32, least: u32, most: u32) -> Option<bool> {
        let name = self.states.get(state);
        if name.language != NameLanguage::Format {
            return None;
        }
        let ends = match name.label.as_str() {
            "" => most > 0,
            label => [0, 1].iter().any(|&kind| {
                name.kinds[kind]
                    && self.ends_within(label, kind, max_octets(name.previous_octets), most)
            }),
        };
        match ends {
            true if least > 0 => may_be_longer(&name, least, most),
            ends => Some(ends),
        }
    }

    fn has_member_after_non_ascii(&self, state: u32, least: u32, most: u32) -> Option<bool> {
        let max_completion_chars =
            LABEL_ENDINGS.iter().map(|end| end.chars().count()).max()? as u32;
        match most >= max_completion_chars {
            _ if self.states.get(state).language != NameLanguage::Format => None,
            true if least > 0 => may_be_longer(&self.states.get(state), least, most),
            true => Some(true),
            false => None,
        }
    }
}

impl StateRepresentatives for HostNames {
    fn bound(&self, state: u32, bound: LanguageBound) -> Option<u32> {
        self.bound_state(state, bound)
    }

    fn representative(&self, state: u32) -> Option<RepresentativeState<u32>> {
        let name = self.states.get(state);
        if self.is_internationalized || name.language != NameLanguage::Format {
            return None;
        }
        if is_encoded(&name.label) {
            return self.encoded_representative_state(&name);
        }
        // Any label that starts after this one has the full number of octets available.
        let read = name.previous_octets + name.label.len();
        let most = (MAX_LABEL_OCTETS - 1)
            .checked_sub(name.label.len())?
            .min((MAX_NAME_OCTETS - MAX_LABEL_OCTETS).checked_sub(read)?);
        let prefix_left = match name.label.len() {
            // An encoded label is then one that contains the prefix.
            0 => "",
            length if may_be_encoded(&name.label) => &ACE_PREFIX[length..],
            _ => "",
        };
        let (reads, excluded) = if name.kinds[0] {
            // Without encoded labels, no label is right-to-left. Then dots and hyphens alone matter.
            let first = match name.label.chars().next_back() {
                None => DOT | HYPHEN,
                Some('-') => DOT,
                Some(_) => 0,
            };
            let excluded = ExcludedStrings {
                first,
                start: prefix_left,
                anywhere: 0,
                texts: &["..", ".-", "-.", ACE_PREFIX],
            };
            (RepresentativeLanguage::Characters(ASCII_LETTERS), excluded)
        } else {
            let label = match name.label.as_str() {
                short if may_be_encoded(short) => short.to_ascii_lowercase(),
                other => if other.ends_with('-') { "a-" } else { "a" }.to_owned(),
            };
            let base = HostNameState { label, kinds: name.kinds, ..HostNameState::default() };
            let name = format!("{base:?}");
            let state = self.states.intern(base);
            (RepresentativeLanguage::State { state, name }, ExcludedStrings::default())
        };
        // A label can be completed within its maximum length, and by one letter if it is not
        // encoded.
        let except = ExcludedStrings {
            start: prefix_left,
            texts: &[ACE_PREFIX],
            ..ExcludedStrings::default()
        };
        let completions = CompletionLengths {
            max_chars: MAX_LABEL_OCTETS as u32,
            simple: Some(SimpleCompletions { except, max_chars: 1 }),
            extensible_chars: extensible_chars(read + most),
        };
        let (max_chars, refused) = (most as u32, name.refused_lengths());
        Some(RepresentativeState { reads, excluded, max_chars, refused, completions })
    }
}

impl GrowingStates for HostNames {
    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        let (label_rules, a_labels) = (self.label_rules.clone(), Arc::clone(&self.a_labels));
        let (is_internationalized, states) = (self.is_internationalized, self.states.clone());
        Some(Arc::new(HostNames { is_internationalized, label_rules, a_labels, states }))
    }

    fn losses(&self) -> u32 {
        self.states.losses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &HostNames, start: u32, text: &str) -> Option<u32> {
        text.chars().try_fold(start, |state, c| names.step(state, c))
    }

    /// Decides by exhaustive search whether a member has `least` to `most` more characters.
    fn has_member_by_trial(names: &HostNames, state: u32, least: u32, most: u32) -> bool {
        let valid = || names.label_rules[1].valid_within('-', char::MAX).chain('-'..='z');
        let after = |c: char| names.step(state, c);
        least == 0 && names.is_accepting(state)
            || most > 0
                && valid()
                    .filter_map(after)
                    .any(|next| has_member_by_trial(names, next, least.saturating_sub(1), most - 1))
    }

    #[test]
    fn member_lengths_agree_with_exhaustive_search() {
        let label_rules = super::super::label_rules(super::super::Standard::Idna2008).unwrap();
        let names = HostNames::new(label_rules, true);
        let short =
            ["", "a-", "é", "l·", "α͵", "ア・", "・", "a.l·", "ב-", "xn--td", "xn--", "é.-"];
        let long = |label: &str| format!("{}{label}", "a".repeat(62 - label.len()));
        let long = [long("-"), long(""), format!("{}l·", "a".repeat(53))];
        let mut compared = [0; 3];
        for prefix in short.into_iter().map(str::to_owned).chain(long) {
            let Some(state) = read(&names, names.start(), &prefix) else { continue };
            for (least, most) in [(0, 0), (0, 1), (1, 1)] {
                let found = names.has_member_of_length(state, least, most);
                let tried = has_member_by_trial(&names, state, least, most);
                assert!(found.is_none_or(|found| found == tried), "{prefix:?}");
                assert!(found.is_some() || least > 0);
                compared[found.map_or(2, usize::from)] += 1;
            }
        }
        assert!(compared.iter().all(|&count| count > 5), "{compared:?}");
        let reads = |text: &str, lengths: [(u32, u32); 2]| {
            let state = read(&names, names.start(), text).unwrap();
            lengths.map(|(least, most)| names.has_member_of_length(state, least, most))
        };
        // The ends of encoded labels take a search.
        assert_eq!(reads("xn--", [(0, 2), (0, 3)]), [Some(false), Some(true)]);
        assert_eq!(reads("l·", [(0, 1), (0, 2)]), [Some(true); 2]);
        assert_eq!(reads("a-", [(100, 101), (187, 188)]), [Some(true), Some(true)]);
        assert_eq!(reads("a-", [(100, 100), (240, 260)]), [None; 2]);
    }

    #[test]
    fn representatives_read_the_same_strings() {
        let label_rules = super::super::label_rules(super::super::Standard::Idna2008).unwrap();
        let names = HostNames::new(label_rules, false);
        let long = |count: usize| format!("{}.", "a".repeat(61)).repeat(count);
        let prefixes = [
            "",
            "a",
            "9",
            "a-",
            "X",
            "xn",
            "xN-",
            "a.xn",
            "abc-d.",
            "b.9-",
            "-",
            "x.",
            "xn--",
            "xn--4db.",
            "xn--4db.a",
            "xn--4db.x",
            "xn--4db.a-",
        ];
        let prefixes = prefixes.map(str::to_owned).into_iter();
        let more = [long(2) + "ab", long(3), "a".repeat(50), "a".repeat(58) + "-"];
        let pieces = ["a", "b9", "-", ".", "x", "N", "n--", "xn--", "tda", "_", "é"];
        let is_one = |set: u128, one: u8| one.is_ascii() && set >> one & 1 != 0;
        let has_only = |set: u128, text: &str| text.bytes().all(|one| is_one(set, one));
        let is_in = |strings: &ExcludedStrings, text: &str| {
            let ExcludedStrings { first, start, anywhere, texts } = *strings;
            let text = text.to_ascii_lowercase();
            text.bytes().next().is_some_and(|one| is_one(first, one))
                || !start.is_empty() && text.starts_with(start)
                || text.bytes().any(|one| is_one(anywhere, one))
                || texts.iter().any(|&one| text.contains(one))
        };
        let (mut compared, mut alike) = (0, 0);
        for prefix in prefixes.chain(more) {
            let Some(state) = read(&names, names.start(), &prefix) else { continue };
            for character in 0..0x80_u8 {
                let (low, high) = names.ascii_span(state, character);
                assert!((low..=high).contains(&character));
                let after = names.step(state, character.into());
                let same = (low..=high).all(|one| names.step(state, one.into()) == after);
                assert!(same, "{prefix:?} {low} {high}");
            }
            let Some(representative) = names.representative(state) else { continue };
            let excluded = representative.excluded;
            let CompletionLengths { max_chars, simple, extensible_chars } =
                representative.completions;
            let simple = simple.unwrap_or(SimpleCompletions { except: excluded, max_chars });
            let SimpleCompletions { except, max_chars } = simple;
            let fits = |text: &str| text.len() <= representative.max_chars as usize;
            let mut check = |text: &str| {
                let after = read(&names, state, text);
                if !is_in(&excluded, text) {
                    let is_read = match &representative.reads {
                        RepresentativeLanguage::State { state, .. } => {
                            read(&names, *state, text).is_some()
                        }
                        &RepresentativeLanguage::Characters(ascii) => has_only(ascii, text),
                    };
                    assert_eq!(after.is_some(), is_read, "{prefix:?} {text:?}");
                    alike += 1;
                }
                let Some(after) = after else { return };
                if is_in(&except, text) {
                    return;
                }
                // A trial of the ends of encoded labels would take too long.
                let is_found = max_chars > 1 || has_member_by_trial(&names, after, 0, max_chars);
                assert!(is_found, "{prefix:?} {text:?}");
                for least in [1, 5, 40, extensible_chars] {
                    if let Some(least) = least.checked_sub(text.len() as u32)
                        && least <= extensible_chars
                    {
                        let most = max_chars.max(least + 1);
                        let found = names.has_member_of_length(after, least, most);
                        assert_eq!(found, Some(true), "{prefix:?} {text:?} {least}");
                    }
                }
            };
            for one in pieces {
                for other in pieces {
                    for last in pieces {
                        let text = [one, other, last].concat();
                        if fits(&text) {
                            check(&text);
                            compared += 1;
                        }
                    }
                }
            }
            let longer = (0..70).map(|count| "a".repeat(count));
            let longer = longer.flat_map(|text| [format!("{text}-"), text]);
            for text in longer {
                let (characters, most) = representative.refused.of_characters;
                let is_refused = has_only(characters, &text) && text.len() > most as usize;
                assert!(!is_refused || read(&names, state, &text).is_none(), "{prefix:?} {text:?}");
                if fits(&text) {
                    check(&text);
                }
            }
        }
        assert!(compared > 10_000 && alike > compared / 3, "{compared} {alike}");
    }
}
