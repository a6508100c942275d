//! Items of one stack with what may follow them: the states of canonical LR(1) tables, on demand.
//!
//! Which lexemes compete depends on all terminals that may stand at a place, and so on what lies
//! below the top of a stack. Here a state is a list of items, each with the set of terminals that
//! may follow once it is complete, so that it tells by itself what may stand behind it.

use formalm_automata::Error;
use rustc_hash::FxHashMap;

use crate::interner::{Lists, NOTHING};
use crate::limits::Meter;
use crate::lr0::{END, STOP, Tables, insert, join};

/// Numbers of an item in the list of a kernel: a place in a production, how many symbols of it were
/// pushed, and what may follow the production, as a set of [`Tables::sets`].
const NUMBERS: usize = 3;

/// A successor that was not made yet.
const UNKNOWN: u32 = u32::MAX;

/// What a kernel comes to.
#[derive(Debug)]
struct Closure {
    /// Terminals that may stand here, as a set of [`Tables::sets`].
    allowed: u32,
    /// Per symbol, ascending: the items behind it, and their kernel once it was asked for.
    moves: Vec<(u32, Vec<u32>, u32)>,
    /// What may be complete: its left side, how many symbols were pushed, and what may follow.
    reductions: Vec<(u32, u32, u32)>,
}

/// The kernels met so far.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    lists: Lists,
    closures: FxHashMap<u32, Closure>,
    /// What texts of each symbol begin with, as sets of [`Tables::sets`].
    firsts: Vec<u32>,
    size: usize,
    /// Some kernel met so far can be read in more than one way.
    pub(super) conflicts: bool,
}

impl Kernels {
    /// The number of a list of items.
    pub(super) fn number(&mut self, mut items: Vec<[u32; NUMBERS]>) -> u32 {
        items.sort_unstable();
        self.lists.intern(items.as_flattened())
    }

    /// Terminals that may stand at a kernel.
    pub(super) fn allowed(
        &mut self,
        kernel: u32,
        tables: &mut Tables,
        meter: &mut Meter,
    ) -> Result<u32, Error> {
        Ok(self.closure(kernel, tables, meter)?.allowed)
    }

    /// What may be complete at a kernel.
    pub(super) fn reductions(
        &mut self,
        kernel: u32,
        tables: &mut Tables,
        meter: &mut Meter,
    ) -> Result<&[(u32, u32, u32)], Error> {
        Ok(&self.closure(kernel, tables, meter)?.reductions)
    }

    /// The kernel behind a symbol; [`NOTHING`] if it cannot stand there.
    pub(super) fn goto(
        &mut self,
        kernel: u32,
        symbol: u32,
        (tables, meter): (&mut Tables, &mut Meter),
    ) -> Result<u32, Error> {
        let moves = &mut self.closure(kernel, tables, meter)?.moves;
        let Ok(at) = moves.binary_search_by_key(&symbol, |one| one.0) else { return Ok(NOTHING) };
        let (_, items, known) = &mut moves[at];
        if *known != UNKNOWN {
            return Ok(*known);
        }
        let items = std::mem::take(items);
        let next = self.lists.intern(&items);
        if let Some(closure) = self.closures.get_mut(&kernel) {
            closure.moves[at].2 = next;
        }
        Ok(next)
    }

    fn closure(
        &mut self,
        kernel: u32,
        tables: &mut Tables,
        meter: &mut Meter,
    ) -> Result<&mut Closure, Error> {
        if !self.closures.contains_key(&kernel) {
            let closure = self.make(kernel, tables, meter)?;
            let moves = closure.moves.iter().map(|(_, items, _)| 40 + 4 * items.len());
            self.size += 48 + moves.sum::<usize>();
            self.closures.insert(kernel, closure);
        }
        self.closures.get_mut(&kernel).ok_or(Error::Interrupted)
    }

    fn make(
        &mut self,
        kernel: u32,
        tables: &mut Tables,
        meter: &mut Meter,
    ) -> Result<Closure, Error> {
        if self.firsts.is_empty() {
            self.firsts = firsts(tables, meter)?;
        }
        let mut items = Items::default();
        for item in self.lists.get(kernel).chunks_exact(NUMBERS) {
            items.add((item[0], item[1]), item[2], tables);
        }
        while let Some((place, pushed)) = items.open.pop() {
            meter.spend(1)?;
            let follow = items.follow[&(place, pushed)];
            let symbol = tables.symbol[place as usize];
            if symbol == END || symbol < tables.terminals {
                continue;
            }
            if tables.nullable[symbol as usize] {
                items.add((place + 1, pushed), follow, tables);
            }
            let behind = self.behind(place as usize + 1, follow, tables);
            for first in tables.firsts[symbol as usize].clone() {
                items.add((first, 0), behind, tables);
            }
        }
        self.closed(items, tables, meter)
    }

    /// What may follow a symbol in front of a place, given what follows the production.
    fn behind(&self, place: usize, follow: u32, tables: &mut Tables) -> u32 {
        let mut all = NOTHING;
        for at in place.. {
            let symbol = tables.symbol[at];
            if symbol == END {
                return tables.joined(all, follow);
            }
            all = tables.joined(all, self.firsts[symbol as usize]);
            if !tables.nullable[symbol as usize] {
                break;
            }
        }
        all
    }

    fn closed(
        &mut self,
        items: Items,
        tables: &mut Tables,
        meter: &mut Meter,
    ) -> Result<Closure, Error> {
        let mut list: Vec<((u32, u32), u32)> = items.follow.into_iter().collect();
        list.sort_unstable();
        let mut shifts: Vec<u32> = Vec::new();
        let mut reductions: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut moves: Vec<(u32, [u32; NUMBERS])> = Vec::new();
        for ((place, pushed), follow) in list {
            let symbol = tables.symbol[place as usize];
            if symbol != END {
                moves.push((symbol, [place + 1, pushed + 1, follow]));
                if symbol < tables.terminals {
                    shifts.push(symbol);
                }
            } else if pushed > 0 || tables.is_goal_at(place as usize) {
                let one = (tables.left[place as usize], pushed);
                let before = reductions.get(&one).copied().unwrap_or(NOTHING);
                reductions.insert(one, tables.joined(before, follow));
            }
        }
        let mut allowed: Vec<u32> = Vec::new();
        shifts.iter().for_each(|&one| insert(&mut allowed, one + 1));
        let mut reductions: Vec<(u32, u32, u32)> =
            reductions.into_iter().map(|((left, pushed), follow)| (left, pushed, follow)).collect();
        reductions.sort_unstable();
        for &(_, _, follow) in &reductions {
            let follow = tables.sets.get(follow);
            meter.spend(follow.len())?;
            self.conflicts |= allowed.iter().zip(follow).any(|(one, other)| one & other != 0);
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
        Ok(Closure { allowed: tables.sets.intern(&allowed), moves, reductions })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.size + self.lists.memory_bytes() + 4 * self.firsts.len()
    }
}

/// Items in the making: what may follow each.
#[derive(Default)]
struct Items {
    follow: FxHashMap<(u32, u32), u32>,
    open: Vec<(u32, u32)>,
}

impl Items {
    fn add(&mut self, item: (u32, u32), follow: u32, tables: &mut Tables) {
        let before = self.follow.get(&item).copied();
        let joined = tables.joined(before.unwrap_or(NOTHING), follow);
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

/// The set that has the end of the text alone.
pub(super) fn stop(tables: &mut Tables) -> u32 {
    tables.sets.intern(&single(STOP))
}

/// What texts of each symbol that are not empty begin with.
fn firsts(tables: &mut Tables, meter: &mut Meter) -> Result<Vec<u32>, Error> {
    let count = tables.firsts.len();
    let mut sets: Vec<u32> = vec![NOTHING; count];
    for terminal in 0..tables.terminals {
        let single = single(terminal + 1);
        // Sets are as long as their greatest number: of many terminals all are long.
        meter.spend(single.len())?;
        sets[terminal as usize] = tables.sets.intern(&single);
    }
    // Left sides by what their productions can begin with.
    let mut begins: Vec<Vec<u32>> = vec![Vec::new(); count];
    for symbol in 0..count {
        for &first in &tables.firsts[symbol] {
            for &next in tables.rest(first as usize) {
                meter.spend(1)?;
                begins[next as usize].push(symbol as u32);
                if !tables.nullable[next as usize] {
                    break;
                }
            }
        }
    }
    let mut open: Vec<u32> = (0..tables.terminals).collect();
    while let Some(symbol) = open.pop() {
        for &left in &begins[symbol as usize] {
            meter.spend(1)?;
            let joined = tables.joined(sets[left as usize], sets[symbol as usize]);
            if joined != sets[left as usize] {
                meter.spend(tables.sets.get(joined).len())?;
                sets[left as usize] = joined;
                open.push(left);
            }
        }
    }
    Ok(sets)
}
