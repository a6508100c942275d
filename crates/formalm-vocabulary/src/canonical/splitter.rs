//! Where a tokenizer cuts text before merging, as one deterministic machine over marked text.
//!
//! A text with a mark in front of every character that begins a piece is read byte by byte; the
//! machine accepts exactly one marking of every text: the tokenizer's. Divisions are done one after
//! the other, each within the pieces of the one before.

use formalm_automata::{CharSet, Partition, Reading};
use rustc_hash::FxHashMap;

use super::segments::{Division, Guess, Segment};
use crate::Error;

/// States of a machine; a tokenizer that needs more is refused.
const MOST_STATES: usize = 4096;

/// Instructions looked at while the machine is built: bounds the time it takes.
const MOST_WORK: usize = 2_000_000_000;

/// States times rows inside of characters, of what was saved.
const MOST_INSIDE: usize = 1 << 22;

/// Transitions to nowhere.
const DEAD: u32 = u32::MAX;

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
    /// Per state, row and mark, whether some character can be completed; with and without those
    /// that are symbols.
    completable: Vec<[bool; 2]>,
}

/// One guess about each division; none where it has read nothing of the current piece.
type Guesses = Vec<Option<Segment>>;

/// Building a [`Splitter`].
struct Builder<'a> {
    divisions: &'a [Division],
    /// Matches of the first division are added tokens.
    has_added: bool,
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
        let builder = Builder { divisions: &divisions, has_added };
        let symbols = partition.representatives().iter().map(|&c| symbols.contains(c)).collect();
        let (states, mut table) = builder.explore(partition.len())?;
        for (at, next) in table.iter_mut().enumerate() {
            if never.contains(partition.representatives()[at % partition.len()]) {
                *next = DEAD;
            }
        }
        let ends: Vec<bool> =
            states.iter().map(|state| state.iter().any(|guesses| builder.ends(guesses))).collect();
        let added = states
            .iter()
            .map(|state| state.iter().any(|guesses| builder.is_added(guesses)))
            .collect();
        trim(&mut table, &ends, 3 * partition.len());
        Ok(Splitter::over(partition, table, [ends, added, symbols]))
    }

    fn over(partition: Partition, table: Vec<u32>, flags: [Vec<bool>; 3]) -> Splitter {
        let row_bits = (partition.row_count() + 1).next_power_of_two().trailing_zeros();
        let [ends, added, symbols] = flags;
        let mut splitter =
            Splitter { partition, row_bits, table, ends, added, symbols, completable: Vec::new() };
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
        let bits = |has: &dyn Fn(usize) -> bool| -> Vec<u64> {
            let chunk = |at: usize| (64 * at..classes.min(64 * at + 64)).filter(|&c| has(c));
            (0..chunks)
                .map(|at| chunk(at).fold(0, |bits, class| bits | 1 << (class % 64)))
                .collect()
        };
        let alone = bits(&|class| !self.symbols[class]);
        for state in 0..self.ends.len() {
            let alive = [0, 1, 2].map(|mark| {
                let start = (state * 3 + mark) * classes;
                bits(&|class| self.table[start + class] != DEAD)
            });
            for within in &within {
                for alive in &alive {
                    let both = || within.iter().zip(alive).map(|(one, other)| one & other);
                    let any = both().any(|bits| bits != 0);
                    let alone = both().zip(&alone).any(|(bits, alone)| bits & alone != 0);
                    self.completable.push([any, alone]);
                }
            }
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
                let at = (state as usize * self.partition.row_count() + usize::from(row)) * 3;
                if !self.completable[at + mark as usize][usize::from(alone != 0)] {
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
        4 * self.table.len() + 128 * self.partition.row_count()
    }
}

impl Builder<'_> {
    /// All states, and where each leads.
    fn explore(&self, classes: usize) -> Result<(Vec<Vec<Guesses>>, Vec<u32>), Error> {
        let instructions: usize =
            self.divisions.iter().map(|division| division.program.len()).sum();
        let mut known = Known::new(vec![None; self.divisions.len()], classes);
        let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::from_iter([(vec![0], 0)]);
        let mut states: Vec<Vec<u32>> = vec![vec![0]];
        let mut table = Vec::new();
        let (mut at, mut work) = (0, 0);
        while at < states.len() {
            let mut after: Vec<Vec<Vec<u32>>> = vec![vec![Vec::new(); classes]; 3];
            for &guesses in &states[at] {
                for class in 0..classes as u16 {
                    for &(next, mark) in known.after(self, guesses, class) {
                        after[mark as usize][usize::from(class)].push(next);
                    }
                }
            }
            for mut state in after.into_iter().flatten() {
                state.sort_unstable();
                state.dedup();
                if state.is_empty() {
                    table.push(DEAD);
                    continue;
                }
                let next = states.len() as u32;
                let id = *ids.entry(state.clone()).or_insert(next);
                if id == next {
                    states.push(state);
                }
                table.push(id);
            }
            work += states[at].len() * classes;
            if states.len() > MOST_STATES || work + known.steps * instructions > MOST_WORK {
                let message = format!(
                    "the pre-tokenizer needs more than {MOST_STATES} states, or is too large"
                );
                return Err(Error::new(message).at("pre_tokenizer"));
            }
            at += 1;
        }
        let guesses =
            |state: Vec<u32>| state.into_iter().map(|id| known.list[id as usize].clone()).collect();
        Ok((states.into_iter().map(guesses).collect(), table))
    }

    /// Every way to go on with a character, and the mark in front of it.
    fn step(&self, guesses: &Guesses, class: u16) -> Vec<(Guesses, Mark)> {
        let mut ways: Vec<(Guesses, Mark)> = vec![(Vec::new(), Mark::Inside)];
        for (level, (division, segment)) in self.divisions.iter().zip(guesses).enumerate() {
            let mut further = Vec::new();
            for (before, mark) in &ways {
                let in_added = self.has_added
                    && before.first().is_some_and(|first: &Option<Segment>| {
                        first.as_ref().is_some_and(Segment::is_match)
                    });
                let mut add = |segment: Option<Segment>, mark: Mark| {
                    let mut next = before.clone();
                    next.push(segment);
                    further.push((next, mark));
                };
                let begins = *mark != Mark::Inside || segment.is_none();
                // Where a piece begins, the one before must be complete in itself.
                if begins && segment.as_ref().is_some_and(|segment| !division.ends(segment)) {
                    continue;
                }
                if in_added {
                    // An added token is not divided further.
                    add(None, *mark);
                    continue;
                }
                let Some(segment) = segment.as_ref().filter(|_| !begins) else {
                    for guess in [Guess::Match, Guess::Gap] {
                        let added = level == 0 && self.has_added && guess == Guess::Match;
                        let mark = if added { Mark::Added } else { Mark::Piece };
                        if let Some(segment) = division.begin(class, guess) {
                            add(Some(segment), mark);
                        }
                    }
                    continue;
                };
                for guess in [Guess::Same, Guess::Match, Guess::Gap] {
                    let Some(next) = division.step(segment, class, guess) else { continue };
                    let added = level == 0 && self.has_added && guess == Guess::Match;
                    let mark = match guess {
                        Guess::Same => Mark::Inside,
                        _ if added => Mark::Added,
                        _ if division.parts(segment, guess) => Mark::Piece,
                        _ => Mark::Inside,
                    };
                    add(Some(next), mark);
                }
            }
            ways = further;
        }
        ways
    }

    fn ends(&self, guesses: &Guesses) -> bool {
        self.divisions
            .iter()
            .zip(guesses)
            .all(|(division, segment)| segment.as_ref().is_none_or(|s| division.ends(s)))
    }

    fn is_added(&self, guesses: &Guesses) -> bool {
        self.has_added
            && guesses.first().is_some_and(|first| first.as_ref().is_some_and(Segment::is_match))
    }
}

/// Ways to go on: guesses by number, and the mark in front of the character.
type Ways = Box<[(u32, Mark)]>;

/// Guesses met so far, and where each leads: many states have the same ones.
struct Known {
    ids: FxHashMap<Guesses, u32>,
    list: Vec<Guesses>,
    classes: usize,
    /// Per guesses and class, where that was asked for.
    ways: Vec<Option<Ways>>,
    /// How often that was.
    steps: usize,
}

impl Known {
    fn new(start: Guesses, classes: usize) -> Known {
        let mut known = Known {
            ids: FxHashMap::default(),
            list: Vec::new(),
            classes,
            ways: Vec::new(),
            steps: 0,
        };
        known.id(start);
        known
    }

    fn id(&mut self, guesses: Guesses) -> u32 {
        let next = self.list.len() as u32;
        let id = *self.ids.entry(guesses.clone()).or_insert(next);
        if id == next {
            self.list.push(guesses);
            self.ways.resize(self.list.len() * self.classes, None);
        }
        id
    }

    /// Every way to go on with a character.
    fn after(&mut self, builder: &Builder<'_>, guesses: u32, class: u16) -> &[(u32, Mark)] {
        let at = guesses as usize * self.classes + usize::from(class);
        if self.ways[at].is_none() {
            self.steps += 1;
            let ways = builder.step(&self.list[guesses as usize], class);
            let ways = ways.into_iter().map(|(next, mark)| (self.id(next), mark)).collect();
            self.ways[at] = Some(ways);
        }
        self.ways[at].as_deref().unwrap_or_default()
    }
}

/// Removes transitions to states from which no text ends.
fn trim(table: &mut [u32], ends: &[bool], row: usize) {
    let mut live = ends.to_vec();
    let mut changed = true;
    while changed {
        changed = false;
        for state in 0..live.len() {
            let mut row = table[state * row..(state + 1) * row].iter();
            if !live[state] && row.any(|&next| next != DEAD && live[next as usize]) {
                live[state] = true;
                changed = true;
            }
        }
    }
    for next in table.iter_mut() {
        if *next != DEAD && !live[*next as usize] {
            *next = DEAD;
        }
    }
}
