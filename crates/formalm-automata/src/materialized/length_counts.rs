//! Member counts by length, in big integers, by forward dynamic programming over the DFA.

use formalm_core::{Error, Resource, check_limit};
use num_bigint::BigUint;

use super::{InterruptCheck, MaterializedDfa, UnitTransitions};

/// Returns the memory of a number, in bytes.
pub(crate) fn number_bytes(number: &BigUint) -> u64 {
    size_of::<BigUint>() as u64 + number.bits().div_ceil(8)
}

/// Returns the steps of work that one operation on a number counts for.
pub(crate) fn number_steps(number: &BigUint) -> usize {
    1 + (number.bits() >> 9) as usize
}

/// The number of members of each length, from 0 on; extended on demand.
///
/// Counts run forward: the number of strings of a length that lead to each state. Only states that
/// such strings reach take part, so a long chain costs no more than its length.
#[derive(Debug)]
pub struct LengthCounts {
    counts: Vec<BigUint>,
    /// The number of strings of the next length by the state they lead to, ascending.
    layer: Vec<(u32, BigUint)>,
    bytes: u64,
}

impl Default for LengthCounts {
    fn default() -> LengthCounts {
        LengthCounts { counts: Vec::new(), layer: vec![(0, BigUint::from(1u32))], bytes: 0 }
    }
}

impl LengthCounts {
    /// Returns the counts known so far, by length.
    pub fn counts(&self) -> &[BigUint] {
        &self.counts
    }

    /// Returns `true` if there is no longer member.
    pub fn is_complete(&self) -> bool {
        self.layer.is_empty()
    }

    /// Counts the members of the next length. The counts, and the work on them, may use `limit`
    /// bytes each.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], [`Error::Interrupted`].
    pub fn extend(
        &mut self,
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        limit: u64,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<(), Error> {
        let members = self.layer.iter().filter(|(state, _)| graph.is_accepting(*state));
        let count: BigUint = members.map(|(_, count)| count).sum();
        let bytes = self.bytes + number_bytes(&count);
        check_limit(Resource::Bytes, bytes, limit)?;
        let next = next_layer(&self.layer, measured, limit, poll)?;
        self.counts.push(count);
        self.bytes = bytes;
        self.layer = next;
        Ok(())
    }
}

fn next_layer(
    layer: &[(u32, BigUint)],
    measured: &UnitTransitions,
    limit: u64,
    poll: &mut InterruptCheck<'_>,
) -> Result<Vec<(u32, BigUint)>, Error> {
    let mut next: Vec<(u32, BigUint)> = Vec::new();
    let mut bytes = 0;
    for (state, count) in layer {
        for &(target, ways) in measured.unit_successors(*state) {
            poll.tick(2 * number_steps(count))?;
            bytes += number_bytes(count) + 8;
            check_limit(Resource::Bytes, bytes, limit)?;
            next.push((target, count * ways));
        }
    }
    next.sort_by_key(|&(target, _)| target);
    next.dedup_by(|more, kept| {
        let same = more.0 == kept.0;
        if same {
            kept.1 += &more.1;
        }
        same
    });
    Ok(next)
}

/// Returns the number of completions of each state, or `None` if a cycle makes it infinite. In a
/// minimal DFA a cycle always does.
///
/// # Errors
///
/// [`Error::Limit`] if the numbers take more than `limit` bytes; [`Error::Interrupted`].
pub fn completion_counts(
    graph: &MaterializedDfa,
    limit: u64,
    poll: &mut InterruptCheck<'_>,
) -> Result<Option<Vec<BigUint>>, Error> {
    let Some(order) = graph.topological() else { return Ok(None) };
    let mut totals = vec![BigUint::ZERO; graph.state_count()];
    let mut bytes = 0;
    for &state in order.iter().rev() {
        let mut total = BigUint::from(u32::from(graph.is_accepting(state)));
        for edge in graph.edges(state) {
            let below = &totals[edge.target as usize];
            poll.tick(number_steps(below))?;
            total += below * edge.width();
        }
        bytes += number_bytes(&total);
        check_limit(Resource::Bytes, bytes, limit)?;
        totals[state as usize] = total;
    }
    Ok(Some(totals))
}
