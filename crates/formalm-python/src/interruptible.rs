//! Long work without the interpreter lock that Ctrl-C or a deadline can stop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use formalm_core::{
    Error, InterruptCheck,
    deadline::{self, Deadline as Limit, DeadlineGuard},
    interrupt,
};
use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::errors;

/// Runs `work` without the interpreter lock. Whenever it polls, pending signals are handled; an
/// exception of a handler ends the work and is raised.
pub(crate) fn without_gil<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut InterruptCheck<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    without_gil_or(py, work)?.map_err(|error| errors::failure(py, &error, None))
}

/// Runs work that has its own error type.
pub(crate) fn without_gil_or<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut InterruptCheck<'_>) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        let mut ask = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        };
        work(&mut InterruptCheck::new(&mut ask))
    });
    raised.map_or(Ok(done), Err)
}

/// Runs work on machines. A machine that is not part of another one also polls by itself, in the
/// middle of long steps.
pub(crate) fn without_gil_on_machines<T: Send>(
    py: Python<'_>,
    machines: &[&AnyMachine],
    work: impl FnOnce(&mut InterruptCheck<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    if !machines.iter().all(|one| matches!(one, AnyMachine::Regular(_))) {
        return without_gil(py, work);
    }
    without_gil_on_new_machines(py, work)
}

/// Runs work on machines that no other thread knows yet.
pub(crate) fn without_gil_on_new_machines<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut InterruptCheck<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = without_gil(py, |poll| {
        let mut wanted = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        };
        Ok(interrupt::with_interrupts(&mut wanted, || work(poll)))
    })?;
    match raised {
        Some(error) => Err(error),
        None => done.map_err(|error| errors::failure(py, &error, None)),
    }
}

/// Interval at which signals are checked while work runs in another thread.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

/// Stack size of the thread, in bytes: that of most first threads of a process.
const STACK_BYTES: usize = 8 << 20;

/// Runs `work` that cannot poll, because it holds locks, in a thread of its own. Meanwhile pending
/// signals are handled, and an exception of a handler is raised at once. The abandoned work then
/// ends at its own limits.
pub(crate) fn in_own_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        // After an interrupt no one waits for it.
        let _ = sender.send(work());
    });
    let thread = thread.map_err(|error| PyErr::from(std::io::Error::from(error.kind())))?;
    loop {
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(SIGNAL_INTERVAL)) {
            Ok(done) => return done.map_err(|error| errors::failure(py, &error, None)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => match py.detach(|| thread.join()) {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(errors::failure(py, &Error::Interrupted, None)),
            },
        }
    }
}

/// The time limit of a call, in nanoseconds; 0 means none.
#[derive(Debug, Default)]
pub(crate) struct Timeout(AtomicU64);

impl Timeout {
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.get().map(|allowed| allowed.as_secs_f64())
    }

    pub(crate) fn set(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let nanos = seconds.map_or(Ok(0), |seconds| duration(py, seconds).map(as_nanos))?;
        self.0.store(nanos, Ordering::Relaxed);
        Ok(())
    }

    #[inline]
    fn get(&self) -> Option<Duration> {
        let nanos = self.0.load(Ordering::Relaxed);
        (nanos != 0).then(|| Duration::from_nanos(nanos))
    }

    /// Returns the deadline of a mask that is requested now.
    pub(crate) fn deadline(&self) -> Option<Limit> {
        self.of("mask")
    }

    #[inline]
    fn of(&self, task: &'static str) -> Option<Limit> {
        self.get().map(|allowed| Limit::starting_now(task, allowed))
    }

    /// Runs the work of a mask under its deadline.
    #[inline]
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        under(self.deadline(), work)
    }

    /// Runs the work of another task under its deadline.
    #[inline]
    pub(crate) fn during_task<T>(&self, task: &'static str, work: impl FnOnce() -> T) -> T {
        under(self.of(task), work)
    }
}

impl Clone for Timeout {
    fn clone(&self) -> Timeout {
        Timeout(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Runs work under a deadline, if there is one.
#[inline]
pub(crate) fn under<T>(deadline: Option<Limit>, work: impl FnOnce() -> T) -> T {
    match deadline {
        None => work(),
        Some(deadline) => deadline.run(work),
    }
}

fn duration(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    let allowed = Duration::try_from_secs_f64(seconds).ok().filter(|allowed| !allowed.is_zero());
    allowed.ok_or_else(|| {
        let message = format!("timeout_seconds must be a positive number, got {seconds}");
        errors::argument(py, &message, Some("use None for no deadline"))
    })
}

fn as_nanos(allowed: Duration) -> u64 {
    u64::try_from(allowed.as_nanos()).unwrap_or(u64::MAX)
}

/// A deadline for the body of a Python `with` statement, in its thread.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Deadline {
    task: &'static str,
    allowed: Duration,
    entered: Mutex<Vec<DeadlineGuard>>,
}

#[pymethods]
impl Deadline {
    /// The task is compiling, reading the tokens that a matcher begins after, or explaining.
    #[new]
    fn new(py: Python<'_>, task: &str, seconds: f64) -> PyResult<Deadline> {
        let task = match task {
            "compile" => "compile",
            "follow" => "follow",
            "explain" => "explain",
            other => {
                return Err(errors::argument(
                    py,
                    &format!("task must be \"compile\", \"follow\" or \"explain\", got {other:?}"),
                    None,
                ));
            }
        };
        let allowed = duration(py, seconds)?;
        Ok(Deadline { task, allowed, entered: Mutex::default() })
    }

    fn __enter__(&self) {
        let restore = deadline::enter(Limit::starting_now(self.task, self.allowed));
        self.entered().push(restore);
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> bool {
        let restore = self.entered().pop();
        drop(restore);
        false
    }

    /// Raises if the deadline of this thread has passed.
    #[staticmethod]
    fn check(py: Python<'_>) -> PyResult<()> {
        deadline::check_deadline().map_err(|error| errors::failure(py, &error, None))
    }
}

impl Deadline {
    fn entered(&self) -> std::sync::MutexGuard<'_, Vec<DeadlineGuard>> {
        self.entered.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
