//! Which lexemes can be spelled where, beside what must not match and a regular language.

use std::sync::Arc;

use formalm_automata::{Automaton, Error, Machine, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Look;
use crate::core::Core;
use crate::grammar::Lexing;
use crate::lists::NOTHING;
use crate::rests::NEVER;

/// What goes on beside the stacks between lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Between {
    /// Threads that must not match, and what is asked of the text that follows.
    pub(super) forbidden: u32,
    /// A state of the regular language.
    pub(super) at: StateId,
}

/// Where lexemes begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct From {
    pub(super) context: u32,
    pub(super) between: Between,
    /// The one asked for, where lexemes do not compete.
    pub(super) terminal: Option<u32>,
    pub(super) look: Look,
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

/// What can be spelled from a place between lexemes.
#[derive(Debug)]
pub(super) struct Spelled {
    /// Terminals that the stacks shift, ascending, with what is ignored in front of them.
    pub(super) exits: Box<[Exit]>,
    /// Bytes to where the text may end, all of them ignored.
    pub(super) end: u32,
}

impl Spelled {
    /// The ways to spell a terminal.
    pub(super) fn of(&self, terminal: u32) -> &[Exit] {
        let first = self.exits.partition_point(|one| one.terminal < terminal);
        let count = self.exits[first..].partition_point(|one| one.terminal == terminal);
        &self.exits[first..first + count]
    }
}

/// With so many places within lexemes, what is found out of one is found out of all.
const MANY: usize = 200;
/// But not if there are more ways to end than this.
const FEW_EXITS: usize = 16;

/// A place within a lexeme: a scan, and the state of the regular language.
type Within = (u32, StateId);

/// What was found out.
#[derive(Debug)]
pub(super) struct Spelling {
    /// The language beside the grammar, if there is one.
    regular: Option<Arc<Automaton>>,
    /// Bytes that no terminal and not the regular language tells apart: one of each class.
    bytes: Vec<u8>,
    exits: FxHashMap<Within, Arc<[Exit]>>,
    spelled: FxHashMap<(u32, Between), Arc<Spelled>>,
    /// What has no lexemes of its own, by its terminal and the state of the regular language.
    others: FxHashMap<(u32, StateId), Arc<Spelled>>,
    size: usize,
}

/// The places met from one, with the ways between them.
#[derive(Default)]
struct Met {
    places: Vec<(Within, u32)>,
    numbers: FxHashMap<Within, usize>,
    /// From where each can be come to.
    before: Vec<Vec<u32>>,
    /// Exits, each with the places it is taken from by one byte.
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

impl Spelling {
    pub(super) fn new(regular: Option<Arc<Automaton>>, core: &Core) -> Spelling {
        let mut starts: Vec<u8> = core.lexer.representatives().to_vec();
        starts.extend(regular.iter().flat_map(|one| one.class_starts().to_vec()));
        starts.sort_unstable();
        starts.dedup();
        Spelling {
            regular,
            bytes: starts,
            exits: FxHashMap::default(),
            spelled: FxHashMap::default(),
            others: FxHashMap::default(),
            size: 0,
        }
    }

    /// Where the regular language begins.
    pub(super) fn start(&self) -> StateId {
        self.regular.as_ref().map_or(StateId::from_number(0), |one| one.start())
    }

    fn step(&self, at: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        match &self.regular {
            Some(one) => one.step(at, byte),
            None => Ok(Some(at)),
        }
    }

    /// Whether the text may end between lexemes, as far as the stacks do not matter.
    fn may_end(&self, between: Between, core: &Core) -> bool {
        core.lexer.may_end(between.forbidden)
            && self.regular.as_ref().is_none_or(|one| one.is_accepting(between.at))
    }

    /// How the lexeme of a scan may end.
    pub(super) fn exits(
        &mut self,
        (scan, at): Within,
        core: &mut Core,
    ) -> Result<Arc<[Exit]>, Error> {
        if let Some(known) = self.exits.get(&(scan, at)) {
            return Ok(Arc::clone(known));
        }
        let met = self.look((scan, at), core)?;
        let mut exits = Vec::with_capacity(met.ends.len());
        let all = met.places.len() >= MANY && met.ends.len() <= FEW_EXITS;
        let mut of_all: Vec<Vec<Exit>> = vec![Vec::new(); if all { met.places.len() } else { 0 }];
        let mut ends: Vec<(&(u32, Between), &Vec<u32>)> = met.ends.iter().collect();
        ends.sort_unstable();
        for (&(terminal, behind), from) in ends {
            let nearest = from.iter().map(|&one| met.places[one as usize].1).min();
            let bytes = nearest.unwrap_or(0) + 1;
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
        self.keep((scan, at), Arc::clone(&exits));
        Ok(exits)
    }

    fn keep(&mut self, place: Within, exits: Arc<[Exit]>) {
        self.size += 48 + 20 * exits.len();
        self.exits.insert(place, exits);
    }

    /// The places within a lexeme, those first that take fewer bytes.
    fn look(&self, from: Within, core: &mut Core) -> Result<Met, Error> {
        let mut met = Met::default();
        met.add(from, 0, None);
        let mut number = 0;
        while number < met.places.len() {
            let ((scan, at), bytes) = met.places[number];
            for &byte in &self.bytes {
                core.stacks.meter.spend(1)?;
                let outcome = core.read_scan(scan, byte)?;
                if outcome.on == NOTHING && outcome.endings == NOTHING {
                    continue;
                }
                let Some(at) = self.step(at, byte)? else { continue };
                for one in &*core.scans.endings(outcome.endings) {
                    let behind = Between { forbidden: one.left, at };
                    let from = met.ends.entry((one.terminal, behind)).or_default();
                    if from.last() != Some(&(number as u32)) {
                        from.push(number as u32);
                    }
                }
                if outcome.on != NOTHING {
                    met.add((outcome.on, at), bytes + 1, Some(number));
                }
            }
            number += 1;
        }
        Ok(met)
    }

    /// What can be spelled from a place between lexemes.
    pub(super) fn spelled(&mut self, from: From, core: &mut Core) -> Result<Arc<Spelled>, Error> {
        if let Some(terminal) = from.terminal
            && (core.embedded.has(terminal) || core.is_level(terminal))
        {
            return self.other(terminal, from.between.at, core);
        }
        let key = (from.context, from.between);
        if let Some(known) = self.spelled.get(&key) {
            return Ok(Arc::clone(known));
        }
        let mut nearest: FxHashMap<(u32, Between), u32> = FxHashMap::default();
        let mut end = NEVER;
        // What was ignored, by how many bytes it takes.
        let mut ignored: Vec<Vec<Between>> = vec![vec![from.between]];
        let mut seen: FxHashSet<Between> = FxHashSet::default();
        let mut bytes = 0;
        while bytes < ignored.len() {
            for between in std::mem::take(&mut ignored[bytes]) {
                if !seen.insert(between) {
                    continue;
                }
                if self.may_end(between, core) {
                    end = end.min(bytes as u32);
                }
                let scan = core.scans.number(from.context, between.forbidden);
                for exit in &*self.exits((scan, between.at), core)? {
                    core.stacks.meter.spend(1)?;
                    let Exit { terminal, mut behind, bytes: own } = *exit;
                    let all = bytes as u32 + own;
                    if from.look == Look::Loose {
                        behind.forbidden = NOTHING;
                    }
                    let (skipped, read) = core.is_read(terminal);
                    if skipped {
                        let len = ignored.len().max(all as usize + 1);
                        ignored.resize(len, Vec::new());
                        ignored[all as usize].push(behind);
                    }
                    if read {
                        let least = nearest.entry((core.shifted(terminal), behind)).or_insert(all);
                        *least = all.min(*least);
                    }
                }
            }
            bytes += 1;
        }
        if let Some(layout) = &core.layout {
            // The end of the text may end a line.
            nearest.insert((layout.newline, from.between), 0);
        }
        let spelled = self.made(nearest, end);
        self.spelled.insert(key, Arc::clone(&spelled));
        Ok(spelled)
    }

    fn made(&mut self, nearest: FxHashMap<(u32, Between), u32>, end: u32) -> Arc<Spelled> {
        let mut exits: Vec<Exit> = nearest
            .into_iter()
            .map(|((terminal, behind), bytes)| Exit { terminal, behind, bytes })
            .collect();
        exits.sort_unstable();
        self.size += 64 + 20 * exits.len();
        Arc::new(Spelled { exits: exits.into(), end })
    }

    /// What is read without a lexeme, loosely: levels are told by columns and have no text, and
    /// embedded languages have any.
    fn other(&mut self, terminal: u32, at: StateId, core: &Core) -> Result<Arc<Spelled>, Error> {
        if let Some(known) = self.others.get(&(terminal, at)) {
            return Ok(Arc::clone(known));
        }
        let exits = match core.is_level(terminal) {
            true => {
                vec![Exit { terminal, behind: Between { forbidden: NOTHING, at }, bytes: 0 }]
            }
            false => self.any_text(terminal, at)?,
        };
        self.size += 64 + 20 * exits.len();
        let spelled = Arc::new(Spelled { exits: exits.into(), end: NEVER });
        self.others.insert((terminal, at), Arc::clone(&spelled));
        Ok(spelled)
    }

    /// All states that texts which are not empty lead to.
    pub(super) fn any_text(&self, terminal: u32, at: StateId) -> Result<Vec<Exit>, Error> {
        let mut exits: Vec<Exit> = Vec::new();
        let mut seen: FxHashSet<StateId> = FxHashSet::default();
        let mut last = vec![at];
        for bytes in 1.. {
            let mut next = Vec::new();
            for &at in &last {
                for &byte in &self.bytes {
                    if let Some(at) = self.step(at, byte)?
                        && seen.insert(at)
                    {
                        let behind = Between { forbidden: NOTHING, at };
                        exits.push(Exit { terminal, behind, bytes });
                        next.push(at);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            last = next;
        }
        Ok(exits)
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

impl Core {
    /// Whether a terminal is told by columns.
    fn is_level(&self, terminal: u32) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.is_level(terminal))
    }

    /// Whether a lexeme may be ignored, and whether the stacks may shift it.
    fn is_read(&self, terminal: u32) -> (bool, bool) {
        let newline = self.layout.as_ref().is_some_and(|layout| layout.newline == terminal);
        let ignored = terminal < self.terminals && self.is_ignored(terminal);
        (ignored || newline, !ignored || self.lexing == Lexing::Any)
    }
}
