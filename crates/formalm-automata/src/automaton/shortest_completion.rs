//! Shortest completions: read off a pure term, or found by a best-first search.
//!
//! A pure term is never empty and the length of its shortest string is known, so the string is
//! written part by part. Otherwise a search finds the length first, guided by lower bounds on
//! terms, then the smallest string of that length. It builds every state it visits.

use std::collections::BTreeMap;
use std::rc::Rc;

use formalm_core::{Error, LazyDfa, Resource, StateId, check_limit};
use rustc_hash::FxHashMap;

use crate::automaton::Automaton;
use crate::terms::{TermArena, TermId, TermNode};

/// Maximum length, in bytes, of strings that are read off a term. Longer ones are searched, so that
/// their cost is counted. Chosen, not measured.
const MAX_DIRECT_BYTES: u32 = 1 << 16;
/// Maximum nesting depth of terms that are read off. Chosen, not measured.
const MAX_TERM_DEPTH: usize = 200;

/// The smallest shortest strings of pure terms, read off the terms.
pub(super) struct ShortestWord<'a> {
    terms: &'a TermArena,
    /// The shortest strings of terms, where known.
    known: FxHashMap<TermId, Option<Rc<[u8]>>>,
}

impl ShortestWord<'_> {
    /// Returns the smallest shortest string of a pure term, or `None` if the term does not show it.
    pub(super) fn of(terms: &TermArena, id: TermId) -> Option<Vec<u8>> {
        let properties = terms.properties(id);
        if !properties.pure || properties.min_len > MAX_DIRECT_BYTES {
            return None;
        }
        let mut text = Vec::with_capacity(properties.min_len as usize);
        let mut words = ShortestWord { terms, known: FxHashMap::default() };
        words.write(id, &mut text, MAX_TERM_DEPTH)?;
        Some(text)
    }

    fn write(&mut self, id: TermId, text: &mut Vec<u8>, depth: usize) -> Option<()> {
        let terms = self.terms;
        let depth = depth.checked_sub(1)?;
        let mut id = id;
        loop {
            match *terms.get(id) {
                TermNode::Epsilon | TermNode::Full => return Some(()),
                TermNode::Dawg(node) => {
                    terms.dawgs.write_shortest_word(node, text);
                    return Some(());
                }
                // All shortest strings of the first part are equally long, so its smallest one goes
                // first.
                TermNode::Cat(first, rest) => {
                    self.write(first, text, depth)?;
                    id = rest;
                }
                TermNode::Alt(ref list) => {
                    let least = terms.properties(id).min_len;
                    let mut best: Option<Rc<[u8]>> = None;
                    for &one in list.iter().filter(|&&one| terms.properties(one).min_len == least) {
                        let one = self.known_shortest(one, depth)?;
                        best = Some(best.filter(|best| *best <= one).unwrap_or(one));
                    }
                    text.extend_from_slice(&best?);
                    return Some(());
                }
                TermNode::Repeat { body, min, .. } => {
                    if terms.properties(body).min_len > 0 && min > 0 {
                        let one = self.known_shortest(body, depth)?;
                        (0..min).for_each(|_| text.extend_from_slice(&one));
                    }
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn known_shortest(&mut self, id: TermId, depth: usize) -> Option<Rc<[u8]>> {
        if let Some(text) = self.known.get(&id) {
            return text.clone();
        }
        let mut text = Vec::new();
        let text = self.write(id, &mut text, depth).map(|()| text.into());
        self.known.insert(id, text.clone());
        text
    }
}

/// The search for the smallest shortest completion of a state.
pub(super) struct CompletionSearch<'a> {
    automaton: &'a Automaton,
    begun_at: u64,
    allowed: u64,
}

impl CompletionSearch<'_> {
    /// Creates a search of at most `allowed` steps on new states.
    pub(super) fn new(automaton: &Automaton, allowed: u64) -> CompletionSearch<'_> {
        CompletionSearch { automaton, begun_at: automaton.work(), allowed }
    }

    /// Returns the smallest shortest completion.
    pub(super) fn run(&self, start: StateId) -> Result<Vec<u8>, Error> {
        let length = self.shortest_length(start)?;
        let mut text = Vec::with_capacity(length);
        // The states on the path, with how many byte classes were tried from each.
        let mut way = vec![(start, 0)];
        // For each state, a number of bytes that is too small to complete it.
        let mut few: FxHashMap<StateId, usize> = FxHashMap::default();
        while let Some((here, tried)) = way.last_mut() {
            let here = *here;
            self.check_steps()?;
            let left = length - text.len();
            if left == 0 && self.automaton.is_accepting(here) {
                break;
            }
            let Some(&byte) = self.automaton.class_starts().get(*tried).filter(|_| left > 0) else {
                few.insert(here, left);
                way.pop();
                text.pop();
                continue;
            };
            *tried += 1;
            if let Some(next) = self.automaton.step(here, byte)?
                && self.min_bytes(next) < left
                && few.get(&next).is_none_or(|&few| few + 1 < left)
            {
                text.push(byte);
                way.push((next, 0));
            }
        }
        Ok(text)
    }

    /// Returns the length of the shortest completion; 0 for a state without one.
    fn shortest_length(&self, start: StateId) -> Result<usize, Error> {
        let mut read = FxHashMap::from_iter([(start, 0)]);
        // States by the total length of a member through them, each with the bytes read.
        let mut open = BTreeMap::from([(self.min_bytes(start), vec![(start, 0)])]);
        while let Some(mut least) = open.first_entry() {
            let all = *least.key();
            let Some((here, length)) = least.get_mut().pop() else {
                least.remove();
                continue;
            };
            if self.automaton.is_accepting(here) {
                return Ok(length);
            }
            if read.get(&here).is_some_and(|&other| other < length) {
                continue;
            }
            self.check_steps()?;
            for &byte in self.automaton.class_starts() {
                let Some(next) = self.automaton.step(here, byte)? else { continue };
                let before = read.entry(next).or_insert(usize::MAX);
                if length + 1 < *before {
                    *before = length + 1;
                    let all = all.max(length + 1 + self.min_bytes(next));
                    open.entry(all).or_default().push((next, length + 1));
                }
            }
        }
        Ok(0)
    }

    fn check_steps(&self) -> Result<(), Error> {
        check_limit(Resource::Steps, self.automaton.work() - self.begun_at, self.allowed)
    }

    /// Returns a lower bound on the bytes of every completion.
    fn min_bytes(&self, state: StateId) -> usize {
        let core = self.automaton.lock();
        search_min_bytes(&core.deriver.terms, self.automaton.term(&core, state)) as usize
    }
}

/// Returns a lower bound on the bytes of a term's strings, with the tighter bounds that recognizers
/// compute for searches.
fn search_min_bytes(terms: &TermArena, id: TermId) -> u32 {
    let needs = match terms.get(id) {
        TermNode::Custom(at) => terms.recognizers.search_min_bytes(*at),
        &TermNode::Cat(head, tail) => match terms.get(head) {
            TermNode::Custom(at) => terms
                .recognizers
                .search_min_bytes(*at)
                .saturating_add(terms.properties(tail).min_len),
            _ => 0,
        },
        TermNode::And(list) => {
            list.iter().map(|&one| search_min_bytes(terms, one)).max().unwrap_or(0)
        }
        _ => 0,
    };
    needs.max(terms.properties(id).min_len)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use formalm_core::{Error, LazyDfa, StateId};

    use super::CompletionSearch;
    use crate::Expression;
    use crate::automaton::{Automaton, AutomatonLimits};
    use crate::tests::expression;

    /// States, each with its smallest shortest completion if it has one.
    type CompletedStates = Vec<(StateId, Option<Vec<u8>>)>;

    /// Returns the first reachable states with their completions, found by trying all bytes,
    /// smallest first.
    fn completed(automaton: &Automaton) -> Result<CompletedStates, Error> {
        let mut states = vec![automaton.start()];
        for at in 0..60 {
            let Some(&state) = states.get(at) else { break };
            for &byte in automaton.class_starts() {
                if let Some(next) = automaton.step(state, byte)?
                    && !states.contains(&next)
                {
                    states.push(next);
                }
            }
        }
        states.into_iter().map(|state| Ok((state, tried(automaton, state)?))).collect()
    }

    fn tried(automaton: &Automaton, start: StateId) -> Result<Option<Vec<u8>>, Error> {
        let mut seen = HashSet::from([start]);
        let mut open = VecDeque::from([(start, Vec::new())]);
        while let Some((state, text)) = open.pop_front() {
            if automaton.is_accepting(state) {
                return Ok(Some(text));
            }
            for &byte in automaton.class_starts() {
                if let Some(next) = automaton.step(state, byte)?
                    && seen.insert(next)
                {
                    open.push_back((next, [&text[..], &[byte]].concat()));
                }
            }
        }
        Ok(None)
    }

    #[test]
    fn shortest_completions_equal_breadth_first_search() -> Result<(), Error> {
        let patterns = [
            "",
            "a",
            "b|a",
            "ba|ab|c?x",
            "(b|a)(d|c)",
            "[c-f]{3,5}x?",
            "(ab|c){2}",
            "(a?b*)+",
            "é|ü|zz",
            "[é-ü]a|[a-z][0-9]",
            "(?i:select)",
            "(x{2}|y{2}){3}",
            "(a|b)*abb",
            "(|b)a",
            "(ab){0,2}(b|[^a])",
            "((a|bb){2,3}|c{4})d",
            "\"(\\\\.|[^\"\\\\])*\"",
            "a{0}b",
            "(aa|b)*?c",
        ];
        for pattern in patterns {
            let automaton = Automaton::new(&expression(pattern), AutomatonLimits::default())?;
            for (state, expected) in completed(&automaton)? {
                assert_eq!(
                    Some(CompletionSearch::new(&automaton, u64::MAX).run(state)?),
                    expected,
                    "{pattern}"
                );
                assert_eq!(Some(automaton.shortest_completion(state)?), expected, "{pattern}");
            }
        }
        Ok(())
    }

    #[test]
    fn shortest_completions_of_intersections_equal_breadth_first_search() -> Result<(), Error> {
        let patterns = [
            ".*a.*",
            "(?s:.{3,7})",
            "(ab|ba|c)*",
            "[a-c]*[0-9]",
            ".*(bb|aa).*(c|1)",
            "([ab][0-9]?)*",
            "(?!.*ab).*",
            "é?[^b]+",
            ".*a.{4}",
        ];
        for one in patterns {
            for other in patterns {
                for negated in [false, true] {
                    let (left, right) = (expression(one), expression(other));
                    let right = if negated { right.complement()? } else { right };
                    let both = Expression::intersection(vec![left, right])?;
                    // An empty intersection is refused.
                    let Ok(automaton) = Automaton::new(&both, AutomatonLimits::default()) else {
                        continue;
                    };
                    let name = format!("{one} and {other}, negated {negated}");
                    for (state, expected) in completed(&automaton)? {
                        assert_eq!(Some(automaton.shortest_completion(state)?), expected, "{name}");
                    }
                }
            }
        }
        Ok(())
    }
}
