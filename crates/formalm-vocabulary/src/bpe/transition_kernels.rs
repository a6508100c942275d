//! Passages while they are told apart.
//!
//! A passage leads hundreds of places to few: after one word most of them are the same. Which
//! places it leads to the same one is its *shape*; one more byte is read from the few alone.

use rustc_hash::FxHashMap;

use super::pretoken_splitter::{MARKS, Mark, Place, Splitter};
use super::token_transitions::{DEAD, NONE};

/// Passages that may be told apart.
const MOST: usize = 1 << 15;

/// Numbers held while passages are told apart.
const MOST_CELLS: usize = 1 << 24;

/// What tells passages apart.
pub(super) struct Shapes<'a> {
    splitter: &'a Splitter,
    /// Per state and mark in front of the token a number; numbers ascend where they are met first.
    shapes: Vec<Box<[u32]>>,
    shape_ids: FxHashMap<Box<[u32]>, u32>,
    /// What became of a shape when some of its places became one.
    merged: FxHashMap<(u32, Box<[u32]>), u32>,
    /// By shape and the place of each of its numbers.
    ids: FxHashMap<(u32, Box<[Place]>), u16>,
    list: Vec<(u32, Box<[Place]>)>,
    /// Per passage and byte the passage that goes on; those of no passage first.
    after: Vec<[u16; 256]>,
    cells: usize,
    /// Per passage the one that it goes on with, if any, and the byte it adds.
    pub(super) made: Vec<(u16, u8)>,
}

impl Shapes<'_> {
    pub(super) fn new(splitter: &Splitter) -> Shapes<'_> {
        Shapes {
            splitter,
            shapes: Vec::new(),
            shape_ids: FxHashMap::default(),
            merged: FxHashMap::default(),
            ids: FxHashMap::default(),
            list: Vec::new(),
            after: vec![[NONE; 256]],
            cells: 0,
            made: Vec::new(),
        }
    }

    /// The passage that goes on with a byte; none if there are too many.
    #[inline]
    pub(super) fn step(&mut self, before: u16, byte: u8) -> Option<u16> {
        let row = if before == NONE { 0 } else { usize::from(before) + 1 };
        match self.after[row][usize::from(byte)] {
            NONE => self.find(before, byte),
            known => Some(known),
        }
    }

    /// Whether a passage leads nowhere.
    pub(super) fn is_dead(&self, passage: u16) -> bool {
        self.list[usize::from(passage)].1.iter().all(|&place| place == DEAD)
    }

    fn find(&mut self, before: u16, byte: u8) -> Option<u16> {
        let splitter = self.splitter;
        let (shape, places) = match before {
            NONE => {
                let width = splitter.state_count() * MARKS.len();
                let cells = (0..width).map(|at| {
                    let place = splitter.place_of((at / MARKS.len()) as u32);
                    splitter.step(place, byte, MARKS[at % MARKS.len()]).unwrap_or(DEAD)
                });
                let (shape, places) = numbered(cells);
                (self.shape(shape), places)
            }
            _ => {
                let (shape, places) = &self.list[usize::from(before)];
                let after = places.iter().map(|&place| match place {
                    DEAD => DEAD,
                    place => splitter.step(place, byte, Mark::Inside).unwrap_or(DEAD),
                });
                let (shape, (numbers, places)) = (*shape, numbered(after));
                (self.merge(shape, numbers), places)
            }
        };
        let next = self.made.len();
        let known = self.ids.get(&(shape, places.clone())).copied();
        let id = match known {
            Some(id) => id,
            None => {
                self.cells += places.len() + self.after[0].len() / 2;
                if next == MOST || self.cells > MOST_CELLS {
                    return None;
                }
                self.ids.insert((shape, places.clone()), next as u16);
                self.list.push((shape, places));
                self.after.push([NONE; 256]);
                self.made.push((before, byte));
                next as u16
            }
        };
        // Bytes of equal meaning lead to equal places.
        let inside = match before {
            NONE => 0,
            _ => {
                let places = &self.list[usize::from(before)].1;
                places.iter().copied().find(|&place| place != DEAD).unwrap_or_default()
            }
        };
        let meaning = splitter.meaning(inside, byte);
        let row = if before == NONE { 0 } else { usize::from(before) + 1 };
        for other in 0..=255u8 {
            if splitter.meaning(inside, other) == meaning {
                self.after[row][usize::from(other)] = id;
            }
        }
        Some(id)
    }

    fn shape(&mut self, numbers: Box<[u32]>) -> u32 {
        if let Some(&id) = self.shape_ids.get(&numbers) {
            return id;
        }
        let id = self.shapes.len() as u32;
        self.cells += numbers.len();
        self.shape_ids.insert(numbers.clone(), id);
        self.shapes.push(numbers);
        id
    }

    /// The shape whose numbers are those given of the numbers of another one.
    fn merge(&mut self, shape: u32, numbers: Box<[u32]>) -> u32 {
        let is_same = numbers.iter().enumerate().all(|(at, &number)| at == number as usize);
        if is_same {
            return shape;
        }
        let key = (shape, numbers);
        if let Some(&id) = self.merged.get(&key) {
            return id;
        }
        let merged = self.shapes[shape as usize].iter().map(|&at| key.1[at as usize]).collect();
        let id = self.shape(merged);
        self.merged.insert(key, id);
        id
    }
}

/// The distinct ones of some places in the order in which they are met, and the number of each.
fn numbered(places: impl Iterator<Item = Place>) -> (Box<[u32]>, Box<[Place]>) {
    let mut known: FxHashMap<Place, u32> = FxHashMap::default();
    let mut distinct = Vec::new();
    let numbers = places.map(|place| {
        *known.entry(place).or_insert_with(|| {
            distinct.push(place);
            distinct.len() as u32 - 1
        })
    });
    (numbers.collect(), distinct.into())
}
