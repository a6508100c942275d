//! The lexemes of an input: a single sequence with ordered lexing, all possible ones with
//! [`crate::Lexing::Any`].

use std::sync::Arc;

use formalm_automata::LEXEME_END;
use formalm_core::{ByteSet, Error, LazyDfa, Machine, StateId};
use rustc_hash::FxHashMap;

use super::earley_productions::StepBudget;
use crate::automaton::GrammarAutomaton;
use crate::grammar_state::{Configuration, GrammarState};
use crate::lexer::as_lookahead_byte;
use crate::lexer::terminal_automata::TerminalAutomaton;

/// Before the first step.
const NO_STEP: u32 = u32::MAX;

/// A terminal and the bytes that it matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme {
    pub(crate) terminal: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A source of lexemes for the chart.
pub(super) trait LexemeSource {
    /// Number of positions before the last one.
    fn len(&self) -> usize;

    /// Returns the lookahead at a position: a terminal, or a byte if the chart reads bytes; `None`
    /// at the end.
    fn next(&self, at: usize) -> Option<u32>;

    fn is_free(&self) -> bool;

    /// Returns the lexemes of a terminal that start at a position, each with the position after it.
    fn lexemes(
        &mut self,
        terminal: u32,
        at: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error>;

    /// Returns `true` if only ignored input follows.
    fn ends(&mut self, at: usize, steps: &mut StepBudget<'_, '_>) -> Result<bool, Error>;
}

/// A known sequence of lexemes.
pub(super) struct OrderedLexemes<'a> {
    lexemes: &'a [Lexeme],
}

impl<'a> OrderedLexemes<'a> {
    pub(super) fn new(lexemes: &'a [Lexeme]) -> OrderedLexemes<'a> {
        OrderedLexemes { lexemes }
    }
}

impl LexemeSource for OrderedLexemes<'_> {
    fn len(&self) -> usize {
        self.lexemes.len()
    }

    fn next(&self, at: usize) -> Option<u32> {
        self.lexemes.get(at).map(|one| one.terminal)
    }

    fn is_free(&self) -> bool {
        false
    }

    fn lexemes(
        &mut self,
        terminal: u32,
        at: usize,
        _steps: &mut StepBudget<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error> {
        let here = self.lexemes.get(at).filter(|one| one.terminal == terminal);
        Ok(here.map(|&one| (one, at + 1)).into_iter().collect())
    }

    fn ends(&mut self, at: usize, _steps: &mut StepBudget<'_, '_>) -> Result<bool, Error> {
        Ok(at == self.lexemes.len())
    }
}

/// The automata of terminals, and the machines of sublanguages.
type MachineSlices<'a> = (&'a [Option<Arc<TerminalAutomaton>>], &'a [Option<Arc<dyn Machine>>]);

/// All lexemes of an input, found on demand.
pub(super) struct AllLexemes<'a> {
    automata: &'a [Option<Arc<TerminalAutomaton>>],
    embedded: &'a [Option<Arc<dyn Machine>>],
    ahead: &'a [bool],
    ignored: &'a [u32],
    text: &'a [u8],
    /// Positions after ignored input, by position.
    skip_ends: FxHashMap<usize, Vec<usize>>,
}

impl<'a> AllLexemes<'a> {
    pub(super) fn new(
        (automata, embedded): MachineSlices<'a>,
        ahead: &'a [bool],
        ignored: &'a [u32],
        text: &'a [u8],
    ) -> AllLexemes<'a> {
        AllLexemes { automata, embedded, ahead, ignored, text, skip_ends: FxHashMap::default() }
    }

    /// Returns the ends of the nonempty lexemes of a terminal.
    fn lexeme_ends(
        &self,
        terminal: u32,
        at: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<Vec<usize>, Error> {
        if let Some(machine) = &self.embedded[terminal as usize] {
            return sublanguage_ends(&**machine, self.text, at, steps);
        }
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(Vec::new()) };
        let mut state = automaton.start();
        let mut ends = Vec::new();
        for (parser_state, &byte) in self.text.iter().enumerate().skip(at) {
            steps.spend(1)?;
            match automaton.step(state, byte)? {
                Some(next) => state = next,
                None => break,
            }
            let ends_here = match self.ahead[terminal as usize] {
                true => self.lookahead_matches(automaton, state, parser_state + 1, steps)?,
                false => automaton.is_accepting(state),
            };
            ends.extend(ends_here.then_some(parser_state + 1));
        }
        Ok(ends)
    }

    /// Returns `true` if the rest of the input satisfies the lookahead of a lexeme that ends at
    /// `from`.
    fn lookahead_matches(
        &self,
        automaton: &TerminalAutomaton,
        state: StateId,
        from: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<bool, Error> {
        let Some(mut state) = automaton.step(state, LEXEME_END)? else { return Ok(false) };
        for &byte in &self.text[from..] {
            steps.spend(1)?;
            match automaton.step(state, as_lookahead_byte(byte))? {
                Some(next) => state = next,
                None => return Ok(false),
            }
        }
        Ok(automaton.is_accepting(state))
    }

    fn skip_ends(
        &mut self,
        at: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<Vec<usize>, Error> {
        if self.ignored.is_empty() {
            return Ok(vec![at]);
        }
        if let Some(known) = self.skip_ends.get(&at) {
            return Ok(known.clone());
        }
        let mut places = std::collections::BTreeSet::from([at]);
        let mut open = vec![at];
        while let Some(parser_state) = open.pop() {
            for &one in self.ignored {
                let ends = self.lexeme_ends(one, parser_state, steps)?;
                open.extend(ends.into_iter().filter(|&end| places.insert(end)));
            }
        }
        let places: Vec<usize> = places.into_iter().collect();
        self.skip_ends.insert(at, places.clone());
        Ok(places)
    }
}

impl LexemeSource for AllLexemes<'_> {
    fn len(&self) -> usize {
        self.text.len()
    }

    fn next(&self, at: usize) -> Option<u32> {
        self.text.get(at).map(|&byte| byte.into())
    }

    fn is_free(&self) -> bool {
        true
    }

    fn lexemes(
        &mut self,
        terminal: u32,
        at: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error> {
        let mut all = Vec::new();
        for start in self.skip_ends(at, steps)? {
            for end in self.lexeme_ends(terminal, start, steps)? {
                all.push((Lexeme { terminal, start, end }, end));
            }
        }
        Ok(all)
    }

    fn ends(&mut self, at: usize, steps: &mut StepBudget<'_, '_>) -> Result<bool, Error> {
        Ok(self.skip_ends(at, steps)?.last() == Some(&self.text.len()))
    }
}

/// Returns the bytes that lexemes of each terminal start with.
pub(super) fn first_bytes(
    automata: &[Option<Arc<TerminalAutomaton>>],
    embedded: &[Option<Arc<dyn Machine>>],
) -> Result<Vec<ByteSet>, Error> {
    let of = |(one, other): (&Option<Arc<TerminalAutomaton>>, &Option<Arc<dyn Machine>>)| match (
        one, other,
    ) {
        (Some(one), _) => one.live_bytes(one.start()),
        (None, Some(one)) => one.live_bytes(one.start()),
        (None, None) => Ok(ByteSet::default()),
    };
    automata.iter().zip(embedded).map(of).collect()
}

/// Returns the ends of the nonempty members of a sublanguage that start at a position.
fn sublanguage_ends(
    machine: &dyn Machine,
    text: &[u8],
    at: usize,
    steps: &mut StepBudget<'_, '_>,
) -> Result<Vec<usize>, Error> {
    let mut state = machine.start();
    let mut ends = Vec::new();
    for (parser_state, &byte) in text.iter().enumerate().skip(at) {
        steps.spend(1)?;
        match machine.step(state, byte)? {
            Some(next) => state = next,
            None => break,
        }
        ends.extend(machine.is_accepting(state)?.then_some(parser_state + 1));
    }
    Ok(ends)
}

/// A configuration, with the way it was reached.
struct TokenizeStep {
    configuration: Configuration,
    before: u32,
    /// The terminal whose lexeme ended here, if any.
    ended_terminal: Option<u32>,
    at: usize,
}

impl GrammarAutomaton {
    /// Returns the lexemes of a member without the ignored ones; `None` if the input is not a
    /// member. With ordered lexing, at most one split is valid.
    pub(super) fn lexemes(&self, text: &[u8]) -> Result<Option<Vec<Lexeme>>, Error> {
        let core = &mut self.lock().core;
        let start = |configuration| TokenizeStep {
            configuration,
            before: NO_STEP,
            ended_terminal: None,
            at: 0,
        };
        let mut steps: Vec<TokenizeStep> =
            core.start_configurations()?.into_iter().map(start).collect();
        let mut alive: Vec<u32> = (0..steps.len() as u32).collect();
        let mut next = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            core.gss.meter.reset();
            let mut later = Vec::new();
            for before in alive {
                next.clear();
                core.push_successors_with_lexemes(
                    steps[before as usize].configuration,
                    byte,
                    &mut next,
                )?;
                for &(configuration, ended_terminal) in &next {
                    later.push(steps.len() as u32);
                    steps.push(TokenizeStep { configuration, before, ended_terminal, at: at + 1 });
                }
            }
            alive = later;
        }
        for &last in &alive {
            core.gss.meter.reset();
            let configuration = steps[last as usize].configuration;
            if core.accepts(configuration)? {
                let mut lexemes = core.trace_lexemes(&steps, last);
                let end = text.len();
                let terminals = core.terminals_at_end(configuration)?.into_iter();
                lexemes.extend(terminals.map(|terminal| Lexeme { terminal, start: end, end }));
                return Ok(Some(lexemes));
            }
        }
        Ok(None)
    }
}

impl GrammarState {
    fn trace_lexemes(&self, steps: &[TokenizeStep], last: u32) -> Vec<Lexeme> {
        // Ends of lexemes with the parser states before and after, last one first.
        let mut ends: Vec<(u32, usize, u32)> = Vec::new();
        let mut lexemes = Vec::new();
        let mut at = last;
        while let Some(step) = steps.get(at as usize) {
            let is_first = step.before == NO_STEP;
            if (step.configuration.is_between() || is_first)
                && let Some((terminal, end, after)) = ends.pop()
            {
                self.push_lexeme(
                    (terminal, step.at, end),
                    (step.configuration.parser_state, after),
                    &mut lexemes,
                );
            }
            if let Some(terminal) = step.ended_terminal {
                ends.push((terminal, step.at, step.configuration.parser_state));
            }
            at = step.before;
        }
        lexemes.reverse();
        lexemes
    }

    /// Appends the terminals that a lexeme stands for, in reverse order.
    fn push_lexeme(
        &self,
        (terminal, start, end): (u32, usize, usize),
        (before, after): (u32, u32),
        lexemes: &mut Vec<Lexeme>,
    ) {
        let indentation = self.indentation.as_ref();
        if let Some(terminals) = indentation
            .and_then(|indentation| indentation.terminals_between(terminal, before, after))
        {
            let newline = indentation.map(|indentation| indentation.newline);
            for terminal in terminals.into_iter().rev() {
                let start = if Some(terminal) == newline { start } else { end };
                lexemes.push(Lexeme { terminal, start, end });
            }
            return;
        }
        if let Some(terminal) = self.terminal_for_parser(terminal) {
            lexemes.push(Lexeme { terminal, start, end });
        }
    }

    /// Returns the terminal of a lexeme in the rules; `None` if it is ignored.
    pub(super) fn terminal_for_parser(&self, terminal: u32) -> Option<u32> {
        match terminal.checked_sub(self.terminals) {
            Some(terminal) => Some(terminal),
            None => (!self.is_ignored(terminal)).then_some(terminal),
        }
    }
}
