//! The LR(0) automaton, built on demand when a stack first reaches a state.
//!
//! An item is a dot position in a production and the number of symbols pushed. The dot also moves
//! over nullable symbols without a push, so no stack ever holds an empty symbol.
//!
//! Reference: D. E. Knuth, "On the translation of languages from left to right" (1965).

use formalm_core::{Error, ListInterner};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::limits::StepMeter;
use crate::normal_form::NormalizedGrammar;

/// The symbol after the last one of a production.
pub(crate) const END: u32 = u32::MAX;
/// A successor that was not built yet.
const UNKNOWN: u32 = u32::MAX;
/// The number of "end of input" in terminal sets; terminal `t` has number `t + 1`.
pub(crate) const END_OF_INPUT: u32 = 0;

/// Returns `true` if a bit set contains a number.
pub(crate) fn contains(words: &[u32], number: u32) -> bool {
    words.get(number as usize >> 5).is_some_and(|word| word >> (number & 31) & 1 != 0)
}

pub(crate) fn insert(words: &mut Vec<u32>, number: u32) {
    let at = number as usize >> 5;
    words.resize(words.len().max(at + 1), 0);
    words[at] |= 1 << (number & 31);
}

/// Adds a set to another one. No set ends with a zero word, so equal sets are equal lists.
pub(crate) fn join(left: &mut Vec<u32>, right: &[u32]) {
    left.resize(left.len().max(right.len()), 0);
    for (word, more) in left.iter_mut().zip(right) {
        *word |= more;
    }
}

/// Returns the numbers in a set, ascending.
pub(crate) fn elements(words: &[u32]) -> impl Iterator<Item = u32> + '_ {
    (0..).zip(words).flat_map(|(at, &word)| {
        let rest = std::iter::successors(Some(word), |rest| Some(rest & rest.checked_sub(1)?));
        rest.take_while(|&rest| rest != 0).map(move |rest| 32 * at + rest.trailing_zeros())
    })
}

/// An LR(0) state.
#[derive(Debug)]
struct Lr0State {
    /// The kernel: pairs of dot position and number of symbols pushed.
    kernel: u32,
    /// The set of terminals that can be shifted.
    shifts: u32,
    /// The numbers of symbols pushed in the kernel's items, ascending.
    pops: Box<[u32]>,
    /// Left-hand sides of possible reductions, with the number of symbols to pop.
    reductions: Box<[(u32, u32)]>,
    /// Per symbol, ascending: the kernel of the successor, and the successor once it is built.
    moves: Vec<(u32, u32, u32)>,
}

/// The states built so far, and the productions they are built from.
#[derive(Debug)]
pub(crate) struct Lr0Automaton {
    /// The symbol at each dot position.
    pub(crate) symbol_at: Vec<u32>,
    /// The left-hand side of the production at each dot position.
    pub(crate) left: Vec<u32>,
    /// `true` if the rest of the production from a dot position is always spellable, see
    /// [`crate::dead_end_proof`]; empty if all are.
    pub(crate) always_spellable: Vec<bool>,
    /// Minimum bytes of the rest of the production from each dot position.
    rest_bytes: Vec<u32>,
    /// Per symbol the first dot positions of its productions.
    pub(crate) firsts: Vec<Vec<u32>>,
    pub(crate) nullable: Vec<bool>,
    pub(crate) terminals: u32,
    states: Vec<Lr0State>,
    /// Bytes used by the states, maintained incrementally because every shift reads it.
    state_bytes: usize,
    kernels: ListInterner,
    /// The state of each kernel.
    built: Vec<u32>,
    /// Terminal sets. They are few and never dropped.
    pub(crate) sets: ListInterner,
    /// Cached unions of two terminal sets.
    unions: FxHashMap<(u32, u32), u32>,
}

impl Lr0Automaton {
    /// Builds the automaton of some productions; `shortest_bytes` is the length of a shortest
    /// string of each symbol.
    pub(crate) fn new(
        normalized: &NormalizedGrammar,
        shortest_bytes: &[u32],
        meter: &mut StepMeter,
    ) -> Result<Lr0Automaton, Error> {
        let goal = normalized.symbols;
        let mut lr0 = Lr0Automaton {
            symbol_at: Vec::new(),
            left: Vec::new(),
            always_spellable: Vec::new(),
            rest_bytes: Vec::new(),
            firsts: vec![Vec::new(); normalized.symbols as usize + 1],
            nullable: normalized.nullable.clone(),
            terminals: normalized.terminals,
            states: Vec::new(),
            state_bytes: 0,
            kernels: ListInterner::default(),
            built: Vec::new(),
            sets: ListInterner::default(),
            unions: FxHashMap::default(),
        };
        lr0.nullable.push(normalized.nullable[normalized.start as usize]);
        lr0.production(goal, &[normalized.start], shortest_bytes);
        for one in &normalized.productions {
            lr0.production(one.left, &one.right, shortest_bytes);
        }
        let kernel = lr0.kernels.intern(&[0, 0]);
        lr0.state(kernel, meter)?;
        Ok(lr0)
    }

    fn production(&mut self, left: u32, right: &[u32], shortest_bytes: &[u32]) {
        let first = self.symbol_at.len();
        self.firsts[left as usize].push(first as u32);
        self.symbol_at.extend_from_slice(right);
        self.symbol_at.push(END);
        self.left.resize(self.symbol_at.len(), left);
        let mut rest = 0u32;
        let mut rests: Vec<u32> = Vec::with_capacity(right.len() + 1);
        rests.push(0);
        for &symbol in right.iter().rev() {
            let empty = self.nullable[symbol as usize];
            rest = rest.saturating_add(if empty { 0 } else { shortest_bytes[symbol as usize] });
            rests.push(rest);
        }
        self.rest_bytes.extend(rests.into_iter().rev());
    }

    /// Returns the union of two terminal sets.
    pub(crate) fn joined(&mut self, left: u32, right: u32) -> u32 {
        if left == right || right == NOTHING {
            return left;
        }
        if left == NOTHING {
            return right;
        }
        let sets = &mut self.sets;
        *self.unions.entry((left, right)).or_insert_with(|| {
            let mut both = sets.get(left).to_vec();
            join(&mut both, sets.get(right));
            sets.intern(&both)
        })
    }

    /// Returns the dot positions of a state's kernel.
    pub(crate) fn kernel_positions(&self, state: u32) -> impl Iterator<Item = usize> + '_ {
        let kernel = self.kernels.get(self.states[state as usize].kernel);
        kernel.chunks_exact(2).map(|item| item[0] as usize)
    }

    /// Returns the dot positions of a state's kernel with the number of symbols pushed.
    pub(crate) fn kernel(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let kernel = self.kernels.get(self.states[state as usize].kernel);
        kernel.chunks_exact(2).map(|item| (item[0], item[1]))
    }

    /// Returns the symbols with a transition from a state.
    pub(crate) fn next_symbols(&self, state: u32) -> Vec<u32> {
        self.states[state as usize].moves.iter().map(|one| one.0).collect()
    }

    /// Returns the set of terminals that a state can shift.
    pub(crate) fn shifts(&self, state: u32) -> u32 {
        self.states[state as usize].shifts
    }

    /// Returns the numbers of symbols pushed in the items of a state's kernel, ascending.
    pub(crate) fn pops(&self, state: u32) -> &[u32] {
        &self.states[state as usize].pops
    }

    /// Returns the left-hand sides that a state can reduce to, and how many symbols each pops.
    pub(crate) fn reductions(&self, state: u32) -> &[(u32, u32)] {
        &self.states[state as usize].reductions
    }

    /// Returns the minimum bytes of the rest of a production.
    pub(crate) fn rest_bytes(&self, position: usize) -> u32 {
        self.rest_bytes[position]
    }

    /// Returns the symbols of a production from a dot position on.
    pub(crate) fn rest(&self, position: usize) -> &[u32] {
        let rest = &self.symbol_at[position..];
        let end = rest.iter().position(|&symbol| symbol == END);
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Returns `true` if a dot position belongs to the augmented start production.
    pub(crate) fn is_goal_at(&self, position: usize) -> bool {
        self.is_goal(self.left[position])
    }

    /// Returns `true` if a symbol is the augmented start symbol.
    pub(crate) fn is_goal(&self, symbol: u32) -> bool {
        symbol as usize + 1 == self.firsts.len()
    }

    /// Returns the state after a symbol; `None` if there is no transition.
    pub(crate) fn goto(
        &mut self,
        state: u32,
        symbol: u32,
        meter: &mut StepMeter,
    ) -> Result<Option<u32>, Error> {
        let moves = &self.states[state as usize].moves;
        let Ok(at) = moves.binary_search_by_key(&symbol, |one| one.0) else { return Ok(None) };
        let (_, kernel, known) = moves[at];
        if known != UNKNOWN {
            return Ok(Some(known));
        }
        let next = self.state(kernel, meter)?;
        self.states[state as usize].moves[at].2 = next;
        Ok(Some(next))
    }

    fn state(&mut self, kernel: u32, meter: &mut StepMeter) -> Result<u32, Error> {
        self.built.resize(self.kernels.len(), UNKNOWN);
        let known = self.built[kernel as usize];
        if known != UNKNOWN {
            return Ok(known);
        }
        let state = self.closure(kernel, meter)?;
        let id = self.states.len() as u32;
        self.state_bytes +=
            96 + 4 * state.pops.len() + 12 * state.moves.len() + 8 * state.reductions.len();
        self.states.push(state);
        self.built.resize(self.kernels.len(), UNKNOWN);
        self.built[kernel as usize] = id;
        Ok(id)
    }

    fn closure(&mut self, kernel: u32, meter: &mut StepMeter) -> Result<Lr0State, Error> {
        let mut items: Vec<(u32, u32)> =
            self.kernels.get(kernel).chunks_exact(2).map(|item| (item[0], item[1])).collect();
        let mut pops: Vec<u32> = items.iter().map(|item| item.1).collect();
        pops.sort_unstable();
        pops.dedup();
        let mut seen: rustc_hash::FxHashSet<(u32, u32)> = items.iter().copied().collect();
        let mut predicted: rustc_hash::FxHashSet<u32> = rustc_hash::FxHashSet::default();
        let mut moves: Vec<(u32, u32, u32)> = Vec::new();
        let mut shifts: Vec<u32> = Vec::new();
        let mut reductions: Vec<(u32, u32)> = Vec::new();
        while let Some((position, pushed)) = items.pop() {
            meter.spend(1)?;
            let symbol = self.symbol_at[position as usize];
            if symbol == END {
                let left = self.left[position as usize];
                if self.is_goal(left) {
                    insert(&mut shifts, END_OF_INPUT);
                } else if pushed > 0 {
                    reductions.push((left, pushed));
                }
                continue;
            }
            moves.push((symbol, position + 1, pushed + 1));
            if symbol < self.terminals {
                insert(&mut shifts, symbol + 1);
                continue;
            }
            if self.nullable[symbol as usize] && seen.insert((position + 1, pushed)) {
                items.push((position + 1, pushed));
            }
            if predicted.insert(symbol) {
                for &first in &self.firsts[symbol as usize] {
                    if seen.insert((first, 0)) {
                        items.push((first, 0));
                    }
                }
            }
        }
        reductions.sort_unstable();
        reductions.dedup();
        let shifts = self.sets.intern(&shifts);
        let moves = self.moves(moves);
        Ok(Lr0State { kernel, shifts, pops: pops.into(), reductions: reductions.into(), moves })
    }

    /// Builds the kernels of the successors from items `(symbol, position, pushed)` with the dot
    /// after the symbol.
    fn moves(&mut self, mut items: Vec<(u32, u32, u32)>) -> Vec<(u32, u32, u32)> {
        items.sort_unstable();
        items.dedup();
        let groups = items.chunk_by(|left, right| left.0 == right.0);
        groups
            .map(|group| {
                let kernel: Vec<u32> = group.iter().flat_map(|one| [one.1, one.2]).collect();
                (group[0].0, self.kernels.intern(&kernel), UNKNOWN)
            })
            .collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.state_bytes
            + self.symbol_at.len() * 12
            + self.kernels.memory_bytes()
            + self.sets.memory_bytes()
            + self.unions.len() * 20
    }
}
