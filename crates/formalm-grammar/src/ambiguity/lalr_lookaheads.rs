//! What may follow where a production ends, state by state: DeRemer and Pennello's lookaheads.
//!
//! Since nothing empty is ever on a stack, what a left side can be followed by is what the state
//! behind it shifts, and what follows those that end with it.

use formalm_automata::Error;
use rustc_hash::FxHashMap;

use super::within;
use crate::limits::Meter;
use crate::lr0::{END, Tables, join};

/// All states of the tables with what may follow reductions.
pub(super) struct Lookaheads {
    /// For each state those it is reached from.
    before: Vec<Vec<u32>>,
    /// How a state was reached first: from which one and by which symbol.
    pub(super) came: Vec<(u32, u32)>,
    /// What may follow a left side in a state.
    follows: FxHashMap<(u32, u32), Vec<u32>>,
    /// What may follow each reduction of a state.
    ahead: FxHashMap<(u32, (u32, u32)), Vec<u32>>,
}

/// The last place that a place comes to over symbols that may be empty.
pub(super) fn reach(tables: &Tables, place: u32) -> u32 {
    let mut place = place;
    loop {
        let symbol = tables.symbol[place as usize];
        if symbol == END || !tables.nullable[symbol as usize] {
            return place;
        }
        place += 1;
    }
}

impl Lookaheads {
    pub(super) fn new(tables: &mut Tables, meter: &mut Meter) -> Result<Lookaheads, Error> {
        let mut all = Lookaheads {
            before: vec![Vec::new()],
            came: vec![(0, 0)],
            follows: FxHashMap::default(),
            ahead: FxHashMap::default(),
        };
        // States are numbered as they are built, so all of them come up in turn.
        let mut transitions: Vec<(u32, u32, u32)> = Vec::new();
        let mut state = 0;
        while (state as usize) < all.before.len() {
            for symbol in tables.symbols(state) {
                let Some(next) = tables.goto(state, symbol, meter)? else { continue };
                if next as usize >= all.before.len() {
                    all.before.resize(next as usize + 1, Vec::new());
                    all.came.resize(next as usize + 1, (0, 0));
                    all.came[next as usize] = (state, symbol);
                    within(all.before.len())?;
                }
                all.before[next as usize].push(state);
                if symbol >= tables.terminals {
                    transitions.push((state, symbol, next));
                }
            }
            state += 1;
        }
        all.find_follows(tables, &transitions, meter)?;
        for state in 0..all.len() {
            for &(left, popped) in tables.reductions(state) {
                let mut ahead = Vec::new();
                for below in all.popped(state, popped, meter)? {
                    if let Some(follows) = all.follows.get(&(below, left)) {
                        join(&mut ahead, follows);
                    }
                }
                all.ahead.insert((state, (left, popped)), ahead);
            }
        }
        Ok(all)
    }

    pub(super) fn len(&self) -> u32 {
        self.before.len() as u32
    }

    /// What may follow a reduction of a state.
    pub(super) fn of(&self, state: u32, reduction: (u32, u32)) -> &[u32] {
        self.ahead.get(&(state, reduction)).map_or(&[], |set| &set[..])
    }

    /// States so many symbols before one.
    fn popped(&self, state: u32, count: u32, meter: &mut Meter) -> Result<Vec<u32>, Error> {
        let mut reached = vec![state];
        for _ in 0..count {
            let mut below: Vec<u32> =
                reached.iter().flat_map(|&one| self.before[one as usize].iter().copied()).collect();
            meter.spend(below.len())?;
            below.sort_unstable();
            below.dedup();
            reached = below;
        }
        Ok(reached)
    }

    fn find_follows(
        &mut self,
        tables: &Tables,
        transitions: &[(u32, u32, u32)],
        meter: &mut Meter,
    ) -> Result<(), Error> {
        // What follows a left side follows those that end with it.
        let mut hands: FxHashMap<(u32, u32), Vec<(u32, u32)>> = FxHashMap::default();
        let mut queue = Vec::new();
        for &(state, symbol, next) in transitions {
            let shifts = tables.sets.get(tables.shifts(next)).to_vec();
            self.follows.insert((state, symbol), shifts);
            queue.push((state, symbol));
            for &(left, popped) in tables.reductions(next) {
                for below in self.popped(state, popped - 1, meter)? {
                    hands.entry((below, left)).or_default().push((state, symbol));
                }
            }
        }
        while let Some(key) = queue.pop() {
            let own = self.follows[&key].clone();
            for to in hands.get(&key).into_iter().flatten() {
                let Some(set) = self.follows.get_mut(to) else { continue };
                meter.spend(own.len() + 1)?;
                let before = set.clone();
                join(set, &own);
                if *set != before {
                    queue.push(*to);
                }
            }
        }
        Ok(())
    }
}
