//! Unions of images: merging images of one kind, and dropping those that a larger edit budget
//! covers.

use crate::terms::{EMPTY, TermArena, TermId, TermNode};
use crate::transduce::ImageKind;

/// An image before a tail, as an operand of a union.
#[derive(Clone, Copy)]
struct UnionImage {
    change: ImageKind,
    tail: TermId,
    rest: TermId,
    nullable: bool,
}

impl TermArena {
    /// Merges the images of a union: those of the same kind become one image of the union of their
    /// originals, where counters merge as in any union. Originals with a larger edit budget are
    /// removed from images with a smaller one.
    pub(crate) fn join_images(&mut self, list: &mut Vec<TermId>) {
        // Every union comes through here, and hardly any has images.
        if list.iter().filter(|&&id| self.is_image(id)).count() < 2 {
            return;
        }
        let mut images: Vec<UnionImage> = Vec::new();
        let mut others = Vec::with_capacity(list.len());
        for &id in list.iter() {
            let (head, tail) = self.head_and_tail(id);
            match *self.get(head) {
                TermNode::Image { rest, change, nullable } => {
                    let gated = matches!(change, ImageKind::Gate { .. });
                    let same = images
                        .iter_mut()
                        .find(|other| other.change == change && other.tail == tail && !gated);
                    let joined = UnionImage { change, tail, rest, nullable };
                    match same {
                        Some(same) => {
                            same.rest = self.alt(vec![same.rest, rest]);
                            same.nullable |= nullable;
                        }
                        None => images.push(joined),
                    }
                }
                _ => others.push(id),
            }
        }
        self.drop_smaller_budgets(&mut images);
        for UnionImage { change, tail, rest, nullable } in images {
            if rest != EMPTY {
                let image = self.intern(TermNode::Image { rest, change, nullable });
                others.push(self.cat(image, tail));
            }
        }
        others.sort_unstable();
        others.dedup();
        *list = others;
    }

    /// Removes originals that a larger budget covers from the images with smaller ones. An image
    /// with the empty string stays complete: it is unknown which of its originals contributes it.
    fn drop_smaller_budgets(&mut self, images: &mut [UnionImage]) {
        for at in 0..images.len() {
            let ImageKind::Edit { budget, inside, edits } = images[at].change else { continue };
            if images[at].nullable {
                continue;
            }
            let mut rest = self.members(images[at].rest);
            let count = rest.len();
            for larger in images.iter() {
                let ImageKind::Edit { budget: most, inside: same, edits: plan } = larger.change
                else {
                    continue;
                };
                if (same, plan, larger.tail) == (inside, edits, images[at].tail) && most > budget {
                    let more = self.members(larger.rest);
                    rest.retain(|one| !more.contains(one));
                }
            }
            if rest.len() < count {
                images[at].rest = self.alt(rest);
            }
        }
    }

    /// Returns `true` if a term is an image before a tail.
    fn is_image(&self, id: TermId) -> bool {
        matches!(self.get(self.head_and_tail(id).0), TermNode::Image { .. })
    }

    fn members(&self, id: TermId) -> Vec<TermId> {
        match self.get(id) {
            TermNode::Alt(list) => list.to_vec(),
            _ => vec![id],
        }
    }
}
