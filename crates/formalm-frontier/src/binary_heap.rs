//! A binary heap whose order needs a table that it does not own.

/// Inserts an item into a heap ordered by `is_before`.
#[inline]
pub(crate) fn push<T: Copy>(heap: &mut Vec<T>, item: T, is_before: impl Fn(T, T) -> bool) {
    heap.push(item);
    let mut at = heap.len() - 1;
    while at > 0 {
        let above = (at - 1) / 2;
        if !is_before(heap[at], heap[above]) {
            break;
        }
        heap.swap(at, above);
        at = above;
    }
}

/// Removes and returns the first item.
#[inline]
pub(crate) fn pop<T: Copy>(heap: &mut Vec<T>, is_before: impl Fn(T, T) -> bool) -> Option<T> {
    let last = heap.len().checked_sub(1)?;
    heap.swap(0, last);
    let first = heap.pop()?;
    let mut at = 0;
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        if left >= last {
            break;
        }
        let below = if right < last && is_before(heap[right], heap[left]) { right } else { left };
        if !is_before(heap[below], heap[at]) {
            break;
        }
        heap.swap(at, below);
        at = below;
    }
    Some(first)
}
