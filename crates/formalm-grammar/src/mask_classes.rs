//! Mask classes of a grammar automaton: each state is its own class, explored ahead of the input
//! under a rollback.

use std::cell::RefCell;
use std::sync::Arc;

use formalm_automata::{
    ByteSet, Context, EndPurpose, EndSteps, Ending, Error, KeyId, Keys, Lexemes, Machine, Outline,
    Place, Progress, Purpose, Repetition, Scan, StateId, Steps, loops_of,
};
use rustc_hash::FxHashMap;

use crate::automaton::{GrammarAutomaton, LockedState};
use crate::list_interner::NOTHING;

/// The states of a grammar automaton as mask-equivalence classes.
#[derive(Debug)]
pub struct GrammarKeys {
    automaton: Arc<GrammarAutomaton>,
}

impl GrammarKeys {
    /// Returns the mask classes of an automaton.
    pub fn new(automaton: Arc<GrammarAutomaton>) -> GrammarKeys {
        GrammarKeys { automaton }
    }

    fn scratch(&self) -> ScratchClasses<'_> {
        let mut shared = self.automaton.lock();
        shared.core.checkpoint();
        ScratchClasses {
            session: RefCell::new(ScratchSession { shared, successors: FxHashMap::default() }),
        }
    }
}

impl Keys for GrammarKeys {
    type Machine = GrammarAutomaton;

    fn machine(&self) -> &Arc<GrammarAutomaton> {
        &self.automaton
    }

    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        Ok(KeyId::from_number(state.number()))
    }

    #[inline]
    fn known_key(&self, state: StateId) -> Option<KeyId> {
        Some(KeyId::from_number(state.number()))
    }

    fn over(&self, scratch: &Arc<GrammarAutomaton>) -> Option<GrammarKeys> {
        Some(GrammarKeys::new(Arc::clone(scratch)))
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        purpose.read(&self.scratch())
    }

    fn read_ends<P: EndPurpose>(&self, state: StateId, purpose: P) -> Result<P::Result, Error> {
        Ok(purpose.read(&self.scratch(), KeyId::from_number(state.number())))
    }

    fn renewed(&self) -> Result<Option<GrammarKeys>, Error> {
        Ok(self.automaton.renewed()?.map(|one| GrammarKeys::new(Arc::new(one))))
    }

    fn memory_bytes(&self) -> usize {
        0
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

impl EndSteps for ScratchClasses<'_> {
    fn is_end(&self, key: KeyId) -> Result<bool, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.gss.meter.reset();
        core.is_accepting(key.number() - 1)
    }
}

impl Steps for ScratchClasses<'_> {
    type Lexemes = Self;

    fn lexemes(&self) -> Option<&Self> {
        Some(self)
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let ScratchSession { shared, successors } = &mut *self.session.borrow_mut();
        let core = &mut shared.core;
        let class = usize::from(core.lexer.classes()[usize::from(byte)]);
        let width = core.lexer.representatives().len();
        let row = successors.entry(key.number()).or_insert_with(|| vec![0; width].into());
        if row[class] == 0 {
            core.gss.meter.reset();
            row[class] = core.step(key.number() - 1, byte)? + 1;
        }
        let next = row[class];
        Ok((next != NOTHING + 1).then(|| KeyId::from_number(next)))
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
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
    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        loops_of(self, key, 1)
    }
}

impl Lexemes for ScratchClasses<'_> {
    fn readings(&self, key: KeyId) -> Result<Option<Vec<(Scan, Place)>>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        if !core.sublanguages.is_empty()
            || (core.needs_viability_checks && !core.dead_end_proof.exists())
        {
            return Ok(None);
        }
        let mut all = Vec::new();
        for configuration in core.configurations(key.number() - 1) {
            core.gss.meter.reset();
            if core.needs_viability_checks && !core.is_completable_at(configuration.parser_state)? {
                return Ok(None);
            }
            let lexeme = match configuration.is_between() {
                true => core.context(configuration.parser_state)?,
                false => configuration.lexeme,
            };
            if configuration.is_between()
                && !core.fits_separator(lexeme, configuration.negative_threads)?
            {
                return Ok(None);
            }
            let scan = core.lexer_states.intern(lexeme, configuration.negative_threads);
            all.push((Scan(scan), Place(configuration.parser_state)));
        }
        Ok(Some(all))
    }

    fn context(&self, place: Place) -> Result<Context, Error> {
        self.session.borrow_mut().shared.core.context(place.0).map(Context)
    }

    fn scan(&self, context: Context, left: u32) -> Option<Scan> {
        let core = &mut self.session.borrow_mut().shared.core;
        (context.0 != NOTHING).then(|| Scan(core.lexer_states.intern(context.0, left)))
    }

    fn fits(&self, context: Context, left: u32) -> Result<bool, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.gss.meter.reset();
        Ok(!core.needs_viability_checks || core.fits_separator(context.0, left)?)
    }

    #[inline]
    fn read(&self, scan: Scan, byte: u8) -> Result<Progress, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.gss.meter.reset();
        let outcome = core.step_lexer_state(scan.0, byte)?;
        let on = (outcome.continued != NOTHING).then_some(Scan(outcome.continued));
        Ok(Progress { on, endings: outcome.endings, doubtful: outcome.unproven })
    }

    fn endings(&self, endings: u32) -> Arc<[Ending]> {
        self.session.borrow().shared.core.lexer_states.endings(endings)
    }

    fn pending(&self, left: u32, byte: u8) -> Result<Option<u32>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.gss.meter.reset();
        core.step_negative_threads(left, byte)
    }

    fn is_certain(&self, place: Place) -> Result<bool, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.gss.meter.reset();
        Ok(!core.needs_viability_checks || core.is_completable_at(place.0)?)
    }

    fn after(&self, place: Place, terminal: u32) -> Result<Option<Place>, Error> {
        let core = &mut self.session.borrow_mut().shared.core;
        core.gss.meter.reset();
        let place = core.shift_lexeme(place.0, terminal)?;
        Ok((place != NOTHING).then_some(Place(place)))
    }

    fn outline(&self, place: Place, depth: u32) -> Option<Outline> {
        self.session.borrow_mut().shared.core.prefix_of(place.0, depth).map(Outline)
    }

    fn drawn(&self, outline: Outline) -> Place {
        Place(self.session.borrow_mut().shared.core.state_of_prefix(outline.0))
    }
}
