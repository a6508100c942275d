//! How many bytes complete a reading at least, beside a regular language or alone.
//!
//! What the stacks allow need not be there: another lexeme may always be longer, what must not match
//! may have to, and a regular language beside the grammar may have no text in common with any of
//! it. All of this is finite and goes on beside the stacks: the terminals that compete, threads that
//! must not match, and a state of the regular language, are a *control*. What symbols come to from a control is context-free
//! reachability ([`cfl_reachability`]), over what lexemes come to ([`lexeme_exits`], [`terminal_reachability`]); what is on a stack is
//! completed by the rests of its items, one after the other.
//!
//! Which lexemes compete is known of one stack only ([`lr1_items`]). A text that is read in several
//! ways at once may stand before more terminals than each of the ways shows, and with more of them
//! more competes. So in general this says how many bytes it takes *at least*, and `NEVER` is certain.
//! It is exact where lexemes do not compete, and where the stack is one and its kernels have no
//! conflicts.
//!
//! A *loose* look at the same lets nothing compete and forgets what must not match, but behind the end
//! of a line, columns of lines and what embedded languages are. It is quick, and often enough where a regular language
//! stands beside the grammar. The *closest* one follows the other ways to read a text too
//! ([`competing_stacks`]), for readings that nothing else decides.

mod cfl_reachability;
mod competing_stacks;
pub(crate) mod greedy_completion;
mod lexeme_exits;
mod lr1_items;
pub(crate) mod min_bytes;
pub(crate) mod search;
pub(crate) mod stack_shortest_path;
mod stack_suffix;
mod terminal_reachability;

use std::sync::Arc;

use formalm_automata::{Automaton, Completion, Error, Look, Resource, StateId};
use rustc_hash::FxHashMap;

use crate::completion::stack_shortest_path::{NEVER, least};
use crate::grammar::Lexing;
use crate::interner::NOTHING;
use crate::state::{Core, Reading};
use cfl_reachability::{Control, Derivations};
use competing_stacks::Rivals;
use lexeme_exits::{Between, Exit, Line};
use lr1_items::{Kernels, stop};
use stack_suffix::{Left, Stacked};
use terminal_reachability::{From, Spelled, Spelling};

/// What is known of completions beside a regular language, or alone.
#[derive(Debug)]
pub(crate) struct Completions {
    spelling: Spelling,
    look: Look,
    /// Nothing is left out of account, whatever the stacks are.
    exact: bool,
    kernels: Kernels,
    rivals: Rivals,
    derivations: Derivations,
    /// Contexts of terminals, where they do not compete, and of none.
    alone: FxHashMap<Option<u32>, u32>,
    /// Kernels of edges.
    tops: FxHashMap<u32, u32>,
    rests: FxHashMap<Left, u32>,
    /// Of the stacks' edges: these are dropped with those.
    epoch: u64,
    /// The stacks asked about are more than one.
    branched: bool,
    /// It would take too much work: nothing is known.
    given_up: bool,
}

impl Completions {
    /// Nothing known yet; `None` if there is nothing to be known by such a look: something else goes
    /// on beside the stacks.
    pub(crate) fn new(
        regular: Option<Arc<Automaton>>,
        look: Look,
        core: &Core,
    ) -> Option<Completions> {
        let plain = core.embedded.is_empty() && core.layout.is_none();
        let is_there = match look {
            Look::Loose => true,
            Look::Close => plain,
            Look::Closest => plain && core.lexing != Lexing::Any && core.checked,
        };
        is_there.then(|| Completions {
            spelling: Spelling::new(regular, core),
            look,
            exact: plain && (!core.checked || (core.lexing == Lexing::Any && look != Look::Loose)),
            kernels: Kernels::default(),
            rivals: Rivals::default(),
            derivations: Derivations::default(),
            alone: FxHashMap::default(),
            tops: FxHashMap::default(),
            rests: FxHashMap::default(),
            epoch: core.stacks.epoch(),
            branched: false,
            given_up: false,
        })
    }

    /// What completes a state, with the regular language at a state of it.
    pub(crate) fn of_state(
        &mut self,
        state: u32,
        at: StateId,
        core: &mut Core,
    ) -> Result<Completion, Error> {
        let (mut exactly, mut at_least) = (usize::MAX, usize::MAX);
        for reading in core.readings(state) {
            match self.completion(reading, Some(at), core)? {
                Completion::Unknown => return Ok(Completion::Unknown),
                Completion::Never => {}
                Completion::Exactly(bytes) => exactly = exactly.min(bytes),
                Completion::AtLeast(bytes) => at_least = at_least.min(bytes),
            }
        }
        Ok(match (exactly, at_least) {
            (usize::MAX, usize::MAX) => Completion::Never,
            _ if exactly <= at_least => Completion::Exactly(exactly),
            _ => Completion::AtLeast(at_least),
        })
    }

    /// What completes a reading, with the regular language at a state of it.
    pub(crate) fn completion(
        &mut self,
        reading: Reading,
        at: Option<StateId>,
        core: &mut Core,
    ) -> Result<Completion, Error> {
        if self.given_up {
            return Ok(Completion::Unknown);
        }
        if self.epoch != core.stacks.epoch() {
            self.tops.clear();
            self.rests.clear();
            self.epoch = core.stacks.epoch();
        }
        self.branched = core.stacks.is_branched(core.stacks_of(reading.place));
        let allowed = match self.spelling.lexemes.regular {
            Some(_) => core.limits.completions,
            None => core.limits.steps,
        };
        let call = core.stacks.meter.apart(allowed);
        let at = at.unwrap_or(self.spelling.start());
        let bytes = self.reading_bytes(reading, at, core);
        core.stacks.meter.go_on(call);
        match bytes {
            Ok(NEVER) if self.is_sound(core) => Ok(Completion::Never),
            Ok(NEVER) => Ok(Completion::Unknown),
            Ok(bytes) if bytes < NEVER - 1 && self.is_exact() => {
                Ok(Completion::Exactly(bytes as usize))
            }
            Ok(bytes) => Ok(Completion::AtLeast(bytes as usize)),
            Err(error) => {
                // What was being found out is incomplete, and less would look like nothing.
                (self.kernels, self.derivations) = (Kernels::default(), Derivations::default());
                self.rivals = Rivals::default();
                (self.tops, self.rests) = (FxHashMap::default(), FxHashMap::default());
                if !matches!(error, Error::Limit { resource: Resource::Steps, .. }) {
                    return Err(error);
                }
                self.given_up = true;
                self.spelling = Spelling::new(None, core);
                Ok(Completion::Unknown)
            }
        }
    }

    /// Whether all ways to read on were looked at one by one, as they are.
    fn is_exact(&self) -> bool {
        let alone = !self.kernels.conflicts && !self.branched;
        self.exact || (self.look != Look::Loose && alone)
    }

    /// Whether it matters what else may stand at a place.
    fn competes(&self, core: &Core) -> bool {
        self.look != Look::Loose && core.lexing != Lexing::Any && core.checked
    }

    /// Whether more that competes never makes more lexemes. It may where a lexeme becomes another
    /// terminal: the one that it was read as comes before others.
    fn is_sound(&self, core: &Core) -> bool {
        self.look == Look::Loose || core.replaced.is_empty() || self.is_exact()
    }

    fn reading_bytes(
        &mut self,
        reading: Reading,
        at: StateId,
        core: &mut Core,
    ) -> Result<u32, Error> {
        let Reading { place, forbidden, .. } = reading;
        if reading.is_between() {
            let between = Between { forbidden, at, line: core.line_of(place) };
            return self.stacks_bytes(core.stacks_of(place), between, core);
        }
        let mut bytes = NEVER;
        for exit in &*self.exits(reading, at, core)? {
            let behind = core.stacks_after(place, exit.terminal)?;
            if behind != NOTHING {
                let rest = self.stacks_bytes(behind, exit.behind, core)?;
                if rest != NEVER {
                    // More than 32 bits hold is far, and not nothing.
                    bytes = bytes.min(rest.saturating_add(exit.bytes).min(NEVER - 1));
                }
            }
        }
        Ok(bytes)
    }

    /// How what a reading is in may end.
    fn exits(
        &mut self,
        reading: Reading,
        at: StateId,
        core: &mut Core,
    ) -> Result<Arc<[Exit]>, Error> {
        let Reading { lexeme, place, forbidden } = reading;
        if reading.is_embedded() {
            let (terminal, _) = core.embedded.at(lexeme);
            return Ok(self.spelling.any_text(terminal, at)?.into());
        }
        let Some(newline) = core.layout.as_ref().map(|layout| layout.newline) else {
            let scan = core.scans.number(lexeme, forbidden);
            return self.spelling.lexemes.exits((scan, at), core);
        };
        // Columns do not matter here, and the end of the text may end a line.
        let (lexeme, forbidden) = (core.lexer.plain(lexeme), core.lexer.plain(forbidden));
        let scan = core.scans.number(lexeme, forbidden);
        let exits = self.spelling.lexemes.exits((scan, at), core)?;
        let (line, lines) = (core.line_of(place), core.has_lines(place));
        let placed = |one: &Exit| {
            let line = match one.terminal == newline {
                true if lines => Line::Ended,
                false if !core.is_ignored(core.shifted(one.terminal)) => Line::Open,
                _ => line,
            };
            Exit { behind: Between { line, ..one.behind }, ..*one }
        };
        let mut exits: Vec<Exit> = exits.iter().map(placed).collect();
        let ends = |one: &u32| core.lexer.terminal(*one) == newline;
        if core.lexer.lists.get(lexeme).iter().any(ends) {
            let behind = Between { line: Line::Over, ..Between::new(NOTHING, at) };
            exits.push(Exit { terminal: newline, behind, bytes: 0 });
        }
        Ok(exits.into())
    }

    fn stacks_bytes(
        &mut self,
        stacks: u32,
        mut between: Between,
        core: &mut Core,
    ) -> Result<u32, Error> {
        self.branched |= core.stacks.is_branched(stacks);
        let mut context = NOTHING;
        if self.competes(core) {
            context = core.context_on(stacks, false)?;
        }
        if self.look == Look::Loose && between.line != Line::Ended {
            between.forbidden = NOTHING;
        }
        let edges = core.stacks.tops(stacks);
        let rivals = self.rivals_on(&edges, core)?;
        let control = Control { context, rivals, between };
        let mut bytes = NEVER;
        for edge in edges {
            let rest = least(&mut Stacked { beside: self, core }, (edge, control))?;
            bytes = bytes.min(rest);
        }
        Ok(bytes)
    }

    /// The kernel of an edge.
    fn top(&mut self, edge: u32, core: &mut Core) -> Result<u32, Error> {
        if !self.competes(core) {
            return Ok(NOTHING);
        }
        if let Some(&known) = self.tops.get(&edge) {
            return Ok(known);
        }
        let mut items = Vec::new();
        for (place, pushed, becomes) in core.stacks.items(edge)? {
            let mut follow = match core.stacks.tables.is_goal_at(place) {
                true => stop(&mut core.stacks.tables),
                false => NOTHING,
            };
            for edge in becomes {
                let allowed = core.stacks.allowed_of_edge(edge)?;
                follow = core.stacks.tables.joined(follow, allowed);
            }
            items.push([place as u32, pushed, follow]);
        }
        let kernel = self.kernels.number(items);
        self.allowed(kernel, core)?;
        self.tops.insert(edge, kernel);
        Ok(kernel)
    }

    /// Terminals that may stand at a kernel; looking at it shows whether it has conflicts.
    fn allowed(&mut self, kernel: u32, core: &mut Core) -> Result<u32, Error> {
        if !self.competes(core) {
            return Ok(NOTHING);
        }
        let stacks = &mut core.stacks;
        self.kernels.allowed(kernel, &mut stacks.tables, &mut stacks.meter)
    }

    fn goto(&mut self, kernel: u32, symbol: u32, core: &mut Core) -> Result<u32, Error> {
        if !self.competes(core) {
            return Ok(NOTHING);
        }
        let stacks = &mut core.stacks;
        self.kernels.goto(kernel, symbol, (&mut stacks.tables, &mut stacks.meter))
    }

    /// The lexer state in front of what may stand at a kernel, or at rivals too, where it matters.
    fn context(&mut self, kernel: u32, rivals: u32, core: &mut Core) -> Result<u32, Error> {
        if !self.competes(core) {
            return Ok(NOTHING);
        }
        // Of many rivals some are left out, maybe the one that has this kernel.
        let allowed = self.allowed(kernel, core)?;
        let made = (&mut self.kernels, &mut core.stacks.tables, &mut core.stacks.meter);
        let theirs = self.rivals.allowed(rivals, made)?;
        let allowed = core.stacks.tables.joined(allowed, theirs);
        Ok(core.context_of(allowed, false))
    }

    /// What can be spelled from a control: a terminal, if lexemes do not compete.
    fn spelled(
        &mut self,
        terminal: Option<u32>,
        Control { mut context, between, .. }: Control,
        core: &mut Core,
    ) -> Result<Arc<Spelled>, Error> {
        if !self.competes(core) {
            context = *self.alone.entry(terminal).or_insert_with(|| {
                let terminals: Vec<u32> = terminal.into_iter().collect();
                core.start_alone(&terminals)
            });
        }
        self.spelling.spelled(From { context, between, terminal, look: self.look }, core)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.spelling.memory_bytes()
            + self.kernels.memory_bytes()
            + self.rivals.memory_bytes()
            + self.derivations.memory_bytes()
            + self.tops.len() * 12
            + self.rests.len() * 20
    }
}
