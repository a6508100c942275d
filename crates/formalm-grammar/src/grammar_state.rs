//! The grammar automaton behind its lock: reader, completion search, and interned states.
//!
//! ```text
//!  GrammarState ── states     Configurations        lists of configurations, by id
//!       │
//!       ├── search   CompletionSearch      which configurations have a completion
//!       │       ▼
//!       └── reader   ConfigurationReader   one byte in a configuration
//!               ├── lexer, parser, sublanguages
//! ```
//!
//! Each part knows the parts below it only. Configurations without a completion are dropped at every
//! step, so every state is live.

use std::collections::VecDeque;
use std::sync::Arc;

use formalm_core::{ByteSet, Error, StepBudget, memory_bytes};
use formalm_machines::Precision;

use crate::NOTHING;
use crate::completion::search::CompletionSearch;
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::{Configuration, Configurations};
use crate::grammar::{Grammar, Lexing};
use crate::gss::Gss;
use crate::gss::stack_shortest_path::NEVER;
use crate::indentation::line_terminals::LineTerminals;
use crate::lexer::Lexer;
use crate::lexer::terminal_automata::{
    TerminalAutomata, build_terminal_automata, unproductive_terminals,
};
use crate::lexer::terminal_rules::TerminalRules;
use crate::lexer::thread_sets::ThreadSets;
use crate::limits::{GrammarLimits, StepMeter};
use crate::lr0::Lr0Automaton;
use crate::normal_form::NormalizedGrammar;
use crate::normal_form::lowering::LoweredRules;
use crate::parser::Parser;
use crate::sublanguages::{Sublanguages, shortest_nonempty_len};

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
    pub(crate) reader: ConfigurationReader,
    pub(crate) search: CompletionSearch,
    pub(crate) states: Configurations,
    checkpoint: Option<StateCheckpoint>,
    /// Buffers reused between steps.
    pub(crate) spare_configurations: Vec<Configuration>,
    pub(crate) spare_next: Vec<Configuration>,
    /// Bytes of stacks that only lookahead has visited.
    lookahead_bytes: usize,
}

memory_bytes!(GrammarState { reader, search, states; checkpoint, spare_configurations, spare_next, lookahead_bytes });

/// Maximum bytes of stacks kept after lookahead has ended. Chosen, not measured.
const MAX_LOOKAHEAD_BYTES: usize = 1 << 20;

/// Table sizes at [`GrammarState::checkpoint`].
#[derive(Debug)]
struct StateCheckpoint {
    states: usize,
    parser_states: usize,
    bytes: usize,
    /// `true` if the checkpoint also started scratch machines of sublanguages.
    began_scratch: bool,
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
        let rules = Arc::new(TerminalRules::new(grammar));
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
                one.filter(|_| used[at as usize] || rules.is_ignored(at) || rules.is_uncuttable(at))
            })
            .collect();
        // A second thread per terminal tracks the lexemes that may become that terminal.
        let copies = if grammar.lexing == Lexing::First { automata.clone() } else { Vec::new() };
        let mut has_lookahead: Vec<bool> =
            grammar.terminals.iter().map(|one| one.language.is_lexeme()).collect();
        let reads_ahead =
            (0..).zip(&automata).any(|(at, one): (usize, _)| one.is_some() && has_lookahead[at]);
        has_lookahead.resize(automata.len() + copies.len(), false);
        let columns = rules.lines.as_ref().map(|lines| lines.columns);
        let mut threads = ThreadSets::new([automata, copies].concat(), has_lookahead, columns);
        if !sublanguages.is_empty() {
            // The machines of sublanguages may distinguish any two bytes.
            threads.separate_all_bytes();
        }
        let lines = rules.lines.as_ref();
        let shortest_bytes =
            shortest_nonempty_bytes((&mut threads, &sublanguages), &normalized, lines)?;
        let lr0 = Lr0Automaton::new(&normalized, &shortest_bytes, &mut meter)?;
        let gss = Gss::new(lr0, StepMeter::new(limits.steps), limits.bytes);
        let needs_viability_checks = grammar.lexing != Lexing::Any || reads_ahead;
        let lexer = Lexer::new(Arc::clone(&rules), threads, needs_viability_checks);
        let mut reader =
            ConfigurationReader { lexer, parser: Parser::new(rules, gss), sublanguages };
        let mut search = CompletionSearch::new(limits);
        let all: Vec<u32> = (0..normalized.terminals).filter(|&at| used[at as usize]).collect();
        if needs_viability_checks
            && !reads_ahead
            && reader.parser.indentation.is_none()
            && reader.lexer.lexes_uniquely(&all, &mut reader.parser.gss.meter)?
        {
            reader.lexer.needs_viability_checks = false;
        }
        if reader.lexer.needs_viability_checks {
            reader.prove_no_dead_ends(&normalized, &all)?;
            search.precision = Some(Precision::Fine).filter(|_| !reader.lexer.proof.exists());
        }
        let useless = (0..grammar.rules.len()).filter_map(|rule| {
            let symbol = grammar.terminals.len() + rule;
            match (normalized.unproductive[symbol], normalized.unreachable[symbol]) {
                (true, _) => Some((rule, UselessReason::Unproductive)),
                (_, true) => Some((rule, UselessReason::Unreachable)),
                _ => None,
            }
        });
        let state = GrammarState {
            reader,
            search,
            states: Configurations::default(),
            checkpoint: None,
            spare_configurations: Vec::new(),
            spare_next: Vec::new(),
            lookahead_bytes: 0,
        };
        Ok(Some((Box::new(state), useless.collect())))
    }

    pub(crate) fn meter(&mut self) -> &mut StepMeter {
        self.reader.meter()
    }

    /// Returns `true` if the stacks of a parser state are completable and no indentation limit
    /// interferes.
    pub(crate) fn is_completable_at(&mut self, parser_state: u32) -> Result<bool, Error> {
        self.search.completable.is_completable_at(parser_state, &mut self.reader)
    }

    pub(crate) fn limits(&self) -> &GrammarLimits {
        &self.search.limits
    }

    /// Returns the start state; [`NOTHING`] if no member is reachable.
    pub(crate) fn start(&mut self) -> Result<u32, Error> {
        let mut configurations = self.reader.start_configurations()?;
        if self.reader.lexer.needs_viability_checks {
            self.search.retain_viable(&mut configurations, &mut self.reader)?;
        }
        Ok(self.states.intern(&configurations))
    }

    /// Returns the state after a byte, without the configurations that have no completion.
    pub(crate) fn step(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        if let Some(next) = self.step_inside_lexeme(state, byte)? {
            return Ok(next);
        }
        // This buffer is reused: allocating it would dominate the cost of reading.
        let mut next = std::mem::take(&mut self.spare_configurations);
        next.clear();
        for at in 0..self.states.count(state) {
            self.reader.push_successors(self.states.at(state, at), byte, &mut next)?;
        }
        if self.reader.lexer.needs_viability_checks {
            self.search.retain_viable(&mut next, &mut self.reader)?;
        }
        self.reader.normalize_configurations(&mut next);
        let state = self.states.intern(&next);
        self.spare_configurations = next;
        Ok(state)
    }

    /// Returns the next state if the state has one configuration whose lexeme continues without
    /// ending and which is proven viable. Returns `None` otherwise.
    pub(crate) fn step_inside_lexeme(
        &mut self,
        state: u32,
        byte: u8,
    ) -> Result<Option<u32>, Error> {
        if self.states.count(state) != 1 || !self.reader.sublanguages.is_empty() {
            return Ok(None);
        }
        let Configuration { mut lexeme, parser_state, negative_threads } = self.states.at(state, 0);
        if lexeme == NOTHING {
            lexeme = self.reader.context(parser_state)?;
        }
        let lexer_state = self.reader.lexer.states.intern(lexeme, negative_threads);
        let outcome =
            self.reader.lexer.step(lexer_state, byte, &mut self.reader.parser.gss.meter)?;
        if outcome.continued == NOTHING || outcome.endings != NOTHING {
            return Ok(None);
        }
        if self.reader.lexer.needs_viability_checks
            && (outcome.unproven || !self.is_completable_at(parser_state)?)
        {
            return Ok(None);
        }
        self.meter().spend(1)?;
        let (lexeme, negative_threads) = self.reader.lexer.states.pair(outcome.continued);
        let next = Configuration { lexeme, parser_state, negative_threads };
        Ok(Some(self.states.intern_one(next)))
    }

    /// Returns the state after a byte. It may contain dead configurations, except those already
    /// known to be dead.
    pub(crate) fn step_unchecked(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        let configurations = self.states.get(state);
        let mut next = self.reader.successors(&configurations, byte)?;
        next.retain(|one| self.search.viable.get(one) != Some(&false));
        self.reader.normalize_configurations(&mut next);
        Ok(self.states.intern(&next))
    }

    /// Returns `true` if the grammar accepts `text`, without testing prefixes for viability.
    pub(crate) fn is_member(&mut self, text: &[u8]) -> Result<bool, Error> {
        let mut configurations = self.reader.start_configurations()?;
        let budget = StepBudget::new(self.meter().total());
        for (read, &byte) in text.iter().enumerate() {
            self.meter().reset();
            configurations = self.reader.successors(&configurations, byte)?;
            self.reader.normalize_configurations(&mut configurations);
            budget.check(self.meter().total(), read)?;
        }
        self.meter().reset();
        for configuration in configurations {
            if self.reader.accepts(configuration)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the bytes with a successor, discarding everything built on the way.
    pub(crate) fn live_bytes(&mut self, state: u32) -> Result<ByteSet, Error> {
        let mut live = vec![false; self.reader.lexer.threads.representatives().len()];
        for (at, byte) in
            self.reader.lexer.threads.representatives().to_vec().into_iter().enumerate()
        {
            self.meter().reset();
            live[at] = self.step(state, byte)? != NOTHING;
        }
        let mut set = ByteSet::default();
        for byte in 0..=255u8 {
            if live[usize::from(self.reader.lexer.threads.classes()[usize::from(byte)])] {
                set.insert(byte);
            }
        }
        Ok(set)
    }

    /// Returns a lower bound on the bytes that complete a state.
    pub(crate) fn min_bytes(&mut self, state: u32) -> Result<u32, Error> {
        self.search.min_bytes_of_any(&self.states.get(state), &mut self.reader)
    }

    /// Returns `true` if the input may end in a state.
    pub(crate) fn is_accepting(&mut self, state: u32) -> Result<bool, Error> {
        for configuration in self.states.get(state) {
            if self.reader.accepts(configuration)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns, for a state that lies in a single sublanguage, the smallest shortest completion of
    /// the member and the state after it. What follows does not depend on which member it is.
    pub(crate) fn forced_sublanguage_completion(
        &mut self,
        state: u32,
    ) -> Result<Option<(Vec<u8>, u32)>, Error> {
        if self.reader.sublanguages.is_empty() {
            return Ok(None);
        }
        let [configuration] = self.states.get(state)[..] else { return Ok(None) };
        let completion = self.reader.forced_sublanguage_completion(configuration)?;
        Ok(completion.map(|(member, after)| (member, self.states.intern(&[after]))))
    }

    /// Starts to log new entries, so that [`GrammarState::rollback`] can drop them. Lookahead
    /// visits many states that no input will reach.
    pub(crate) fn checkpoint(&mut self) {
        let ConfigurationReader { parser, sublanguages, .. } = &mut self.reader;
        self.checkpoint = Some(StateCheckpoint {
            states: self.states.len(),
            parser_states: parser.parser_state_count(),
            bytes: parser.gss.memory_bytes(),
            began_scratch: sublanguages.begin_scratch(),
        });
        self.search.checkpoint();
        parser.gss.checkpoint();
    }

    /// Drops the states and stacks made since [`GrammarState::checkpoint`]; lexer states stay.
    /// Stacks stay too while they fit [`MAX_LOOKAHEAD_BYTES`], because later lookaheads almost
    /// always visit them again.
    pub(crate) fn rollback(&mut self) {
        let Some(checkpoint) = self.checkpoint.take() else { return };
        let ConfigurationReader { parser, sublanguages, .. } = &mut self.reader;
        let seen = parser.gss.memory_bytes().saturating_sub(checkpoint.bytes);
        if self.states.len() == checkpoint.states
            && self.lookahead_bytes + seen <= MAX_LOOKAHEAD_BYTES
        {
            self.lookahead_bytes += seen;
            self.search.commit(sublanguages);
            parser.gss.commit();
        } else {
            self.states.truncate(checkpoint.states);
            self.search.rollback();
            parser.rollback(checkpoint.parser_states);
        }
        if checkpoint.began_scratch {
            sublanguages.end_scratch();
        }
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

/// Returns the length of a shortest nonempty string of each symbol.
fn shortest_nonempty_bytes(
    (threads, sublanguages): (&mut ThreadSets, &Sublanguages),
    normalized: &NormalizedGrammar,
    lines: Option<&LineTerminals>,
) -> Result<Vec<u32>, Error> {
    let mut shortest_nonempty_bytes = vec![NEVER; normalized.symbols as usize];
    for terminal in 0..normalized.terminals {
        let start = threads.start(std::iter::once(terminal));
        for (terminal, bytes) in threads.distances(start)? {
            shortest_nonempty_bytes[terminal as usize] = bytes;
        }
        if let Some(machine) = sublanguages.machine(terminal)
            && let Some(bytes) = shortest_nonempty_len(&*machine)?
        {
            shortest_nonempty_bytes[terminal as usize] = bytes;
        }
    }
    if let Some(lines) = lines {
        // Indentation levels have no text, and the end of the input may end a line.
        for terminal in [lines.indent, lines.dedent, lines.newline] {
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
