//! Tokens by the characters they have: the mask of "all tokens within a set of characters" from
//! a few hundred stored bitmasks and tests, not from a walk over the vocabulary.

use formalm_automata::Cover;
use rustc_hash::FxHashMap;

use crate::Words;
use crate::char_profile::{Inside, Profile, Shape, clean_part};
use crate::class_exits::{Collector, Crossings};
use crate::partial_chars::{Ragged, RaggedTokens, Tail};
use crate::tokens_by_length::Lengths;

/// From this many tokens on a group has a bitmask: it is combined faster than the ids are written.
const DENSE: usize = 512;

/// Tokens of whole characters with the same atoms: a slice of [`Classes::tokens`].
#[derive(Debug)]
struct Group {
    first: u32,
    end: u32,
    /// Its bitmask, if it has many tokens.
    mask: Option<Box<Words>>,
}

impl Group {
    #[inline]
    fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..self.end as usize
    }
}

/// The tokens of a vocabulary, grouped by the characters they have.
#[derive(Debug)]
pub struct Classes {
    /// Per group its atoms, apart from the rest: every mask reads all of them.
    atoms: Vec<u64>,
    groups: Vec<Group>,
    /// Clean tokens, group by group, ascending within each, and their ASCII sets.
    tokens: Vec<u32>,
    ascii: Vec<u128>,
    /// The bitmask of all clean tokens.
    clean: Box<Words>,
    ragged: RaggedTokens,
    broken: Vec<u32>,
    lengths: Lengths,
    crossings: Crossings,
    longest_characters: usize,
}

impl Classes {
    /// Groups tokens `(id, bytes)`, ids below `len`.
    pub(crate) fn new(tokens: &[(u32, &[u8])], len: usize) -> Classes {
        let words = len.div_ceil(32);
        let mut clean = Vec::with_capacity(tokens.len());
        let (mut ragged, mut broken) = (Vec::new(), Vec::new());
        let mut counts = Vec::with_capacity(tokens.len());
        let mut collector = Collector::default();
        for &(token, bytes) in tokens {
            let (text, shape) = clean_part(bytes);
            let before = collector.add(token, bytes, text);
            match shape {
                Shape::Clean => {
                    counts.push((token, before.characters));
                    clean.push((token, before));
                }
                Shape::RaggedEnd => {
                    counts.push((token, before.characters + 1));
                    ragged.push((&bytes[text.len()..], Ragged { token, before }));
                }
                Shape::RaggedStart | Shape::Broken => broken.push(token),
            }
        }
        let longest = counts.iter().map(|&(_, count)| count).max().unwrap_or_default();
        Classes {
            ragged: RaggedTokens::new(ragged),
            broken,
            lengths: Lengths::new(&counts, words),
            crossings: collector.finish(),
            longest_characters: longest as usize,
            ..Classes::grouped(&clean, words)
        }
    }

    /// The clean tokens in groups, the rest empty.
    fn grouped(clean: &[(u32, Profile)], words: usize) -> Classes {
        let (atoms, mut groups, group_of) = partition(clean);
        let mut next: Vec<u32> = groups.iter().map(|group| group.first).collect();
        let (mut tokens, mut ascii) = (vec![0; clean.len()], vec![0; clean.len()]);
        for ((token, profile), group) in clean.iter().zip(group_of) {
            let at = &mut next[group as usize];
            tokens[*at as usize] = *token;
            ascii[*at as usize] = profile.ascii;
            *at += 1;
        }
        for group in groups.iter_mut().filter(|group| group.range().len() >= DENSE) {
            group.mask = Some(bitmask(&tokens[group.range()], words));
        }
        Classes {
            atoms,
            groups,
            clean: bitmask(&tokens, words),
            tokens,
            ascii,
            ragged: RaggedTokens::default(),
            broken: Vec::new(),
            lengths: Lengths::new(&[], 0),
            crossings: Collector::default().finish(),
            longest_characters: 0,
        }
    }

    /// Writes over `out` the tokens of whole characters that surely lie in the set, and appends to
    /// `undecided` those that do unless one of their characters beyond ASCII is missing; these are
    /// not in `out`. Words of `out` beyond the vocabulary become zero.
    ///
    /// # Panics
    ///
    /// If `out` is shorter than the bitmask of the vocabulary.
    pub fn stay(&self, inside: &Inside, out: &mut Words, undecided: &mut Vec<u32>) {
        let within = |(&atoms, group): (&u64, &Group)| match inside.judge_atoms(atoms) {
            Cover::Full => group.range().len(),
            _ => 0,
        };
        let most: usize = self.atoms.iter().zip(&self.groups).map(within).sum();
        // Start from the nearer end: nothing, or all clean tokens.
        let from_all = most * 2 > self.tokens.len();
        if from_all {
            out[..self.clean.len()].copy_from_slice(&self.clean);
            out[self.clean.len()..].fill(0);
        } else {
            out.fill(0);
        }
        for (&atoms, group) in self.atoms.iter().zip(&self.groups) {
            match inside.judge_atoms(atoms) {
                Cover::Full if !from_all => self.add(group, out),
                Cover::None if from_all => self.remove(group, out),
                Cover::Partial => {
                    if from_all {
                        self.remove(group, out);
                    }
                    self.add_some(group, atoms, inside, out, undecided);
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn add(&self, group: &Group, out: &mut Words) {
        match &group.mask {
            Some(mask) => out.iter_mut().zip(&**mask).for_each(|(word, more)| *word |= more),
            None => set(out, &self.tokens[group.range()]),
        }
    }

    #[inline]
    fn remove(&self, group: &Group, out: &mut Words) {
        match &group.mask {
            Some(mask) => out.iter_mut().zip(&**mask).for_each(|(word, less)| *word &= !less),
            None => {
                for &token in &self.tokens[group.range()] {
                    out[token as usize >> 5] &= !(1 << (token & 31));
                }
            }
        }
    }

    /// Adds the tokens of a group whose ASCII set fits, or lists them.
    fn add_some(
        &self,
        group: &Group,
        atoms: u64,
        inside: &Inside,
        out: &mut Words,
        undecided: &mut Vec<u32>,
    ) {
        for at in group.range() {
            let token = self.tokens[at];
            match inside.judge(atoms, self.ascii[at]) {
                Cover::Full => out[token as usize >> 5] |= 1 << (token & 31),
                Cover::Partial => undecided.push(token),
                Cover::None => {}
            }
        }
    }

    /// The bitmask of all tokens of whole characters.
    pub fn clean(&self) -> &Words {
        &self.clean
    }

    /// The unfinished characters with which tokens end.
    pub fn tails(&self) -> &[Tail] {
        self.ragged.tails()
    }

    /// The tokens that end with a tail.
    pub fn ragged(&self, tail: &Tail) -> &[Ragged] {
        self.ragged.of(tail)
    }

    /// All tokens that end within a character, tail by tail.
    pub fn all_ragged(&self) -> &[Ragged] {
        self.ragged.tokens()
    }

    /// Tokens that begin within a character or have bytes that no UTF-8 text has.
    pub fn broken(&self) -> &[u32] {
        &self.broken
    }

    /// Removes from `out` all tokens with more than `most` characters, an unfinished one at the
    /// end included. Up to 16 characters it also removes [`Classes::broken`] tokens.
    pub fn limit_characters(&self, most: u32, out: &mut Words) {
        self.lengths.limit(most, out);
    }

    /// The bitmask of clean and ragged tokens with at most `most` characters, none to 16.
    pub fn at_most(&self, most: usize) -> Option<&Words> {
        self.lengths.mask(most)
    }

    /// `(characters, token)` of clean and ragged tokens with more than 16, most characters first.
    pub fn longer(&self) -> &[(u32, u32)] {
        self.lengths.longer()
    }

    /// Tokens that leave a set of characters.
    pub fn crossings(&self) -> &Crossings {
        &self.crossings
    }

    /// Characters of the longest clean or ragged token.
    pub fn longest_characters(&self) -> usize {
        self.longest_characters
    }

    /// Number of groups, and how many of them have a bitmask.
    pub fn group_counts(&self) -> (usize, usize) {
        (self.groups.len(), self.groups.iter().filter(|group| group.mask.is_some()).count())
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let masks = self.groups.iter().filter_map(|group| group.mask.as_ref());
        masks.map(|mask| size_of_val(&**mask)).sum::<usize>()
            + size_of_val(&self.atoms[..])
            + size_of_val(&self.groups[..])
            + size_of_val(&self.tokens[..])
            + size_of_val(&self.ascii[..])
            + size_of_val(&*self.clean)
            + size_of_val(&self.broken[..])
            + self.ragged.memory_bytes()
            + self.lengths.memory_bytes()
            + self.crossings.memory_bytes()
    }
}

/// The distinct atom sets, the slice of tokens of each, and the group of each token.
fn partition(clean: &[(u32, Profile)]) -> (Vec<u64>, Vec<Group>, Vec<u32>) {
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
    let mut groups: Vec<Group> = Vec::with_capacity(sizes.len());
    for size in sizes {
        let first = groups.last().map_or(0, |group| group.end);
        groups.push(Group { first, end: first + size, mask: None });
    }
    (atoms, groups, group_of)
}

#[inline]
fn set(out: &mut Words, tokens: &[u32]) {
    for &token in tokens {
        out[token as usize >> 5] |= 1 << (token & 31);
    }
}

fn bitmask(tokens: &[u32], words: usize) -> Box<Words> {
    let mut mask = vec![0; words].into_boxed_slice();
    set(&mut mask, tokens);
    mask
}
