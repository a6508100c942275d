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

use crate::completion::stack_shortest_path::{NEVER, shortest_path};
use crate::grammar::Lexing;
use crate::interner::NOTHING;
use crate::state::{Configuration, GrammarState};
use cfl_reachability::{CflReachability, ControlState};
use competing_stacks::CompetingStacks;
use lexeme_exits::{BetweenLexemes, LexemeExit, LinePosition};
use lr1_items::{Lr1States, end_of_input_set};
use stack_suffix::{StackSuffixGraph, SuffixNode};
use terminal_reachability::{SpellableTerminals, SpellingStart, TerminalReachability};

/// What is known of completions beside a regular language, or alone.
#[derive(Debug)]
pub(crate) struct CompletionBounds {
    terminal_reachability: TerminalReachability,
    precision: Look,
    /// Nothing is left out of account, whatever the stacks are.
    is_always_exact: bool,
    lr1_states: Lr1States,
    competing: CompetingStacks,
    reachability: CflReachability,
    /// Contexts of terminals, where they do not compete, and of none.
    single_contexts: FxHashMap<Option<u32>, u32>,
    /// Kernels of edges.
    top_states: FxHashMap<u32, u32>,
    suffix_bounds: FxHashMap<SuffixNode, u32>,
    /// Of the stacks' edges: these are dropped with those.
    epoch: u64,
    /// The stacks asked about are more than one.
    branched: bool,
    /// It would take too much work: nothing is known.
    given_up: bool,
}

impl CompletionBounds {
    /// Nothing known yet; `None` if there is nothing to be known by such a look: something else goes
    /// on beside the stacks.
    pub(crate) fn new(
        regular: Option<Arc<Automaton>>,
        precision: Look,
        core: &GrammarState,
    ) -> Option<CompletionBounds> {
        let plain = core.sublanguages.is_empty() && core.indentation.is_none();
        let is_there = match precision {
            Look::Loose => true,
            Look::Close => plain,
            Look::Closest => plain && core.lexing != Lexing::Any && core.checked,
        };
        is_there.then(|| CompletionBounds {
            terminal_reachability: TerminalReachability::new(regular, core),
            precision,
            is_always_exact: plain
                && (!core.checked || (core.lexing == Lexing::Any && precision != Look::Loose)),
            lr1_states: Lr1States::default(),
            competing: CompetingStacks::default(),
            reachability: CflReachability::default(),
            single_contexts: FxHashMap::default(),
            top_states: FxHashMap::default(),
            suffix_bounds: FxHashMap::default(),
            epoch: core.gss.epoch(),
            branched: false,
            given_up: false,
        })
    }

    /// What completes a state, with the regular language at a state of it.
    pub(crate) fn bound_of_state(
        &mut self,
        state: u32,
        at: StateId,
        core: &mut GrammarState,
    ) -> Result<Completion, Error> {
        let (mut exactly, mut at_least) = (usize::MAX, usize::MAX);
        for configuration in core.configurations(state) {
            match self.completion(configuration, Some(at), core)? {
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
        configuration: Configuration,
        at: Option<StateId>,
        core: &mut GrammarState,
    ) -> Result<Completion, Error> {
        if self.given_up {
            return Ok(Completion::Unknown);
        }
        if self.epoch != core.gss.epoch() {
            self.top_states.clear();
            self.suffix_bounds.clear();
            self.epoch = core.gss.epoch();
        }
        self.branched = core.gss.is_branched(core.stacks_of(configuration.parser_state));
        let allowed = match self.terminal_reachability.lexeme_exits.regular {
            Some(_) => core.limits.completions,
            None => core.limits.steps,
        };
        let call = core.gss.meter.begin_separate(allowed);
        let at = at.unwrap_or(self.terminal_reachability.start());
        let bytes = self.configuration_bytes(configuration, at, core);
        core.gss.meter.end_separate(call);
        match bytes {
            Ok(NEVER) if self.never_is_certain(core) => Ok(Completion::Never),
            Ok(NEVER) => Ok(Completion::Unknown),
            Ok(bytes) if bytes < NEVER - 1 && self.is_exact() => {
                Ok(Completion::Exactly(bytes as usize))
            }
            Ok(bytes) => Ok(Completion::AtLeast(bytes as usize)),
            Err(error) => {
                // What was being found out is incomplete, and less would look like nothing.
                (self.lr1_states, self.reachability) =
                    (Lr1States::default(), CflReachability::default());
                self.competing = CompetingStacks::default();
                (self.top_states, self.suffix_bounds) =
                    (FxHashMap::default(), FxHashMap::default());
                if !matches!(error, Error::Limit { resource: Resource::Steps, .. }) {
                    return Err(error);
                }
                self.given_up = true;
                self.terminal_reachability = TerminalReachability::new(None, core);
                Ok(Completion::Unknown)
            }
        }
    }

    /// Whether all ways to read on were looked at one by one, as they are.
    fn is_exact(&self) -> bool {
        let single_contexts = !self.lr1_states.has_conflicts && !self.branched;
        self.is_always_exact || (self.precision != Look::Loose && single_contexts)
    }

    /// Whether it matters what else may stand at a place.
    fn lexemes_compete(&self, core: &GrammarState) -> bool {
        self.precision != Look::Loose && core.lexing != Lexing::Any && core.checked
    }

    /// Whether more that competes never makes more lexemes. It may where a lexeme becomes another
    /// terminal: the one that it was read as comes before others.
    fn never_is_certain(&self, core: &GrammarState) -> bool {
        self.precision == Look::Loose || core.replaced.is_empty() || self.is_exact()
    }

    fn configuration_bytes(
        &mut self,
        configuration: Configuration,
        at: StateId,
        core: &mut GrammarState,
    ) -> Result<u32, Error> {
        let Configuration { parser_state, negative_threads, .. } = configuration;
        if configuration.is_between() {
            let between = BetweenLexemes { negative_threads, at, line: core.line_of(parser_state) };
            return self.stacks_min_bytes(core.stacks_of(parser_state), between, core);
        }
        let mut bytes = NEVER;
        for exit in &*self.exits(configuration, at, core)? {
            let after = core.stacks_after_terminal(parser_state, exit.terminal)?;
            if after != NOTHING {
                let rest = self.stacks_min_bytes(after, exit.after, core)?;
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
        configuration: Configuration,
        at: StateId,
        core: &mut GrammarState,
    ) -> Result<Arc<[LexemeExit]>, Error> {
        let Configuration { lexeme, parser_state, negative_threads } = configuration;
        if configuration.is_in_sublanguage() {
            let (terminal, _) = core.sublanguages.at(lexeme);
            return Ok(self.terminal_reachability.any_string_exits(terminal, at)?.into());
        }
        let Some(newline) = core.indentation.as_ref().map(|indentation| indentation.newline) else {
            let lexer_state = core.lexer_states.intern(lexeme, negative_threads);
            return self.terminal_reachability.lexeme_exits.exits((lexer_state, at), core);
        };
        // Columns do not matter here, and the end of the text may end a line.
        let (lexeme, negative_threads) =
            (core.lexer.without_columns(lexeme), core.lexer.without_columns(negative_threads));
        let lexer_state = core.lexer_states.intern(lexeme, negative_threads);
        let exits = self.terminal_reachability.lexeme_exits.exits((lexer_state, at), core)?;
        let (line, lines) = (core.line_of(parser_state), core.has_lines(parser_state));
        let placed = |one: &LexemeExit| {
            let line = match one.terminal == newline {
                true if lines => LinePosition::LineEnded,
                false if !core.is_ignored(core.shifted_terminal(one.terminal)) => {
                    LinePosition::InsideLine
                }
                _ => line,
            };
            LexemeExit { after: BetweenLexemes { line, ..one.after }, ..*one }
        };
        let mut exits: Vec<LexemeExit> = exits.iter().map(placed).collect();
        let ends = |one: &u32| core.lexer.terminal(*one) == newline;
        if core.lexer.lists.get(lexeme).iter().any(ends) {
            let after = BetweenLexemes {
                line: LinePosition::AfterInput,
                ..BetweenLexemes::new(NOTHING, at)
            };
            exits.push(LexemeExit { terminal: newline, after, bytes: 0 });
        }
        Ok(exits.into())
    }

    fn stacks_min_bytes(
        &mut self,
        stacks: u32,
        mut between: BetweenLexemes,
        core: &mut GrammarState,
    ) -> Result<u32, Error> {
        self.branched |= core.gss.is_branched(stacks);
        let mut context = NOTHING;
        if self.lexemes_compete(core) {
            context = core.context_on(stacks, false)?;
        }
        if self.precision == Look::Loose && between.line != LinePosition::LineEnded {
            between.negative_threads = NOTHING;
        }
        let edges = core.gss.tops(stacks);
        let competing = self.competing_stacks_on(&edges, core)?;
        let control = ControlState { context, competing, between };
        let mut bytes = NEVER;
        for edge in edges {
            let rest =
                shortest_path(&mut StackSuffixGraph { bounds: self, core }, (edge, control))?;
            bytes = bytes.min(rest);
        }
        Ok(bytes)
    }

    /// The kernel of an edge.
    fn top_state(&mut self, edge: u32, core: &mut GrammarState) -> Result<u32, Error> {
        if !self.lexemes_compete(core) {
            return Ok(NOTHING);
        }
        if let Some(&known) = self.top_states.get(&edge) {
            return Ok(known);
        }
        let mut items = Vec::new();
        for (position, pushed, becomes) in core.gss.items(edge)? {
            let mut follow = match core.gss.lr0.is_goal_at(position) {
                true => end_of_input_set(&mut core.gss.lr0),
                false => NOTHING,
            };
            for edge in becomes {
                let allowed = core.gss.allowed_of_edge(edge)?;
                follow = core.gss.lr0.joined(follow, allowed);
            }
            items.push([position as u32, pushed, follow]);
        }
        let lr1_state = self.lr1_states.number(items);
        self.allowed(lr1_state, core)?;
        self.top_states.insert(edge, lr1_state);
        Ok(lr1_state)
    }

    /// Terminals that may stand at a kernel; looking at it shows whether it has conflicts.
    fn allowed(&mut self, lr1_state: u32, core: &mut GrammarState) -> Result<u32, Error> {
        if !self.lexemes_compete(core) {
            return Ok(NOTHING);
        }
        let stacks = &mut core.gss;
        self.lr1_states.allowed(lr1_state, &mut stacks.lr0, &mut stacks.meter)
    }

    fn goto(&mut self, lr1_state: u32, symbol: u32, core: &mut GrammarState) -> Result<u32, Error> {
        if !self.lexemes_compete(core) {
            return Ok(NOTHING);
        }
        let stacks = &mut core.gss;
        self.lr1_states.goto(lr1_state, symbol, (&mut stacks.lr0, &mut stacks.meter))
    }

    /// The lexer state in front of what may stand at a kernel, or at rivals too, where it matters.
    fn context(
        &mut self,
        lr1_state: u32,
        competing: u32,
        core: &mut GrammarState,
    ) -> Result<u32, Error> {
        if !self.lexemes_compete(core) {
            return Ok(NOTHING);
        }
        // Of many rivals some are left out, maybe the one that has this kernel.
        let allowed = self.allowed(lr1_state, core)?;
        let lr1 = (&mut self.lr1_states, &mut core.gss.lr0, &mut core.gss.meter);
        let competing_allowed = self.competing.allowed(competing, lr1)?;
        let allowed = core.gss.lr0.joined(allowed, competing_allowed);
        Ok(core.context_of(allowed, false))
    }

    /// What can be spelled from a control: a terminal, if lexemes do not compete.
    fn spellable_terminals(
        &mut self,
        terminal: Option<u32>,
        ControlState { mut context, between, .. }: ControlState,
        core: &mut GrammarState,
    ) -> Result<Arc<SpellableTerminals>, Error> {
        if !self.lexemes_compete(core) {
            context = *self.single_contexts.entry(terminal).or_insert_with(|| {
                let terminals: Vec<u32> = terminal.into_iter().collect();
                core.start_of_terminal(&terminals)
            });
        }
        self.terminal_reachability.spellable_terminals(
            SpellingStart { context, between, terminal, precision: self.precision },
            core,
        )
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.terminal_reachability.memory_bytes()
            + self.lr1_states.memory_bytes()
            + self.competing.memory_bytes()
            + self.reachability.memory_bytes()
            + self.top_states.len() * 12
            + self.suffix_bounds.len() * 20
    }
}
