//! An index of the property names, or parts of them, that a vocabulary's tokens contain.

use formalm_core::ByteSet;
use rustc_hash::FxHashSet;

/// The parts of JSON property names that tokens of a vocabulary contain.
#[derive(Clone, Debug, Default)]
pub struct NameTokens {
    joins: bool,
    /// What tokens contain behind a comma and whitespace, by the whitespace.
    commas: Vec<(Box<[u8]>, NameStarts)>,
    /// The whitespace of tokens between a colon and a further byte.
    colons: Vec<Box<[u8]>>,
    /// The parts of tokens before a quote that closes a name, and their first bytes.
    ends: FxHashSet<Box<[u8]>>,
    first: ByteSet,
    /// The parts of tokens between two quotes.
    quoted: FxHashSet<Box<[u8]>>,
    reaches_values: bool,
    opens_names: bool,
}

/// The first bytes of names behind a quote; `None` if a token contains a whole name and its colon.
type NameStarts = Option<ByteSet>;

impl NameTokens {
    /// Indexes the bytes of tokens.
    pub fn new<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> NameTokens {
        let mut names = NameTokens::default();
        for token in tokens {
            let marks = token.iter().enumerate().filter(|(_, byte)| b",:".contains(byte));
            for (at, &mark) in marks {
                let (before, after) = (token[..at].trim_ascii_end(), &token[at + 1..]);
                if mark == b',' {
                    names.record_after_comma(after);
                } else if matches!(before.last(), None | Some(b'"')) {
                    names.record_after_colon(after);
                }
            }
            if !token.contains(&b'"') {
                continue;
            }
            names.joins |= spans_names(token);
            names.opens_names |= opens_name(token);
            for at in (0..token.len()).filter(|&at| token[at] == b'"') {
                let inside = &token[at + 1..];
                let Some(end) = closing_quote(inside) else { continue };
                names.quoted.insert(inside[..end].into());
                let after = inside[end + 1..].trim_ascii_start();
                names.reaches_values |= after
                    .strip_prefix(b":")
                    .is_some_and(|value| !value.trim_ascii_start().is_empty());
            }
            let Some(quote) = closing_quote(token) else { continue };
            if let Some(&first) = token[..quote].first() {
                names.first.insert(first);
            }
            names.ends.insert(token[..quote].into());
        }
        names
    }

    /// Records what follows a comma in a token: whitespace, and maybe a quote and a part of a name.
    fn record_after_comma(&mut self, after: &[u8]) {
        let next = after.trim_ascii_start();
        let Some((&first, name)) = next.split_first() else { return };
        let gap = &after[..after.len() - next.len()];
        let known = self.commas.iter().position(|(known, _)| **known == *gap);
        let at = known.unwrap_or_else(|| {
            self.commas.push((gap.into(), Some(ByteSet::default())));
            self.commas.len() - 1
        });
        if first != b'"' {
            return;
        }
        let starts = &mut self.commas[at].1;
        let quotes = (0..name.len()).filter(|&at| name[at] == b'"');
        let has_colon = |at: usize| name[at + 1..].trim_ascii_start().first() == Some(&b':');
        if quotes.into_iter().any(has_colon) {
            *starts = None;
        }
        if let (Some(starts), Some(&first)) = (starts, name.first()) {
            starts.insert(first);
        }
    }

    /// Records the whitespace that follows a colon in a token, if anything comes after it.
    fn record_after_colon(&mut self, after: &[u8]) {
        let value = after.trim_ascii_start();
        let gap = &after[..after.len() - value.len()];
        if !value.is_empty() && !self.colons.iter().any(|known| **known == *gap) {
            self.colons.push(gap.into());
        }
    }

    /// Returns `true` if a token may close one name and open the next: `":0,"x`.
    pub fn some_span_names(&self) -> bool {
        self.joins
    }

    /// Returns the first bytes of name parts that follow a comma, whitespace that `fits` and a quote
    /// in a token: `x` of `,"x`. Returns `None` if a token also contains the name's end and a colon.
    pub fn first_name_bytes(&self, fits: impl Fn(&[u8]) -> bool) -> Option<ByteSet> {
        let mut fitting = self.commas.iter().filter(|(gap, _)| fits(gap));
        fitting.try_fold(ByteSet::default(), |all, (_, starts)| Some(all.union((*starts)?)))
    }

    /// Returns `true` if a token contains a comma, whitespace that `fits`, and a further byte.
    pub fn some_reach_beyond_comma(&self, fits: impl Fn(&[u8]) -> bool) -> bool {
        self.commas.iter().any(|(gap, _)| fits(gap))
    }

    /// Returns `true` if a token contains a colon at its beginning or behind a quote, whitespace
    /// that `fits`, and a further byte.
    pub fn some_reach_beyond_colon(&self, fits: impl Fn(&[u8]) -> bool) -> bool {
        self.colons.iter().any(|gap| fits(gap))
    }

    /// Returns `true` if a token has a string that begins with this byte before a closing quote.
    #[inline]
    pub fn may_close_after_byte(&self, byte: u8) -> bool {
        self.first.contains(byte)
    }

    /// Returns `true` if a token begins with the raw string `text` and a closing quote.
    pub fn closes_after(&self, text: &[u8]) -> bool {
        match text.first() {
            Some(&first) => self.may_close_after_byte(first) && self.ends.contains(text),
            None => true,
        }
    }

    /// Returns `true` if a token may contain a whole name, a colon and the beginning of a value.
    pub fn some_reach_values(&self) -> bool {
        self.reaches_values
    }

    /// Returns `true` if a token may open an object and contain a part of its first name.
    pub fn some_open_names(&self) -> bool {
        self.opens_names
    }

    /// Returns `true` if a token contains the raw string `text` between two quotes.
    pub fn contains_quoted(&self, text: &[u8]) -> bool {
        self.quoted.contains(text)
    }
}

/// Returns the index of the first quote that is not escaped.
fn closing_quote(token: &[u8]) -> Option<usize> {
    let mut escaped = false;
    token.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Returns `true` if a token has a brace where a value may begin, a quote and a further byte.
fn opens_name(token: &[u8]) -> bool {
    let braces = (0..token.len()).filter(|&at| token[at] == b'{');
    braces.into_iter().any(|at| {
        let (before, after) = (token[..at].trim_ascii_end(), token[at + 1..].trim_ascii_start());
        let begins = before.last().is_none_or(|last| b"[:,".contains(last));
        begins && after.len() > 1 && after[0] == b'"'
    })
}

fn spans_names(token: &[u8]) -> bool {
    let mut parts = token;
    for mark in b"\":,\"" {
        match parts.iter().position(|byte| byte == mark) {
            Some(at) => parts = &parts[at + 1..],
            None => return false,
        }
    }
    !parts.is_empty()
}

#[cfg(test)]
mod tests {
    use super::NameTokens;

    fn of(tokens: &[&str]) -> NameTokens {
        NameTokens::new(tokens.iter().map(|token| token.as_bytes()))
    }

    #[test]
    fn tokens_that_open_or_close_names_are_indexed() {
        let names = of(&["a", "b\"", "c\\\"d\":", ", \"x", "\":1,\"", " \"id\": "]);
        assert!(names.contains_quoted(b"id") && names.contains_quoted(b":1,"));
        assert!(!names.contains_quoted(b"b") && !names.contains_quoted(b"x"));
        assert!(!names.some_reach_values() && of(&["{\"id\": 1"]).some_reach_values());
        assert!(!names.some_span_names());
        assert!(
            names.closes_after(b"b") && names.closes_after(b"c\\\"d") && names.closes_after(b"")
        );
        assert!(
            !names.closes_after(b"a") && !names.closes_after(b"c\\") && !names.closes_after(b"bb")
        );
        let begins = names.first_name_bytes(|gap| gap == b" ").expect("no colon behind a name");
        assert!(begins.contains(b'x') && begins.len() == 1);
    }

    #[test]
    fn tokens_that_open_an_object_and_a_name_are_detected() {
        for token in ["{\"x", " {\"x", "[{ \"\\", "\": {\"x\"", "}, {\"\""] {
            assert!(of(&["a", token]).some_open_names(), "{token}");
        }
        // Nothing follows the quote, or no value begins there.
        for token in ["{\"", "[{\"", "={\"/", "{x\"", "\"{\"}", "{}\"x"] {
            assert!(!of(&[token]).some_open_names(), "{token}");
        }
    }

    #[test]
    fn tokens_that_span_whole_names_are_detected() {
        assert!(of(&["\":0,\"x"]).some_span_names());
        assert!(!of(&["\":0,\""]).some_span_names());
        assert_eq!(of(&[",\"x\": "]).first_name_bytes(|_| true), None);
        assert!(of(&[",\"x\""]).first_name_bytes(|_| true).is_some());
    }

    #[test]
    fn what_tokens_contain_depends_on_the_whitespace_between() {
        let names = of(&["\":", "\": ", ": 1", "a: b", "\" :\n[", ", ", ",\n\"y", ", [", "\",\""]);
        let values = |gap: &str| names.some_reach_beyond_colon(|one| one == gap.as_bytes());
        assert!(values(" ") && values("\n") && !values("") && !values("  "));
        let commas = |gap: &str| names.some_reach_beyond_comma(|one| one == gap.as_bytes());
        assert!(commas("") && commas(" ") && commas("\n") && !commas("\t"));
        let starts = |gap: &str| names.first_name_bytes(|one| one == gap.as_bytes());
        assert!(starts("\n").is_some_and(|starts| starts.contains(b'y') && starts.len() == 1));
        assert!([" ", ""].iter().all(|gap| starts(gap).is_some_and(|starts| starts.is_empty())));
        // A colon inside a text has no quote before it.
        assert!(!of(&["a: b", "http://x"]).some_reach_beyond_colon(|_| true));
    }
}
