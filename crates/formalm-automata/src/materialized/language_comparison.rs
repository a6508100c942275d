//! Equivalence and inclusion of two languages, with the shortest string that refutes them.
//!
//! Both machines are read in parallel, lazily, breadth first. The search stops at the first
//! difference; neither machine is materialized.

use formalm_core::{
    Error, LazyDfa, Machine, Resource, StateId, StepBudget, check_limit, steps_taken,
};
use rustc_hash::FxHashSet;

use super::utf8_check::continuation_bytes;
use super::{InterruptCheck, LengthUnit};

/// A relation between two languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanguageRelation {
    /// Both have the same members.
    Equivalence,
    /// Every member of the first is one of the second.
    Inclusion,
}

/// The states of both machines after a string; `None` where no member continues.
type ComparedStates = (Option<StateId>, Option<StateId>);

/// A pair, its predecessor, the byte read between them, and the bytes its character still needs.
struct ComparedVisit {
    pair: ComparedStates,
    from: usize,
    byte: u8,
    left: u8,
}

struct ComparisonSearch<'a, A, B> {
    left: Option<&'a A>,
    right: Option<&'a B>,
    relation: LanguageRelation,
    unit: LengthUnit,
    visits: Vec<ComparedVisit>,
    seen: FxHashSet<(Option<StateId>, Option<StateId>)>,
    limit: u64,
}

/// Returns the smallest shortest string that refutes the relation, or `None` if it holds. `None`
/// for a machine is the empty language.
///
/// With [`LengthUnit::Characters`] both languages must have UTF-8 members only.
///
/// # Errors
///
/// [`Error::Limit`] if more than `limit` pairs of states are met; [`Error::Interrupted`].
pub fn difference<A: Machine, B: Machine>(
    left: Option<&A>,
    right: Option<&B>,
    relation: LanguageRelation,
    unit: LengthUnit,
    limit: u64,
    poll: &mut InterruptCheck<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    let pair = (left.map(LazyDfa::start), right.map(LazyDfa::start));
    let visits = vec![ComparedVisit { pair, from: 0, byte: 0, left: 0 }];
    let seen = FxHashSet::from_iter([pair]);
    let mut search = ComparisonSearch { left, right, relation, unit, visits, seen, limit };
    // Strings of one length at a time, smallest first.
    let mut level = vec![0];
    let patience = StepBudget::new(steps_taken());
    while !level.is_empty() {
        for &at in &level {
            if search.differs(at)? {
                return Ok(Some(search.trace(at)));
            }
        }
        let mut next = Vec::new();
        for at in level {
            search.read(at, &mut next, poll)?;
            patience.check(steps_taken(), search.visits.len())?;
        }
        level = next;
    }
    Ok(None)
}

fn is_member(machine: Option<&impl Machine>, state: Option<StateId>) -> Result<bool, Error> {
    match machine.zip(state) {
        Some((machine, state)) => machine.is_accepting(state),
        None => Ok(false),
    }
}

impl<A: Machine, B: Machine> ComparisonSearch<'_, A, B> {
    fn differs(&self, at: usize) -> Result<bool, Error> {
        let (left, right) = self.visits[at].pair;
        let (left, right) = (is_member(self.left, left)?, is_member(self.right, right)?);
        Ok(match self.relation {
            LanguageRelation::Equivalence => left != right,
            LanguageRelation::Inclusion => left && !right,
        })
    }

    /// Reads every character, ascending, and records where a new pair is reached.
    ///
    /// A pair inside a character that was visited before was visited by a smaller string that is no
    /// longer, so its continuations are known.
    fn read(
        &mut self,
        at: usize,
        next: &mut Vec<usize>,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<(), Error> {
        let mut stack = vec![(at, 0u16)];
        while let Some((at, byte)) = stack.pop() {
            let Ok(this) = u8::try_from(byte) else { continue };
            stack.push((at, byte + 1));
            poll.tick(1)?;
            let Some(found) = self.visit(at, this)? else { continue };
            if self.visits[found].left == 0 {
                next.push(found);
            } else {
                stack.push((found, 0));
            }
        }
        Ok(())
    }

    /// Returns the pair after a byte if it is new and can still make a difference.
    fn visit(&mut self, at: usize, byte: u8) -> Result<Option<usize>, Error> {
        let here = &self.visits[at];
        let left = match (self.left, here.pair.0) {
            (Some(machine), Some(state)) => machine.step(state, byte)?,
            _ => None,
        };
        if left.is_none() && self.relation == LanguageRelation::Inclusion {
            return Ok(None);
        }
        let right = match (self.right, here.pair.1) {
            (Some(machine), Some(state)) => machine.step(state, byte)?,
            _ => None,
        };
        if (left.is_none() && right.is_none()) || !self.seen.insert((left, right)) {
            return Ok(None);
        }
        check_limit(Resource::States, self.seen.len() as u64, self.limit)?;
        let rest = match self.unit {
            LengthUnit::Characters => continuation_bytes(here.left, byte),
            LengthUnit::Labels => 0,
        };
        self.visits.push(ComparedVisit { pair: (left, right), from: at, byte, left: rest });
        Ok(Some(self.visits.len() - 1))
    }

    fn trace(&self, mut at: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while at != 0 {
            text.push(self.visits[at].byte);
            at = self.visits[at].from;
        }
        text.reverse();
        text
    }
}
