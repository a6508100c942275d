//! Masks as arrays that are not copied: read-only, and one for all positions with the same mask.

use std::hash::BuildHasher;

use formalm_constraint::MaskIdentity;
use numpy::{PyArrayDescr, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::gil_cell::{Turn, Turns};

/// Memory for arrays of one constraint.
const LIMIT_BYTES: usize = 3 << 18;

/// More than there are places for arrays.
const PLACES: u64 = (LIMIT_BYTES / OBJECT_BYTES + 1) as u64;

/// What an array takes beside its words, about.
const OBJECT_BYTES: usize = 256;

/// Positions whose arrays are remembered: an array is found for a position at once, or else by what
/// it holds. So many fill a table of 2^15 places.
const MOST_POSITIONS: usize = 28 << 10;

/// What a position takes in a table that is half full.
const POSITION_BYTES: usize = 40;

/// What a form takes in a table beside itself, about.
const PLACE_BYTES: usize = 16;

/// A position: the serial number of its epoch, and its own within that.
type Position = (u64, u64);

/// The arrays of a constraint that were asked for lately.
pub(crate) struct Views {
    kept: Turns<Kept>,
    /// The type of the arrays. It is kept as it is asked for at each mask.
    int: Py<PyArrayDescr>,
    words: usize,
    /// Arrays that are kept at most.
    most: usize,
    /// Bytes of forms, and positions.
    most_forms: usize,
    most_positions: usize,
}

#[derive(Default)]
struct Kept {
    arrays: Vec<Array>,
    /// Places among the arrays, by the hashes of their words.
    places: FxHashMap<u64, usize>,
    /// The epoch whose positions are remembered: the latest that was asked for.
    serial: u64,
    /// Numbers of arrays by positions, and by forms of masks: an array may be gone by now.
    positions: FxHashMap<u64, u64>,
    forms: FxHashMap<MaskIdentity, u64>,
    /// What these take if nothing else keeps the bitmasks that they share.
    form_bytes: usize,
    questions: u64,
}

/// An array that is kept.
pub(crate) struct Array {
    words: Py<PyBytes>,
    array: Py<PyAny>,
    hash: u64,
    /// Its own number, the remainder of which by [`PLACES`] is its place.
    number: u64,
    /// When it was asked for last, as the number of the question.
    asked: u64,
}

impl Views {
    /// No arrays yet; of the memory for masks they take a quarter at most, what finds them three
    /// eighths.
    pub(crate) fn new(py: Python<'_>, width: usize, memory_limit_bytes: usize) -> Views {
        let words = width.div_ceil(32);
        let limit = LIMIT_BYTES.min(memory_limit_bytes / 4);
        Views {
            kept: Turns::new(Kept::default()),
            int: dtype::<i32>(py).unbind(),
            words,
            most: limit / array_bytes(words),
            most_forms: limit / 2,
            most_positions: MOST_POSITIONS.min(memory_limit_bytes / 4 / POSITION_BYTES),
        }
    }

    /// Nothing of the interpreter's may be called and no array let go of as long as this is held.
    #[inline]
    fn kept<'a>(&'a self, py: Python<'a>) -> Turn<'a, Kept> {
        loop {
            if let Some(kept) = self.kept.take(py) {
                return kept;
            }
            // Another thread is at it, which takes it less than a microsecond.
            std::hint::spin_loop();
        }
    }

    /// The array of a position, if it is remembered.
    #[inline]
    pub(crate) fn at(&self, py: Python<'_>, position: Position) -> Option<Py<PyAny>> {
        let kept = &mut *self.kept(py);
        if kept.serial != position.0 {
            return None;
        }
        let &number = kept.positions.get(&position.1)?;
        self.numbered(py, kept, number)
    }

    /// The array of a position whose mask has this form, if there is one.
    pub(crate) fn of_form(
        &self,
        py: Python<'_>,
        position: Position,
        form: &MaskIdentity,
    ) -> Option<Py<PyAny>> {
        let kept = &mut *self.kept(py);
        let &number = kept.forms.get(form)?;
        let array = self.numbered(py, kept, number)?;
        kept.remember(position, number, self.most_positions);
        Some(array)
    }

    /// The array of a position whose mask has these words, and the array that was asked for longest
    /// ago if this one takes its place: no lock may be held when that one is let go of.
    pub(crate) fn of(
        &self,
        py: Python<'_>,
        (position, form): (Position, Option<MaskIdentity>),
        words: &[u32],
    ) -> PyResult<(Py<PyAny>, Option<Array>)> {
        let hash = FxBuildHasher.hash_one(words);
        let (found, before) = match self.same(py, hash, words) {
            Some(found) => (found, None),
            None => {
                let (words, array) = array(py, words)?;
                let kept = array.clone_ref(py);
                let (number, before) = self.kept(py).keep(hash, words, kept, self.most);
                ((array, number), before)
            }
        };
        let (array, number) = found;
        let kept = &mut *self.kept(py);
        kept.remember(position, number, self.most_positions);
        if let Some(form) = form {
            kept.remember_form(form, number, self.most_forms);
        }
        Ok((array, before))
    }

    /// The array that has these words already, and its number.
    fn same(&self, py: Python<'_>, hash: u64, words: &[u32]) -> Option<(Py<PyAny>, u64)> {
        let kept = &mut *self.kept(py);
        let &place = kept.places.get(&hash)?;
        let Array { words: bytes, number, .. } = &kept.arrays[place];
        let number = has(bytes.as_bytes(py), words).then_some(*number)?;
        Some((self.numbered(py, kept, number)?, number))
    }

    /// The array of a number, if it is there still and as it was made.
    #[inline]
    fn numbered(&self, py: Python<'_>, kept: &mut Kept, number: u64) -> Option<Py<PyAny>> {
        let array = kept.arrays.get_mut((number % PLACES) as usize)?;
        if array.number != number || !self.is_as_made(py, &array.array) {
            return None;
        }
        kept.questions += 1;
        array.asked = kept.questions;
        Some(array.array.clone_ref(py))
    }

    /// Whether an array still has the shape and type that it was made with: its words cannot be
    /// written to, but these can be set.
    #[inline]
    fn is_as_made(&self, py: Python<'_>, array: &Py<PyAny>) -> bool {
        // SAFETY: what is kept are arrays that were made here.
        let array = unsafe { array.bind(py).cast_unchecked::<PyUntypedArray>() };
        // SAFETY: the pointer is that of a living array.
        let descr = unsafe { (*array.as_array_ptr()).fields.descr };
        let is_int = std::ptr::eq(descr.cast(), self.int.as_ptr());
        is_int && array.shape() == [self.words] && array.strides() == [4]
    }

    pub(crate) fn memory_bytes(&self, py: Python<'_>) -> usize {
        let kept = self.kept(py);
        let arrays = kept.arrays.len() * array_bytes(self.words);
        let own: usize = kept.forms.keys().map(|form| form.memory_bytes() + PLACE_BYTES).sum();
        // Tables are filled to seven eighths.
        arrays + kept.positions.capacity() * 8 / 7 * 17 + own + kept.forgotten_bytes()
    }
}

impl Kept {
    /// Keeps an array, if there is room for any; its number, and the one that it takes the place of.
    fn keep(
        &mut self,
        hash: u64,
        words: Py<PyBytes>,
        array: Py<PyAny>,
        most: usize,
    ) -> (u64, Option<Array>) {
        let oldest = || (0..self.arrays.len()).min_by_key(|&place| self.arrays[place].asked);
        let place = match self.places.get(&hash) {
            Some(&place) => Some(place),
            None if self.arrays.len() < most => Some(self.arrays.len()),
            None => oldest(),
        };
        self.questions += 1;
        let number = self.questions * PLACES + place.unwrap_or_default() as u64;
        let Some(place) = place else { return (number, None) };
        let array = Array { words, array, hash, number, asked: self.questions };
        let before = match self.arrays.get_mut(place) {
            Some(before) => Some(std::mem::replace(before, array)),
            None => {
                self.arrays.push(array);
                None
            }
        };
        if let Some(before) = &before {
            self.places.remove(&before.hash);
        }
        self.places.insert(hash, place);
        (number, before)
    }

    /// Memory of bitmasks that only forms keep alive: masks were let go of.
    fn forgotten_bytes(&self) -> usize {
        let alone = |form: &&MaskIdentity| {
            let sharing = self.forms.keys().filter(|other| other.shares(form)).count();
            sharing > 0 && form.owners() == sharing
        };
        // Each of those that share it has its part.
        let part = |form: &MaskIdentity| form.shared_bytes() / form.owners();
        self.forms.keys().filter(alone).map(part).sum()
    }

    fn remember_form(&mut self, form: MaskIdentity, number: u64, most_bytes: usize) {
        if let Some(known) = self.forms.get_mut(&form) {
            *known = number;
            return;
        }
        let (own, shared) = (form.memory_bytes() + PLACE_BYTES, form.shared_bytes());
        let is_shared = self.forms.keys().any(|one| one.shares(&form));
        self.form_bytes += if is_shared { own } else { own + shared };
        if self.form_bytes > most_bytes {
            self.forms.clear();
            self.form_bytes = own + shared;
        }
        if self.form_bytes > most_bytes {
            self.form_bytes = 0;
        } else {
            self.forms.insert(form, number);
        }
    }

    fn remember(&mut self, (serial, position): Position, number: u64, most: usize) {
        if serial < self.serial {
            return;
        }
        if serial > self.serial || self.positions.len() >= most {
            self.positions.clear();
            self.serial = serial;
        }
        if most > 0 {
            self.positions.insert(position, number);
        }
    }
}

fn array_bytes(words: usize) -> usize {
    4 * words + OBJECT_BYTES
}

/// Whether bytes are those of words.
fn has(bytes: &[u8], words: &[u32]) -> bool {
    let places = bytes.as_chunks::<4>().0.iter().map(|&place| u32::from_ne_bytes(place));
    // Without a way out the loop is one of vectors.
    places.zip(words).fold(0, |different, (place, &word)| different | (place ^ word)) == 0
}

/// Words as bytes, and an int32 array of them that cannot be made writable.
fn array(py: Python<'_>, words: &[u32]) -> PyResult<(Py<PyBytes>, Py<PyAny>)> {
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let bytes = PyBytes::new_with(py, 4 * words.len(), |out| {
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(())
    })?;
    let from_buffer = FROM_BUFFER.import(py, "numpy", "frombuffer")?;
    let array = from_buffer.call1((&bytes, dtype::<i32>(py)))?;
    Ok((bytes.unbind(), array.unbind()))
}
