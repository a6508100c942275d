//! Counter abstraction: states of intersections without counters that short strings cannot exhaust.
//!
//! **Lemma.** A ∧ Σ{0,n} allows the same strings of at most n′ bytes as A if n ≥ n′ + d, where d
//! bounds the shortest completion from wherever these strings lead.
//!
//! **Lemma.** If up to k characters can be appended to every member of A again and again, the same
//! holds for A ∧ Σ{m,n} if n ≥ n′ + d + k - 1 and n ≥ m + k - 1: some completion has m or more
//! characters with what was read, and at most n. Here A has members that A ∧ Σ{m,n} lacks.
//!
//! It suffices that some completion of whatever these strings lead to can be extended, or that all
//! completions are long enough ([`CounterAbstraction::longer_completions`]): between the parts of an
//! e-mail address, say, the name of the user or the host may grow.
//!
//! "This pattern, and at most 300 characters" has one state for each number of characters left. As
//! long as that number is large, no short string can exhaust it, so the counter can be dropped. Counted
//! repetitions inside A behave alike: within few characters (\S+\s+){0,30} is a star.

use std::convert::Infallible;
use std::sync::Arc;

use formalm_core::{Error, StateId, memory_bytes};
use rustc_hash::FxHashMap;

use crate::automaton::{Automaton, AutomatonCore};
use crate::terms::custom_language::{
    CharRecognizer, CompletionLengths, RepresentativeState, TransientState,
};
use crate::terms::dawg::{DawgId, Dawgs};
use crate::terms::{TermArena, TermId, TermNode, UNBOUNDED};

/// Minimum number of characters that a repetition's maximum must allow for it to be dropped.
/// Smaller counters are kept. Chosen, not measured.
const MIN_DROPPED_CHARS: u64 = 12;

/// A state without a counter, and how far it is exact.
#[derive(Clone, Copy, Debug)]
pub struct Saturated<S> {
    /// The state without the counter; it allows at least what the concrete state allows.
    pub state: S,
    /// Both states allow the same strings of up to this many characters.
    pub exact_chars: u64,
    /// The concrete state allows no string of more characters.
    pub max_chars: u64,
    /// The members of up to `exact_chars` characters are those of the concrete state, too.
    pub has_same_members: bool,
}

impl Automaton {
    /// Returns a state without the counters that strings of at most `max_bytes` bytes cannot
    /// exhaust; both allow the same such strings, and accept the same.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn saturate_counters(&self, state: StateId, max_bytes: usize) -> Result<StateId, Error> {
        let mut near = state;
        while let Some(next) = self.without_counter(near)?
            && next.exact_chars >= max_bytes as u64
            && next.has_same_members
        {
            near = next.state;
        }
        Ok(near)
    }

    /// Returns `true` if the strings from a state on are known to be all those of some numbers of
    /// characters in a row, as of `.{2,100}`.
    pub fn counts_any_characters(&self, state: StateId) -> bool {
        let core = &self.lock();
        core.deriver.terms.any_char_counts(self.term(core, state)).is_some()
    }

    /// Drops a counter over all characters or, without one, the maxima of the repetitions.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn without_counter(&self, state: StateId) -> Result<Option<Saturated<StateId>>, Error> {
        let core = &mut self.lock();
        let term = self.term(core, state);
        let AutomatonCore { deriver, counters, .. } = &mut **core;
        let mut removal = CounterAbstraction { terms: &mut deriver.terms, tables: counters };
        let Some(found) = removal.without_counter(term) else { return Ok(None) };
        let state = StateId::from_number(self.intern(core, found.state)?);
        let Saturated { exact_chars, max_chars, has_same_members, .. } = found;
        Ok(Some(Saturated { state, exact_chars, max_chars, has_same_members }))
    }

    /// Splits a state into what a recognizer reads on, by its representative, and alternatives that
    /// no recognizer reads. Returns `None` if that is not possible.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn transient_state(&self, state: StateId) -> Result<Option<TransientState>, Error> {
        let core = &mut self.lock();
        let term = self.term(core, state);
        let terms = &mut core.deriver.terms;
        let alternatives = match terms.get(term) {
            TermNode::Alt(list) => list.to_vec(),
            _ => vec![term],
        };
        let (read, regular): (Vec<TermId>, Vec<TermId>) =
            alternatives.into_iter().partition(|&term| terms.properties(term).has_recognizer);
        let recognizer = match read[..] {
            [] => None,
            [term] => match representative(terms, term) {
                Some(found) => Some(found),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let regular = match regular[..] {
            [] => None,
            _ => Some(terms.alt(regular)),
        };
        let mut intern = |term| Ok::<_, Error>(StateId::from_number(self.intern(core, term)?));
        let recognizer = match recognizer {
            Some((given, found)) => Some((given, found.with_state(&mut intern)?)),
            None => None,
        };
        Ok(Some(TransientState { recognizer, regular: regular.map(intern).transpose()? }))
    }
}

/// Number of characters from which a maximum hardly matters. Chosen, not measured.
const MANY_CHARS: u32 = 24;

/// Returns the representative of "a recognizer's language, and at least m and at most n
/// characters", with its term as its state.
fn representative(
    terms: &mut TermArena,
    term: TermId,
) -> Option<(Arc<dyn CharRecognizer>, RepresentativeState<TermId>)> {
    let (term, counts) = without_char_counts(terms, term);
    let TermNode::Custom(at) = *terms.get(term) else { return None };
    let (given, mut found) = terms.recognizers.representative(at)?;
    if let Some((least, most)) = counts {
        let CompletionLengths { max_chars, simple, extensible_chars } = found.completions;
        if least > 0 && (most <= least || least > extensible_chars) {
            return None;
        }
        // Some member lies within the characters that are left.
        let room = |bound: u32| most.checked_sub(bound);
        let all = room(max_chars);
        let room = match simple {
            Some(simple)
                if found.excluded.or(simple.except) == found.excluded
                    || all.is_none_or(|all| all < found.max_chars.min(MANY_CHARS)) =>
            {
                found.excluded = found.excluded.or(simple.except);
                room(simple.max_chars)?
            }
            _ => all?,
        };
        found.max_chars = found.max_chars.min(room);
        found.refused.max_chars = found.refused.max_chars.min(most);
    }
    let mut to_term =
        |state| Ok::<_, Infallible>(terms.intern(TermNode::Custom(at.with_state(state))));
    let Ok(found) = found.with_state(&mut to_term);
    Some((given, found))
}

/// Splits "this language, and m to n characters" into the language, m and n.
fn without_char_counts(terms: &TermArena, term: TermId) -> (TermId, Option<(u32, u32)>) {
    let TermNode::And(list) = terms.get(term) else { return (term, None) };
    match list[..] {
        [one, other] => match (terms.any_char_counts(one), terms.any_char_counts(other)) {
            (Some(counts), None) => (other, Some(counts)),
            (None, Some(counts)) => (one, Some(counts)),
            _ => (term, None),
        },
        _ => (term, None),
    }
}

/// What is known of the counters in an automaton's terms. Terms are graphs with shared parts, and
/// states have most parts in common.
#[derive(Debug, Default)]
pub(super) struct CounterTables {
    /// Terms without the large maxima of their repetitions, and how many characters are sure not
    /// to reach these.
    unbounded: FxHashMap<TermId, (TermId, u64)>,
    /// Lower bounds on the characters of terms' strings.
    min_chars: FxHashMap<TermId, u64>,
    /// Lengths of the longest words of acyclic automata.
    longest_words: FxHashMap<DawgId, u64>,
    /// Members that can be extended, see [`CounterAbstraction::extension`].
    extensions: FxHashMap<TermId, Option<Extension>>,
    /// Completions of some length, see [`CounterAbstraction::longer_completions`].
    longer: FxHashMap<(TermId, u32), Option<Extension>>,
}

memory_bytes!(CounterTables { unbounded, min_chars, longest_words, extensions, longer });

/// Bounds on the bytes of a string that can be extended again and again, and on the characters of
/// each extension, of which there is at least one.
type Extension = (u64, u64);

/// The removal of counters from terms.
struct CounterAbstraction<'a> {
    terms: &'a mut TermArena,
    tables: &'a mut CounterTables,
}

impl CounterAbstraction<'_> {
    fn without_counter(&mut self, term: TermId) -> Option<Saturated<TermId>> {
        let TermNode::And(list) = self.terms.get(term) else {
            let (state, same) = self.unbound_repetitions(term);
            return (state != term).then_some(Saturated {
                state,
                exact_chars: same,
                max_chars: u64::MAX,
                has_same_members: true,
            });
        };
        let list = list.clone();
        let terms = &*self.terms;
        let (mut counted, mut least, mut most) = (false, 0, UNBOUNDED);
        let mut kept = Vec::new();
        for &id in list.iter() {
            let Some((low, high)) = terms.any_char_counts(id) else {
                kept.push(id);
                continue;
            };
            (counted, least, most) = (true, least.max(low), most.min(high));
        }
        // The completion distance is known for a single term only.
        let [other] = kept[..] else { return None };
        if !counted {
            return None;
        }
        if least <= terms.min_chars_of_utf8(other) {
            // Every member is long enough.
            least = 0;
        }
        let (far, step) = match least {
            0 => (self.max_completion_bytes(other)?, 1),
            _ => self.longer_completions(other, least)?,
        };
        let slack = step - 1;
        let max_chars = if most == UNBOUNDED { u64::MAX } else { u64::from(most) };
        if u64::from(least) + slack > max_chars {
            return None;
        }
        Some(Saturated {
            state: other,
            exact_chars: max_chars.checked_sub(far)?.checked_sub(slack)?,
            max_chars,
            has_same_members: least == 0,
        })
    }

    /// Removes the large maxima of the repetitions of a pure term, and returns how many characters
    /// are sure not to reach them.
    fn unbound_repetitions(&mut self, id: TermId) -> (TermId, u64) {
        if !self.terms.properties(id).pure {
            return (id, u64::MAX);
        }
        if let Some(&known) = self.tables.unbounded.get(&id) {
            return known;
        }
        let found = self.unbound_parts(id);
        if matches!(
            self.terms.get(id),
            TermNode::Cat(..) | TermNode::Alt(_) | TermNode::Repeat { .. }
        ) {
            self.tables.unbounded.insert(id, found);
        }
        found
    }

    /// As [`CounterAbstraction::unbound_repetitions`], which remembers it, for a pure term.
    fn unbound_parts(&mut self, id: TermId) -> (TermId, u64) {
        match self.terms.get(id).clone() {
            TermNode::Cat(head, tail) => {
                let ((head, one), (tail, other)) =
                    (self.unbound_repetitions(head), self.unbound_repetitions(tail));
                (self.terms.cat(head, tail), one.min(other))
            }
            TermNode::Alt(list) => {
                let mut most = u64::MAX;
                let mut all = Vec::with_capacity(list.len());
                for &id in &*list {
                    let (id, within) = self.unbound_repetitions(id);
                    all.push(id);
                    most = most.min(within);
                }
                (self.terms.alt(all), most)
            }
            TermNode::Repeat { body, min, max, lazy } => {
                let (inner, inside) = self.unbound_repetitions(body);
                // The last iteration may be incomplete when the earlier ones have been read.
                let within = self.min_chars(body).saturating_mul(u64::from(max.saturating_sub(1)));
                if max != UNBOUNDED && within >= MIN_DROPPED_CHARS {
                    let state = self.terms.repeat(inner, min, UNBOUNDED, lazy);
                    return (state, within.min(inside));
                }
                if inner == body {
                    return (id, u64::MAX);
                }
                (self.terms.repeat(inner, min, max, lazy), inside)
            }
            _ => (id, u64::MAX),
        }
    }

    /// Returns a lower bound on the characters of a pure term's strings.
    fn min_chars(&mut self, id: TermId) -> u64 {
        if let Some(&known) = self.tables.min_chars.get(&id) {
            return known;
        }
        let found = match *self.terms.get(id) {
            TermNode::Cat(head, tail) => self.min_chars(head).saturating_add(self.min_chars(tail)),
            TermNode::Alt(ref list) => {
                let list = list.clone();
                list.iter().map(|&id| self.min_chars(id)).min().unwrap_or(0)
            }
            TermNode::Repeat { body, min, .. } => {
                u64::from(min).saturating_mul(self.min_chars(body))
            }
            TermNode::Dawg(dag) if self.terms.dawgs.class_cover(dag).is_some() => return 1,
            _ => return u64::from(self.terms.properties(id).min_len / 4),
        };
        self.tables.min_chars.insert(id, found);
        found
    }

    /// Returns an upper bound on the bytes that complete a string from anywhere inside a term.
    fn max_completion_bytes(&mut self, id: TermId) -> Option<u64> {
        let mut most = 0;
        let mut rest = id;
        loop {
            let (head, tail) = self.terms.head_and_tail(rest);
            let after = u64::from(self.terms.properties(tail).min_len);
            most = most.max(self.head_completion_bytes(head)? + after);
            if tail == rest || matches!(self.terms.get(tail), TermNode::Epsilon) {
                return Some(most);
            }
            rest = tail;
        }
    }

    /// Returns the shortest known member of a pure term that can be extended again and again.
    fn extension(&mut self, id: TermId) -> Option<Extension> {
        if let Some(&known) = self.tables.extensions.get(&id) {
            return known;
        }
        let min_len = |terms: &TermArena, id| u64::from(terms.properties(id).min_len);
        let found = match (self.terms.properties(id).appendable_chars, self.terms.get(id)) {
            (Some(step), _) => Some((min_len(self.terms, id), u64::from(step.get()))),
            (None, &TermNode::Cat(head, tail)) => {
                let (before, after) = (min_len(self.terms, head), min_len(self.terms, tail));
                let head = self.extension(head).map(|(bytes, step)| (bytes + after, step));
                let tail = self.extension(tail).map(|(bytes, step)| (before + bytes, step));
                head.into_iter().chain(tail).min()
            }
            (None, TermNode::Alt(list)) => {
                let list = list.clone();
                list.iter().filter_map(|&id| self.extension(id)).min()
            }
            _ => None,
        };
        self.tables.extensions.insert(id, found);
        found
    }

    /// Returns bounds on completions, from anywhere inside a pure term, that have at least `least`
    /// characters together with what was read, or that can be extended again and again. `None` if
    /// the term does not show that there are such.
    ///
    /// In a concatenation, what follows may be extended while the first part is read; and after it,
    /// at least its least number of characters was read.
    fn longer_completions(&mut self, id: TermId, least: u32) -> Option<Extension> {
        if let Some(&known) = self.tables.longer.get(&(id, least)) {
            return known;
        }
        let found = self.find_longer_completions(id, least);
        self.tables.longer.insert((id, least), found);
        found
    }

    fn find_longer_completions(&mut self, id: TermId, least: u32) -> Option<Extension> {
        if least <= self.terms.min_chars_of_utf8(id) {
            return Some((self.max_completion_bytes(id)?, 1));
        }
        if let Some(step) = self.terms.properties(id).appendable_chars {
            return Some((self.max_completion_bytes(id)?, u64::from(step.get())));
        }
        match self.terms.get(id) {
            &TermNode::Cat(head, tail) => {
                let (bytes, step) = self.extension(tail)?;
                let inside = self.head_completion_bytes(head)?.checked_add(bytes)?;
                let read = self.terms.min_chars_of_utf8(head);
                let (after, other) = self.longer_completions(tail, least.saturating_sub(read))?;
                Some((inside.max(after), step.max(other)))
            }
            TermNode::Alt(list) => {
                let list = list.clone();
                list.iter().try_fold((0, 1), |(most, step), &id| {
                    let (bytes, other) = self.longer_completions(id, least)?;
                    Some((most.max(bytes), step.max(other)))
                })
            }
            _ => None,
        }
    }

    fn head_completion_bytes(&mut self, head: TermId) -> Option<u64> {
        match *self.terms.get(head) {
            TermNode::Epsilon => Some(0),
            TermNode::Dawg(dag) => {
                Some(longest_word(&self.terms.dawgs, dag, &mut self.tables.longest_words))
            }
            TermNode::Alt(ref list) => {
                let list = list.clone();
                list.iter().try_fold(0, |most, &id| Some(self.max_completion_bytes(id)?.max(most)))
            }
            TermNode::Repeat { body, min, .. } => {
                let others = u64::from(self.terms.properties(body).min_len) * u64::from(min);
                Some(self.max_completion_bytes(body)? + others)
            }
            _ => None,
        }
    }
}

/// Returns the bytes of the longest word of an acyclic automaton.
fn longest_word(dags: &Dawgs, dag: DawgId, known: &mut FxHashMap<DawgId, u64>) -> u64 {
    if let Some(&length) = known.get(&dag) {
        return length;
    }
    let edges = dags.edges(dag).iter();
    let length = edges.map(|&(_, _, next)| 1 + longest_word(dags, next, known)).max().unwrap_or(0);
    known.insert(dag, length);
    length
}

#[cfg(test)]
mod tests {
    use formalm_core::{LazyDfa, StateId};

    use crate::tests::{automaton, expression};
    use crate::{Automaton, AutomatonLimits, Expression};

    fn length_bounded_automaton(pattern: &str, most: u32) -> Option<Automaton> {
        let lengths = expression(&format!("(?s:.){{0,{most}}}"));
        let both = Expression::intersection(vec![expression(pattern), lengths]);
        Automaton::of(&both.unwrap(), AutomatonLimits::default()).unwrap()
    }

    fn after(machine: &Automaton, state: StateId, text: &[u8]) -> Option<StateId> {
        machine.walk(state, text).unwrap().ok()
    }

    #[test]
    fn saturated_states_allow_the_same_strings_up_to_the_given_length() {
        for pattern in [
            "(a+b)*",
            "(ab?c{3}){2,}|é*",
            "(foo|aaaaab)+",
            "a{4}b*",
            ".*bbbb",
            "(a+b){0,30}a+",
            "a([ab]{0,14}c)?(b[ab]{0,14}c)*",
        ] {
            for most in [0, 1, 2, 5, 9, 14, 18, 20, 23, 40] {
                let Some(machine) = length_bounded_automaton(pattern, most) else { continue };
                let mut open = vec![machine.start()];
                for at in 0..60 {
                    let Some(&state) = open.get(at) else { break };
                    let near = machine.saturate_counters(state, 3).unwrap();
                    for text in 0..64u32 {
                        let letters = [b'a', b'b', b'c', b'f'];
                        let text: Vec<u8> =
                            (0..3).map(|at| letters[(text >> (2 * at) & 3) as usize]).collect();
                        for length in 0..=3 {
                            let one = after(&machine, state, &text[..length]).is_some();
                            let other = after(&machine, near, &text[..length]).is_some();
                            assert_eq!(one, other, "{pattern} {most} {text:?}");
                        }
                        open.extend(after(&machine, state, &text[..2]));
                    }
                }
            }
        }
    }

    #[test]
    fn states_without_counters_agree_with_counted_ones_as_far_as_they_say() {
        let letters = ["a", "b", "c", "é"];
        let mut found = 0;
        let loops = ["[abé]*", "a[ab]*", "(ab)+", "c?(abé|b)+", "(a+b)*", "a*|(bc)+", "a*b?"];
        let inner =
            ["a+b", "(a|bc)+c", "a*(ba*c|cab)", "(a+b|ccccc)é?", "a+(b+c|bcbcb)", "c?a*(bé)*c"];
        for pattern in loops.into_iter().chain(inner) {
            for (least, most) in [(0, 5), (1, 6), (3, 4), (3, 7), (4, 6), (2, 9), (5, 8)] {
                let lengths = expression(&format!("(?s:.){{{least},{most}}}"));
                let both = Expression::intersection(vec![expression(pattern), lengths]).unwrap();
                let machine = Automaton::of(&both, AutomatonLimits::default()).unwrap();
                let Some(machine) = machine else { continue };
                let near = machine.without_counter(machine.start()).unwrap();
                let Some(near) = near else { continue };
                found += 1;
                assert_eq!(near.max_chars, most);
                let mut texts = vec![String::new()];
                for length in 0..=near.exact_chars.min(6) {
                    for text in &texts {
                        let one = after(&machine, machine.start(), text.as_bytes());
                        let other = after(&machine, near.state, text.as_bytes());
                        assert_eq!(one.is_some(), other.is_some(), "{pattern} {least} {text}");
                        let ends = |state: Option<StateId>| {
                            state.is_some_and(|state| machine.is_accepting(state))
                        };
                        let is_same = ends(one) == ends(other);
                        let is_asked = near.has_same_members || length >= least;
                        assert!(is_same || !is_asked, "{pattern} {least} {text}");
                    }
                    let longer = |text: &String| letters.map(|letter| format!("{text}{letter}"));
                    texts = texts.iter().flat_map(longer).collect();
                }
            }
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn counts_of_all_characters_that_occur_are_dropped() {
        let words = automaton(r"(?=.{1,99}\Z)[a-z]+(\.[a-z]+)*");
        let inside = after(&words, words.start(), b"ab").unwrap();
        let near = words.without_counter(inside).unwrap().unwrap();
        assert_eq!((near.max_chars, near.has_same_members), (97, true));
        assert_eq!(after(&words, near.state, b"a.bc"), Some(near.state));
    }

    #[test]
    fn large_counters_are_dropped() {
        let machine = length_bounded_automaton("([a-z]+ )*[a-z]+", 300).unwrap();
        let near = machine.saturate_counters(machine.start(), 100).unwrap();
        let long = after(&machine, near, &[b'a'; 2]).unwrap();
        assert_eq!(after(&machine, long, b"aa bc"), Some(long));
        assert_eq!(machine.saturate_counters(machine.start(), 299).unwrap(), machine.start());
        let words = automaton("([a-z]+ ){0,30}[a-z]+");
        let near = words.saturate_counters(words.start(), 58).unwrap();
        let later = after(&words, near, b"a b c d ").unwrap();
        assert_eq!(after(&words, later, b"e "), Some(later));
        assert_eq!(words.saturate_counters(words.start(), 59).unwrap(), words.start());
    }
}
