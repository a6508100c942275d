//! What tokens know of the names of JSON objects.

use rustc_hash::FxHashSet;

use crate::ByteSet;

/// How much of names the tokens of a vocabulary have.
#[derive(Clone, Debug, Default)]
pub struct TokenNames {
    joins: bool,
    begins: Option<ByteSet>,
    /// What tokens have in front of a quote that ends a name, and the first bytes of that.
    ends: FxHashSet<Box<[u8]>>,
    first: ByteSet,
}

impl TokenNames {
    /// Looks through the bytes of tokens.
    pub fn new<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> TokenNames {
        let mut names = TokenNames { begins: Some(ByteSet::default()), ..TokenNames::default() };
        for token in tokens.filter(|token| token.contains(&b'"')) {
            names.joins |= spans_names(token);
            for at in (0..token.len()).filter(|&at| token[at] == b',') {
                if let Some((b'"', name)) = token[at + 1..].trim_ascii_start().split_first() {
                    names.record_name_start(name);
                }
            }
            let Some(quote) = closing_quote(token) else { continue };
            if let Some(&first) = token[..quote].first() {
                names.first.insert(first);
            }
            names.ends.insert(token[..quote].into());
        }
        names
    }

    /// Notes what a token has of a name behind a comma and a quote.
    fn record_name_start(&mut self, name: &[u8]) {
        let quotes = (0..name.len()).filter(|&at| name[at] == b'"');
        let has_colon = |at: usize| name[at + 1..].trim_ascii_start().first() == Some(&b':');
        if quotes.into_iter().any(has_colon) {
            self.begins = None;
        }
        if let (Some(begins), Some(&first)) = (&mut self.begins, name.first()) {
            begins.insert(first);
        }
    }

    /// Whether a token may end one name and begin the next: `":0,"x`.
    pub fn joins(&self) -> bool {
        self.joins
    }

    /// The first bytes of what tokens have of a name behind a comma and its quote: `x` of `,"x`.
    /// `None` if some have the name's end and a colon too.
    pub fn begins(&self) -> Option<ByteSet> {
        self.begins
    }

    /// Whether a token has a text with this first byte in front of a quote.
    #[inline]
    pub fn ends_from(&self, byte: u8) -> bool {
        self.first.contains(byte)
    }

    /// Whether a token begins with some text, as it is spelled, and a quote behind it.
    pub fn ends(&self, text: &[u8]) -> bool {
        match text.first() {
            Some(&first) => self.ends_from(first) && self.ends.contains(text),
            None => true,
        }
    }
}

/// Where the first quote is that no backslash is in front of.
fn closing_quote(token: &[u8]) -> Option<usize> {
    let mut escaped = false;
    token.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
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
    use super::TokenNames;

    fn of(tokens: &[&str]) -> TokenNames {
        TokenNames::new(tokens.iter().map(|token| token.as_bytes()))
    }

    #[test]
    fn tokens_that_open_or_close_names_are_indexed() {
        let names = of(&["a", "b\"", "c\\\"d\":", ", \"x", "\":1,\""]);
        assert!(!names.joins());
        assert!(names.ends(b"b") && names.ends(b"c\\\"d") && names.ends(b""));
        assert!(!names.ends(b"a") && !names.ends(b"c\\") && !names.ends(b"bb"));
        let begins = names.begins().expect("no token has a colon behind a name");
        assert!(begins.contains(b'x') && begins.len() == 1);
    }

    #[test]
    fn tokens_that_span_whole_names_are_detected() {
        assert!(of(&["\":0,\"x"]).joins());
        assert!(!of(&["\":0,\""]).joins());
        assert_eq!(of(&[",\"x\": "]).begins(), None);
        assert!(of(&[",\"x\""]).begins().is_some());
    }
}
