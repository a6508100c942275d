//! Machines that are asked: of a language that knows what it refuses and not what leads to a member.
//!
//! Such a machine runs a program, which may call back and may take as long as it likes. So it is
//! never called while the grammar is locked: reading a byte ends early where an answer is missing,
//! the answer is found without the lock, and the byte is read again. Masks read many texts that
//! nobody will write; they read on machines of their own ([`Ways`]), which are dropped afterwards.
//!
//! What is not refused is taken to end in a member, and to outlive what lexemes before it forbid. A
//! search that takes this for granted and goes on without an end leaves its question open: what it
//! was about is not refused either.

use std::sync::Arc;

use formalm_automata::{Error, Machine, StateId};
use rustc_hash::FxHashMap;

use crate::automaton::GrammarAutomaton;
use crate::interner::NOTHING;
use crate::state::{Configuration, GrammarState};

/// The state that a byte leads to, and whether a member ends there; none if it is refused.
type ParserAnswer = Option<(StateId, bool)>;

/// A terminal, a state of its machine and a byte.
type ParserQuery = (u32, StateId, u8);

/// What is done where a machine would have to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerMode {
    /// The answer is looked up; where it is missing, the work ends.
    #[default]
    Lookup,
    /// A member is taken to end behind the byte: whether one does cannot be searched.
    AssumeEnd,
    /// Left out, and read by whoever asks.
    Skip,
}

/// Which terminals are asked, and what they said.
#[derive(Debug, Default)]
pub(crate) struct ParserAnswers {
    is_external: Vec<bool>,
    answers: FxHashMap<(u32, u32, u8), ParserAnswer>,
    pending_query: Option<ParserQuery>,
    pub(crate) mode: AnswerMode,
    /// Whether a member was taken to end, since this was last unset.
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

    /// Takes members to end from now on; what was done before is returned.
    pub(crate) fn assume_ends(&mut self) -> AnswerMode {
        std::mem::replace(&mut self.mode, AnswerMode::AssumeEnd)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.answers.capacity() * 24
    }
}

/// Where a text is in a machine that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Within {
    /// The terminal that stands for it.
    pub terminal: u32,
    /// The state of its machine, or of one in place of it.
    pub state: StateId,
    /// Which machine is in place of the terminal's, by numbers of whoever puts it there; zero is
    /// the terminal's own.
    pub machine: u32,
    /// Whether some of it was read: otherwise it may begin here.
    pub is_begun: bool,
    parser_state: u32,
    negative_threads: u32,
}

/// Where a text may be, with machines that are asked told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ways {
    plain: Vec<Configuration>,
    within: Vec<Within>,
}

impl Ways {
    /// Where the text is in machines that are asked, or may begin in them.
    pub fn within(&self) -> &[Within] {
        &self.within
    }

    /// The same, to put other machines in place of those of the grammar.
    pub fn within_mut(&mut self) -> &mut [Within] {
        &mut self.within
    }

    /// Whether the text is in something else than a machine that is asked.
    pub fn is_elsewhere(&self) -> bool {
        !self.plain.is_empty()
    }
}

impl GrammarState {
    /// As [`Core::read_embedded`], of a machine that is asked.
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
            let after = self.after(parser_state, terminal)?;
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
            let after = self.after(parser_state, terminal)?;
            if after != NOTHING {
                next(Configuration::between(after, left), Some(terminal));
            }
        }
        let lexeme = self.sublanguages.position(terminal, state);
        next(Configuration { lexeme, parser_state, negative_threads: left }, None);
        Ok(())
    }

    /// Readings with those in machines that are asked, and those that such a machine may begin in,
    /// told apart.
    fn ways(&mut self, configurations: Vec<Configuration>) -> Result<Ways, Error> {
        let mut ways = Ways { plain: Vec::with_capacity(configurations.len()), within: Vec::new() };
        for configuration in configurations {
            let Configuration { lexeme, parser_state, negative_threads } = configuration;
            if configuration.is_in_sublanguage() {
                let (terminal, state) = self.sublanguages.at(lexeme);
                if self.sublanguages.answers.is_external(terminal) {
                    let (machine, is_begun) = (0, true);
                    let one = Within {
                        terminal,
                        state,
                        machine,
                        is_begun,
                        parser_state,
                        negative_threads,
                    };
                    ways.within.push(one);
                    continue;
                }
            }
            ways.plain.push(configuration);
            if configuration.is_between() {
                ways.within.extend(self.possible_starts(parser_state, negative_threads)?);
            }
        }
        Ok(ways)
    }

    /// The machines that are asked and may begin at a place.
    fn possible_starts(
        &mut self,
        parser_state: u32,
        negative_threads: u32,
    ) -> Result<Vec<Within>, Error> {
        let terminals = self.sublanguages_at(parser_state)?.into_iter();
        let asked = terminals.filter(|&one| self.sublanguages.answers.is_external(one));
        let begin = asked.filter_map(|terminal| {
            let state = self.sublanguages.machine(terminal)?.start();
            Some(Within {
                terminal,
                state,
                machine: 0,
                is_begun: false,
                parser_state,
                negative_threads,
            })
        });
        Ok(begin.collect())
    }

    /// Where a text is behind a byte, of which the machines that are asked said `answers`.
    fn ways_after(
        &mut self,
        ways: &Ways,
        byte: u8,
        answers: &[ParserAnswer],
    ) -> Result<Ways, Error> {
        let mut plain = self.successors(&ways.plain, byte)?;
        let mut begun = Vec::new();
        for (&one, answer) in ways.within.iter().zip(answers) {
            let &Some((state, is_end)) = answer else { continue };
            let Some(negative_threads) = self.step_negative_threads(one.negative_threads, byte)?
            else {
                continue;
            };
            let after = self.after(one.parser_state, one.terminal)?;
            if after == NOTHING {
                continue;
            }
            if is_end {
                plain.push(Configuration::between(after, negative_threads));
            }
            if !self.checked || self.is_viable(Configuration::between(after, NOTHING))? {
                begun.push(Within { state, is_begun: true, negative_threads, ..one });
            }
        }
        if self.checked {
            self.retain_viable(&mut plain)?;
        }
        self.normalize_configurations(&mut plain);
        let mut ways = self.ways(plain)?;
        begun.sort_unstable();
        begun.dedup();
        ways.within.extend(begun);
        Ok(ways)
    }
}

impl GrammarAutomaton {
    /// Whether some language in the rules is asked.
    pub(crate) fn has_external_parsers(&self) -> bool {
        self.asks
    }

    /// Does some work under the lock, and again whenever an answer was missing.
    pub(crate) fn with_answers<T>(
        &self,
        mut work: impl FnMut(&mut GrammarState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let query = {
                let core = &mut self.lock().core;
                let done = work(core);
                match core.sublanguages.answers.pending_query.take() {
                    Some(query) if done.is_err() => query,
                    _ => return done,
                }
            };
            let (terminal, state, byte) = query;
            let Some(machine) = self.asked(terminal) else { return Err(Error::Interrupted) };
            let answer = machine.step_told(state, byte)?;
            let answers = &mut self.lock().core.sublanguages.answers;
            answers.answers.insert((terminal, state.number(), byte), answer);
        }
    }

    /// The state after a text; if it goes wrong or ends in the midst of what is asked as a whole, how
    /// many of its bytes can be read and rested behind.
    pub(crate) fn walk_with_external_parsers(
        &self,
        mut state: StateId,
        text: &[u8],
    ) -> Result<Result<StateId, usize>, Error> {
        let mut good = 0;
        for (at, &byte) in text.iter().enumerate() {
            match self.next(state, byte)? {
                Some(next) => state = next,
                None => return Ok(Err(good)),
            }
            if self.is_at_boundary(state) {
                good = at + 1;
            }
        }
        if good < text.len() {
            return Ok(Err(good));
        }
        Ok(Ok(state))
    }

    /// The machine of a terminal that is an embedded language.
    pub fn asked(&self, terminal: u32) -> Option<Arc<dyn Machine>> {
        self.lock().core.sublanguages.machine(terminal)
    }

    /// Where a text is in a state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn ways_at(&self, state: StateId) -> Result<Ways, Error> {
        let core = &mut self.lock().core;
        core.gss.meter.reset();
        let configurations = core.configurations(state.number() - 1);
        core.ways(configurations)
    }

    /// Where it is behind a byte; `None` if no member goes on so. `answers` has for each of
    /// [`Ways::within`] the state that follows and whether a member ends there.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn ways_after(
        &self,
        ways: &Ways,
        byte: u8,
        answers: &[Option<(StateId, bool)>],
    ) -> Result<Option<Ways>, Error> {
        let core = &mut self.lock().core;
        core.gss.meter.reset();
        let before = std::mem::replace(&mut core.sublanguages.answers.mode, AnswerMode::Skip);
        let after = core.ways_after(ways, byte, answers);
        core.sublanguages.answers.mode = before;
        let is_there =
            |after: &Ways| after.is_elsewhere() || after.within.iter().any(|one| one.is_begun);
        Ok(Some(after?).filter(is_there))
    }

    /// Whether a text may rest in a state: not if it is in the midst of what is asked as a whole.
    pub(crate) fn is_at_boundary(&self, state: StateId) -> bool {
        let within: Vec<(u32, StateId)> = {
            let core = &self.lock().core;
            let configurations = core.configurations(state.number() - 1);
            if configurations.iter().any(|one| !one.is_in_sublanguage()) {
                return true;
            }
            configurations.iter().map(|one| core.sublanguages.at(one.lexeme)).collect()
        };
        within.into_iter().any(|(terminal, state)| {
            self.asked(terminal).is_none_or(|machine| machine.is_whole(state))
        })
    }
}

impl GrammarState {
    /// Whether languages in the rules are asked.
    pub(crate) fn has_external_parsers(&self) -> bool {
        !self.sublanguages.answers.is_empty()
    }
}
