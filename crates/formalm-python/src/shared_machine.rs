//! The machine of a language that answers queries forever in bounded memory.
//!
//! No caller keeps states, so a machine that has grown too large is replaced by a fresh one. A
//! caller that still uses the old one, such as a constraint, keeps it alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use formalm_core::{LazyDfa, Renewal};
use formalm_machines::ScratchCache;
use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::errors;

/// Size at which a language's machine is replaced, in bytes, unless it started at more than a
/// quarter of it. Chosen, not measured.
const BUDGET_BYTES: usize = 64 << 20;
const MIN_GROWTH_FACTOR: usize = 4;

/// Number of queries between two measurements. Chosen, not measured.
const QUERIES_BETWEEN_MEASUREMENTS: u32 = 8;

/// A machine and its lookahead machine, since no caller keeps the states of queries.
struct CurrentMachine {
    machine: Arc<AnyMachine>,
    ahead: ScratchCache<AnyMachine>,
}

impl CurrentMachine {
    fn new(machine: Arc<AnyMachine>) -> Arc<CurrentMachine> {
        Arc::new(CurrentMachine { machine, ahead: ScratchCache::default() })
    }

    /// Returns the machine for queries whose states are not kept.
    fn asked(&self) -> Arc<AnyMachine> {
        let ahead = self.ahead.of(&self.machine);
        ahead.map_or_else(|| Arc::clone(&self.machine), |one| Arc::clone(&one.machine))
    }

    fn memory_bytes(&self) -> usize {
        self.machine.memory_bytes() + self.ahead.memory_bytes()
    }
}

/// A machine and its successors.
pub(crate) struct SharedMachine {
    current: ArcSwap<CurrentMachine>,
    budget: AtomicUsize,
    /// Number of queries to the current machine.
    questions: AtomicU32,
}

impl SharedMachine {
    pub(crate) fn new(machine: Arc<AnyMachine>) -> SharedMachine {
        let budget = BUDGET_BYTES.max(machine.memory_bytes().saturating_mul(MIN_GROWTH_FACTOR));
        SharedMachine {
            current: ArcSwap::new(CurrentMachine::new(machine)),
            budget: AtomicUsize::new(budget),
            questions: AtomicU32::new(0),
        }
    }

    /// Returns the machine, for callers that keep its states. Fails as [`SharedMachine::ask`] does.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<AnyMachine>> {
        Ok(Arc::clone(&self.current(py)?.machine))
    }

    /// Returns the current machine. Fails in a forked child if a thread of the parent was changing
    /// it and it cannot be made again.
    fn current(&self, py: Python<'_>) -> PyResult<Arc<CurrentMachine>> {
        let current = self.current.load_full();
        let questions = self.questions.fetch_add(1, Ordering::Relaxed);
        let last = QUERIES_BETWEEN_MEASUREMENTS - 1;
        let is_outgrown = !current.machine.is_abandoned()
            && questions % QUERIES_BETWEEN_MEASUREMENTS == last
            && current.memory_bytes() > self.budget.load(Ordering::Relaxed);
        if !current.machine.is_abandoned() && !is_outgrown {
            return Ok(current);
        }
        match self.replace(&current) {
            Some(made) => Ok(made),
            None if current.machine.is_abandoned() => Err(errors::lost_in_fork(py, "language")),
            None => Ok(current),
        }
    }

    /// Answers a query. If a limit is reached after other queries, repeats on a fresh machine, so
    /// that the answer does not depend on other queries.
    pub(crate) fn ask<T>(
        &self,
        py: Python<'_>,
        ask: impl Fn(&Arc<AnyMachine>) -> PyResult<T>,
    ) -> PyResult<T> {
        let current = self.current(py)?;
        match ask(&current.asked()) {
            Err(error)
                if self.questions.load(Ordering::Relaxed) > 1 && errors::is_limit(py, &error) =>
            {
                match py.detach(|| self.replace(&current)) {
                    Some(current) => ask(&current.asked()),
                    None => Err(error),
                }
            }
            other => other,
        }
    }

    /// Replaces a machine; `None` if it cannot be made again.
    fn replace(&self, current: &CurrentMachine) -> Option<Arc<CurrentMachine>> {
        let Ok(Some(made)) = current.machine.fresh_copy() else {
            if current.machine.is_abandoned() {
                return None;
            }
            // The next attempt follows once it has doubled.
            self.budget.fetch_max(2 * current.memory_bytes(), Ordering::Relaxed);
            return None;
        };
        let made = CurrentMachine::new(Arc::new(made));
        self.questions.store(1, Ordering::Relaxed);
        self.current.store(Arc::clone(&made));
        Some(made)
    }
}
