//! What a tokenizer merges to begin with: bytes, or characters.

use std::collections::BTreeMap;

use formalm_automata::CharSet;
use rustc_hash::FxHashMap;

use super::adjacency::NONE;
use super::spec::refused;
use crate::Error;
use crate::tokenizer_json::Spelling;

/// What stands for a space where characters are merged.
pub(super) const SPACE: char = '\u{2581}';

/// The tokens of single bytes.
pub(super) type Bytes = Box<[u32; 256]>;

/// What is merged to begin with.
#[derive(Debug)]
pub(super) enum Symbols {
    /// Every byte.
    Bytes(Bytes),
    /// Characters; of others, their bytes, or none: no text that has them is spelled by tokens.
    Characters(FxHashMap<char, u32>, Option<Bytes>),
}

impl Symbols {
    /// All bytes, given the tokens of some.
    pub(super) fn of_bytes(list: impl Iterator<Item = (u8, u32)>) -> Result<Symbols, Error> {
        match every_byte(list) {
            Ok(bytes) => Ok(Symbols::Bytes(bytes)),
            Err(byte) => Err(refused(&format!("the byte {byte:#04x} is no piece of it"))),
        }
    }

    /// All bytes, given the pieces of one byte-level character.
    pub(super) fn byte_level(
        pieces: &FxHashMap<char, u32>,
        spelling: &Spelling,
    ) -> Result<Symbols, Error> {
        let byte = |(character, id): (&char, &u32)| {
            let mut spelled = Vec::new();
            spelling.spell(character.encode_utf8(&mut [0; 4]), &mut spelled).ok()?;
            (spelled.len() == 1).then(|| (spelled[0], *id))
        };
        let ordered: BTreeMap<_, _> = pieces.iter().collect();
        Symbols::of_bytes(ordered.into_iter().filter_map(byte))
    }

    /// Characters, given the pieces of one character and the tokens for the bytes of others.
    pub(super) fn characters(
        pieces: &FxHashMap<char, u32>,
        bytes: Option<Bytes>,
    ) -> Result<Symbols, Error> {
        // A space is always written as its mark.
        let text = |character| if character == SPACE { ' ' } else { character };
        let ids: FxHashMap<char, u32> = pieces
            .iter()
            .filter(|(character, _)| **character != ' ')
            .map(|(&character, &id)| (text(character), id))
            .collect();
        match ids.contains_key(&' ') {
            true => Ok(Symbols::Characters(ids, bytes)),
            false => Err(refused("the mark of a space is no piece of it")),
        }
    }

    /// Characters that are symbols, where characters are.
    pub(super) fn known(&self) -> CharSet {
        match self {
            Symbols::Bytes(_) => CharSet::empty(),
            Symbols::Characters(ids, _) => {
                let mut list: Vec<char> = ids.keys().copied().collect();
                list.sort_unstable();
                CharSet::from_ranges(list.into_iter().map(|c| (c, c)))
            }
        }
    }

    /// Characters that tokens never spell. A space is turned into its mark, so that no text keeps a
    /// mark of its own.
    pub(super) fn never(&self) -> CharSet {
        match self {
            Symbols::Bytes(_) => CharSet::empty(),
            Symbols::Characters(_, Some(_)) => CharSet::single(SPACE),
            Symbols::Characters(_, None) => self.known().complement(),
        }
    }

    /// Appends the symbols of a text, which may begin and end inside of characters. Characters that
    /// have none are left out.
    pub(super) fn read(&self, text: &[u8], out: &mut Vec<u32>) {
        let (ids, bytes) = match self {
            Symbols::Bytes(ids) => {
                return out.extend(text.iter().map(|&byte| ids[usize::from(byte)]));
            }
            Symbols::Characters(ids, bytes) => (ids, bytes),
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

    /// The token of a byte that is part of no symbol, if there is one.
    pub(super) fn byte_token(&self, byte: u8) -> Option<u32> {
        match self {
            Symbols::Bytes(_) | Symbols::Characters(_, None) => None,
            Symbols::Characters(_, Some(bytes)) => Some(bytes[usize::from(byte)]),
        }
    }
}

/// A table of all bytes, or a byte that is missing.
pub(super) fn every_byte(list: impl Iterator<Item = (u8, u32)>) -> Result<Bytes, u8> {
    let mut bytes = Box::new([NONE; 256]);
    for (byte, id) in list {
        bytes[usize::from(byte)] = id;
    }
    match bytes.iter().position(|&id| id == NONE) {
        None => Ok(bytes),
        Some(byte) => Err(byte as u8),
    }
}
