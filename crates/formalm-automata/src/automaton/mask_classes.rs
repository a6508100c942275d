//! The mask-equivalence quotient of a regular automaton, by normal forms of terms.
//!
//! Write V(s, w) for "w is viable from s" and n for the length of the longest token. **Theorem.**
//! For |w| ≤ n, V(s, w) = V(class(s), w). Proof by induction on |w|: each rewriting below preserves
//! V for strings up to n bytes.
//!
//! A mask asks which strings of at most n bytes keep a member reachable. Many states answer alike,
//! so the normal form of a term
//!
//! * saturates counters above n, which cannot run out within a token,
//! * cuts tails that no token reaches,
//! * ignores acceptance,
//! * drops union members whose strings another member always continues.
//!
//! Under it `.{0,1000}` is `.*`, and all states of `(a|b)*a(a|b){40}` more than n bytes before the
//! end are one. The classes form an automaton of their own, on which masks are computed. The
//! rewritings need terms that are never empty, so automata with other terms use their states as
//! classes.

use std::sync::{Arc, MutexGuard};

use formalm_core::{
    AppendVec, ByteSet, CharSet, ClassCover, Error, ForkSafeMutex, LazyDfa, MaskClassId, Renewal,
    Resource, StateId, WIDE_PARTS, check_limit,
};
use rustc_hash::FxHashMap;

use crate::automaton::transition_table::{DEAD, StateIndex, TransitionRows, UNKNOWN};
use crate::automaton::{Automaton, AutomatonCore};
use crate::terms::dawg::CharClassCover;
use crate::terms::{EMPTY, EPSILON, TermArena, TermId, TermNode, UNBOUNDED};

/// A mask class that reads `min` to `max` characters of a character class before anything else.
#[derive(Clone, Debug)]
pub struct ClassLoop {
    /// The characters; of the ASCII ones only those in `ascii` repeat.
    pub class: CharSet,
    /// ASCII characters that repeat, as bits.
    pub ascii: u128,
    /// How much of each part of the non-ASCII characters repeats.
    pub wide: [ClassCover; WIDE_PARTS],
    /// Minimum number of characters before the exit is taken.
    pub min: u32,
    /// Maximum number of characters; `None` if it exceeds the longest input.
    pub max: Option<u32>,
    /// The class from which the repetition is left once enough characters are read; `None` if
    /// nothing follows.
    pub exit: Option<MaskClassId>,
}

/// The mask classes of a regular automaton.
#[derive(Debug)]
pub struct RegularMaskClasses {
    automaton: Arc<Automaton>,
    max_token_len: u32,
    rows: TransitionRows,
    /// The class of each state, where known.
    keys: AppendVec,
    tables: ForkSafeMutex<ClassTables>,
}

#[derive(Debug, Default)]
struct ClassTables {
    index: StateIndex,
    normal_forms: FxHashMap<TermId, TermId>,
}

impl RegularMaskClasses {
    /// Creates the classes for tokens of at most `max_token_len` bytes.
    pub fn new(automaton: Arc<Automaton>, max_token_len: usize) -> RegularMaskClasses {
        RegularMaskClasses {
            automaton,
            max_token_len: u32::try_from(max_token_len).unwrap_or(UNBOUNDED - 2).min(UNBOUNDED - 2),
            rows: TransitionRows::default(),
            keys: AppendVec::default(),
            tables: ForkSafeMutex::new(ClassTables::default()),
        }
    }

    fn lock_tables(&self) -> MutexGuard<'_, ClassTables> {
        self.tables.lock()
    }

    /// Returns `(cover, class, min, max, tail)` of a mask class that is one counter over one
    /// character class.
    fn class_counter(
        &self,
        key: MaskClassId,
    ) -> Option<(CharClassCover, CharSet, u32, u32, TermId)> {
        if !self.automaton.is_pure() || !self.automaton.is_utf8() {
            return None;
        }
        let term = self.lock_tables().index.term(key.number());
        let terms = &self.automaton.lock().terms;
        let (head, tail) = terms.head_and_tail(term);
        let (body, min, max) = terms.repetition(head)?;
        match terms.get(body) {
            TermNode::Dawg(dag) => {
                let (cover, set) = (terms.dawgs.class_cover(*dag)?, terms.dawgs.class_set(*dag)?);
                Some((cover, set.clone(), min, max, tail))
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
        check_limit(Resource::States, grown.index.len() as u64 + 1, limits.states)?;
        check_limit(Resource::Bytes, core.terms.memory_bytes() as u64, limits.bytes)?;
        Ok(grown.index.add(normal))
    }
}

impl RegularMaskClasses {
    /// Returns the automaton.
    pub fn machine(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    /// Returns the class of a state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    #[inline]
    pub fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        if !self.automaton.is_pure() {
            return Ok(MaskClassId::from_number(state.number()));
        }
        match self.keys.get(state.number() as usize) {
            UNKNOWN => {
                let grown = &mut self.lock_tables();
                let core = &mut self.automaton.lock();
                let term = self.automaton.term(core, state);
                let key = self.intern(grown, core, term)?;
                self.keys.set(state.number() as usize, key);
                Ok(MaskClassId::from_number(key))
            }
            key => Ok(MaskClassId::from_number(key)),
        }
    }

    /// Returns the class of a state if it was computed before. Takes no lock.
    #[inline]
    pub fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        if !self.automaton.is_pure() {
            return Some(MaskClassId::from_number(state.number()));
        }
        match self.keys.get(state.number() as usize) {
            UNKNOWN => None,
            key => Some(MaskClassId::from_number(key)),
        }
    }

    /// Returns the memory in use in addition to the automaton's, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let grown = self.lock_tables();
        self.rows.memory_bytes()
            + self.keys.memory_bytes()
            + grown.index.memory_bytes()
            + grown.normal_forms.len() * 16
    }

    /// Returns `true` if a thread was changing the classes or their automaton during a fork.
    pub fn is_abandoned(&self) -> bool {
        self.tables.is_abandoned() || self.automaton.is_abandoned()
    }

    /// Builds classes over a fresh automaton of the same language.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn fresh_copy(&self) -> Result<Option<RegularMaskClasses>, Error> {
        let automaton = self.automaton.fresh_copy()?;
        Ok(automaton.map(|one| RegularMaskClasses::new(Arc::new(one), self.max_token_len as usize)))
    }
}

impl RegularMaskClasses {
    /// Returns the class after `byte`, or `None` if it is not viable.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    #[inline]
    pub fn step(&self, key: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        if !self.automaton.is_pure() {
            let next = self.automaton.step(StateId::from_number(key.number()), byte)?;
            return Ok(next.map(|state| MaskClassId::from_number(state.number())));
        }
        let classes = &self.automaton.classes;
        let class = classes.of(byte);
        let next = match self.rows.get(classes, key.number(), class) {
            UNKNOWN => self.fill(key.number(), class)?,
            next => next,
        };
        Ok((next != DEAD).then_some(MaskClassId::from_number(next)))
    }

    /// Returns the viable next bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn live_bytes(&self, key: MaskClassId) -> Result<ByteSet, Error> {
        self.automaton.classes.live_bytes(|byte| Ok(self.step(key, byte)?.is_some()))
    }

    /// Returns the class as a loop over a character class, if it is known to be one and reads UTF-8
    /// only.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn char_repetition(&self, key: MaskClassId) -> Result<Option<ClassLoop>, Error> {
        let Some((cover, class, min, max, tail)) = self.class_counter(key) else { return Ok(None) };
        let has_wide = cover.wide != [ClassCover::None; WIDE_PARTS];
        let exit = match tail {
            EPSILON => None,
            tail => {
                let grown = &mut self.lock_tables();
                let core = &mut self.automaton.lock();
                Some(MaskClassId::from_number(self.intern(grown, core, tail)?))
            }
        };
        let first = exit.map_or(Ok(ByteSet::default()), |exit| self.live_bytes(exit))?;
        let wide_overlap = has_wide && (0x80..=0xFF).any(|byte| first.contains(byte));
        let max = (max != UNBOUNDED).then_some(max);
        let (ascii, wide) = (cover.ascii, cover.wide);
        let whole = ClassLoop { class, ascii, wide, min, max, exit };
        if !wide_overlap && first.ascii() & cover.ascii == 0 {
            return Ok(Some(whole));
        }
        if wide_overlap || min > 0 || max.is_some() {
            return Ok(None);
        }
        // The exit may begin like the class. Only bytes that return to this class repeat, and the
        // repetition is left from the class itself.
        let mut ascii = 0;
        for byte in 0..128u8 {
            if cover.ascii >> byte & 1 != 0 && self.step(key, byte)? == Some(key) {
                ascii |= 1 << byte;
            }
        }
        Ok(Some(ClassLoop { ascii, exit: Some(key), ..whole }))
    }
}

impl TermArena {
    /// Returns the normal form of a term: everything removed that no string of `max_token_len`
    /// bytes distinguishes.
    fn normal_form(&mut self, id: TermId, max_token_len: u32) -> TermId {
        let list = match self.get(id) {
            TermNode::Alt(list) => list.to_vec(),
            _ => vec![id],
        };
        let mut seen: Vec<TermId> =
            list.iter().map(|&id| self.saturate_alternative(id, max_token_len)).collect();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() > 1 {
            // Its only string is the empty one, which every other alternative continues.
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

    /// Returns the character class of a term that may repeat it for longer than any token.
    fn loop_class(&self, id: TermId) -> Option<CharClassCover> {
        let (head, _) = self.head_and_tail(id);
        let (body, _, max) = self.repetition(head)?;
        match self.get(body) {
            TermNode::Dawg(dag) if max == UNBOUNDED => self.dawgs.class_cover(*dag),
            _ => None,
        }
    }

    /// Saturates the counters of one alternative and cuts its tail after `max_token_len` bytes.
    fn saturate_alternative(&mut self, id: TermId, max_token_len: u32) -> TermId {
        let mut heads = Vec::new();
        let mut length = 0u32;
        let mut rest = id;
        while rest != EPSILON && length <= max_token_len {
            let (head, tail) = self.head_and_tail(rest);
            let head = self.saturate_counter(head, max_token_len);
            length = length.saturating_add(self.properties(head).min_len);
            heads.push(head);
            rest = tail;
        }
        // Nothing that follows is visible, so one more iteration is always possible.
        if let Some(last) = heads.last_mut()
            && let Some((body, _, max)) = self.repetition(*last)
        {
            *last = self.repeat(body, 0, max, false);
        }
        heads.into_iter().rev().fold(EPSILON, |tail, head| self.cat(head, tail))
    }

    fn saturate_counter(&mut self, head: TermId, max_token_len: u32) -> TermId {
        match self.repetition(head) {
            Some((body, min, max)) => {
                let max = if max > max_token_len { UNBOUNDED } else { max };
                self.repeat(body, min.min(max_token_len + 1), max, false)
            }
            None => head,
        }
    }
}
