//! States as keys, read ahead of the text for masks.

use std::cell::RefCell;
use std::sync::{Arc, MutexGuard};

use formalm_automata::{
    ByteSet, CharSet, Cover, Error, KeyId, Keys, Purpose, Repetition, StateId, Steps, WIDE_PARTS,
    beyond_ascii,
};
use rustc_hash::FxHashMap;

use crate::automaton::{GrammarAutomaton, Grown};
use crate::lists::NOTHING;

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

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        let mut grown = self.automaton.lock();
        grown.core.remember();
        let looking = RefCell::new(Looking { grown, rows: FxHashMap::default() });
        purpose.read(&Ahead { looking })
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
    grown: MutexGuard<'a, Grown>,
    /// Successors by key, per class of bytes; zero is unknown.
    rows: FxHashMap<u32, Box<[u32]>>,
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        self.looking.get_mut().grown.core.forget();
    }
}

impl Steps for Ahead<'_> {
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
        let mut ascii = 0u128;
        for byte in 0..128u8 {
            if self.step(key, byte)? == Some(key) {
                ascii |= 1 << byte;
            }
        }
        if ascii == 0 {
            return Ok(None);
        }
        let ranges = (0..128u8).filter(|byte| ascii >> byte & 1 != 0);
        let mut class = CharSet::from_ranges(ranges.map(|byte| (byte.into(), byte.into())));
        let Some(wide) = beyond_ascii(self, key)? else { return Ok(None) };
        if wide == Cover::Full {
            class = class.union(&CharSet::from_ranges([('\u{80}', char::MAX)]));
        }
        let wide = [wide; WIDE_PARTS];
        Ok(Some(Repetition { class, ascii, wide, min: 0, max: None, exit: Some(key), reenters: 0 }))
    }
}
