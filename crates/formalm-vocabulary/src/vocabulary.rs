//! Token id → bytes.

use std::any::Any;
use std::fmt::{self, Debug, Write as _};
use std::sync::Arc;

use formalm_automata::pool;
use formalm_automata::spelling::Escapes;
use formalm_automata::{CharSet, Cover, SetOnce, TokenNames, WIDE_PARTS};
use sha2::{Digest, Sha256};

use crate::Words;
use crate::class_mask_cache::Stays;
use crate::json_string_tokens::Strings;
use crate::token_bytes::Tokens;
use crate::{Classes, Error, Trie};

/// The bytes of every token id, which ids end a text, and the tables for masks. Immutable; clones
/// share everything.
#[derive(Clone)]
pub struct Vocabulary {
    tokens: Arc<Tokens>,
    tables: Arc<Tables>,
    end_token_ids: Arc<[u32]>,
    fingerprint: Arc<str>,
    /// The same without the bytes of special tokens, if some have them.
    plain: Option<Arc<Vocabulary>>,
}

/// Tokens below which the caller's thread makes all tables: about a millisecond of work.
const SMALL: usize = 4_096;

#[derive(Debug)]
struct Tables {
    trie: Trie,
    classes: Classes,
    longest_bytes: usize,
    stays: Stays,
    names: SetOnce<Arc<TokenNames>>,
    joins_items: SetOnce<Box<[u32]>>,
    whole_items: SetOnce<Box<[u32]>>,
    /// By how strings are spelled.
    strings: [SetOnce<Strings>; 3],
    opened: [SetOnce<Strings>; 3],
    beside: SetOnce<Box<dyn Beside>>,
}

/// What others keep beside a vocabulary: whatever depends on its tokens alone.
pub trait Beside: Any + Debug + Send + Sync {
    /// Memory in use, in bytes.
    fn memory_bytes(&self) -> usize;
}

impl Vocabulary {
    /// A vocabulary from the bytes of each id; `None` is a special token.
    ///
    /// A token of no bytes would make no progress, so it counts as special, and so does an end
    /// token whatever its bytes; both are reported in [`Vocabulary::notes`]. Several ids may have
    /// the same bytes: they get the same verdict.
    ///
    /// # Errors
    ///
    /// No ids, no token with bytes, an end token that is not an id, or sizes beyond our limits.
    pub fn from_tokens(
        tokens: Vec<Option<Vec<u8>>>,
        end_token_ids: Vec<u32>,
    ) -> Result<Vocabulary, Error> {
        let given = tokens.iter().map(Option::as_deref);
        Vocabulary::build(Tokens::new(given)?, end_token_ids)
    }

    /// The same, with names of special tokens and sentences for [`Vocabulary::notes`].
    ///
    /// # Errors
    ///
    /// Those of [`Vocabulary::from_tokens`], and a name for something that is not an id.
    pub fn from_named_tokens(
        tokens: Vec<Option<Vec<u8>>>,
        end_token_ids: Vec<u32>,
        mut names: Vec<(String, u32)>,
        notes: Vec<String>,
    ) -> Result<Vocabulary, Error> {
        let mut tokens = Tokens::new(tokens.iter().map(Option::as_deref))?;
        if let Some((name, id)) = names.iter().find(|(_, id)| *id as usize >= tokens.len()) {
            return Err(Error::new(format!("{name:?} names {id}, which is not an id")));
        }
        names.sort_by_key(|(_, id)| *id);
        tokens.names = names;
        tokens.notes.splice(0..0, notes);
        Vocabulary::build(tokens, end_token_ids)
    }

    /// The same with the ends of text replaced. The tables are shared unless an end token has
    /// bytes, which it loses.
    ///
    /// # Errors
    ///
    /// An end token that is not an id.
    pub fn with_end_token_ids(&self, end_token_ids: Vec<u32>) -> Result<Vocabulary, Error> {
        let ends = checked_ends(end_token_ids, self.len())?;
        if ends.iter().any(|&id| self.token_bytes(id).is_some()) {
            return Vocabulary::build(Tokens::clone(&self.tokens), ends);
        }
        Ok(Vocabulary {
            fingerprint: fingerprint(&self.tokens, &ends).into(),
            end_token_ids: ends.into(),
            ..self.clone()
        })
    }

    /// Checks the parts and makes the tables.
    pub(crate) fn build(mut tokens: Tokens, ends: Vec<u32>) -> Result<Vocabulary, Error> {
        let ends = checked_ends(ends, tokens.len())?;
        if ends.iter().any(|&id| tokens.get(id).is_some()) {
            tokens = tokens.without(&ends);
        }
        if tokens.bytes.is_empty() {
            return Err(Error::new("no token has bytes").hint(
                "a vocabulary needs at least one token that is not special; `None` marks special ones",
            ));
        }
        Ok(Vocabulary {
            tables: Arc::new(Tables::new(&tokens)),
            fingerprint: fingerprint(&tokens, &ends).into(),
            end_token_ids: ends.into(),
            tokens: Arc::new(tokens),
            plain: None,
        })
    }

    /// This vocabulary with other bytes, where special tokens have some.
    pub(crate) fn build_special(&self, tokens: Tokens) -> Result<Vocabulary, Error> {
        let made = Vocabulary::build(tokens, self.end_token_ids().to_vec())?;
        Ok(Vocabulary { plain: Some(Arc::new(self.clone())), ..made })
    }

    /// The same in which special tokens have no bytes.
    pub fn plain(&self) -> &Vocabulary {
        self.plain.as_deref().unwrap_or(self)
    }

    /// Whether special tokens have bytes: [`Vocabulary::with_special`].
    #[inline]
    pub fn has_special(&self) -> bool {
        self.plain.is_some()
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Number of ids: one more than the largest.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a vocabulary is never empty")]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The bytes of a token; `None` for a special token and beyond the last id.
    #[inline]
    pub fn token_bytes(&self, token_id: u32) -> Option<&[u8]> {
        self.tokens.get(token_id)
    }

    /// Ids that end a text, ascending.
    #[inline]
    pub fn end_token_ids(&self) -> &[u32] {
        &self.end_token_ids
    }

    /// Whether an id ends a text.
    #[inline]
    pub fn is_end(&self, token_id: u32) -> bool {
        self.end_token_ids.binary_search(&token_id).is_ok()
    }

    /// Ids without bytes, ascending: special tokens, ends of text, ids that no token has.
    pub fn special_token_ids(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len() as u32).filter(|&id| self.token_bytes(id).is_none())
    }

    /// Names of special tokens and their ids, in order of ids, where the file gave them.
    pub fn special_tokens(&self) -> &[(String, u32)] {
        &self.tokens.names
    }

    /// What a user should know about how the tokens were read, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.tokens.notes
    }

    /// The prefix tree of the tokens.
    #[inline]
    pub fn trie(&self) -> &Trie {
        &self.tables.trie
    }

    /// The tokens by the characters they have.
    #[inline]
    pub fn classes(&self) -> &Classes {
        &self.tables.classes
    }

    /// The bitmask of the tokens within a set of characters, kept for the next who asks: of whole
    /// characters, and of an unfinished last one if the set has every character beyond ASCII.
    ///
    /// The set has the ASCII characters `ascii`; beyond ASCII it has those of `class`, which is so
    /// much of each of the [`formalm_automata::wide_parts`].
    pub fn stay(&self, ascii: u128, wide: [Cover; WIDE_PARTS], class: &CharSet) -> Arc<Words> {
        let tables = (&*self.tokens, &self.tables.classes);
        self.tables.stays.get(tables, ascii, wide, class)
    }

    /// Bytes of the longest token.
    #[inline]
    pub fn longest_token_bytes(&self) -> usize {
        self.tables.longest_bytes
    }

    /// What tokens do inside a string of JSON.
    pub fn strings(&self, escapes: Escapes) -> &Strings {
        self.tables.strings[escapes as usize].get_or_init(|| Strings::new(&self.tokens, escapes))
    }

    /// What tokens that begin with the quote that opens a string of JSON do behind it.
    pub fn opened(&self, escapes: Escapes) -> &Strings {
        self.tables.opened[escapes as usize].get_or_init(|| Strings::opened(&self.tokens, escapes))
    }

    /// What is kept beside the vocabulary, made when it is first asked for; `None` if that is of
    /// another type.
    pub fn beside<T: Beside + Default>(&self) -> Option<&T> {
        let kept: &dyn Any = &**self.tables.beside.get_or_init(|| Box::<T>::default());
        kept.downcast_ref()
    }

    /// What tokens know of the names of JSON objects.
    pub fn names(&self) -> &Arc<TokenNames> {
        self.tables
            .names
            .get_or_init(|| Arc::new(TokenNames::new(self.tokens.iter().map(|(_, bytes)| bytes))))
    }

    /// Tokens that may end an item of a JSON array and go on inside of another text, object or
    /// array: `","x`.
    pub fn joins_items(&self) -> &[u32] {
        self.tables.joins_items.get_or_init(|| self.with_comma(&|_| true))
    }

    /// Of these the tokens that may have a whole text, object or array in front of a comma, and so
    /// of two items the first from its beginning: `"","x`.
    pub fn whole_items(&self) -> &[u32] {
        self.tables.whole_items.get_or_init(|| {
            self.with_comma(&|before| {
                let Some((last, rest)) = before.trim_ascii_end().split_last() else { return false };
                let first = match last {
                    b'"' => b'"',
                    b']' => b'[',
                    b'}' => b'{',
                    _ => return false,
                };
                rest.contains(&first)
            })
        })
    }

    /// Tokens in which a comma is, behind something and in front of more than the first byte of a
    /// text, object or array.
    fn with_comma(&self, behind: &dyn Fn(&[u8]) -> bool) -> Box<[u32]> {
        let joins = |bytes: &[u8]| {
            let commas = (0..bytes.len()).filter(|&at| bytes[at] == b',');
            commas.into_iter().any(|at| {
                let rest = bytes[at + 1..].trim_ascii_start();
                rest.len() > 1 && matches!(rest[0], b'"' | b'[' | b'{') && behind(&bytes[..at])
            })
        };
        let all = self.tokens.iter().filter(|(_, bytes)| joins(bytes));
        all.map(|(token, _)| token).collect()
    }

    /// Characters of the longest token that is text, an unfinished one at its end included.
    #[inline]
    pub fn longest_token_characters(&self) -> usize {
        self.tables.classes.longest_characters()
    }

    /// Hex digest of token bytes and end tokens: equal fingerprint, equal masks.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.tokens.bytes.len()
            + 4 * self.tokens.offsets.len()
            + self.tables.trie.memory_bytes()
            + self.tables.classes.memory_bytes()
            + self
                .tables
                .strings
                .iter()
                .chain(&self.tables.opened)
                .filter_map(SetOnce::get)
                .map(Strings::memory_bytes)
                .sum::<usize>()
            + self.tables.beside.get().map_or(0, |kept| kept.memory_bytes())
    }
}

/// Its size and fingerprint; nobody wants to see all tables.
impl fmt::Debug for Vocabulary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Vocabulary")
            .field("len", &self.len())
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

impl Tables {
    fn new(tokens: &Tokens) -> Tables {
        let list: Vec<(u32, &[u8])> = tokens.iter().collect();
        let longest_bytes = list.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or_default();
        let trie = || Trie::new(&list, tokens.len());
        let classes = || Classes::new(&list, tokens.len());
        let (trie, classes) =
            if list.len() < SMALL { (trie(), classes()) } else { pool::join(trie, classes) };
        let (stays, names, joins_items, whole_items) = Default::default();
        let (strings, opened, beside) = Default::default();
        Tables {
            trie,
            classes,
            longest_bytes,
            stays,
            names,
            joins_items,
            whole_items,
            strings,
            opened,
            beside,
        }
    }
}

/// End tokens in ascending order, each once.
fn checked_ends(mut ends: Vec<u32>, len: usize) -> Result<Vec<u32>, Error> {
    ends.sort_unstable();
    ends.dedup();
    match ends.last() {
        Some(&id) if id as usize >= len => {
            Err(Error::new(format!("end token {id} is not in the vocabulary"))
                .hint(format!("ids are 0 to {}", len - 1)))
        }
        _ => Ok(ends),
    }
}

/// A digest of what masks depend on.
fn fingerprint(tokens: &Tokens, ends: &[u32]) -> String {
    let mut digest = Sha256::new();
    let mut part = |numbers: &[u32]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    part(&tokens.offsets);
    part(ends);
    digest.update(&tokens.bytes);
    digest.finalize().iter().take(16).fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
