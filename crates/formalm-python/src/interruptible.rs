//! Long work without the interpreter lock that Ctrl-C or a deadline can stop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use formalm_automata::deadline::{self, Deadline as Limit, Restore};
use formalm_automata::explicit::Poll;
use formalm_automata::{Error, interrupt};
use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::errors;

/// Does `work` without the interpreter lock; whenever it polls, pending signals are handled, and
/// what a handler raises ends the work and is raised.
pub(crate) fn patient<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Poll<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    patiently(py, work)?.map_err(|error| errors::failure(py, &error, None))
}

/// The same of work that has errors of its own.
pub(crate) fn patiently<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Poll<'_>) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        let mut ask = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        };
        work(&mut Poll::new(&mut ask))
    });
    raised.map_or(Ok(done), Err)
}

/// The same of work with machines. A machine that is a part of no other one asks on its own too, in
/// the midst of a step that takes long.
pub(crate) fn patient_with<T: Send>(
    py: Python<'_>,
    machines: &[&AnyMachine],
    work: impl FnOnce(&mut Poll<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    if !machines.iter().all(|one| matches!(one, AnyMachine::Regular(_))) {
        return patient(py, work);
    }
    interruptible(py, work)
}

/// The same of work with machines that nobody else knows yet.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Poll<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = patient(py, |poll| {
        let mut wanted = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        };
        Ok(interrupt::while_asking(&mut wanted, || work(poll)))
    })?;
    match raised {
        Some(error) => Err(error),
        None => done.map_err(|error| errors::failure(py, &error, None)),
    }
}

/// How often signals are looked at while work is done aside.
const PAUSE: Duration = Duration::from_millis(20);

/// Room for the stack of a thread, as the first thread of a process mostly has.
const STACK_BYTES: usize = 8 << 20;

/// Does `work` that cannot poll, since it holds locks, in a thread of its own. Meanwhile pending
/// signals are handled, and what a handler raises is raised at once; the work is then nobody's, and
/// ends at its limits.
pub(crate) fn aside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        // Nobody waits for it after an interrupt.
        let _ = sender.send(work());
    });
    let thread = thread.map_err(|error| PyErr::from(std::io::Error::from(error.kind())))?;
    loop {
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(PAUSE)) {
            Ok(done) => return done.map_err(|error| errors::failure(py, &error, None)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => match py.detach(|| thread.join()) {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(errors::failure(py, &Error::Interrupted, None)),
            },
        }
    }
}

/// The time that a call may take, in nanoseconds; zero is no limit.
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

    /// The deadline of a mask that is asked for now.
    pub(crate) fn deadline(&self) -> Option<Limit> {
        self.get().map(|allowed| Limit::starting_now("mask", allowed))
    }

    /// Does the work of a mask under its deadline.
    #[inline]
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        under(self.deadline(), work)
    }
}

impl Clone for Timeout {
    fn clone(&self) -> Timeout {
        Timeout(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Does work under a deadline, if there is one.
#[inline]
pub(crate) fn under<T>(deadline: Option<Limit>, work: impl FnOnce() -> T) -> T {
    match deadline {
        None => work(),
        Some(deadline) => deadline.during(work),
    }
}

fn duration(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    let allowed = Duration::try_from_secs_f64(seconds).ok().filter(|allowed| !allowed.is_zero());
    allowed.ok_or_else(|| {
        let message = format!("timeout_seconds must be a positive number, got {seconds}");
        errors::argument(py, &message, Some("None is no deadline"))
    })
}

fn as_nanos(allowed: Duration) -> u64 {
    u64::try_from(allowed.as_nanos()).unwrap_or(u64::MAX)
}

/// A deadline for what Python does inside of a `with` statement, in its thread.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Deadline {
    task: &'static str,
    allowed: Duration,
    entered: Mutex<Vec<Restore>>,
}

#[pymethods]
impl Deadline {
    /// The task is compiling, or following the tokens that a matcher begins after.
    #[new]
    fn new(py: Python<'_>, task: &str, seconds: f64) -> PyResult<Deadline> {
        let task = match task {
            "compile" => "compile",
            "follow" => "follow",
            other => {
                return Err(errors::argument(py, &format!("there is no task {other:?}"), None));
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

    /// Fails if the deadline of this thread has passed.
    #[staticmethod]
    fn check(py: Python<'_>) -> PyResult<()> {
        deadline::check_deadline().map_err(|error| errors::failure(py, &error, None))
    }
}

impl Deadline {
    fn entered(&self) -> std::sync::MutexGuard<'_, Vec<Restore>> {
        self.entered.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
