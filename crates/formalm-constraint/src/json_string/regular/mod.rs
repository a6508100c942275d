//! Masks inside of strings of JSON whose texts a regular machine reads.
//!
//! What tokens do before such a string ends depends on the machine, its state and the spelling of
//! strings alone. So it is found by the ways of regular languages, which walk over no more tokens
//! than they have to, and kept beside the vocabulary, where all constraints find it:
//!
//! * tokens that are the text that they spell: the machine's own mask, less all others;
//! * tokens with escapes: a walk of their spellings. Where few bytes may come, as in lists of
//!   texts, one walk finds both;
//! * tokens that end the string: those whose text is a member, by what is behind the quote. Which
//!   of these rests are viable is what the string's surroundings decide ([`Rests`]).

mod continuing_tokens;
mod escaped_walk;
mod strategies;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};

use formalm_automata::spelling::Escapes;
use formalm_automata::{
    Automaton, Error, InText, KeyId, Keys, Lock, Machine, Recent, StateId, Steps, Viability,
};
use formalm_vocabulary::{JsonStringTokens, Vocabulary, VocabularyExtension};
use rustc_hash::FxHashMap;

use crate::json_string::custom::{self, Endless};
use crate::json_string::length::Rests;
use crate::json_value::Lists;
use crate::lexical::Lexical;
use crate::mask::Mask;
use crate::mask_cache::Memo;
use crate::prefix_sharing::Long;
use continuing_tokens::Inside;
pub(crate) use escaped_walk::spelled;
use escaped_walk::walked;

/// Machines kept; the one that was asked for longest ago makes room.
const MACHINES: usize = 128;

/// What tokens of all machines may take; those asked for longest ago make room.
const BYTES: usize = 8 << 20;

/// What one machine may take; when it has more it begins anew.
const MACHINE_BYTES: usize = 1 << 20;

/// With more bytes that may come the machine's own mask is quicker than a walk.
const FEW: usize = 8;

/// What masks that others are changed from may take of each machine.
const REFERENCES: usize = 1 << 17;

/// Machines of texts by what they are.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    machines: Lock<Machines>,
    /// What tokens do in values that machines have in common.
    pub(crate) values: Lists,
    endless: Endless,
    long: Long,
}

/// A machine, by its place in memory: it lives as long as it is listed.
type Which = (usize, Escapes);

#[derive(Debug, Default)]
struct Machines {
    known: Recent<Which, Arc<Within>>,
    /// What the tables of all of them take.
    bytes: Arc<AtomicUsize>,
}

/// What tokens do inside of the texts of one machine.
#[derive(Debug)]
struct Within {
    keys: Viability,
    /// What finding a mask takes; nothing is kept here but masks that others are changed from.
    own: (Lexical, Memo, Rests),
    tables: Lock<Tables>,
    /// What the tables of all machines take.
    total: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Tables {
    by_key: FxHashMap<KeyId, Inside>,
    inside: FxHashMap<StateId, Inside>,
    ends: FxHashMap<StateId, Arc<Ends>>,
    bytes: usize,
}

/// Tokens that end a text.
#[derive(Debug, Default)]
struct Ends {
    /// A state in which the text may end.
    state: Option<StateId>,
    /// Those that end with the quote.
    exact: Vec<u32>,
    /// Those with a rest, by it.
    behind: Vec<(u32, u32)>,
}

/// The mask of a key inside of a text; `None` if it is not between two characters.
pub(crate) fn mask(
    keys: &impl Steps,
    vocabulary: &Vocabulary,
    rests: &Rests,
    (key, text): (KeyId, &InText),
) -> Result<Option<Mask>, Error> {
    if !text.is_between_characters()? {
        return Ok(None);
    }
    let Some(kept) = vocabulary.extension::<Kept>() else { return Ok(None) };
    let strings = vocabulary.json_string_tokens(text.escapes);
    let (inside, ends) = match &text.like {
        Some(like) => {
            let words = custom::inside(&kept.endless, vocabulary, (text, like))?;
            (Inside::of(Mask::from_words(words)), Arc::new(Ends::of(strings, text)?))
        }
        None => {
            let within = kept.of(vocabulary, text);
            if within.memory_bytes() > MACHINE_BYTES {
                kept.forget(text);
            }
            (within.inside(vocabulary, strings, text)?, within.ends(strings, text)?)
        }
    };
    let mut ended = Vec::new();
    if let Some(state) = ends.state
        && let Some(closed) = keys.step(keys.in_text_at(key, state)?, b'"')?
    {
        let viable = rests.of(keys, strings, closed)?;
        ended.extend_from_slice(&ends.exact);
        let behind = ends.behind.iter().filter(|&&(rest, _)| viable.has(rest));
        ended.extend(behind.map(|&(_, token)| token));
    }
    let words = vocabulary.len().div_ceil(32);
    Ok(Some(match inside {
        Inside::Few(few) => Mask::from_ids(&[&few[..], &ended[..]].concat(), words),
        Inside::Many(base) => Mask::patched(&base, ended, Vec::new()),
    }))
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Machines> {
        self.machines.lock()
    }

    fn of(&self, vocabulary: &Vocabulary, text: &InText) -> Arc<Within> {
        let which = (Arc::as_ptr(&text.machine) as usize, text.escapes);
        let machines = &mut *self.lock();
        if let Some(known) = machines.known.get(&which).filter(|known| !known.keys.is_abandoned()) {
            return known;
        }
        while (machines.known.len() >= MACHINES || machines.bytes.load(Relaxed) > BYTES)
            && machines.known.remove_oldest()
        {}
        let machine = Arc::clone(&text.machine);
        let total = Arc::clone(&machines.bytes);
        let within = Within::new(machine, vocabulary.longest_token_bytes(), total);
        let within = Arc::new(within);
        machines.known.insert(which, Arc::clone(&within));
        within
    }

    /// Lets go of a machine that has grown too much.
    fn forget(&self, text: &InText) {
        let which = (Arc::as_ptr(&text.machine) as usize, text.escapes);
        self.lock().known.remove(&which);
    }
}

impl VocabularyExtension for Kept {
    fn memory_bytes(&self) -> usize {
        let machines: usize = self.lock().known.values().map(|one| one.memory_bytes()).sum();
        machines
            + self.values.memory_bytes()
            + self.endless.memory_bytes()
            + self.long.memory_bytes()
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        self.total.fetch_sub(self.tables().bytes, Relaxed);
    }
}

impl Within {
    fn new(machine: Arc<Automaton>, horizon: usize, total: Arc<AtomicUsize>) -> Within {
        let own = (Lexical::default(), Memo::new(REFERENCES), Rests::default());
        Within { keys: Viability::new(machine, horizon), own, tables: Lock::default(), total }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Within>() + self.keys.memory_bytes() + self.tables().bytes
    }

    /// Counts bytes of the tables.
    fn count(&self, tables: &mut Tables, bytes: usize) {
        // An entry of a map has about as much beside what it holds.
        tables.bytes += bytes + 64;
        self.total.fetch_add(bytes + 64, Relaxed);
    }

    /// Tokens after which the text goes on.
    fn inside(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &InText,
    ) -> Result<Inside, Error> {
        if let Some(known) = self.tables().inside.get(&text.state) {
            return Ok(known.clone());
        }
        let live = text.machine.live_bytes(text.state)?;
        let few = if live.len() <= FEW { walked(vocabulary, text, live)? } else { None };
        let (inside, bytes) = match few {
            Some(few) => (few.clone(), few.bytes()),
            None => (self.broad(vocabulary, strings, text)?, 0),
        };
        let mut tables = self.tables();
        self.count(&mut tables, bytes);
        tables.inside.insert(text.state, inside.clone());
        Ok(inside)
    }

    /// The same where many bytes may come.
    fn broad(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &InText,
    ) -> Result<Inside, Error> {
        let key = self.keys.key(text.state)?;
        if let Some(known) = self.tables().by_key.get(&key) {
            return Ok(known.clone());
        }
        let (inside, is_shared) = self.find(vocabulary, strings, text)?;
        let mut tables = self.tables();
        self.count(&mut tables, if is_shared { 0 } else { inside.bytes() });
        tables.by_key.insert(key, inside.clone());
        Ok(inside)
    }

    /// Tokens that end the text.
    fn ends(&self, strings: &JsonStringTokens, text: &InText) -> Result<Arc<Ends>, Error> {
        if let Some(known) = self.tables().ends.get(&text.state) {
            return Ok(Arc::clone(known));
        }
        let ends = Arc::new(Ends::of(strings, text)?);
        let mut tables = self.tables();
        self.count(&mut tables, 4 * ends.exact.len() + 8 * ends.behind.len());
        tables.ends.insert(text.state, Arc::clone(&ends));
        Ok(ends)
    }
}

impl Ends {
    fn of(strings: &JsonStringTokens, text: &InText) -> Result<Ends, Error> {
        let machine = &text.machine;
        let mut ends = Ends::default();
        let mut end = |text: u32, state: StateId| {
            if machine.is_accepting(state) {
                ends.state = Some(state);
                for one in strings.closing_tokens(text) {
                    match one.suffix {
                        None => ends.exact.push(one.token),
                        Some(rest) => ends.behind.push((rest, one.token)),
                    }
                }
            }
        };
        end(0, text.state);
        let step = |state: StateId, byte: u8| machine.step(state, byte);
        spelled(
            strings.prefix_nodes(),
            (text.state, text.escapes),
            &step,
            &mut |_, text, state| {
                end(text, state);
            },
        )?;
        Ok(ends)
    }
}
