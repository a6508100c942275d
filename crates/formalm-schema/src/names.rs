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

    /// Sorts names by their bytes, each once. Most are told apart by their first eight.
    pub(crate) fn sort(&self, names: &mut Vec<NameId>) {
        let first = |&name: &NameId| {
            let (mut first, bytes) = ([0; 8], self.get(name).as_bytes());
            let length = bytes.len().min(8);
            first[..length].copy_from_slice(&bytes[..length]);
            (u64::from_be_bytes(first), name)
        };
        let mut keyed: Vec<(u64, NameId)> = names.iter().map(first).collect();
        keyed.sort_unstable_by(|left, right| {
            let rest = || self.get(left.1).cmp(self.get(right.1));
            left.0.cmp(&right.0).then_with(rest)
        });
        keyed.dedup();
        names.clear();
        names.extend(keyed.into_iter().map(|(_, name)| name));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len() + 1
    }

    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        NameId(self.0.intern_like(name, || name.into()) + 1)
    }
}
