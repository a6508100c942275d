//! Bounds of host names: a subset and a superset of their language with few states each.
//!
//! ```text
//!  lower   xn--⟨any n characters⟩⟨the standard suffix of n⟩      a subset: encoded labels end so
//!  upper   ⟨any label of letters, digits and hyphens⟩.…          a superset: names of any length
//! ```
//!
//! Encoded labels have as many states as there are labels, and a search among them for one that
//! also matches a pattern need not end. In the bounds a label is its length, so searches there are
//! short, and they decide almost all of these questions ([`StateRepresentatives::bound`](formalm_automata::StateRepresentatives::bound)).

use formalm_automata::LanguageBound;

use super::a_labels::standard_suffix;
use super::host_names::{
    ACE_PREFIX, HostNameState, HostNames, MAX_LABEL_OCTETS, MAX_NAME_OCTETS, is_encoded,
    is_label_char, max_octets, plain_representative, representative_label,
};

/// The estimated characters that complete an encoded label near the maximum length, where none
/// is known.
const SHORT_LABEL_END: usize = 3;

/// The language that a state reads on: that of the format, or a simpler one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum NameLanguage {
    #[default]
    Format,
    /// A subset: encoded labels end in the standard suffix of what precedes it, and no label has
    /// non-ASCII characters. The label consists of representative characters.
    Lower {
        /// Characters of the suffix that were read after an encoded label's characters.
        suffix: usize,
    },
    /// A subset: one ending of the label, then as in [`NameLanguage::Lower`]. The label consists of as
    /// many characters as the complete one has octets.
    Ending { rest: String },
    /// A superset: labels of letters, digits and hyphens, in names of any length. Labels consist of
    /// representative characters.
    Upper,
}

/// Returns the representative of encoded labels of `length` characters in the lower bound.
fn encoded_representative(length: usize) -> String {
    format!("{ACE_PREFIX}{}", "a".repeat(length - ACE_PREFIX.len()))
}

/// Returns `true` if an encoded label of `length` characters can be completed by its standard
/// suffix within `max_octets`.
pub(super) fn has_room_for_suffix(length: usize, max_octets: usize) -> bool {
    let suffix = standard_suffix(length - ACE_PREFIX.len());
    suffix.is_some_and(|suffix| length + suffix.len() <= max_octets)
}

/// Returns the longest suffix of an encoded label that begins the standard suffix of what precedes
/// it: the length of that and of the suffix.
fn split_at_suffix(label: &str) -> (usize, usize) {
    let label = label.to_ascii_lowercase();
    let hyphens = label.match_indices('-').map(|(at, _)| at);
    let mut splits = hyphens.filter(|&at| at > ACE_PREFIX.len()).filter(|&at| {
        standard_suffix(at - ACE_PREFIX.len()).is_some_and(|all| all.starts_with(&label[at..]))
    });
    let at = splits.next().unwrap_or(label.len());
    (at, label.len() - at)
}

impl HostNameState {
    /// Returns the state after a character in the lower bound of the format's language.
    pub(super) fn after_in_lower(
        &self,
        names: &HostNames,
        c: char,
        suffix: usize,
    ) -> Option<HostNameState> {
        let max_octets = max_octets(self.previous_octets);
        let language = |suffix| NameLanguage::Lower { suffix };
        if names.is_dot(c) {
            let previous_octets = self.previous_octets + self.label.len() + suffix + 1;
            let kinds = names.complete(self);
            let is_viable = kinds != [false; 2] && previous_octets < MAX_NAME_OCTETS;
            return is_viable.then(|| HostNameState {
                previous_octets,
                label: String::new(),
                kinds,
                language: language(0),
            });
        }
        let c = c.to_ascii_lowercase();
        if !is_label_char(c) {
            return None;
        }
        if is_encoded(&self.label) {
            let all = standard_suffix(self.label.len() - ACE_PREFIX.len())?;
            if all[suffix..].starts_with(c) {
                return Some(HostNameState { language: language(suffix + 1), ..self.clone() });
            }
            // What looked like the suffix belongs to the label. A hyphen may begin another suffix.
            let length = self.label.len() + suffix;
            let begins_suffix = c == '-' && length > ACE_PREFIX.len();
            let length = length + usize::from(!begins_suffix);
            return has_room_for_suffix(length, max_octets).then(|| HostNameState {
                label: encoded_representative(length),
                language: language(usize::from(begins_suffix)),
                ..self.clone()
            });
        }
        let label = format!("{}{c}", self.label);
        let kinds = match is_encoded(&label) {
            true if has_room_for_suffix(label.len(), max_octets) => self.kinds,
            true => return None,
            false => [0, 1].map(|kind| {
                self.kinds[kind] && names.ascii_label(&label, kind, max_octets).is_viable
            }),
        };
        let label = representative_label(label);
        (kinds != [false; 2]).then(|| HostNameState { label, kinds, ..self.clone() })
    }

    /// Returns the state after a character of the one ending of the label.
    pub(super) fn after_in_ending(
        &self,
        names: &HostNames,
        c: char,
        rest: &str,
    ) -> Option<HostNameState> {
        if let Some(rest) = rest.strip_prefix(c.to_ascii_lowercase()) {
            let language = NameLanguage::Ending { rest: rest.to_owned() };
            return Some(HostNameState { language, ..self.clone() });
        }
        let previous_octets = self.previous_octets + self.label.len() + 1;
        let is_viable = rest.is_empty() && names.is_dot(c) && previous_octets < MAX_NAME_OCTETS;
        is_viable.then(|| HostNameState {
            previous_octets,
            label: String::new(),
            kinds: self.kinds,
            language: NameLanguage::Lower { suffix: 0 },
        })
    }

    /// Returns the state after a character in the upper bound of the format's language.
    pub(super) fn after_in_upper(&self, names: &HostNames, c: char) -> Option<HostNameState> {
        let is_complete = self.is_complete_in_upper();
        if names.is_dot(c) {
            return is_complete.then(|| HostNameState { label: String::new(), ..self.clone() });
        }
        let fits = c.is_ascii_alphanumeric()
            || c == '-' && !self.label.is_empty()
            || !c.is_ascii() && names.is_internationalized && names.has_letter(c);
        let length = self.label.len() + 1;
        let octets = length + usize::from(c == '-');
        (fits && octets <= MAX_LABEL_OCTETS)
            .then(|| HostNameState { label: plain_representative(length, c), ..self.clone() })
    }

    pub(super) fn is_complete_in_upper(&self) -> bool {
        !self.label.is_empty() && !self.label.ends_with('-')
    }

    /// Returns an estimate of the characters missing to a name.
    pub(super) fn missing_chars(&self) -> usize {
        if let NameLanguage::Ending { rest } = &self.language {
            return rest.chars().count();
        }
        if !is_encoded(&self.label) || self.language == NameLanguage::Upper {
            return 1;
        }
        let (length, read) = match self.language {
            NameLanguage::Lower { suffix } => (self.label.len(), suffix),
            _ => split_at_suffix(&self.label),
        };
        let suffix = standard_suffix(length - ACE_PREFIX.len());
        suffix.map_or(SHORT_LABEL_END, |suffix| suffix.len() - read)
    }
}

impl HostNames {
    /// Returns the bound of a state that has one ending of its label.
    fn ending_bound(&self, name: &HostNameState) -> Option<HostNameState> {
        let max_octets = max_octets(name.previous_octets);
        (0..2).filter(|&kind| name.kinds[kind]).find_map(|kind| {
            let lower = name.label.to_ascii_lowercase();
            let (rest, octets) = match lower.strip_prefix(ACE_PREFIX) {
                Some(code) => {
                    let room = max_octets.checked_sub(lower.len())?;
                    let rest = self.a_labels[kind].completion(code, room)?;
                    let octets = lower.len() + rest.len();
                    (rest, octets)
                }
                None => {
                    let ending = self.ending(&name.label, kind, max_octets, u32::MAX);
                    ending.map(|(rest, octets)| (rest.to_owned(), octets))?
                }
            };
            let mut kinds = [false; 2];
            kinds[kind] = true;
            Some(HostNameState {
                previous_octets: name.previous_octets,
                label: plain_representative(octets, 'a'),
                kinds,
                language: NameLanguage::Ending { rest },
            })
        })
    }

    /// See [`StateRepresentatives::bound`](formalm_automata::StateRepresentatives::bound).
    pub(super) fn bound_state(&self, state: u32, bound: LanguageBound) -> Option<u32> {
        let name = self.states.get(state);
        if name.language != NameLanguage::Format {
            return None;
        }
        let HostNameState { previous_octets, kinds, .. } = name;
        let label = name.label.clone();
        let bounded = match bound {
            LanguageBound::Upper => {
                let language = NameLanguage::Upper;
                let last = label.chars().next_back();
                let label = last.map(|last| plain_representative(label.chars().count(), last));
                HostNameState {
                    previous_octets: 0,
                    label: label.unwrap_or_default(),
                    kinds: [true; 2],
                    language,
                }
            }
            LanguageBound::Lower if is_encoded(&label) => {
                let (length, suffix) = split_at_suffix(&label);
                if !has_room_for_suffix(length, max_octets(previous_octets)) {
                    return self.ending_bound(&name).map(|bounded| self.states.intern(bounded));
                }
                let label = encoded_representative(length);
                let language = NameLanguage::Lower { suffix };
                HostNameState { previous_octets, label, kinds, language }
            }
            LanguageBound::Lower if label.is_ascii() => HostNameState {
                previous_octets,
                label: representative_label(label.to_ascii_lowercase()),
                kinds,
                language: NameLanguage::Lower { suffix: 0 },
            },
            LanguageBound::Lower => self.ending_bound(&name)?,
        };
        Some(self.states.intern(bounded))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use formalm_automata::{Automaton, AutomatonLimits, CharRecognizer, Expression};
    use formalm_core::LazyDfa;
    use formalm_regex::{PatternDialect, PatternFlags, parse};

    use super::super::host_names::ASCII_LETTERS;
    use super::*;

    fn read(names: &HostNames, start: u32, text: &str) -> Option<u32> {
        text.chars().try_fold(start, |state, c| names.step(state, c))
    }

    #[test]
    fn bounds_lie_below_and_above_the_language() {
        let label_rules = super::super::label_rules(super::super::Standard::Idna2008).unwrap();
        let letters = (0..0x80_u8).filter(|&byte| byte == b'.' || is_label_char(byte.into()));
        assert_eq!(letters.fold(0, |set, byte| set | 1 << byte), ASCII_LETTERS);
        let long = |count: usize| format!("{}.", "a".repeat(61)).repeat(count);
        let prefixes = ["", "a", "9", "a-", "xn", "xn--", "Xn--a", "xn--a-", "xn--tda", "b.xn--a"];
        let near = ["a-".repeat(26), "a".repeat(55), format!("{}tda", "-".repeat(55))];
        let near = near.map(|code| format!("xn--{code}")).into_iter();
        let more: Vec<String> = near
            .chain([long(3) + "ab", long(3) + "xn--", "é".to_owned(), "l·".to_owned()])
            .collect();
        let pieces =
            ["a", "b9", "-", ".", "xn--", "tda", "-pfaba", "é", "ü-", "。", "_", "l·", "ア"];
        let mut accepted = [0; 3];
        for is_internationalized in [false, true] {
            let names = HostNames::new(label_rules, is_internationalized);
            for prefix in prefixes.map(str::to_owned).into_iter().chain(more.clone()) {
                let Some(state) = read(&names, names.start(), &prefix) else { continue };
                let bound = |bound| names.bound_state(state, bound);
                let (lower, upper) = (bound(LanguageBound::Lower), bound(LanguageBound::Upper));
                let upper = upper.unwrap();
                assert_eq!([names.bound_state(upper, LanguageBound::Upper), None], [None; 2]);
                let count = pieces.len();
                for choice in 0..count.pow(3) {
                    let parts = [choice, choice / count, choice / count / count];
                    let text = parts.map(|part| pieces[part % count]).concat();
                    let after = [lower, Some(state), Some(upper)]
                        .map(|state| read(&names, state?, &text).map(|state| (state, &names)));
                    let accepts = after
                        .map(|after| after.is_some_and(|(state, names)| names.is_accepting(state)));
                    let reads = after.map(|after| after.is_some());
                    assert!(
                        accepts[0] <= accepts[1] && accepts[1] <= accepts[2],
                        "{prefix} {text}"
                    );
                    assert!(reads[0] <= reads[1] && reads[1] <= reads[2], "{prefix} {text}");
                    (0..3).for_each(|at| accepted[at] += usize::from(accepts[at]));
                    // Every state of the lower bound is live.
                    if let Some((state, _)) = after[0] {
                        let name = names.states.get(state);
                        let rest = match &name.language {
                            NameLanguage::Ending { rest } => rest,
                            &NameLanguage::Lower { suffix } if is_encoded(&name.label) => {
                                &standard_suffix(name.label.len() - 4).unwrap()[suffix..]
                            }
                            _ if name.label.is_empty() || name.label.ends_with('-') => "a",
                            _ => "",
                        };
                        let end = read(&names, state, rest);
                        assert!(end.is_some_and(|end| names.is_accepting(end)), "{prefix} {text}");
                    }
                }
            }
        }
        assert!(accepted.iter().all(|&count| count > 500), "{accepted:?}");
    }

    #[test]
    fn viability_beside_patterns_equals_exhaustive_search() {
        let label_rules = super::super::label_rules(super::super::Standard::Idna2008).unwrap();
        let names = Arc::new(HostNames::new(label_rules, false));
        let pattern = |source: &str| {
            let pattern = parse(source, PatternDialect::Ecma, PatternFlags::default()).unwrap();
            Expression::pattern(pattern)
        };
        let patterns = [
            "[a-z0-9.-]*",
            "[a-z.-]*",
            "[^0-9]*",
            "xn--[0-9.]*",
            "xn--[b-d-]*[.]?k?",
            ".*[.]c",
            ".*-k.*",
            ".*--.*[a-f]",
            "(xn--t.a|a-+b)[.]?.?",
            "xn--a-e.*",
        ];
        let prefixes =
            ["", "a", "x", "xn", "xn--t", "xn--td", "xn--tda", "xn--a-", "xn--a-ec", "a-"];
        let prefixes = prefixes.into_iter().chain(["xn--b", "xn--kn", "xn--fsq.", "xn--1", "b."]);
        let (mut found, mut given_up) = ([0; 2], 0);
        for source in patterns {
            for prefix in prefixes.clone() {
                let most = prefix.len() + 2;
                let host_names: Arc<dyn CharRecognizer> = names.clone();
                let parts = vec![
                    Expression::custom(host_names),
                    pattern(source),
                    pattern(&format!(".{{0,{most}}}")),
                ];
                let limits = AutomatonLimits::default();
                let alone = Automaton::new(&pattern(source), limits).unwrap();
                let both = Expression::intersection(parts).unwrap();
                let is_viable = Automaton::of(&both, limits).and_then(|both| match both {
                    Some(both) => Ok(both.walk(both.start(), prefix.as_bytes())?.is_ok()),
                    None => Ok(false),
                });
                let Ok(is_viable) = is_viable else {
                    // With so few characters left the bounds often do not decide, and searches give up.
                    given_up += 1;
                    continue;
                };
                let start = (
                    read(&names, names.start(), prefix),
                    alone.walk(alone.start(), prefix.as_bytes()).unwrap().ok(),
                );
                let (Some(name), Some(state)) = start else {
                    assert!(!is_viable, "{source} {prefix}");
                    continue;
                };
                let mut open = vec![(name, state, 0)];
                let mut is_member = false;
                while let Some((name, state, length)) = open.pop() {
                    is_member |= names.is_accepting(name) && alone.is_accepting(state);
                    let letters = ('a'..='z').chain('0'..='9').chain(['.', '-']);
                    open.extend(letters.filter(|_| length < 2).filter_map(|c| {
                        let state = alone.step(state, c as u8).unwrap()?;
                        Some((names.step(name, c)?, state, length + 1))
                    }));
                }
                assert_eq!(is_viable, is_member, "{source} {prefix}");
                found[usize::from(is_member)] += 1;
            }
        }
        assert!(found.iter().all(|&count| count > 20) && given_up < 50, "{found:?} {given_up}");
    }
}
