//! The lazy deterministic machine of a grammar.

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

use formalm_automata::{
    Beside, ByteSet, Completion, Error, Lock, Look, Machine, Remembered, Resource, StateId, Survey,
    exact_only, note_steps, part,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::completion::Completions;
use crate::grammar::{Grammar, Note, Rule};
use crate::interner::NOTHING;
use crate::limits::{Limits, check};
use crate::scratch_states::{Met, Own};
use crate::state::{Core, Useless};
use crate::transitions::{Rows, UNKNOWN};
use crate::unusable_alternatives::unusable;

/// What to ask instead where a language in the rules knows what it refuses alone.
const ASKED: &str = "is_viable(text) tells what is not refused";

/// No member continues so. A list of readings is the state of the next number.
pub(crate) const DEAD: u32 = 1;

const ACCEPTING: u32 = 1;
/// Whether a state is accepting was found out.
const FLAGGED: u32 = 2;

/// A lazy deterministic automaton over bytes with as many states as texts can tell apart; shared
/// freely between threads.
#[derive(Debug)]
pub struct GrammarAutomaton {
    /// What it was built from, to build it again.
    grammar: Arc<Grammar>,
    grown: Arc<Lock<Grown>>,
    /// Of a machine to look ahead with the states that it has met.
    own: Option<Own>,
    survey: Survey,
    pub(crate) classes: [u8; 256],
    pub(crate) rows: Rows,
    start: StateId,
    limits: Limits,
    notes: Vec<Note>,
    /// Every member is valid UTF-8.
    text: bool,
    /// Some language in the rules is asked, and knows what it refuses alone.
    pub(crate) asks: bool,
}

/// Most reasons that the refusal of an empty grammar names.
const NOTES: usize = 3;

/// Why a grammar has no member.
enum Empty {
    Rules,
    Lexemes,
}

impl Empty {
    /// The refusal of an empty grammar; `notes` tell which lexemes are never read.
    fn error(self, notes: &[Note]) -> Error {
        let (message, hint) = match self {
            Empty::Rules => (
                "no text is a member",
                "every way through the start rule comes back to it, or needs a terminal or a \
                 rule that has no texts",
            ),
            Empty::Lexemes => (
                "no text is cut into lexemes as it asks",
                "some longer lexeme always comes first, or what one looks ahead for never follows",
            ),
        };
        let why: Vec<&str> = notes.iter().take(NOTES).map(|note| note.message.as_str()).collect();
        let hint = if why.is_empty() { hint.to_owned() } else { why.join("; ") };
        let span = notes.first().and_then(|note| note.span);
        let message = format!("the grammar is empty: {message}");
        Error::Language { message, span, hint: Some(hint) }
    }
}

/// What is known beside a regular language, by each [`Look`].
#[derive(Debug)]
struct Looks([Option<Completions>; 3]);

impl Remembered for Looks {
    fn memory_bytes(&self) -> usize {
        self.0.iter().flatten().map(Completions::memory_bytes).sum()
    }
}

/// What changes while the machine grows.
#[derive(Debug)]
pub(crate) struct Grown {
    pub(crate) core: Box<Core>,
    pub(crate) live: FxHashMap<u32, ByteSet>,
}

/// What changes, locked. The steps that it takes are noted once it is let go.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    grown: MutexGuard<'a, Grown>,
    /// Of a machine to look ahead with the tables in whose place its own are.
    others: Option<MutexGuard<'a, Met>>,
    before: u64,
}

impl Deref for Locked<'_> {
    type Target = Grown;

    fn deref(&self) -> &Grown {
        &self.grown
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Grown {
        &mut self.grown
    }
}

impl Locked<'_> {
    fn swap(&mut self) {
        if let Some(others) = &mut self.others {
            self.grown.swap(others);
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.swap();
        note_steps(self.grown.core.stacks.meter.total().saturating_sub(self.before));
    }
}

impl GrammarAutomaton {
    /// The machine of a grammar.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if no text is a member or a terminal cannot be read as the grammar
    /// asks; [`Error::Limit`] if preparing it takes more than `limits`.
    pub fn new(grammar: &Grammar, limits: Limits) -> Result<GrammarAutomaton, Error> {
        match GrammarAutomaton::build(grammar, limits)? {
            Ok(automaton) => Ok(automaton),
            Err(empty) => Err(empty.error(&unusable(grammar, limits)?)),
        }
    }

    /// The machine of a grammar; `None` if no text is a member.
    ///
    /// # Errors
    ///
    /// As [`GrammarAutomaton::new`] otherwise.
    pub fn of(grammar: &Grammar, limits: Limits) -> Result<Option<GrammarAutomaton>, Error> {
        Ok(GrammarAutomaton::build(grammar, limits)?.ok())
    }

    fn build(grammar: &Grammar, limits: Limits) -> Result<Result<GrammarAutomaton, Empty>, Error> {
        let Some((mut core, useless)) = Core::new(grammar, limits)? else {
            return Ok(Err(Empty::Rules));
        };
        let mut notes = grammar.notes.clone();
        let needed: FxHashSet<&String> = grammar.needed.iter().collect();
        notes.extend(useless.into_iter().filter_map(|(rule, useless)| {
            let Rule { name, span, .. } = &grammar.rules[rule];
            let why = match useless {
                Useless::Unproductive => "derives no text",
                Useless::Unreachable if needed.contains(name) => return None,
                Useless::Unreachable => "is not needed by the start rule",
            };
            Some(Note { message: format!("the rule {name} {why}"), span: *span })
        }));
        let start = core.start()?;
        if start == NOTHING {
            return Ok(Err(Empty::Lexemes));
        }
        let automaton = GrammarAutomaton {
            grammar: Arc::new(grammar.clone()),
            classes: *core.lexer.classes(),
            rows: Rows::new(core.lexer.representatives().len()),
            start: StateId::from_number(start + 1),
            limits,
            notes,
            asks: core.asks(),
            text: grammar.terminals.iter().all(|one| {
                // The lexemes of a pattern are texts.
                match &one.embedded {
                    Some(embedded) => embedded.is_text,
                    None => one.language.is_text() || one.language.is_lexeme(),
                }
            }),
            grown: Arc::new(Lock::new(Grown { core, live: FxHashMap::default() })),
            own: None,
            survey: Survey::new(),
        };
        Ok(Ok(automaton))
    }

    /// Whether every member is valid UTF-8; `false` may also mean that it was not looked into.
    pub fn is_text(&self) -> bool {
        self.text
    }

    /// What the user should know about the grammar: rules of no use, and what the front-end noted.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Number of states kept so far.
    pub fn state_count(&self) -> usize {
        self.lock().core.states.len() - 1
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        // A panic while the lock was held leaves at worst something half remembered.
        let grown = self.grown.lock();
        let others = self.own.as_ref().map(Own::lock);
        let mut locked = Locked { before: grown.core.stacks.meter.total(), grown, others };
        locked.swap();
        locked
    }

    /// The state after a byte, found out if it is not known.
    pub(crate) fn next_in(&self, core: &mut Core, state: u32, byte: u8) -> Result<u32, Error> {
        let class = self.classes[usize::from(byte)];
        let next = self.known(state, class);
        if next != UNKNOWN {
            return Ok(next);
        }
        core.stacks.meter.reset();
        let next = core.step(state - 1, byte)? + 1;
        self.check_states(core)?;
        match self.rows.get(state, class) {
            UNKNOWN => self.rows.set(state, class, next),
            waypoint => self.rows.set_stands_for(waypoint, next),
        }
        Ok(next)
    }

    /// The state after a class of bytes, [`UNKNOWN`] if it was not found out.
    #[inline]
    pub(crate) fn known(&self, state: u32, class: u8) -> u32 {
        let next = self.rows.get(state, class);
        if Rows::is_waypoint(next) { self.rows.stands_for(next) } else { next }
    }

    pub(crate) fn check_states(&self, core: &Core) -> Result<(), Error> {
        check(Resource::States, core.states.len() as u64, self.limits.states)?;
        check(Resource::Bytes, core.states.memory_bytes() as u64, self.limits.bytes)
    }

    /// Finds out whether a state is accepting: where that is asked, which is not at each byte of a
    /// text nor at each token.
    fn flag(&self, state: u32) -> Result<bool, Error> {
        let core = &mut self.lock().core;
        core.stacks.meter.reset();
        let accepting = core.is_accepting(state - 1)?;
        self.rows.set_flags(state, if accepting { FLAGGED | ACCEPTING } else { FLAGGED });
        Ok(accepting)
    }

    /// The state after a byte.
    #[inline]
    pub(crate) fn next(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let next = match self.known(state.number(), self.classes[usize::from(byte)]) {
            UNKNOWN => self.asking(|core| self.next_in(core, state.number(), byte))?,
            next => next,
        };
        Ok((next != DEAD).then(|| StateId::from_number(next)))
    }
}

impl Core {
    /// The state before anything was read; [`NOTHING`] if no member is reachable.
    fn start(&mut self) -> Result<u32, Error> {
        let mut readings = self.start_readings()?;
        if self.checked {
            self.keep_viable(&mut readings)?;
        }
        Ok(self.state(&readings))
    }

    /// Bytes that some member continues with, nothing built being kept.
    fn live_bytes(&mut self, state: u32) -> Result<ByteSet, Error> {
        let mut live = vec![false; self.lexer.representatives().len()];
        for (at, byte) in self.lexer.representatives().to_vec().into_iter().enumerate() {
            self.stacks.meter.reset();
            live[at] = self.step(state, byte)? != NOTHING;
        }
        let mut set = ByteSet::default();
        for byte in 0..=255u8 {
            if live[usize::from(self.lexer.classes()[usize::from(byte)])] {
                set.insert(byte);
            }
        }
        Ok(set)
    }
}

impl Machine for GrammarAutomaton {
    fn start(&self) -> StateId {
        self.start
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        self.next(state, byte)
    }

    #[inline]
    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        match self.asks {
            true => self.walk_asking(state, text),
            false => self.walk_along(state, text),
        }
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        match self.rows.flags(state.number()) {
            0 => self.flag(state.number()),
            flags => Ok(flags & ACCEPTING != 0),
        }
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        if self.asks && !self.ways_at(state)?.within().is_empty() {
            // Those that nothing is known against.
            let mut all = ByteSet::default();
            (0..=255).for_each(|byte| all.insert(byte));
            return Ok(all);
        }
        let grown = &mut *self.lock();
        if let Some(&live) = grown.live.get(&state.number()) {
            return Ok(live);
        }
        grown.core.remember();
        let live = grown.core.live_bytes(state.number() - 1);
        grown.core.forget();
        let live = live?;
        grown.live.insert(state.number(), live);
        Ok(live)
    }

    fn is_finite(&self) -> bool {
        false
    }

    fn is_exact(&self) -> bool {
        !self.asks
    }

    fn is_whole(&self, state: StateId) -> bool {
        !self.asks || self.rests(state)
    }

    fn ahead(&self) -> Option<GrammarAutomaton> {
        if self.own.is_some() || self.asks {
            return None;
        }
        let own = Own::new();
        let start = own.enter(&mut self.lock(), self.start).ok()?;
        Some(GrammarAutomaton {
            grammar: Arc::clone(&self.grammar),
            grown: Arc::clone(&self.grown),
            own: Some(own),
            survey: Survey::new(),
            classes: self.classes,
            rows: Rows::new(self.rows.width()),
            start,
            limits: self.limits,
            notes: Vec::new(),
            text: self.text,
            asks: false,
        })
    }

    fn ahead_of_any(&self) -> Option<Arc<dyn Machine>> {
        Some(Arc::new(self.ahead()?))
    }

    fn enter(&self, state: StateId) -> Result<StateId, Error> {
        let Some(own) = &self.own else { return Ok(state) };
        // Without its own tables in their place, those of the other machine are there.
        let grown = &mut *self.grown.lock();
        own.enter(grown, state)
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        exact_only(self, "a shortest member", ASKED)?;
        let grown = &mut *self.lock();
        grown.core.stacks.meter.reset();
        grown.core.remember();
        let text = grown.core.shortest(state.number() - 1);
        grown.core.forget();
        text
    }

    fn some_member(&self, state: StateId) -> Result<Vec<u8>, Error> {
        exact_only(self, "a member", ASKED)?;
        let grown = &mut *self.lock();
        grown.core.stacks.meter.reset();
        grown.core.remember();
        let text = match grown.core.spelled(state.number() - 1) {
            Ok(Some(text)) => Ok(text),
            _ => {
                grown.core.stacks.meter.reset();
                grown.core.shortest(state.number() - 1)
            }
        };
        grown.core.forget();
        text
    }

    fn least_bytes(&self, state: StateId) -> Result<usize, Error> {
        let grown = &mut *self.lock();
        grown.core.stacks.meter.reset();
        Ok(grown.core.bound(state.number() - 1)? as usize)
    }

    fn owed_bytes(&self, state: StateId) -> Result<usize, Error> {
        self.least_bytes(state)
    }

    fn completion_beside(
        &self,
        state: StateId,
        beside: &mut Beside,
        at: StateId,
        look: Look,
    ) -> Result<Completion, Error> {
        let core = &mut *self.lock().core;
        let known = beside.known.get_or_insert_with(|| -> Box<dyn Remembered> {
            let made = |look| Completions::new(Some(Arc::clone(&beside.regular)), look, core);
            Box::new(Looks([Look::Loose, Look::Close, Look::Closest].map(made)))
        });
        let known: &mut dyn Any = &mut **known;
        let Some(Looks(looks)) = known.downcast_mut() else { return Ok(Completion::Unknown) };
        core.stacks.meter.reset();
        match &mut looks[look as usize] {
            Some(look) => look.of_state(state.number() - 1, at, core),
            None => Ok(Completion::Unknown),
        }
    }

    fn is_member(&self, text: &[u8]) -> Result<Option<bool>, Error> {
        let grown = &mut *self.lock();
        if !grown.core.checked || self.asks {
            return Ok(None);
        }
        grown.core.remember();
        let member = grown.core.is_member(text);
        grown.core.forget();
        member.map(Some)
    }

    fn memory_bytes(&self) -> usize {
        let grown = self.lock();
        let known = match self.own {
            Some(_) => grown.met_bytes(),
            None => grown.core.memory_bytes() + grown.live.len() * 40,
        };
        known + self.rows.memory_bytes()
    }

    fn is_abandoned(&self) -> bool {
        self.survey.finds_abandoned(|| {
            let mut terminals =
                self.grammar.terminals.iter().filter_map(|one| one.embedded.as_ref());
            self.grown.is_abandoned()
                || self.own.as_ref().is_some_and(|own| own.is_abandoned())
                || terminals.any(|one| one.machine.is_abandoned())
        })
    }

    /// Terminals that share a machine share its successor.
    fn renewed(&self) -> Result<Option<GrammarAutomaton>, Error> {
        let mut grammar = Grammar::clone(&self.grammar);
        let mut machines: FxHashMap<*const (), Arc<dyn Machine>> = FxHashMap::default();
        for embedded in grammar.terminals.iter_mut().filter_map(|one| one.embedded.as_mut()) {
            let address = Arc::as_ptr(&embedded.machine).cast::<()>();
            let renewed = match machines.get(&address) {
                Some(known) => Arc::clone(known),
                None => match embedded.machine.renewed_part()? {
                    Some(renewed) => renewed,
                    None => return Ok(None),
                },
            };
            machines.insert(address, Arc::clone(&renewed));
            embedded.machine = renewed;
        }
        Ok(GrammarAutomaton::build(&grammar, self.limits)?.ok())
    }

    fn renewed_part(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        part(self.renewed())
    }
}
