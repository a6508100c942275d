//! Reading a byte in every configuration, without asking which configurations have a completion.
//!
//! ```text
//!                     ┌── Lexer         where a lexeme ends, as which terminal
//!  configuration ─────┼── Parser        the parser state after that terminal
//!                     └── Sublanguages  parts of the input that other machines read
//! ```
//!
//! A configuration steps its lexer state. Where a lexeme ends, the parser shifts its terminal; where
//! it continues, the parser state stays.

use formalm_core::{Error, memory_bytes};

use crate::NOTHING;
use crate::configurations::Configuration;
use crate::dead_end_proof::spellable_terminals::DeadEndProver;
use crate::grammar::Lexing;
use crate::gss::Gss;
use crate::gss::stack_shortest_path::NEVER;
use crate::indentation::balance_proof::LineBalanceProof;
use crate::indentation::min_bytes::line_ending_symbols;
use crate::lexer::Lexer;
use crate::lexer::thread_sets::ThreadKind;
use crate::limits::StepMeter;
use crate::normal_form::NormalizedGrammar;
use crate::parser::Parser;
use crate::sublanguages::Sublanguages;

/// Lexer, parser and sublanguages, and what they do together.
#[derive(Debug)]
pub(crate) struct ConfigurationReader {
    pub(crate) lexer: Lexer,
    pub(crate) parser: Parser,
    pub(crate) sublanguages: Sublanguages,
}

memory_bytes!(ConfigurationReader { lexer, parser, sublanguages });

impl ConfigurationReader {
    /// Stores the dead-end proof for the terminals in use, if there is one.
    pub(crate) fn prove_no_dead_ends(
        &mut self,
        normalized: &NormalizedGrammar,
        terminals: &[u32],
    ) -> Result<(), Error> {
        let ConfigurationReader { lexer, parser, sublanguages } = self;
        let Gss { lr0, meter, .. } = &mut parser.gss;
        if let Some(indentation) = &mut parser.indentation {
            let balance = LineBalanceProof::prove(normalized, lexer, meter)?;
            indentation.ends_lines = line_ending_symbols(lr0, &indentation.lines);
            let Some((needed_levels, line_ends)) = balance else { return Ok(()) };
            indentation.needed_levels = Some(needed_levels);
            lexer.line_ends = line_ends;
        }
        let (_, transitions) = lexer.proof_and_transitions(meter);
        lexer.proof = DeadEndProver { transitions, sublanguages, lr0, terminals }.prove()?;
        Ok(())
    }

    pub(crate) fn meter(&mut self) -> &mut StepMeter {
        &mut self.parser.gss.meter
    }

    /// Returns the configurations before any input.
    pub(crate) fn start_configurations(&mut self) -> Result<Vec<Configuration>, Error> {
        let parser_state = self.parser.start();
        if !self.lexer.rules.lines.as_ref().is_some_and(|lines| lines.is_python()) {
            return Ok(vec![Configuration::between(parser_state, NOTHING)]);
        }
        let lexeme = self.lexer.line_start(&mut self.parser.gss.meter)?;
        let negative_threads = self.lexer.threads.without_columns(lexeme);
        let at_line_start = Configuration { lexeme, parser_state, negative_threads: NOTHING };
        Ok(vec![Configuration::between(parser_state, negative_threads), at_line_start])
    }

    /// Returns the threads before a lexeme in a parser state.
    pub(crate) fn context(&mut self, parser_state: u32) -> Result<u32, Error> {
        let lines = self.parser.has_lines(parser_state);
        self.context_on(self.parser.stacks_of(parser_state), lines)
    }

    /// As [`ConfigurationReader::context`] for some stacks, where lines matter or not.
    pub(crate) fn context_on(&mut self, stacks: u32, lines: bool) -> Result<u32, Error> {
        let allowed = self.parser.gss.allowed(stacks)?;
        Ok(self.lexer.context_of(allowed, lines, &self.parser.gss.lr0.sets))
    }

    /// Returns the negative threads after a byte; `None` if one is violated.
    #[inline]
    pub(crate) fn step_negative_threads(
        &mut self,
        negative_threads: u32,
        byte: u8,
    ) -> Result<Option<u32>, Error> {
        let meter = &mut self.parser.gss.meter;
        self.lexer.threads.step_negative_threads(negative_threads, byte, meter)
    }

    /// Returns `true` if the dead-end proof shows that a lexeme can end on completable stacks.
    /// Between lexemes, the negative threads must also satisfy
    /// [`ConfigurationReader::fits_separator`].
    pub(crate) fn is_lexeme_safe(
        &mut self,
        lexeme: u32,
        negative_threads: u32,
    ) -> Result<bool, Error> {
        let meter = &mut self.parser.gss.meter;
        let (proof, mut transitions) = self.lexer.proof_and_transitions(meter);
        proof.is_lexeme_safe(lexeme, negative_threads, &mut transitions)
    }

    /// Returns `true` if completable stacks can be completed in a context despite these negative
    /// threads.
    pub(crate) fn fits_separator(
        &mut self,
        context: u32,
        negative_threads: u32,
    ) -> Result<bool, Error> {
        let meter = &mut self.parser.gss.meter;
        let (proof, mut transitions) = self.lexer.proof_and_transitions(meter);
        proof.fits_separator(context, negative_threads, &mut transitions)
    }

    /// Appends the successors of one configuration.
    pub(crate) fn push_successors(
        &mut self,
        configuration: Configuration,
        byte: u8,
        next: &mut Vec<Configuration>,
    ) -> Result<(), Error> {
        self.step_configuration(configuration, (byte, None), |configuration, _| {
            next.push(configuration)
        })
    }

    /// Appends the successors of one configuration, each with the terminal whose lexeme ends there,
    /// if any.
    pub(crate) fn push_successors_with_lexemes(
        &mut self,
        configuration: Configuration,
        byte: u8,
        next: &mut Vec<(Configuration, Option<u32>)>,
    ) -> Result<(), Error> {
        self.step_configuration(configuration, (byte, None), |configuration, ended| {
            next.push((configuration, ended))
        })
    }

    /// Appends the successors of one configuration, except those that `next_byte` would reject
    /// because a negative thread matches.
    pub(crate) fn push_successors_before(
        &mut self,
        configuration: Configuration,
        (byte, next_byte): (u8, u8),
        next: &mut Vec<Configuration>,
    ) -> Result<(), Error> {
        self.step_configuration(configuration, (byte, Some(next_byte)), |configuration, _| {
            next.push(configuration)
        })
    }

    #[inline]
    fn step_configuration(
        &mut self,
        configuration: Configuration,
        (byte, next_byte): (u8, Option<u8>),
        mut next: impl FnMut(Configuration, Option<u32>),
    ) -> Result<(), Error> {
        let Configuration { mut lexeme, parser_state, negative_threads } = configuration;
        if !self.sublanguages.is_empty()
            && (configuration.is_in_sublanguage() || configuration.is_between())
        {
            self.step_sublanguages(configuration, byte, &mut next)?;
            if configuration.is_in_sublanguage() {
                return Ok(());
            }
        }
        if configuration.is_between() {
            lexeme = self.context(parser_state)?;
        }
        let lexer_state = self.lexer.states.intern(lexeme, negative_threads);
        let outcome = self.lexer.step(lexer_state, byte, &mut self.parser.gss.meter)?;
        if outcome.endings != NOTHING {
            for at in 0..self.lexer.states.ending_count(outcome.endings) {
                let ending = self.lexer.states.ending_at(outcome.endings, at);
                if let Some(next_byte) = next_byte
                    && self.step_negative_threads(ending.negative_threads, next_byte)?.is_none()
                {
                    continue;
                }
                let parser_state = self.parser.shift_lexeme(parser_state, ending.terminal)?;
                if parser_state != NOTHING {
                    next(
                        Configuration::between(parser_state, ending.negative_threads),
                        Some(ending.terminal),
                    );
                }
            }
        }
        if outcome.continued != NOTHING {
            let (lexeme, negative_threads) = self.lexer.states.pair(outcome.continued);
            next(Configuration { lexeme, parser_state, negative_threads }, None);
        }
        self.meter().spend(1)
    }

    pub(crate) fn successors(
        &mut self,
        configurations: &[Configuration],
        byte: u8,
    ) -> Result<Vec<Configuration>, Error> {
        let mut next = Vec::with_capacity(configurations.len() + 1);
        for &configuration in configurations {
            self.push_successors(configuration, byte, &mut next)?;
        }
        Ok(next)
    }

    /// Sorts and deduplicates configurations, which is the canonical form of a state.
    pub(crate) fn normalize_configurations(&mut self, configurations: &mut Vec<Configuration>) {
        if self.lexer.rules.lexing == Lexing::Any {
            self.merge_stacks(configurations);
        }
        configurations.sort_unstable();
        configurations.dedup();
    }

    /// Merges configurations with equal lexeme and negative threads: their parser states, which are
    /// sets of stacks here, are united.
    fn merge_stacks(&mut self, configurations: &mut Vec<Configuration>) {
        configurations.sort_unstable_by_key(|one| (one.lexeme, one.negative_threads));
        let mut union: Vec<Configuration> = Vec::with_capacity(configurations.len());
        for &configuration in &*configurations {
            match union.last_mut() {
                Some(last)
                    if (last.lexeme, last.negative_threads)
                        == (configuration.lexeme, configuration.negative_threads) =>
                {
                    last.parser_state =
                        self.parser.gss.union(last.parser_state, configuration.parser_state);
                }
                _ => union.push(configuration),
            }
        }
        *configurations = union;
    }

    /// Returns `true` if the input may end in a configuration.
    pub(crate) fn accepts(&mut self, configuration: Configuration) -> Result<bool, Error> {
        match configuration.is_between() {
            true => Ok(self.lexer.threads.may_end(configuration.negative_threads)
                && self.parser.may_end(configuration.parser_state)?),
            // A sublanguage that ends here has a configuration of its own.
            false if configuration.is_in_sublanguage() => Ok(false),
            false => self.may_end_inside_lexeme(configuration),
        }
    }

    /// Returns `true` if the input may end inside a lexeme: in blank lines, the last of which may
    /// be open.
    pub(crate) fn may_end_inside_lexeme(
        &mut self,
        configuration: Configuration,
    ) -> Result<bool, Error> {
        let Configuration { lexeme, parser_state, negative_threads } = configuration;
        let threads = &self.lexer.threads;
        if !self.lexer.rules.lines.as_ref().is_some_and(|lines| lines.is_python())
            || !threads.may_end(negative_threads)
            || !threads.has_read_line_end(lexeme)
        {
            return Ok(false);
        }
        self.parser.may_end_after_line(parser_state)
    }

    /// Returns the minimum bytes that complete a configuration, [`NEVER`] if nothing does, as if
    /// lexemes did not compete. The result is exact with [`crate::Lexing::Any`].
    pub(crate) fn min_bytes(&mut self, configuration: Configuration) -> Result<u32, Error> {
        if configuration.is_between() {
            return self.parser.min_bytes(configuration.parser_state);
        }
        if configuration.is_in_sublanguage() {
            return self.sublanguage_min_bytes(configuration);
        }
        if self.may_end_inside_lexeme(configuration)? {
            return Ok(0);
        }
        let in_lines = self.parser.has_lines(configuration.parser_state);
        let mut min_bytes = None;
        for &thread in &*self.lexer.threads.lists.copy(configuration.lexeme) {
            if self.lexer.threads.kind(thread) != ThreadKind::Lexeme {
                continue;
            }
            let (terminal, own) =
                (self.lexer.threads.terminal(thread), self.lexer.threads.distance(thread)?);
            let bytes = match self.lexer.rules.ends_line(terminal) {
                true if in_lines => {
                    let column = self.lexer.threads.column(thread);
                    self.parser.line_min_bytes(configuration.parser_state, column)?.max(own)
                }
                true => self.parser.min_bytes(configuration.parser_state)?.saturating_add(own),
                false => {
                    let after = self.parser.shift_lexeme(configuration.parser_state, terminal)?;
                    self.parser.min_bytes(after)?.saturating_add(own)
                }
            };
            min_bytes = Some(min_bytes.unwrap_or(NEVER).min(bytes));
        }
        Ok(min_bytes.unwrap_or(NEVER - 1))
    }
}
