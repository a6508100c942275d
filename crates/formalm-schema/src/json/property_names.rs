//! Interned property names, and symbolic names that stand for whole classes of them.

use formalm_core::Interner;

use crate::formula::FormulaId;

/// An interned property name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(pub(crate) u32);

/// The symbolic name of all names that no formula mentions. It has no text.
pub(crate) const UNMENTIONED_NAME: NameId = NameId(0);

/// Set in ids of symbolic names that stand for a class of names by the tests that these satisfy.
const TEST_CLASS_BIT: u32 = 1 << 31;

impl NameId {
    /// Returns `true` for symbolic names, which have no text.
    pub(crate) fn is_symbolic(self) -> bool {
        self == UNMENTIONED_NAME || self.0 & TEST_CLASS_BIT != 0
    }
}

/// The interned names, numbered from one on (zero is [`UNMENTIONED_NAME`]), and the classes by
/// their tests.
#[derive(Debug, Default)]
pub(crate) struct PropertyNames(Interner<Box<str>>, Interner<Box<[FormulaId]>>);

impl PropertyNames {
    pub(crate) fn get(&self, id: NameId) -> &str {
        if id.is_symbolic() { "" } else { self.0.get(id.0 - 1) }
    }

    /// Sorts names by their bytes and removes duplicates. The first eight bytes mostly decide, so
    /// they are compared as one integer.
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
        self.0.len() + self.1.len() + 1
    }

    /// Returns the symbolic name of all names that satisfy exactly these tests. The tests must be
    /// sorted.
    pub(crate) fn intern_test_class(&mut self, tests: &[FormulaId]) -> NameId {
        NameId(TEST_CLASS_BIT | self.1.intern_borrowed(tests, || tests.into()))
    }

    /// Returns the tests of a symbolic name that stands for a class.
    pub(crate) fn tests_of_class(&self, id: NameId) -> Option<&[FormulaId]> {
        (id.0 & TEST_CLASS_BIT != 0).then(|| &**self.1.get(id.0 & !TEST_CLASS_BIT))
    }

    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        NameId(self.0.intern_borrowed(name, || name.into()) + 1)
    }
}
