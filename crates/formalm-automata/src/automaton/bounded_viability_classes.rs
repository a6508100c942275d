//! The quotient of a regular automaton by viability of bounded strings, by normal forms of terms.
//!
//! Write V(s, w) for "w is viable from s" and n for a number of bytes. **Theorem.** For |w| ≤ n,
//! V(s, w) = V(class(s), w). Proof by induction on |w|: each rewriting below preserves V for strings
//! up to n bytes.
//!
//! Many states agree on which strings of at most n bytes keep a member reachable, so the normal form
//! of a term
//!
//! * saturates counters above n, which cannot run out within n bytes,
//! * cuts tails that no such string reaches,
//! * ignores acceptance,
//! * drops union members whose strings another member always continues.
//!
//! Under it `.{0,1000}` is `.*`, and all states of `(a|b)*a(a|b){40}` more than n bytes before the
//! end are one. The classes are the states of an automaton of their own. The rewritings need terms
//! that are never empty, so automata with other terms use their states as classes. Their states whose
//! terms are never empty have a quotient of their own ([`BoundedQuotient::of_pure_states`]).

use std::sync::{Arc, MutexGuard};

use formalm_core::{
    AppendVec, ByteSet, CharSet, ClassCover, Error, ForkSafeMutex, LazyDfa, MemoryBytes, Renewal,
    Resource, StateId, WIDE_PARTS, WideParts, check_limit,
};
use rustc_hash::FxHashMap;

use crate::automaton::transition_table::{DEAD, StateIndex, TransitionRows, UNKNOWN};
use crate::automaton::{Automaton, AutomatonCore};
use crate::terms::byte_equivalence::ByteSpan;
use crate::terms::dawg::CharClassCover;
use crate::terms::{EMPTY, EPSILON, TermArena, TermId, TermNode, UNBOUNDED};

/// Number of terms that are visited to find what a text begins with. Chosen, not measured.
const MAX_VISITED_TERMS: usize = 64;

/// Slots that a class has in the table of live bytes: eight for the bytes, one for what is known of
/// them, and three that keep the next ones in groups of four.
const LIVE_SLOTS: usize = 12;

/// The live bytes of a class are known.
const LIVE_KNOWN: u32 = 1;
/// The live bytes of a class can be found by steps only.
const LIVE_UNKNOWN: u32 = 2;

/// A class that reads `min` to `max` characters of a character class before anything else.
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
    /// Maximum number of characters; `None` if it exceeds the length of the quotient.
    pub max: Option<u32>,
    /// The class from which the repetition is left once enough characters are read; `None` if
    /// nothing follows.
    pub exit: Option<StateId>,
}

/// The quotient of an automaton by the viability of strings of at most some bytes. Its classes are
/// numbered like states, but are states of the quotient only.
///
/// ```
/// use std::sync::Arc;
///
/// use formalm_automata::{Automaton, AutomatonLimits, BoundedQuotient, Expression};
/// use formalm_core::LazyDfa;
/// use formalm_regex::{PatternDialect, PatternFlags, parse};
///
/// let pattern = parse("a{0,1000}", PatternDialect::Python, PatternFlags::default())?;
/// let automaton = Automaton::new(&Expression::pattern(pattern), AutomatonLimits::default())?;
/// let (start, next) = (automaton.start(), automaton.step(automaton.start(), b'a')?.unwrap());
/// let quotient = BoundedQuotient::new(Arc::new(automaton), 16);
/// assert_ne!(start, next);
/// assert_eq!(quotient.class_of(start)?, quotient.class_of(next)?);
/// # Ok::<(), formalm_core::Error>(())
/// ```
#[derive(Debug)]
pub struct BoundedQuotient {
    automaton: Arc<Automaton>,
    /// All terms are pure: those of the automaton, or those of the states that it is asked for.
    is_pure: bool,
    max_bytes: u32,
    rows: TransitionRows,
    /// The live bytes of each class, where they were asked for, in [`LIVE_SLOTS`] slots.
    live: AppendVec,
    /// The class of each state, where known.
    classes_of_states: AppendVec,
    tables: ForkSafeMutex<QuotientTables>,
}

#[derive(Debug, Default)]
struct QuotientTables {
    index: StateIndex,
    normal_forms: FxHashMap<TermId, TermId>,
}

impl BoundedQuotient {
    /// Creates the quotient for strings of at most `max_bytes` bytes.
    pub fn new(automaton: Arc<Automaton>, max_bytes: usize) -> BoundedQuotient {
        let is_pure = automaton.is_pure();
        BoundedQuotient {
            automaton,
            is_pure,
            max_bytes: u32::try_from(max_bytes).unwrap_or(UNBOUNDED - 2).min(UNBOUNDED - 2),
            rows: TransitionRows::default(),
            live: AppendVec::default(),
            classes_of_states: AppendVec::default(),
            tables: ForkSafeMutex::new(QuotientTables::default()),
        }
    }

    /// Creates the quotient of an automaton's states with pure terms ([`Automaton::is_pure_state`]).
    /// Only the classes of such states may be asked for.
    pub fn of_pure_states(automaton: Arc<Automaton>, max_bytes: usize) -> BoundedQuotient {
        BoundedQuotient { is_pure: true, ..BoundedQuotient::new(automaton, max_bytes) }
    }

    /// Returns the automaton.
    #[inline]
    pub fn automaton(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    /// Returns the class of a state of the automaton.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    #[inline]
    pub fn class_of(&self, state: StateId) -> Result<StateId, Error> {
        match self.known_class_of(state) {
            Some(class) => Ok(class),
            None => self.add_class_of(state),
        }
    }

    /// Returns the class of a state if it was computed before.
    #[inline]
    pub fn known_class_of(&self, state: StateId) -> Option<StateId> {
        if !self.is_pure {
            return Some(state);
        }
        match self.classes_of_states.get(state.number() as usize) {
            UNKNOWN => None,
            class => Some(StateId::from_number(class)),
        }
    }

    /// Returns the class after a byte; `None` if no member continues with it.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    #[inline]
    pub fn step(&self, class: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        if !self.is_pure {
            return self.automaton.step(class, byte);
        }
        let classes = &self.automaton.classes;
        let byte_class = classes.of(byte);
        let next = match self.rows.get(classes, class.number(), byte_class) {
            UNKNOWN => self.fill(class.number(), byte_class)?,
            next => next,
        };
        Ok((next != DEAD).then_some(StateId::from_number(next)))
    }

    /// Returns the bytes that some member continues with.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn live_bytes(&self, class: StateId) -> Result<ByteSet, Error> {
        if let Some(known) = self.cheap_live_bytes(class) {
            return Ok(known);
        }
        self.automaton.classes.live_bytes(|byte| Ok(self.step(class, byte)?.is_some()))
    }

    /// Returns `true` if the live bytes of classes can mostly be read off their terms.
    pub fn reads_live_bytes(&self) -> bool {
        self.is_pure
    }

    /// Returns the live bytes of a class, if they can be read off its term without a step.
    #[inline]
    pub fn cheap_live_bytes(&self, class: StateId) -> Option<ByteSet> {
        if !self.is_pure {
            return None;
        }
        let at = class.number() as usize * LIVE_SLOTS;
        match self.live.get(at + 8) {
            LIVE_KNOWN => {}
            LIVE_UNKNOWN => return None,
            _ => return self.read_live_bytes(class),
        }
        let (low, high) = (self.live.get_four(at), self.live.get_four(at + 4));
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Some(ByteSet::from_words([
            word(low[0], low[1]),
            word(low[2], low[3]),
            word(high[0], high[1]),
            word(high[2], high[3]),
        ]))
    }

    /// Reads the live bytes of a class off its term, and stores them.
    #[cold]
    fn read_live_bytes(&self, class: StateId) -> Option<ByteSet> {
        let term = self.term(class);
        // No pure term is empty, so each byte that some member begins with is live.
        let live = self.automaton.lock().deriver.terms.first_bytes(term);
        let first = class.number() as usize * LIVE_SLOTS;
        for (word, at) in live.iter().flat_map(ByteSet::words).zip((first..).step_by(2)) {
            self.live.set(at, word as u32);
            self.live.set(at + 1, (word >> 32) as u32);
        }
        self.live.set(first + 8, if live.is_some() { LIVE_KNOWN } else { LIVE_UNKNOWN });
        live
    }

    /// Returns the repetition if the class is one counter over one character class.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn char_repetition(&self, class: StateId) -> Result<Option<ClassLoop>, Error> {
        let Some((cover, set, min, max, tail)) = self.class_counter(class) else {
            return Ok(None);
        };
        let has_wide = cover.wide != [ClassCover::None; WIDE_PARTS];
        let exit = match tail {
            EPSILON => None,
            tail => Some(self.class_of_term(tail)?),
        };
        let first = exit.map_or(Ok(ByteSet::default()), |exit| self.live_bytes(exit))?;
        let wide_overlap = has_wide && (0x80..=0xFF).any(|byte| first.contains(byte));
        let max = (max != UNBOUNDED).then_some(max);
        let (ascii, wide) = (cover.ascii, cover.wide);
        let whole = ClassLoop { class: set, ascii, wide, min, max, exit };
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
            if cover.ascii >> byte & 1 != 0 && self.step(class, byte)? == Some(class) {
                ascii |= 1 << byte;
            }
        }
        Ok(Some(ClassLoop { ascii, exit: Some(class), ..whole }))
    }

    /// Returns the parts of the non-ASCII characters of which every character leads from a class to
    /// itself: those that each of its alternatives repeats, and that nothing after the repetition
    /// begins with. Others may, too.
    pub fn wide_loops(&self, class: StateId) -> WideParts {
        if !self.is_pure || !self.automaton.is_utf8() {
            return WideParts::default();
        }
        let term = self.term(class);
        let terms = &self.automaton.lock().deriver.terms;
        if !self.automaton.is_pure() && !terms.is_utf8(term) {
            return WideParts::default();
        }
        let mut visits = MAX_VISITED_TERMS;
        let alternatives = match terms.get(term) {
            TermNode::Alt(list) => &list[..],
            _ => &[term],
        };
        let repeated = alternatives.iter().map(|&one| repeated_wide_parts(terms, one, &mut visits));
        repeated.fold(WideParts::ALL, WideParts::intersection)
    }

    /// Returns a number of characters, any so many of which may follow if all are of an ASCII set:
    /// [`u32::MAX`] if any number may. It may be lower than the largest such number.
    pub fn reads_any_of(&self, class: StateId, characters: u128) -> u32 {
        if !self.is_pure {
            return 0;
        }
        let mut rest = self.term(class);
        let terms = &self.automaton.lock().deriver.terms;
        let mut count = 0u32;
        while rest != EPSILON {
            let (head, tail) = terms.head_and_tail(rest);
            let (body, _, max) = terms.repetition(head).unwrap_or((head, 1, 1));
            let TermNode::Dawg(dag) = terms.get(body) else { break };
            let cover = terms.dawgs.class_cover(*dag);
            if cover.is_none_or(|cover| characters & !cover.ascii != 0) {
                break;
            }
            if max == UNBOUNDED {
                return u32::MAX;
            }
            count = count.saturating_add(max).min(u32::MAX - 1);
            rest = tail;
        }
        count
    }

    /// Returns the memory in use, in bytes, without the automaton's.
    pub fn memory_bytes(&self) -> usize {
        let tables = self.lock_tables();
        self.rows.memory_bytes()
            + self.live.memory_bytes()
            + self.classes_of_states.memory_bytes()
            + tables.index.memory_bytes()
            + tables.normal_forms.len() * 16
    }

    /// Returns `true` if its tables were being changed while this process was forked.
    pub fn is_abandoned(&self) -> bool {
        self.tables.is_abandoned() || self.automaton.is_abandoned()
    }

    /// Returns the quotient of an automaton that is built again.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn fresh_copy(&self) -> Result<Option<BoundedQuotient>, Error> {
        let (automaton, max_bytes) = (self.automaton.fresh_copy()?, self.max_bytes as usize);
        Ok(automaton.map(|one| BoundedQuotient {
            is_pure: self.is_pure,
            ..BoundedQuotient::new(Arc::new(one), max_bytes)
        }))
    }

    fn lock_tables(&self) -> MutexGuard<'_, QuotientTables> {
        self.tables.lock()
    }

    /// Returns the term of a class.
    pub(super) fn term(&self, class: StateId) -> TermId {
        self.lock_tables().index.term(class.number())
    }

    /// Returns the class of a term, which must not be empty.
    pub(super) fn class_of_term(&self, term: TermId) -> Result<StateId, Error> {
        let tables = &mut self.lock_tables();
        let core = &mut self.automaton.lock();
        Ok(StateId::from_number(self.intern(tables, core, term)?))
    }

    fn add_class_of(&self, state: StateId) -> Result<StateId, Error> {
        let tables = &mut self.lock_tables();
        let core = &mut self.automaton.lock();
        let term = self.automaton.term(core, state);
        let class = self.intern(tables, core, term)?;
        self.classes_of_states.set(state.number() as usize, class);
        Ok(StateId::from_number(class))
    }

    /// Returns `(cover, class, min, max, tail)` of a class that is one counter over one character
    /// class.
    fn class_counter(&self, class: StateId) -> Option<(CharClassCover, CharSet, u32, u32, TermId)> {
        if !self.is_pure || !self.automaton.is_utf8() {
            return None;
        }
        let term = self.term(class);
        let terms = &self.automaton.lock().deriver.terms;
        if !self.automaton.is_pure() && !terms.is_utf8(term) {
            return None;
        }
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

    fn fill(&self, class: u32, byte_class: usize) -> Result<u32, Error> {
        let tables = &mut self.lock_tables();
        let core = &mut self.automaton.lock();
        let classes = &self.automaton.classes;
        let term = tables.index.term(class);
        let byte = classes.representatives()[byte_class];
        let next = core.derive(term, byte)?;
        let next = self.intern(tables, core, next)?;
        self.rows.set(classes, class, ByteSpan::around(&core.deriver.terms, term, byte), next);
        Ok(next)
    }

    fn intern(
        &self,
        tables: &mut QuotientTables,
        core: &mut AutomatonCore,
        term: TermId,
    ) -> Result<u32, Error> {
        if term == EMPTY {
            return Ok(DEAD);
        }
        let terms = &mut core.deriver.terms;
        // Inside a character only the tail can change, and tails are few.
        let (head, tail) = match *terms.get(term) {
            TermNode::Cat(head, tail) if matches!(terms.get(head), TermNode::Dawg(_)) => {
                (head, tail)
            }
            _ => (EPSILON, term),
        };
        let normal = match tables.normal_forms.get(&tail) {
            Some(&normal) => normal,
            None => {
                let normal = BoundedNormalForm { terms, max_bytes: self.max_bytes }.of(tail);
                tables.normal_forms.insert(tail, normal);
                normal
            }
        };
        let normal = if normal == tail { term } else { core.deriver.terms.cat(head, normal) };
        if let Some(class) = tables.index.find(normal) {
            return Ok(class);
        }
        let limits = self.automaton.limits;
        check_limit(Resource::States, tables.index.len() as u64 + 1, limits.states)?;
        check_limit(Resource::Bytes, core.deriver.memory_bytes() as u64, limits.bytes)?;
        Ok(tables.index.add(normal))
    }
}

/// Returns parts of the non-ASCII characters that a term repeats and that nothing after the
/// repetition begins with.
fn repeated_wide_parts(terms: &TermArena, id: TermId, visits: &mut usize) -> WideParts {
    let (head, tail) = terms.head_and_tail(id);
    let Some((body, 0, UNBOUNDED)) = terms.repetition(head) else { return WideParts::default() };
    let TermNode::Dawg(dag) = terms.get(body) else { return WideParts::default() };
    let Some(cover) = terms.dawgs.class_cover(*dag) else { return WideParts::default() };
    WideParts::full(cover.wide).without(first_wide_parts(terms, tail, visits))
}

/// Returns parts of the non-ASCII characters, outside of which the strings of a term begin with none.
fn first_wide_parts(terms: &TermArena, id: TermId, visits: &mut usize) -> WideParts {
    let properties = terms.properties(id);
    if properties.pure && !properties.alphabet.wide {
        return WideParts::default();
    }
    let Some(left) = visits.checked_sub(1) else { return WideParts::ALL };
    *visits = left;
    match terms.get(id) {
        TermNode::Dawg(dag) => {
            let cover = terms.dawgs.class_cover(*dag);
            cover.map_or(WideParts::ALL, |cover| WideParts::touched(cover.wide))
        }
        &TermNode::Cat(head, tail) => {
            let first = first_wide_parts(terms, head, visits);
            match terms.properties(head).nullable {
                true => first.union(first_wide_parts(terms, tail, visits)),
                false => first,
            }
        }
        TermNode::Alt(list) => {
            let parts = list.iter().map(|&one| first_wide_parts(terms, one, visits));
            parts.fold(WideParts::default(), WideParts::union)
        }
        &TermNode::Repeat { body, .. } => first_wide_parts(terms, body, visits),
        _ => WideParts::ALL,
    }
}

/// The normal form of terms: everything removed that no string of `max_bytes` bytes distinguishes.
struct BoundedNormalForm<'a> {
    terms: &'a mut TermArena,
    max_bytes: u32,
}

impl BoundedNormalForm<'_> {
    fn of(&mut self, id: TermId) -> TermId {
        let list = match self.terms.get(id) {
            TermNode::Alt(list) => list.to_vec(),
            _ => vec![id],
        };
        let mut seen: Vec<TermId> = list.iter().map(|&id| self.of_alternative(id)).collect();
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
                let terms = &*self.terms;
                let absorbed = |id: TermId| terms.properties(id).alphabet.within(class);
                let before = seen[..at].iter().filter(|&&id| absorbed(id)).count();
                seen.retain(|&id| id == loops || !absorbed(id));
                at -= before;
            }
            at += 1;
        }
        self.terms.alt(seen)
    }

    /// Returns the character class of a term that may repeat it for longer than any string.
    fn loop_class(&self, id: TermId) -> Option<CharClassCover> {
        let (head, _) = self.terms.head_and_tail(id);
        let (body, _, max) = self.terms.repetition(head)?;
        match self.terms.get(body) {
            TermNode::Dawg(dag) if max == UNBOUNDED => self.terms.dawgs.class_cover(*dag),
            _ => None,
        }
    }

    /// Saturates the counters of one alternative and cuts its tail after `max_bytes` bytes.
    fn of_alternative(&mut self, id: TermId) -> TermId {
        let mut heads = Vec::new();
        let mut length = 0u32;
        let mut rest = id;
        while rest != EPSILON && length <= self.max_bytes {
            let (head, tail) = self.terms.head_and_tail(rest);
            let head = self.saturate_counter(head);
            length = length.saturating_add(self.terms.properties(head).min_len);
            heads.push(head);
            rest = tail;
        }
        // Nothing that follows is visible, so one more iteration is always possible.
        if let Some(last) = heads.last_mut()
            && let Some((body, _, max)) = self.terms.repetition(*last)
        {
            *last = self.terms.repeat(body, 0, max, false);
        }
        heads.into_iter().rev().fold(EPSILON, |tail, head| self.terms.cat(head, tail))
    }

    fn saturate_counter(&mut self, head: TermId) -> TermId {
        match self.terms.repetition(head) {
            Some((body, min, max)) => {
                let max = if max > self.max_bytes { UNBOUNDED } else { max };
                self.terms.repeat(body, min.min(self.max_bytes + 1), max, false)
            }
            None => head,
        }
    }
}
