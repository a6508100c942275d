//! Unions of terms in normal form, so that equal states meet.

use rustc_hash::FxHashMap;

use crate::terms::image_union::ImageGroups;
use crate::terms::{EMPTY, FULL, TermArena, TermId, TermNode};

impl TermArena {
    /// Returns the union of the terms in `list`.
    pub(crate) fn alt(&mut self, mut list: Vec<TermId>) -> TermId {
        match list[..] {
            [] => return EMPTY,
            [only] => return only,
            _ => {}
        }
        let mut at = 0;
        while at < list.len() {
            if let TermNode::Alt(inner) = self.get(list[at]) {
                let inner = inner.clone();
                list.swap_remove(at);
                list.extend_from_slice(&inner);
            } else {
                at += 1;
            }
        }
        list.sort_unstable();
        list.dedup();
        if list.first() == Some(&EMPTY) {
            list.remove(0);
        }
        if list.binary_search(&FULL).is_ok() {
            return FULL;
        }
        if let Some(any) = self.any_string.filter(|any| list.binary_search(any).is_ok()) {
            list.retain(|&id| id == any || !self.is_utf8(id));
        }
        self.join_counts(&mut list);
        ImageGroups::merge(self, &mut list);
        match list[..] {
            [] => EMPTY,
            [only] => only,
            _ => self.intern(TermNode::Alt(list.into())),
        }
    }

    /// Merges `x{a,b} k` and `x{c,d} k` into one term where the intervals touch. This keeps
    /// `(a|b)*a(a|b){40}` and nested counters small.
    fn join_counts(&mut self, list: &mut Vec<TermId>) {
        let counted = list.iter().filter(|&&id| self.counter_and_tail(id).is_some()).count();
        if counted < 2 {
            return;
        }
        type CounterIntervals = FxHashMap<(TermId, TermId, bool), Vec<(u32, u32)>>;
        let mut counts: CounterIntervals = FxHashMap::default();
        let mut kept = Vec::with_capacity(list.len());
        let mut order = Vec::new();
        for &id in list.iter() {
            match self.counter_and_tail(id) {
                Some((body, lazy, tail, min, max)) => {
                    let intervals = counts.entry((body, tail, lazy)).or_default();
                    if intervals.is_empty() {
                        order.push((body, tail, lazy));
                    }
                    intervals.push((min, max));
                }
                None => kept.push(id),
            }
        }
        for key in order {
            let mut intervals = counts.remove(&key).unwrap_or_default();
            intervals.sort_unstable();
            intervals.dedup_by(|next, kept| {
                let touches = next.0 <= kept.1.saturating_add(1);
                if touches {
                    kept.1 = kept.1.max(next.1);
                }
                touches
            });
            for (min, max) in intervals {
                let counter = self.repeat(key.0, min, max, key.2);
                kept.push(self.cat(counter, key.1));
            }
        }
        kept.sort_unstable();
        kept.dedup();
        *list = kept;
    }

    /// Returns `(body, lazy, tail, min, max)` of a term that is a counter before a tail.
    fn counter_and_tail(&self, id: TermId) -> Option<(TermId, bool, TermId, u32, u32)> {
        let (head, tail) = self.head_and_tail(id);
        match *self.get(head) {
            TermNode::Repeat { body, min, max, lazy } => Some((body, lazy, tail, min, max)),
            _ => None,
        }
    }
}
