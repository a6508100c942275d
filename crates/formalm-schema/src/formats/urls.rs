//! URLs with hosts of the internet: a pattern, and what no pattern says of encoded labels.
//!
//! A regular machine reads the pattern, for which an encoded label (`xn--`) is like any other. Beside
//! it the host is followed, from the end of the scheme or of the user on, and refuses what does not
//! decode ([`Domains`]). What stands before `@` may be the name of a user as well as a host, so a host
//! that is wrong lives on as long as the pattern takes an `@`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use formalm_automata::deadline::without_deadline;
use formalm_automata::{
    Automaton, AutomatonLimits, CharRecognizer, Error, Expression, ForkSafeMutex, Machine,
    RepresentativeState, StateId,
};
use rustc_hash::FxHashMap;

use super::idna::{Domain, Domains, StateInterner};

/// Schemes whose hosts are names of the internet.
const SPECIAL: [&str; 6] = ["file", "ftp", "http", "https", "ws", "wss"];

/// Characters that what follows a scheme misses at most, wherever it was begun: an address of
/// version 6 and brackets (17), or an encoded label (11).
const FAR: u32 = 64;

/// Parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// A scheme that may be one of the internet.
    Scheme(String),
    /// Any other.
    OtherScheme,
    /// The slashes after a scheme of the internet, so many of them.
    Slashes(usize),
    Host(Host),
    /// What the pattern says all of.
    Rest,
}

/// What stands between the slashes, or the user, and what follows the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Host {
    Name(Domain),
    /// An address in brackets, or what follows a host.
    Over,
    /// No host; what may still be a user.
    Wrong,
}

/// A beginning of a URL: the state of the pattern, and the part.
type Place = (StateId, Part);

/// Reads URLs.
#[derive(Debug)]
pub(crate) struct Urls {
    pattern: Arc<Automaton>,
    domains: Arc<Domains>,
    /// Whether commas separate several hosts.
    is_multiple: bool,
    places: StateInterner<Place>,
    /// Bytes that the pattern misses, by its states.
    least: Arc<ForkSafeMutex<FxHashMap<StateId, u32>>>,
    /// Whether the pattern met a limit.
    gave_up: Arc<AtomicBool>,
}

impl Urls {
    /// The URLs that match a pattern; `None` if there are none.
    pub(crate) fn of(pattern: &Expression, is_multiple: bool) -> Result<Option<Urls>, Error> {
        let Some(pattern) = Automaton::of(pattern, AutomatonLimits::default())? else {
            return Ok(None);
        };
        Ok(Some(Urls {
            pattern: Arc::new(pattern),
            domains: Arc::new(Domains::new()?),
            is_multiple,
            places: StateInterner::default(),
            least: Arc::default(),
            gave_up: Arc::default(),
        }))
    }

    fn known<T>(&self, answer: Result<T, Error>) -> Option<T> {
        if answer.is_err() {
            self.gave_up.store(true, Ordering::Relaxed);
        }
        answer.ok()
    }

    /// The state of the pattern after a character of ASCII. A deadline that ends a step looks like a
    /// refusal here; the limits of the pattern bound it.
    fn matched(&self, state: StateId, c: char) -> Option<StateId> {
        let byte = u8::try_from(c).ok().filter(u8::is_ascii)?;
        self.known(without_deadline(|| self.pattern.step(state, byte)))?
    }

    /// The part after one more character; `None` where a host ends that is none.
    fn part_after(&self, part: &Part, c: char) -> Option<Part> {
        Some(match part {
            Part::Scheme(scheme) if c == ':' => match SPECIAL.contains(&scheme.as_str()) {
                true => Part::Slashes(0),
                false => Part::Rest,
            },
            Part::Scheme(scheme) => {
                let scheme = format!("{scheme}{c}");
                match SPECIAL.iter().any(|one| one.starts_with(&scheme)) {
                    true => Part::Scheme(scheme),
                    false => Part::OtherScheme,
                }
            }
            Part::OtherScheme if c == ':' => Part::Rest,
            Part::OtherScheme => Part::OtherScheme,
            Part::Slashes(0) => Part::Slashes(1),
            Part::Slashes(_) => Part::Host(Host::Name(Domain::start())),
            Part::Host(host) => return self.host_after(host, c),
            Part::Rest => Part::Rest,
        })
    }

    fn host_after(&self, host: &Host, c: char) -> Option<Part> {
        let is_comma = self.is_multiple && c == ',';
        if is_comma || matches!(c, '/' | '?' | '#') {
            let next = if is_comma { Part::Host(Host::Name(Domain::start())) } else { Part::Rest };
            return self.is_complete(host).then_some(next);
        }
        Some(Part::Host(match (host, c) {
            (_, '@') => Host::Name(Domain::start()),
            (Host::Name(domain), ':') if self.domains.is_complete(domain) => Host::Over,
            (Host::Name(domain), '[') if *domain == Domain::start() => Host::Over,
            (Host::Name(domain), _) => {
                self.domains.after(domain, c).map_or(Host::Wrong, Host::Name)
            }
            (Host::Over, _) => Host::Over,
            (Host::Wrong, _) => Host::Wrong,
        }))
    }

    fn is_complete(&self, host: &Host) -> bool {
        match host {
            Host::Name(domain) => self.domains.is_complete(domain),
            Host::Over => true,
            Host::Wrong => false,
        }
    }

    fn after(&self, (state, part): &Place, c: char) -> Option<Place> {
        let state = self.matched(*state, c)?;
        let part = self.part_after(part, c)?;
        // A user ends with any `@`.
        let is_wrong = part == Part::Host(Host::Wrong);
        (!is_wrong || self.matched(state, '@').is_some()).then_some((state, part))
    }

    /// Bytes that the pattern misses.
    fn pattern_misses(&self, state: StateId) -> u32 {
        if let Some(&least) = self.least.lock().get(&state) {
            return least;
        }
        let least = self.known(without_deadline(|| self.pattern.min_bytes(state)));
        let least = least.map_or(0, |least| u32::try_from(least).unwrap_or(u32::MAX));
        self.least.lock().insert(state, least);
        least
    }

    fn is_member(&self, (state, part): &Place) -> bool {
        let is_complete = !matches!(part, Part::Host(host) if !self.is_complete(host));
        is_complete && self.pattern.is_accepting(*state)
    }
}

impl CharRecognizer for Urls {
    fn start(&self) -> u32 {
        self.places.intern((Machine::start(&*self.pattern), Part::Scheme(String::new())))
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        let next = self.after(&self.places.get(state), character)?;
        Some(self.places.intern(next))
    }

    fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
        false
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.is_member(&self.places.get(state))
    }

    fn ascii_span(&self, state: u32, character: u8) -> (u8, u8) {
        let place = self.places.get(state);
        if matches!(&place.1, Part::Host(Host::Name(domain)) if !domain.is_free()) {
            return (character, character);
        }
        let next = self.after(&place, character.into());
        let is_alike = |&byte: &u8| self.after(&place, byte.into()) == next;
        let low = (0..character).rev().take_while(is_alike).last();
        let high = (character + 1..0x80).take_while(is_alike).last();
        (low.unwrap_or(character), high.unwrap_or(character))
    }

    fn representative(&self, state: u32) -> Option<RepresentativeState<u32>> {
        let (matched, part) = self.places.get(state);
        // Schemes may be of any length.
        let far = match part {
            Part::Scheme(_) | Part::OtherScheme => u32::MAX,
            _ => FAR,
        };
        let (state, part, anywhere, most) = match &part {
            Part::Host(Host::Name(domain)) => match domain.within_encoded() {
                Some((_, 0)) => return None,
                Some((domain, most)) => {
                    let part = Part::Host(Host::Name(domain));
                    // What no label has ends this one, or is refused here and after more of it.
                    let is_letter = |byte: u8| {
                        self.domains.has_letter(byte.into()) && !(self.is_multiple && byte == b',')
                    };
                    let is_read = |byte: u8| self.matched(matched, byte.into()).is_some();
                    let anywhere = (0..0x80).filter(|&byte| !is_letter(byte) && is_read(byte));
                    let anywhere = anywhere.fold(0, |set, byte| set | 1 << byte);
                    let state = self.places.intern((matched, part.clone()));
                    (state, part, anywhere, most as u32)
                }
                None => (state, part, 0, u32::MAX),
            },
            _ => (state, part, 0, u32::MAX),
        };
        let name = format!("{} {part:?}", matched.number());
        Some(RepresentativeState {
            state,
            name,
            excluded_first: 0,
            excluded_anywhere: anywhere,
            max_chars: most,
            max_completion_chars: far,
        })
    }

    fn has_member_of_length(&self, state: u32, least: u32, most: u32) -> Option<bool> {
        if self.search_min_chars(state) > most {
            return Some(false);
        }
        let (matched, part) = self.places.get(state);
        let is_free = match &part {
            Part::Host(Host::Name(domain)) => domain.is_free(),
            _ => true,
        };
        // A host that is not complete misses a letter, a user an `@` and a host. Any URL goes on
        // with more characters of its last part, or with a path.
        let ends = self.pattern_misses(matched) + if is_free { 2 } else { FAR };
        (most >= ends.max(least)).then_some(true)
    }

    fn ascii_letters(&self) -> u128 {
        !0 << b' ' & !(1 << 0x7F)
    }

    fn min_chars(&self, state: u32) -> u32 {
        let place = self.places.get(state);
        self.pattern_misses(place.0).max(u32::from(!self.is_member(&place)))
    }

    fn search_min_chars(&self, state: u32) -> u32 {
        let missing = match &self.places.get(state).1 {
            // Unless this is a user, which ends with one character and a host of one.
            Part::Host(Host::Name(domain)) => self.domains.missing(domain).min(2),
            _ => 0,
        };
        self.min_chars(state).max(missing)
    }

    fn losses(&self) -> u32 {
        self.places.losses() + u32::from(self.pattern.is_abandoned())
    }

    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        // Encoded labels are as many as texts.
        Some(Arc::new(Urls {
            pattern: Arc::clone(&self.pattern),
            domains: Arc::clone(&self.domains),
            is_multiple: self.is_multiple,
            places: self.places.clone(),
            least: Arc::clone(&self.least),
            gave_up: Arc::clone(&self.gave_up),
        }))
    }

    fn hit_limit(&self) -> bool {
        self.gave_up.swap(false, Ordering::Relaxed) | self.domains.gave_up()
    }
}

#[cfg(test)]
mod tests {
    use formalm_automata::syntax::{PatternDialect, PatternFlags, parse};

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

    const BEGINNINGS: [&str; 24] = [
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
    fn encoded_labels_are_decoded() {
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
                // A user may be called so, of letters alone.
                let is_user = !host.contains(['1', '4']);
                assert_eq!(is_member(&format!("{text}@a")), is_user, "{host}");
            }
        }
    }

    #[test]
    fn long_labels_are_as_long_as_the_crate_takes_them() {
        let urls = urls();
        let read = |code: &str| read(&urls, urls.start(), &format!("ws://xn--{code}"));
        let is_member = |code: &str| read(code).is_some_and(|state| urls.is_accepting(state));
        let many = |count: usize| format!("tda{}", "a".repeat(count - 1));
        assert!(is_member(&many(1000)) && !is_member(&many(1001)));
        let ascii = |count: usize| "b".repeat(count);
        assert!(read(&ascii(998)).is_some() && read(&ascii(999)).is_some());
    }

    #[test]
    fn urls_go_on_as_those_that_they_are_like() {
        let urls = urls();
        let pieces =
            ["a", "-", ".", "/", ":", "@", "xn--", "tda", "_", "%", " ", "#", "1", "[", "s"];
        let mut told = 0;
        for beginning in BEGINNINGS {
            let state = read(&urls, urls.start(), beginning).unwrap();
            for character in 0..0x80_u8 {
                let (low, high) = urls.ascii_span(state, character);
                assert!((low..=high).contains(&character));
                let after = urls.step(state, character.into());
                let is_same = (low..=high).all(|one| urls.step(state, one.into()) == after);
                assert!(is_same, "{beginning:?} {low} {high}");
            }
            let like = urls.representative(state).unwrap();
            for one in pieces {
                for other in pieces {
                    for last in pieces {
                        let text = [one, other, last].concat();
                        if text.bytes().any(|byte| like.excluded_anywhere >> byte & 1 != 0) {
                            continue;
                        }
                        let goes = |from: u32| read(&urls, from, &text).is_some();
                        assert_eq!(goes(state), goes(like.state), "{beginning:?} {text:?}");
                        told += 1;
                    }
                }
            }
        }
        assert!(told > 20_000, "{told}");
    }

    /// Whether a member has so many characters more, by trying all.
    fn goes_on(urls: &Urls, state: u32, least: u32, most: u32) -> bool {
        least == 0 && urls.is_accepting(state)
            || most > 0
                && (b' '..0x7F)
                    .filter_map(|byte| urls.step(state, byte.into()))
                    .any(|next| goes_on(urls, next, least.saturating_sub(1), most - 1))
    }

    #[test]
    fn how_far_members_are_is_what_trying_finds() {
        let urls = urls();
        for beginning in BEGINNINGS {
            let state = read(&urls, urls.start(), beginning).unwrap();
            let needs = urls.search_min_chars(state);
            for (least, most) in [(0, 0), (0, 1), (1, 1), (0, 2)] {
                let tried = goes_on(&urls, state, least, most);
                assert!(!tried || needs <= most, "{beginning:?} misses {needs}");
                let found = urls.has_member_of_length(state, least, most);
                assert!(found.is_none_or(|found| found == tried), "{beginning:?} {least} {most}");
            }
            let found = urls.has_member_of_length(state, 100, 100);
            assert_eq!(found, Some(true), "{beginning:?}");
        }
    }
}
