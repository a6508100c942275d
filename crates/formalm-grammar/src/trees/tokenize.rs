//! The lexemes of a text: one after the other where they are ordered, all that there are where
//! they are read in any way.

use std::sync::Arc;

use formalm_automata::{ByteSet, EDGE, Error, Machine, StateId};
use rustc_hash::FxHashMap;

use super::earley_productions::Steps;
use crate::automaton::GrammarAutomaton;
use crate::lexer::behind;
use crate::lexer::terminal_automata::Reader;
use crate::state::{Core, Reading};

/// Before the first step.
const NONE: u32 = u32::MAX;

/// The bytes that a terminal matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme {
    pub(crate) terminal: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What a chart is made over.
pub(super) trait Input {
    /// Number of places before the last one.
    fn len(&self) -> usize;

    /// What comes next: a terminal, or a byte if lexemes are read in any way; nothing at the end.
    fn next(&self, at: usize) -> Option<u32>;

    fn is_free(&self) -> bool;

    /// Lexemes of a terminal from a place, with the places behind them.
    fn lexemes(
        &mut self,
        terminal: u32,
        at: usize,
        steps: &mut Steps<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error>;

    /// Whether nothing but what is ignored follows.
    fn ends(&mut self, at: usize, steps: &mut Steps<'_, '_>) -> Result<bool, Error>;
}

/// Lexemes that are known.
pub(super) struct Ordered<'a> {
    lexemes: &'a [Lexeme],
}

impl<'a> Ordered<'a> {
    pub(super) fn new(lexemes: &'a [Lexeme]) -> Ordered<'a> {
        Ordered { lexemes }
    }
}

impl Input for Ordered<'_> {
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
        _steps: &mut Steps<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error> {
        let here = self.lexemes.get(at).filter(|one| one.terminal == terminal);
        Ok(here.map(|&one| (one, at + 1)).into_iter().collect())
    }

    fn ends(&mut self, at: usize, _steps: &mut Steps<'_, '_>) -> Result<bool, Error> {
        Ok(at == self.lexemes.len())
    }
}

/// The machines of terminals, and of embedded languages.
type Machines<'a> = (&'a [Option<Arc<Reader>>], &'a [Option<Arc<dyn Machine>>]);

/// Lexemes in every way there is.
pub(super) struct Free<'a> {
    automata: &'a [Option<Arc<Reader>>],
    embedded: &'a [Option<Arc<dyn Machine>>],
    ahead: &'a [bool],
    ignored: &'a [u32],
    text: &'a [u8],
    /// Places behind what is ignored, by place.
    skipped: FxHashMap<usize, Vec<usize>>,
}

impl<'a> Free<'a> {
    pub(super) fn new(
        (automata, embedded): Machines<'a>,
        ahead: &'a [bool],
        ignored: &'a [u32],
        text: &'a [u8],
    ) -> Free<'a> {
        Free { automata, embedded, ahead, ignored, text, skipped: FxHashMap::default() }
    }

    /// Ends of the lexemes of a terminal, none of them empty.
    fn matches(
        &self,
        terminal: u32,
        at: usize,
        steps: &mut Steps<'_, '_>,
    ) -> Result<Vec<usize>, Error> {
        if let Some(machine) = &self.embedded[terminal as usize] {
            return member_ends(&**machine, self.text, at, steps);
        }
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(Vec::new()) };
        let mut state = automaton.start();
        let mut ends = Vec::new();
        for (place, &byte) in self.text.iter().enumerate().skip(at) {
            steps.spend(1)?;
            match automaton.step(state, byte)? {
                Some(next) => state = next,
                None => break,
            }
            let ends_here = match self.ahead[terminal as usize] {
                true => self.follows(automaton, state, place + 1, steps)?,
                false => automaton.is_accepting(state),
            };
            ends.extend(ends_here.then_some(place + 1));
        }
        Ok(ends)
    }

    /// Whether what is left of the text is what a lexeme that ends here looks ahead for.
    fn follows(
        &self,
        automaton: &Reader,
        state: StateId,
        from: usize,
        steps: &mut Steps<'_, '_>,
    ) -> Result<bool, Error> {
        let Some(mut state) = automaton.step(state, EDGE)? else { return Ok(false) };
        for &byte in &self.text[from..] {
            steps.spend(1)?;
            match automaton.step(state, behind(byte))? {
                Some(next) => state = next,
                None => return Ok(false),
            }
        }
        Ok(automaton.is_accepting(state))
    }

    fn skipped(&mut self, at: usize, steps: &mut Steps<'_, '_>) -> Result<Vec<usize>, Error> {
        if self.ignored.is_empty() {
            return Ok(vec![at]);
        }
        if let Some(known) = self.skipped.get(&at) {
            return Ok(known.clone());
        }
        let mut places = std::collections::BTreeSet::from([at]);
        let mut open = vec![at];
        while let Some(place) = open.pop() {
            for &one in self.ignored {
                let ends = self.matches(one, place, steps)?;
                open.extend(ends.into_iter().filter(|&end| places.insert(end)));
            }
        }
        let places: Vec<usize> = places.into_iter().collect();
        self.skipped.insert(at, places.clone());
        Ok(places)
    }
}

impl Input for Free<'_> {
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
        steps: &mut Steps<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error> {
        let mut all = Vec::new();
        for start in self.skipped(at, steps)? {
            for end in self.matches(terminal, start, steps)? {
                all.push((Lexeme { terminal, start, end }, end));
            }
        }
        Ok(all)
    }

    fn ends(&mut self, at: usize, steps: &mut Steps<'_, '_>) -> Result<bool, Error> {
        Ok(self.skipped(at, steps)?.last() == Some(&self.text.len()))
    }
}

/// The bytes that lexemes of each terminal begin with.
pub(super) fn first_bytes(
    automata: &[Option<Arc<Reader>>],
    embedded: &[Option<Arc<dyn Machine>>],
) -> Result<Vec<ByteSet>, Error> {
    let of = |(one, other): (&Option<Arc<Reader>>, &Option<Arc<dyn Machine>>)| match (one, other) {
        (Some(one), _) => one.live_bytes(one.start()),
        (None, Some(one)) => one.live_bytes(one.start()),
        (None, None) => Ok(ByteSet::default()),
    };
    automata.iter().zip(embedded).map(of).collect()
}

/// Ends of the members of an embedded language that begin at a place, none of them empty.
fn member_ends(
    machine: &dyn Machine,
    text: &[u8],
    at: usize,
    steps: &mut Steps<'_, '_>,
) -> Result<Vec<usize>, Error> {
    let mut state = machine.start();
    let mut ends = Vec::new();
    for (place, &byte) in text.iter().enumerate().skip(at) {
        steps.spend(1)?;
        match machine.step(state, byte)? {
            Some(next) => state = next,
            None => break,
        }
        ends.extend(machine.is_accepting(state)?.then_some(place + 1));
    }
    Ok(ends)
}

/// A reading with the way to it.
struct Step {
    reading: Reading,
    before: u32,
    /// The terminal whose lexeme ended here, if one did.
    ended: Option<u32>,
    at: usize,
}

impl GrammarAutomaton {
    /// The lexemes of a member, those that are ignored left out; `None` if it is not one. At most
    /// one way to cut a text into lexemes is right where they are ordered.
    pub(super) fn lexemes(&self, text: &[u8]) -> Result<Option<Vec<Lexeme>>, Error> {
        let core = &mut self.lock().core;
        let start = |reading| Step { reading, before: NONE, ended: None, at: 0 };
        let mut steps: Vec<Step> = core.start_readings()?.into_iter().map(start).collect();
        let mut alive: Vec<u32> = (0..steps.len() as u32).collect();
        let mut next = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            core.stacks.meter.reset();
            let mut later = Vec::new();
            for before in alive {
                next.clear();
                core.read_ending(steps[before as usize].reading, byte, &mut next)?;
                for &(reading, ended) in &next {
                    later.push(steps.len() as u32);
                    steps.push(Step { reading, before, ended, at: at + 1 });
                }
            }
            alive = later;
        }
        for &last in &alive {
            core.stacks.meter.reset();
            let reading = steps[last as usize].reading;
            if core.accepts(reading)? {
                let mut lexemes = core.traced(&steps, last);
                let end = text.len();
                let told = core.told_at_end(reading)?.into_iter();
                lexemes.extend(told.map(|terminal| Lexeme { terminal, start: end, end }));
                return Ok(Some(lexemes));
            }
        }
        Ok(None)
    }
}

impl Core {
    fn traced(&self, steps: &[Step], last: u32) -> Vec<Lexeme> {
        // Ends of lexemes with the places before and behind, from the back.
        let mut ends: Vec<(u32, usize, u32)> = Vec::new();
        let mut lexemes = Vec::new();
        let mut at = last;
        while let Some(step) = steps.get(at as usize) {
            let is_first = step.before == NONE;
            if (step.reading.is_between() || is_first)
                && let Some((terminal, end, behind)) = ends.pop()
            {
                self.push_ended(
                    (terminal, step.at, end),
                    (step.reading.place, behind),
                    &mut lexemes,
                );
            }
            if let Some(terminal) = step.ended {
                ends.push((terminal, step.at, step.reading.place));
            }
            at = step.before;
        }
        lexemes.reverse();
        lexemes
    }

    /// Adds what a lexeme is to the rules, from the back.
    fn push_ended(
        &self,
        (terminal, start, end): (u32, usize, usize),
        (before, behind): (u32, u32),
        lexemes: &mut Vec<Lexeme>,
    ) {
        let layout = self.layout.as_ref();
        if let Some(told) = layout.and_then(|layout| layout.told(terminal, before, behind)) {
            let newline = layout.map(|layout| layout.newline);
            for terminal in told.into_iter().rev() {
                let start = if Some(terminal) == newline { start } else { end };
                lexemes.push(Lexeme { terminal, start, end });
            }
            return;
        }
        if let Some(terminal) = self.read_as(terminal) {
            lexemes.push(Lexeme { terminal, start, end });
        }
    }

    /// The terminal that a lexeme is to the rules; `None` if it is ignored.
    pub(super) fn read_as(&self, terminal: u32) -> Option<u32> {
        match terminal.checked_sub(self.terminals) {
            Some(terminal) => Some(terminal),
            None => (!self.is_ignored(terminal)).then_some(terminal),
        }
    }
}
