//! States as keys, read ahead of the text for masks.

use std::cell::RefCell;
use std::sync::Arc;

use formalm_automata::{
    ByteSet, Context, EndPurpose, EndSteps, Ending, Error, KeyId, Keys, Lexemes, Machine, Outline,
    Place, Progress, Purpose, Repetition, Scan, StateId, Steps, loops_of,
};
use rustc_hash::FxHashMap;

use crate::automaton::{GrammarAutomaton, Locked};
use crate::interner::NOTHING;

/// The states of a grammar's machine as keys.
#[derive(Debug)]
pub struct GrammarKeys {
    automaton: Arc<GrammarAutomaton>,
}

impl GrammarKeys {
    /// Keys of a machine.
    pub fn new(automaton: Arc<GrammarAutomaton>) -> GrammarKeys {
        GrammarKeys { automaton }
    }

    fn ahead(&self) -> Ahead<'_> {
        let mut grown = self.automaton.lock();
        grown.core.remember();
        Ahead { looking: RefCell::new(Looking { grown, rows: FxHashMap::default() }) }
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

    fn over(&self, ahead: &Arc<GrammarAutomaton>) -> Option<GrammarKeys> {
        Some(GrammarKeys::new(Arc::clone(ahead)))
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        purpose.read(&self.ahead())
    }

    fn read_ends<P: EndPurpose>(&self, state: StateId, purpose: P) -> Result<P::Result, Error> {
        Ok(purpose.read(&self.ahead(), KeyId::from_number(state.number())))
    }

    fn renewed(&self) -> Result<Option<GrammarKeys>, Error> {
        Ok(self.automaton.renewed()?.map(|one| GrammarKeys::new(Arc::new(one))))
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// A look ahead of the text. States and stacks that it makes are dropped with it: a mask meets
/// many more than texts come to.
#[derive(Debug)]
struct Ahead<'a> {
    looking: RefCell<Looking<'a>>,
}

#[derive(Debug)]
struct Looking<'a> {
    grown: Locked<'a>,
    /// Successors by key, per class of bytes; zero is unknown.
    rows: FxHashMap<u32, Box<[u32]>>,
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        self.looking.get_mut().grown.core.forget();
    }
}

impl EndSteps for Ahead<'_> {
    fn is_end(&self, key: KeyId) -> Result<bool, Error> {
        let core = &mut self.looking.borrow_mut().grown.core;
        core.stacks.meter.reset();
        core.is_accepting(key.number() - 1)
    }
}

impl Steps for Ahead<'_> {
    type Lexemes = Self;

    fn lexemes(&self) -> Option<&Self> {
        Some(self)
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let Looking { grown, rows } = &mut *self.looking.borrow_mut();
        let core = &mut grown.core;
        let class = usize::from(core.lexer.classes()[usize::from(byte)]);
        let width = core.lexer.representatives().len();
        let row = rows.entry(key.number()).or_insert_with(|| vec![0; width].into());
        if row[class] == 0 {
            core.stacks.meter.reset();
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

    /// A lexeme under way, as a string or a name: the characters over which the key comes back to
    /// itself. It is left from the key itself.
    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        loops_of(self, key, 1)
    }
}

impl Lexemes for Ahead<'_> {
    fn readings(&self, key: KeyId) -> Result<Option<Vec<(Scan, Place)>>, Error> {
        let core = &mut self.looking.borrow_mut().grown.core;
        if !core.embedded.is_empty() || (core.checked && !core.certificate.is_there()) {
            return Ok(None);
        }
        let mut all = Vec::new();
        for reading in core.readings(key.number() - 1) {
            core.stacks.meter.reset();
            if core.checked && !core.is_settled_at(reading.place)? {
                return Ok(None);
            }
            let lexeme = match reading.is_between() {
                true => core.context(reading.place)?,
                false => reading.lexeme,
            };
            if reading.is_between() && !core.fits(lexeme, reading.forbidden)? {
                return Ok(None);
            }
            let scan = core.scans.number(lexeme, reading.forbidden);
            all.push((Scan(scan), Place(reading.place)));
        }
        Ok(Some(all))
    }

    fn context(&self, place: Place) -> Result<Context, Error> {
        self.looking.borrow_mut().grown.core.context(place.0).map(Context)
    }

    fn scan(&self, context: Context, left: u32) -> Option<Scan> {
        let core = &mut self.looking.borrow_mut().grown.core;
        (context.0 != NOTHING).then(|| Scan(core.scans.number(context.0, left)))
    }

    fn fits(&self, context: Context, left: u32) -> Result<bool, Error> {
        let core = &mut self.looking.borrow_mut().grown.core;
        core.stacks.meter.reset();
        Ok(!core.checked || core.fits(context.0, left)?)
    }

    #[inline]
    fn read(&self, scan: Scan, byte: u8) -> Result<Progress, Error> {
        let core = &mut self.looking.borrow_mut().grown.core;
        core.stacks.meter.reset();
        let outcome = core.read_scan(scan.0, byte)?;
        let on = (outcome.on != NOTHING).then_some(Scan(outcome.on));
        Ok(Progress { on, endings: outcome.endings, doubtful: outcome.doubtful })
    }

    fn endings(&self, endings: u32) -> Arc<[Ending]> {
        self.looking.borrow().grown.core.scans.endings(endings)
    }

    fn pending(&self, left: u32, byte: u8) -> Result<Option<u32>, Error> {
        let core = &mut self.looking.borrow_mut().grown.core;
        core.stacks.meter.reset();
        core.pending(left, byte)
    }

    fn is_certain(&self, place: Place) -> Result<bool, Error> {
        let core = &mut self.looking.borrow_mut().grown.core;
        core.stacks.meter.reset();
        Ok(!core.checked || core.is_settled_at(place.0)?)
    }

    fn after(&self, place: Place, terminal: u32) -> Result<Option<Place>, Error> {
        let core = &mut self.looking.borrow_mut().grown.core;
        core.stacks.meter.reset();
        let place = core.after(place.0, terminal)?;
        Ok((place != NOTHING).then_some(Place(place)))
    }

    fn outline(&self, place: Place, depth: u32) -> Option<Outline> {
        self.looking.borrow_mut().grown.core.outline(place.0, depth).map(Outline)
    }

    fn drawn(&self, outline: Outline) -> Place {
        Place(self.looking.borrow_mut().grown.core.drawn(outline.0))
    }
}
