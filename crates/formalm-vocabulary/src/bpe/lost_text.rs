//! The reason why a text has no canonical tokens: decoding its tokens does not give it back.

use super::base_symbols::SPACE;
use super::encoder::BpeEncoder;
use super::pretoken_model::PretokenModel;

/// The reason why encoding loses a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostText {
    /// A clause with a verb, about several texts: "the tokenizer's normalizer (NFC) changes them".
    pub reason: String,
    /// The byte position of the character that shows it, if there is one.
    pub at: Option<usize>,
}

impl LostText {
    /// Returns the reason why a text has no canonical tokens. Returns `None` if it has some.
    pub fn of(encoder: &BpeEncoder, text: &str) -> Option<LostText> {
        if encoder.encode(text).is_some() {
            return None;
        }
        let lost = |reason: &str, at| Some(LostText { reason: reason.to_owned(), at });
        if let Some(at) = encoder.first_change(text) {
            let name = encoder.splitter.normalizer_name().unwrap_or_default();
            return lost(&format!("the tokenizer's normalizer ({name}) changes them"), Some(at));
        }
        if encoder.escapes_spaces()
            && let Some(at) = text.find(SPACE)
        {
            return lost(&format!("the tokenizer turns {SPACE:?} into a space"), Some(at));
        }
        if let Some((at, _)) = text.char_indices().find(|&(_, c)| is_unknown(encoder, c)) {
            return lost("they contain characters that the tokenizer does not know", Some(at));
        }
        let has_pretokens = encoder.splitter.pretokens(text.as_bytes()).is_some();
        match &encoder.model {
            PretokenModel::WordPiece(_) if has_pretokens => {
                lost("they contain words that the tokenizer does not know", None)
            }
            PretokenModel::WordPiece(_) => lost(
                "decoding does not write spaces where they have them",
                first_loss(encoder, text),
            ),
            PretokenModel::Unigram(_) if has_pretokens => {
                lost("the tokenizer reads a part of them as unknown or as a special token", None)
            }
            _ if encoder.splitter.loses_spaces() => lost(
                "the tokenizer inserts or drops spaces next to an added token",
                first_loss(encoder, text),
            ),
            _ => lost("the pre-tokenizer drops a part of them", first_loss(encoder, text)),
        }
    }
}

/// Returns the byte position of the first character up to which the text is lost whatever follows.
fn first_loss(encoder: &BpeEncoder, text: &str) -> Option<usize> {
    let mut at = encoder.splitter.longest_prefix(text.as_bytes()).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    (at < text.len()).then_some(at)
}

fn is_unknown(encoder: &BpeEncoder, c: char) -> bool {
    match &encoder.model {
        PretokenModel::Merges => encoder.symbols.unspellable().contains(c),
        PretokenModel::Unigram(model) => !model.spells_character(c),
        PretokenModel::WordPiece(model) => {
            c != ' ' && !model.has_character(c.encode_utf8(&mut [0; 4]).as_bytes())
        }
    }
}
