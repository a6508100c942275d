//! Special tokens inside a language: they get bytes that no other token has.

use formalm_machines::{SPECIAL_BYTE, special_token_bytes};

use crate::token_byte_table::TokenBytes;
use crate::{Error, Vocabulary};

impl Vocabulary {
    /// Returns the vocabulary for a language that contains the special tokens `names`. They are
    /// spelled as [`special_token_bytes`] says. Every other token with the byte [`SPECIAL_BYTE`],
    /// which no valid UTF-8 contains, loses its bytes and is never allowed.
    ///
    /// # Errors
    ///
    /// A name that belongs to no token without bytes, with the closest names as a hint; a token
    /// that ends a text.
    pub fn with_special_tokens(&self, names: &[String]) -> Result<Vocabulary, Error> {
        let mut named: Vec<(u32, &str)> = Vec::with_capacity(names.len());
        for name in names {
            named.push((self.special_token(name)?, name));
        }
        named.sort_unstable();
        let old = self.tokens();
        let mut tokens = TokenBytes { offsets: vec![0], ..TokenBytes::default() };
        let mut lost = Vec::new();
        for id in 0..old.len() as u32 {
            let own = old.get(id).unwrap_or_default();
            match named.binary_search_by_key(&id, |one| one.0) {
                Ok(at) => tokens.push(&special_token_bytes(named[at].1))?,
                Err(_) if own.contains(&SPECIAL_BYTE) => {
                    lost.push(id);
                    tokens.push(&[])?;
                }
                Err(_) => tokens.push(own)?,
            }
        }
        tokens.names.clone_from(&old.names);
        tokens.notes.clone_from(&old.notes);
        tokens.note(
            &lost,
            "with bytes that are never valid UTF-8, never allowed with special tokens",
        );
        self.build_with_special_bytes(tokens)
    }

    /// Returns the id of a special token that may occur inside a text.
    fn special_token(&self, name: &str) -> Result<u32, Error> {
        let all = self.special_tokens();
        let Some(&(_, id)) = all.iter().find(|(own, _)| own == name) else {
            let message = format!("the vocabulary has no special token {name:?}");
            let is_text = (0..self.len() as u32)
                .any(|id| self.token_bytes(id).is_some_and(|bytes| bytes == name.as_bytes()));
            return Err(Error::new(message).hint(match is_text {
                true => "a token with that name is ordinary text: write it as a string".to_owned(),
                false => close_names(name, all.iter().map(|(own, _)| own.as_str())),
            }));
        };
        if self.is_end_token(id) {
            let message =
                format!("the special token {name:?} is an end token, so nothing may follow it");
            return Err(Error::new(message).hint(
                "remove it, since an end token may always follow a member; or create the \
                 vocabulary with other end_token_ids",
            ));
        }
        if self.token_bytes(id).is_some() {
            let message = format!("the token {name:?} has bytes, so it is ordinary text here");
            return Err(Error::new(message).hint("write it as a string"));
        }
        Ok(id)
    }
}

/// Formats the closest known names, or states that there are none.
fn close_names<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let mut near: Vec<(usize, &str)> = all.map(|own| (edit_distance(name, own), own)).collect();
    near.sort_unstable();
    near.truncate(SHOWN);
    match near.is_empty() {
        true => "the names of the vocabulary's special tokens are unknown".to_owned(),
        false => {
            let names: Vec<String> = near.iter().map(|(_, own)| format!("{own:?}")).collect();
            format!("the closest special tokens are {}", names.join(", "))
        }
    }
}

/// Returns the Levenshtein distance of two names, each cut to its first 100 characters.
fn edit_distance(one: &str, other: &str) -> usize {
    const MAX_TOKEN_BYTES: usize = 100;
    let other: Vec<char> = other.chars().take(MAX_TOKEN_BYTES).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().take(MAX_TOKEN_BYTES).enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (place, &own) in other.iter().enumerate() {
            let changed = corner + usize::from(own != letter);
            corner = row[place + 1];
            row[place + 1] = changed.min(corner + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let tokens = [&b"a"[..], b"<|x|>", b"\xfe", b"\xfe<|x|>\xfe", b"<", b"", b"", b""];
        let names = [("<|x|>", 5), ("<|call|>", 6), ("<|end|>", 7), ("<", 4)];
        Vocabulary::from_named_tokens(
            tokens.iter().map(|one| (!one.is_empty()).then(|| one.to_vec())).collect(),
            vec![7],
            names.iter().map(|&(name, id)| (name.to_owned(), id)).collect(),
            Vec::new(),
        )
        .unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn only_named_tokens_have_the_special_byte() {
        let with = vocabulary().with_special_tokens(&["<|x|>".to_owned()]);
        let with = with.unwrap_or_else(|error| panic!("{error}"));
        let all: Vec<Option<&[u8]>> = (0..8).map(|id| with.token_bytes(id)).collect();
        let special: &[u8] = b"\xfe<|x|>\xfe";
        assert_eq!(
            all,
            [Some(&b"a"[..]), Some(b"<|x|>"), None, None, Some(b"<"), Some(special), None, None]
        );
        assert!(with.has_special_bytes() && !vocabulary().has_special_bytes());
        assert_ne!(with.fingerprint(), vocabulary().fingerprint());
        assert_eq!(with.end_token_ids(), [7]);
    }

    #[test]
    fn names_of_other_tokens_are_rejected() {
        let refused = |name: &str| match vocabulary().with_special_tokens(&[name.to_owned()]) {
            Ok(_) => panic!("{name} was taken"),
            Err(error) => (error.message, error.hint.unwrap_or_default()),
        };
        let (message, hint) = refused("<|cal|>");
        assert!(message.contains("<|cal|>") && hint.contains("are \"<|call|>\""), "{hint}");
        assert!(refused("<|end|>").0.contains("is an end token"));
        assert!(refused("<").0.contains("has bytes"));
        assert!(refused("a").1.contains("is ordinary text"));
    }

    #[test]
    fn edit_distances_count_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", "abc"), 0);
    }
}
