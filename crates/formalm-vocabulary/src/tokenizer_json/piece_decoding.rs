//! Decoding of tokenizer pieces to bytes, as the file's `decoder` defines it: byte-level alphabet
//! or byte fallback.

use serde_json::Value;

use super::file_format::TokenizerFile;
use crate::Error;

/// The rule by which pieces of a file decode to bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PieceDecoding {
    /// GPT-2's byte-level alphabet: each of 256 characters stands for a byte.
    ByteLevel,
    /// SentencePiece's rule: characters with replacements, such as `▁` for a space, and `<0x0A>`
    /// for single bytes.
    Fallback {
        /// Replacements of the decoder inside a piece, in order.
        replacements: Vec<(String, String)>,
        /// Pieces such as `<0x0A>` are single bytes.
        bytes: bool,
    },
    /// WordPiece's rule: a space before each piece without the prefix.
    Words {
        /// The mark of pieces inside a word.
        prefix: String,
        /// Spaces before some punctuation and endings are dropped.
        cleans_up: bool,
    },
}

/// The character because of which a piece cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnmappedCharacter(pub(crate) char);

impl PieceDecoding {
    /// Determines the rule of a file. Returns it with remarks for the user.
    pub(crate) fn of(file: &TokenizerFile<'_>) -> Result<(PieceDecoding, Vec<String>), Error> {
        let steps = steps(&file.decoder, "decoders");
        let kinds: Vec<&str> = steps.iter().map(|step| kind(step)).collect();
        if kinds.contains(&"ByteLevel") {
            let non_printable_bytes: Vec<&str> = kinds
                .iter()
                .copied()
                .filter(|kind| !matches!(*kind, "ByteLevel" | "Fuse"))
                .collect();
            return match non_printable_bytes.first() {
                None => Ok((PieceDecoding::ByteLevel, Vec::new())),
                Some(other) => {
                    Err(refused(&format!("the decoder has {other} in addition to ByteLevel")))
                }
            };
        }
        if steps.is_empty() && is_byte_level(file) {
            let note =
                "the file has no decoder; pieces are decoded as ByteLevel, like the pre-tokenizer";
            return Ok((PieceDecoding::ByteLevel, vec![note.to_owned()]));
        }
        let is_words = file.model.kind.as_deref() == Some("WordPiece");
        match &steps[..] {
            [step] if is_words && kind(step) == "WordPiece" => {
                let prefix = step["prefix"].as_str().unwrap_or("##").to_owned();
                if file.model.continuing_subword_prefix.as_deref().unwrap_or("##") != prefix {
                    return Err(refused("its decoder and its model mark pieces differently"));
                }
                let cleans_up = step["cleanup"].as_bool().unwrap_or(true);
                let notes = strips(true).into_iter().collect();
                return Ok((PieceDecoding::Words { prefix, cleans_up }, notes));
            }
            _ if is_words => return Err(refused("its decoder does not join words")),
            _ => {}
        }
        let is_unigram = file.model.kind.as_deref() == Some("Unigram");
        if !file.model.byte_fallback && !is_unigram {
            return Err(refused("it has neither byte-level pieces nor byte fallback"));
        }
        if steps.is_empty() && is_unigram {
            return Err(refused("it has no decoder, so a space is put between any two pieces"));
        }
        fallback(&steps, file.model.byte_fallback)
    }

    /// Returns `true` if the mark of spaces in a piece stands for a space.
    pub(crate) fn reads_marks(&self) -> bool {
        match self {
            PieceDecoding::ByteLevel | PieceDecoding::Words { .. } => false,
            PieceDecoding::Fallback { replacements, .. } => {
                replacements.iter().any(|(mark, space)| mark == "\u{2581}" && space == " ")
            }
        }
    }

    /// Appends the bytes of a piece.
    ///
    /// # Errors
    ///
    /// A character of a byte-level piece stands for no byte. The decoder then takes the piece's own
    /// UTF-8 as its bytes.
    pub(crate) fn spell(&self, piece: &str, out: &mut Vec<u8>) -> Result<(), UnmappedCharacter> {
        match self {
            PieceDecoding::ByteLevel => {
                for character in piece.chars() {
                    match byte_of(character) {
                        Some(byte) => out.push(byte),
                        None => return Err(UnmappedCharacter(character)),
                    }
                }
            }
            PieceDecoding::Words { prefix, cleans_up } => {
                let spelled = match piece.strip_prefix(&**prefix) {
                    Some(rest) if !prefix.is_empty() => rest.to_owned(),
                    _ => format!(" {piece}"),
                };
                let spelled = if *cleans_up { cleaned_up(spelled) } else { spelled };
                out.extend_from_slice(spelled.as_bytes());
            }
            PieceDecoding::Fallback { replacements, bytes } => {
                let mut text = std::borrow::Cow::Borrowed(piece);
                for (pattern, content) in replacements {
                    if text.contains(&**pattern) {
                        text = text.replace(&**pattern, content).into();
                    }
                }
                match fallback_byte(&text) {
                    Some(byte) if *bytes => out.push(byte),
                    _ => out.extend_from_slice(text.as_bytes()),
                }
            }
        }
        Ok(())
    }

    /// Appends the bytes that an added token decodes to. A decoder does not know added tokens, but
    /// it leaves a byte-level piece with unknown characters as it is.
    pub(crate) fn spell_added(&self, content: &str, out: &mut Vec<u8>) {
        let start = out.len();
        if self.spell(content, out).is_err() {
            out.truncate(start);
            out.extend_from_slice(content.as_bytes());
        }
    }
}

/// Returns the rule of a decoder of pieces of characters: replacements inside single pieces, then
/// bytes, then steps that concern the text as a whole. Text has byte tokens if the model has byte
/// fallback.
fn fallback(steps: &[&Value], model_bytes: bool) -> Result<(PieceDecoding, Vec<String>), Error> {
    let mut replacements = Vec::new();
    let mut notes = Vec::new();
    let mut order = 0;
    for step in steps {
        let place = match kind(step) {
            "Replace" => {
                replacements.push(replacement(step)?);
                0
            }
            "Metaspace" => {
                let mark = step["replacement"].as_str().unwrap_or("\u{2581}");
                replacements.push((mark.to_owned(), " ".to_owned()));
                notes.extend(strips(step["prepend_scheme"] != "never"));
                0
            }
            "ByteFallback" => 1,
            "Fuse" => 2,
            "Strip" if step["stop"].as_u64() == Some(0) && order == 2 => {
                notes.extend(strips(step["start"].as_u64() != Some(0)));
                3
            }
            other => {
                return Err(refused(&format!("its decoder has the unknown step {other:?}")));
            }
        };
        if place < order || place == order && place == 1 {
            return Err(refused("its decoder has its steps in an unknown order"));
        }
        order = place;
    }
    let bytes = steps.iter().any(|step| kind(step) == "ByteFallback");
    if model_bytes && !bytes {
        return Err(refused("the model has byte fallback, but the decoder does not"));
    }
    Ok((PieceDecoding::Fallback { replacements, bytes }, notes))
}

/// Returns a piece as the library's decoder for words cleans it up.
fn cleaned_up(mut piece: String) -> String {
    const REWRITES: [(&str, &str); 11] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    for (from, to) in REWRITES {
        if piece.contains(from) {
            piece = piece.replace(from, to);
        }
    }
    piece
}

fn strips(string_effect: bool) -> Option<String> {
    let note = "decoding drops a space at the start of the text; the token's bytes keep it";
    string_effect.then(|| note.to_owned())
}

/// Returns pattern and content of a `Replace` step.
fn replacement(step: &Value) -> Result<(String, String), Error> {
    match (step["pattern"]["String"].as_str(), step["content"].as_str()) {
        (Some(pattern), Some(content)) if !pattern.is_empty() => {
            Ok((pattern.to_owned(), content.to_owned()))
        }
        _ => Err(refused("its decoder replaces something other than a fixed string")),
    }
}

fn refused(reason: &str) -> Error {
    Error::new(format!("the bytes of this tokenizer's pieces are unknown: {reason}"))
        .at("decoder")
        .hint("pass the bytes of each token to `Vocabulary.from_tokens` if you know them")
}

/// Returns `true` if the decoder joins all pieces before it reads them as byte-level characters.
/// One character that stands for no byte then changes the bytes of all pieces around it.
pub(crate) fn fuses_before_decoding(file: &TokenizerFile<'_>) -> bool {
    let steps = steps(&file.decoder, "decoders");
    let place = |name| steps.iter().position(|step| kind(step) == name);
    matches!((place("Fuse"), place("ByteLevel")), (Some(fuse), Some(bytes)) if fuse < bytes)
}

/// Returns `true` if a character is one of the 256 that stand for bytes.
pub(crate) fn is_byte_level_character(character: char) -> bool {
    byte_of(character).is_some()
}

/// Returns the byte that a byte-level character stands for.
pub(crate) fn byte_level_byte(character: char) -> Option<u8> {
    byte_of(character)
}

/// Returns `true` if encoding maps text to byte-level characters before the model sees it.
fn is_byte_level(file: &TokenizerFile<'_>) -> bool {
    let before = steps(&file.pre_tokenizer, "pretokenizers");
    let first = steps(&file.normalizer, "normalizers");
    before.into_iter().chain(first).any(|step| kind(step) == "ByteLevel")
}

/// Flattens a possibly nested `Sequence` into its steps; `null` has none.
pub(crate) fn steps<'a>(value: &'a Value, list: &str) -> Vec<&'a Value> {
    match value[list].as_array() {
        Some(parts) if kind(value) == "Sequence" => {
            parts.iter().flat_map(|part| steps(part, list)).collect()
        }
        _ if value.is_null() => Vec::new(),
        _ => vec![value],
    }
}

pub(crate) fn kind(step: &Value) -> &str {
    step["type"].as_str().unwrap_or("(untyped)")
}

/// Returns the byte of a byte-level character. Printable Latin-1 characters stand for themselves;
/// the other 68 bytes are the characters from U+0100 on.
fn byte_of(character: char) -> Option<u8> {
    const NON_PRINTABLE: [u8; 68] = non_printable_bytes();
    match character {
        '!'..='~' | '¡'..='¬' | '®'..='ÿ' => u8::try_from(character).ok(),
        _ => NON_PRINTABLE.get((character as usize).checked_sub(0x100)?).copied(),
    }
}

const fn non_printable_bytes() -> [u8; 68] {
    let mut non_printable_bytes = [0; 68];
    let (mut byte, mut at) = (0, 0);
    while byte < 256 {
        if !matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) {
            non_printable_bytes[at] = byte as u8;
            at += 1;
        }
        byte += 1;
    }
    non_printable_bytes
}

/// Returns the byte of a piece such as `<0x0A>`, parsed as leniently as `tokenizers` does.
pub(crate) fn fallback_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_byte = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_byte { u8::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_characters_are_a_permutation_of_bytes() {
        let mut bytes: Vec<u8> = ('\0'..'\u{200}').filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of(' '), None);
        assert_eq!(byte_of('▁'), None);
    }

    #[test]
    fn fallback_pieces_decode_to_their_byte() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xff>"), Some(255));
        assert_eq!(fallback_byte("<0x0>"), None);
        assert_eq!(fallback_byte("<0x0AB>"), None);
        assert_eq!(fallback_byte("<0xé>"), None);
        assert_eq!(fallback_byte("a<0x0A>"), None);
    }
}
