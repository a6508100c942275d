//! The alphabet that BPE merging starts from: bytes, or characters with byte fallback.

use std::collections::BTreeMap;

use formalm_core::CharSet;
use rustc_hash::FxHashMap;

use super::adjacency::NONE;
use super::spec::refused;
use crate::Error;
use crate::tokenizer_json::PieceDecoding;

/// The character that stands for a space if symbols are characters.
pub(super) const SPACE: char = '\u{2581}';

/// The token of every byte.
pub(super) type ByteTokens = Box<[u32; 256]>;

/// The symbols before any merge.
#[derive(Debug)]
pub(super) enum BaseSymbols {
    /// Every byte is a symbol.
    Bytes(ByteTokens),
    /// Characters are symbols. Other characters are spelled by byte tokens; without these, strings
    /// that contain them have no tokens.
    Characters(FxHashMap<char, u32>, Option<ByteTokens>),
}

impl BaseSymbols {
    /// Builds byte symbols from the tokens of single bytes. Fails if a byte has none.
    pub(super) fn of_bytes(list: impl Iterator<Item = (u8, u32)>) -> Result<BaseSymbols, Error> {
        match byte_token_table(list) {
            Ok(bytes) => Ok(BaseSymbols::Bytes(bytes)),
            Err(byte) => Err(refused(&format!("it has no piece for the byte {byte:#04x}"))),
        }
    }

    /// Builds byte symbols from the pieces of one byte-level character.
    pub(super) fn byte_level(
        pieces: &FxHashMap<char, u32>,
        spelling: &PieceDecoding,
    ) -> Result<BaseSymbols, Error> {
        let byte = |(character, id): (&char, &u32)| {
            let mut spelled = Vec::new();
            spelling.spell(character.encode_utf8(&mut [0; 4]), &mut spelled).ok()?;
            (spelled.len() == 1).then(|| (spelled[0], *id))
        };
        let ordered: BTreeMap<_, _> = pieces.iter().collect();
        BaseSymbols::of_bytes(ordered.into_iter().filter_map(byte))
    }

    /// Builds character symbols from the pieces of one character and the byte tokens for other
    /// characters.
    pub(super) fn characters(
        pieces: &FxHashMap<char, u32>,
        bytes: Option<ByteTokens>,
    ) -> Result<BaseSymbols, Error> {
        // A space is always written as its mark.
        let text = |character| if character == SPACE { ' ' } else { character };
        let ids: FxHashMap<char, u32> = pieces
            .iter()
            .filter(|(character, _)| **character != ' ')
            .map(|(&character, &id)| (text(character), id))
            .collect();
        match ids.contains_key(&' ') {
            true => Ok(BaseSymbols::Characters(ids, bytes)),
            false => Err(refused("it has no piece for the space marker")),
        }
    }

    /// Returns the characters that are symbols; empty if symbols are bytes.
    pub(super) fn symbol_characters(&self) -> CharSet {
        match self {
            BaseSymbols::Bytes(_) => CharSet::empty(),
            BaseSymbols::Characters(ids, _) => {
                let mut list: Vec<char> = ids.keys().copied().collect();
                list.sort_unstable();
                CharSet::from_ranges(list.into_iter().map(|c| (c, c)))
            }
        }
    }

    /// Returns the characters that tokens never spell. A space becomes its mark, so no string keeps
    /// a mark of its own.
    pub(super) fn unspellable(&self) -> CharSet {
        match self {
            BaseSymbols::Bytes(_) => CharSet::empty(),
            BaseSymbols::Characters(_, Some(_)) => CharSet::single(SPACE),
            BaseSymbols::Characters(_, None) => self.symbol_characters().complement(),
        }
    }

    /// Appends the symbols of `text`, which may begin and end inside characters. Characters without
    /// symbols are skipped.
    pub(super) fn read(&self, text: &[u8], out: &mut Vec<u32>) {
        let (ids, bytes) = match self {
            BaseSymbols::Bytes(ids) => {
                return out.extend(text.iter().map(|&byte| ids[usize::from(byte)]));
            }
            BaseSymbols::Characters(ids, bytes) => (ids, bytes),
        };
        let spell = |text: &[u8], out: &mut Vec<u32>| {
            if let Some(bytes) = bytes {
                out.extend(text.iter().map(|&byte| bytes[usize::from(byte)]));
            }
        };
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                match ids.get(&character) {
                    Some(&id) => out.push(id),
                    None => spell(character.encode_utf8(&mut [0; 4]).as_bytes(), out),
                }
            }
            spell(chunk.invalid(), out);
        }
    }

    /// Returns the token of a byte that belongs to no symbol, if there is one.
    pub(super) fn byte_token(&self, byte: u8) -> Option<u32> {
        match self {
            BaseSymbols::Bytes(_) | BaseSymbols::Characters(_, None) => None,
            BaseSymbols::Characters(_, Some(bytes)) => Some(bytes[usize::from(byte)]),
        }
    }
}

/// Builds a table of all bytes, or returns a byte that is missing.
pub(super) fn byte_token_table(list: impl Iterator<Item = (u8, u32)>) -> Result<ByteTokens, u8> {
    let mut bytes = Box::new([NONE; 256]);
    for (byte, id) in list {
        bytes[usize::from(byte)] = id;
    }
    match bytes.iter().position(|&id| id == NONE) {
        None => Ok(bytes),
        Some(byte) => Err(byte as u8),
    }
}
