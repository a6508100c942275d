//! How lexemes under way may end, beside a regular language.

use std::sync::Arc;

use formalm_automata::{Automaton, Error, Machine, StateId};
use rustc_hash::FxHashMap;

use crate::completion::stack_shortest_path::NEVER;
use crate::interner::NOTHING;
use crate::state::GrammarState;

/// Where a text is in its lines, where levels are told by indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum LinePosition {
    /// In one, or there are none.
    InsideLine,
    /// Behind the end of one: levels may begin or end.
    LineEnded,
    /// Some levels ended, and others may.
    Dedenting,
    /// In front of one, whose levels are told.
    LineStart,
    /// The same where a backslash joined the line before with it: the text cannot end here.
    JoinedLineStart,
    /// The text is over: its levels end.
    AfterInput,
}

/// What goes on beside the stacks between lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BetweenLexemes {
    /// Threads that must not match, and what is asked of the text that follows.
    pub(super) negative_threads: u32,
    /// A state of the regular language.
    pub(super) at: StateId,
    pub(super) line: LinePosition,
}

impl BetweenLexemes {
    pub(super) fn new(negative_threads: u32, at: StateId) -> BetweenLexemes {
        BetweenLexemes { negative_threads, at, line: LinePosition::InsideLine }
    }
}

/// A way for a lexeme to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LexemeExit {
    /// As endings have it: what became a terminal has a number of its own.
    pub(super) terminal: u32,
    pub(super) after: BetweenLexemes,
    /// How many bytes it takes at least.
    pub(super) bytes: u32,
}

/// With so many places within lexemes, what is found out of one is found out of all.
const MIN_SHARED_POSITIONS: usize = 200;
/// But not if there are more ways to end than this.
const MAX_SHARED_EXITS: usize = 16;

/// A place within a lexeme: a scan, and the state of the regular language.
pub(super) type LexemePosition = (u32, StateId);

/// Where one byte leads from a place.
#[derive(Debug)]
pub(super) struct LexemeSuccessors {
    pub(super) on: Box<[LexemePosition]>,
    /// Terminals that may end, and what is behind.
    pub(super) ends: Box<[(u32, BetweenLexemes)]>,
}

/// Lexemes under way.
#[derive(Debug)]
pub(super) struct LexemeExits {
    /// The language beside the grammar, if there is one.
    pub(super) regular: Option<Arc<Automaton>>,
    /// Bytes that no terminal and not the regular language tells apart: one of each class.
    pub(super) bytes: Vec<u8>,
    successor_states: FxHashMap<LexemePosition, Arc<LexemeSuccessors>>,
    exits: FxHashMap<LexemePosition, Arc<[LexemeExit]>>,
    size: usize,
}

/// The places met from one, with the ways between them.
#[derive(Default)]
struct ReachablePositions {
    positions: Vec<(LexemePosition, u32)>,
    numbers: FxHashMap<LexemePosition, usize>,
    /// From where each can be come to.
    before: Vec<Vec<u32>>,
    /// Exits, each with the places it is taken from by one byte, the nearest first.
    ends: FxHashMap<(u32, BetweenLexemes), Vec<u32>>,
}

impl ReachablePositions {
    fn add(&mut self, one: LexemePosition, bytes: u32, from: Option<usize>) {
        let positions = &mut self.positions;
        let at = *self.numbers.entry(one).or_insert_with(|| {
            positions.push((one, bytes));
            positions.len() - 1
        });
        self.before.resize(self.positions.len(), Vec::new());
        self.before[at].extend(from.map(|from| from as u32));
    }
}

impl LexemeExits {
    pub(super) fn new(regular: Option<Arc<Automaton>>, core: &GrammarState) -> LexemeExits {
        let mut bytes: Vec<u8> = core.lexer.representatives().to_vec();
        bytes.extend(regular.iter().flat_map(|one| one.class_starts().to_vec()));
        bytes.sort_unstable();
        bytes.dedup();
        let (successor_states, exits) = (FxHashMap::default(), FxHashMap::default());
        LexemeExits { regular, bytes, successor_states, exits, size: 0 }
    }

    /// The state of the regular language after a byte.
    pub(super) fn step(&self, at: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        match &self.regular {
            Some(one) => one.step(at, byte),
            None => Ok(Some(at)),
        }
    }

    /// Where one byte leads.
    pub(super) fn successors_of(
        &mut self,
        (lexer_state, at): LexemePosition,
        core: &mut GrammarState,
    ) -> Result<Arc<LexemeSuccessors>, Error> {
        if let Some(known) = self.successor_states.get(&(lexer_state, at)) {
            return Ok(Arc::clone(known));
        }
        let (mut on, mut ends) = (Vec::new(), Vec::new());
        core.gss.meter.spend(self.bytes.len())?;
        for &byte in &self.bytes {
            let outcome = core.step_lexer_state(lexer_state, byte)?;
            if outcome.continued == NOTHING && outcome.endings == NOTHING {
                continue;
            }
            let Some(at) = self.step(at, byte)? else { continue };
            let endings = core.lexer_states.endings(outcome.endings);
            ends.extend(endings.iter().map(|one| {
                let after = BetweenLexemes::new(one.left, at);
                (one.terminal, after)
            }));
            if outcome.continued != NOTHING {
                on.push((outcome.continued, at));
            }
        }
        on.sort_unstable();
        on.dedup();
        ends.sort_unstable();
        ends.dedup();
        self.size += 64 + 8 * on.len() + 12 * ends.len();
        let successors_of = Arc::new(LexemeSuccessors { on: on.into(), ends: ends.into() });
        self.successor_states.insert((lexer_state, at), Arc::clone(&successors_of));
        Ok(successors_of)
    }

    /// How the lexeme of a scan may end.
    pub(super) fn exits(
        &mut self,
        from: LexemePosition,
        core: &mut GrammarState,
    ) -> Result<Arc<[LexemeExit]>, Error> {
        if let Some(known) = self.exits.get(&from) {
            return Ok(Arc::clone(known));
        }
        let reachable = self.explore(from, core)?;
        let mut exits = Vec::with_capacity(reachable.ends.len());
        let all = reachable.positions.len() >= MIN_SHARED_POSITIONS
            && reachable.ends.len() <= MAX_SHARED_EXITS;
        let mut of_all: Vec<Vec<LexemeExit>> =
            vec![Vec::new(); if all { reachable.positions.len() } else { 0 }];
        let mut ends: Vec<(&(u32, BetweenLexemes), &Vec<u32>)> = reachable.ends.iter().collect();
        ends.sort_unstable();
        for (&(terminal, after), from) in ends {
            let bytes = reachable.positions[from[0] as usize].1 + 1;
            exits.push(LexemeExit { terminal, after, bytes });
            if all {
                core.gss.meter.spend(reachable.positions.len())?;
                for (position, bytes) in distances_to(&reachable, from) {
                    of_all[position].push(LexemeExit { terminal, after, bytes });
                }
            }
        }
        for (&(position, _), exits) in reachable.positions.iter().zip(of_all).skip(1) {
            self.keep(position, exits.into());
        }
        let exits: Arc<[LexemeExit]> = exits.into();
        self.keep(from, Arc::clone(&exits));
        Ok(exits)
    }

    fn keep(&mut self, position: LexemePosition, exits: Arc<[LexemeExit]>) {
        self.size += 48 + 20 * exits.len();
        self.exits.insert(position, exits);
    }

    /// The places within a lexeme, those first that take fewer bytes.
    fn explore(
        &mut self,
        from: LexemePosition,
        core: &mut GrammarState,
    ) -> Result<ReachablePositions, Error> {
        let mut reachable = ReachablePositions::default();
        reachable.add(from, 0, None);
        let mut number = 0;
        while number < reachable.positions.len() {
            let (position, bytes) = reachable.positions[number];
            let successors_of = self.successors_of(position, core)?;
            core.gss.meter.spend(successors_of.on.len() + successors_of.ends.len())?;
            for &end in &successors_of.ends {
                reachable.ends.entry(end).or_default().push(number as u32);
            }
            for &on in &successors_of.on {
                reachable.add(on, bytes + 1, Some(number));
            }
            number += 1;
        }
        Ok(reachable)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.size
    }
}

/// The places that lead to some of them, with the bytes that one byte further takes.
fn distances_to(reachable: &ReachablePositions, to: &[u32]) -> Vec<(usize, u32)> {
    let mut bytes = vec![NEVER; reachable.positions.len()];
    let mut open: Vec<usize> = to.iter().map(|&one| one as usize).collect();
    open.iter().for_each(|&one| bytes[one] = 1);
    let mut at = 0;
    while let Some(&one) = open.get(at) {
        for &before in &reachable.before[one] {
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
