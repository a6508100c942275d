//! States up to what a token can tell apart.
//!
//! A mask asks which texts of at most `horizon` bytes keep a member reachable. Many states answer
//! alike: counts beyond the horizon cannot run out within it, what lies behind the horizon cannot
//! be seen, acceptance does not matter, and an alternative whose texts another alternative can
//! always continue adds nothing. A *key* is a state with all this forgotten: equal key, equal
//! mask. Keys form a machine of their own, on which masks are computed; under keys `.{0,1000}` is
//! `.*` and all states of `(a|b)*a(a|b){40}` beyond the horizon are one.
//!
//! Write V(s, w) for "w is viable from s". For |w| ≤ horizon V(s, w) = V(key(s), w): by induction
//! on |w|, as each rewriting keeps V for texts up to the horizon. The rewritings need terms that
//! are never empty, so other machines use their states as keys.

use std::sync::{Arc, MutexGuard};

use rustc_hash::FxHashMap;

use crate::automaton::transition_table::{DEAD, StateIndex, TransitionRows, UNKNOWN};
use crate::automaton::{Automaton, AutomatonCore, StateId, check};
use crate::byte_set::ByteSet;
use crate::charset::{CharSet, Cover, WIDE_PARTS};
use crate::error::{Error, Resource};
use crate::machine::NoLexemes;
use crate::machine::Steps;
use crate::machine::{Keys, Machine, Purpose};
use crate::runtime::Chunks;
use crate::runtime::Lock;
use crate::spelling::Escapes;
use crate::terms::dawg::CharClassCover;
use crate::terms::{EMPTY, EPSILON, TermArena, TermId, TermNode, UNBOUNDED};

/// Identifies a key of one [`Viability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId(u32);

impl KeyId {
    /// The number of the key: small and dense.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The key of a number that keys outside this crate gave it.
    pub fn from_number(number: u32) -> KeyId {
        KeyId(number)
    }
}

/// A key that reads `min` to `max` characters of a class before anything else.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// The characters; of ASCII ones only those in `ascii` may be repeated.
    pub class: CharSet,
    /// ASCII characters that may be repeated.
    pub ascii: u128,
    /// How much of each part of the characters beyond ASCII may be repeated.
    pub wide: [Cover; WIDE_PARTS],
    /// At least so many, before what follows may begin.
    pub min: u32,
    /// At most so many; `None` if the horizon cannot see the end.
    pub max: Option<u32>,
    /// Where the repetition is left from once enough characters are read; `None`: nothing follows.
    pub exit: Option<KeyId>,
    /// If it is the inside of a string of JSON, between two characters: how that is spelled. Its
    /// characters are all there are, and `exit` is where the quote is read.
    pub quoted: Option<Escapes>,
}

/// The machine of keys.
#[derive(Debug)]
pub struct Viability {
    automaton: Arc<Automaton>,
    max_token_len: u32,
    rows: TransitionRows,
    /// Key of each state, where known.
    keys: Chunks,
    tables: Lock<ClassTables>,
}

#[derive(Debug, Default)]
struct ClassTables {
    index: StateIndex,
    normal_forms: FxHashMap<TermId, TermId>,
}

impl Viability {
    /// Keys for texts of at most `horizon` bytes.
    pub fn new(automaton: Arc<Automaton>, horizon: usize) -> Viability {
        Viability {
            automaton,
            max_token_len: u32::try_from(horizon).unwrap_or(UNBOUNDED - 2).min(UNBOUNDED - 2),
            rows: TransitionRows::default(),
            keys: Chunks::default(),
            tables: Lock::new(ClassTables::default()),
        }
    }

    fn lock_tables(&self) -> MutexGuard<'_, ClassTables> {
        self.tables.lock()
    }

    /// `(facts, class, min, max, tail)` of a key that is one counter over one class.
    fn class_counter(&self, key: KeyId) -> Option<(CharClassCover, CharSet, u32, u32, TermId)> {
        if !self.automaton.is_pure() || !self.automaton.is_text() {
            return None;
        }
        let term = self.lock_tables().index.term(key.0);
        let terms = &self.automaton.lock().terms;
        let (head, tail) = terms.head_and_tail(term);
        let (body, min, max) = terms.repetition(head)?;
        match terms.get(body) {
            TermNode::Dawg(dag) => {
                let (facts, set) = (terms.dawgs.class_cover(*dag)?, terms.dawgs.class_set(*dag)?);
                Some((facts, set.clone(), min, max, tail))
            }
            _ => None,
        }
    }

    fn fill(&self, key: u32, class: usize) -> Result<u32, Error> {
        let grown = &mut self.lock_tables();
        let core = &mut self.automaton.lock();
        let classes = &self.automaton.classes;
        let term = grown.index.term(key);
        let byte = classes.representatives()[class];
        let next = core.derive(term, byte)?;
        let next = self.intern(grown, core, next)?;
        self.rows.set(classes, key, core.terms.byte_span(term, byte), next);
        Ok(next)
    }

    fn intern(
        &self,
        grown: &mut ClassTables,
        core: &mut AutomatonCore,
        term: TermId,
    ) -> Result<u32, Error> {
        if term == EMPTY {
            return Ok(DEAD);
        }
        // Inside a character only the tail can change, and tails are few.
        let (head, tail) = match *core.terms.get(term) {
            TermNode::Cat(head, tail) if matches!(core.terms.get(head), TermNode::Dawg(_)) => {
                (head, tail)
            }
            _ => (EPSILON, term),
        };
        let normal = match grown.normal_forms.get(&tail) {
            Some(&normal) => normal,
            None => {
                let normal = core.terms.normal_form(tail, self.max_token_len);
                grown.normal_forms.insert(tail, normal);
                normal
            }
        };
        let normal = if normal == tail { term } else { core.terms.cat(head, normal) };
        if let Some(key) = grown.index.find(normal) {
            return Ok(key);
        }
        let limits = self.automaton.limits();
        check(Resource::States, grown.index.len() as u64 + 1, limits.states)?;
        check(Resource::Bytes, core.terms.memory_bytes() as u64, limits.bytes)?;
        Ok(grown.index.add(normal))
    }
}

impl Keys for Viability {
    type Machine = Automaton;

    fn machine(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    #[inline]
    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        if !self.automaton.is_pure() {
            return Ok(KeyId(state.0));
        }
        match self.keys.get(state.0 as usize) {
            UNKNOWN => {
                let grown = &mut self.lock_tables();
                let core = &mut self.automaton.lock();
                let term = self.automaton.term(core, state);
                let key = self.intern(grown, core, term)?;
                self.keys.set(state.0 as usize, key);
                Ok(KeyId(key))
            }
            key => Ok(KeyId(key)),
        }
    }

    #[inline]
    fn known_key(&self, state: StateId) -> Option<KeyId> {
        if !self.automaton.is_pure() {
            return Some(KeyId(state.0));
        }
        match self.keys.get(state.0 as usize) {
            UNKNOWN => None,
            key => Some(KeyId(key)),
        }
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        purpose.read(self)
    }

    fn memory_bytes(&self) -> usize {
        let grown = self.lock_tables();
        self.rows.memory_bytes()
            + self.keys.memory_bytes()
            + grown.index.memory_bytes()
            + grown.normal_forms.len() * 16
    }

    fn is_abandoned(&self) -> bool {
        self.tables.is_abandoned() || self.automaton.is_abandoned()
    }

    fn renewed(&self) -> Result<Option<Viability>, Error> {
        let automaton = self.automaton.renewed()?;
        Ok(automaton.map(|one| Viability::new(Arc::new(one), self.max_token_len as usize)))
    }
}

impl Steps for Viability {
    type Lexemes = NoLexemes;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    #[inline]
    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        if !self.automaton.is_pure() {
            let next = self.automaton.step(StateId(key.0), byte)?;
            return Ok(next.map(|state| KeyId(state.0)));
        }
        let classes = &self.automaton.classes;
        let class = classes.of(byte);
        let next = match self.rows.get(classes, key.0, class) {
            UNKNOWN => self.fill(key.0, class)?,
            next => next,
        };
        Ok((next != DEAD).then_some(KeyId(next)))
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        self.automaton.classes.live_bytes(|byte| Ok(self.step(key, byte)?.is_some()))
    }

    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        let Some((facts, class, min, max, tail)) = self.class_counter(key) else { return Ok(None) };
        let has_wide = facts.wide != [Cover::None; WIDE_PARTS];
        let exit = match tail {
            EPSILON => None,
            tail => {
                let grown = &mut self.lock_tables();
                let core = &mut self.automaton.lock();
                Some(KeyId(self.intern(grown, core, tail)?))
            }
        };
        let first = exit.map_or(Ok(ByteSet::default()), |exit| self.live_bytes(exit))?;
        let wide_overlap = has_wide && (0x80..=0xFF).any(|byte| first.contains(byte));
        let max = (max != UNBOUNDED).then_some(max);
        let (ascii, wide) = (facts.ascii, facts.wide);
        let whole = Repetition { class, ascii, wide, min, max, exit, quoted: None };
        if !wide_overlap && first.ascii() & facts.ascii == 0 {
            return Ok(Some(whole));
        }
        if wide_overlap || min > 0 || max.is_some() {
            return Ok(None);
        }
        // What follows may begin like the class: only bytes that come back here repeat, and the
        // repetition is left from the key itself.
        let mut ascii = 0;
        for byte in 0..128u8 {
            if facts.ascii >> byte & 1 != 0 && self.step(key, byte)? == Some(key) {
                ascii |= 1 << byte;
            }
        }
        Ok(Some(Repetition { ascii, exit: Some(key), ..whole }))
    }
}

impl TermArena {
    /// The term with everything forgotten that no text of `horizon` bytes can tell.
    fn normal_form(&mut self, id: TermId, horizon: u32) -> TermId {
        let list = match self.get(id) {
            TermNode::Alt(list) => list.to_vec(),
            _ => vec![id],
        };
        let mut seen: Vec<TermId> =
            list.iter().map(|&id| self.saturate_alternative(id, horizon)).collect();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() > 1 {
            // Its only text is the empty one, which every other alternative continues.
            seen.retain(|&id| id != EPSILON);
        }
        let mut at = 0;
        while at < seen.len() {
            let loops = seen[at];
            if let Some(class) = self.loop_class(loops) {
                let absorbed =
                    |terms: &TermArena, id: TermId| terms.properties(id).alphabet.within(class);
                let before = seen[..at].iter().filter(|&&id| absorbed(self, id)).count();
                seen.retain(|&id| id == loops || !absorbed(self, id));
                at -= before;
            }
            at += 1;
        }
        self.alt(seen)
    }

    /// The class of a term that can go on over that class for as long as the horizon sees.
    fn loop_class(&self, id: TermId) -> Option<CharClassCover> {
        let (head, _) = self.head_and_tail(id);
        let (body, _, max) = self.repetition(head)?;
        match self.get(body) {
            TermNode::Dawg(dag) if max == UNBOUNDED => self.dawgs.class_cover(*dag),
            _ => None,
        }
    }

    /// One alternative with its counters saturated and its tail cut off behind the horizon.
    fn saturate_alternative(&mut self, id: TermId, horizon: u32) -> TermId {
        let mut heads = Vec::new();
        let mut length = 0u32;
        let mut rest = id;
        while rest != EPSILON && length <= horizon {
            let (head, tail) = self.head_and_tail(rest);
            let head = self.saturate_counter(head, horizon);
            length = length.saturating_add(self.properties(head).min_len);
            heads.push(head);
            rest = tail;
        }
        // Nothing follows that could be seen, so an iteration more is always possible.
        if let Some(last) = heads.last_mut()
            && let Some((body, _, max)) = self.repetition(*last)
        {
            *last = self.repeat(body, 0, max, false);
        }
        heads.into_iter().rev().fold(EPSILON, |tail, head| self.cat(head, tail))
    }

    fn saturate_counter(&mut self, head: TermId, horizon: u32) -> TermId {
        match self.repetition(head) {
            Some((body, min, max)) => {
                let max = if max > horizon { UNBOUNDED } else { max };
                self.repeat(body, min.min(horizon + 1), max, false)
            }
            None => head,
        }
    }
}
