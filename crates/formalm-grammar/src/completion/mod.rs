//! Lower bounds on completions, by context-free reachability; and, in submodules, the searches they
//! guide.
//!
//! ```text
//!  control (negative threads, lexer context, regular state)
//!         │ lexeme_exits            how a lexeme may end
//!         ▼
//!  terminal_reachability            which terminals can be spelled from a control
//!         ▼
//!  cfl_reachability                 which controls a symbol leads to
//!         ▼
//!  stack_suffix ─► CompletionBounds ─► search ─► shortest_completion
//! ```
//!
//! A terminal that the parser allows may still be unspellable: a longer lexeme can always win, a
//! negative lookahead can be unavoidable, or the intersected regular language can exclude every
//! spelling. All of these conditions are finite. Together they form a *control*: the competing
//! terminals, the negative threads and a state of the regular language. [`cfl_reachability`]
//! computes which controls each symbol leads to, from the lexeme ends found by [`lexeme_exits`] and
//! [`terminal_spelling_costs`]. A stack is completed by the rests of its items, one after the other.
//!
//! **Exactness.** Which lexemes compete is known for a single stack only ([`lr1_items`]). An input
//! with several parses may allow more terminals than any one of its stacks shows, and more
//! terminals mean more competition. In general the result is therefore a lower bound, while "never"
//! is certain. The bound is exact if lexemes do not compete, or if there is one stack whose LR(1)
//! states have no conflicts.
//!
//! **Precision.** A *loose* bound lets nothing compete. It ignores negative threads (except after a
//! line end), columns, and the contents of sublanguages. It is fast, and often enough for an
//! intersection with a regular language. The *closest* bound also follows the other stacks
//! ([`competing_stacks`]), for configurations that nothing else decides.

mod cfl_reachability;
mod competing_stacks;
pub(crate) mod greedy_completion;
mod lexeme_exits;
mod lr1_items;
pub(crate) mod search;
pub(crate) mod shortest_completion;
mod stack_suffix;
mod terminal_spelling_costs;

use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{Error, MemoryBytes, Resource, StateId};
use formalm_machines::{CompletionLength, Precision};
use lr1_items::{Lr1States, end_of_input_set};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::Configuration;
use crate::grammar::Lexing;
use crate::gss::stack_shortest_path::{NEVER, shortest_path};
use crate::limits::GrammarLimits;
use cfl_reachability::{CflReachability, ControlState};
use competing_stacks::CompetingStacks;
use lexeme_exits::{BetweenLexemes, LexemeExit, LinePosition};
use stack_suffix::{StackSuffixGraph, SuffixNode};
use terminal_spelling_costs::{SpellableTerminals, SpellingStart, TerminalReachability};

/// Completion bounds of a grammar, alone or intersected with a regular language.
#[derive(Debug)]
pub(crate) struct CompletionBounds {
    terminal_reachability: TerminalReachability,
    precision: Precision,
    /// `true` if the bounds are exact whatever the stacks are.
    is_always_exact: bool,
    lr1_states: Lr1States,
    competing: CompetingStacks,
    reachability: CflReachability,
    /// Lexer contexts of single terminals and of none, for lexemes that do not compete.
    single_contexts: FxHashMap<Option<u32>, u32>,
    /// Maximum number of steps per query.
    allowed_steps: u64,
    /// LR(1) states of GSS edges.
    top_states: FxHashMap<u32, u32>,
    suffix_bounds: FxHashMap<SuffixNode, u32>,
    /// Rollback epoch of the GSS edges: cached edges are dropped when it changes.
    epoch: u64,
    /// `true` if the current query concerns more than one stack.
    branched: bool,
    /// `true` once a query exceeded its limit: every later answer is unknown.
    given_up: bool,
}

impl CompletionBounds {
    /// Returns empty bounds. Returns `None` if this precision adds nothing for the grammar, e.g.
    /// because of sublanguages or indentation.
    pub(crate) fn new(
        regular: Option<Arc<Automaton>>,
        precision: Precision,
        limits: &GrammarLimits,
        reader: &ConfigurationReader,
    ) -> Option<CompletionBounds> {
        let plain = reader.sublanguages.is_empty() && reader.parser.indentation.is_none();
        let is_there = match precision {
            Precision::Coarse => true,
            Precision::Fine => plain,
            Precision::Finest => {
                plain
                    && reader.lexer.rules.lexing != Lexing::Any
                    && reader.lexer.needs_viability_checks
            }
        };
        let allowed_steps = if regular.is_some() { limits.completions } else { limits.steps };
        is_there.then(|| CompletionBounds {
            allowed_steps,
            terminal_reachability: TerminalReachability::new(regular, reader),
            precision,
            is_always_exact: plain
                && (!reader.lexer.needs_viability_checks
                    || (reader.lexer.rules.lexing == Lexing::Any
                        && precision != Precision::Coarse)),
            lr1_states: Lr1States::default(),
            competing: CompetingStacks::default(),
            reachability: CflReachability::default(),
            single_contexts: FxHashMap::default(),
            top_states: FxHashMap::default(),
            suffix_bounds: FxHashMap::default(),
            epoch: reader.parser.gss.epoch(),
            branched: false,
            given_up: false,
        })
    }

    /// Returns the completion bound of several configurations, with the regular language in state `at`.
    pub(crate) fn bound_of_any(
        &mut self,
        configurations: &[Configuration],
        at: StateId,
        reader: &mut ConfigurationReader,
    ) -> Result<CompletionLength, Error> {
        let (mut exactly, mut at_least) = (usize::MAX, usize::MAX);
        for &configuration in configurations {
            match self.completion(configuration, Some(at), reader)? {
                CompletionLength::Unknown => return Ok(CompletionLength::Unknown),
                CompletionLength::Never => {}
                CompletionLength::Exactly(bytes) => exactly = exactly.min(bytes),
                CompletionLength::AtLeast(bytes) => at_least = at_least.min(bytes),
            }
        }
        Ok(match (exactly, at_least) {
            (usize::MAX, usize::MAX) => CompletionLength::Never,
            _ if exactly <= at_least => CompletionLength::Exactly(exactly),
            _ => CompletionLength::AtLeast(at_least),
        })
    }

    /// Returns the completion bound of a configuration, with the regular language in state `at`.
    pub(crate) fn completion(
        &mut self,
        configuration: Configuration,
        at: Option<StateId>,
        reader: &mut ConfigurationReader,
    ) -> Result<CompletionLength, Error> {
        if self.given_up {
            return Ok(CompletionLength::Unknown);
        }
        if self.epoch != reader.parser.gss.epoch() {
            self.top_states.clear();
            self.suffix_bounds.clear();
            self.epoch = reader.parser.gss.epoch();
        }
        self.branched = reader
            .parser
            .gss
            .graph
            .is_branched(reader.parser.stacks_of(configuration.parser_state));
        let call = reader.meter().begin_separate(self.allowed_steps);
        let at = at.unwrap_or(self.terminal_reachability.start());
        let bytes = self.configuration_bytes(configuration, at, reader);
        reader.meter().end_separate(call);
        match bytes {
            Ok(NEVER) if self.never_is_certain(reader) => Ok(CompletionLength::Never),
            Ok(NEVER) => Ok(CompletionLength::Unknown),
            Ok(bytes) if bytes < NEVER - 1 && self.is_exact() => {
                Ok(CompletionLength::Exactly(bytes as usize))
            }
            Ok(bytes) => Ok(CompletionLength::AtLeast(bytes as usize)),
            Err(error) => {
                // The interrupted computation is incomplete, and its partial results would look
                // like "never".
                (self.lr1_states, self.reachability) =
                    (Lr1States::default(), CflReachability::default());
                self.competing = CompetingStacks::default();
                (self.top_states, self.suffix_bounds) =
                    (FxHashMap::default(), FxHashMap::default());
                if !matches!(error, Error::Limit { resource: Resource::Steps, .. }) {
                    return Err(error);
                }
                self.given_up = true;
                self.terminal_reachability = TerminalReachability::new(None, reader);
                Ok(CompletionLength::Unknown)
            }
        }
    }

    /// Returns `true` if all continuations were examined one by one.
    fn is_exact(&self) -> bool {
        let single_contexts = !self.lr1_states.has_conflicts && !self.branched;
        self.is_always_exact || (self.precision != Precision::Coarse && single_contexts)
    }

    /// Returns `true` if the other terminals allowed at a position matter.
    fn lexemes_compete(&self, reader: &ConfigurationReader) -> bool {
        self.precision != Precision::Coarse
            && reader.lexer.rules.lexing != Lexing::Any
            && reader.lexer.needs_viability_checks
    }

    /// Returns `true` if more competition can only remove lexemes, so that "never" is certain. This
    /// fails where a lexeme becomes another terminal, because the terminal it was read as precedes
    /// others.
    fn never_is_certain(&self, reader: &ConfigurationReader) -> bool {
        self.precision == Precision::Coarse
            || reader.lexer.rules.replaced.is_empty()
            || self.is_exact()
    }

    fn configuration_bytes(
        &mut self,
        configuration: Configuration,
        at: StateId,
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        let Configuration { parser_state, negative_threads, .. } = configuration;
        if configuration.is_between() {
            let between =
                BetweenLexemes { negative_threads, at, line: reader.parser.line_of(parser_state) };
            return self.stacks_min_bytes(reader.parser.stacks_of(parser_state), between, reader);
        }
        let mut bytes = NEVER;
        for exit in &*self.exits(configuration, at, reader)? {
            let after = reader.parser.stacks_after_terminal(parser_state, exit.terminal)?;
            if after != NOTHING {
                let rest = self.stacks_min_bytes(after, exit.after, reader)?;
                if rest != NEVER {
                    // Lengths beyond 32 bits saturate below [`NEVER`].
                    bytes = bytes.min(rest.saturating_add(exit.bytes).min(NEVER - 1));
                }
            }
        }
        Ok(bytes)
    }

    /// Returns the possible ends of the lexeme or sublanguage that a configuration is in.
    fn exits(
        &mut self,
        configuration: Configuration,
        at: StateId,
        reader: &mut ConfigurationReader,
    ) -> Result<Arc<[LexemeExit]>, Error> {
        let Configuration { lexeme, parser_state, negative_threads } = configuration;
        if configuration.is_in_sublanguage() {
            let (terminal, _) = reader.sublanguages.at(lexeme);
            return Ok(self.terminal_reachability.any_string_exits(terminal, at)?.into());
        }
        let Some(newline) = reader.lexer.rules.lines.as_ref().map(|lines| lines.newline) else {
            let lexer_state = reader.lexer.states.intern(lexeme, negative_threads);
            return self.terminal_reachability.lexeme_exits.exits((lexer_state, at), reader);
        };
        // Columns are ignored here, and the end of the input may end a line.
        let (lexeme, negative_threads) = (
            reader.lexer.threads.without_columns(lexeme),
            reader.lexer.threads.without_columns(negative_threads),
        );
        let lexer_state = reader.lexer.states.intern(lexeme, negative_threads);
        let exits = self.terminal_reachability.lexeme_exits.exits((lexer_state, at), reader)?;
        let (line, lines) =
            (reader.parser.line_of(parser_state), reader.parser.has_lines(parser_state));
        let with_line = |one: &LexemeExit| {
            let line = match one.terminal == newline {
                true if lines => LinePosition::LineEnded,
                false
                    if !reader
                        .lexer
                        .rules
                        .is_ignored(reader.lexer.rules.shifted_terminal(one.terminal)) =>
                {
                    LinePosition::InsideLine
                }
                _ => line,
            };
            LexemeExit { after: BetweenLexemes { line, ..one.after }, ..*one }
        };
        let mut exits: Vec<LexemeExit> = exits.iter().map(with_line).collect();
        let ends = |one: &u32| reader.lexer.threads.terminal(*one) == newline;
        if reader.lexer.threads.lists.get(lexeme).iter().any(ends) {
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
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        self.branched |= reader.parser.gss.graph.is_branched(stacks);
        let mut context = NOTHING;
        if self.lexemes_compete(reader) {
            context = reader.context_on(stacks, false)?;
        }
        if self.precision == Precision::Coarse && between.line != LinePosition::LineEnded {
            between.negative_threads = NOTHING;
        }
        let edges = reader.parser.gss.graph.tops(stacks);
        let competing = self.competing_stacks_on(&edges, reader)?;
        let control = ControlState { context, competing, between };
        let mut bytes = NEVER;
        for edge in edges {
            let rest =
                shortest_path(&mut StackSuffixGraph { bounds: self, reader }, (edge, control))?;
            bytes = bytes.min(rest);
        }
        Ok(bytes)
    }

    /// Returns the LR(1) state of a GSS edge.
    fn top_state(&mut self, edge: u32, reader: &mut ConfigurationReader) -> Result<u32, Error> {
        if !self.lexemes_compete(reader) {
            return Ok(NOTHING);
        }
        if let Some(&known) = self.top_states.get(&edge) {
            return Ok(known);
        }
        let mut items = Vec::new();
        for (position, pushed, becomes) in reader.parser.gss.items(edge)? {
            let mut follow = match reader.parser.gss.lr0.is_goal_at(position) {
                true => end_of_input_set(&mut reader.parser.gss.lr0),
                false => NOTHING,
            };
            for edge in becomes {
                let allowed = reader.parser.gss.allowed_of_edge(edge)?;
                follow = reader.parser.gss.lr0.joined(follow, allowed);
            }
            items.push([position as u32, pushed, follow]);
        }
        let lr1_state = self.lr1_states.number(items);
        self.allowed(lr1_state, reader)?;
        self.top_states.insert(edge, lr1_state);
        Ok(lr1_state)
    }

    /// Returns the terminals allowed in an LR(1) state. Computing them also detects conflicts.
    fn allowed(&mut self, lr1_state: u32, reader: &mut ConfigurationReader) -> Result<u32, Error> {
        if !self.lexemes_compete(reader) {
            return Ok(NOTHING);
        }
        let stacks = &mut reader.parser.gss;
        self.lr1_states.allowed(lr1_state, &mut stacks.lr0, &mut stacks.meter)
    }

    fn goto(
        &mut self,
        lr1_state: u32,
        symbol: u32,
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        if !self.lexemes_compete(reader) {
            return Ok(NOTHING);
        }
        let stacks = &mut reader.parser.gss;
        self.lr1_states.goto(lr1_state, symbol, (&mut stacks.lr0, &mut stacks.meter))
    }

    /// Returns the lexer context of an LR(1) state and its competing stacks; [`NOTHING`] if lexemes
    /// do not compete.
    fn context(
        &mut self,
        lr1_state: u32,
        competing: u32,
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        if !self.lexemes_compete(reader) {
            return Ok(NOTHING);
        }
        // If competing stacks were dropped, the one with this state may be missing.
        let allowed = self.allowed(lr1_state, reader)?;
        let lr1 = (&mut self.lr1_states, &mut reader.parser.gss.lr0, &mut reader.parser.gss.meter);
        let competing_allowed = self.competing.allowed(competing, lr1)?;
        let allowed = reader.parser.gss.lr0.joined(allowed, competing_allowed);
        Ok(reader.lexer.context_of(allowed, false, &reader.parser.gss.lr0.sets))
    }

    /// Returns the terminals that can be spelled from a control. If lexemes do not compete, only
    /// `terminal` is considered.
    fn spellable_terminals(
        &mut self,
        terminal: Option<u32>,
        ControlState { mut context, between, .. }: ControlState,
        reader: &mut ConfigurationReader,
    ) -> Result<Arc<SpellableTerminals>, Error> {
        if !self.lexemes_compete(reader) {
            context = *self.single_contexts.entry(terminal).or_insert_with(|| {
                let terminals: Vec<u32> = terminal.into_iter().collect();
                reader.lexer.rules.start_of_terminal(&terminals, &mut reader.lexer.threads)
            });
        }
        self.terminal_reachability.spellable_terminals(
            SpellingStart { context, between, terminal, precision: self.precision },
            reader,
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
