//! What a machine knows and builds: terminals, tables, stacks, lexer states.

use std::collections::VecDeque;

use formalm_automata::{Error, Look};
use rustc_hash::FxHashMap;

use crate::completion::CompletionBounds;
use crate::completion::min_bytes::{SuffixBounds, line_ending_symbols};
use crate::completion::stack_shortest_path::NEVER;
use crate::dead_end_proof::spellable_terminals::DeadEndProof;
use crate::grammar::{Grammar, LexemeReplacement, Lexing};
use crate::gss::Gss;
use crate::indentation::parser_state::{IndentationState, columns};
use crate::interner::{ListInterner, NOTHING};
use crate::lexer::Lexer;
use crate::lexer::lexer_state::LexerStates;
use crate::lexer::terminal_automata::{
    TerminalAutomata, build_terminal_automata, unproductive_terminals,
};
use crate::limits::{Limits, StepMeter};
use crate::lr0::Lr0Automaton;
use crate::normal_form::NormalizedGrammar;
use crate::normal_form::lowering::LoweredRules;
use crate::sublanguages::{Sublanguages, shortest_nonempty_len};

/// One reading of the text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Configuration {
    /// Threads of the lexeme under way; [`NOTHING`] between lexemes.
    pub(crate) lexeme: u32,
    /// The place before that lexeme: stacks, and levels where indentation matters.
    pub(crate) parser_state: u32,
    /// Threads that must not match: a lexeme ended although they could have gone on.
    pub(crate) negative_threads: u32,
}

impl Configuration {
    /// A place between lexemes.
    pub(crate) fn between(parser_state: u32, negative_threads: u32) -> Configuration {
        Configuration { lexeme: NOTHING, parser_state, negative_threads }
    }

    pub(crate) fn is_between(self) -> bool {
        self.lexeme == NOTHING
    }
}

/// Numbers of a reading in the list of a state.
const CONFIGURATION_LEN: usize = 3;

/// Rules that are of no use, and why.
pub(crate) type UselessRules = Vec<(usize, UselessReason)>;

/// Why a rule is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UselessReason {
    /// It derives no text.
    Unproductive,
    /// No rule that is of use refers to it.
    Unreachable,
}

/// A core, which is large, with rules that are of no use.
pub(crate) type BuiltState = (Box<GrammarState>, UselessRules);

/// Everything that grows while texts are read.
#[derive(Debug)]
pub(crate) struct GrammarState {
    pub(crate) gss: Gss,
    pub(crate) lexer: Lexer,
    pub(crate) lexer_states: LexerStates,
    pub(crate) sublanguages: Sublanguages,
    pub(crate) lexing: Lexing,
    /// What the stacks allow may have no text: lexemes are ordered, or some look beyond themselves.
    pub(crate) checked: bool,
    /// What is known of lines, where indentation matters.
    pub(crate) indentation: Option<IndentationState>,
    pub(crate) limits: Limits,
    /// Bytes that complete what is left on stacks, where there are levels.
    pub(crate) suffix_bounds: SuffixBounds,
    /// What can be seen of places from their tops.
    pub(crate) prefixes: ListInterner,
    /// States of the machine: lists of readings, [`NUMBERS`] each.
    pub(crate) states: ListInterner,
    /// Terminals that may stand anywhere, ascending.
    pub(crate) ignored: Vec<u32>,
    /// Terminals that no lexeme ends within, ascending; they come last.
    pub(crate) uncuttable: Vec<u32>,
    /// Lexemes that become others; sorted.
    pub(crate) replaced: Vec<LexemeReplacement>,
    /// Number of terminals; beyond it are lexemes that became a terminal.
    pub(crate) terminals: u32,
    /// Lexer state in front of a lexeme, per set of allowed terminals and whether lines matter.
    pub(crate) contexts: FxHashMap<(u32, bool), u32>,
    pub(crate) dead_end_proof: DeadEndProof,
    /// Whether a member continues a reading, where a search found out.
    pub(crate) viable: FxHashMap<Configuration, bool>,
    /// Whether the certificate settles what follows on some stacks, where it was asked.
    pub(crate) completable: FxHashMap<u32, bool>,
    /// What completes readings, where no certificate says so; made when it is first asked; by each [`Look`].
    pub(crate) completion_bounds: [Option<Box<CompletionBounds>>; 3],
    /// How closely it is looked at what completes readings; not at all where a certificate settles most.
    pub(crate) bound_precision: Option<Look>,
    checkpoint: Option<StateCheckpoint>,
    /// Memory that steps use.
    pub(crate) spare_configurations: Vec<Configuration>,
    pub(crate) spare_next: Vec<Configuration>,
    flat_list: Vec<u32>,
    /// Memory of stacks that were met ahead of texts only.
    lookahead_bytes: usize,
}

/// What stacks that were met ahead of texts only may take.
const MAX_LOOKAHEAD_BYTES: usize = 1 << 20;

/// What there was at [`Core::remember`], and what was learnt since.
#[derive(Debug, Default)]
struct StateCheckpoint {
    states: usize,
    parser_states: usize,
    bytes: usize,
    /// Whether embedded languages are looked ahead of.
    began_scratch: bool,
    recorded: Vec<Configuration>,
    completable: Vec<u32>,
}

impl GrammarState {
    /// The core of a grammar, and its rules that are of no use; `None` if its rules derive no text.
    pub(crate) fn new(grammar: &Grammar, limits: Limits) -> Result<Option<BuiltState>, Error> {
        grammar.check()?;
        let mut meter = StepMeter::new(limits.steps.max(4 * limits.productions));
        let (automata, nullable) = build_terminal_automata(grammar)?;
        let ignored = ignored(grammar);
        let mut uncuttable: Vec<u32> = grammar.whole.iter().map(|&at| at as u32).collect();
        uncuttable.sort_unstable();
        let mut replaced = grammar.replaced.clone();
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
        // What became a terminal is watched by a thread of its own.
        let copies = if grammar.lexing == Lexing::First { automata.clone() } else { Vec::new() };
        let mut has_lookahead: Vec<bool> =
            grammar.terminals.iter().map(|one| one.language.is_lexeme()).collect();
        let began_scratch =
            (0..).zip(&automata).any(|(at, one): (usize, _)| one.is_some() && has_lookahead[at]);
        has_lookahead.resize(automata.len() + copies.len(), false);
        let mut lexer = Lexer::new([automata, copies].concat(), has_lookahead, columns(grammar));
        if !sublanguages.is_empty() {
            // Their machines may tell any two bytes apart.
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
            checked: grammar.lexing != Lexing::Any || began_scratch,
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
        if core.checked
            && !began_scratch
            && core.indentation.is_none()
            && core.lexes_uniquely(&all)?
        {
            core.checked = false;
        }
        if core.checked {
            core.prove_line_balance(&normalized)?;
            if let Some(indentation) = &mut core.indentation {
                indentation.ends_lines = line_ending_symbols(&core.gss.lr0, indentation);
            }
            core.prove_no_dead_ends(&all)?;
            core.bound_precision = Some(Look::Close).filter(|_| !core.dead_end_proof.exists());
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

    /// The number of a list of readings.
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

    /// The readings of a state.
    pub(crate) fn configurations(&self, state: u32) -> Vec<Configuration> {
        (0..self.configuration_count(state)).map(|at| self.configuration(state, at)).collect()
    }

    /// Keeps what a search found out.
    pub(crate) fn record_viable(&mut self, configuration: Configuration, viable: bool) {
        if self.checkpoint.is_none() && self.sublanguages.is_scratch_position(configuration) {
            return;
        }
        self.viable.insert(configuration, viable);
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.recorded.push(configuration);
        }
    }

    /// Keeps whether stacks are settled.
    pub(crate) fn record_completable(&mut self, stacks: u32, completable: bool) {
        self.completable.insert(stacks, completable);
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.completable.push(stacks);
        }
    }

    /// Begins to note what is made, so that [`Core::forget`] can drop it: looking ahead meets
    /// many states that no text will ever be in.
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

    /// Drops the states and stacks made since [`Core::remember`]; the lexer's stay. Stacks stay
    /// too as long as there is room for them: what is seen ahead of a text is nearly always seen
    /// again from its next places.
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

/// Terminals that some production has.
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

/// Bytes of a shortest text of each symbol that is not empty.
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
        // Levels have no text, and the end of the text may end a line.
        for terminal in [indentation.indent, indentation.dedent, indentation.newline] {
            shortest_nonempty_bytes[terminal as usize] = 0;
        }
    }
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); normalized.symbols as usize];
    for (at, one) in normalized.productions.iter().enumerate() {
        one.right.iter().for_each(|&symbol| uses[symbol as usize].push(at as u32));
    }
    // Improves until nothing does: a symbol is improved at most as often as its uses are.
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

/// Bytes of a shortest text, not empty, of symbols in a row.
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
    // Something must be there: if all may be empty, the shortest that is not.
    if right.iter().all(|&symbol| nullable[symbol as usize]) { least_extra } else { all }
}
