//! Token distances: a lower bound on the tokens to a member, where finitely many elements are
//! reached.
//!
//! ```text
//!  element ──every group of tokens──► elements ──► … ──► all that are reached, if they are few
//!     ▲                                                   │
//!     └───────── breadth first, from those that may end ──┘
//! ```
//!
//! The distance ignores which tokens may precede which, so it is a lower bound on the fewest
//! canonical tokens. A search that it prunes examines little beside the shortest ways, and it ends:
//! a schema or a grammar whose stack is bounded is decided exactly, although its machine does not
//! know that it has finitely many states.

use formalm_core::{Error, deadline::check_deadline};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary};
use rustc_hash::FxHashMap;

use super::fewest_tokens::FewestQuery;
use super::subsets::SubsetElement;

/// Maximum number of elements that are reached. Chosen, not measured.
const MAX_REACHED: usize = 4_096;

/// The distances of elements from which finitely many are reached.
#[derive(Debug, Default)]
pub(super) struct TokenDistances {
    /// `u32::MAX` for elements from which no member is reached.
    known: FxHashMap<SubsetElement, u32>,
    /// Too many elements were reached once. Another attempt would mostly fail, too.
    is_unbounded: bool,
}

impl TokenDistances {
    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.known.capacity() * (size_of::<(SubsetElement, u32)>() + 1)
    }
}

impl<K: MaskClasses> FewestQuery<'_, K> {
    /// Returns a lower bound on the tokens from an element to a member; `None` if it reaches too
    /// many elements.
    pub(super) fn distance(&mut self, element: SubsetElement) -> Result<Option<u32>, Error> {
        if let Some(&known) = self.fewest.distances.known.get(&element) {
            return Ok(Some(known));
        }
        if self.fewest.distances.is_unbounded {
            return Ok(None);
        }
        let Some((reached, before)) = self.reach_all(element)? else {
            self.fewest.distances.is_unbounded = true;
            return Ok(None);
        };
        let mut distances = vec![u32::MAX; reached.len()];
        let mut queue = Vec::new();
        for (at, &element) in reached.iter().enumerate() {
            if self.may_end(element)? {
                distances[at] = 0;
                queue.push(at);
            }
        }
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            for &from in &before[at] {
                if distances[from] == u32::MAX {
                    distances[from] = distances[at] + 1;
                    queue.push(from);
                }
            }
        }
        let found = distances[0];
        self.fewest.distances.known.extend(reached.into_iter().zip(distances));
        Ok(Some(found))
    }

    /// Returns all elements that are reached from one, which is the first, and for each those that
    /// one token leads to it from. Returns `None` if they are too many.
    fn reach_all(&mut self, first: SubsetElement) -> Result<Option<ReachedElements>, Error> {
        let mut numbers = FxHashMap::from_iter([(first, 0)]);
        let mut reached = vec![first];
        let mut before = vec![Vec::new()];
        let mut at = 0;
        while let Some(&element) = reached.get(at) {
            check_deadline()?;
            for next in self.next_elements(element)? {
                let number = *numbers.entry(next).or_insert_with(|| {
                    reached.push(next);
                    before.push(Vec::new());
                    reached.len() - 1
                });
                before[number].push(at);
            }
            if reached.len() > MAX_REACHED {
                return Ok(None);
            }
            at += 1;
        }
        Ok(Some((reached, before)))
    }

    /// Returns the elements that one token leads to.
    fn next_elements(&mut self, element: SubsetElement) -> Result<Vec<SubsetElement>, Error> {
        let encoder = self.context.encoder;
        let mut found = Vec::new();
        for boundary in BOUNDARIES {
            let may_stand = match boundary {
                Boundary::Inside => !encoder.pretoken_must_end(element.pretoken),
                Boundary::Pretoken | Boundary::Added => encoder.pretoken_may_end(element.pretoken),
            };
            if may_stand {
                found.extend(self.groups(element, boundary)?.into_iter().map(|(next, _)| next));
            }
        }
        if encoder.pretoken_may_end(element.pretoken) {
            let special = self.product.after_special(self.context, element.product_state)?;
            found.extend(special.into_iter().map(|(_, next)| SubsetElement::new(next)));
        }
        for next in &mut found {
            *next = self.common(*next)?;
        }
        Ok(found)
    }
}

/// Elements, and for each the numbers of those before it.
type ReachedElements = (Vec<SubsetElement>, Vec<Vec<usize>>);
