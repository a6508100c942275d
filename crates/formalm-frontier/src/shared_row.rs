//! Rows of logits that others own, too.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use formalm_logits::Row;

/// A row, and what keeps its memory.
#[derive(Clone)]
pub struct SharedRow {
    row: Row<'static>,
    owner: Owner,
}

/// The memory that a row is a part of.
#[derive(Clone)]
pub(crate) struct Owner {
    /// Kept for its destructor.
    _memory: Arc<dyn Any + Send + Sync>,
    pub(crate) id: usize,
    pub(crate) bytes: usize,
}

impl SharedRow {
    /// Creates a row in the memory of `owner`.
    ///
    /// `id` is the same for all rows of one owner, such as its address; `bytes` is all the memory that
    /// it keeps.
    ///
    /// # Safety
    ///
    /// The row's elements are readable, and do not change, for as long as the owner exists.
    pub unsafe fn new(
        row: Row<'_>,
        owner: Arc<dyn Any + Send + Sync>,
        id: usize,
        bytes: usize,
    ) -> SharedRow {
        // SAFETY: the owner lives as long as this row.
        let row = unsafe { Row::from_raw(row.start(), row.width(), row.element_type()) };
        SharedRow { row, owner: Owner { _memory: owner, id, bytes } }
    }

    /// Copies a row.
    pub fn copied(row: Row<'_>) -> SharedRow {
        let bytes = row.width() * row.element_type().size();
        // SAFETY: the elements are plain numbers of the row.
        let memory: Arc<[u8]> =
            Arc::from(unsafe { std::slice::from_raw_parts(row.start(), bytes) });
        let start = memory.as_ptr();
        // SAFETY: `memory` has the elements, and is never changed.
        unsafe {
            let row = Row::from_raw(start, row.width(), row.element_type());
            SharedRow::new(row, Arc::new(memory), start as usize, bytes)
        }
    }

    /// Returns the row.
    pub fn row(&self) -> Row<'_> {
        self.row
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl fmt::Debug for SharedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRow").field("row", &self.row).finish_non_exhaustive()
    }
}
