//! What symbols can be spelled as, from where: context-free reachability, on demand.
//!
//! Asked is what a symbol at a kernel comes to from a control, or what the rest of a production
//! does. Right-hand sides are read symbol by symbol; who waits for a symbol goes on with each
//! control that it comes to. Bytes only ever fall, and when nothing is left to be done all are
//! least.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;

use formalm_automata::{Error, StateId};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::Completions;
use super::lexeme_exits::Between;
use crate::completion::stack_shortest_path::NEVER;
use crate::interner::NOTHING;
use crate::lr0::END;
use crate::state::Core;

/// What goes on beside the stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Control {
    /// The lexer state in front of the next lexeme, where lexemes compete: reductions that it
    /// leads to come later.
    pub(super) context: u32,
    /// Stacks that read the same, where what may stand at them is looked at.
    pub(super) rivals: u32,
    pub(super) between: Between,
}

/// In place of a control: the text has ended.
pub(super) fn done() -> Control {
    let between = Between::new(NOTHING, StateId::from_number(u32::MAX));
    Control { context: NOTHING, rivals: NOTHING, between }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// A symbol that is not a terminal.
    Symbol(u32),
    /// The rest of a production from a place on, and whether some of it was read.
    Rest(u32, bool),
}

/// Where, and beside what.
pub(super) type Question = (u32, Asked, Control);

/// A production that is read for a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Part {
    question: u32,
    kernel: u32,
    place: u32,
    /// Whether something of the production was read: what is empty derives nothing here.
    begun: bool,
    control: Control,
}

/// A part that was come to.
#[derive(Clone, Copy, Debug)]
struct Reached {
    part: Part,
    /// Bytes that it takes at least.
    bytes: u32,
    /// Whether it waits for the symbol at its place.
    waits: bool,
}

/// What is known of a question.
#[derive(Debug, Default)]
struct Found {
    /// Controls that it comes to, with the bytes it takes at least.
    ends: Vec<(Control, u32)>,
    numbers: FxHashMap<Control, usize>,
    /// Parts that wait for it.
    waiting: Vec<u32>,
}

/// The questions so far.
#[derive(Debug, Default)]
pub(super) struct Derivations {
    questions: FxHashMap<Question, u32>,
    found: Vec<Found>,
    parts: Vec<Reached>,
    /// Numbers of parts.
    numbers: HashTable<u32>,
    open: BinaryHeap<(Reverse<u32>, u32)>,
    /// Memory of what was found, in bytes.
    size: usize,
}

impl Derivations {
    /// A part with the bytes that it takes to get there.
    fn part(&mut self, part: Part, bytes: u32) {
        let parts = &mut self.parts;
        let hash = FxBuildHasher.hash_one(part);
        let number = match self.numbers.find(hash, |&one| parts[one as usize].part == part) {
            Some(&known) => known,
            None => {
                let fresh = parts.len() as u32;
                parts.push(Reached { part, bytes: NEVER, waits: false });
                let rehash = |&one: &u32| FxBuildHasher.hash_one(parts[one as usize].part);
                self.numbers.insert_unique(hash, fresh, rehash);
                fresh
            }
        };
        let known = &mut parts[number as usize].bytes;
        let bytes = bytes.min(NEVER - 1);
        if bytes < *known {
            *known = bytes;
            self.open.push((Reverse(bytes), number));
        }
    }

    /// The number of a question, and whether it is new.
    fn question(&mut self, question: Question) -> (u32, bool) {
        let found = &mut self.found;
        let before = found.len();
        let number = *self.questions.entry(question).or_insert_with(|| {
            found.push(Found::default());
            before as u32
        });
        (number, number as usize == before)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.questions.len() * 120
            + self.parts.len() * (size_of::<Reached>() + 8)
            + self.open.len() * 8
            + self.size
    }
}

impl Completions {
    /// What a question comes to, with the bytes it takes at least.
    pub(super) fn ends(
        &mut self,
        question: Question,
        core: &mut Core,
    ) -> Result<Vec<(Control, u32)>, Error> {
        let number = self.ask(question, core)?;
        while let Some((Reverse(bytes), part)) = self.derivations.open.pop() {
            if self.derivations.parts[part as usize].bytes == bytes {
                core.stacks.meter.spend(1)?;
                self.read_on(part, core)?;
            }
        }
        Ok(self.derivations.found[number as usize].ends.clone())
    }

    fn ask(&mut self, question: Question, core: &mut Core) -> Result<u32, Error> {
        let (number, is_new) = self.derivations.question(question);
        if !is_new {
            return Ok(number);
        }
        let (kernel, asked, control) = question;
        let part = |place, begun| Part { question: number, kernel, place, begun, control };
        match asked {
            Asked::Rest(place, begun) => self.derivations.part(part(place, begun), 0),
            Asked::Symbol(symbol) => {
                for &first in &core.stacks.tables.firsts[symbol as usize] {
                    self.derivations.part(part(first, false), 0);
                }
            }
        }
        Ok(number)
    }

    /// Reads one symbol of a production further.
    fn read_on(&mut self, number: u32, core: &mut Core) -> Result<(), Error> {
        let Reached { part, bytes, .. } = self.derivations.parts[number as usize];
        let Part { question, kernel, place, begun, control } = part;
        let symbol = core.stacks.tables.symbol[place as usize];
        self.allowed(kernel, core)?;
        if symbol == END {
            if core.stacks.tables.is_goal_at(place as usize) {
                let end = self.spelled(None, control, core)?.end;
                if end != NEVER {
                    self.answer(question, (done(), bytes.saturating_add(end)), core)?;
                }
            } else if begun {
                self.answer(question, (control, bytes), core)?;
            }
            return Ok(());
        }
        if symbol < core.stacks.tables.terminals {
            let spelled = self.spelled(Some(symbol), control, core)?;
            let exits = spelled.of(symbol);
            if !exits.is_empty() {
                let behind = self.goto(kernel, symbol, core)?;
                let rivals = self.rivals_after(control.rivals, symbol, [kernel, behind], core)?;
                let (context, kernel) = (self.context(behind, rivals, core)?, behind);
                for exit in exits {
                    let control = Control { context, rivals, between: exit.behind };
                    let part = Part { kernel, place: place + 1, begun: true, control, ..part };
                    self.derivations.part(part, bytes.saturating_add(exit.bytes));
                }
            }
            return Ok(());
        }
        if core.stacks.tables.nullable[symbol as usize] {
            self.derivations.part(Part { place: place + 1, ..part }, bytes);
        }
        let asked = self.ask((kernel, Asked::Symbol(symbol), control), core)? as usize;
        let reached = &mut self.derivations.parts[number as usize];
        if !std::mem::replace(&mut reached.waits, true) {
            self.derivations.found[asked].waiting.push(number);
            self.derivations.size += 4;
        }
        for at in 0..self.derivations.found[asked].ends.len() {
            let (control, own) = self.derivations.found[asked].ends[at];
            self.behind(Part { control, ..part }, symbol, bytes.saturating_add(own), core)?;
        }
        Ok(())
    }

    /// Goes on behind a symbol; the control of the part is the one there.
    fn behind(
        &mut self,
        part: Part,
        symbol: u32,
        bytes: u32,
        core: &mut Core,
    ) -> Result<(), Error> {
        core.stacks.meter.spend(1)?;
        let kernel = self.goto(part.kernel, symbol, core)?;
        let part = Part { kernel, place: part.place + 1, begun: true, ..part };
        self.derivations.part(part, bytes);
        Ok(())
    }

    fn answer(
        &mut self,
        question: u32,
        (control, bytes): (Control, u32),
        core: &mut Core,
    ) -> Result<(), Error> {
        let Derivations { found, size, .. } = &mut self.derivations;
        let found = &mut found[question as usize];
        let ends = &mut found.ends;
        let at = *found.numbers.entry(control).or_insert_with(|| {
            ends.push((control, NEVER));
            *size += 48;
            ends.len() - 1
        });
        let bytes = bytes.min(NEVER - 1);
        if bytes >= ends[at].1 {
            return Ok(());
        }
        ends[at].1 = bytes;
        for waiting in found.waiting.clone() {
            let Reached { part, bytes: before, .. } = self.derivations.parts[waiting as usize];
            let symbol = core.stacks.tables.symbol[part.place as usize];
            self.behind(Part { control, ..part }, symbol, before.saturating_add(bytes), core)?;
        }
        Ok(())
    }
}
