//! Names of object members, interned.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(pub(crate) u32);

/// A name that stands for any that no formula speaks of. No text is interned as it.
pub(crate) const PLACEHOLDER: NameId = NameId(0);

#[derive(Debug)]
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, NameId>,
}

impl Default for Names {
    fn default() -> Names {
        Names { list: vec!["".into()], ids: FxHashMap::default() }
    }
}

impl Names {
    pub(crate) fn get(&self, id: NameId) -> &str {
        &self.list[id.0 as usize]
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
        self.list.len()
    }

    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = NameId(self.list.len() as u32);
        let name: Arc<str> = name.into();
        self.list.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }
}
