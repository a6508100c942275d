//! URLs that match a pattern and whose encoded host labels (`xn--`) decode.
//!
//! ```text
//!  state = (state of the pattern's automaton, part of the URL)
//!
//!  wss://user@xn--tda.example:80/path
//!  │    │ │   └─ Host(Name)     │ └─ PatternOnly
//!  │    │ └ Host(…), restarted after `@`
//!  │    └─ Slashes              └─ Host(AfterHost)
//!  └─ Scheme
//! ```
//!
//! A regular automaton reads the pattern, to which an encoded label is like any other. In parallel
//! the host is tracked and rejects labels that do not decode ([`Domains`]). The characters before
//! `@` may be a user name or a host, so an invalid host stays viable while the pattern accepts `@`.
//!
//! Rejected: a recognizer of the host alone, intersected with the pattern. Then "no host ends in a
//! number" takes a search for each character.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use formalm_automata::{
    Automaton, AutomatonLimits, CharRecognizer, CompletionLengths, ExcludedStrings, Expression,
    GrowingStates, MemberLengths, RecognizerAlphabet, RefusedLengths, RepresentativeLanguage,
    RepresentativeState, StateRepresentatives,
};
use formalm_core::{
    CompletionHints, Error, ForkSafeMutex, LazyDfa, Renewal, StateId, deadline::without_deadline,
};
use rustc_hash::FxHashMap;

use super::idna::{Domain, Domains, StateInterner};

/// The special schemes of the URL standard, whose hosts are domain names.
const SPECIAL: [&str; 6] = ["file", "ftp", "http", "https", "ws", "wss"];

/// Upper bound, in characters, on a shortest completion of any state after the scheme. An IPv6
/// address with brackets takes 17, an encoded label 11; the rest is slack. Chosen, not measured.
const MAX_MISSING_CHARS: u32 = 64;

/// The part of a URL that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum UrlPart {
    /// The start of a scheme that may be special.
    Scheme(String),
    /// Any other scheme.
    OtherScheme,
    /// The slashes after a special scheme: how many were read.
    Slashes(usize),
    /// The authority: user, host, port.
    Host(UrlHost),
    /// A part that only the pattern constrains.
    PatternOnly,
}

/// The state of an authority, which restarts after a user name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum UrlHost {
    /// A domain name.
    Name(Domain),
    /// Inside brackets, or after the host.
    AfterHost,
    /// An invalid host, which may still be a user name.
    Invalid,
}

/// The state of the pattern's automaton, and the part of the URL.
type UrlState = (StateId, UrlPart);

/// A recognizer of URLs.
#[derive(Debug)]
pub(crate) struct Urls {
    pattern: Arc<Automaton>,
    domains: Arc<Domains>,
    /// `true` if commas separate several hosts.
    allows_several_hosts: bool,
    states: StateInterner<UrlState>,
    /// Minimum bytes that complete the pattern, by its state.
    min_bytes: Arc<ForkSafeMutex<FxHashMap<StateId, u32>>>,
    /// Set when the pattern's automaton exceeds a limit.
    limit_reached: Arc<AtomicBool>,
}

impl Urls {
    /// Returns the recognizer of the URLs that match a pattern, or `None` if no string does.
    ///
    /// # Errors
    ///
    /// Fails with the errors of building the pattern's automaton.
    pub(crate) fn of(
        pattern: &Expression,
        allows_several_hosts: bool,
    ) -> Result<Option<Urls>, Error> {
        let Some(pattern) = Automaton::of(pattern, AutomatonLimits::default())? else {
            return Ok(None);
        };
        Ok(Some(Urls {
            pattern: Arc::new(pattern),
            domains: Arc::new(Domains::new()?),
            allows_several_hosts,
            states: StateInterner::default(),
            min_bytes: Arc::default(),
            limit_reached: Arc::default(),
        }))
    }

    /// Returns the answer; notes the limit that an error reports.
    fn or_record_limit<T>(&self, answer: Result<T, Error>) -> Option<T> {
        if answer.is_err() {
            self.limit_reached.store(true, Ordering::Relaxed);
        }
        answer.ok()
    }

    /// Returns the pattern's state after an ASCII character. A step that a deadline ends would look
    /// like a rejection; the automaton's own limits bound it instead.
    fn pattern_step(&self, state: StateId, c: char) -> Option<StateId> {
        let byte = u8::try_from(c).ok().filter(u8::is_ascii)?;
        self.or_record_limit(without_deadline(|| self.pattern.step(state, byte)))?
    }

    /// Returns the part after `c`, or `None` if an invalid host ends here.
    fn part_after(&self, part: &UrlPart, c: char) -> Option<UrlPart> {
        Some(match part {
            UrlPart::Scheme(scheme) if c == ':' => match SPECIAL.contains(&scheme.as_str()) {
                true => UrlPart::Slashes(0),
                false => UrlPart::PatternOnly,
            },
            UrlPart::Scheme(scheme) => {
                let scheme = format!("{scheme}{c}");
                match SPECIAL.iter().any(|one| one.starts_with(&scheme)) {
                    true => UrlPart::Scheme(scheme),
                    false => UrlPart::OtherScheme,
                }
            }
            UrlPart::OtherScheme if c == ':' => UrlPart::PatternOnly,
            UrlPart::OtherScheme => UrlPart::OtherScheme,
            UrlPart::Slashes(0) => UrlPart::Slashes(1),
            UrlPart::Slashes(_) => UrlPart::Host(UrlHost::Name(Domain::start())),
            UrlPart::Host(host) => return self.host_after(host, c),
            UrlPart::PatternOnly => UrlPart::PatternOnly,
        })
    }

    /// Returns the part after `c` inside an authority.
    fn host_after(&self, host: &UrlHost, c: char) -> Option<UrlPart> {
        let is_comma = self.allows_several_hosts && c == ',';
        if is_comma || matches!(c, '/' | '?' | '#') {
            let next = if is_comma {
                UrlPart::Host(UrlHost::Name(Domain::start()))
            } else {
                UrlPart::PatternOnly
            };
            return self.is_complete(host).then_some(next);
        }
        Some(UrlPart::Host(match (host, c) {
            (_, '@') => UrlHost::Name(Domain::start()),
            (UrlHost::Name(domain), ':') if self.domains.is_complete(domain) => UrlHost::AfterHost,
            (UrlHost::Name(domain), '[') if *domain == Domain::start() => UrlHost::AfterHost,
            (UrlHost::Name(domain), _) => {
                self.domains.after(domain, c).map_or(UrlHost::Invalid, UrlHost::Name)
            }
            (UrlHost::AfterHost, _) => UrlHost::AfterHost,
            (UrlHost::Invalid, _) => UrlHost::Invalid,
        }))
    }

    fn is_complete(&self, host: &UrlHost) -> bool {
        match host {
            UrlHost::Name(domain) => self.domains.is_complete(domain),
            UrlHost::AfterHost => true,
            UrlHost::Invalid => false,
        }
    }

    fn after(&self, (state, part): &UrlState, c: char) -> Option<UrlState> {
        let state = self.pattern_step(*state, c)?;
        let part = self.part_after(part, c)?;
        // An invalid host is viable only if it can still become a user name.
        let is_invalid = part == UrlPart::Host(UrlHost::Invalid);
        (!is_invalid || self.pattern_step(state, '@').is_some()).then_some((state, part))
    }

    /// Returns the minimum bytes that complete the pattern.
    fn min_pattern_bytes(&self, state: StateId) -> u32 {
        if let Some(&least) = self.min_bytes.lock().get(&state) {
            return least;
        }
        let least = self.or_record_limit(without_deadline(|| self.pattern.min_bytes(state)));
        let least = least.map_or(0, |least| u32::try_from(least).unwrap_or(u32::MAX));
        self.min_bytes.lock().insert(state, least);
        least
    }

    fn is_member(&self, (state, part): &UrlState) -> bool {
        let is_complete = !matches!(part, UrlPart::Host(host) if !self.is_complete(host));
        is_complete && self.pattern.is_accepting(*state)
    }
}

impl CharRecognizer for Urls {
    fn start(&self) -> u32 {
        self.states.intern((LazyDfa::start(&*self.pattern), UrlPart::Scheme(String::new())))
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        let next = self.after(&self.states.get(state), character)?;
        Some(self.states.intern(next))
    }

    fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
        false
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.is_member(&self.states.get(state))
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

impl RecognizerAlphabet for Urls {
    fn ascii_letters(&self) -> u128 {
        !0 << b' ' & !(1 << 0x7F)
    }

    fn ascii_span(&self, state: u32, character: u8) -> (u8, u8) {
        let url_state = self.states.get(state);
        if matches!(&url_state.1, UrlPart::Host(UrlHost::Name(domain)) if !domain.is_free()) {
            return (character, character);
        }
        let next = self.after(&url_state, character.into());
        let is_same_step = |&byte: &u8| self.after(&url_state, byte.into()) == next;
        let low = (0..character).rev().take_while(is_same_step).last();
        let high = (character + 1..0x80).take_while(is_same_step).last();
        (low.unwrap_or(character), high.unwrap_or(character))
    }
}

impl MemberLengths for Urls {
    fn min_chars(&self, state: u32) -> u32 {
        let url_state = self.states.get(state);
        self.min_pattern_bytes(url_state.0).max(u32::from(!self.is_member(&url_state)))
    }

    fn search_min_chars(&self, state: u32) -> u32 {
        let missing = match &self.states.get(state).1 {
            // A user name may be completed by `@` and a host of one character.
            UrlPart::Host(UrlHost::Name(domain)) => self.domains.min_missing_chars(domain).min(2),
            _ => 0,
        };
        self.min_chars(state).max(missing)
    }

    fn has_member_of_length(&self, state: u32, least: u32, most: u32) -> Option<bool> {
        if self.search_min_chars(state) > most {
            return Some(false);
        }
        let (pattern_state, part) = self.states.get(state);
        let is_free = match &part {
            UrlPart::Host(UrlHost::Name(domain)) => domain.is_free(),
            _ => true,
        };
        // An incomplete host lacks a letter, a user name lacks `@` and a host. Any URL can be
        // extended within its last part, or by a path.
        let ends =
            self.min_pattern_bytes(pattern_state) + if is_free { 2 } else { MAX_MISSING_CHARS };
        (most >= ends.max(least)).then_some(true)
    }
}

impl StateRepresentatives for Urls {
    fn representative(&self, state: u32) -> Option<RepresentativeState<u32>> {
        let (pattern_state, part) = self.states.get(state);
        // Schemes have no maximum length.
        let max_completion_chars = match part {
            UrlPart::Scheme(_) | UrlPart::OtherScheme => u32::MAX,
            _ => MAX_MISSING_CHARS,
        };
        let (state, part, excluded_anywhere, most) = match &part {
            UrlPart::Host(UrlHost::Name(domain)) => match domain.within_encoded() {
                Some((_, 0)) => return None,
                Some((domain, most)) => {
                    let part = UrlPart::Host(UrlHost::Name(domain));
                    // A character outside labels ends this one, or is rejected in both states.
                    let is_letter = |byte: u8| {
                        self.domains.has_letter(byte.into())
                            && !(self.allows_several_hosts && byte == b',')
                    };
                    let is_read =
                        |byte: u8| self.pattern_step(pattern_state, byte.into()).is_some();
                    let excluded_anywhere =
                        (0..0x80).filter(|&byte| !is_letter(byte) && is_read(byte));
                    let excluded_anywhere = excluded_anywhere.fold(0, |set, byte| set | 1 << byte);
                    let state = self.states.intern((pattern_state, part.clone()));
                    (state, part, excluded_anywhere, most as u32)
                }
                None => (state, part, 0, u32::MAX),
            },
            _ => (state, part, 0, u32::MAX),
        };
        let name = format!("{} {part:?}", pattern_state.number());
        Some(RepresentativeState {
            reads: RepresentativeLanguage::State { state, name },
            excluded: ExcludedStrings { anywhere: excluded_anywhere, ..ExcludedStrings::default() },
            max_chars: most,
            refused: RefusedLengths::default(),
            completions: CompletionLengths::at_most(max_completion_chars),
        })
    }
}

impl GrowingStates for Urls {
    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        // Encoded labels have as many states as inputs.
        Some(Arc::new(Urls {
            pattern: Arc::clone(&self.pattern),
            domains: Arc::clone(&self.domains),
            allows_several_hosts: self.allows_several_hosts,
            states: self.states.clone(),
            min_bytes: Arc::clone(&self.min_bytes),
            limit_reached: Arc::clone(&self.limit_reached),
        }))
    }

    fn hit_limit(&self) -> bool {
        self.limit_reached.swap(false, Ordering::Relaxed) | self.domains.take_limit_reached()
    }

    fn losses(&self) -> u32 {
        self.states.losses() + u32::from(self.pattern.is_abandoned())
    }
}

#[cfg(test)]
mod tests {
    use formalm_regex::{PatternDialect, PatternFlags, parse};

    use super::*;

    const HOST: &str = "(?:\\[[0-9:]+\\]|(?!(?:[:/?#]|$))[a-z0-9_.=-]+)";

    fn urls() -> Urls {
        let user = "(?:[a-z.%-]*(?::[a-z.%-]*)?@)?";
        let rest = "(?::[0-9]{1,2})?(?:/[a-z@-]*)?";
        let source = format!("wss?://{user}{HOST}{rest}|file://(?:{HOST})?/[a-z]*|git:[a-z]+");
        let pattern = parse(&source, PatternDialect::Ecma, PatternFlags::default()).unwrap();
        Urls::of(&Expression::pattern(pattern), false).unwrap().unwrap()
    }

    fn read(urls: &Urls, start: u32, text: &str) -> Option<u32> {
        text.chars().try_fold(start, |state, c| urls.step(state, c))
    }

    const PREFIXES: [&str; 24] = [
        "",
        "w",
        "gi",
        "ws:",
        "ws://",
        "ws://x",
        "ws://xn-",
        "ws://xn--",
        "ws://xn--a",
        "ws://xn--td",
        "ws://xn--tda",
        "ws://xn--tda.",
        "ws://xn--4db.a-",
        "ws://xn--4db.xn--a",
        "ws://a.xn--a_b-",
        "ws://xn--a:",
        "ws://xn--a:b@c",
        "ws://[1:",
        "ws://a%",
        "ws://a:8",
        "ws://xn--tda/a",
        "file://xn--tda/",
        "file://xn--t",
        "git:a",
    ];

    #[test]
    fn encoded_labels_must_decode() {
        let urls = urls();
        let is_member = |text: &str| {
            read(&urls, urls.start(), text).is_some_and(|state| urls.is_accepting(state))
        };
        let hosts = ["xn--tda", "xn--tda.a", "1.xn--tda", "xn--4db.a", "xn--xn---epa", "xn--1ch"];
        let wrong = ["xn--", "xn--a", "xn---tda", "xn--tda-", "xn--4db.1", "a-.xn--4db", "xn--a-"];
        for (hosts, expected) in [(&hosts[..], true), (&wrong[..], false)] {
            for host in hosts {
                let text = format!("ws://{host}");
                assert_eq!(is_member(&text), expected, "{host}");
                assert_eq!(is_member(&format!("{text}:80/a@b")), expected, "{host}");
                assert_eq!(is_member(&format!("file://{host}/")), expected, "{host}");
                // A user name of the same letters is fine.
                let is_user = !host.contains(['1', '4']);
                assert_eq!(is_member(&format!("{text}@a")), is_user, "{host}");
            }
        }
    }

    #[test]
    fn encoded_labels_have_the_length_limits_of_the_idna_crate() {
        let urls = urls();
        let read = |code: &str| read(&urls, urls.start(), &format!("ws://xn--{code}"));
        let is_member = |code: &str| read(code).is_some_and(|state| urls.is_accepting(state));
        let many = |count: usize| format!("tda{}", "a".repeat(count - 1));
        assert!(is_member(&many(1000)) && !is_member(&many(1001)));
        let ascii = |count: usize| "b".repeat(count);
        assert!(read(&ascii(998)).is_some() && read(&ascii(999)).is_some());
    }

    #[test]
    fn representatives_read_the_same_strings() {
        let urls = urls();
        let pieces =
            ["a", "-", ".", "/", ":", "@", "xn--", "tda", "_", "%", " ", "#", "1", "[", "s"];
        let mut compared = 0;
        for prefix in PREFIXES {
            let state = read(&urls, urls.start(), prefix).unwrap();
            for character in 0..0x80_u8 {
                let (low, high) = urls.ascii_span(state, character);
                assert!((low..=high).contains(&character));
                let after = urls.step(state, character.into());
                let is_same = (low..=high).all(|one| urls.step(state, one.into()) == after);
                assert!(is_same, "{prefix:?} {low} {high}");
            }
            let representative = urls.representative(state).unwrap();
            let RepresentativeLanguage::State { state: like, .. } = representative.reads else {
                panic!("URLs are represented by states")
            };
            for one in pieces {
                for other in pieces {
                    for last in pieces {
                        let text = [one, other, last].concat();
                        if text
                            .bytes()
                            .any(|byte| representative.excluded.anywhere >> byte & 1 != 0)
                        {
                            continue;
                        }
                        let is_read = |from: u32| read(&urls, from, &text).is_some();
                        assert_eq!(is_read(state), is_read(like), "{prefix:?} {text:?}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 20_000, "{compared}");
    }

    /// Decides by exhaustive search whether a member has `least` to `most` more characters.
    fn has_member_by_trial(urls: &Urls, state: u32, least: u32, most: u32) -> bool {
        least == 0 && urls.is_accepting(state)
            || most > 0
                && (b' '..0x7F)
                    .filter_map(|byte| urls.step(state, byte.into()))
                    .any(|next| has_member_by_trial(urls, next, least.saturating_sub(1), most - 1))
    }

    #[test]
    fn member_lengths_agree_with_exhaustive_search() {
        let urls = urls();
        for prefix in PREFIXES {
            let state = read(&urls, urls.start(), prefix).unwrap();
            let needs = urls.search_min_chars(state);
            for (least, most) in [(0, 0), (0, 1), (1, 1), (0, 2)] {
                let tried = has_member_by_trial(&urls, state, least, most);
                assert!(!tried || needs <= most, "{prefix:?} misses {needs}");
                let found = urls.has_member_of_length(state, least, most);
                assert!(found.is_none_or(|found| found == tried), "{prefix:?} {least} {most}");
            }
            let found = urls.has_member_of_length(state, 100, 100);
            assert_eq!(found, Some(true), "{prefix:?}");
        }
    }
}
