//! What reading a token does to places of the marked text, tokens that do the same together.
//!
//! A token that is read where a character begins leads from every state of the splitter, and every
//! mark in front of the token, to one place or to none: this function is its *passage*. Most tokens
//! share their passage with many others (a word in lower case has that of nearly every other), so
//! that cuts tell apart a few hundred sets of tokens, whatever the size of the vocabulary. A
//! passage is made from another one by one more byte, so all places that passages lead to from one
//! place are found with one step each.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::splitter::{MARKS, Mark, Place, Splitter};
use crate::{Trie, Words};

/// Passages that may be told apart.
const MOST: usize = 1 << 15;

/// Numbers held while passages are told apart, of four bytes each.
const MOST_CELLS: usize = 1 << 24;

/// From this many tokens on, those of one passage have a bitmask.
const DENSE: usize = 1024;

/// Landings that are kept.
const KEPT: usize = 48;

/// Leads nowhere.
const DEAD: Place = Place::MAX;

/// No passage.
const NONE: u16 = u16::MAX;

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
    landings: Mutex<Vec<(Place, Mark, Arc<Landing>)>>,
}

/// Where tokens lead from one place, the first byte with one mark.
#[derive(Debug)]
pub struct Landing {
    /// Per passage.
    places: Vec<Place>,
    groups: Vec<(Place, Landed)>,
}

/// A set of tokens.
#[derive(Clone, Debug)]
pub enum Landed {
    /// Few of them.
    List(Vec<u32>),
    /// A bitmask.
    Mask(Vec<u32>),
}

/// Passages while they are told apart.
struct Builder<'a> {
    splitter: &'a Splitter,
    width: usize,
    /// `[passage][3 * state + mark]`
    cells: Vec<Place>,
    ids: FxHashMap<Box<[Place]>, u16>,
    made: Vec<(u16, u8)>,
    /// By passage, or none, and what the byte means to the splitter.
    known: FxHashMap<(u16, u32), u16>,
}

impl Builder<'_> {
    /// The passage that goes on with a byte; none if there are too many.
    fn step(&mut self, before: u16, byte: u8) -> Option<u16> {
        let start = usize::from(before) * self.width;
        let inside = match before {
            NONE => 0,
            _ => {
                let cells = self.cells[start..start + self.width].iter();
                cells.copied().find(|&place| place != DEAD).unwrap_or_default()
            }
        };
        let meaning = self.splitter.meaning(inside, byte);
        if let Some(&next) = self.known.get(&(before, meaning)) {
            return Some(next);
        }
        let cells: Box<[Place]> = (0..self.width)
            .map(|at| {
                let after = match before {
                    NONE => {
                        let place = self.splitter.place_of((at / MARKS.len()) as u32);
                        self.splitter.step(place, byte, MARKS[at % MARKS.len()])
                    }
                    _ => match self.cells[start + at] {
                        DEAD => None,
                        place => self.splitter.step(place, byte, Mark::Inside),
                    },
                };
                after.unwrap_or(DEAD)
            })
            .collect();
        let next = self.made.len();
        if next == MOST || self.cells.len() + self.width > MOST_CELLS {
            return None;
        }
        let id = match self.ids.get(&cells) {
            Some(&id) => id,
            None => {
                self.cells.extend_from_slice(&cells);
                self.ids.insert(cells, next as u16);
                self.made.push((before, byte));
                next as u16
            }
        };
        self.known.insert((before, meaning), id);
        Some(id)
    }

    fn is_dead(&self, passage: u16) -> bool {
        let start = usize::from(passage) * self.width;
        self.cells[start..start + self.width].iter().all(|&place| place == DEAD)
    }
}

impl Passages {
    /// The passages of the tokens of a tree for which `plain` holds; none if there are too many of
    /// them.
    pub(crate) fn new(
        splitter: &Splitter,
        trie: &Trie,
        (len, plain): (usize, impl Fn(u32) -> bool),
    ) -> Option<Passages> {
        let mut builder = Builder {
            splitter,
            width: splitter.state_count() * MARKS.len(),
            cells: Vec::new(),
            ids: FxHashMap::default(),
            made: Vec::new(),
            known: FxHashMap::default(),
        };
        let mut of = vec![NONE; len];
        let nodes = trie.nodes();
        let mut path: Vec<u16> = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            let here = nodes[at];
            let depth = here.depth();
            let before = if depth == 1 { NONE } else { path[depth - 2] };
            let passage = builder.step(before, here.byte())?;
            if builder.is_dead(passage) {
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
        Some(Passages::sorted(of, builder.made))
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
                set(&mut words, tokens);
                words.into_boxed_slice()
            })
        };
        let masks = offsets.windows(2).map(mask).collect();
        let (all, landings) = (all.into_boxed_slice(), Mutex::default());
        Passages { of, made, offsets, tokens, masks, all, landings }
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
    pub(crate) fn landing(&self, splitter: &Splitter, place: Place, mark: Mark) -> Arc<Landing> {
        let kept = || self.landings.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().iter().position(|known| (known.0, known.1) == (place, mark));
        if let Some(at) = known {
            // Another thread may have let go of it meanwhile.
            if let Some(known) = kept().get(at).filter(|known| (known.0, known.1) == (place, mark))
            {
                return Arc::clone(&known.2);
            }
        }
        let landing = Arc::new(self.land(splitter, place, mark));
        let mut kept = kept();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((place, mark, Arc::clone(&landing)));
        landing
    }

    fn land(&self, splitter: &Splitter, from: Place, mark: Mark) -> Landing {
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

    fn list(&self, passages: &[usize]) -> Landed {
        Landed::List(
            passages.iter().flat_map(|&passage| self.tokens_of(passage)).copied().collect(),
        )
    }

    fn mask(&self, passages: &[usize]) -> Landed {
        let mut words = vec![0; self.all.len()];
        for &passage in passages {
            match &self.masks[passage] {
                Some(mask) => words.iter_mut().zip(&**mask).for_each(|(word, more)| *word |= more),
                None => set(&mut words, self.tokens_of(passage)),
            }
        }
        Landed::Mask(words)
    }

    /// Number of passages.
    pub fn count(&self) -> usize {
        self.made.len()
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let masks = 1 + self.masks.iter().flatten().count();
        let kept = self.landings.lock().unwrap_or_else(PoisonError::into_inner);
        2 * self.of.len()
            + 8 * self.made.len()
            + 4 * (self.tokens.len() + masks * self.all.len())
            + kept.iter().map(|known| known.2.memory_bytes()).sum::<usize>()
    }
}

impl Landing {
    /// Tokens by the place they lead to.
    pub fn groups(&self) -> &[(Place, Landed)] {
        &self.groups
    }

    fn memory_bytes(&self) -> usize {
        let each = |landed: &Landed| match landed {
            Landed::List(tokens) | Landed::Mask(tokens) => 40 + 4 * tokens.len(),
        };
        4 * self.places.len() + self.groups.iter().map(|group| each(&group.1)).sum::<usize>()
    }
}

fn set(words: &mut Words, tokens: &[u32]) {
    for &token in tokens {
        words[token as usize >> 5] |= 1 << (token & 31);
    }
}
