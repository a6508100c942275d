//! External parsers: sublanguages that know what they reject but not what leads to a member.
//!
//! Such a machine runs a user's program, which may call back and take arbitrarily long. It is
//! therefore never called while the grammar is locked. If an answer is missing, the step stops, the
//! parser is queried without the lock, and the step is repeated. Masks read many strings that will
//! never be generated; they use machines of their own in a `SeparatedState`, which are dropped afterwards.
//!
//! Whatever a parser does not reject is assumed to lead to a member and to outlive negative
//! threads. A search that relies on this assumption without finding an end leaves its question
//! open, and the configuration is not rejected.

use std::sync::Arc;

use formalm_core::{Error, Machine, StateId};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::automaton::GrammarAutomaton;
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::Configuration;
use crate::grammar_state::GrammarState;

/// The state after a byte, and whether a member ends there; `None` if the byte is rejected.
type ParserAnswer = Option<(StateId, bool)>;

/// A terminal, a state of its machine, and a byte.
type ParserQuery = (u32, StateId, u8);

/// The treatment of a step that an external parser must decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerMode {
    /// Look the answer up; stop the step if it is missing.
    #[default]
    Lookup,
    /// Assume that a member ends after the byte, because this cannot be searched.
    AssumeEnd,
    /// Leave the step out; the caller performs it.
    Skip,
}

/// The external parsers, and their answers so far.
#[derive(Debug, Default)]
pub(crate) struct ParserAnswers {
    is_external: Vec<bool>,
    answers: FxHashMap<(u32, u32, u8), ParserAnswer>,
    pending_query: Option<ParserQuery>,
    pub(crate) mode: AnswerMode,
    /// `true` if a member was assumed to end since this flag was last reset.
    pub(crate) assumed: bool,
}

impl ParserAnswers {
    pub(crate) fn new(is_external: Vec<bool>) -> ParserAnswers {
        ParserAnswers { is_external, ..ParserAnswers::default() }
    }

    pub(crate) fn is_external(&self, terminal: u32) -> bool {
        self.is_external.get(terminal as usize).is_some_and(|&asked| asked)
    }

    fn is_empty(&self) -> bool {
        !self.is_external.contains(&true)
    }

    /// Starts to assume that members end. Returns the previous mode.
    pub(crate) fn assume_ends(&mut self) -> AnswerMode {
        std::mem::replace(&mut self.mode, AnswerMode::AssumeEnd)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.answers.capacity() * 24
    }
}

/// A position in an external parser, or a possible start of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExternalParserState {
    /// The terminal of the parser.
    pub terminal: u32,
    /// The state of its machine, or of a substitute.
    pub state: StateId,
    /// The substitute machine, by the caller's numbering; zero is the terminal's own machine.
    pub machine: u32,
    /// `true` if part of it was read; otherwise it may start here.
    pub has_begun: bool,
    parser_state: u32,
    negative_threads: u32,
}

/// A state of the grammar automaton with its positions in external parsers listed separately.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeparatedState {
    other: Vec<Configuration>,
    external: Vec<ExternalParserState>,
}

impl SeparatedState {
    /// Returns the positions in external parsers, including possible starts.
    pub fn external_states(&self) -> &[ExternalParserState] {
        &self.external
    }

    /// Returns the positions mutably, to substitute other machines for those of the grammar.
    pub fn external_states_mut(&mut self) -> &mut [ExternalParserState] {
        &mut self.external
    }

    /// Returns `true` if some configuration lies outside external parsers.
    pub fn has_other_configurations(&self) -> bool {
        !self.other.is_empty()
    }
}

impl ConfigurationReader {
    /// As [`ConfigurationReader::step_sublanguages`], for an external parser.
    pub(crate) fn step_external_parser(
        &mut self,
        (terminal, state): (u32, StateId),
        (parser_state, negative_threads): (u32, u32),
        byte: u8,
        next: &mut impl FnMut(Configuration, Option<u32>),
    ) -> Result<(), Error> {
        let answers = &mut self.sublanguages.answers;
        if answers.mode == AnswerMode::Skip {
            return Ok(());
        }
        if answers.mode == AnswerMode::AssumeEnd {
            let after = self.parser.shift_lexeme(parser_state, terminal)?;
            if after != NOTHING {
                self.sublanguages.answers.assumed = true;
                next(Configuration::between(after, NOTHING), Some(terminal));
            }
            return Ok(());
        }
        let Some(&answer) = answers.answers.get(&(terminal, state.number(), byte)) else {
            answers.pending_query = Some((terminal, state, byte));
            return Err(Error::Interrupted);
        };
        let Some((state, is_end)) = answer else { return Ok(()) };
        let Some(left) = self.step_negative_threads(negative_threads, byte)? else { return Ok(()) };
        if is_end {
            let after = self.parser.shift_lexeme(parser_state, terminal)?;
            if after != NOTHING {
                next(Configuration::between(after, left), Some(terminal));
            }
        }
        let lexeme = self.sublanguages.position(terminal, state);
        next(Configuration { lexeme, parser_state, negative_threads: left }, None);
        Ok(())
    }

    /// Separates the positions in external parsers, and adds those that may start.
    fn separate(&mut self, configurations: Vec<Configuration>) -> Result<SeparatedState, Error> {
        let mut separated = SeparatedState {
            other: Vec::with_capacity(configurations.len()),
            external: Vec::new(),
        };
        for configuration in configurations {
            let Configuration { lexeme, parser_state, negative_threads } = configuration;
            if configuration.is_in_sublanguage() {
                let (terminal, state) = self.sublanguages.at(lexeme);
                if self.sublanguages.answers.is_external(terminal) {
                    let (machine, is_begun) = (0, true);
                    let one = ExternalParserState {
                        terminal,
                        state,
                        machine,
                        has_begun: is_begun,
                        parser_state,
                        negative_threads,
                    };
                    separated.external.push(one);
                    continue;
                }
            }
            separated.other.push(configuration);
            if configuration.is_between() {
                separated.external.extend(self.possible_starts(parser_state, negative_threads)?);
            }
        }
        Ok(separated)
    }

    /// Returns the external parsers that may start in a parser state.
    fn possible_starts(
        &mut self,
        parser_state: u32,
        negative_threads: u32,
    ) -> Result<Vec<ExternalParserState>, Error> {
        let terminals = self.sublanguages_at(parser_state)?.into_iter();
        let asked = terminals.filter(|&one| self.sublanguages.answers.is_external(one));
        let begin = asked.filter_map(|terminal| {
            let state = self.sublanguages.machine(terminal)?.start();
            Some(ExternalParserState {
                terminal,
                state,
                machine: 0,
                has_begun: false,
                parser_state,
                negative_threads,
            })
        });
        Ok(begin.collect())
    }
}

impl GrammarState {
    /// Returns the separated state after a byte, given the parsers' `answers`.
    fn separated_after(
        &mut self,
        separated: &SeparatedState,
        byte: u8,
        answers: &[ParserAnswer],
    ) -> Result<SeparatedState, Error> {
        let mut other = self.reader.successors(&separated.other, byte)?;
        let mut begun = Vec::new();
        for (&one, answer) in separated.external.iter().zip(answers) {
            let &Some((state, is_end)) = answer else { continue };
            let Some(negative_threads) =
                self.reader.step_negative_threads(one.negative_threads, byte)?
            else {
                continue;
            };
            let after = self.reader.parser.shift_lexeme(one.parser_state, one.terminal)?;
            if after == NOTHING {
                continue;
            }
            if is_end {
                other.push(Configuration::between(after, negative_threads));
            }
            if !self.reader.lexer.needs_viability_checks
                || self
                    .search
                    .is_viable(Configuration::between(after, NOTHING), &mut self.reader)?
            {
                begun.push(ExternalParserState { state, has_begun: true, negative_threads, ..one });
            }
        }
        if self.reader.lexer.needs_viability_checks {
            self.search.retain_viable(&mut other, &mut self.reader)?;
        }
        self.reader.normalize_configurations(&mut other);
        let mut separated = self.reader.separate(other)?;
        begun.sort_unstable();
        begun.dedup();
        separated.external.extend(begun);
        Ok(separated)
    }
}

impl GrammarAutomaton {
    /// Returns `true` if some sublanguage is an external parser.
    pub(crate) fn has_external_parsers(&self) -> bool {
        self.asks
    }

    /// Runs `work` under the lock, and repeats it after each missing answer was obtained.
    pub(crate) fn with_answers<T>(
        &self,
        mut work: impl FnMut(&mut GrammarState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let query = {
                let core = &mut self.lock().core;
                let done = work(core);
                match core.reader.sublanguages.answers.pending_query.take() {
                    Some(query) if done.is_err() => query,
                    _ => return done,
                }
            };
            let (terminal, state, byte) = query;
            let Some(machine) = self.sublanguage_machine(terminal) else {
                return Err(Error::Interrupted);
            };
            let answer = machine.step_with_acceptance(state, byte)?;
            let answers = &mut self.lock().core.reader.sublanguages.answers;
            answers.answers.insert((terminal, state.number(), byte), answer);
        }
    }

    /// Returns the state after `text`. If `text` is rejected, or ends inside a unit of an external
    /// parser, returns the length of the longest prefix that can be read and rested after.
    pub(crate) fn walk_with_external_parsers(
        &self,
        mut state: StateId,
        text: &[u8],
    ) -> Result<Result<StateId, usize>, Error> {
        let mut accepted = 0;
        for (at, &byte) in text.iter().enumerate() {
            match self.next(state, byte)? {
                Some(next) => state = next,
                None => return Ok(Err(accepted)),
            }
            if self.is_at_boundary(state) {
                accepted = at + 1;
            }
        }
        if accepted < text.len() {
            return Ok(Err(accepted));
        }
        Ok(Ok(state))
    }

    /// Returns the machine of a sublanguage.
    pub fn sublanguage_machine(&self, terminal: u32) -> Option<Arc<dyn Machine>> {
        self.lock().core.reader.sublanguages.machine(terminal)
    }

    /// Returns a state with its positions in external parsers separated.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn separated_state(&self, state: StateId) -> Result<SeparatedState, Error> {
        let core = &mut self.lock().core;
        core.meter().reset();
        let configurations = core.states.get(state.number() - 1);
        core.reader.separate(configurations)
    }

    /// Returns the separated state after a byte; `None` if it has no completion. `answers` holds,
    /// for each of `external_states`, the next state and whether a member ends there.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn separated_step(
        &self,
        separated: &SeparatedState,
        byte: u8,
        answers: &[Option<(StateId, bool)>],
    ) -> Result<Option<SeparatedState>, Error> {
        let core = &mut self.lock().core;
        core.meter().reset();
        let before =
            std::mem::replace(&mut core.reader.sublanguages.answers.mode, AnswerMode::Skip);
        let after = core.separated_after(separated, byte, answers);
        core.reader.sublanguages.answers.mode = before;
        let is_there = |after: &SeparatedState| {
            after.has_other_configurations() || after.external.iter().any(|one| one.has_begun)
        };
        Ok(Some(after?).filter(is_there))
    }

    /// Returns `true` if input may be split after a state, i.e. it is not inside an indivisible
    /// unit of an external parser.
    pub(crate) fn is_at_boundary(&self, state: StateId) -> bool {
        let external: Vec<(u32, StateId)> = {
            let core = &self.lock().core;
            let configurations = core.states.get(state.number() - 1);
            if configurations.iter().any(|one| !one.is_in_sublanguage()) {
                return true;
            }
            configurations.iter().map(|one| core.reader.sublanguages.at(one.lexeme)).collect()
        };
        external.into_iter().any(|(terminal, state)| {
            self.sublanguage_machine(terminal).is_none_or(|machine| machine.is_char_boundary(state))
        })
    }
}

impl ConfigurationReader {
    /// Returns `true` if some sublanguage is an external parser.
    pub(crate) fn has_external_parsers(&self) -> bool {
        !self.sublanguages.answers.is_empty()
    }
}
