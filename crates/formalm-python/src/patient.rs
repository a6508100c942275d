//! Long work without the interpreter lock that Ctrl-C can stop.

use formalm_automata::Error;
use formalm_automata::explicit::Poll;
use pyo3::prelude::*;

use crate::errors;

/// Does `work` without the interpreter lock; whenever it polls, pending signals are handled, and
/// what a handler raises ends the work and is raised.
pub(crate) fn patient<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Poll<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        let mut ask = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        };
        work(&mut Poll::new(&mut ask))
    });
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (done, None) => done.map_err(|error| errors::failure(py, &error, None)),
    }
}
