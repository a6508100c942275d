//! Subset construction over annotated texts: the states of a canonical constraint.

use std::sync::Arc;

use formalm_core::{CompactMap, Interner};
use formalm_vocabulary::bpe::PretokenState;

use super::product::ProductState;

/// One hypothesis about the input: a product state, by number, and the state of the current
/// pre-token. In a constraint state the number is that of a position; in a search it is that of a
/// product state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SubsetElement {
    pub(crate) product_state: ProductState,
    pub(crate) pretoken: PretokenState,
}

impl SubsetElement {
    pub(crate) fn new(product_state: ProductState) -> SubsetElement {
        SubsetElement { product_state, pretoken: PretokenState::PLAIN }
    }
}

/// Interned subsets; each element has the number of its masks.
#[derive(Debug, Default)]
pub(crate) struct Subsets {
    masked: Interner<SubsetElement>,
    list: CompactMap<Box<[SubsetElement]>, Arc<[NumberedElement]>>,
    total: usize,
}

/// A representative whose masks are used, with the number of these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskSource {
    pub(crate) masked: SubsetElement,
    pub(crate) id: u32,
    /// The representative, with its number, whose masks these masks add to, if any.
    pub(crate) base: Option<(SubsetElement, u32)>,
}

/// An element with its masks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedElement {
    pub(crate) element: SubsetElement,
    own: MaskSource,
}

impl NumberedElement {
    /// Returns the sources whose masks together are those of the element.
    pub(crate) fn mask_sources(&self) -> impl Iterator<Item = MaskSource> {
        let base = self.own.base.map(|(masked, id)| MaskSource { masked, id, base: None });
        base.into_iter().chain([self.own])
    }
}

impl Subsets {
    /// Returns the number of a sorted subset, given the representative of each element and the one
    /// whose masks it adds to, if any.
    pub(crate) fn intern(
        &mut self,
        set: Vec<SubsetElement>,
        masked: Vec<(SubsetElement, Option<SubsetElement>)>,
    ) -> u32 {
        if let Some(id) = self.list.find(&*set) {
            return id;
        }
        let numbered = set.iter().zip(masked).map(|(&element, (masked, base))| {
            let base = base.map(|base| (base, self.masked.intern(base)));
            let own = MaskSource { masked, id: self.masked.intern(masked), base };
            NumberedElement { element, own }
        });
        let numbered = numbered.collect();
        self.total += set.len();
        self.list.position_or_insert_with(set.into(), || numbered)
    }

    /// Returns the elements of a subset.
    pub(crate) fn elements(&self, set: u32) -> Arc<[NumberedElement]> {
        Arc::clone(self.list.value(set))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let element = size_of::<SubsetElement>() + size_of::<NumberedElement>();
        let counts = 2 * size_of::<usize>();
        element * self.total
            + counts * self.list.len()
            + self.list.table_bytes()
            + self.masked.table_bytes()
    }
}
