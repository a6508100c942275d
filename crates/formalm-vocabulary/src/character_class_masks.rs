//! Masks of "all tokens within a character class", combined from a few hundred precomputed
//! bitmasks.
//!
//! ```text
//!  group = tokens with equal atoms      class C: per group   Full    ──► OR its bitmask
//!  {a–f, g–z}: 0101…  (bitmask)                              None    ──► skip
//!  {a–f, 0–9}: 17, 203, …  (id list)                         Partial ──► test each token's ASCII set
//! ```
//!
//! The cost is one 64-bit test per group plus the tokens of partially covered groups, instead of a
//! walk over the vocabulary. Tokens that end inside a character or are not UTF-8 are kept apart.

use formalm_core::{ClassCover, MemoryBytes};
use rustc_hash::FxHashMap;

use crate::MaskWords;
use crate::occurring_characters::{CharProfile, ProfileFilter, Utf8Shape, whole_char_prefix};
use crate::partial_chars::{PartialChar, PartialToken, PartialTokens};
use crate::tokens_by_length::TokensByLength;
use crate::tokens_by_remainder::{ClassExits, ExitCollector};

/// Group size, in tokens, from which on a group stores a bitmask: OR-ing it is faster than setting
/// the ids one by one. Chosen, not measured.
const MIN_BITMASK_GROUP: usize = 512;

/// The whole-character tokens with equal atoms: a slice of [`ClassMasks::tokens`].
#[derive(Debug)]
struct AtomGroup {
    first: u32,
    end: u32,
    /// The bitmask of the group, if it has at least [`MIN_BITMASK_GROUP`] tokens.
    mask: Option<Box<MaskWords>>,
}

impl AtomGroup {
    #[inline]
    fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..self.end as usize
    }
}

/// The tokens of a vocabulary, grouped by the characters they contain.
#[derive(Debug)]
pub struct ClassMasks {
    /// The atoms of each group, in an array of their own because every mask reads all of them.
    atoms: Vec<u64>,
    groups: Vec<AtomGroup>,
    /// Whole-character tokens, group by group, ascending within each group. `ascii` holds their
    /// ASCII sets.
    tokens: Vec<u32>,
    ascii: Vec<u128>,
    /// The bitmask of all whole-character tokens.
    clean: Box<MaskWords>,
    partial: PartialTokens,
    broken: Vec<u32>,
    lengths: TokensByLength,
    exits: ClassExits,
}

impl ClassMasks {
    /// Groups the tokens `(id, bytes)`; ids are below `len`.
    pub(crate) fn new(tokens: &[(u32, &[u8])], len: usize) -> ClassMasks {
        let words = len.div_ceil(32);
        let mut clean = Vec::with_capacity(tokens.len());
        let (mut ragged, mut broken) = (Vec::new(), Vec::new());
        let mut counts = Vec::with_capacity(tokens.len());
        let mut collector = ExitCollector::default();
        for &(token, bytes) in tokens {
            let (text, shape) = whole_char_prefix(bytes);
            let before = collector.add(token, bytes, text);
            match shape {
                Utf8Shape::Clean => {
                    counts.push((token, before.characters));
                    clean.push((token, before));
                }
                Utf8Shape::PartialEnd => {
                    counts.push((token, before.characters + 1));
                    ragged.push((&bytes[text.len()..], PartialToken { token, before }));
                }
                Utf8Shape::PartialStart | Utf8Shape::Broken => broken.push(token),
            }
        }
        ClassMasks {
            partial: PartialTokens::new(ragged),
            broken,
            lengths: TokensByLength::new(&counts, words),
            exits: collector.finish(),
            ..ClassMasks::grouped(&clean, words)
        }
    }

    /// Groups the whole-character tokens; leaves the other tables empty.
    fn grouped(clean: &[(u32, CharProfile)], words: usize) -> ClassMasks {
        let (atoms, mut groups, group_of) = partition(clean);
        let mut next: Vec<u32> = groups.iter().map(|group| group.first).collect();
        let (mut tokens, mut ascii) = (vec![0; clean.len()], vec![0; clean.len()]);
        for ((token, profile), group) in clean.iter().zip(group_of) {
            let at = &mut next[group as usize];
            tokens[*at as usize] = *token;
            ascii[*at as usize] = profile.ascii;
            *at += 1;
        }
        for group in groups.iter_mut().filter(|group| group.range().len() >= MIN_BITMASK_GROUP) {
            group.mask = Some(bitmask(&tokens[group.range()], words));
        }
        ClassMasks {
            atoms,
            groups,
            clean: bitmask(&tokens, words),
            tokens,
            ascii,
            partial: PartialTokens::default(),
            broken: Vec::new(),
            lengths: TokensByLength::new(&[], 0),
            exits: ExitCollector::default().finish(),
        }
    }

    /// Overwrites `out` with the whole-character tokens that lie in the class for certain. Appends
    /// to `undecided` the tokens that do unless one of their characters beyond ASCII is missing;
    /// these are not in `out`. Words of `out` beyond the vocabulary become zero.
    ///
    /// # Panics
    ///
    /// `out` is shorter than the bitmask of the vocabulary.
    pub fn fill_mask(&self, inside: &ProfileFilter, out: &mut MaskWords, undecided: &mut Vec<u32>) {
        let within = |(&atoms, group): (&u64, &AtomGroup)| match inside.cover_by_atoms(atoms) {
            ClassCover::Full => group.range().len(),
            _ => 0,
        };
        let most: usize = self.atoms.iter().zip(&self.groups).map(within).sum();
        // Start from whichever is closer to the result: no token, or all whole-character tokens.
        let from_all = most * 2 > self.tokens.len();
        if from_all {
            out[..self.clean.len()].copy_from_slice(&self.clean);
            out[self.clean.len()..].fill(0);
        } else {
            out.fill(0);
        }
        for (&atoms, group) in self.atoms.iter().zip(&self.groups) {
            match inside.cover_by_atoms(atoms) {
                ClassCover::Full if !from_all => self.add(group, out),
                ClassCover::None if from_all => self.remove(group, out),
                ClassCover::Partial => {
                    if from_all {
                        self.remove(group, out);
                    }
                    self.add_partially_covered(group, atoms, inside, out, undecided);
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn add(&self, group: &AtomGroup, out: &mut MaskWords) {
        match &group.mask {
            Some(mask) => out.iter_mut().zip(&**mask).for_each(|(word, more)| *word |= more),
            None => set(out, &self.tokens[group.range()]),
        }
    }

    #[inline]
    fn remove(&self, group: &AtomGroup, out: &mut MaskWords) {
        match &group.mask {
            Some(mask) => out.iter_mut().zip(&**mask).for_each(|(word, less)| *word &= !less),
            None => {
                for &token in &self.tokens[group.range()] {
                    out[token as usize >> 5] &= !(1 << (token & 31));
                }
            }
        }
    }

    /// Sets the tokens of a group whose ASCII set fits, and lists those that stay undecided.
    fn add_partially_covered(
        &self,
        group: &AtomGroup,
        atoms: u64,
        inside: &ProfileFilter,
        out: &mut MaskWords,
        undecided: &mut Vec<u32>,
    ) {
        for at in group.range() {
            let token = self.tokens[at];
            match inside.cover(atoms, self.ascii[at]) {
                ClassCover::Full => out[token as usize >> 5] |= 1 << (token & 31),
                ClassCover::Partial => undecided.push(token),
                ClassCover::None => {}
            }
        }
    }

    /// Returns the bitmask of all whole-character tokens.
    pub fn whole_char_tokens(&self) -> &MaskWords {
        &self.clean
    }

    /// Returns the partial characters with which tokens end.
    pub fn partial_chars(&self) -> &[PartialChar] {
        self.partial.partial_chars()
    }

    /// Returns the tokens that end with `tail`.
    pub fn tokens_with_partial_char(&self, partial_char: &PartialChar) -> &[PartialToken] {
        self.partial.tokens_with(partial_char)
    }

    /// Returns all tokens that end inside a character, grouped by partial character.
    pub fn partial_tokens(&self) -> &[PartialToken] {
        self.partial.tokens()
    }

    /// Returns the tokens that begin inside a character or contain bytes of no valid UTF-8 string.
    pub fn broken_tokens(&self) -> &[u32] {
        &self.broken
    }

    /// Removes from `out` all tokens with more than `most` characters, counting a partial one at
    /// the end. For `most <= 16` it also removes the [`ClassMasks::broken_tokens`] tokens.
    pub fn limit_characters(&self, most: u32, out: &mut MaskWords) {
        self.lengths.limit(most, out);
    }

    /// Returns the bitmask of whole-character and partial-ended tokens with at most `most`
    /// characters. Returns `None` if `most > 16`.
    pub fn at_most_characters(&self, most: usize) -> Option<&MaskWords> {
        self.lengths.mask(most)
    }

    /// Returns `(characters, token)` of the whole-character and partial-ended tokens with more than
    /// 16 characters, longest first.
    pub fn longer_tokens(&self) -> &[(u32, u32)] {
        self.lengths.longer()
    }

    /// Returns the index of tokens that leave a class.
    pub fn exits(&self) -> &ClassExits {
        &self.exits
    }

    /// Returns the number of groups and the number of groups with a bitmask.
    pub fn group_counts(&self) -> (usize, usize) {
        (self.groups.len(), self.groups.iter().filter(|group| group.mask.is_some()).count())
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let masks = self.groups.iter().filter_map(|group| group.mask.as_ref());
        masks.map(|mask| size_of_val(&**mask)).sum::<usize>()
            + size_of_val(&self.atoms[..])
            + size_of_val(&self.groups[..])
            + size_of_val(&self.tokens[..])
            + size_of_val(&self.ascii[..])
            + size_of_val(&*self.clean)
            + size_of_val(&self.broken[..])
            + self.partial.memory_bytes()
            + self.lengths.memory_bytes()
            + self.exits.memory_bytes()
    }
}

/// Partitions tokens by atoms: returns the distinct atom sets, the slice of each group, and the
/// group of each token.
fn partition(clean: &[(u32, CharProfile)]) -> (Vec<u64>, Vec<AtomGroup>, Vec<u32>) {
    let mut number: FxHashMap<u64, u32> = FxHashMap::default();
    let (mut atoms, mut sizes) = (Vec::new(), Vec::new());
    let mut group_of = Vec::with_capacity(clean.len());
    for (_, profile) in clean {
        let group = *number.entry(profile.atoms).or_insert_with(|| {
            atoms.push(profile.atoms);
            sizes.push(0u32);
            atoms.len() as u32 - 1
        });
        sizes[group as usize] += 1;
        group_of.push(group);
    }
    let mut groups: Vec<AtomGroup> = Vec::with_capacity(sizes.len());
    for size in sizes {
        let first = groups.last().map_or(0, |group| group.end);
        groups.push(AtomGroup { first, end: first + size, mask: None });
    }
    (atoms, groups, group_of)
}

#[inline]
fn set(out: &mut MaskWords, tokens: &[u32]) {
    for &token in tokens {
        out[token as usize >> 5] |= 1 << (token & 31);
    }
}

fn bitmask(tokens: &[u32], words: usize) -> Box<MaskWords> {
    let mut mask = vec![0; words].into_boxed_slice();
    set(&mut mask, tokens);
    mask
}
