//! LR(0) states, built when a stack first reaches them.
//!
//! The dot walks over symbols that may be empty without pushing anything, so nothing empty is ever
//! on a stack: an item is a place in a production and how many symbols of it were pushed.

use formalm_automata::Error;
use rustc_hash::FxHashMap;

use crate::interner::{ListInterner, NOTHING};
use crate::limits::StepMeter;
use crate::normal_form::NormalizedGrammar;

/// Stands behind the last symbol of a production.
pub(crate) const END: u32 = u32::MAX;
/// A successor that was not built yet.
const UNKNOWN: u32 = u32::MAX;
/// The number of "end of text" in sets of terminals; terminal `t` is `t + 1`.
pub(crate) const END_OF_INPUT: u32 = 0;

/// Numbers of a set kept as a list of words.
pub(crate) fn contains(words: &[u32], number: u32) -> bool {
    words.get(number as usize >> 5).is_some_and(|word| word >> (number & 31) & 1 != 0)
}

pub(crate) fn insert(words: &mut Vec<u32>, number: u32) {
    let at = number as usize >> 5;
    words.resize(words.len().max(at + 1), 0);
    words[at] |= 1 << (number & 31);
}

/// The union of two sets; neither ends in a zero word, so equal sets are equal lists.
pub(crate) fn join(left: &mut Vec<u32>, right: &[u32]) {
    left.resize(left.len().max(right.len()), 0);
    for (word, more) in left.iter_mut().zip(right) {
        *word |= more;
    }
}

/// The numbers of a set, ascending.
pub(crate) fn elements(words: &[u32]) -> impl Iterator<Item = u32> + '_ {
    (0..).zip(words).flat_map(|(at, &word)| {
        let rest = std::iter::successors(Some(word), |rest| Some(rest & rest.checked_sub(1)?));
        rest.take_while(|&rest| rest != 0).map(move |rest| 32 * at + rest.trailing_zeros())
    })
}

/// An LR(0) state.
#[derive(Debug)]
struct Lr0State {
    /// Pairs of place and number pushed.
    kernel: u32,
    /// What can be shifted: a set.
    shifts: u32,
    /// How many symbols were pushed of the items of the kernel, ascending.
    pops: Box<[u32]>,
    /// Left sides that can be reduced to, with the number of symbols to pop.
    reductions: Box<[(u32, u32)]>,
    /// Per symbol, ascending: kernel of the successor, and the successor once built.
    moves: Vec<(u32, u32, u32)>,
}

/// The states built so far.
#[derive(Debug)]
pub(crate) struct Lr0Automaton {
    /// Symbol at each place of each production.
    pub(crate) symbol_at: Vec<u32>,
    /// Left side of the production of each place.
    pub(crate) left: Vec<u32>,
    /// Whether the rest of a production from each place can be spelled; nothing where all can.
    pub(crate) always_spellable: Vec<bool>,
    /// Bytes of a shortest rest of the production from each place.
    rest_bytes: Vec<u32>,
    /// Per symbol the first places of its productions.
    pub(crate) firsts: Vec<Vec<u32>>,
    pub(crate) nullable: Vec<bool>,
    pub(crate) terminals: u32,
    states: Vec<Lr0State>,
    /// Memory of the states, counted as they are made: it is asked for at every shift.
    state_bytes: usize,
    kernels: ListInterner,
    /// State of each kernel.
    built: Vec<u32>,
    /// Sets of terminals; kept, as there are few.
    pub(crate) sets: ListInterner,
    /// Unions of two of them.
    unions: FxHashMap<(u32, u32), u32>,
}

impl Lr0Automaton {
    /// Tables of productions; `shortest` are the bytes of a shortest text of each symbol.
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

    /// The union of two sets of terminals.
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

    /// Places of the state's kernel.
    pub(crate) fn kernel_positions(&self, state: u32) -> impl Iterator<Item = usize> + '_ {
        let kernel = self.kernels.get(self.states[state as usize].kernel);
        kernel.chunks_exact(2).map(|item| item[0] as usize)
    }

    /// Places of the state's kernel with the number of symbols pushed.
    pub(crate) fn kernel(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let kernel = self.kernels.get(self.states[state as usize].kernel);
        kernel.chunks_exact(2).map(|item| (item[0], item[1]))
    }

    /// Symbols that lead on from a state.
    pub(crate) fn next_symbols(&self, state: u32) -> Vec<u32> {
        self.states[state as usize].moves.iter().map(|one| one.0).collect()
    }

    /// What a state can shift.
    pub(crate) fn shifts(&self, state: u32) -> u32 {
        self.states[state as usize].shifts
    }

    /// How many symbols were pushed of the items of a state's kernel, ascending.
    pub(crate) fn pops(&self, state: u32) -> &[u32] {
        &self.states[state as usize].pops
    }

    /// Left sides a state reduces to, and how many symbols each pops.
    pub(crate) fn reductions(&self, state: u32) -> &[(u32, u32)] {
        &self.states[state as usize].reductions
    }

    /// Bytes of a shortest rest of a production from a place on.
    pub(crate) fn rest_bytes(&self, position: usize) -> u32 {
        self.rest_bytes[position]
    }

    /// The symbols of a production from a place on.
    pub(crate) fn rest(&self, position: usize) -> &[u32] {
        let rest = &self.symbol_at[position..];
        let end = rest.iter().position(|&symbol| symbol == END);
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Whether a place is in the production of the whole text.
    pub(crate) fn is_goal_at(&self, position: usize) -> bool {
        self.is_goal(self.left[position])
    }

    /// Whether a left side is that of the whole text.
    pub(crate) fn is_goal(&self, symbol: u32) -> bool {
        symbol as usize + 1 == self.firsts.len()
    }

    /// The state after a symbol; `None` if it cannot stand there.
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

    /// Kernels of the successors, from items `(symbol, place, pushed)` after the symbol.
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
