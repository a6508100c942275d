//! Interning of token transitions by their kernel: which splitter states they map to the same
//! state.
//!
//! ```text
//!  transition  s0 s1 s2 s3 …  ↦  p q p p …       kernel  {s0 s2 s3 …} {s1 …},  image  p q
//! ```
//!
//! A transition maps hundreds of states to few; after one word most of them coincide. The *kernel*
//! is the partition of the arguments by equal image. One more byte is then read from the few states
//! of the image only.

use formalm_core::Interner;
use rustc_hash::FxHashMap;

use super::pretokenizer::boundary_automaton::{
    BOUNDARIES, Boundary, BoundaryAutomaton, BoundaryState,
};
use super::token_transitions::{DEAD, NONE};

/// Maximum number of transitions. Chosen, not measured.
const MAX_TRANSITIONS: usize = 1 << 15;

/// Maximum number of table cells while transitions are interned. Bounds memory; chosen, not
/// measured.
const MAX_CELLS: usize = 1 << 24;

/// The interner of transitions.
pub(super) struct TransitionKernels<'a> {
    splitter: &'a BoundaryAutomaton,
    /// Kernels: a number per state and boundary before the token; numbers ascend in order of first
    /// occurrence.
    kernels: Interner<Box<[u32]>>,
    /// Cache of kernels after some of their numbers coincide.
    merged: FxHashMap<(u32, Box<[u32]>), u32>,
    /// Transitions by kernel and image.
    list: Interner<(u32, Box<[BoundaryState]>)>,
    /// Per transition and byte, the extended transition; the first row extends the empty token.
    after: Vec<[u16; 256]>,
    cells: usize,
    /// Per transition, the one that it extends, if any, and the byte it adds.
    pub(super) extends: Vec<(u16, u8)>,
}

impl TransitionKernels<'_> {
    pub(super) fn new(splitter: &BoundaryAutomaton) -> TransitionKernels<'_> {
        TransitionKernels {
            splitter,
            kernels: Interner::default(),
            merged: FxHashMap::default(),
            list: Interner::default(),
            after: vec![[NONE; 256]],
            cells: 0,
            extends: Vec::new(),
        }
    }

    /// Returns the transition extended by a byte. Returns `None` if there are too many.
    #[inline]
    pub(super) fn step(&mut self, before: u16, byte: u8) -> Option<u16> {
        let row = if before == NONE { 0 } else { usize::from(before) + 1 };
        match self.after[row][usize::from(byte)] {
            NONE => self.find(before, byte),
            known => Some(known),
        }
    }

    /// Returns `true` if a transition has no target.
    pub(super) fn is_dead(&self, transition: u16) -> bool {
        self.list[u32::from(transition)].1.iter().all(|&state| state == DEAD)
    }

    fn find(&mut self, before: u16, byte: u8) -> Option<u16> {
        let splitter = self.splitter;
        let (kernel, image) = match before {
            NONE => {
                let width = splitter.state_count() * BOUNDARIES.len();
                let cells = (0..width).map(|at| {
                    let state = splitter.between_characters((at / BOUNDARIES.len()) as u32);
                    splitter.step(state, byte, BOUNDARIES[at % BOUNDARIES.len()]).unwrap_or(DEAD)
                });
                let (kernel, image) = numbered(cells);
                (self.kernel(kernel), image)
            }
            _ => {
                let (kernel, image) = &self.list[u32::from(before)];
                let after = image.iter().map(|&state| match state {
                    DEAD => DEAD,
                    state => splitter.step(state, byte, Boundary::Inside).unwrap_or(DEAD),
                });
                let (kernel, (numbers, image)) = (*kernel, numbered(after));
                (self.merge(kernel, numbers), image)
            }
        };
        let next = self.extends.len();
        let transition = (kernel, image);
        let id = match self.list.find(&transition) {
            Some(id) => id as u16,
            None => {
                self.cells += transition.1.len() + self.after[0].len() / 2;
                if next == MAX_TRANSITIONS || self.cells > MAX_CELLS {
                    return None;
                }
                self.list.intern_new(transition);
                self.after.push([NONE; 256]);
                self.extends.push((before, byte));
                next as u16
            }
        };
        // Equivalent bytes lead to equal states.
        let inside = match before {
            NONE => 0,
            _ => {
                let image = &self.list[u32::from(before)].1;
                image.iter().copied().find(|&state| state != DEAD).unwrap_or_default()
            }
        };
        let meaning = splitter.byte_class(inside, byte);
        let row = if before == NONE { 0 } else { usize::from(before) + 1 };
        for other in 0..=255u8 {
            if splitter.byte_class(inside, other) == meaning {
                self.after[row][usize::from(other)] = id;
            }
        }
        Some(id)
    }

    fn kernel(&mut self, numbers: Box<[u32]>) -> u32 {
        let (before, cells) = (self.kernels.len(), numbers.len());
        let id = self.kernels.intern(numbers);
        self.cells += if self.kernels.len() > before { cells } else { 0 };
        id
    }

    /// Returns the kernel in which classes of `kernel` with equal `numbers` are merged.
    fn merge(&mut self, kernel: u32, numbers: Box<[u32]>) -> u32 {
        let is_same = numbers.iter().enumerate().all(|(at, &number)| at == number as usize);
        if is_same {
            return kernel;
        }
        let key = (kernel, numbers);
        if let Some(&id) = self.merged.get(&key) {
            return id;
        }
        let merged = self.kernels[kernel].iter().map(|&at| key.1[at as usize]).collect();
        let id = self.kernel(merged);
        self.merged.insert(key, id);
        id
    }
}

/// Returns the distinct states in order of first occurrence, and the number of each argument's
/// state.
fn numbered(image: impl Iterator<Item = BoundaryState>) -> (Box<[u32]>, Box<[BoundaryState]>) {
    let mut distinct = Interner::default();
    let numbers = image.map(|state| distinct.intern(state)).collect();
    (numbers, distinct.into_entries().into())
}
