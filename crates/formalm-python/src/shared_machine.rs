//! The machine of a language that is asked about texts forever, in bounded memory.
//!
//! Nobody who asks keeps states, so a machine that has grown too far makes way for one that has read
//! nothing; whoever is at work on it, a constraint say, keeps it alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use formalm_automata::{Lookahead, Machine};
use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::errors;

/// Bytes that a language's machine may take before it makes way for another, unless it took a quarter
/// of that before anything was read. Chosen, not measured.
const BUDGET_BYTES: usize = 64 << 20;
const LEAST_GROWTH: usize = 4;

/// Questions between two measurements. Chosen, not measured.
const QUESTIONS_BETWEEN_MEASUREMENTS: u32 = 8;

/// A machine, and one to look ahead of it with, as nobody keeps the states that questions come to.
struct Current {
    machine: Arc<AnyMachine>,
    ahead: Lookahead<AnyMachine>,
}

impl Current {
    fn new(machine: Arc<AnyMachine>) -> Arc<Current> {
        Arc::new(Current { machine, ahead: Lookahead::default() })
    }

    /// The machine to ask about texts that nobody goes on from.
    fn asked(&self) -> Arc<AnyMachine> {
        let ahead = self.ahead.of(&self.machine);
        ahead.map_or_else(|| Arc::clone(&self.machine), |one| Arc::clone(&one.machine))
    }

    fn memory_bytes(&self) -> usize {
        self.machine.memory_bytes() + self.ahead.memory_bytes()
    }
}

/// A machine and those that take its place.
pub(crate) struct SharedMachine {
    current: ArcSwap<Current>,
    budget: AtomicUsize,
    /// Questions that the current machine was asked.
    questions: AtomicU32,
}

impl SharedMachine {
    pub(crate) fn new(machine: Arc<AnyMachine>) -> SharedMachine {
        let budget = BUDGET_BYTES.max(machine.memory_bytes().saturating_mul(LEAST_GROWTH));
        SharedMachine {
            current: ArcSwap::new(Current::new(machine)),
            budget: AtomicUsize::new(budget),
            questions: AtomicU32::new(0),
        }
    }

    /// The machine, to go on from its states.
    pub(crate) fn get(&self) -> Arc<AnyMachine> {
        Arc::clone(&self.current().machine)
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.load_full();
        let questions = self.questions.fetch_add(1, Ordering::Relaxed);
        let last = QUESTIONS_BETWEEN_MEASUREMENTS - 1;
        let is_outgrown = !current.machine.is_abandoned()
            && questions % QUESTIONS_BETWEEN_MEASUREMENTS == last
            && current.memory_bytes() > self.budget.load(Ordering::Relaxed);
        if current.machine.is_abandoned() || is_outgrown {
            self.replace(&current).unwrap_or(current)
        } else {
            current
        }
    }

    /// Asks about texts; if a limit is reached after others have asked, once more a machine that has
    /// read nothing. The answer then does not depend on what others have asked.
    pub(crate) fn ask<T>(
        &self,
        py: Python<'_>,
        ask: impl Fn(&Arc<AnyMachine>) -> PyResult<T>,
    ) -> PyResult<T> {
        let current = self.current();
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

    /// Puts another machine in the place of one; none if it cannot be made.
    fn replace(&self, current: &Current) -> Option<Arc<Current>> {
        let Ok(Some(made)) = current.machine.renewed() else {
            if current.machine.is_abandoned() {
                return None;
            }
            // Tried again once it has grown by as much again.
            self.budget.fetch_max(2 * current.memory_bytes(), Ordering::Relaxed);
            return None;
        };
        let made = Current::new(Arc::new(made));
        self.questions.store(1, Ordering::Relaxed);
        self.current.store(Arc::clone(&made));
        Some(made)
    }
}
