//! Images in unions: merging images of one kind, and dropping those that a larger edit budget
//! covers.

use crate::terms::edit_and_rewrite_plans::ImageKind;
use crate::terms::{EMPTY, TermArena, TermId, TermNode};

/// An image before a tail, as an operand of a union.
#[derive(Clone, Copy)]
struct UnionImage {
    change: ImageKind,
    tail: TermId,
    rest: TermId,
    nullable: bool,
}

/// The operands of a union with several images: those of one kind and tail are one image of the
/// union of their originals.
pub(super) struct ImageGroups {
    images: Vec<UnionImage>,
    others: Vec<TermId>,
}

impl ImageGroups {
    /// Merges the images of a union, where counters of originals merge as in any union. Originals
    /// with a larger edit budget are removed from images with a smaller one.
    pub(super) fn merge(terms: &mut TermArena, list: &mut Vec<TermId>) {
        // Every union comes through here, and hardly any has images.
        if list.iter().filter(|&&id| is_image(terms, id)).count() < 2 {
            return;
        }
        let mut groups = ImageGroups { images: Vec::new(), others: Vec::with_capacity(list.len()) };
        for &id in list.iter() {
            groups.add(terms, id);
        }
        groups.drop_smaller_budgets(terms);
        *list = groups.into_operands(terms);
    }

    fn add(&mut self, terms: &mut TermArena, id: TermId) {
        let (head, tail) = terms.head_and_tail(id);
        let TermNode::Image { rest, change, nullable } = *terms.get(head) else {
            self.others.push(id);
            return;
        };
        let gated = matches!(change, ImageKind::Gate { .. });
        let mut images = self.images.iter_mut();
        match images.find(|other| other.change == change && other.tail == tail && !gated) {
            Some(same) => {
                same.rest = terms.alt(vec![same.rest, rest]);
                same.nullable |= nullable;
            }
            None => self.images.push(UnionImage { change, tail, rest, nullable }),
        }
    }

    /// Removes originals that a larger budget covers from the images with smaller ones. An image
    /// with the empty string stays complete: it is unknown which of its originals contributes it.
    fn drop_smaller_budgets(&mut self, terms: &mut TermArena) {
        for at in 0..self.images.len() {
            let ImageKind::Edit { budget, inside, edits } = self.images[at].change else {
                continue;
            };
            if self.images[at].nullable {
                continue;
            }
            let mut rest = operands(terms, self.images[at].rest);
            let count = rest.len();
            for larger in &self.images {
                let ImageKind::Edit { budget: most, inside: same, edits: plan } = larger.change
                else {
                    continue;
                };
                if (same, plan, larger.tail) == (inside, edits, self.images[at].tail)
                    && most > budget
                {
                    let more = operands(terms, larger.rest);
                    rest.retain(|one| !more.contains(one));
                }
            }
            if rest.len() < count {
                self.images[at].rest = terms.alt(rest);
            }
        }
    }

    fn into_operands(self, terms: &mut TermArena) -> Vec<TermId> {
        let mut operands = self.others;
        for UnionImage { change, tail, rest, nullable } in self.images {
            if rest != EMPTY {
                let image = terms.intern(TermNode::Image { rest, change, nullable });
                operands.push(terms.cat(image, tail));
            }
        }
        operands.sort_unstable();
        operands.dedup();
        operands
    }
}

/// Returns `true` if a term is an image before a tail.
fn is_image(terms: &TermArena, id: TermId) -> bool {
    matches!(terms.get(terms.head_and_tail(id).0), TermNode::Image { .. })
}

/// Returns the operands of a union, or the term itself.
fn operands(terms: &TermArena, id: TermId) -> Vec<TermId> {
    match terms.get(id) {
        TermNode::Alt(list) => list.to_vec(),
        _ => vec![id],
    }
}
