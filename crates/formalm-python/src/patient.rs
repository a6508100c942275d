//! Long work without the interpreter lock that Ctrl-C can stop.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use formalm_automata::explicit::Poll;
use formalm_automata::{Error, interrupt};
use pyo3::prelude::*;

use crate::errors;
use crate::machine::AnyMachine;

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
