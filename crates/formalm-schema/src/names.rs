//! Names of object members, interned.

use rustc_hash::FxHashMap;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(pub(crate) u32);

/// A name that stands for any that no formula speaks of. No text is interned as it.
pub(crate) const PLACEHOLDER: NameId = NameId(0);

#[derive(Debug)]
pub(crate) struct Names {
    list: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, NameId>,
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

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = NameId(self.list.len() as u32);
        self.list.push(name.into());
        self.ids.insert(name.into(), id);
        id
    }
}
