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
use crate::state::{Core, Reading};

/// The state that a byte leads to, and whether a member ends there; none if it is refused.
type Answer = Option<(StateId, bool)>;

/// A terminal, a state of its machine and a byte.
type Question = (u32, StateId, u8);

/// What is done where a machine would have to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Asking {
    /// The answer is looked up; where it is missing, the work ends.
    #[default]
    Asked,
    /// A member is taken to end behind the byte: whether one does cannot be searched.
    Assumed,
    /// Left out, and read by whoever asks.
    Apart,
}

/// Which terminals are asked, and what they said.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    is_asked: Vec<bool>,
    known: FxHashMap<(u32, u32, u8), Answer>,
    missing: Option<Question>,
    pub(crate) asking: Asking,
    /// Whether a member was taken to end, since this was last unset.
    pub(crate) assumed: bool,
}

impl Answers {
    pub(crate) fn new(is_asked: Vec<bool>) -> Answers {
        Answers { is_asked, ..Answers::default() }
    }

    pub(crate) fn is_asked(&self, terminal: u32) -> bool {
        self.is_asked.get(terminal as usize).is_some_and(|&asked| asked)
    }

    fn is_empty(&self) -> bool {
        !self.is_asked.contains(&true)
    }

    /// Takes members to end from now on; what was done before is returned.
    pub(crate) fn assume(&mut self) -> Asking {
        std::mem::replace(&mut self.asking, Asking::Assumed)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.known.capacity() * 24
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
    place: u32,
    forbidden: u32,
}

/// Where a text may be, with machines that are asked told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ways {
    plain: Vec<Reading>,
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

impl Core {
    /// As [`Core::read_embedded`], of a machine that is asked.
    pub(crate) fn read_asked(
        &mut self,
        (terminal, state): (u32, StateId),
        (place, forbidden): (u32, u32),
        byte: u8,
        next: &mut impl FnMut(Reading, Option<u32>),
    ) -> Result<(), Error> {
        let answers = &mut self.embedded.answers;
        if answers.asking == Asking::Apart {
            return Ok(());
        }
        if answers.asking == Asking::Assumed {
            let behind = self.after(place, terminal)?;
            if behind != NOTHING {
                self.embedded.answers.assumed = true;
                next(Reading::between(behind, NOTHING), Some(terminal));
            }
            return Ok(());
        }
        let Some(&answer) = answers.known.get(&(terminal, state.number(), byte)) else {
            answers.missing = Some((terminal, state, byte));
            return Err(Error::Interrupted);
        };
        let Some((state, is_end)) = answer else { return Ok(()) };
        let Some(left) = self.pending(forbidden, byte)? else { return Ok(()) };
        if is_end {
            let behind = self.after(place, terminal)?;
            if behind != NOTHING {
                next(Reading::between(behind, left), Some(terminal));
            }
        }
        let lexeme = self.embedded.place(terminal, state);
        next(Reading { lexeme, place, forbidden: left }, None);
        Ok(())
    }

    /// Readings with those in machines that are asked, and those that such a machine may begin in,
    /// told apart.
    fn ways(&mut self, readings: Vec<Reading>) -> Result<Ways, Error> {
        let mut ways = Ways { plain: Vec::with_capacity(readings.len()), within: Vec::new() };
        for reading in readings {
            let Reading { lexeme, place, forbidden } = reading;
            if reading.is_embedded() {
                let (terminal, state) = self.embedded.at(lexeme);
                if self.embedded.answers.is_asked(terminal) {
                    let (machine, is_begun) = (0, true);
                    let one = Within { terminal, state, machine, is_begun, place, forbidden };
                    ways.within.push(one);
                    continue;
                }
            }
            ways.plain.push(reading);
            if reading.is_between() {
                ways.within.extend(self.beginning(place, forbidden)?);
            }
        }
        Ok(ways)
    }

    /// The machines that are asked and may begin at a place.
    fn beginning(&mut self, place: u32, forbidden: u32) -> Result<Vec<Within>, Error> {
        let terminals = self.embedded_at(place)?.into_iter();
        let asked = terminals.filter(|&one| self.embedded.answers.is_asked(one));
        let begin = asked.filter_map(|terminal| {
            let state = self.embedded.machine(terminal)?.start();
            Some(Within { terminal, state, machine: 0, is_begun: false, place, forbidden })
        });
        Ok(begin.collect())
    }

    /// Where a text is behind a byte, of which the machines that are asked said `answers`.
    fn ways_after(&mut self, ways: &Ways, byte: u8, answers: &[Answer]) -> Result<Ways, Error> {
        let mut plain = self.all_after(&ways.plain, byte)?;
        let mut begun = Vec::new();
        for (&one, answer) in ways.within.iter().zip(answers) {
            let &Some((state, is_end)) = answer else { continue };
            let Some(forbidden) = self.pending(one.forbidden, byte)? else { continue };
            let behind = self.after(one.place, one.terminal)?;
            if behind == NOTHING {
                continue;
            }
            if is_end {
                plain.push(Reading::between(behind, forbidden));
            }
            if !self.checked || self.is_viable(Reading::between(behind, NOTHING))? {
                begun.push(Within { state, is_begun: true, forbidden, ..one });
            }
        }
        if self.checked {
            self.keep_viable(&mut plain)?;
        }
        self.join(&mut plain);
        let mut ways = self.ways(plain)?;
        begun.sort_unstable();
        begun.dedup();
        ways.within.extend(begun);
        Ok(ways)
    }
}

impl GrammarAutomaton {
    /// Whether some language in the rules is asked.
    pub(crate) fn is_asking(&self) -> bool {
        self.asks
    }

    /// Does some work under the lock, and again whenever an answer was missing.
    pub(crate) fn asking<T>(
        &self,
        mut work: impl FnMut(&mut Core) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let question = {
                let core = &mut self.lock().core;
                let done = work(core);
                match core.embedded.answers.missing.take() {
                    Some(question) if done.is_err() => question,
                    _ => return done,
                }
            };
            let (terminal, state, byte) = question;
            let Some(machine) = self.asked(terminal) else { return Err(Error::Interrupted) };
            let answer = machine.step_told(state, byte)?;
            let answers = &mut self.lock().core.embedded.answers;
            answers.known.insert((terminal, state.number(), byte), answer);
        }
    }

    /// The state after a text; if it goes wrong or ends in the midst of what is asked as a whole, how
    /// many of its bytes can be read and rested behind.
    pub(crate) fn walk_asking(
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
            if self.rests(state) {
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
        self.lock().core.embedded.machine(terminal)
    }

    /// Where a text is in a state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn ways_at(&self, state: StateId) -> Result<Ways, Error> {
        let core = &mut self.lock().core;
        core.stacks.meter.reset();
        let readings = core.readings(state.number() - 1);
        core.ways(readings)
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
        core.stacks.meter.reset();
        let before = std::mem::replace(&mut core.embedded.answers.asking, Asking::Apart);
        let after = core.ways_after(ways, byte, answers);
        core.embedded.answers.asking = before;
        let is_there =
            |after: &Ways| after.is_elsewhere() || after.within.iter().any(|one| one.is_begun);
        Ok(Some(after?).filter(is_there))
    }

    /// Whether a text may rest in a state: not if it is in the midst of what is asked as a whole.
    pub(crate) fn rests(&self, state: StateId) -> bool {
        let within: Vec<(u32, StateId)> = {
            let core = &self.lock().core;
            let readings = core.readings(state.number() - 1);
            if readings.iter().any(|one| !one.is_embedded()) {
                return true;
            }
            readings.iter().map(|one| core.embedded.at(one.lexeme)).collect()
        };
        within.into_iter().any(|(terminal, state)| {
            self.asked(terminal).is_none_or(|machine| machine.is_whole(state))
        })
    }
}

impl Core {
    /// Whether languages in the rules are asked.
    pub(crate) fn asks(&self) -> bool {
        !self.embedded.answers.is_empty()
    }
}
