//! Names of object members, interned.

use crate::table::Table;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(pub(crate) u32);

/// A name that stands for any that no formula speaks of. No text is interned as it.
pub(crate) const PLACEHOLDER: NameId = NameId(0);

/// Names are numbered from one on, behind the placeholder.
#[derive(Debug, Default)]
pub(crate) struct Names(Table<Box<str>>);

impl Names {
    pub(crate) fn get(&self, id: NameId) -> &str {
        if id == PLACEHOLDER { "" } else { self.0.get(id.0 - 1) }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len() + 1
    }

    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        NameId(self.0.intern_like(name, || name.into()) + 1)
    }
}
