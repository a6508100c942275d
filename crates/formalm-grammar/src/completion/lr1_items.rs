//! Canonical LR(1) states on demand: items of one stack, each with its lookahead set.
//!
//! Competition between lexemes depends on all terminals allowed at a position, and therefore on the
//! stack below the top. An LR(0) state does not determine them. An LR(1) state does: each item
//! carries the terminals that may follow its production.
//!
//! Reference: D. E. Knuth, "On the translation of languages from left to right" (1965).

use formalm_core::{Error, ListInterner};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::limits::StepMeter;
use crate::lr0::{END, END_OF_INPUT, Lr0Automaton, insert, join};

/// Integers per item in the list of an LR(1) state: dot position, number of symbols pushed, and
/// lookahead set, as an id of [`Lr0Automaton::sets`].
const ITEM_LEN: usize = 3;

/// A successor that was not built yet.
const UNKNOWN: u32 = u32::MAX;

/// The closure of an LR(1) kernel.
#[derive(Debug)]
struct Lr1Closure {
    /// The terminals allowed here, as an id of [`Lr0Automaton::sets`].
    allowed: u32,
    /// Per symbol, ascending: the items after it, and the LR(1) state of these once it was needed.
    moves: Vec<(u32, Vec<u32>, u32)>,
    /// Possible reductions: left-hand side, number of symbols pushed, and lookahead set.
    reductions: Vec<(u32, u32, u32)>,
}

/// The LR(1) states built so far.
#[derive(Debug, Default)]
pub(super) struct Lr1States {
    lists: ListInterner,
    closures: FxHashMap<u32, Lr1Closure>,
    /// FIRST sets of all symbols, as ids of [`Lr0Automaton::sets`].
    firsts: Vec<u32>,
    size: usize,
    /// `true` if some state built so far has a shift-reduce or reduce-reduce conflict.
    pub(super) has_conflicts: bool,
}

impl Lr1States {
    /// Interns a kernel and returns its id.
    pub(super) fn number(&mut self, mut items: Vec<[u32; ITEM_LEN]>) -> u32 {
        items.sort_unstable();
        self.lists.intern(items.as_flattened())
    }

    /// Returns the terminals allowed in a state.
    pub(super) fn allowed(
        &mut self,
        lr1_state: u32,
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<u32, Error> {
        Ok(self.closure(lr1_state, lr0, meter)?.allowed)
    }

    /// Returns the possible reductions of a state.
    pub(super) fn reductions(
        &mut self,
        lr1_state: u32,
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<&[(u32, u32, u32)], Error> {
        Ok(&self.closure(lr1_state, lr0, meter)?.reductions)
    }

    /// Returns the state after a symbol; [`NOTHING`] if there is no transition.
    pub(super) fn goto(
        &mut self,
        lr1_state: u32,
        symbol: u32,
        (lr0, meter): (&mut Lr0Automaton, &mut StepMeter),
    ) -> Result<u32, Error> {
        let moves = &mut self.closure(lr1_state, lr0, meter)?.moves;
        let Ok(at) = moves.binary_search_by_key(&symbol, |one| one.0) else { return Ok(NOTHING) };
        let (_, items, known) = &mut moves[at];
        if *known != UNKNOWN {
            return Ok(*known);
        }
        let items = std::mem::take(items);
        let next = self.lists.intern(&items);
        if let Some(closure) = self.closures.get_mut(&lr1_state) {
            closure.moves[at].2 = next;
        }
        Ok(next)
    }

    fn closure(
        &mut self,
        lr1_state: u32,
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<&mut Lr1Closure, Error> {
        if !self.closures.contains_key(&lr1_state) {
            let closure = self.build_closure(lr1_state, lr0, meter)?;
            let moves = closure.moves.iter().map(|(_, items, _)| 40 + 4 * items.len());
            self.size += 48 + moves.sum::<usize>();
            self.closures.insert(lr1_state, closure);
        }
        self.closures.get_mut(&lr1_state).ok_or(Error::Interrupted)
    }

    fn build_closure(
        &mut self,
        lr1_state: u32,
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<Lr1Closure, Error> {
        if self.firsts.is_empty() {
            self.firsts = firsts(lr0, meter)?;
        }
        let mut items = Lr1Items::default();
        for item in self.lists.get(lr1_state).chunks_exact(ITEM_LEN) {
            items.add((item[0], item[1]), item[2], lr0);
        }
        while let Some((position, pushed)) = items.open.pop() {
            meter.spend(1)?;
            let follow = items.follow[&(position, pushed)];
            let symbol = lr0.symbol_at[position as usize];
            if symbol == END || symbol < lr0.terminals {
                continue;
            }
            if lr0.nullable[symbol as usize] {
                items.add((position + 1, pushed), follow, lr0);
            }
            let lookahead_after = self.lookahead_after(position as usize + 1, follow, lr0);
            for first in lr0.firsts[symbol as usize].clone() {
                items.add((first, 0), lookahead_after, lr0);
            }
        }
        self.finish_closure(items, lr0, meter)
    }

    /// Returns the lookahead set of a symbol: FIRST of what follows it in the production, joined
    /// with `follow` if that is nullable.
    fn lookahead_after(&self, position: usize, follow: u32, lr0: &mut Lr0Automaton) -> u32 {
        let mut all = NOTHING;
        for at in position.. {
            let symbol = lr0.symbol_at[at];
            if symbol == END {
                return lr0.joined(all, follow);
            }
            all = lr0.joined(all, self.firsts[symbol as usize]);
            if !lr0.nullable[symbol as usize] {
                break;
            }
        }
        all
    }

    fn finish_closure(
        &mut self,
        items: Lr1Items,
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<Lr1Closure, Error> {
        let mut list: Vec<((u32, u32), u32)> = items.follow.into_iter().collect();
        list.sort_unstable();
        let mut shifts: Vec<u32> = Vec::new();
        let mut reductions: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut moves: Vec<(u32, [u32; ITEM_LEN])> = Vec::new();
        for ((position, pushed), follow) in list {
            let symbol = lr0.symbol_at[position as usize];
            if symbol != END {
                moves.push((symbol, [position + 1, pushed + 1, follow]));
                if symbol < lr0.terminals {
                    shifts.push(symbol);
                }
            } else if pushed > 0 || lr0.is_goal_at(position as usize) {
                let one = (lr0.left[position as usize], pushed);
                let before = reductions.get(&one).copied().unwrap_or(NOTHING);
                reductions.insert(one, lr0.joined(before, follow));
            }
        }
        let mut allowed: Vec<u32> = Vec::new();
        shifts.iter().for_each(|&one| insert(&mut allowed, one + 1));
        let mut reductions: Vec<(u32, u32, u32)> =
            reductions.into_iter().map(|((left, pushed), follow)| (left, pushed, follow)).collect();
        reductions.sort_unstable();
        for &(_, _, follow) in &reductions {
            let follow = lr0.sets.get(follow);
            meter.spend(follow.len())?;
            self.has_conflicts |= allowed.iter().zip(follow).any(|(one, other)| one & other != 0);
            join(&mut allowed, follow);
        }
        moves.sort_unstable();
        let groups = moves.chunk_by(|left, right| left.0 == right.0);
        let moves = groups
            .map(|group| {
                let items = group.iter().flat_map(|one| one.1).collect();
                (group[0].0, items, UNKNOWN)
            })
            .collect();
        Ok(Lr1Closure { allowed: lr0.sets.intern(&allowed), moves, reductions })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.size + self.lists.memory_bytes() + 4 * self.firsts.len()
    }
}

/// Items under construction, with their lookahead sets.
#[derive(Default)]
struct Lr1Items {
    follow: FxHashMap<(u32, u32), u32>,
    open: Vec<(u32, u32)>,
}

impl Lr1Items {
    fn add(&mut self, item: (u32, u32), follow: u32, lr0: &mut Lr0Automaton) {
        let before = self.follow.get(&item).copied();
        let joined = lr0.joined(before.unwrap_or(NOTHING), follow);
        if before != Some(joined) {
            self.follow.insert(item, joined);
            self.open.push(item);
        }
    }
}

fn single(number: u32) -> Vec<u32> {
    let mut words = Vec::new();
    insert(&mut words, number);
    words
}

/// Returns the set that contains only the end of input.
pub(super) fn end_of_input_set(lr0: &mut Lr0Automaton) -> u32 {
    lr0.sets.intern(&single(END_OF_INPUT))
}

/// Computes the FIRST sets of all symbols, over nonempty strings.
fn firsts(lr0: &mut Lr0Automaton, meter: &mut StepMeter) -> Result<Vec<u32>, Error> {
    let count = lr0.firsts.len();
    let mut sets: Vec<u32> = vec![NOTHING; count];
    for terminal in 0..lr0.terminals {
        let single = single(terminal + 1);
        // A bit set is as long as its largest element, so with many terminals all sets are long.
        meter.spend(single.len())?;
        sets[terminal as usize] = lr0.sets.intern(&single);
    }
    // The left-hand sides of productions that can start with each symbol.
    let mut begins: Vec<Vec<u32>> = vec![Vec::new(); count];
    for symbol in 0..count {
        for &first in &lr0.firsts[symbol] {
            for &next in lr0.rest(first as usize) {
                meter.spend(1)?;
                begins[next as usize].push(symbol as u32);
                if !lr0.nullable[next as usize] {
                    break;
                }
            }
        }
    }
    let mut open: Vec<u32> = (0..lr0.terminals).collect();
    while let Some(symbol) = open.pop() {
        for &left in &begins[symbol as usize] {
            meter.spend(1)?;
            let joined = lr0.joined(sets[left as usize], sets[symbol as usize]);
            if joined != sets[left as usize] {
                meter.spend(lr0.sets.get(joined).len())?;
                sets[left as usize] = joined;
                open.push(left);
            }
        }
    }
    Ok(sets)
}
