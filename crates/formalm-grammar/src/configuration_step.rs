//! The transition function: one byte in every configuration of a state.
//!
//! A configuration steps its lexer state. Where a lexeme ends, its terminal is shifted on the
//! stacks; where it continues, the parser state stays. Configurations without a completion are
//! dropped, so every state is live.

use formalm_core::{Error, StepBudget};

use crate::grammar::Lexing;
use crate::grammar_state::{Configuration, GrammarState};
use crate::list_interner::NOTHING;

impl GrammarState {
    /// Returns the state after a byte, without the configurations that have no completion.
    pub(crate) fn step(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        if let Some(next) = self.step_inside_lexeme(state, byte)? {
            return Ok(next);
        }
        // This buffer is reused: allocating it would dominate the cost of reading.
        let mut next = std::mem::take(&mut self.spare_configurations);
        next.clear();
        for at in 0..self.configuration_count(state) {
            self.push_successors(self.configuration(state, at), byte, &mut next)?;
        }
        if self.needs_viability_checks {
            self.retain_viable(&mut next)?;
        }
        self.normalize_configurations(&mut next);
        let state = self.state(&next);
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
        if self.configuration_count(state) != 1 || !self.sublanguages.is_empty() {
            return Ok(None);
        }
        let Configuration { mut lexeme, parser_state, negative_threads } =
            self.configuration(state, 0);
        if lexeme == NOTHING {
            lexeme = self.context(parser_state)?;
        }
        let lexer_state = self.lexer_states.intern(lexeme, negative_threads);
        let outcome = self.step_lexer_state(lexer_state, byte)?;
        if outcome.continued == NOTHING || outcome.endings != NOTHING {
            return Ok(None);
        }
        if self.needs_viability_checks
            && (outcome.unproven || !self.is_completable_at(parser_state)?)
        {
            return Ok(None);
        }
        self.gss.meter.spend(1)?;
        let (lexeme, negative_threads) = self.lexer_states.pair(outcome.continued);
        Ok(Some(self.states.intern(&[lexeme, parser_state, negative_threads])))
    }

    /// Returns the state after a byte. It may contain dead configurations, except those already
    /// known to be dead.
    pub(crate) fn step_unchecked(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        let configurations = self.configurations(state);
        let mut next = self.successors(&configurations, byte)?;
        next.retain(|one| self.viable.get(one) != Some(&false));
        self.normalize_configurations(&mut next);
        Ok(self.state(&next))
    }

    /// Returns `true` if the grammar accepts `text`, without testing prefixes for viability.
    pub(crate) fn is_member(&mut self, text: &[u8]) -> Result<bool, Error> {
        let mut configurations = self.start_configurations()?;
        let patience = StepBudget::new(self.gss.meter.total());
        for (read, &byte) in text.iter().enumerate() {
            self.gss.meter.reset();
            configurations = self.successors(&configurations, byte)?;
            self.normalize_configurations(&mut configurations);
            patience.check(self.gss.meter.total(), read)?;
        }
        self.gss.meter.reset();
        for configuration in configurations {
            if self.accepts(configuration)? {
                return Ok(true);
            }
        }
        Ok(false)
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
        if self.lexing == Lexing::Any {
            self.merge_stacks(configurations);
        }
        configurations.sort_unstable();
        configurations.dedup();
    }

    /// Drops the configurations that have no completion.
    pub(crate) fn retain_viable(
        &mut self,
        configurations: &mut Vec<Configuration>,
    ) -> Result<(), Error> {
        let mut kept = 0;
        for at in 0..configurations.len() {
            if self.is_viable(configurations[at])? {
                configurations[kept] = configurations[at];
                kept += 1;
            }
        }
        configurations.truncate(kept);
        Ok(())
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
        let lexer_state = self.lexer_states.intern(lexeme, negative_threads);
        let outcome = self.step_lexer_state(lexer_state, byte)?;
        if outcome.endings != NOTHING {
            for at in 0..self.lexer_states.ending_count(outcome.endings) {
                let ending = self.lexer_states.ending_at(outcome.endings, at);
                if let Some(next_byte) = next_byte
                    && self.step_negative_threads(ending.negative_threads, next_byte)?.is_none()
                {
                    continue;
                }
                let parser_state = self.shift_lexeme(parser_state, ending.terminal)?;
                if parser_state != NOTHING {
                    next(
                        Configuration::between(parser_state, ending.negative_threads),
                        Some(ending.terminal),
                    );
                }
            }
        }
        if outcome.continued != NOTHING {
            let (lexeme, negative_threads) = self.lexer_states.pair(outcome.continued);
            next(Configuration { lexeme, parser_state, negative_threads }, None);
        }
        self.gss.meter.spend(1)
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
                        self.gss.union(last.parser_state, configuration.parser_state);
                }
                _ => union.push(configuration),
            }
        }
        *configurations = union;
    }

    /// Returns `true` if the input may end in a configuration.
    pub(crate) fn accepts(&mut self, configuration: Configuration) -> Result<bool, Error> {
        match configuration.is_between() {
            true => Ok(self.lexer.may_end(configuration.negative_threads)
                && self.may_end(configuration.parser_state)?),
            // A sublanguage that ends here has a configuration of its own.
            false if configuration.is_in_sublanguage() => Ok(false),
            false => self.may_end_inside_lexeme(configuration),
        }
    }
}
