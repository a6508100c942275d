//! What reading a token does to places of the marked text, tokens that do the same together.
//!
//! A token that is read where a character begins leads from every state of the splitter, and every
//! mark in front of the token, to one place or to none: this function is its *passage*. Most tokens
//! share their passage with many others (a word in lower case has that of nearly every other), so
//! that cuts tell apart a few hundred sets of tokens, whatever the size of the vocabulary. A
//! passage is made from another one by one more byte, so all places that passages lead to from one
//! place are found with one step each.

use rustc_hash::FxHashMap;

use super::pretoken_splitter::{Mark, Place, Splitter};
use super::token_set::{DENSE, TokenSet, set};
use super::transition_kernels::Shapes;
use crate::{Trie, Words};

/// Leads nowhere.
pub(super) const DEAD: Place = Place::MAX;

/// No passage.
pub(super) const NONE: u16 = u16::MAX;

/// The passages of all tokens that are made by merging and stand in no list of exceptions.
#[derive(Debug)]
pub struct Passages {
    /// Per token its passage, if it has one.
    of: Vec<u16>,
    /// Per passage the one that it goes on with, if any, and the byte it adds.
    made: Vec<(u16, u8)>,
    /// The tokens of each passage, and their bitmasks.
    offsets: Vec<u32>,
    tokens: Vec<u32>,
    masks: Vec<Option<Box<Words>>>,
    all: Box<Words>,
}

/// Where tokens lead from one place, the first byte with one mark.
#[derive(Debug)]
pub struct Landing {
    /// Per passage.
    places: Vec<Place>,
    groups: Vec<(Place, TokenSet)>,
}

impl Passages {
    /// The passages of the tokens of a tree for which `plain` holds; none if there are too many of
    /// them.
    pub(crate) fn new(
        splitter: &Splitter,
        trie: &Trie,
        (len, plain): (usize, impl Fn(u32) -> bool),
    ) -> Option<Passages> {
        let mut shapes = Shapes::new(splitter);
        let mut of = vec![NONE; len];
        let nodes = trie.nodes();
        let mut path: Vec<u16> = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            let here = nodes[at];
            let depth = here.depth();
            let before = if depth == 1 { NONE } else { path[depth - 2] };
            let passage = shapes.step(before, here.byte())?;
            if shapes.is_dead(passage) {
                at = here.end() as usize;
                continue;
            }
            for &token in trie.tokens_at(at as u32).iter().filter(|&&token| plain(token)) {
                of[token as usize] = passage;
            }
            path.truncate(depth - 1);
            path.push(passage);
            at += 1;
        }
        Some(Passages::sorted(of, shapes.made))
    }

    fn sorted(of: Vec<u16>, made: Vec<(u16, u8)>) -> Passages {
        let words = of.len().div_ceil(32);
        let mut offsets = vec![0u32; made.len() + 1];
        let mut all = vec![0; words];
        let listed = || of.iter().enumerate().filter(|(_, passage)| **passage != NONE);
        for (token, &passage) in listed() {
            offsets[usize::from(passage) + 1] += 1;
            all[token >> 5] |= 1 << (token & 31);
        }
        for at in 0..made.len() {
            offsets[at + 1] += offsets[at];
        }
        let mut next = offsets.clone();
        let mut tokens = vec![0; offsets[made.len()] as usize];
        for (token, &passage) in listed() {
            let place = &mut next[usize::from(passage)];
            tokens[*place as usize] = token as u32;
            *place += 1;
        }
        let mask = |ends: &[u32]| {
            let tokens = &tokens[ends[0] as usize..ends[1] as usize];
            (tokens.len() >= DENSE).then(|| {
                let mut words = vec![0; words];
                tokens.iter().for_each(|&token| set(&mut words, token));
                words.into_boxed_slice()
            })
        };
        let masks = offsets.windows(2).map(mask).collect();
        Passages { of, made, offsets, tokens, masks, all: all.into_boxed_slice() }
    }

    /// Whether a token is one of those with a passage.
    #[inline]
    pub fn has(&self, token: u32) -> bool {
        self.of.get(token as usize).is_some_and(|&passage| passage != NONE)
    }

    /// The bitmask of the tokens that have a passage.
    pub fn all(&self) -> &Words {
        &self.all
    }

    /// Where a token with a passage leads.
    #[inline]
    pub fn place(&self, landing: &Landing, token: u32) -> Option<Place> {
        let passage = usize::from(*self.of.get(token as usize)?);
        landing.places.get(passage).copied().filter(|&place| place != DEAD)
    }

    /// Where tokens lead from a place between characters, the first byte with a mark, and not into
    /// an added token.
    pub(super) fn landing(&self, splitter: &Splitter, from: Place, mark: Mark) -> Landing {
        let mut places: Vec<Place> = Vec::with_capacity(self.made.len());
        for &(before, byte) in &self.made {
            let after = match before {
                NONE => splitter.step(from, byte, mark),
                _ => match places[usize::from(before)] {
                    DEAD => None,
                    place => splitter.step(place, byte, Mark::Inside),
                },
            };
            places.push(after.unwrap_or(DEAD));
        }
        let mut index: FxHashMap<Place, usize> = FxHashMap::default();
        let mut members: Vec<(Place, Vec<usize>, usize)> = Vec::new();
        for (passage, place) in places.iter_mut().enumerate() {
            let count = (self.offsets[passage + 1] - self.offsets[passage]) as usize;
            if *place == DEAD || count == 0 {
                continue;
            }
            if splitter.is_added(*place) {
                *place = DEAD;
                continue;
            }
            let at = *index.entry(*place).or_insert_with(|| {
                members.push((*place, Vec::new(), 0));
                members.len() - 1
            });
            members[at].1.push(passage);
            members[at].2 += count;
        }
        let groups = members.into_iter().map(|(place, passages, count)| {
            (place, if count < DENSE { self.list(&passages) } else { self.mask(&passages) })
        });
        Landing { groups: groups.collect(), places }
    }

    fn tokens_of(&self, passage: usize) -> &[u32] {
        &self.tokens[self.offsets[passage] as usize..self.offsets[passage + 1] as usize]
    }

    fn list(&self, passages: &[usize]) -> TokenSet {
        TokenSet::List(
            passages.iter().flat_map(|&passage| self.tokens_of(passage)).copied().collect(),
        )
    }

    fn mask(&self, passages: &[usize]) -> TokenSet {
        let mut words = vec![0; self.all.len()];
        for &passage in passages {
            match &self.masks[passage] {
                Some(mask) => words.iter_mut().zip(&**mask).for_each(|(word, more)| *word |= more),
                None => self.tokens_of(passage).iter().for_each(|&token| set(&mut words, token)),
            }
        }
        TokenSet::Mask(words)
    }

    /// Some tokens by the place they lead to.
    pub(super) fn sort(&self, landing: &Landing, tokens: &[u32]) -> Vec<(Place, TokenSet)> {
        let mut lists: Vec<(Place, Vec<u32>)> = Vec::new();
        let mut index: FxHashMap<Place, usize> = FxHashMap::default();
        for &token in tokens {
            let Some(place) = self.place(landing, token) else { continue };
            let at = *index.entry(place).or_insert_with(|| {
                lists.push((place, Vec::new()));
                lists.len() - 1
            });
            lists[at].1.push(token);
        }
        lists.into_iter().map(|(place, list)| (place, TokenSet::List(list))).collect()
    }

    /// Number of passages.
    pub fn count(&self) -> usize {
        self.made.len()
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let masks = 1 + self.masks.iter().flatten().count();
        2 * self.of.len() + 8 * self.made.len() + 4 * (self.tokens.len() + masks * self.all.len())
    }
}

impl Landing {
    /// Tokens by the place they lead to.
    pub fn groups(&self) -> &[(Place, TokenSet)] {
        &self.groups
    }

    /// Memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let groups = self.groups.iter().map(|(_, tokens)| 8 + tokens.memory_bytes());
        4 * self.places.len() + groups.sum::<usize>()
    }
}
