//! The memory of a user's parsers, estimated from samples.
//!
//! A parser is a Python object of unknown content. What a new parser holds and the one it was copied
//! from does not is added up for the first ones and every hundredth after them. The mean counts for
//! each parser that is kept.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyModule, PyType};
use rustc_hash::FxHashSet;

/// The first parsers are all measured. Chosen, not measured.
const FIRST_SAMPLES: usize = 8;
/// Later, one of so many. Chosen, not measured.
const SAMPLE_EVERY: usize = 128;
/// Maximum number of objects that a walk visits; what lies beyond does not count. Chosen, not measured.
const MAX_OBJECTS: usize = 10_000;
/// What the core keeps with a parser: the answer about what may follow, and an entry of the table of
/// equal parsers.
const ENTRY_BYTES: usize = 192;

/// Running mean of the sizes of parsers.
#[derive(Debug, Default)]
pub(super) struct ParserSizes {
    seen: AtomicUsize,
    samples: AtomicUsize,
    bytes: AtomicUsize,
}

impl ParserSizes {
    /// Records a new parser and the one that it was copied from.
    pub(super) fn record(&self, parser: &Bound<'_, PyAny>, origin: &Bound<'_, PyAny>) {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        if seen >= FIRST_SAMPLES && !seen.is_multiple_of(SAMPLE_EVERY) {
            return;
        }
        // An object that cannot be measured raises errors of its own, which are not the user's problem
        // here.
        if let Ok(bytes) = own_bytes(parser, origin) {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.samples.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the mean of what a parser takes, in bytes.
    pub(super) fn mean_bytes(&self) -> usize {
        let samples = self.samples.load(Ordering::Relaxed).max(1);
        ENTRY_BYTES + self.bytes.load(Ordering::Relaxed) / samples
    }
}

/// Returns the bytes of the objects that one parser reaches and another does not.
fn own_bytes(parser: &Bound<'_, PyAny>, origin: &Bound<'_, PyAny>) -> PyResult<usize> {
    let mut visited = FxHashSet::default();
    object_bytes(origin, &mut visited)?;
    object_bytes(parser, &mut visited)
}

/// Returns the bytes of the objects that can be reached from one and were not visited before. Classes
/// and modules belong to the program.
fn object_bytes<'py>(root: &Bound<'py, PyAny>, visited: &mut FxHashSet<usize>) -> PyResult<usize> {
    let py = root.py();
    let referents = py.import("gc")?.getattr("get_referents")?;
    let size_of = py.import("sys")?.getattr("getsizeof")?;
    let functions = py.import("types")?.getattr("FunctionType")?;
    let (mut open, mut bytes, mut count) = (vec![root.clone()], 0, 0);
    while let Some(object) = open.pop() {
        let is_of_program = object.is_instance_of::<PyType>()
            || object.is_instance_of::<PyModule>()
            || object.is_instance(&functions)?;
        if is_of_program || !visited.insert(object.as_ptr() as usize) {
            continue;
        }
        count += 1;
        if count > MAX_OBJECTS {
            break;
        }
        bytes += size_of.call1((&object, 0))?.extract::<usize>()?;
        open.extend(referents.call1((&object,))?.cast_into::<PyList>()?.iter());
    }
    Ok(bytes)
}
