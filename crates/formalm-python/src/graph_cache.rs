//! A graph with its lazily computed counts, shared by its iterators.

use std::sync::Arc;

use formalm_automata::materialized::{
    LengthCounts, LengthRange, MaterializedDfa, RankTable, UnitTransitions,
};
use formalm_core::{Error, ForkSafeMutex, InterruptCheck, SetOnce};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::lazy_automaton::unit;

/// A graph and its caches, one per unit of length (bytes or characters).
pub(crate) struct GraphCache {
    pub(crate) graph: MaterializedDfa,
    pub(crate) is_tokens: bool,
    by_unit: [UnitCache; 2],
}

#[derive(Default)]
struct UnitCache {
    measured: SetOnce<UnitTransitions>,
    tally: ForkSafeMutex<LengthCounts>,
    /// The ranking table that was used last.
    table: ForkSafeMutex<Option<Arc<RankTable>>>,
}

impl GraphCache {
    pub(crate) fn new(graph: MaterializedDfa, is_tokens: bool) -> GraphCache {
        GraphCache { graph, is_tokens, by_unit: Default::default() }
    }

    fn unit_cache(&self, characters: bool) -> &UnitCache {
        &self.by_unit[usize::from(characters)]
    }

    pub(crate) fn measured(
        &self,
        characters: bool,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<&UnitTransitions, Error> {
        let place = &self.unit_cache(characters).measured;
        if let Some(measured) = place.get() {
            return Ok(measured);
        }
        let measured = UnitTransitions::new(&self.graph, unit(characters), poll)?;
        Ok(place.get_or_init(|| measured))
    }

    /// Extends the counts until `enough` holds. It is locked only without the interpreter lock.
    pub(crate) fn count<T>(
        &self,
        (characters, limit): (bool, u64),
        poll: &mut InterruptCheck<'_>,
        mut enough: impl FnMut(&LengthCounts) -> Option<T>,
    ) -> Result<T, Error> {
        let measured = self.measured(characters, poll)?;
        let tally = &self.unit_cache(characters).tally;
        let mut tally = tally.lock();
        loop {
            if let Some(answer) = enough(&tally) {
                return Ok(answer);
            }
            tally.extend(&self.graph, measured, limit, poll)?;
        }
    }

    pub(crate) fn table(
        &self,
        span: LengthRange,
        (characters, limit): (bool, u64),
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<Arc<RankTable>>, Error> {
        let measured = self.measured(characters, poll)?;
        let place = || {
            let place = &self.unit_cache(characters).table;
            place.lock()
        };
        if let Some(table) = &*place()
            && table.span() == span
        {
            return Ok(Some(Arc::clone(table)));
        }
        let table = RankTable::new(&self.graph, measured, span, limit, poll)?.map(Arc::new);
        place().clone_from(&table);
        Ok(table)
    }

    pub(crate) fn labels(&self, sequence: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        if self.is_tokens {
            return sequence.extract();
        }
        let text: &[u8] = sequence.extract()?;
        Ok(text.iter().map(|&byte| u32::from(byte)).collect())
    }

    pub(crate) fn member<'py>(
        &self,
        py: Python<'py>,
        labels: Vec<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.is_tokens {
            return Ok(PyList::new(py, labels)?.into_any());
        }
        let text: Vec<u8> = labels.into_iter().map(|label| label as u8).collect();
        Ok(PyBytes::new(py, &text).into_any())
    }
}
