//! The possible ends of a lexeme: where it can end, as which terminal, after how many bytes.
//!
//! A position inside a lexeme is a lexer state paired with a state of the intersected regular
//! language.

use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{CompactMap, Error, LazyDfa, StateId};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::gss::stack_shortest_path::NEVER;

/// The position of the input relative to lines, for grammars with indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum LinePosition {
    /// Inside a line, or the grammar has no lines.
    InsideLine,
    /// After a line end: levels may start or end.
    LineEnded,
    /// Some levels ended, and more may.
    Dedenting,
    /// At the start of a line whose levels are settled.
    LineStart,
    /// As `LineStart`, but a backslash joined the previous line: the input cannot end here.
    JoinedLineStart,
    /// After the input: its levels end.
    AfterInput,
}

/// The control between lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BetweenLexemes {
    /// Negative threads and pending lookahead conditions.
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

/// A possible end of a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LexemeExit {
    /// The terminal as in lexer endings: a replaced lexeme has a number of its own.
    pub(super) terminal: u32,
    pub(super) after: BetweenLexemes,
    /// Minimum bytes to this end.
    pub(super) bytes: u32,
}

/// Reachable positions from which on the ends of all of them are computed together. Chosen, not
/// measured.
const MIN_SHARED_POSITIONS: usize = 200;
/// Maximum number of ends for that. Chosen, not measured.
const MAX_SHARED_EXITS: usize = 16;

/// A position inside a lexeme: lexer state and state of the regular language.
pub(super) type LexemePosition = (u32, StateId);

/// The successors of a position by one byte.
#[derive(Debug)]
pub(super) struct LexemeSuccessors {
    pub(super) on: Box<[LexemePosition]>,
    /// Terminals that may end, with the control after each.
    pub(super) ends: Box<[(u32, BetweenLexemes)]>,
}

/// Cached transitions and ends of lexemes.
#[derive(Debug)]
pub(super) struct LexemeExits {
    /// The intersected regular language, if any.
    pub(super) regular: Option<Arc<Automaton>>,
    /// One representative byte per class that no terminal and no regular state distinguishes.
    pub(super) bytes: Vec<u8>,
    successor_states: FxHashMap<LexemePosition, Arc<LexemeSuccessors>>,
    exits: FxHashMap<LexemePosition, Arc<[LexemeExit]>>,
    size: usize,
}

/// The positions reachable from one, with the edges between them.
#[derive(Default)]
struct ReachablePositions {
    positions: CompactMap<LexemePosition, u32>,
    /// The predecessors of each position.
    before: Vec<Vec<u32>>,
    /// Ends, each with the positions it is taken from by one byte, nearest first.
    ends: FxHashMap<(u32, BetweenLexemes), Vec<u32>>,
}

impl ReachablePositions {
    fn add(&mut self, one: LexemePosition, bytes: u32, from: Option<usize>) {
        let at = self.positions.position_or_insert_with(one, || bytes);
        self.before.resize(self.positions.len(), Vec::new());
        self.before[at as usize].extend(from.map(|from| from as u32));
    }
}

impl LexemeExits {
    pub(super) fn new(
        regular: Option<Arc<Automaton>>,
        reader: &ConfigurationReader,
    ) -> LexemeExits {
        let mut bytes: Vec<u8> = reader.lexer.threads.representatives().to_vec();
        bytes.extend(regular.iter().flat_map(|one| one.class_starts().to_vec()));
        bytes.sort_unstable();
        bytes.dedup();
        let (successor_states, exits) = (FxHashMap::default(), FxHashMap::default());
        LexemeExits { regular, bytes, successor_states, exits, size: 0 }
    }

    /// Returns the state of the regular language after a byte.
    pub(super) fn step(&self, at: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        match &self.regular {
            Some(one) => one.step(at, byte),
            None => Ok(Some(at)),
        }
    }

    /// Returns the successors of a position by one byte.
    pub(super) fn successors_of(
        &mut self,
        (lexer_state, at): LexemePosition,
        reader: &mut ConfigurationReader,
    ) -> Result<Arc<LexemeSuccessors>, Error> {
        if let Some(known) = self.successor_states.get(&(lexer_state, at)) {
            return Ok(Arc::clone(known));
        }
        let (mut on, mut ends) = (Vec::new(), Vec::new());
        reader.meter().spend(self.bytes.len())?;
        for &byte in &self.bytes {
            let outcome = reader.lexer.step(lexer_state, byte, &mut reader.parser.gss.meter)?;
            if outcome.continued == NOTHING && outcome.endings == NOTHING {
                continue;
            }
            let Some(at) = self.step(at, byte)? else { continue };
            let endings = reader.lexer.states.endings(outcome.endings);
            ends.extend(endings.iter().map(|one| {
                let after = BetweenLexemes::new(one.negative_threads, at);
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
        let successors = Arc::new(LexemeSuccessors { on: on.into(), ends: ends.into() });
        self.successor_states.insert((lexer_state, at), Arc::clone(&successors));
        Ok(successors)
    }

    /// Returns the possible ends of the lexeme at a position.
    pub(super) fn exits(
        &mut self,
        from: LexemePosition,
        reader: &mut ConfigurationReader,
    ) -> Result<Arc<[LexemeExit]>, Error> {
        if let Some(known) = self.exits.get(&from) {
            return Ok(Arc::clone(known));
        }
        let reachable = self.explore(from, reader)?;
        let mut exits = Vec::with_capacity(reachable.ends.len());
        let all = reachable.positions.len() >= MIN_SHARED_POSITIONS
            && reachable.ends.len() <= MAX_SHARED_EXITS;
        let mut of_all: Vec<Vec<LexemeExit>> =
            vec![Vec::new(); if all { reachable.positions.len() } else { 0 }];
        let mut ends: Vec<(&(u32, BetweenLexemes), &Vec<u32>)> = reachable.ends.iter().collect();
        ends.sort_unstable();
        for (&(terminal, after), from) in ends {
            let bytes = reachable.positions.value(from[0]) + 1;
            exits.push(LexemeExit { terminal, after, bytes });
            if all {
                reader.meter().spend(reachable.positions.len())?;
                for (position, bytes) in distances_to(&reachable, from) {
                    of_all[position].push(LexemeExit { terminal, after, bytes });
                }
            }
        }
        for (&(position, _), exits) in reachable.positions.as_slice().iter().zip(of_all).skip(1) {
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

    /// Explores the positions inside a lexeme, fewest bytes first.
    fn explore(
        &mut self,
        from: LexemePosition,
        reader: &mut ConfigurationReader,
    ) -> Result<ReachablePositions, Error> {
        let mut reachable = ReachablePositions::default();
        reachable.add(from, 0, None);
        let mut number = 0;
        while number < reachable.positions.len() {
            let (position, bytes) = reachable.positions.as_slice()[number];
            let successors = self.successors_of(position, reader)?;
            reader.meter().spend(successors.on.len() + successors.ends.len())?;
            for &end in &successors.ends {
                reachable.ends.entry(end).or_default().push(number as u32);
            }
            for &on in &successors.on {
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

/// Returns the positions that lead to one of `to`, with the bytes to it plus one.
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
