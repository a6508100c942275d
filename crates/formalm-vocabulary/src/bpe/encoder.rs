//! The encoder: a tokenizer decomposed into what decides which token sequences are canonical.

use formalm_core::{ForkSafeMutex, SetOnce};
use rustc_hash::FxHashMap;

use super::adjacency::Adjacency;
use super::adjacency_masks::AdjacencyMasks;
use super::base_symbols::{BaseSymbols, SPACE};
use super::encoder_cache::TransitionTables;
use super::free_text::FreeTextTables;
use super::part_library::PartLibrary;
use super::pretoken_model::PretokenModel;
use super::pretokenizer::boundary_automaton::{Boundary, BoundaryAutomaton};
use super::pretokenizer::pretoken_splitter::Splitter;
use super::pretokenizer::unsettled_boundaries::UnsettledBoundaries;
use super::sources::{sentencepiece, tiktoken, tokenizer_json};
use super::spec::{BpeSpec, refused};
use super::token_transitions::SavedTransitions;
use super::whole_tokens::{PretokenState, WholeTokens};
use crate::normalization::SectionRules;
use crate::token_byte_table::MAX_IDS;
use crate::{Error, Vocabulary, VocabularyExtension};

/// The way in which a tokenizer produces a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOrigin {
    /// By merging, or the token is a base symbol.
    Merged,
    /// As a whole pre-token, which merging would not make (`ignore_merges`).
    Whole,
    /// As a byte of a character that is no symbol.
    Byte(u8),
    /// As an added token with a string.
    Added,
    /// Never: the tokenizer makes it from no string.
    Never,
}

impl TokenOrigin {
    /// Returns `true` if a token of this origin may begin at a boundary and end inside or outside an
    /// added token.
    #[inline]
    pub fn fits(self, boundary: Boundary, in_added: bool) -> bool {
        match self {
            TokenOrigin::Never => false,
            TokenOrigin::Added => in_added && boundary == Boundary::Added,
            TokenOrigin::Merged | TokenOrigin::Byte(_) => !in_added,
            TokenOrigin::Whole => !in_added && boundary == Boundary::Pretoken,
        }
    }
}

/// Tokens by the bytes of their string.
type ByText = FxHashMap<Vec<u8>, u32>;

/// A tokenizer prepared for canonical decoding.
#[derive(Debug)]
pub struct BpeEncoder {
    pub(super) adjacency: Adjacency,
    pub(super) splitter: Splitter,
    pub(super) symbols: BaseSymbols,
    pub(super) whole_tokens: WholeTokens,
    pub(super) model: PretokenModel,
    /// Whole tokens and added tokens by their string.
    pub(super) by_text: ByText,
    pub(super) origins: Vec<TokenOrigin>,
    /// A space is prepended to the text before encoding.
    pub(super) prepends: bool,
    /// It does so after special tokens too.
    pub(super) prepends_after_special: bool,
    pub(super) transition_tables: SetOnce<TransitionTables>,
    /// Transitions that were read and not needed yet.
    pub(super) saved_transitions: ForkSafeMutex<Option<SavedTransitions>>,
    pub(super) adjacency_masks: AdjacencyMasks,
    pub(super) unsettled: UnsettledBoundaries,
    pub(super) free_text: FreeTextTables,
    pub(super) parts: PartLibrary,
    /// What another crate keeps for all constraints.
    pub(super) extension: SetOnce<Box<dyn VocabularyExtension>>,
}

impl BpeEncoder {
    /// Builds the encoder of a `tokenizer.json` as a library with its own Unicode version reads it,
    /// given the library's answers to [`normalizer_probes`](crate::normalization::normalizer_probes);
    /// without answers, by the newest version of Unicode.
    ///
    /// # Errors
    ///
    /// The tokenizer is of an unknown kind, or does something that we cannot reproduce exactly, or
    /// the answers do not fit the probes.
    pub fn from_tokenizer_json(
        data: &[u8],
        answers: Option<&[String]>,
    ) -> Result<BpeEncoder, Error> {
        BpeEncoder::new(tokenizer_json::read(data, answers)?)
    }

    /// Builds the encoder of a tiktoken encoding, given as JSON with its `pattern`, its `ranks` by
    /// base64 token, and the `offset` of ids over ranks.
    ///
    /// # Errors
    ///
    /// The data is not laid out as an encoding, or does something that we cannot reproduce exactly.
    pub fn from_tiktoken(data: &[u8]) -> Result<BpeEncoder, Error> {
        BpeEncoder::new(tiktoken::read(data)?)
    }

    /// Builds the encoder of a SentencePiece model.
    ///
    /// # Errors
    ///
    /// The model is neither BPE nor Unigram, or does something that we cannot reproduce exactly.
    pub fn from_sentencepiece(data: &[u8]) -> Result<BpeEncoder, Error> {
        BpeEncoder::new(sentencepiece::read(data)?)
    }

    fn new(mut description: BpeSpec) -> Result<BpeEncoder, Error> {
        let added = description.added.iter().map(|(text, _)| text.as_str());
        description.split_steps.cut_out(added)?;
        let (origins, by_text) = origins(&description)?;
        let known = description.symbols.symbol_characters();
        let never = description.model.unspellable(SPACE);
        let never = never.unwrap_or_else(|| description.symbols.unspellable());
        let split_bytes = description.split_steps.split_bytes;
        let split_steps = (description.split_steps.at_least_one()?, split_bytes);
        let has_added = !description.added.is_empty();
        let no_rules = SectionRules::default();
        let rules = description.filter.as_ref().map_or(&no_rules, |filter| &filter.rules);
        let boundaries = BoundaryAutomaton::new(split_steps, has_added, &known, &never, rules)?;
        let splitter = Splitter::new(boundaries, description.filter);
        let is_piece = |text: &String| {
            splitter.pretokens(text.as_bytes()).is_some_and(|pieces| pieces.len() == 1)
        };
        if let Some(name) = description.reserved.iter().find(|name| is_piece(name)) {
            let message =
                format!("the special token {name:?} is also a pre-token of ordinary text");
            return Err(refused(&message).at("model.ignore_merges"));
        }
        let mut unreachable = description.merges.unreachable;
        let whole_tokens = description.whole_tokens.iter().map(|(_, id)| *id);
        let whole_tokens = WholeTokens::new(
            whole_tokens.map(|id| (id, unreachable.remove(&id).flatten())).collect(),
        );
        Ok(BpeEncoder {
            adjacency: description.merges.adjacency,
            splitter,
            symbols: description.symbols,
            whole_tokens,
            model: description.model,
            by_text,
            origins,
            prepends: description.prepends,
            prepends_after_special: description.prepends_after_special,
            transition_tables: SetOnce::new(),
            saved_transitions: ForkSafeMutex::default(),
            adjacency_masks: AdjacencyMasks::default(),
            unsettled: UnsettledBoundaries::default(),
            free_text: FreeTextTables::default(),
            parts: PartLibrary::default(),
            extension: SetOnce::new(),
        })
    }

    /// Checks that the vocabulary belongs to this tokenizer and that every token with a string has
    /// bytes in it.
    ///
    /// # Errors
    ///
    /// The vocabulary belongs to another tokenizer, or one of its end tokens is text to this one.
    pub fn check(&self, vocabulary: &Vocabulary) -> Result<(), Error> {
        let mut text = Vec::new();
        for token in
            (0..self.origins.len() as u32).filter(|&id| self.origin(id) != TokenOrigin::Never)
        {
            let Some(bytes) = vocabulary.token_bytes(token) else {
                return Err(Error::new(format!(
                    "token {token} has bytes in the tokenizer, but not in this vocabulary"
                ))
                .hint("end tokens must be special tokens of the tokenizer"));
            };
            // Base symbols identify the vocabulary; all other tokens are made of them.
            if self.is_merging() && bytes.len() == 1 && self.origin(token) == TokenOrigin::Merged {
                text.clear();
                self.merge(bytes, &mut text);
                if text != [token] {
                    return Err(Error::new("the vocabulary does not match the tokenizer"));
                }
            }
        }
        let mut texts: Vec<_> = self.by_text.iter().collect();
        texts.sort_unstable();
        for (spelled, &token) in texts {
            if vocabulary.token_bytes(token) != Some(spelled) {
                let text = String::from_utf8_lossy(spelled);
                return Err(Error::new(format!(
                    "added token {token} matches {text:?}, but decodes to other bytes"
                ))
                .hint(
                    "decoding this added token does not reproduce its string; use \
                     tokenization=\"all\"",
                ));
            }
        }
        Ok(())
    }

    /// Returns the way in which the tokenizer produces a token.
    #[inline]
    pub fn origin(&self, token: u32) -> TokenOrigin {
        self.origins.get(token as usize).copied().unwrap_or(TokenOrigin::Never)
    }

    /// Returns the token of a byte that belongs to no symbol. Returns `None` if every byte is a
    /// symbol or such bytes have no tokens.
    pub fn byte_token(&self, byte: u8) -> Option<u32> {
        self.symbols.byte_token(byte)
    }

    /// Returns the token from which merging of a byte begins; `None` if symbols are characters.
    pub fn symbol(&self, byte: u8) -> Option<u32> {
        match &self.symbols {
            BaseSymbols::Bytes(ids) => Some(ids[usize::from(byte)]),
            BaseSymbols::Characters(..) => None,
        }
    }

    /// Returns the strings of added tokens, sorted.
    pub fn added_token_strings(&self) -> Vec<String> {
        let added = self.by_text.iter().filter(|(_, id)| self.origin(**id) == TokenOrigin::Added);
        let mut texts: Vec<String> =
            added.map(|(text, _)| String::from_utf8_lossy(text).into_owned()).collect();
        texts.sort_unstable();
        texts
    }

    /// Returns the splitter of text into pre-tokens.
    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Returns the tokens inside parts of languages that were prepared.
    pub fn part_library(&self) -> &PartLibrary {
        &self.parts
    }

    /// Returns how far what follows a text can matter to the tokens before it.
    pub fn unsettled_boundaries(&self) -> &UnsettledBoundaries {
        &self.unsettled
    }

    /// Returns the byte position of the first character because of which the normalizer changes a
    /// text. Returns `None` if it does not.
    pub fn first_change(&self, text: &str) -> Option<usize> {
        self.splitter.first_change(text, &self.added_token_strings())
    }

    /// Returns `true` if spaces are written as a mark, which text then cannot contain itself.
    pub fn escapes_spaces(&self) -> bool {
        self.model.marks_spaces(matches!(self.symbols, BaseSymbols::Characters(..)))
    }

    /// Returns `true` if encoding prepends a space, so that only strings that begin with a space
    /// decode to themselves.
    pub fn prepends_space(&self) -> bool {
        self.prepends
    }

    /// Returns `true` if encoding prepends a space to a text after a special token.
    pub fn prepends_after_special(&self) -> bool {
        self.prepends_after_special
    }

    /// Returns `true` if two tokens may be adjacent inside a pre-token.
    pub fn may_follow(&self, first: u32, second: u32) -> bool {
        let merged = |token| self.adjacency.is_reachable(token);
        !merged(first) || !merged(second) || self.adjacency.crossing_merge(first, second).is_none()
    }

    /// Returns the two tokens that merging would join across the border of two tokens that may not
    /// be adjacent.
    pub fn crossing_merge(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        let merged = |token| self.adjacency.is_reachable(token);
        if merged(first) && merged(second) {
            self.adjacency.crossing_merge(first, second)
        } else {
            None
        }
    }

    /// Passes to `each`, some several times, the tokens that may not follow (`after`) or precede
    /// `token` inside a pre-token.
    pub fn forbidden(&self, token: u32, after: bool, each: impl FnMut(&[u32])) {
        self.adjacency.for_each_forbidden(token, after, each);
    }

    /// Returns `true` if a pre-token may end in this state.
    #[inline]
    pub fn pretoken_may_end(&self, path: PretokenState) -> bool {
        !self.is_merging() || self.whole_tokens.may_end(path)
    }

    /// Returns `true` if the pre-token must end, because its only token is a whole token.
    pub fn pretoken_must_end(&self, path: PretokenState) -> bool {
        self.is_merging() && path == PretokenState::WHOLE
    }

    /// Returns the tokens that lead from a state between pieces of whole tokens to another state
    /// than from [`PretokenState::PLAIN`], if they do not begin a pre-token. All other tokens lead to
    /// the same states from both.
    pub fn tokens_after_pieces(&self, path: PretokenState) -> &[u32] {
        self.whole_tokens.tokens_after(path)
    }

    /// Encodes `text` without prepending a space. Returns `None` if no tokens spell it.
    pub fn encode(&self, text: &str) -> Option<Vec<u32>> {
        let pieces = self.splitter.pretokens(text.as_bytes())?;
        let mut tokens = Vec::new();
        for (at, &(start, boundary)) in pieces.iter().enumerate() {
            let end = pieces.get(at + 1).map_or(text.len(), |next| next.0);
            // A pre-token may begin inside a character.
            let piece = &text.as_bytes()[start..end];
            if !self.encode_pretoken(piece, boundary, &mut tokens) {
                return None;
            }
        }
        Some(tokens)
    }

    /// Appends the tokens of a whole pre-token with the boundary before it. Returns `false` if no
    /// tokens spell it.
    pub fn encode_pretoken(&self, pretoken: &[u8], boundary: Boundary, out: &mut Vec<u32>) -> bool {
        match self.by_text.get(pretoken).copied() {
            Some(token)
                if (self.origin(token) == TokenOrigin::Added) == (boundary == Boundary::Added) =>
            {
                out.push(token);
                true
            }
            _ => self.model.encode(pretoken, out).unwrap_or_else(|| {
                self.merge(pretoken, out);
                true
            }),
        }
    }

    /// Appends the tokens that merging makes of a part of a pre-token. The part may begin and end
    /// inside characters if symbols are bytes.
    pub fn merge(&self, piece: &[u8], out: &mut Vec<u32>) {
        if self.model.encode(piece, out).is_some() {
            return;
        }
        let mut symbols = Vec::with_capacity(piece.len());
        self.symbols.read(piece, &mut symbols);
        self.adjacency.rules().merge(&mut symbols, |_, _| ());
        out.append(&mut symbols);
    }

    /// Returns the number of early tokens: those made by a rule of no higher rank than that of a
    /// part.
    pub fn early_count(&self) -> usize {
        self.adjacency.early_count()
    }

    /// Returns the approximate memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let own = self.adjacency.memory_bytes() + self.splitter.memory_bytes();
        own + 2 * self.origins.len() + self.model.memory_bytes() + self.shared_bytes()
    }
}

/// Returns the origin of each token, and the tokens that are looked up by their string.
fn origins(description: &BpeSpec) -> Result<(Vec<TokenOrigin>, ByText), Error> {
    let adjacency = &description.merges.adjacency;
    let bytes: Vec<u32> =
        (0..=255).filter_map(|byte| description.symbols.byte_token(byte)).collect();
    let added = description.added.iter().map(|(_, id)| *id);
    let ids = added.chain(bytes.iter().copied()).map(|id| id as usize + 1);
    let own = description.model.origins();
    let len = ids.max().unwrap_or_default().max(adjacency.len()).max(own.len());
    if len > MAX_IDS {
        return Err(Error::new(format!("token ids must be less than {MAX_IDS}")).at("added_tokens"));
    }
    let mut origins = vec![TokenOrigin::Never; len];
    for id in (0..adjacency.len() as u32).filter(|&id| adjacency.is_reachable(id)) {
        origins[id as usize] = TokenOrigin::Merged;
    }
    origins[..own.len()].copy_from_slice(&own);
    let mut by_text: ByText = FxHashMap::default();
    for (text, id) in &description.whole_tokens {
        origins[*id as usize] = TokenOrigin::Whole;
        by_text.insert(text.clone(), *id);
    }
    for (byte, &id) in bytes.iter().enumerate() {
        if origins[id as usize] != TokenOrigin::Never {
            return Err(refused("its merges produce a token of a single byte"));
        }
        origins[id as usize] = TokenOrigin::Byte(byte as u8);
    }
    for (text, id) in &description.added {
        origins[*id as usize] = TokenOrigin::Added;
        by_text.insert(text.clone().into_bytes(), *id);
    }
    Ok((origins, by_text))
}
