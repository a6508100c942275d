//! The automaton of texts that a normalizer leaves unchanged.
//!
//! A text is in NFC iff three conditions hold.
//!
//! 1. Every character is: it normalizes to itself.
//! 2. Along each run of combining marks the combining classes do not fall.
//! 3. No character composes with the starter before it, unless a mark in between blocks it. The
//!    pair is tested alone: the marks in between that are sorted before the character are a part of
//!    what the starter composes with in either text.
//!
//! So the state is the last starter and the class of the last mark. Starters that compose with the
//! same characters are one *row*. NFD has condition 2 and its own condition 1. Every prefix of such
//! a text is one too.
//!
//! The characters are read byte by byte, and states are computed, not stored.

use formalm_core::{CharPartition, CharSet, Interner, Utf8Step};
use rustc_hash::{FxHashMap, FxHashSet};

use super::charsmap_filter::ChangedPairs;
use super::unicode_tables::{NormalizationForm, UnicodeTables};

/// A state of a [`TextFilter`]. From high to low: the row inside a character plus one, the row of
/// the last starter, the class of the last mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterState(u32);

/// The row of a starter that is unknown: no character may follow that some starter composes with.
const UNKNOWN_ROW: u32 = 0;

/// The row of starters that compose with nothing.
const PLAIN_ROW: u32 = 1;

/// The number of rows that are not of starters.
const RESERVED_ROWS: usize = 2;

const ROW_BITS: u32 = 8;
const CLASS_BITS: u32 = 8;
const INSIDE_SHIFT: u32 = ROW_BITS + CLASS_BITS;

/// The class of the last mark if it is unknown: no mark may follow.
const UNKNOWN_CLASS: u32 = 0xFF;

/// The effect of a class of characters that the normalizer changes.
const UNSTABLE: u32 = u32::MAX;

impl FilterState {
    /// The weakest state: whatever may be read from here may be read from every state, and with the
    /// same result.
    pub const WEAKEST: FilterState = FilterState(UNKNOWN_ROW << CLASS_BITS | UNKNOWN_CLASS);

    /// No state: stands for the states of several tokens.
    pub(crate) const MIXED: FilterState = FilterState(u32::MAX);

    /// The state at the beginning of a text, where no character composes with an earlier one.
    const START: FilterState = FilterState(PLAIN_ROW << CLASS_BITS);

    fn inside(self, row: u16) -> FilterState {
        FilterState((u32::from(row) + 1) << INSIDE_SHIFT | self.0 & ((1 << INSIDE_SHIFT) - 1))
    }

    /// Returns `true` between characters.
    #[inline]
    pub fn is_between_characters(self) -> bool {
        self.0 >> INSIDE_SHIFT == 0
    }

    /// Returns the number that stands for the state in saved data.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    fn row(self) -> u32 {
        self.0 >> CLASS_BITS & ((1 << ROW_BITS) - 1)
    }

    fn class(self) -> u32 {
        self.0 & ((1 << CLASS_BITS) - 1)
    }
}

/// The part of characters in conditions 2 and 3: their own row, combining class, and number among
/// the characters that compose with an earlier one, or 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct CharEffect {
    row: u8,
    class: u8,
    second: u8,
}

impl CharEffect {
    const PLAIN: CharEffect = CharEffect { row: PLAIN_ROW as u8, class: 0, second: 0 };

    fn pack(self) -> u32 {
        u32::from(self.row) << 16 | u32::from(self.class) << 8 | u32::from(self.second)
    }

    fn unpack(packed: u32) -> CharEffect {
        let [second, class, row, _] = packed.to_le_bytes();
        CharEffect { row, class, second }
    }

    /// Returns `true` if whether the character may follow depends on the text before it.
    fn is_dependent(self) -> bool {
        self.class != 0 || self.second != 0
    }
}

/// The automaton.
#[derive(Debug)]
pub struct TextFilter {
    partition: CharPartition,
    /// Per class of characters, its effect.
    effects: Vec<u32>,
    /// Per row and second character, 1 if they compose.
    composes: Vec<u32>,
    /// Number of second characters plus one: the width of `composes`.
    second_count: usize,
    /// Per row inside a character, whether it leads to a character that depends on the text before.
    dependent: Vec<bool>,
    dependent_first: [bool; 256],
    /// Distinguishes normalizers that differ in any answer.
    digest: u32,
}

impl TextFilter {
    /// Builds the filter of a form, if any, that also rejects the characters in `changed`. Returns
    /// `None` if there are too many classes of characters.
    pub(super) fn new(
        tables: &UnicodeTables,
        form: Option<NormalizationForm>,
        changed: &CharSet,
    ) -> Option<TextFilter> {
        let mut effects: FxHashMap<char, CharEffect> = FxHashMap::default();
        let mut unstable: FxHashSet<char> = FxHashSet::default();
        let mut composes = vec![Vec::new(); RESERVED_ROWS];
        let mut second_count = 1;
        if let Some(form) = form {
            unstable
                .extend(tables.decomposed(form).filter(|&c| tables.normalize(&[c], form) != [c]));
            for mark in tables.marks() {
                let class = tables.class(mark);
                effects.insert(mark, CharEffect { class, ..CharEffect::PLAIN });
            }
            if form.composes {
                let pairs = unstable_pairs(tables, form, &unstable);
                second_count = number_pairs(&pairs, &mut effects, &mut composes)?;
            }
        }
        let mut rejected = CharSet::from_ranges(unstable.iter().map(|&c| (c, c))).union(changed);
        if form.is_some_and(|form| !form.composes) {
            rejected = rejected.union(&CharSet::from_ranges([('\u{AC00}', '\u{D7A3}')]));
        }
        TextFilter::of_effects(&effects, (composes, second_count), &rejected)
    }

    /// Builds the filter that rejects the characters and the pairs that a map of characters changes.
    /// Returns `None` if there are too many classes of characters.
    pub(crate) fn of_pairs(changed: &ChangedPairs) -> Option<TextFilter> {
        let mut effects = FxHashMap::default();
        let mut composes = vec![Vec::new(); RESERVED_ROWS];
        let second_count = number_pairs(&changed.pairs, &mut effects, &mut composes)?;
        TextFilter::of_effects(&effects, (composes, second_count), &changed.characters)
    }

    fn of_effects(
        effects: &FxHashMap<char, CharEffect>,
        (composes, second_count): (Vec<Vec<u32>>, usize),
        rejected: &CharSet,
    ) -> Option<TextFilter> {
        let mut sets: Vec<CharSet> = Vec::new();
        let mut sorted: Vec<(CharEffect, char)> =
            effects.iter().map(|(&c, &effect)| (effect, c)).collect();
        sorted.sort_unstable();
        sets.extend(
            sorted
                .chunk_by(|one, other| one.0 == other.0)
                .map(|list| CharSet::from_ranges(list.iter().map(|&(_, c)| (c, c)))),
        );
        sets.push(rejected.clone());
        let partition = CharPartition::new(&sets)?;
        let effects = partition.representatives().iter().map(|c| match rejected.contains(*c) {
            true => UNSTABLE,
            false => effects.get(c).copied().unwrap_or(CharEffect::PLAIN).pack(),
        });
        let effects = effects.collect();
        let composes = composes.into_iter().flat_map(|mut row: Vec<u32>| {
            row.resize(second_count, 0);
            row
        });
        let composes = composes.collect();
        TextFilter::over(partition, effects, composes, second_count)
    }

    /// Builds the filter over its tables. Returns `None` if they contradict each other.
    fn over(
        partition: CharPartition,
        effects: Vec<u32>,
        composes: Vec<u32>,
        second_count: usize,
    ) -> Option<TextFilter> {
        let rows = composes.len() / second_count.max(1);
        let fits = effects.iter().filter(|&&effect| effect != UNSTABLE).all(|&effect| {
            let effect = CharEffect::unpack(effect);
            usize::from(effect.row) < rows && usize::from(effect.second) < second_count
        });
        let fits = fits
            && effects.len() == partition.len()
            && (RESERVED_ROWS..1 << ROW_BITS).contains(&rows)
            && composes.len() == rows * second_count;
        if !fits {
            return None;
        }
        let mut digest = 0u32;
        let numbers = partition.to_numbers();
        for number in numbers.iter().chain(&effects).chain(&composes) {
            digest = (digest.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9);
        }
        let mut filter = TextFilter {
            dependent: vec![false; partition.row_count()],
            dependent_first: [false; 256],
            partition,
            effects,
            composes,
            second_count,
            digest,
        };
        // A row leads only to rows that were created before it.
        for row in 0..filter.dependent.len() {
            filter.dependent[row] = (0x80..0xC0)
                .any(|byte| filter.is_step_dependent(filter.partition.next(row as u16, byte)));
        }
        for byte in 0..=255u8 {
            filter.dependent_first[usize::from(byte)] =
                filter.is_step_dependent(filter.partition.first(byte));
        }
        Some(filter)
    }

    fn is_step_dependent(&self, step: Utf8Step) -> bool {
        match step {
            Utf8Step::Dead => false,
            Utf8Step::Inside(row) => self.dependent[usize::from(row)],
            Utf8Step::Complete(class) => {
                let effect = self.effects[usize::from(class)];
                effect != UNSTABLE && CharEffect::unpack(effect).is_dependent()
            }
        }
    }

    /// Returns the tables to save.
    pub(crate) fn to_numbers(&self) -> [Vec<u32>; 3] {
        let mut composes = vec![self.second_count as u32];
        composes.extend_from_slice(&self.composes);
        [self.partition.to_numbers(), self.effects.clone(), composes]
    }

    /// Rebuilds the filter from [`TextFilter::to_numbers`]. Returns `None` if they contradict each
    /// other.
    pub(crate) fn from_numbers(
        [partition, effects, composes]: [Vec<u32>; 3],
    ) -> Option<TextFilter> {
        let partition = CharPartition::from_numbers(&partition)?;
        let (&second_count, composes) = composes.split_first()?;
        if second_count == 0 || second_count > 1 << 8 {
            return None;
        }
        TextFilter::over(partition, effects, composes.to_vec(), second_count as usize)
    }

    /// Returns the state at the beginning of a text.
    pub fn start(&self) -> FilterState {
        FilterState::START
    }

    /// Returns the state of a number, or the mixed one. Returns `None` if there is no such state.
    pub(crate) fn state_of_number(&self, number: u32) -> Option<FilterState> {
        let state = FilterState(number);
        let rows = self.composes.len() / self.second_count;
        let inside = (number >> INSIDE_SHIFT) as usize;
        let exists = (state.row() as usize) < rows && inside <= self.partition.row_count();
        (exists || state == FilterState::MIXED).then_some(state)
    }

    /// Reads a byte. Returns `None` if the normalizer changes every text that begins so.
    #[inline]
    pub fn step(&self, state: FilterState, byte: u8) -> Option<FilterState> {
        let step = match state.0 >> INSIDE_SHIFT {
            0 => self.partition.first(byte),
            row => self.partition.next((row - 1) as u16, byte),
        };
        match step {
            Utf8Step::Dead => None,
            Utf8Step::Inside(row) => {
                // The text before matters only to characters that depend on it.
                let from = match self.dependent[usize::from(row)] {
                    true => state,
                    false => FilterState::WEAKEST,
                };
                Some(from.inside(row))
            }
            Utf8Step::Complete(class) => {
                let effect = self.effects[usize::from(class)];
                if effect == UNSTABLE {
                    return None;
                }
                self.after(state, CharEffect::unpack(effect))
            }
        }
    }

    fn after(&self, state: FilterState, effect: CharEffect) -> Option<FilterState> {
        let (row, last_class, class) = (state.row(), state.class(), u32::from(effect.class));
        if class != 0 && last_class > class {
            return None;
        }
        if effect.second != 0 {
            let is_unblocked = last_class == 0 || class > last_class;
            let at = row as usize * self.second_count + usize::from(effect.second);
            if row == UNKNOWN_ROW || is_unblocked && self.composes[at] != 0 {
                return None;
            }
        }
        Some(FilterState(match class {
            0 => u32::from(effect.row) << CLASS_BITS,
            _ => row << CLASS_BITS | class,
        }))
    }

    /// Reads bytes.
    pub(crate) fn walk(&self, state: FilterState, bytes: &[u8]) -> Option<FilterState> {
        bytes.iter().try_fold(state, |state, &byte| self.step(state, byte))
    }

    /// Returns `true` if reading `byte` between characters may depend on the text before it.
    #[inline]
    pub fn is_dependent(&self, byte: u8) -> bool {
        self.dependent_first[usize::from(byte)]
    }

    /// Returns the number of bytes of a text up to the first character that makes the normalizer
    /// change it. Returns `None` if nothing does.
    pub fn first_change(&self, text: &str) -> Option<usize> {
        let mut state = self.start();
        for (at, c) in text.char_indices() {
            let mut bytes = [0; 4];
            match self.walk(state, c.encode_utf8(&mut bytes).as_bytes()) {
                Some(next) => state = next,
                None => return Some(at),
            }
        }
        None
    }

    /// Returns a number that distinguishes filters with different answers.
    pub fn digest(&self) -> u32 {
        self.digest
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        4 * (self.effects.len() + self.composes.len()) + 129 * self.partition.row_count()
    }
}

/// Returns the pairs of a starter and a character that compose, or that become something else
/// because the character composes with a part of the starter.
fn unstable_pairs(
    tables: &UnicodeTables,
    form: NormalizationForm,
    unstable: &FxHashSet<char>,
) -> FxHashMap<char, Vec<char>> {
    let canonical = NormalizationForm { is_compatible: false, ..form };
    let composed = tables.decomposed(canonical);
    let starters = tables.first_characters().chain(composed);
    let mut starters: Vec<char> = starters
        .filter(|starter| !unstable.contains(starter) && tables.class(*starter) == 0)
        .collect();
    starters.sort_unstable();
    starters.dedup();
    let mut pairs: FxHashMap<char, Vec<char>> = FxHashMap::default();
    for starter in starters {
        let mut seconds = tables.possible_seconds(starter);
        seconds.retain(|&second| {
            !unstable.contains(&second)
                && tables.normalize(&[starter, second], form) != [starter, second]
        });
        if !seconds.is_empty() {
            pairs.insert(starter, seconds);
        }
    }
    for leading in '\u{1100}'..='\u{1112}' {
        pairs.insert(leading, ('\u{1161}'..='\u{1175}').collect());
    }
    for syllable in ('\u{AC00}'..='\u{D7A3}').step_by(28) {
        pairs.insert(syllable, ('\u{11A8}'..='\u{11C2}').collect());
    }
    pairs
}

/// Numbers the rows of starters and the second characters, equal ones once, and enters them into
/// the effects. Returns the number of second characters plus one, or `None` if there are too many
/// of either.
fn number_pairs(
    pairs: &FxHashMap<char, Vec<char>>,
    effects: &mut FxHashMap<char, CharEffect>,
    composes: &mut Vec<Vec<u32>>,
) -> Option<usize> {
    let mut sorted: Vec<(&char, &Vec<char>)> = pairs.iter().collect();
    sorted.sort_unstable();
    let mut rows: Interner<&Vec<char>> = Interner::default();
    let mut rows_of: FxHashMap<char, Vec<u32>> = FxHashMap::default();
    for (&starter, seconds) in sorted {
        let before = rows.len();
        let row = rows.intern(seconds);
        let number = u8::try_from(row as usize + RESERVED_ROWS).ok()?;
        effects.entry(starter).or_insert(CharEffect::PLAIN).row = number;
        if rows.len() > before {
            for &second in seconds {
                rows_of.entry(second).or_default().push(row);
            }
        }
    }
    composes.resize(RESERVED_ROWS + rows.len(), Vec::new());
    let mut sorted: Vec<(char, Vec<u32>)> = rows_of.into_iter().collect();
    sorted.sort_unstable();
    let mut columns: Interner<Vec<u32>> = Interner::default();
    for (second, rows) in sorted {
        let column = columns.intern(rows) as usize + 1;
        effects.entry(second).or_insert(CharEffect::PLAIN).second = u8::try_from(column).ok()?;
    }
    let width = columns.len() + 1;
    composes.iter_mut().for_each(|row| row.resize(width, 0));
    for (column, rows) in columns.into_entries().into_iter().enumerate() {
        for row in rows {
            composes[RESERVED_ROWS + row as usize][column + 1] = 1;
        }
    }
    Some(width)
}
