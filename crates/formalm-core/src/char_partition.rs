//! Character classes by a list of sets, as a DFA over the UTF-8 bytes of one character.

use rustc_hash::FxHashMap;

use crate::{CharSet, Interner};

/// The result of reading one byte of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Utf8Step {
    /// No character continues with this byte.
    Dead,
    /// The character is incomplete; the number is the row for the next byte.
    Inside(u16),
    /// The character is complete and belongs to this class.
    Complete(u16),
}

/// Returns the number of bytes of a character, by its first one.
#[inline]
pub fn char_len(first: u8) -> usize {
    match first {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

/// The coarsest partition of the characters that refines a list of sets, as a DFA over the bytes of
/// one character.
#[derive(Clone, Debug)]
pub struct CharPartition {
    /// The row of the first byte, then rows for the 64 continuation bytes.
    first: Vec<Utf8Step>,
    rows: Vec<[Utf8Step; 64]>,
    representatives: Vec<char>,
    borders: Vec<char>,
}

/// Starting points of intervals of code points, with their class if they are characters.
type ClassBoundaries = Vec<(u32, Option<u16>)>;

struct PartitionBuilder {
    cuts: ClassBoundaries,
    rows: Interner<[Utf8Step; 64]>,
}

impl CharPartition {
    /// Computes the partition by the given sets. In practice there are at most a few thousand
    /// classes. More than 32,767 rows or classes give `None`.
    pub fn new<'a>(sets: impl IntoIterator<Item = &'a CharSet>) -> Option<CharPartition> {
        let sets: Vec<&CharSet> = sets.into_iter().collect();
        let (cuts, representatives) = class_boundaries(&sets)?;
        let mut builder = PartitionBuilder { cuts, rows: Interner::default() };
        let mut first = vec![Utf8Step::Dead; 256];
        for byte in 0..0x80u32 {
            first[byte as usize] = builder.reading(byte, 0)?;
        }
        for byte in 0xc2..0xe0u32 {
            first[byte as usize] = builder.reading((byte & 0x1f) << 6, 1)?;
        }
        for byte in 0xe0..0xf0u32 {
            first[byte as usize] = builder.reading((byte & 0xf) << 12, 2)?;
        }
        for byte in 0xf0..0xf5u32 {
            first[byte as usize] = builder.reading((byte & 0x7) << 18, 3)?;
        }
        let starts = builder.cuts.iter().map(|&(start, _)| start);
        let borders = starts
            .flat_map(|start| [start.checked_sub(1), Some(start)])
            .filter_map(|code| char::from_u32(code?))
            .collect();
        let rows = builder.rows.into_entries();
        Some(CharPartition { first, rows, representatives, borders })
    }

    /// Serializes the partition as numbers for [`CharPartition::from_numbers`].
    pub fn to_numbers(&self) -> Vec<u32> {
        let sizes = [self.rows.len(), self.representatives.len(), self.borders.len()];
        let mut out: Vec<u32> = sizes.iter().map(|&size| size as u32).collect();
        out.extend(self.first.iter().chain(self.rows.iter().flatten()).map(|&r| number(r)));
        out.extend(self.representatives.iter().chain(&self.borders).map(|&c| u32::from(c)));
        out
    }

    /// Reads the output of [`CharPartition::to_numbers`], or returns `None` if it is inconsistent.
    pub fn from_numbers(numbers: &[u32]) -> Option<CharPartition> {
        let (sizes, rest) = numbers.split_at_checked(3)?;
        let [rows, classes, borders] = [sizes[0], sizes[1], sizes[2]].map(|size| size as usize);
        let most = 0x7fff;
        let fits = rows <= most && classes <= most && classes > 0;
        let needed = rows.checked_mul(64)?.checked_add(256 + classes)?.checked_add(borders)?;
        if !fits || rest.len() != needed {
            return None;
        }
        let (readings, characters) = rest.split_at(256 + 64 * rows);
        let read = |&number: &u32| match (number >> 16, (number & 0xffff) as u16) {
            (0, 0) => Some(Utf8Step::Dead),
            (1, row) if usize::from(row) < rows => Some(Utf8Step::Inside(row)),
            (2, class) if usize::from(class) < classes => Some(Utf8Step::Complete(class)),
            _ => None,
        };
        let readings: Vec<Utf8Step> = readings.iter().map(read).collect::<Option<_>>()?;
        let (first, rest) = readings.split_at(256);
        let row = |row: &[Utf8Step]| std::array::from_fn(|at| row[at]);
        let characters: Vec<char> =
            characters.iter().map(|&code| char::from_u32(code)).collect::<Option<_>>()?;
        let (representatives, borders) = characters.split_at(classes);
        Some(CharPartition {
            first: first.to_vec(),
            rows: rest.chunks_exact(64).map(row).collect(),
            representatives: representatives.to_vec(),
            borders: borders.to_vec(),
        })
    }

    /// Reads the first byte of a character.
    #[inline]
    pub fn first(&self, byte: u8) -> Utf8Step {
        self.first[usize::from(byte)]
    }

    /// Reads a further byte, given the number of [`Utf8Step::Inside`].
    #[inline]
    pub fn next(&self, inside: u16, byte: u8) -> Utf8Step {
        match byte & 0xc0 {
            0x80 => self.rows[usize::from(inside)][usize::from(byte & 0x3f)],
            _ => Utf8Step::Dead,
        }
    }

    /// Returns the number of classes.
    pub fn len(&self) -> usize {
        self.representatives.len()
    }

    /// Returns `true` if there is no class; there always is one.
    pub fn is_empty(&self) -> bool {
        self.representatives.is_empty()
    }

    /// Returns the number of rows; numbers in [`Utf8Step::Inside`] are below it.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the characters on both sides of every boundary between classes, ascending.
    pub fn borders(&self) -> &[char] {
        &self.borders
    }

    /// Returns one character of each class.
    pub fn representatives(&self) -> &[char] {
        &self.representatives
    }
}

/// Returns where classes begin, and one character of each class.
fn class_boundaries(sets: &[&CharSet]) -> Option<(ClassBoundaries, Vec<char>)> {
    let mut starts: Vec<u32> = vec![0, 0xd800, 0xe000, 0x11_0000];
    for set in sets {
        for &(low, high) in set.ranges() {
            starts.extend([u32::from(low), u32::from(high) + 1]);
        }
    }
    starts.sort_unstable();
    starts.dedup();
    let mut classes: FxHashMap<Vec<bool>, u16> = FxHashMap::default();
    let mut representatives = Vec::new();
    let mut cuts = ClassBoundaries::with_capacity(starts.len());
    for start in starts {
        let class = match char::from_u32(start) {
            None => None,
            Some(character) => {
                let within = sets.iter().map(|set| set.contains(character)).collect();
                let next = u16::try_from(classes.len()).ok().filter(|&next| next < 0x7fff)?;
                Some(*classes.entry(within).or_insert_with(|| {
                    representatives.push(character);
                    next
                }))
            }
        };
        cuts.push((start, class));
    }
    Some((cuts, representatives))
}

impl PartitionBuilder {
    /// Returns the step for the characters that begin at `low` and have `more` further bytes.
    fn reading(&mut self, low: u32, more: u32) -> Option<Utf8Step> {
        if more == 0 {
            return Some(match self.class(low) {
                Some(class) => Utf8Step::Complete(class),
                None => Utf8Step::Dead,
            });
        }
        // Characters below have shorter encodings.
        let least = [0, 0x80, 0x800, 0x1_0000][more as usize];
        let step = 1u32 << (6 * (more - 1));
        let mut row = [Utf8Step::Dead; 64];
        for (at, slot) in row.iter_mut().enumerate() {
            let start = low + at as u32 * step;
            if start >= least || start + step > least {
                *slot = self.uniform(start, step, more - 1)?;
            }
        }
        if row.iter().all(|slot| *slot == Utf8Step::Dead) {
            return Some(Utf8Step::Dead);
        }
        self.row(row)
    }

    /// Returns the step for a block. All blocks that one class covers share a row.
    fn uniform(&mut self, start: u32, step: u32, more: u32) -> Option<Utf8Step> {
        let at = self.cuts.partition_point(|&(cut, _)| cut <= start);
        let whole = self.cuts.get(at).is_none_or(|&(cut, _)| cut >= start + step);
        let class = self.class(start);
        if !whole || more == 0 {
            return self.reading(start, more);
        }
        let Some(class) = class else { return Some(Utf8Step::Dead) };
        let mut reading = Utf8Step::Complete(class);
        for _ in 0..more {
            reading = self.row([reading; 64])?;
        }
        Some(reading)
    }

    /// Returns the step to a row; `None` if there are too many.
    fn row(&mut self, row: [Utf8Step; 64]) -> Option<Utf8Step> {
        if self.rows.len() >= 0x7fff {
            return None;
        }
        Some(Utf8Step::Inside(self.rows.intern(row) as u16))
    }

    fn class(&self, code: u32) -> Option<u16> {
        let at = self.cuts.partition_point(|&(cut, _)| cut <= code);
        self.cuts[at.checked_sub(1)?].1
    }
}

/// Encodes a step as a number, to look rows up.
fn number(reading: Utf8Step) -> u32 {
    match reading {
        Utf8Step::Dead => 0,
        Utf8Step::Inside(row) => 1 << 16 | u32::from(row),
        Utf8Step::Complete(class) => 2 << 16 | u32::from(class),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(partition: &CharPartition, bytes: &[u8]) -> Utf8Step {
        let mut reading = partition.first(bytes[0]);
        for &byte in &bytes[1..] {
            reading = match reading {
                Utf8Step::Inside(row) => partition.next(row, byte),
                _ => Utf8Step::Dead,
            };
        }
        reading
    }

    #[test]
    fn the_utf8_dfa_maps_every_character_to_its_class_and_rejects_invalid_bytes() {
        let sets = [
            CharSet::from_ranges([('a', 'z'), ('é', 'é'), ('\u{800}', '\u{fff}')]),
            CharSet::from_ranges([('x', 'Я'), ('\u{ffff}', '\u{10000}'), ('😀', char::MAX)]),
        ];
        let partition = CharPartition::new(&sets).expect("few classes");
        let numbers = partition.to_numbers();
        let partition = CharPartition::from_numbers(&numbers).expect("what was saved");
        assert_eq!(partition.to_numbers(), numbers);
        assert!(CharPartition::from_numbers(&numbers[1..]).is_none());
        let class_of = |c: char| [sets[0].contains(c), sets[1].contains(c)];
        for character in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let reading = read(&partition, character.encode_utf8(&mut buffer).as_bytes());
            let Utf8Step::Complete(class) = reading else { panic!("{character:?}: {reading:?}") };
            let representative = partition.representatives()[usize::from(class)];
            assert_eq!(class_of(character), class_of(representative), "{character:?}");
        }
        let broken: [&[u8]; 9] = [
            b"\x80",
            b"\xc0\x80",
            b"\xc1\xbf",
            b"\xe0\x9f\xbf",
            b"\xed\xa0\x80",
            b"\xf0\x8f\xbf\xbf",
            b"\xf4\x90\x80\x80",
            b"\xf5\x80\x80\x80",
            b"\xe2a",
        ];
        for bytes in broken {
            let reading = read(&partition, bytes);
            assert_eq!(reading, Utf8Step::Dead, "{bytes:?}");
        }
        assert!(matches!(read(&partition, b"\xe2\x82"), Utf8Step::Inside(_)));
    }
}
