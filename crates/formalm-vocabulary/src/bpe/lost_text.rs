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

impl BpeEncoder {
    /// Returns the byte position of the first character because of which the normalizer changes a
    /// text. Returns `None` if it does not.
    pub fn first_change(&self, text: &str) -> Option<usize> {
        self.splitter.first_change(text, &self.added_token_strings())
    }

    /// Returns the reason why a text has no canonical tokens. Returns `None` if it has some.
    pub fn lost_text(&self, text: &str) -> Option<LostText> {
        if self.encode(text).is_some() {
            return None;
        }
        let lost = |reason: &str, at| Some(LostText { reason: reason.to_owned(), at });
        if let Some(at) = self.first_change(text) {
            let name = self.splitter.normalizer_name().unwrap_or_default();
            return lost(&format!("the tokenizer's normalizer ({name}) changes them"), Some(at));
        }
        if self.escapes_spaces()
            && let Some(at) = text.find(SPACE)
        {
            return lost(&format!("the tokenizer turns {SPACE:?} into a space"), Some(at));
        }
        if let Some((at, _)) = text.char_indices().find(|&(_, c)| self.is_unknown(c)) {
            return lost("they contain characters that the tokenizer does not know", Some(at));
        }
        let has_pretokens = self.splitter.pretokens(text.as_bytes()).is_some();
        match &self.model {
            PretokenModel::WordPiece(_) if has_pretokens => {
                lost("they contain words that the tokenizer does not know", None)
            }
            PretokenModel::WordPiece(_) => {
                lost("decoding does not write spaces where they have them", self.first_loss(text))
            }
            PretokenModel::Unigram(_) if has_pretokens => {
                lost("the tokenizer reads a part of them as unknown or as a special token", None)
            }
            _ if self.splitter.loses_spaces() => lost(
                "the tokenizer inserts or drops spaces next to an added token",
                self.first_loss(text),
            ),
            _ => lost("the pre-tokenizer drops a part of them", self.first_loss(text)),
        }
    }

    /// Returns the byte position of the first character up to which the text is lost whatever
    /// follows.
    fn first_loss(&self, text: &str) -> Option<usize> {
        let mut at = self.splitter.longest_prefix(text.as_bytes());
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        (at < text.len()).then_some(at)
    }

    fn is_unknown(&self, c: char) -> bool {
        match &self.model {
            PretokenModel::Merges => self.symbols.unspellable().contains(c),
            PretokenModel::Unigram(model) => !model.spells_character(c),
            PretokenModel::WordPiece(model) => {
                !matches!(c, ' ') && !model.has_character(c.encode_utf8(&mut [0; 4]).as_bytes())
            }
        }
    }
}
