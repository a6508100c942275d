//! What a file says of a tokenizer, apart from merges and cuts: its symbols, its added tokens, and
//! what it changes. What is not known exactly is refused by name.

use std::collections::BTreeMap;

use formalm_automata::CharSet;
use rustc_hash::FxHashMap;

use super::merges::Merges;
use super::relation::NONE;
use crate::Error;
use crate::tokenizer::{AddedToken, Model, Pieces, Spelling, TokenizerFile, kind, steps};

/// What is merged to begin with.
#[derive(Debug)]
pub(super) enum Symbols {
    /// Every byte.
    Bytes(Box<[u32; 256]>),
    /// Characters; of others, their bytes.
    Characters(FxHashMap<char, u32>, Box<[u32; 256]>),
}

impl Symbols {
    /// The symbols of a model: bytes in byte-level characters, or characters as texts have
    /// them.
    pub(super) fn read(
        model: &Model<'_>,
        merges: &Merges,
        spelling: &Spelling,
        byte_level: bool,
    ) -> Result<Symbols, Error> {
        let mut bytes = Box::new([NONE; 256]);
        let mut spelled = Vec::new();
        if byte_level {
            for (&character, &id) in merges.symbols.iter().collect::<BTreeMap<_, _>>() {
                spelled.clear();
                if spelling.spell(character.encode_utf8(&mut [0; 4]), &mut spelled).is_ok()
                    && let [byte] = spelled[..]
                {
                    bytes[usize::from(byte)] = id;
                }
            }
            return match bytes.iter().position(|&id| id == NONE) {
                None => Ok(Symbols::Bytes(bytes)),
                Some(byte) => Err(refused(&format!("the byte {byte:#04x} is no piece of it"))),
            };
        }
        let Pieces::Map(pieces) = &model.vocab else {
            return Err(refused("it has no map of pieces"));
        };
        for (piece, id) in pieces {
            if let Some(byte) = crate::tokenizer::fallback_byte(piece) {
                bytes[usize::from(byte)] = *id;
            }
        }
        if let Some(byte) = bytes.iter().position(|&id| id == NONE) {
            return Err(refused(&format!("there is no piece <{byte:#04X}> for a byte")));
        }
        let text = |&character: &char| if character == '\u{2581}' { ' ' } else { character };
        let mut ids: FxHashMap<char, u32> = FxHashMap::default();
        for (character, id) in merges.symbols.iter().collect::<BTreeMap<_, _>>() {
            if *character != ' ' {
                ids.insert(text(character), *id);
            }
        }
        match ids.contains_key(&' ') {
            true => Ok(Symbols::Characters(ids, bytes)),
            false => Err(refused("the mark of a space is no piece of it")),
        }
    }

    /// Characters that are symbols, where characters are.
    pub(super) fn characters(&self) -> CharSet {
        match self {
            Symbols::Bytes(_) => CharSet::empty(),
            Symbols::Characters(ids, _) => {
                let mut list: Vec<char> = ids.keys().copied().collect();
                list.sort_unstable();
                CharSet::from_ranges(list.into_iter().map(|c| (c, c)))
            }
        }
    }
}

pub(super) fn check_model(model: &Model<'_>) -> Result<(), Error> {
    let kind = model.kind.as_deref().unwrap_or("BPE");
    let why = match kind {
        "BPE" => None,
        "Unigram" => Some(
            "it chooses the best of all tokenizations of a text, which depends on \
                           everything in it",
        ),
        "WordPiece" => Some("it takes the longest piece again and again within each word"),
        _ => Some("we do not know how it tokenizes"),
    };
    if let Some(why) = why {
        return Err(refused(&format!("the model is {kind}: {why}")).at("model.type"));
    }
    if model.dropout.is_some_and(|chance| chance > 0.0) {
        return Err(refused("it leaves merges out at random").at("model.dropout"));
    }
    Ok(())
}

/// Added tokens that are text. Special ones are not: their names in a text are only text.
pub(super) fn added_texts<'f>(file: &'f TokenizerFile<'_>) -> Result<Vec<&'f AddedToken>, Error> {
    let texts: Vec<&AddedToken> = file.added_tokens.iter().filter(|token| !token.special).collect();
    for token in &texts {
        let strange = token.lstrip || token.rstrip || token.single_word || token.content.is_empty();
        if strange {
            let message =
                format!("the added token {:?} looks at the text around it", token.content);
            return Err(refused(&message).at("added_tokens"));
        }
    }
    let changes = !steps(&file.normalizer, "normalizers").is_empty();
    if changes && !texts.is_empty() {
        return Err(refused("it has added tokens that are text and changes text besides")
            .at("added_tokens"));
    }
    Ok(texts)
}

/// Whether a space is put in front of text, where that is all that a tokenizer changes but for the
/// mark of spaces.
pub(super) fn prepends(file: &TokenizerFile<'_>, spelling: &Spelling) -> Result<bool, Error> {
    let (mut prepends, mut replaces) = (false, false);
    for step in steps(&file.normalizer, "normalizers") {
        match kind(step) {
            "Prepend" if step["prepend"].as_str() == Some("\u{2581}") => prepends = true,
            "Replace"
                if step["pattern"]["String"].as_str() == Some(" ")
                    && step["content"].as_str() == Some("\u{2581}") =>
            {
                replaces = true;
            }
            other => {
                let message = format!("its normalizer has {other}, which changes text");
                return Err(refused(&message).at("normalizer"));
            }
        }
    }
    for step in steps(&file.pre_tokenizer, "pretokenizers") {
        if kind(step) == "Metaspace" {
            replaces = true;
            prepends |= step["prepend_scheme"].as_str().unwrap_or("always") != "never";
        }
    }
    if replaces == (*spelling == Spelling::ByteLevel) {
        return Err(
            refused("it writes spaces in one way and reads them in another").at("normalizer")
        );
    }
    Ok(prepends)
}

pub(super) fn refused(reason: &str) -> Error {
    Error::new(format!("canonical tokens of this tokenizer are not known exactly: {reason}"))
        .hint("use tokenization=\"all\" with this vocabulary")
}
