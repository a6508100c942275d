//! States of intersections up to counts that short texts do not come near.
//!
//! "This pattern, and at most 300 characters" has a state for every number of characters that are
//! left. While there are many, a token cannot tell: whatever it reads, enough are left for the rest
//! of the pattern. So the count can be forgotten: A ∧ Σ{0,n} allows the same texts of `horizon`
//! bytes as A if n is no less than the horizon and a shortest completion from wherever they lead.
//! Counted repetitions within A are alike: (\S+\s+){0,30} is a star for texts of few characters.

use rustc_hash::FxHashMap;

use crate::automaton::{Automaton, StateId};
use crate::charset::{Cover, WIDE_PARTS};
use crate::error::Error;
use crate::terms::dawg::DagId;
use crate::terms::{Term, TermId, Terms, UNBOUNDED};

/// Counts that fewer characters may reach are kept.
const FAR: u64 = 12;

/// A state that allows what another one does, and longer texts perhaps.
#[derive(Clone, Copy, Debug)]
pub struct Near<S> {
    /// The state.
    pub state: S,
    /// Both allow the same texts of so many characters.
    pub same: u64,
    /// The other one allows none of more characters.
    pub most: u64,
}

impl Automaton {
    /// The state that allows the same texts of at most `horizon` bytes, without the counts that
    /// these do not come near.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn near(&self, state: StateId, horizon: usize) -> Result<StateId, Error> {
        let mut near = state;
        while let Some(next) = self.uncounted(near)?
            && next.same >= horizon as u64
        {
            near = next.state;
        }
        Ok(near)
    }

    /// The state without a count of all characters, or else without those of its repetitions.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn uncounted(&self, state: StateId) -> Result<Option<Near<StateId>>, Error> {
        let core = &mut self.lock();
        let term = self.term(core, state);
        let Some(Near { state, same, most }) = core.terms.uncounted(term) else { return Ok(None) };
        let state = StateId::from_number(self.intern(core, state)?);
        Ok(Some(Near { state, same, most }))
    }
}

impl Terms {
    fn uncounted(&mut self, term: TermId) -> Option<Near<TermId>> {
        let Term::And(list) = self.get(term) else {
            let (state, same) = self.unbounded(term);
            return (state != term).then_some(Near { state, same, most: u64::MAX });
        };
        let list = list.clone();
        let counts: Vec<(TermId, u32)> =
            list.iter().filter_map(|&id| Some((id, self.most_characters(id)?))).collect();
        let kept: Vec<TermId> =
            list.iter().copied().filter(|id| counts.iter().all(|(one, _)| one != id)).collect();
        // Only of one term is it known how far away its members are.
        let [other] = kept[..] else { return None };
        let most = u64::from(counts.iter().map(|&(_, most)| most).min()?);
        let far = self.farthest(other, &mut FxHashMap::default())?;
        Some(Near { state: other, same: most.checked_sub(far)?, most })
    }

    /// A pure term whose repetitions have no most count where that is far, and how many characters
    /// are sure not to reach it.
    fn unbounded(&mut self, id: TermId) -> (TermId, u64) {
        if !self.facts(id).pure {
            return (id, u64::MAX);
        }
        match self.get(id).clone() {
            Term::Cat(head, tail) => {
                let ((head, one), (tail, other)) = (self.unbounded(head), self.unbounded(tail));
                (self.cat(head, tail), one.min(other))
            }
            Term::Alt(list) => {
                let mut most = u64::MAX;
                let mut all = Vec::with_capacity(list.len());
                for &id in &*list {
                    let (id, within) = self.unbounded(id);
                    all.push(id);
                    most = most.min(within);
                }
                (self.alt(all), most)
            }
            Term::Repeat { body, min, max, lazy } if max != UNBOUNDED => {
                // Another iteration is under way when the ones before have been read.
                let within = u64::from(max.saturating_sub(1)) * self.least_characters(body);
                if within < FAR {
                    return (id, u64::MAX);
                }
                (self.repeat(body, min, UNBOUNDED, lazy), within)
            }
            _ => (id, u64::MAX),
        }
    }

    /// A lower bound of the characters of a pure term's texts.
    fn least_characters(&self, id: TermId) -> u64 {
        match self.get(id) {
            &Term::Cat(head, tail) => self.least_characters(head) + self.least_characters(tail),
            Term::Alt(list) => list.iter().map(|&id| self.least_characters(id)).min().unwrap_or(0),
            &Term::Repeat { body, min, .. } => u64::from(min) * self.least_characters(body),
            Term::Dag(dag) if self.dags.class_facts(*dag).is_some() => 1,
            _ => u64::from(self.facts(id).min_len / 4),
        }
    }

    /// `n` of Σ{0,n}, Σ all characters.
    pub(crate) fn most_characters(&self, id: TermId) -> Option<u32> {
        self.characters(id).filter(|&(least, _)| least == 0).map(|(_, most)| most)
    }

    /// `m` and `n` of Σ{m,n}, Σ all characters.
    pub(crate) fn characters(&self, id: TermId) -> Option<(u32, u32)> {
        let (body, least, most) = self.repetition(id)?;
        let Term::Dag(dag) = self.get(body) else { return None };
        let facts = self.dags.class_facts(*dag)?;
        (facts.ascii == !0 && facts.wide == [Cover::Full; WIDE_PARTS]).then_some((least, most))
    }

    /// Bytes that suffice to complete a text from anywhere within a term.
    fn farthest(&self, id: TermId, depths: &mut FxHashMap<DagId, u64>) -> Option<u64> {
        let mut most = 0;
        let mut rest = id;
        loop {
            let (head, tail) = self.head_and_tail(rest);
            let after = u64::from(self.facts(tail).min_len);
            most = most.max(self.farthest_in(head, depths)? + after);
            if tail == rest || matches!(self.get(tail), Term::Epsilon) {
                return Some(most);
            }
            rest = tail;
        }
    }

    fn farthest_in(&self, head: TermId, depths: &mut FxHashMap<DagId, u64>) -> Option<u64> {
        match self.get(head) {
            Term::Epsilon => Some(0),
            Term::Dag(dag) => Some(self.depth(*dag, depths)),
            Term::Alt(list) => {
                list.iter().try_fold(0, |most, &id| Some(self.farthest(id, depths)?.max(most)))
            }
            &Term::Repeat { body, min, .. } => {
                let others = u64::from(self.facts(body).min_len) * u64::from(min);
                Some(self.farthest(body, depths)? + others)
            }
            _ => None,
        }
    }

    /// Bytes of the longest text of an acyclic automaton.
    fn depth(&self, dag: DagId, depths: &mut FxHashMap<DagId, u64>) -> u64 {
        if let Some(&known) = depths.get(&dag) {
            return known;
        }
        let edges = self.dags.edges(dag).iter();
        let depth = edges.map(|&(_, _, next)| 1 + self.depth(next, depths)).max().unwrap_or(0);
        depths.insert(dag, depth);
        depth
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::Machine;
    use crate::syntax::{Dialect, Flags, parse};
    use crate::{Automaton, Expression, Limits, StateId};

    fn machine(pattern: &str, most: u32) -> Option<Automaton> {
        let read = |text: &str| {
            Expression::pattern(parse(text, Dialect::Python, Flags::default()).unwrap())
        };
        let both =
            Expression::intersection(vec![read(pattern), read(&format!("(?s:.){{0,{most}}}"))]);
        Automaton::of(&both.unwrap(), Limits::default()).unwrap()
    }

    fn machine_of(pattern: &str) -> Automaton {
        let parsed = parse(pattern, Dialect::Python, Flags::default()).unwrap();
        Automaton::new(&Expression::pattern(parsed), Limits::default()).unwrap()
    }

    fn after(machine: &Automaton, state: StateId, text: &[u8]) -> Option<StateId> {
        machine.walk(state, text).unwrap().ok()
    }

    #[test]
    fn texts_within_the_horizon_are_allowed_alike() {
        for pattern in
            ["(a+b)*", "(ab?c{3}){2,}|é*", "(foo|aaaaab)+", "a{4}b*", ".*bbbb", "(a+b){0,30}a+"]
        {
            for most in [0, 1, 2, 5, 9, 14, 18, 20, 23, 40] {
                let Some(machine) = machine(pattern, most) else { continue };
                let mut open = vec![machine.start()];
                for at in 0..60 {
                    let Some(&state) = open.get(at) else { break };
                    let near = machine.near(state, 3).unwrap();
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
    fn far_counts_are_forgotten() {
        let machine = machine("([a-z]+ )*[a-z]+", 300).unwrap();
        let near = machine.near(machine.start(), 100).unwrap();
        let long = after(&machine, near, &[b'a'; 2]).unwrap();
        assert_eq!(after(&machine, long, b"aa bc"), Some(long));
        assert_eq!(machine.near(machine.start(), 299).unwrap(), machine.start());
        let words = machine_of("([a-z]+ ){0,30}[a-z]+");
        let near = words.near(words.start(), 58).unwrap();
        let later = after(&words, near, b"a b c d ").unwrap();
        assert_eq!(after(&words, later, b"e "), Some(later));
        assert_eq!(words.near(words.start(), 59).unwrap(), words.start());
    }
}
