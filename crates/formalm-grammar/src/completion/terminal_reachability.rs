//! Which terminals can be spelled where, beside what must not match and a regular language.

use std::sync::Arc;

use formalm_automata::{Automaton, Error, Look, Machine, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::lexeme_exits::{Between, Exit, Lexemes, Line, Within};
use crate::completion::stack_shortest_path::NEVER;
use crate::grammar::Lexing;
use crate::indentation::parser_state::{is_closed, is_joined};
use crate::interner::NOTHING;
use crate::state::Core;

/// Where lexemes begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct From {
    pub(super) context: u32,
    pub(super) between: Between,
    /// The one asked for, where lexemes do not compete.
    pub(super) terminal: Option<u32>,
    pub(super) look: Look,
}

/// What can be spelled from a place between lexemes.
#[derive(Debug)]
pub(super) struct Spelled {
    /// Terminals that the stacks shift, ascending, with what is ignored in front of them.
    exits: Box<[Exit]>,
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

/// What was found out.
#[derive(Debug)]
pub(super) struct Spelling {
    pub(super) lexemes: Lexemes,
    spelled: FxHashMap<(u32, Between), Arc<Spelled>>,
    /// What has no lexemes of its own, by its terminal and the state of the regular language.
    others: FxHashMap<(u32, Between), Arc<Spelled>>,
    size: usize,
}

/// What is read from a place, those places first that take fewer bytes.
struct Reached {
    open: Vec<Within>,
    seen: FxHashSet<Within>,
    nearest: FxHashMap<(u32, Between), u32>,
    end: u32,
}

impl Spelling {
    pub(super) fn new(regular: Option<Arc<Automaton>>, core: &Core) -> Spelling {
        Spelling {
            lexemes: Lexemes::new(regular, core),
            spelled: FxHashMap::default(),
            others: FxHashMap::default(),
            size: 0,
        }
    }

    /// Where the regular language begins.
    pub(super) fn start(&self) -> StateId {
        self.lexemes.regular.as_ref().map_or(StateId::from_number(0), |one| one.start())
    }

    /// Whether the text may end between lexemes, as far as the stacks do not matter.
    fn may_end(&self, between: Between, core: &Core) -> bool {
        let regular = self.lexemes.regular.as_ref();
        core.lexer.may_end(between.forbidden)
            && regular.is_none_or(|one| one.is_accepting(between.at))
    }

    /// What can be spelled from a place between lexemes.
    pub(super) fn spelled(&mut self, from: From, core: &mut Core) -> Result<Arc<Spelled>, Error> {
        if let Some(terminal) = from.terminal
            && (core.embedded.has(terminal) || core.is_level(terminal))
        {
            return self.other(terminal, from.between, core);
        }
        let key = (from.context, from.between);
        if let Some(known) = self.spelled.get(&key) {
            return Ok(Arc::clone(known));
        }
        let Reached { mut nearest, end, .. } = self.read_on(from, core)?;
        if let Some(layout) = core.layout.as_ref().filter(|layout| layout.is_python())
            && from.between.line == Line::Open
        {
            // The end of the text ends a line.
            let over = Between { line: Line::Over, ..from.between };
            nearest.insert((layout.newline, over), 0);
        }
        let spelled = self.made(nearest, end);
        self.spelled.insert(key, Arc::clone(&spelled));
        Ok(spelled)
    }

    /// Reads up to the end of a lexeme that is not ignored.
    fn read_on(&mut self, from: From, core: &mut Core) -> Result<Reached, Error> {
        let mut reached = Reached {
            open: Vec::new(),
            seen: FxHashSet::default(),
            nearest: FxHashMap::default(),
            end: NEVER,
        };
        self.begin((from.context, from.between), 0, &mut reached, core);
        if from.between.line == Line::Over {
            return Ok(reached);
        }
        for bytes in 1.. {
            for place in std::mem::take(&mut reached.open) {
                let next = self.lexemes.next(place, core)?;
                core.stacks.meter.spend(next.on.len() + next.ends.len())?;
                for &on in &next.on {
                    if reached.seen.insert(on) {
                        reached.open.push(on);
                    }
                }
                for &(terminal, mut behind) in &next.ends {
                    if from.look == Look::Loose && !core.ends_line(terminal) {
                        behind.forbidden = NOTHING;
                    }
                    let (skipped, read) = core.is_read(terminal, from.between.line);
                    if skipped {
                        let line = match from.between.line {
                            Line::Joined => Line::Begun,
                            line => line,
                        };
                        let behind = Between { line, ..behind };
                        self.begin((from.context, behind), bytes, &mut reached, core);
                    }
                    if read {
                        behind.line = core.line_behind(terminal);
                        reached.nearest.entry((core.shifted(terminal), behind)).or_insert(bytes);
                    }
                }
            }
            if reached.open.is_empty() {
                break;
            }
        }
        Ok(reached)
    }

    /// A place between lexemes that is come to with some bytes.
    fn begin(
        &self,
        (context, between): (u32, Between),
        bytes: u32,
        reached: &mut Reached,
        core: &mut Core,
    ) {
        if between.line != Line::Joined && self.may_end(between, core) {
            reached.end = reached.end.min(bytes);
        }
        let place = (core.scans.number(context, between.forbidden), between.at);
        if reached.seen.insert(place) {
            reached.open.push(place);
        }
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
    fn other(&mut self, terminal: u32, from: Between, core: &Core) -> Result<Arc<Spelled>, Error> {
        if let Some(known) = self.others.get(&(terminal, from)) {
            return Ok(Arc::clone(known));
        }
        let exits = match &core.layout {
            Some(layout) if layout.is_level(terminal) => {
                let lines = from.line.levels(terminal == layout.indent);
                let behind = lines.iter().map(|&line| Between { line, ..from });
                behind.map(|behind| Exit { terminal, behind, bytes: 0 }).collect()
            }
            _ if from.line == Line::Over => Vec::new(),
            _ => self.any_text(terminal, from.at)?,
        };
        self.size += 64 + 20 * exits.len();
        let spelled = Arc::new(Spelled { exits: exits.into(), end: NEVER });
        self.others.insert((terminal, from), Arc::clone(&spelled));
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
                for &byte in &self.lexemes.bytes {
                    if let Some(at) = self.lexemes.step(at, byte)?
                        && seen.insert(at)
                    {
                        let behind = Between::new(NOTHING, at);
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
        self.size + self.lexemes.memory_bytes()
    }
}

impl Line {
    /// Where a level that begins, or ends, leads to. It is told where a line begins, and at the end
    /// of the text all end.
    fn levels(self, begins: bool) -> &'static [Line] {
        match (self, begins) {
            (Line::Ended, true) => &[Line::Begun],
            (_, true) | (Line::Joined, false) => &[],
            (Line::Ended | Line::Shallower, false) => &[Line::Shallower, Line::Over],
            (_, false) => &[Line::Over],
        }
    }
}

impl Core {
    /// Whether a terminal is told by columns.
    fn is_level(&self, terminal: u32) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.is_level(terminal))
    }

    /// Whether a lexeme may be ignored, and whether the stacks may shift it.
    fn is_read(&self, terminal: u32, line: Line) -> (bool, bool) {
        if let Some(layout) = self.layout.as_ref().filter(|layout| layout.newline == terminal) {
            // Python ends a line once, and in brackets no line ends.
            let closed = layout.is_python() && line != Line::Open;
            return (closed || layout.has_brackets(), !closed);
        }
        let ignored = terminal < self.terminals && self.is_ignored(terminal);
        (ignored, !ignored || self.lexing == Lexing::Any)
    }

    /// Where a text is in its lines behind a lexeme that the stacks shift.
    pub(super) fn line_behind(&self, terminal: u32) -> Line {
        if self.ends_line(terminal) { Line::Ended } else { Line::Open }
    }

    /// The same of a place between lexemes.
    pub(super) fn line_of(&self, place: u32) -> Line {
        match &self.layout {
            Some(layout) if is_joined(layout.parts(place).depth) => Line::Joined,
            Some(layout) if is_closed(layout.parts(place).depth) => Line::Begun,
            _ => Line::Open,
        }
    }
}
