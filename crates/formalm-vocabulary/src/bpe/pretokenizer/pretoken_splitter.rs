//! The texts that the tokenizer gives back, with their pre-token boundaries: the product of the
//! [`BoundaryAutomaton`] and the [`TextFilter`] of the normalizer.
//!
//! Text is normalized section by section. A section ends at a special token, and at an added token
//! that is searched for in the raw text; the filter starts again after it. An added token that is
//! searched for in normalized text is a part of its section.

use formalm_core::memory_bytes;

use super::boundary_automaton::{BOUNDARIES, Boundary, BoundaryAutomaton, BoundaryState};
use crate::normalization::{FilterState, SectionRules, TextFilter};

/// A state of a [`Splitter`]; meaningless in any other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SplitterState {
    /// The state of the boundary automaton.
    pub boundaries: BoundaryState,
    /// The state of the filter; [`FilterState::WEAKEST`] without a normalizer.
    pub filter: FilterState,
}

memory_bytes!(none: SplitterState);

impl SplitterState {
    /// Returns the state in which fewest texts may follow: whatever may follow there may follow
    /// here, and leads to the same states unless it ends inside its first character.
    pub fn weakest(self) -> SplitterState {
        self.with_filter(FilterState::WEAKEST)
    }

    /// Returns `true` if the state stands for those of several tokens, which differ in the filter.
    pub fn is_mixed(self) -> bool {
        self.filter == FilterState::MIXED
    }

    /// Returns the state with another state of the boundary automaton.
    pub fn with_boundaries(self, boundaries: BoundaryState) -> SplitterState {
        SplitterState { boundaries, ..self }
    }

    /// Returns the state with another state of the filter.
    pub fn with_filter(self, filter: FilterState) -> SplitterState {
        SplitterState { filter, ..self }
    }
}

/// The texts that encoding keeps: those that the normalizer leaves unchanged, with no space lost at
/// the edges of sections.
#[derive(Debug, Default)]
pub(in crate::bpe) struct SectionFilter {
    /// The steps of the normalizer, as the file spells them; empty if they change no text.
    pub(in crate::bpe) name: String,
    /// The conditions on characters and pairs of them.
    pub(in crate::bpe) text: Option<TextFilter>,
    /// The conditions that the boundary automaton contains.
    pub(in crate::bpe) rules: SectionRules,
    /// `true` if added tokens are searched for in the raw text, so that they separate sections.
    pub(in crate::bpe) added_separates: bool,
}

/// The automaton.
#[derive(Debug)]
pub struct Splitter {
    boundaries: BoundaryAutomaton,
    filter: Option<SectionFilter>,
}

impl Splitter {
    /// Creates the product.
    pub(in crate::bpe) fn new(
        boundaries: BoundaryAutomaton,
        filter: Option<SectionFilter>,
    ) -> Splitter {
        Splitter { boundaries, filter }
    }

    /// Returns the automaton of boundaries, which reads every text.
    pub(in crate::bpe) fn boundaries(&self) -> &BoundaryAutomaton {
        &self.boundaries
    }

    pub(in crate::bpe) fn section_filter(&self) -> Option<&SectionFilter> {
        self.filter.as_ref()
    }

    /// Returns the filter of texts that the normalizer leaves unchanged, if it changes any.
    pub fn text_filter(&self) -> Option<&TextFilter> {
        self.filter.as_ref()?.text.as_ref()
    }

    /// Returns the steps of the normalizer that change texts, as the tokenizer's file spells them.
    pub fn normalizer_name(&self) -> Option<&str> {
        self.filter.as_ref().map(|filter| &filter.name[..]).filter(|name| !name.is_empty())
    }

    /// Returns the number of bytes of a text up to the first character that makes the normalizer
    /// change it. Returns `None` if nothing does. `added` are the strings of added tokens.
    pub fn first_change(&self, text: &str, added: &[String]) -> Option<usize> {
        let filter = self.filter.as_ref()?;
        let mut sections = vec![(0, text)];
        if filter.added_separates {
            sections.clear();
            let mut start = 0;
            let mut at = 0;
            while at < text.len() {
                let here = &text[at..];
                let longest = added.iter().filter(|one| here.starts_with(&one[..]));
                let length = longest.map(String::len).max().unwrap_or(0);
                if length > 0 {
                    sections.push((start, &text[start..at]));
                    start = at + length;
                }
                at += length.max(here.chars().next().map_or(1, char::len_utf8));
            }
            sections.push((start, &text[start..]));
        }
        sections.into_iter().find_map(|(start, section)| {
            let by_text = filter.text.as_ref().and_then(|filter| filter.first_change(section));
            let by_rules = filter.rules.first_change(section);
            by_text.into_iter().chain(by_rules).min().map(|at| start + at)
        })
    }

    /// Returns the state before any text.
    pub fn start(&self) -> SplitterState {
        SplitterState { boundaries: self.boundaries.start(), filter: self.section_start() }
    }

    /// Returns the state before a text that an inserted space begins.
    pub fn text_start(&self) -> SplitterState {
        SplitterState { boundaries: self.boundaries.text_start(), filter: self.section_start() }
    }

    fn section_start(&self) -> FilterState {
        self.text_filter().map_or(FilterState::WEAKEST, TextFilter::start)
    }

    /// Returns `true` if a state is between characters.
    #[inline]
    pub fn is_between_characters(&self, state: SplitterState) -> bool {
        self.boundaries.is_between_characters(state.boundaries)
    }

    /// Reads a byte. `boundary` is the one before it if it begins a character.
    #[inline]
    pub fn step(
        &self,
        state: SplitterState,
        byte: u8,
        boundary: Boundary,
    ) -> Option<SplitterState> {
        self.filtered(state, byte, self.boundaries.step(state.boundaries, byte, boundary)?)
    }

    /// Reads a byte that is a token by itself: its character must not be a symbol, nor belong to an
    /// added token.
    pub fn step_byte_token(
        &self,
        state: SplitterState,
        byte: u8,
        boundary: Boundary,
    ) -> Option<SplitterState> {
        let boundaries = self.boundaries.step_byte_token(state.boundaries, byte, boundary)?;
        self.filtered(state, byte, boundaries)
    }

    #[inline]
    fn filtered(
        &self,
        state: SplitterState,
        byte: u8,
        boundaries: BoundaryState,
    ) -> Option<SplitterState> {
        let filter = match (self.text_filter(), &self.filter) {
            (Some(text), Some(filter)) => {
                match filter.added_separates && self.boundaries.is_in_added_token(boundaries) {
                    true => text.start(),
                    false => text.step(state.filter, byte)?,
                }
            }
            _ => FilterState::WEAKEST,
        };
        Some(SplitterState { boundaries, filter })
    }

    /// Returns `false` if nothing that follows a state can have a boundary before its first byte.
    #[inline]
    pub fn admits(&self, state: SplitterState, boundary: Boundary) -> bool {
        self.boundaries.admits(state.boundaries, boundary)
    }

    /// Returns `true` if the text may end here.
    #[inline]
    pub fn may_end(&self, state: SplitterState) -> bool {
        self.boundaries.may_end(state.boundaries)
    }

    /// Returns `true` if the byte read last belongs to an added token.
    #[inline]
    pub fn is_in_added_token(&self, state: SplitterState) -> bool {
        self.boundaries.is_in_added_token(state.boundaries)
    }

    /// Returns the state with the given boundaries that stands for several states of the filter,
    /// if there is one.
    pub fn with_mixed_filter(&self, boundaries: BoundaryState) -> SplitterState {
        let filter = match self.text_filter() {
            Some(_) => FilterState::MIXED,
            None => FilterState::WEAKEST,
        };
        SplitterState { boundaries, filter }
    }

    /// Returns the state of saved numbers: one of the boundaries, and one of the filter, which may
    /// be mixed. Returns `None` if there is no such state.
    pub(in crate::bpe) fn state_of_numbers(
        &self,
        [boundaries, filter]: [u32; 2],
    ) -> Option<SplitterState> {
        let filter = match self.text_filter() {
            Some(text) => text.state_of_number(filter)?,
            None => Some(FilterState::WEAKEST).filter(|weakest| weakest.number() == filter)?,
        };
        self.boundaries.is_state(boundaries).then_some(SplitterState { boundaries, filter })
    }

    /// Returns the border characters of the classes that the pre-tokenizer distinguishes.
    pub fn class_borders(&self) -> &[char] {
        self.boundaries.class_borders()
    }

    /// Returns the starts of the pre-tokens of a text with their boundaries. Returns `None` if no
    /// annotation exists: the normalizer changes the text, the pre-tokenizer drops a part of it, or
    /// it is not UTF-8.
    pub fn pretokens(&self, text: &[u8]) -> Option<Vec<(usize, Boundary)>> {
        self.pretokens_after(self.start(), text)
    }

    /// Returns the starts of the pre-tokens of the rest of a text after a state, with their
    /// boundaries. Text before the first one continues a pre-token. Returns `None` if no annotation
    /// exists.
    pub fn pretokens_after(
        &self,
        state: SplitterState,
        text: &[u8],
    ) -> Option<Vec<(usize, Boundary)>> {
        let mut layers: Vec<Vec<(SplitterState, usize, Boundary)>> =
            vec![vec![(state, 0, Boundary::Inside)]];
        for &byte in text {
            let mut layer: Vec<(SplitterState, usize, Boundary)> = Vec::new();
            for (from, &(state, _, _)) in layers.last()?.iter().enumerate() {
                for boundary in BOUNDARIES {
                    if let Some(next) = self.step(state, byte, boundary)
                        && !layer.iter().any(|&(known, _, _)| known == next)
                    {
                        layer.push((next, from, boundary));
                    }
                }
            }
            layers.push(layer);
        }
        let mut at = layers.last()?.iter().position(|&(state, _, _)| self.may_end(state))?;
        let mut pieces = Vec::new();
        for (position, layer) in layers.iter().enumerate().skip(1).rev() {
            let (_, from, boundary) = layer[at];
            if boundary != Boundary::Inside {
                pieces.push((position - 1, boundary));
            }
            at = from;
        }
        pieces.reverse();
        Some(pieces)
    }

    /// Returns `true` if spaces next to added tokens are inserted or dropped.
    pub(in crate::bpe) fn loses_spaces(&self) -> bool {
        let rules = self.filter.as_ref().map(|filter| &filter.rules);
        rules.is_some_and(|rules| !rules.is_empty())
    }

    /// Returns the number of bytes of a text that some text with an annotation begins with.
    pub(in crate::bpe) fn longest_prefix(&self, text: &[u8]) -> usize {
        let mut states = vec![self.start()];
        for (at, &byte) in text.iter().enumerate() {
            let after = |&state: &SplitterState| {
                BOUNDARIES.into_iter().filter_map(move |boundary| self.step(state, byte, boundary))
            };
            let mut next: Vec<SplitterState> = states.iter().flat_map(after).collect();
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return at;
            }
            states = next;
        }
        text.len()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let filter = self.text_filter().map_or(0, TextFilter::memory_bytes);
        self.boundaries.memory_bytes() + filter
    }
}
