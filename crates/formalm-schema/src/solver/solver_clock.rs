//! Measures the time that a thread spends in the solver, for benchmarks.
//!
//! Only with the feature `solver-clock`, which no release enables; otherwise it compiles to
//! nothing.

#[cfg(feature = "solver-clock")]
mod running {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    thread_local! {
        static DEPTH: Cell<u32> = const { Cell::new(0) };
        static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// A guard that measures the time until it is dropped, unless an outer guard does.
    pub(crate) struct SolverTimer(Option<Instant>);

    impl SolverTimer {
        pub(crate) fn begin() -> SolverTimer {
            let depth = DEPTH.replace(DEPTH.get() + 1);
            SolverTimer((depth == 0).then(Instant::now))
        }
    }

    impl Drop for SolverTimer {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
            if let Some(start) = self.0 {
                SPENT.set(SPENT.get() + start.elapsed());
            }
        }
    }

    /// Returns the time that this thread has spent in the solver.
    pub fn solver_time() -> Duration {
        SPENT.get()
    }
}

#[cfg(feature = "solver-clock")]
pub(crate) use running::SolverTimer;
#[cfg(feature = "solver-clock")]
pub use running::solver_time;

/// A guard without effect.
#[cfg(not(feature = "solver-clock"))]
pub(crate) struct SolverTimer;

#[cfg(not(feature = "solver-clock"))]
impl SolverTimer {
    #[inline(always)]
    pub(crate) fn begin() -> SolverTimer {
        SolverTimer
    }
}
