//! Where a tokenizer cuts text before merging, as one deterministic machine over marked text.
//!
//! A text with a mark in front of every character that begins a piece is read byte by byte; the
//! machine accepts exactly one marking of every text: the tokenizer's. Divisions are done one after
//! the other, each within the pieces of the one before.

use formalm_automata::{CharSet, Partition, Reading};
use rustc_hash::FxHashMap;

use super::pretokenizer_dfa::explore;
use super::pretokenizer_nfa::Division;
use crate::Error;

/// States of a machine; a tokenizer that needs more is refused.
pub(super) const MOST_STATES: usize = 4096;

/// States times rows inside of characters, of what was saved.
const MOST_INSIDE: usize = 1 << 22;

/// Transitions to nowhere.
pub(super) const DEAD: u32 = u32::MAX;

/// The bits of a place below the row.
const LOW_BITS: u32 = 3;
const ALONE: u32 = 4;
const MARK: u32 = 3;

/// What begins with a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Nothing.
    Inside = 0,
    /// A piece of text to be merged.
    Piece = 1,
    /// A piece that is an added token.
    Added = 2,
}

/// All marks.
pub const MARKS: [Mark; 3] = [Mark::Inside, Mark::Piece, Mark::Added];

/// A position in a marked text; meaningless in any other [`Splitter`].
pub type Place = u32;

/// The machine.
#[derive(Debug)]
pub struct Splitter {
    partition: Partition,
    /// A place is a state, the row inside of a character plus one, whether its bytes are tokens
    /// each for itself, and the mark in front of it; the row has this many bits.
    row_bits: u32,
    /// `[state][mark][class]`
    table: Vec<u32>,
    ends: Vec<bool>,
    added: Vec<bool>,
    /// Per class whether its characters are symbols.
    symbols: Vec<bool>,
    /// Per state and mark which classes of characters lead on, by number.
    ways_on: Vec<u32>,
    /// Per such number and row whether some character can be completed; with and without those
    /// that are symbols.
    completable: Vec<[bool; 2]>,
}

impl Splitter {
    /// The machine of some divisions, at least one. Characters in `symbols` are told apart from
    /// others, and texts with characters in `never` are not read.
    ///
    /// # Errors
    ///
    /// It would have too many states.
    pub(crate) fn new(
        mut divisions: Vec<Division>,
        has_added: bool,
        symbols: &CharSet,
        never: &CharSet,
    ) -> Result<Splitter, Error> {
        let sets = divisions.iter().flat_map(|division| division.program.sets());
        let partition = Partition::new(sets.chain([symbols, never]))
            .ok_or_else(|| Error::new("the pre-tokenizer tells too many characters apart"))?;
        for division in &mut divisions {
            division.use_classes(partition.representatives());
        }
        let within = |set: &CharSet| -> Vec<bool> {
            partition.representatives().iter().map(|&c| set.contains(c)).collect()
        };
        let states = explore(&divisions, has_added, &within(never))?;
        let flags = [states.ends, states.added, within(symbols)];
        Ok(Splitter::over(partition, states.table, flags))
    }

    fn over(partition: Partition, table: Vec<u32>, flags: [Vec<bool>; 3]) -> Splitter {
        let row_bits = (partition.row_count() + 1).next_power_of_two().trailing_zeros();
        let [ends, added, symbols] = flags;
        let (ways_on, completable) = (Vec::new(), Vec::new());
        let mut splitter =
            Splitter { partition, row_bits, table, ends, added, symbols, ways_on, completable };
        splitter.find_completable();
        splitter
    }

    /// All there is to save: the classes of characters, the transitions, and for states whether
    /// texts end there and whether they are in an added token, for classes whether they are symbols.
    pub(super) fn parts(&self) -> (Vec<u32>, &[u32], [&[bool]; 3]) {
        (self.partition.to_numbers(), &self.table, [&self.ends, &self.added, &self.symbols])
    }

    /// What [`Splitter::parts`] gave; none if it contradicts itself.
    pub(super) fn from_parts(
        partition: &[u32],
        table: Vec<u32>,
        flags: [Vec<bool>; 3],
    ) -> Option<Splitter> {
        let partition = Partition::from_numbers(partition)?;
        let (states, classes) = (flags[0].len(), partition.len());
        let fits = (1..=2 * MOST_STATES).contains(&states)
            && states * partition.row_count() <= MOST_INSIDE
            && flags[1].len() == states
            && flags[2].len() == classes
            && table.len() == 3 * states * classes
            && table.iter().all(|&next| next == DEAD || (next as usize) < states);
        fits.then(|| Splitter::over(partition, table, flags))
    }

    /// Notes inside of which characters there is a way on.
    fn find_completable(&mut self) {
        let (rows, classes) = (self.partition.row_count(), self.partition.len());
        let chunks = classes.div_ceil(64);
        // Classes as bits, by row.
        let mut within = vec![vec![0u64; chunks]; rows];
        // A row leads to rows that were made before it.
        for row in 0..rows {
            for byte in 0x80..0xc0 {
                match self.partition.next(row as u16, byte) {
                    Reading::Complete(class) => {
                        within[row][usize::from(class) / 64] |= 1 << (class % 64);
                    }
                    Reading::Inside(next) => {
                        let next = within[usize::from(next)].clone();
                        within[row].iter_mut().zip(next).for_each(|(has, more)| *has |= more);
                    }
                    Reading::Dead => {}
                }
            }
        }
        let mut alone = vec![0u64; chunks];
        for class in (0..classes).filter(|&class| !self.symbols[class]) {
            alone[class / 64] |= 1 << (class % 64);
        }
        // Most states go on with the same classes as another one.
        let mut known: FxHashMap<Box<[u64]>, u32> = FxHashMap::default();
        let mut alive = vec![0u64; chunks];
        for row in self.table.chunks_exact(classes) {
            for (bits, nexts) in alive.iter_mut().zip(row.chunks(64)) {
                let bit = |(at, &next): (usize, &u32)| u64::from(next != DEAD) << at;
                *bits = nexts.iter().enumerate().map(bit).sum();
            }
            let id = known.get(&*alive).copied().unwrap_or_else(|| {
                let id = known.len() as u32;
                known.insert((&*alive).into(), id);
                for within in &within {
                    let both = || within.iter().zip(&alive).map(|(one, other)| one & other);
                    let any = both().any(|bits| bits != 0);
                    let alone = both().zip(&alone).any(|(bits, alone)| bits & alone != 0);
                    self.completable.push([any, alone]);
                }
                id
            });
            self.ways_on.push(id);
        }
    }

    /// Before any text.
    pub fn start(&self) -> Place {
        0
    }

    /// The place of a state, between characters.
    pub(crate) fn place_of(&self, state: u32) -> Place {
        state << (self.row_bits + LOW_BITS)
    }

    /// Whether a place is between characters.
    #[inline]
    pub fn is_between(&self, place: Place) -> bool {
        place & ((1 << (self.row_bits + LOW_BITS)) - 1) == 0
    }

    /// What a byte means at places that are as far inside of a character as this one: bytes of
    /// equal meaning lead to equal places.
    pub(crate) fn meaning(&self, place: Place, byte: u8) -> u32 {
        let reading = match place >> LOW_BITS & ((1 << self.row_bits) - 1) {
            0 => self.partition.first(byte),
            row => self.partition.next((row - 1) as u16, byte),
        };
        match reading {
            Reading::Dead => u32::MAX,
            Reading::Inside(row) => u32::from(row),
            Reading::Complete(class) => 1 << 16 | u32::from(class),
        }
    }

    /// After a byte, which has a mark if it begins a character that begins a piece.
    #[inline]
    pub fn step(&self, place: Place, byte: u8, mark: Mark) -> Option<Place> {
        self.read(place, byte, mark, place & ALONE)
    }

    /// After a byte that is a token for itself: its character must not be a symbol, nor belong to
    /// an added token.
    pub fn step_alone(&self, place: Place, byte: u8, mark: Mark) -> Option<Place> {
        self.read(place, byte, mark, ALONE).filter(|&next| !self.is_added(next))
    }

    #[inline]
    fn read(&self, place: Place, byte: u8, mark: Mark, alone: u32) -> Option<Place> {
        let state = self.state(place);
        let (reading, mark) = match place >> LOW_BITS & ((1 << self.row_bits) - 1) {
            0 => (self.partition.first(byte), mark as u32),
            // No mark inside of a character.
            _ if mark != Mark::Inside => return None,
            row => (self.partition.next((row - 1) as u16, byte), place & MARK),
        };
        match reading {
            Reading::Dead => None,
            Reading::Inside(row) => {
                let on = self.ways_on[(state * 3 + mark) as usize] as usize;
                let at = on * self.partition.row_count() + usize::from(row);
                if !self.completable[at][usize::from(alone != 0)] {
                    return None;
                }
                let row = u32::from(row) + 1;
                Some((state << self.row_bits | row) << LOW_BITS | alone | mark)
            }
            Reading::Complete(class) => {
                if alone != 0 && self.symbols[usize::from(class)] {
                    return None;
                }
                let at = (state * 3 + mark) as usize * self.partition.len() + usize::from(class);
                let next = self.table[at];
                (next != DEAD).then(|| next << (self.row_bits + LOW_BITS))
            }
        }
    }

    /// The state after the last whole character.
    #[inline]
    fn state(&self, place: Place) -> u32 {
        place >> (self.row_bits + LOW_BITS)
    }

    /// Whether a text may end here.
    #[inline]
    pub fn ends(&self, place: Place) -> bool {
        let state = self.state(place);
        place == state << (self.row_bits + LOW_BITS) && self.ends[state as usize]
    }

    /// Whether part of an added token was read last.
    #[inline]
    pub fn is_added(&self, place: Place) -> bool {
        match place & MARK {
            // No mark, or between characters.
            0 => self.added[self.state(place) as usize],
            mark => mark == Mark::Added as u32,
        }
    }

    /// Characters beside those that the machine tells apart from them.
    pub fn borders(&self) -> &[char] {
        self.partition.borders()
    }

    /// Number of states between characters.
    pub fn state_count(&self) -> usize {
        self.ends.len()
    }

    /// Where the pieces of a text begin, with their marks; none where there is no such marking,
    /// which only text that is not UTF-8 has.
    pub fn pieces(&self, text: &[u8]) -> Option<Vec<(usize, Mark)>> {
        let mut layers: Vec<Vec<(Place, usize, Mark)>> = vec![vec![(0, 0, Mark::Inside)]];
        for &byte in text {
            let mut layer: Vec<(Place, usize, Mark)> = Vec::new();
            for (from, &(place, _, _)) in layers.last()?.iter().enumerate() {
                for mark in MARKS {
                    if let Some(next) = self.step(place, byte, mark)
                        && !layer.iter().any(|&(known, _, _)| known == next)
                    {
                        layer.push((next, from, mark));
                    }
                }
            }
            layers.push(layer);
        }
        let mut at = layers.last()?.iter().position(|&(place, _, _)| self.ends(place))?;
        let mut pieces = Vec::new();
        for (position, layer) in layers.iter().enumerate().skip(1).rev() {
            let (_, from, mark) = layer[at];
            if mark != Mark::Inside {
                pieces.push((position - 1, mark));
            }
            at = from;
        }
        pieces.reverse();
        Some(pieces)
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        4 * self.table.len() + 2 * self.completable.len() + 128 * self.partition.row_count()
    }
}
