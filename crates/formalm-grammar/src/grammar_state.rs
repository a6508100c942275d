//! The shared state of a grammar automaton: lexer, graph-structured stack, interned automaton
//! states and caches.
//!
//! A state of the automaton is a list of [`Configuration`]s, one per way to split the input into
//! lexemes.

use std::collections::VecDeque;

use formalm_core::Error;
use formalm_machines::Precision;
use rustc_hash::FxHashMap;

use crate::completion::CompletionBounds;
use crate::completion::min_bytes::{SuffixBounds, line_ending_symbols};
use crate::completion::stack_shortest_path::NEVER;
use crate::dead_end_proof::spellable_terminals::DeadEndProof;
use crate::grammar::{Grammar, LexemeReplacement, Lexing};
use crate::gss::Gss;
use crate::indentation::parser_state::{IndentationState, columns};
use crate::lexer::Lexer;
use crate::lexer::lexer_state::LexerStates;
use crate::lexer::terminal_automata::{
    TerminalAutomata, build_terminal_automata, unproductive_terminals,
};
use crate::limits::{GrammarLimits, StepMeter};
use crate::list_interner::{ListInterner, NOTHING};
use crate::lr0::Lr0Automaton;
use crate::normal_form::NormalizedGrammar;
use crate::normal_form::lowering::LoweredRules;
use crate::sublanguages::{Sublanguages, shortest_nonempty_len};

/// One parse hypothesis: a way to split the input read so far into lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Configuration {
    /// Threads of the lexeme being read; [`NOTHING`] between lexemes.
    pub(crate) lexeme: u32,
    /// The parser state before that lexeme: a set of stacks, with the open indentation levels if
    /// indentation matters.
    pub(crate) parser_state: u32,
    /// Negative threads: they must not match, because a lexeme ended although they could have
    /// continued.
    pub(crate) negative_threads: u32,
}

impl Configuration {
    /// Returns the configuration at `parser_state` between lexemes.
    pub(crate) fn between(parser_state: u32, negative_threads: u32) -> Configuration {
        Configuration { lexeme: NOTHING, parser_state, negative_threads }
    }

    pub(crate) fn is_between(self) -> bool {
        self.lexeme == NOTHING
    }
}

/// Integers per configuration in the list of an automaton state.
const CONFIGURATION_LEN: usize = 3;

/// Useless rules and the reason for each.
pub(crate) type UselessRules = Vec<(usize, UselessReason)>;

/// The reason why a rule is useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UselessReason {
    /// The rule derives no string.
    Unproductive,
    /// No useful rule refers to it.
    Unreachable,
}

/// A grammar state, boxed because it is large, and the useless rules.
pub(crate) type BuiltState = (Box<GrammarState>, UselessRules);

/// All tables of a grammar automaton that grow while it reads input.
#[derive(Debug)]
pub(crate) struct GrammarState {
    pub(crate) gss: Gss,
    pub(crate) lexer: Lexer,
    pub(crate) lexer_states: LexerStates,
    pub(crate) sublanguages: Sublanguages,
    pub(crate) lexing: Lexing,
    /// `true` if a terminal that the stacks allow may be unspellable: lexemes are ordered by
    /// priority, or some terminal has lookahead.
    pub(crate) needs_viability_checks: bool,
    /// The indentation tables, for grammars in which indentation matters.
    pub(crate) indentation: Option<IndentationState>,
    pub(crate) limits: GrammarLimits,
    /// Minimum completion bytes of stack suffixes, for grammars with indentation.
    pub(crate) suffix_bounds: SuffixBounds,
    /// Interned prefixes of parser states, see [`GrammarState::prefix_of`].
    pub(crate) prefixes: ListInterner,
    /// Automaton states: lists of configurations, [`CONFIGURATION_LEN`] integers each.
    pub(crate) states: ListInterner,
    /// Terminals that may occur between any two lexemes, ascending.
    pub(crate) ignored: Vec<u32>,
    /// Terminals that no lexeme may end inside, ascending. They come last in the terminal order.
    pub(crate) uncuttable: Vec<u32>,
    /// Lexemes that become lexemes of another terminal; sorted.
    pub(crate) replaced: Vec<LexemeReplacement>,
    /// Number of terminals. Larger numbers denote lexemes that became a terminal, see
    /// [`GrammarState::replacement_terminal`].
    pub(crate) terminals: u32,
    /// Lexer start states by set of allowed terminals and by whether lines matter.
    pub(crate) contexts: FxHashMap<(u32, bool), u32>,
    pub(crate) dead_end_proof: DeadEndProof,
    /// Viability of configurations that a search has decided.
    pub(crate) viable: FxHashMap<Configuration, bool>,
    /// Completability of sets of stacks, as far as it was asked, see
    /// [`crate::dead_end_proof::completable_stacks`].
    pub(crate) completable: FxHashMap<u32, bool>,
    /// Completion bounds of configurations that no proof covers, one entry per precision; built on
    /// first use.
    pub(crate) completion_bounds: [Option<Box<CompletionBounds>>; 3],
    /// The precision of completion bounds; `None` if the dead-end proof decides most
    /// configurations.
    pub(crate) bound_precision: Option<Precision>,
    checkpoint: Option<StateCheckpoint>,
    /// Buffers reused between steps.
    pub(crate) spare_configurations: Vec<Configuration>,
    pub(crate) spare_next: Vec<Configuration>,
    flat_list: Vec<u32>,
    /// Bytes of stacks that only lookahead has visited.
    lookahead_bytes: usize,
}

/// Maximum bytes of stacks kept after lookahead has ended. Chosen, not measured.
const MAX_LOOKAHEAD_BYTES: usize = 1 << 20;

/// Table sizes at [`GrammarState::checkpoint`], and the cache entries added since.
#[derive(Debug, Default)]
struct StateCheckpoint {
    states: usize,
    parser_states: usize,
    bytes: usize,
    /// `true` if the checkpoint also started scratch machines of sublanguages.
    began_scratch: bool,
    recorded: Vec<Configuration>,
    completable: Vec<u32>,
}

impl GrammarState {
    /// Builds the state of a grammar and lists its useless rules. Returns `None` if the rules
    /// derive no string. Fails if a terminal cannot be compiled or a limit is exceeded.
    pub(crate) fn new(
        grammar: &Grammar,
        limits: GrammarLimits,
    ) -> Result<Option<BuiltState>, Error> {
        grammar.check()?;
        let mut meter = StepMeter::new(limits.steps.max(4 * limits.productions));
        let (automata, nullable) = build_terminal_automata(grammar)?;
        let ignored = ignored(grammar);
        let mut uncuttable: Vec<u32> = grammar.whole.iter().map(|&at| at as u32).collect();
        uncuttable.sort_unstable();
        let mut replaced = grammar.replacements.clone();
        replaced.sort_unstable();
        let indentation = IndentationState::new(grammar);
        let sublanguages = Sublanguages::new(grammar);
        let unproductive_terminals = unproductive_terminals(grammar, &automata)?;
        let lowered = LoweredRules::new(grammar, &nullable, limits.productions)?;
        let start = grammar.terminals.len() + grammar.start;
        let Some(normalized) =
            NormalizedGrammar::new(lowered, &unproductive_terminals, start as u32)
        else {
            return Ok(None);
        };
        let used = used(&normalized);
        let automata: TerminalAutomata = (0..)
            .zip(automata)
            .map(|(at, one)| {
                one.filter(|_| {
                    used[at as usize] || ignored.contains(&at) || uncuttable.contains(&at)
                })
            })
            .collect();
        // A second thread per terminal tracks the lexemes that may become that terminal.
        let copies = if grammar.lexing == Lexing::First { automata.clone() } else { Vec::new() };
        let mut has_lookahead: Vec<bool> =
            grammar.terminals.iter().map(|one| one.language.is_lexeme()).collect();
        let began_scratch =
            (0..).zip(&automata).any(|(at, one): (usize, _)| one.is_some() && has_lookahead[at]);
        has_lookahead.resize(automata.len() + copies.len(), false);
        let mut lexer = Lexer::new([automata, copies].concat(), has_lookahead, columns(grammar));
        if !sublanguages.is_empty() {
            // The machines of sublanguages may distinguish any two bytes.
            lexer.separate_all_bytes();
        }
        let shortest_nonempty_bytes = shortest_nonempty_bytes(
            (&mut lexer, &sublanguages),
            &normalized,
            indentation.as_ref(),
        )?;
        let lr0 = Lr0Automaton::new(&normalized, &shortest_nonempty_bytes, &mut meter)?;
        let mut core = Box::new(GrammarState {
            gss: Gss::new(lr0, StepMeter::new(limits.steps), limits.bytes),
            lexer,
            lexer_states: LexerStates::default(),
            sublanguages,
            lexing: grammar.lexing,
            needs_viability_checks: grammar.lexing != Lexing::Any || began_scratch,
            indentation,
            limits,
            suffix_bounds: SuffixBounds::default(),
            prefixes: ListInterner::default(),
            states: ListInterner::default(),
            ignored,
            uncuttable,
            replaced,
            terminals: grammar.terminals.len() as u32,
            contexts: FxHashMap::default(),
            dead_end_proof: DeadEndProof::default(),
            viable: FxHashMap::default(),
            completable: FxHashMap::default(),
            completion_bounds: [None, None, None],
            bound_precision: None,
            checkpoint: None,
            spare_configurations: Vec::new(),
            spare_next: Vec::new(),
            flat_list: Vec::new(),
            lookahead_bytes: 0,
        });
        let all: Vec<u32> = (0..normalized.terminals).filter(|&at| used[at as usize]).collect();
        if core.needs_viability_checks
            && !began_scratch
            && core.indentation.is_none()
            && core.lexes_uniquely(&all)?
        {
            core.needs_viability_checks = false;
        }
        if core.needs_viability_checks {
            core.prove_line_balance(&normalized)?;
            if let Some(indentation) = &mut core.indentation {
                indentation.ends_lines = line_ending_symbols(&core.gss.lr0, indentation);
            }
            core.prove_no_dead_ends(&all)?;
            core.bound_precision = Some(Precision::Fine).filter(|_| !core.dead_end_proof.exists());
        }
        let useless = (0..grammar.rules.len()).filter_map(|rule| {
            let symbol = grammar.terminals.len() + rule;
            match (normalized.unproductive[symbol], normalized.unreachable[symbol]) {
                (true, _) => Some((rule, UselessReason::Unproductive)),
                (_, true) => Some((rule, UselessReason::Unreachable)),
                _ => None,
            }
        });
        Ok(Some((core, useless.collect())))
    }

    /// Interns a list of configurations and returns its id.
    pub(crate) fn state(&mut self, configurations: &[Configuration]) -> u32 {
        self.flat_list.clear();
        self.flat_list.extend(
            configurations
                .iter()
                .flat_map(|one| [one.lexeme, one.parser_state, one.negative_threads]),
        );
        self.states.intern(&self.flat_list)
    }

    pub(crate) fn configuration_count(&self, state: u32) -> usize {
        self.states.get(state).len() / CONFIGURATION_LEN
    }

    pub(crate) fn configuration(&self, state: u32, at: usize) -> Configuration {
        let one = &self.states.get(state)[at * CONFIGURATION_LEN..][..CONFIGURATION_LEN];
        Configuration { lexeme: one[0], parser_state: one[1], negative_threads: one[2] }
    }

    /// Returns the configurations of a state.
    pub(crate) fn configurations(&self, state: u32) -> Vec<Configuration> {
        (0..self.configuration_count(state)).map(|at| self.configuration(state, at)).collect()
    }

    /// Caches the verdict of a viability search.
    pub(crate) fn record_viable(&mut self, configuration: Configuration, viable: bool) {
        if self.checkpoint.is_none() && self.sublanguages.is_scratch_position(configuration) {
            return;
        }
        self.viable.insert(configuration, viable);
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.recorded.push(configuration);
        }
    }

    /// Caches whether a set of stacks is completable.
    pub(crate) fn record_completable(&mut self, stacks: u32, completable: bool) {
        self.completable.insert(stacks, completable);
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.completable.push(stacks);
        }
    }

    /// Starts to log new entries, so that [`GrammarState::rollback`] can drop them. Lookahead
    /// visits many states that no input will reach.
    pub(crate) fn checkpoint(&mut self) {
        let (states, parser_states) = (self.states.len(), self.parser_state_count());
        let (bytes, began_scratch) = (self.gss.memory_bytes(), self.sublanguages.begin_scratch());
        self.checkpoint = Some(StateCheckpoint {
            states,
            parser_states,
            bytes,
            began_scratch,
            ..StateCheckpoint::default()
        });
        self.gss.checkpoint();
    }

    /// Drops the states and stacks made since [`GrammarState::checkpoint`]; lexer states stay.
    /// Stacks stay too while they fit [`MAX_LOOKAHEAD_BYTES`], because later lookaheads almost
    /// always visit them again.
    pub(crate) fn rollback(&mut self) {
        let Some(checkpoint) = self.checkpoint.take() else { return };
        let seen = self.gss.memory_bytes().saturating_sub(checkpoint.bytes);
        if self.states.len() == checkpoint.states
            && self.lookahead_bytes + seen <= MAX_LOOKAHEAD_BYTES
        {
            self.lookahead_bytes += seen;
            for configuration in checkpoint.recorded {
                if self.sublanguages.is_scratch_position(configuration) {
                    self.viable.remove(&configuration);
                }
            }
            if checkpoint.began_scratch {
                self.sublanguages.end_scratch();
            }
            return self.gss.commit();
        }
        self.states.truncate(checkpoint.states);
        self.truncate_parser_states(checkpoint.parser_states);
        self.suffix_bounds.clear();
        if checkpoint.began_scratch {
            self.sublanguages.end_scratch();
        }
        for configuration in checkpoint.recorded {
            self.viable.remove(&configuration);
        }
        for stacks in checkpoint.completable {
            self.completable.remove(&stacks);
        }
        self.gss.rollback();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.gss.memory_bytes()
            + self.lexer.memory_bytes()
            + self.lexer_states.memory_bytes()
            + self.sublanguages.memory_bytes()
            + self.states.memory_bytes()
            + self.prefixes.memory_bytes()
            + self.suffix_bounds.capacity() * 17
            + self.contexts.len() * 16
            + self.viable.len() * 20
            + self.completable.len() * 12
            + self.dead_end_proof.memory_bytes()
            + self
                .completion_bounds
                .iter()
                .flatten()
                .map(|completion_bounds| completion_bounds.memory_bytes())
                .sum::<usize>()
            + self
                .indentation
                .as_ref()
                .map_or(0, |indentation| indentation.parser_states.memory_bytes())
    }
}

/// Returns which terminals occur in a production.
fn used(normalized: &NormalizedGrammar) -> Vec<bool> {
    let mut used = vec![false; normalized.terminals as usize];
    for &symbol in normalized.productions.iter().flat_map(|one| &one.right) {
        if let Some(used) = used.get_mut(symbol as usize) {
            *used = true;
        }
    }
    used
}

pub(crate) fn ignored(grammar: &Grammar) -> Vec<u32> {
    let mut ignored: Vec<u32> = grammar.ignored.iter().map(|&at| at as u32).collect();
    ignored.sort_unstable();
    ignored.dedup();
    ignored
}

/// Returns the length of a shortest nonempty string of each symbol.
fn shortest_nonempty_bytes(
    (lexer, sublanguages): (&mut Lexer, &Sublanguages),
    normalized: &NormalizedGrammar,
    indentation: Option<&IndentationState>,
) -> Result<Vec<u32>, Error> {
    let mut shortest_nonempty_bytes = vec![NEVER; normalized.symbols as usize];
    for terminal in 0..normalized.terminals {
        let start = lexer.start(std::iter::once(terminal));
        for (terminal, bytes) in lexer.distances(start)? {
            shortest_nonempty_bytes[terminal as usize] = bytes;
        }
        if let Some(machine) = sublanguages.machine(terminal)
            && let Some(bytes) = shortest_nonempty_len(&*machine)?
        {
            shortest_nonempty_bytes[terminal as usize] = bytes;
        }
    }
    if let Some(indentation) = indentation {
        // Indentation levels have no text, and the end of the input may end a line.
        for terminal in [indentation.indent, indentation.dedent, indentation.newline] {
            shortest_nonempty_bytes[terminal as usize] = 0;
        }
    }
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); normalized.symbols as usize];
    for (at, one) in normalized.productions.iter().enumerate() {
        one.right.iter().for_each(|&symbol| uses[symbol as usize].push(at as u32));
    }
    // Relaxation to a fixpoint: a symbol is improved at most as often as its uses are.
    let mut queue: VecDeque<u32> = (0..normalized.productions.len() as u32).collect();
    while let Some(at) = queue.pop_front() {
        let one = &normalized.productions[at as usize];
        let bytes = min_nonempty_bytes(&one.right, &shortest_nonempty_bytes, &normalized.nullable);
        if bytes < shortest_nonempty_bytes[one.left as usize] {
            shortest_nonempty_bytes[one.left as usize] = bytes;
            queue.extend(&uses[one.left as usize]);
        }
    }
    Ok(shortest_nonempty_bytes)
}

/// Returns the length of a shortest nonempty string derived by a sequence of symbols.
fn min_nonempty_bytes(right: &[u32], shortest_nonempty_bytes: &[u32], nullable: &[bool]) -> u32 {
    let mut all = 0u32;
    let mut least_extra = u32::MAX;
    for &symbol in right {
        let bytes = shortest_nonempty_bytes[symbol as usize];
        if nullable[symbol as usize] {
            least_extra = least_extra.min(bytes);
        } else {
            all = all.saturating_add(bytes);
        }
    }
    // At least one symbol must be nonempty. If all are nullable, the shortest nonempty one is
    // taken.
    if right.iter().all(|&symbol| nullable[symbol as usize]) { least_extra } else { all }
}
