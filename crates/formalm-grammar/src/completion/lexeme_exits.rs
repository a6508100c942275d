//! How lexemes under way may end, beside a regular language.

use std::sync::Arc;

use formalm_automata::{Automaton, Error, Machine, StateId};
use rustc_hash::FxHashMap;

use crate::completion::stack_shortest_path::NEVER;
use crate::interner::NOTHING;
use crate::state::Core;

/// Where a text is in its lines, where levels are told by indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Line {
    /// In one, or there are none.
    Open,
    /// Behind the end of one: levels may begin or end.
    Ended,
    /// Some levels ended, and others may.
    Shallower,
    /// In front of one, whose levels are told.
    Begun,
    /// The same where a backslash joined the line before with it: the text cannot end here.
    Joined,
    /// The text is over: its levels end.
    Over,
}

/// What goes on beside the stacks between lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Between {
    /// Threads that must not match, and what is asked of the text that follows.
    pub(super) forbidden: u32,
    /// A state of the regular language.
    pub(super) at: StateId,
    pub(super) line: Line,
}

impl Between {
    pub(super) fn new(forbidden: u32, at: StateId) -> Between {
        Between { forbidden, at, line: Line::Open }
    }
}

/// A way for a lexeme to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Exit {
    /// As endings have it: what became a terminal has a number of its own.
    pub(super) terminal: u32,
    pub(super) behind: Between,
    /// How many bytes it takes at least.
    pub(super) bytes: u32,
}

/// With so many places within lexemes, what is found out of one is found out of all.
const MANY: usize = 200;
/// But not if there are more ways to end than this.
const FEW_EXITS: usize = 16;

/// A place within a lexeme: a scan, and the state of the regular language.
pub(super) type Within = (u32, StateId);

/// Where one byte leads from a place.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) on: Box<[Within]>,
    /// Terminals that may end, and what is behind.
    pub(super) ends: Box<[(u32, Between)]>,
}

/// Lexemes under way.
#[derive(Debug)]
pub(super) struct Lexemes {
    /// The language beside the grammar, if there is one.
    pub(super) regular: Option<Arc<Automaton>>,
    /// Bytes that no terminal and not the regular language tells apart: one of each class.
    pub(super) bytes: Vec<u8>,
    nexts: FxHashMap<Within, Arc<Next>>,
    exits: FxHashMap<Within, Arc<[Exit]>>,
    size: usize,
}

/// The places met from one, with the ways between them.
#[derive(Default)]
struct Met {
    places: Vec<(Within, u32)>,
    numbers: FxHashMap<Within, usize>,
    /// From where each can be come to.
    before: Vec<Vec<u32>>,
    /// Exits, each with the places it is taken from by one byte, the nearest first.
    ends: FxHashMap<(u32, Between), Vec<u32>>,
}

impl Met {
    fn add(&mut self, one: Within, bytes: u32, from: Option<usize>) {
        let places = &mut self.places;
        let at = *self.numbers.entry(one).or_insert_with(|| {
            places.push((one, bytes));
            places.len() - 1
        });
        self.before.resize(self.places.len(), Vec::new());
        self.before[at].extend(from.map(|from| from as u32));
    }
}

impl Lexemes {
    pub(super) fn new(regular: Option<Arc<Automaton>>, core: &Core) -> Lexemes {
        let mut bytes: Vec<u8> = core.lexer.representatives().to_vec();
        bytes.extend(regular.iter().flat_map(|one| one.class_starts().to_vec()));
        bytes.sort_unstable();
        bytes.dedup();
        let (nexts, exits) = (FxHashMap::default(), FxHashMap::default());
        Lexemes { regular, bytes, nexts, exits, size: 0 }
    }

    /// The state of the regular language after a byte.
    pub(super) fn step(&self, at: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        match &self.regular {
            Some(one) => one.step(at, byte),
            None => Ok(Some(at)),
        }
    }

    /// Where one byte leads.
    pub(super) fn next(&mut self, (scan, at): Within, core: &mut Core) -> Result<Arc<Next>, Error> {
        if let Some(known) = self.nexts.get(&(scan, at)) {
            return Ok(Arc::clone(known));
        }
        let (mut on, mut ends) = (Vec::new(), Vec::new());
        core.stacks.meter.spend(self.bytes.len())?;
        for &byte in &self.bytes {
            let outcome = core.read_scan(scan, byte)?;
            if outcome.on == NOTHING && outcome.endings == NOTHING {
                continue;
            }
            let Some(at) = self.step(at, byte)? else { continue };
            let endings = core.scans.endings(outcome.endings);
            ends.extend(endings.iter().map(|one| {
                let behind = Between::new(one.left, at);
                (one.terminal, behind)
            }));
            if outcome.on != NOTHING {
                on.push((outcome.on, at));
            }
        }
        on.sort_unstable();
        on.dedup();
        ends.sort_unstable();
        ends.dedup();
        self.size += 64 + 8 * on.len() + 12 * ends.len();
        let next = Arc::new(Next { on: on.into(), ends: ends.into() });
        self.nexts.insert((scan, at), Arc::clone(&next));
        Ok(next)
    }

    /// How the lexeme of a scan may end.
    pub(super) fn exits(&mut self, from: Within, core: &mut Core) -> Result<Arc<[Exit]>, Error> {
        if let Some(known) = self.exits.get(&from) {
            return Ok(Arc::clone(known));
        }
        let met = self.look(from, core)?;
        let mut exits = Vec::with_capacity(met.ends.len());
        let all = met.places.len() >= MANY && met.ends.len() <= FEW_EXITS;
        let mut of_all: Vec<Vec<Exit>> = vec![Vec::new(); if all { met.places.len() } else { 0 }];
        let mut ends: Vec<(&(u32, Between), &Vec<u32>)> = met.ends.iter().collect();
        ends.sort_unstable();
        for (&(terminal, behind), from) in ends {
            let bytes = met.places[from[0] as usize].1 + 1;
            exits.push(Exit { terminal, behind, bytes });
            if all {
                core.stacks.meter.spend(met.places.len())?;
                for (place, bytes) in towards(&met, from) {
                    of_all[place].push(Exit { terminal, behind, bytes });
                }
            }
        }
        for (&(place, _), exits) in met.places.iter().zip(of_all).skip(1) {
            self.keep(place, exits.into());
        }
        let exits: Arc<[Exit]> = exits.into();
        self.keep(from, Arc::clone(&exits));
        Ok(exits)
    }

    fn keep(&mut self, place: Within, exits: Arc<[Exit]>) {
        self.size += 48 + 20 * exits.len();
        self.exits.insert(place, exits);
    }

    /// The places within a lexeme, those first that take fewer bytes.
    fn look(&mut self, from: Within, core: &mut Core) -> Result<Met, Error> {
        let mut met = Met::default();
        met.add(from, 0, None);
        let mut number = 0;
        while number < met.places.len() {
            let (place, bytes) = met.places[number];
            let next = self.next(place, core)?;
            core.stacks.meter.spend(next.on.len() + next.ends.len())?;
            for &end in &next.ends {
                met.ends.entry(end).or_default().push(number as u32);
            }
            for &on in &next.on {
                met.add(on, bytes + 1, Some(number));
            }
            number += 1;
        }
        Ok(met)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.size
    }
}

/// The places that lead to some of them, with the bytes that one byte further takes.
fn towards(met: &Met, to: &[u32]) -> Vec<(usize, u32)> {
    let mut bytes = vec![NEVER; met.places.len()];
    let mut open: Vec<usize> = to.iter().map(|&one| one as usize).collect();
    open.iter().for_each(|&one| bytes[one] = 1);
    let mut at = 0;
    while let Some(&one) = open.get(at) {
        for &before in &met.before[one] {
            let before = before as usize;
            if bytes[before] == NEVER {
                bytes[before] = bytes[one] + 1;
                open.push(before);
            }
        }
        at += 1;
    }
    open.into_iter().map(|one| (one, bytes[one])).collect()
}
