//! The pre-tokenizer as one deterministic automaton over text annotated with pre-token boundaries.
//!
//! ```text
//!  text          I   '   m     1
//!  boundaries    P   P   -   P -        P = a pre-token begins, - = inside one, A = an added token begins
//! ```
//!
//! The automaton reads bytes together with the boundary before each character. It accepts exactly
//! one annotation of every text: the tokenizer's. Split steps are applied one after the other, each
//! inside the pre-tokens of the one before.

use formalm_core::{CharPartition, CharSet, Interner, Utf8Step};

use super::byte_level_steps::SplitBytes;
use super::pretokenizer_dfa::build_dfa;
use super::pretokenizer_nfa::SplitStep;
use super::section_product::with_section_rules;
use crate::Error;
use crate::normalization::SectionRules;

/// Maximum number of states; a tokenizer that needs more is rejected. Chosen, not measured.
pub(in crate::bpe) const MAX_STATES: usize = 4096;

/// Maximum of states times rows inside characters when a saved automaton is read. Bounds memory,
/// chosen, not measured.
const MAX_INSIDE_ROWS: usize = 1 << 22;

/// The missing transition.
pub(in crate::bpe) const DEAD: u32 = u32::MAX;

/// Number of low bits of a state that hold flags; the row follows above them.
const LOW_BITS: u32 = 4;
const BYTE_TOKEN_FLAG: u32 = 4;
/// The last byte inside a character belongs to the class of [`SplitBytes`].
const SPLIT_BYTE_FLAG: u32 = 8;
const BOUNDARY_BITS: u32 = 3;

/// The boundary before a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// None: the character continues a pre-token.
    Inside = 0,
    /// A pre-token that is merged.
    Pretoken = 1,
    /// A pre-token that is an added token.
    Added = 2,
}

/// All boundaries.
pub const BOUNDARIES: [Boundary; 3] = [Boundary::Inside, Boundary::Pretoken, Boundary::Added];

/// A state of a `BoundaryAutomaton`; meaningless in any other one.
pub type BoundaryState = u32;

/// The automaton.
#[derive(Debug)]
pub struct BoundaryAutomaton {
    partition: CharPartition,
    /// Width of the row in the bit layout of a [`BoundaryState`]. From high to low: the DFA state,
    /// the row inside a character plus one, whether its last byte belongs to the class of
    /// `split_bytes`, whether its bytes are byte tokens, and the boundary before it.
    row_bits: u32,
    /// The boundaries inside characters.
    split_bytes: Option<SplitBytes>,
    /// `[state][boundary][class]`
    table: Vec<u32>,
    /// The state before a text that an inserted space begins.
    text_start: u32,
    ends: Vec<bool>,
    added: Vec<bool>,
    /// Per class, whether its characters are base symbols.
    symbols: Vec<bool>,
    /// Per state and boundary, the number of the set of character classes with a transition.
    live_classes: Vec<u32>,
    /// Per such number and row, whether some character can be completed: any one, and one that is
    /// no symbol.
    completable: Vec<[bool; 2]>,
    /// Per state and boundary, whether some character may stand there.
    admits: Vec<bool>,
}

impl BoundaryAutomaton {
    /// Builds the automaton of one or more split steps, some of which may split inside characters.
    /// Distinguishes the characters in `symbols` from others. Rejects text with characters in `never` outside of added tokens, and text that
    /// breaks `rules`.
    ///
    /// # Errors
    ///
    /// The automaton would have too many states.
    pub(crate) fn new(
        (mut split_steps, split_bytes): (Vec<SplitStep>, Option<SplitBytes>),
        has_added: bool,
        symbols: &CharSet,
        never: &CharSet,
        rules: &SectionRules,
    ) -> Result<BoundaryAutomaton, Error> {
        let sets = split_steps.iter().flat_map(|split_step| split_step.program.sets());
        let rule_sets = rules.sets();
        let sets = sets.chain([symbols, never]).chain(&rule_sets);
        let partition = CharPartition::new(sets).ok_or_else(|| {
            Error::new("the pre-tokenizer distinguishes too many character classes")
        })?;
        for split_step in &mut split_steps {
            split_step.use_classes(partition.representatives());
        }
        let within = |set: &CharSet| -> Vec<bool> {
            partition.representatives().iter().map(|&c| set.contains(c)).collect()
        };
        let states = build_dfa(&split_steps, has_added, &within(never))?;
        let (states, text_start) = with_section_rules(states, rules, partition.representatives())?;
        let flags = [states.ends, states.added, within(symbols)];
        Ok(BoundaryAutomaton::over(partition, (states.table, text_start), flags, split_bytes))
    }

    fn over(
        partition: CharPartition,
        (table, text_start): (Vec<u32>, u32),
        flags: [Vec<bool>; 3],
        split_bytes: Option<SplitBytes>,
    ) -> BoundaryAutomaton {
        let row_bits = (partition.row_count() + 1).next_power_of_two().trailing_zeros();
        let [ends, added, symbols] = flags;
        let (live_classes, completable, admits) = (Vec::new(), Vec::new(), Vec::new());
        let mut automaton = BoundaryAutomaton {
            partition,
            row_bits,
            split_bytes,
            table,
            text_start,
            ends,
            added,
            symbols,
            live_classes,
            completable,
            admits,
        };
        automaton.find_completable();
        automaton
    }

    /// Returns the tables to save: the character classes, the transitions, whether text may end in
    /// each state and whether each state is in an added token, and whether each class is a symbol.
    pub(in crate::bpe) fn parts(&self) -> (Vec<u32>, &[u32], [&[bool]; 3]) {
        (self.partition.to_numbers(), &self.table, [&self.ends, &self.added, &self.symbols])
    }

    /// Returns the number of the DFA state before a text that an inserted space begins, to save.
    pub(in crate::bpe) fn text_start_number(&self) -> u32 {
        self.text_start
    }

    /// Returns the boundaries inside characters, to save.
    pub(in crate::bpe) fn split_bytes(&self) -> Option<SplitBytes> {
        self.split_bytes
    }

    /// Rebuilds the splitter from [`BoundaryAutomaton::parts`]. Returns `None` if they contradict each
    /// other.
    pub(in crate::bpe) fn from_parts(
        partition: &[u32],
        (table, text_start): (Vec<u32>, u32),
        flags: [Vec<bool>; 3],
        split_bytes: Option<SplitBytes>,
    ) -> Option<BoundaryAutomaton> {
        let partition = CharPartition::from_numbers(partition)?;
        let (states, classes) = (flags[0].len(), partition.len());
        let fits = (1..=2 * MAX_STATES).contains(&states)
            && (text_start as usize) < states
            && states * partition.row_count() <= MAX_INSIDE_ROWS
            && flags[1].len() == states
            && flags[2].len() == classes
            && table.len() == 3 * states * classes
            && table.iter().all(|&next| next == DEAD || (next as usize) < states);
        fits.then(|| BoundaryAutomaton::over(partition, (table, text_start), flags, split_bytes))
    }

    /// Computes inside which characters some continuation exists.
    fn find_completable(&mut self) {
        let (rows, classes) = (self.partition.row_count(), self.partition.len());
        let chunks = classes.div_ceil(64);
        // Character classes as bits, by row.
        let mut within = vec![vec![0u64; chunks]; rows];
        // A row leads only to rows that were created before it.
        for row in 0..rows {
            for byte in 0x80..0xc0 {
                match self.partition.next(row as u16, byte) {
                    Utf8Step::Complete(class) => {
                        within[row][usize::from(class) / 64] |= 1 << (class % 64);
                    }
                    Utf8Step::Inside(next) => {
                        let next = within[usize::from(next)].clone();
                        within[row].iter_mut().zip(next).for_each(|(has, more)| *has |= more);
                    }
                    Utf8Step::Dead => {}
                }
            }
        }
        let mut alone = vec![0u64; chunks];
        for class in (0..classes).filter(|&class| !self.symbols[class]) {
            alone[class / 64] |= 1 << (class % 64);
        }
        // Most states have transitions for the same classes as another state.
        let mut known: Interner<Box<[u64]>> = Interner::default();
        let mut alive = vec![0u64; chunks];
        for row in self.table.chunks_exact(classes) {
            for (bits, nexts) in alive.iter_mut().zip(row.chunks(64)) {
                let bit = |(at, &next): (usize, &u32)| u64::from(next != DEAD) << at;
                *bits = nexts.iter().enumerate().map(bit).sum();
            }
            let id = known.find(&*alive).unwrap_or_else(|| {
                for within in &within {
                    let both = || within.iter().zip(&alive).map(|(one, other)| one & other);
                    let any = both().any(|bits| bits != 0);
                    let alone = both().zip(&alone).any(|(bits, alone)| bits & alone != 0);
                    self.completable.push([any, alone]);
                }
                known.intern_new((&*alive).into())
            });
            self.live_classes.push(id);
            self.admits.push(alive.iter().any(|&bits| bits != 0));
        }
    }

    /// Returns the state before any text.
    pub fn start(&self) -> BoundaryState {
        0
    }

    /// Returns the state before a text that an inserted space begins.
    pub fn text_start(&self) -> BoundaryState {
        self.between_characters(self.text_start)
    }

    /// Returns the state between characters of a DFA state.
    pub(crate) fn between_characters(&self, state: u32) -> BoundaryState {
        state << (self.row_bits + LOW_BITS)
    }

    /// Returns `true` if a state is between characters.
    #[inline]
    pub fn is_between_characters(&self, state_here: BoundaryState) -> bool {
        state_here & ((1 << (self.row_bits + LOW_BITS)) - 1) == 0
    }

    /// Returns `true` if a number is that of a state, so that it can be read on from.
    pub(in crate::bpe) fn is_state(&self, number: u32) -> bool {
        let row = number >> LOW_BITS & ((1 << self.row_bits) - 1);
        (self.state(number) as usize) < self.ends.len()
            && row as usize <= self.partition.row_count()
            && number & BOUNDARY_BITS <= Boundary::Added as u32
            && (row != 0 || self.is_between_characters(number))
    }

    /// Returns the equivalence class of `byte` at the offset of `state_here` inside a
    /// character. Equivalent bytes lead to equal states.
    pub(crate) fn byte_class(&self, state_here: BoundaryState, byte: u8) -> u32 {
        let reading = match state_here >> LOW_BITS & ((1 << self.row_bits) - 1) {
            0 => self.partition.first(byte),
            row => self.partition.next((row - 1) as u16, byte),
        };
        let meaning = match reading {
            Utf8Step::Dead => return u32::MAX,
            Utf8Step::Inside(row) => u32::from(row),
            Utf8Step::Complete(class) => 1 << 16 | u32::from(class),
        };
        let is_split_byte = self.split_bytes.is_some_and(|bytes| bytes.contains(byte));
        meaning | u32::from(is_split_byte) << 17
    }

    /// Reads a byte. `boundary` is the one before it.
    #[inline]
    pub fn step(
        &self,
        state_here: BoundaryState,
        byte: u8,
        boundary: Boundary,
    ) -> Option<BoundaryState> {
        self.read(state_here, byte, boundary, state_here & BYTE_TOKEN_FLAG)
    }

    /// Reads a byte that is a token by itself: its character must not be a symbol, nor belong to an
    /// added token.
    pub fn step_byte_token(
        &self,
        state_here: BoundaryState,
        byte: u8,
        boundary: Boundary,
    ) -> Option<BoundaryState> {
        self.read(state_here, byte, boundary, BYTE_TOKEN_FLAG)
            .filter(|&next| !self.is_in_added_token(next))
    }

    #[inline]
    fn read(
        &self,
        state_here: BoundaryState,
        byte: u8,
        boundary: Boundary,
        alone: u32,
    ) -> Option<BoundaryState> {
        let state = self.state(state_here);
        let (reading, boundary) = match state_here >> LOW_BITS & ((1 << self.row_bits) - 1) {
            0 => (self.partition.first(byte), boundary as u32),
            _ if boundary != self.boundary_inside(state_here, byte) => return None,
            row => (self.partition.next((row - 1) as u16, byte), state_here & BOUNDARY_BITS),
        };
        match reading {
            Utf8Step::Dead => None,
            Utf8Step::Inside(row) => {
                let on = self.live_classes[(state * 3 + boundary) as usize] as usize;
                let at = on * self.partition.row_count() + usize::from(row);
                if !self.completable[at][usize::from(alone != 0)] {
                    return None;
                }
                let row = u32::from(row) + 1;
                let last = match &self.split_bytes {
                    Some(bytes) if bytes.contains(byte) => SPLIT_BYTE_FLAG,
                    _ => 0,
                };
                Some((state << self.row_bits | row) << LOW_BITS | last | alone | boundary)
            }
            Utf8Step::Complete(class) => {
                if alone != 0 && self.symbols[usize::from(class)] {
                    return None;
                }
                let at =
                    (state * 3 + boundary) as usize * self.partition.len() + usize::from(class);
                let next = self.table[at];
                (next != DEAD).then(|| next << (self.row_bits + LOW_BITS))
            }
        }
    }

    /// Returns `false` if nothing that follows a state can have a boundary before its first byte.
    #[inline]
    pub fn admits(&self, state_here: BoundaryState, boundary: Boundary) -> bool {
        match self.is_between_characters(state_here) {
            true => self.admits[self.state(state_here) as usize * 3 + boundary as usize],
            false => match boundary {
                Boundary::Inside => true,
                Boundary::Pretoken => self.split_bytes.is_some(),
                Boundary::Added => false,
            },
        }
    }

    /// Returns the boundary before a byte inside a character.
    #[inline]
    fn boundary_inside(&self, state_here: BoundaryState, byte: u8) -> Boundary {
        match &self.split_bytes {
            Some(bytes)
                if bytes.begins_pretoken(state_here & SPLIT_BYTE_FLAG != 0, byte)
                    && !self.is_in_added_token(state_here) =>
            {
                Boundary::Pretoken
            }
            _ => Boundary::Inside,
        }
    }

    /// Returns the DFA state after the last whole character.
    #[inline]
    fn state(&self, state_here: BoundaryState) -> u32 {
        state_here >> (self.row_bits + LOW_BITS)
    }

    /// Returns the number of the DFA state of a state between characters.
    pub(in crate::bpe) fn state_number(&self, state_here: BoundaryState) -> u32 {
        self.state(state_here)
    }

    /// Returns `true` if the text may end in a DFA state.
    pub(in crate::bpe) fn state_may_end(&self, state: u32) -> bool {
        self.ends[state as usize]
    }

    /// Returns the number of classes of characters.
    pub(in crate::bpe) fn class_count(&self) -> usize {
        self.partition.len()
    }

    /// Returns the DFA states after a character of a class, whatever the boundary before it.
    pub(in crate::bpe) fn successors(&self, state: u32, class: usize) -> impl Iterator<Item = u32> {
        let classes = self.partition.len();
        let row = state as usize * 3 * classes + class;
        let next = (0..3).map(move |boundary| self.table[row + boundary * classes]);
        next.filter(|&next| next != DEAD)
    }

    /// Returns `true` if the text may end here.
    #[inline]
    pub fn may_end(&self, state_here: BoundaryState) -> bool {
        let state = self.state(state_here);
        state_here == state << (self.row_bits + LOW_BITS) && self.ends[state as usize]
    }

    /// Returns `true` if the byte read last belongs to an added token.
    #[inline]
    pub fn is_in_added_token(&self, state_here: BoundaryState) -> bool {
        match state_here & BOUNDARY_BITS {
            // No boundary, or between characters.
            0 => self.added[self.state(state_here) as usize],
            boundary => boundary == Boundary::Added as u32,
        }
    }

    /// Returns the border characters of the classes that the automaton distinguishes.
    pub fn class_borders(&self) -> &[char] {
        self.partition.borders()
    }

    /// Returns the number of states between characters.
    pub fn state_count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        4 * self.table.len()
            + 2 * self.completable.len()
            + self.admits.len()
            + 128 * self.partition.row_count()
    }
}
