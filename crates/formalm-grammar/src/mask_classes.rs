//! Mask classes of a grammar automaton: each state is its own class, explored ahead of the input
//! under a rollback.

use std::cell::RefCell;
use std::sync::Arc;

use formalm_core::{ByteSet, Error, Machine, MaskClassId, Renewal, StateId};
use formalm_machines::{
    AcceptingMaskAutomaton, AcceptingVisitor, ApproximateClasses, CharRepetition, ClassAutomaton,
    ClassRenewal, ClassVisitor, HostConfiguration, LexemeEnd, LexemeStep, LexerContextId,
    LexerStateId, LexerTables, LexicalConfiguration, MaskShortcuts, MemberEnds, ParserStateId,
    ParserTables, StackPrefixId, StateClasses, StringClasses, SublanguageHost, SublanguagePosition,
    SublanguageTables, ValueClasses, self_loop_repetition,
};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::automaton::{GrammarAutomaton, LockedState};
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::Configuration;

/// The states of a grammar automaton as mask-equivalence classes.
#[derive(Debug)]
pub struct GrammarMaskClasses {
    automaton: Arc<GrammarAutomaton>,
}

impl GrammarMaskClasses {
    /// Returns the mask classes of an automaton.
    pub fn new(automaton: Arc<GrammarAutomaton>) -> GrammarMaskClasses {
        GrammarMaskClasses { automaton }
    }

    fn scratch(&self) -> ScratchClasses<'_> {
        let mut shared = self.automaton.lock();
        shared.core.checkpoint();
        ScratchClasses {
            session: RefCell::new(ScratchSession { shared, successors: FxHashMap::default() }),
        }
    }
}

impl StateClasses for GrammarMaskClasses {
    type Machine = GrammarAutomaton;

    fn machine(&self) -> &Arc<GrammarAutomaton> {
        &self.automaton
    }

    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        Ok(MaskClassId::from_number(state.number()))
    }

    #[inline]
    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        Some(MaskClassId::from_number(state.number()))
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        purpose.visit(&self.scratch())
    }

    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        purpose: P,
    ) -> Result<P::Result, Error> {
        Ok(purpose.visit(&self.scratch(), MaskClassId::from_number(state.number())))
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

impl MemberEnds for GrammarMaskClasses {}

impl ApproximateClasses for GrammarMaskClasses {}

impl ClassRenewal for GrammarMaskClasses {
    fn over_scratch(&self, scratch: &Arc<GrammarAutomaton>) -> Option<GrammarMaskClasses> {
        Some(GrammarMaskClasses::new(Arc::clone(scratch)))
    }

    fn fresh_copy(&self) -> Result<Option<GrammarMaskClasses>, Error> {
        Ok(self.automaton.fresh_copy()?.map(|one| GrammarMaskClasses::new(Arc::new(one))))
    }
}

/// A lookahead session. Its states and stacks are rolled back on drop, because a mask visits many
/// more states than inputs reach.
#[derive(Debug)]
struct ScratchClasses<'a> {
    session: RefCell<ScratchSession<'a>>,
}

#[derive(Debug)]
struct ScratchSession<'a> {
    shared: LockedState<'a>,
    /// Successors by class and byte class; zero is unknown.
    successors: FxHashMap<u32, Box<[u32]>>,
}

impl Drop for ScratchClasses<'_> {
    fn drop(&mut self) {
        self.session.get_mut().shared.core.rollback();
    }
}

impl AcceptingMaskAutomaton for ScratchClasses<'_> {
    fn is_accepting_class(&self, key: MaskClassId) -> Result<bool, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        core.is_accepting(key.number() - 1)
    }
}

impl ClassAutomaton for ScratchClasses<'_> {
    type LexicalMachine = Self;

    fn lexical_machine(&self) -> Option<&Self> {
        Some(self)
    }

    fn step(&self, key: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        let ScratchSession { shared, successors } = &mut *self.session.borrow_mut();
        let core = &mut shared.core;
        let class = usize::from(core.reader.lexer.threads.classes()[usize::from(byte)]);
        let width = core.reader.lexer.threads.representatives().len();
        let row = successors.entry(key.number()).or_insert_with(|| vec![0; width].into());
        if row[class] == 0 {
            core.meter().reset();
            row[class] = core.step(key.number() - 1, byte)? + 1;
        }
        let next = row[class];
        Ok((next != NOTHING + 1).then(|| MaskClassId::from_number(next)))
    }

    fn live_bytes(&self, key: MaskClassId) -> Result<ByteSet, Error> {
        let mut live = ByteSet::default();
        for byte in 0..=255 {
            if self.step(key, byte)?.is_some() {
                live.insert(byte);
            }
        }
        Ok(live)
    }

    /// Detects a lexeme in progress, such as a string or a name: the characters on which the class
    /// loops. The loop is left from the class itself.
    fn char_repetition(&self, key: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        self_loop_repetition(self, key, 1)
    }
}

impl MaskShortcuts for ScratchClasses<'_> {}

impl StringClasses for ScratchClasses<'_> {}

impl ValueClasses for ScratchClasses<'_> {}

impl LexerTables for ScratchClasses<'_> {
    fn lexer_start(&self, context: LexerContextId, left: u32) -> Option<LexerStateId> {
        let core = &mut self.session.borrow_mut().shared.core;
        (context.0 != NOTHING)
            .then(|| LexerStateId(core.reader.lexer.states.intern(context.0, left)))
    }

    fn threads_fit(&self, context: LexerContextId, left: u32) -> Result<bool, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        Ok(!core.reader.lexer.needs_viability_checks
            || core.reader.fits_separator(context.0, left)?)
    }

    #[inline]
    fn read_byte(&self, scan: LexerStateId, byte: u8) -> Result<LexemeStep, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        let ConfigurationReader { lexer, parser, .. } = &mut core.reader;
        let outcome = lexer.step(scan.0, byte, &mut parser.gss.meter)?;
        let on = (outcome.continued != NOTHING).then_some(LexerStateId(outcome.continued));
        Ok(LexemeStep { next: on, ends: outcome.endings, context_dependent: outcome.unproven })
    }

    fn canonical_state(&self, lexer_state: LexerStateId) -> LexerStateId {
        let core = &mut self.session.borrow_mut().shared.core;
        let ConfigurationReader { lexer, parser, .. } = &mut core.reader;
        LexerStateId(lexer.canonical_state(lexer_state.0, &mut parser.gss.meter))
    }

    fn without_redundant_threads(&self, threads: u32) -> u32 {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        core.reader.lexer.threads.without_redundant(threads)
    }

    fn lexeme_ends(&self, endings: u32) -> Arc<[LexemeEnd]> {
        self.session.borrow().shared.core.reader.lexer.states.endings(endings)
    }

    fn step_threads(&self, left: u32, byte: u8) -> Result<Option<u32>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        core.reader.step_negative_threads(left, byte)
    }
}

impl ParserTables for ScratchClasses<'_> {
    fn configurations(&self, key: MaskClassId) -> Result<Option<Vec<LexicalConfiguration>>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        if core.reader.lexer.needs_viability_checks && !core.reader.lexer.proof.exists() {
            return Ok(None);
        }
        let mut all = Vec::new();
        for configuration in core.states.get(key.number() - 1) {
            if configuration.is_in_sublanguage() {
                continue;
            }
            core.meter().reset();
            if core.reader.lexer.needs_viability_checks
                && !core.is_completable_at(configuration.parser_state)?
            {
                return Ok(None);
            }
            let is_between = configuration.is_between();
            let lexeme = match is_between {
                true => core.reader.context(configuration.parser_state)?,
                false => configuration.lexeme,
            };
            let threads = configuration.negative_threads;
            if is_between && !core.reader.fits_separator(lexeme, threads)? {
                return Ok(None);
            }
            all.push(LexicalConfiguration {
                lexer_state: LexerStateId(core.reader.lexer.states.intern(lexeme, threads)),
                parser_state: ParserStateId(configuration.parser_state),
                between: is_between.then_some(threads),
            });
        }
        Ok(Some(all))
    }

    fn lexer_context(&self, place: ParserStateId) -> Result<LexerContextId, Error> {
        self.session.borrow_mut().shared.core.reader.context(place.0).map(LexerContextId)
    }

    fn is_completable(&self, place: ParserStateId) -> Result<bool, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        Ok(!core.reader.lexer.needs_viability_checks || core.is_completable_at(place.0)?)
    }

    fn after_terminal(
        &self,
        place: ParserStateId,
        terminal: u32,
    ) -> Result<Option<ParserStateId>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        let place = core.reader.parser.shift_lexeme(place.0, terminal)?;
        Ok((place != NOTHING).then_some(ParserStateId(place)))
    }

    fn stack_prefix(&self, place: ParserStateId, depth: u32) -> Option<StackPrefixId> {
        self.session
            .borrow_mut()
            .shared
            .core
            .reader
            .parser
            .prefix_of(place.0, depth)
            .map(StackPrefixId)
    }

    fn prefix_representative(&self, outline: StackPrefixId) -> ParserStateId {
        ParserStateId(
            self.session.borrow_mut().shared.core.reader.parser.state_of_prefix(outline.0),
        )
    }
}

impl SublanguageTables for ScratchClasses<'_> {
    fn has_sublanguages(&self) -> bool {
        !self.session.borrow().shared.core.reader.sublanguages.is_empty()
    }

    fn sublanguage_positions(
        &self,
        key: MaskClassId,
    ) -> Result<Option<Vec<SublanguagePosition>>, Error> {
        let core = &self.session.borrow().shared.core;
        let mut all = Vec::new();
        for configuration in core.states.get(key.number() - 1) {
            if !configuration.is_in_sublanguage() {
                continue;
            }
            if configuration.negative_threads != NOTHING {
                return Ok(None);
            }
            let (terminal, state) = core.reader.sublanguages.at(configuration.lexeme);
            let parser_state = ParserStateId(configuration.parser_state);
            all.push(SublanguagePosition { terminal, state, parser_state });
        }
        Ok(Some(all))
    }

    fn class_after_sublanguage(
        &self,
        position: &SublanguagePosition,
    ) -> Result<Option<MaskClassId>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.meter().reset();
        // Viable, because the position is.
        let after = core.reader.parser.shift_lexeme(position.parser_state.0, position.terminal)?;
        let after = (after != NOTHING).then(|| Configuration::between(after, NOTHING));
        Ok(after.map(|after| MaskClassId::from_number(core.states.intern(&[after]) + 1)))
    }

    fn class_outside_sublanguages(&self, key: MaskClassId) -> Option<MaskClassId> {
        let core = &mut self.session.borrow_mut().shared.core;
        let mut outside = core.states.get(key.number() - 1);
        outside.retain(|one| !one.is_in_sublanguage());
        (!outside.is_empty()).then(|| MaskClassId::from_number(core.states.intern(&outside) + 1))
    }

    fn sublanguages_at(&self, parser_state: ParserStateId) -> Result<Vec<u32>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        if core.reader.sublanguages.is_empty() {
            return Ok(Vec::new());
        }
        core.meter().reset();
        core.reader.sublanguages_at(parser_state.0)
    }
}

impl SublanguageHost for GrammarMaskClasses {
    fn sublanguage_machines(&self) -> Vec<(u32, Arc<dyn Machine>)> {
        self.automaton.lock().core.reader.sublanguages.all_machines()
    }

    fn host_configurations(&self, state: StateId) -> Vec<HostConfiguration> {
        let core = &self.automaton.lock().core;
        let configurations = core.states.get(state.number() - 1).into_iter();
        configurations
            .map(|one| {
                let (parser_state, threads) = (one.parser_state, one.negative_threads);
                match one.is_in_sublanguage() {
                    true => HostConfiguration {
                        sublanguage: Some(core.reader.sublanguages.machine_position(one.lexeme)),
                        rest: [NOTHING, parser_state, threads],
                    },
                    false => HostConfiguration {
                        sublanguage: None,
                        rest: [one.lexeme, parser_state, threads],
                    },
                }
            })
            .collect()
    }
}
