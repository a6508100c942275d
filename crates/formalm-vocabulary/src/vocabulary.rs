//! The vocabulary: token id to bytes, end tokens, and the tables that masks are made from.

use std::any::Any;
use std::fmt;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use formalm_core::{CharSet, ClassCover, SetOnce, WIDE_PARTS, pool};
use formalm_json::{NameTokens, escapes::EscapePolicy};
use sha2::{Digest, Sha256};

use crate::character_class_mask_cache::ClassMaskCache;
use crate::json_string_tokens::{JsonStringTokens, StringOpening};
use crate::token_byte_table::TokenBytes;
use crate::{ClassMasks, Error, MaskWords, TokenTrie};

/// The bytes of every token id, the ids that end a text, and the mask tables.
///
/// Immutable; clones share everything.
#[derive(Clone)]
pub struct Vocabulary {
    tokens: Arc<TokenBytes>,
    tables: Arc<VocabularyTables>,
    end_token_ids: Arc<[u32]>,
    fingerprint: Arc<str>,
    /// This vocabulary without the bytes of special tokens, if some have bytes.
    plain: Option<Arc<Vocabulary>>,
}

/// Vocabulary size, in tokens, below which the calling thread builds all tables: about a
/// millisecond of work.
const MIN_PARALLEL_TOKENS: usize = 4_096;

#[derive(Debug)]
struct VocabularyTables {
    trie: TokenTrie,
    classes: ClassMasks,
    longest_bytes: usize,
    class_mask_cache: ClassMaskCache,
    names: SetOnce<Arc<NameTokens>>,
    joins_items: SetOnce<Box<[u32]>>,
    whole_items: SetOnce<Box<[u32]>>,
    /// Indexed by the escapes that strings may use.
    strings: [SetOnce<JsonStringTokens>; 3],
    /// Indexed by what opens the string, and by the escapes.
    opened: [[SetOnce<JsonStringTokens>; 3]; 2],
    extension: SetOnce<Box<dyn VocabularyExtension>>,
}

/// Data that another crate attaches to a vocabulary because it depends on the tokens alone.
pub trait VocabularyExtension: Any + Debug + Send + Sync {
    /// Returns the memory in use, in bytes.
    fn memory_bytes(&self) -> usize;
}

impl Vocabulary {
    /// Builds a vocabulary from the bytes of each id; `None` marks a special token.
    ///
    /// A token of no bytes would make no progress, so it counts as special, and so does an end
    /// token whatever its bytes. Both are reported in [`Vocabulary::notes`]. Several ids may have
    /// the same bytes; they get the same verdict.
    ///
    /// # Errors
    ///
    /// No ids, no token with bytes, an end token that is not an id, or sizes beyond the limits.
    pub fn from_tokens(
        tokens: Vec<Option<Vec<u8>>>,
        end_token_ids: Vec<u32>,
    ) -> Result<Vocabulary, Error> {
        let given = tokens.iter().map(Option::as_deref);
        Vocabulary::build(TokenBytes::new(given)?, end_token_ids)
    }

    /// Builds a vocabulary with names of special tokens and sentences for [`Vocabulary::notes`].
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
        let mut tokens = TokenBytes::new(tokens.iter().map(Option::as_deref))?;
        if let Some((name, id)) = names.iter().find(|(_, id)| *id as usize >= tokens.len()) {
            return Err(Error::new(format!(
                "the name {name:?} refers to {id}, which is not a token id"
            )));
        }
        names.sort_by_key(|(_, id)| *id);
        tokens.names = names;
        tokens.notes.splice(0..0, notes);
        Vocabulary::build(tokens, end_token_ids)
    }

    /// Returns this vocabulary with other end tokens. The tables are shared unless an end token has
    /// bytes, which it loses.
    ///
    /// # Errors
    ///
    /// An end token that is not an id.
    pub fn with_end_token_ids(&self, end_token_ids: Vec<u32>) -> Result<Vocabulary, Error> {
        let ends = checked_end_ids(end_token_ids, self.len())?;
        if ends.iter().any(|&id| self.token_bytes(id).is_some()) {
            return Vocabulary::build(TokenBytes::clone(&self.tokens), ends);
        }
        Ok(Vocabulary {
            fingerprint: fingerprint(&self.tokens, &ends).into(),
            end_token_ids: ends.into(),
            ..self.clone()
        })
    }

    /// Checks the parts and builds the tables.
    pub(crate) fn build(mut tokens: TokenBytes, ends: Vec<u32>) -> Result<Vocabulary, Error> {
        let ends = checked_end_ids(ends, tokens.len())?;
        if ends.iter().any(|&id| tokens.get(id).is_some()) {
            tokens = tokens.without(&ends);
        }
        if tokens.bytes.is_empty() {
            return Err(Error::new("at least one token must have bytes")
                .hint("pass the bytes of every token; `None` marks special tokens"));
        }
        Ok(Vocabulary {
            tables: Arc::new(VocabularyTables::new(&tokens)),
            fingerprint: fingerprint(&tokens, &ends).into(),
            end_token_ids: ends.into(),
            tokens: Arc::new(tokens),
            plain: None,
        })
    }

    /// Builds the variant of this vocabulary in which special tokens have bytes.
    pub(crate) fn build_with_special_bytes(&self, tokens: TokenBytes) -> Result<Vocabulary, Error> {
        let compute_class_mask = Vocabulary::build(tokens, self.end_token_ids().to_vec())?;
        Ok(Vocabulary { plain: Some(Arc::new(self.clone())), ..compute_class_mask })
    }

    /// Returns the vocabulary in which special tokens have no bytes.
    pub fn without_special_bytes(&self) -> &Vocabulary {
        self.plain.as_deref().unwrap_or(self)
    }

    /// Returns `true` if special tokens have bytes; see [`Vocabulary::with_special_tokens`].
    #[inline]
    pub fn has_special_bytes(&self) -> bool {
        self.plain.is_some()
    }

    pub(crate) fn tokens(&self) -> &TokenBytes {
        &self.tokens
    }

    /// Returns the number of ids: one more than the largest.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a vocabulary is never empty")]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the bytes of a token; `None` for a special token and for ids beyond the last.
    #[inline]
    pub fn token_bytes(&self, token_id: u32) -> Option<&[u8]> {
        self.tokens.get(token_id)
    }

    /// Returns the ids that end a text, ascending.
    #[inline]
    pub fn end_token_ids(&self) -> &[u32] {
        &self.end_token_ids
    }

    /// Returns `true` if an id ends a text.
    #[inline]
    pub fn is_end_token(&self, token_id: u32) -> bool {
        self.end_token_ids.binary_search(&token_id).is_ok()
    }

    /// Iterates over the ids without bytes, ascending: special tokens, end tokens, and ids that no
    /// token has.
    pub fn special_token_ids(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len() as u32).filter(|&id| self.token_bytes(id).is_none())
    }

    /// Returns the names and ids of special tokens, by id, as far as the file gave them.
    pub fn special_tokens(&self) -> &[(String, u32)] {
        &self.tokens.names
    }

    /// Returns remarks for the user about how the tokens were read, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.tokens.notes
    }

    /// Returns the prefix tree of the tokens.
    #[inline]
    pub fn trie(&self) -> &TokenTrie {
        &self.tables.trie
    }

    /// Returns the tokens grouped by the characters they contain.
    #[inline]
    pub fn class_masks(&self) -> &ClassMasks {
        &self.tables.classes
    }

    /// Returns the cached bitmask of the tokens within a character class: tokens of whole
    /// characters, and tokens with a partial last character if the class has every character beyond
    /// ASCII.
    ///
    /// The class has the ASCII characters `ascii`. Beyond ASCII it has those of `class`, whose
    /// cover of each of the [`formalm_core::wide_parts`] is `wide`.
    pub fn class_mask(
        &self,
        ascii: u128,
        wide: [ClassCover; WIDE_PARTS],
        class: &CharSet,
    ) -> Arc<MaskWords> {
        let tables = (&*self.tokens, &self.tables.classes);
        self.tables.class_mask_cache.get(tables, (ascii, wide), class, None)
    }

    /// As [`Vocabulary::class_mask`], without the tokens of more than `most` characters, counting a
    /// partial one at the end. Returns `None` if `most > 16`.
    pub fn limited_class_mask(
        &self,
        ascii: u128,
        wide: [ClassCover; WIDE_PARTS],
        class: &CharSet,
        most: u32,
    ) -> Option<Arc<MaskWords>> {
        let tables = (&*self.tokens, &self.tables.classes);
        self.tables.classes.at_most_characters(most as usize)?;
        Some(self.tables.class_mask_cache.get(tables, (ascii, wide), class, Some(most)))
    }

    /// Returns the length of the longest token, in bytes.
    #[inline]
    pub fn longest_token_bytes(&self) -> usize {
        self.tables.longest_bytes
    }

    /// Returns the tokens by their effect inside a JSON string.
    pub fn json_string_tokens(&self, escapes: EscapePolicy) -> &JsonStringTokens {
        self.tables.strings[escapes as usize]
            .get_or_init(|| JsonStringTokens::new(&self.tokens, escapes))
    }

    /// Returns the tokens that open a JSON string, by their effect after the opening quote.
    pub fn string_opening_tokens(
        &self,
        opening: StringOpening,
        escapes: EscapePolicy,
    ) -> &JsonStringTokens {
        self.tables.opened[opening as usize][escapes as usize].get_or_init(|| {
            let tables = (&*self.tokens, &self.tables.trie);
            JsonStringTokens::after_opening(tables, opening, escapes)
        })
    }

    /// Returns the extension attached to the vocabulary, creating it on the first call. Returns
    /// `None` if an extension of another type is attached.
    pub fn extension<T: VocabularyExtension + Default>(&self) -> Option<&T> {
        let kept: &dyn Any = &**self.tables.extension.get_or_init(|| Box::<T>::default());
        kept.downcast_ref()
    }

    /// Returns the table of tokens inside JSON property names.
    pub fn token_names(&self) -> &Arc<NameTokens> {
        self.tables
            .names
            .get_or_init(|| Arc::new(NameTokens::new(self.tokens.iter().map(|(_, bytes)| bytes))))
    }

    /// Returns the tokens that may close an item of a JSON array and continue inside another
    /// string, object or array, such as `","x`.
    pub fn item_joining_tokens(&self) -> &[u32] {
        self.tables.joins_items.get_or_init(|| self.with_comma(&|_| true))
    }

    /// Returns the item-joining tokens that may hold a whole string, object or array before a
    /// comma, and so the first of two items from its beginning, such as `"","x`.
    pub fn whole_item_tokens(&self) -> &[u32] {
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

    /// Returns the tokens with a comma that is preceded by bytes with the property `precedes` and
    /// followed by more than the first byte of a string, object or array.
    fn with_comma(&self, precedes: &dyn Fn(&[u8]) -> bool) -> Box<[u32]> {
        let joins = |bytes: &[u8]| {
            let commas = (0..bytes.len()).filter(|&at| bytes[at] == b',');
            commas.into_iter().any(|at| {
                let rest = bytes[at + 1..].trim_ascii_start();
                rest.len() > 1 && matches!(rest[0], b'"' | b'[' | b'{') && precedes(&bytes[..at])
            })
        };
        let all = self.tokens.iter().filter(|(_, bytes)| joins(bytes));
        all.map(|(token, _)| token).collect()
    }

    /// Returns a hex digest of token bytes and end tokens. Equal fingerprints mean equal masks.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.tokens.bytes.len()
            + 4 * self.tokens.offsets.len()
            + self.tables.trie.memory_bytes()
            + self.tables.classes.memory_bytes()
            + self
                .tables
                .strings
                .iter()
                .chain(self.tables.opened.as_flattened())
                .filter_map(SetOnce::get)
                .map(JsonStringTokens::memory_bytes)
                .sum::<usize>()
            + self.tables.extension.get().map_or(0, |kept| kept.memory_bytes())
    }
}

/// Shows size and fingerprint instead of the tables.
impl fmt::Debug for Vocabulary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Vocabulary")
            .field("len", &self.len())
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

impl VocabularyTables {
    fn new(tokens: &TokenBytes) -> VocabularyTables {
        let list: Vec<(u32, &[u8])> = tokens.iter().collect();
        let longest_bytes = list.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or_default();
        let trie = || TokenTrie::new(&list, tokens.len());
        let classes = || ClassMasks::new(&list, tokens.len());
        let (trie, classes) = if list.len() < MIN_PARALLEL_TOKENS {
            (trie(), classes())
        } else {
            pool::join(trie, classes)
        };
        let (class_mask_cache, names, joins_items, whole_items) = Default::default();
        let (strings, opened, extension) = Default::default();
        VocabularyTables {
            trie,
            classes,
            longest_bytes,
            class_mask_cache,
            names,
            joins_items,
            whole_items,
            strings,
            opened,
            extension,
        }
    }
}

/// Returns the end tokens in ascending order, each once. Fails if one is not an id.
fn checked_end_ids(mut ends: Vec<u32>, len: usize) -> Result<Vec<u32>, Error> {
    ends.sort_unstable();
    ends.dedup();
    match ends.last() {
        Some(&id) if id as usize >= len => {
            Err(Error::new(format!("end token {id} is not in the vocabulary"))
                .hint(format!("valid ids are 0 to {}", len - 1)))
        }
        _ => Ok(ends),
    }
}

/// Returns a digest of everything that masks depend on.
fn fingerprint(tokens: &TokenBytes, ends: &[u32]) -> String {
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
