//! Token masks in their stored forms: id list, bitmask, or patched shared bitmask.

use std::sync::Arc;

/// Words of a bitmask: bit `id & 31` of word `id >> 5`; 1 = allowed.
pub type MaskWords = [u32];

/// Number of tokens up to which a list of ids is stored: writing more is slower than copying a
/// bitmask. Chosen, not measured.
pub(crate) const MAX_SPARSE_TOKENS: usize = 384;

/// Number of changes up to which a patch is stored: writing more is slower than copying an own
/// bitmask. Chosen, not measured.
const MAX_PATCH_TOKENS: usize = 192;

/// Size of a cache line, in bytes.
const CACHE_LINE_BYTES: usize = 64;

/// The allowed tokens of one mask class, without end tokens.
#[derive(Clone, Debug)]
pub enum Mask {
    /// Few tokens, ascending.
    Sparse(Box<[u32]>),
    /// An own bitmask. Whoever shares it from here on need not copy it.
    Dense(Arc<MaskWords>),
    /// A shared bitmask with changes.
    Patched {
        /// The shared bitmask.
        base: Arc<MaskWords>,
        /// Tokens to add.
        add: Box<[u32]>,
        /// Tokens to remove.
        remove: Box<[u32]>,
    },
}

impl Mask {
    /// Returns the smallest form of `base` with changes.
    pub(crate) fn patched(base: &Arc<MaskWords>, add: Vec<u32>, remove: Vec<u32>) -> Mask {
        if add.len() + remove.len() <= MAX_PATCH_TOKENS {
            return Mask::Patched {
                base: Arc::clone(base),
                add: own_allocation(add),
                remove: own_allocation(remove),
            };
        }
        let mut words = base.to_vec();
        patch(&mut words, &add, &remove);
        Mask::from_words(words)
    }

    /// Returns the mask in a form of which copies share the bitmask.
    pub(crate) fn with_shared_words(self) -> Mask {
        match self {
            Mask::Dense(words) => Mask::patched(&words, Vec::new(), Vec::new()),
            mask => mask,
        }
    }

    /// Adds tokens that the mask does not have.
    pub(crate) fn with(self, more: Vec<u32>) -> Mask {
        match self {
            Mask::Patched { base, add, remove } => {
                let mut remove = remove.into_vec();
                remove.retain(|id| !more.contains(id));
                Mask::patched(&base, [&add[..], &more[..]].concat(), remove)
            }
            Mask::Dense(mut words) => {
                patch(Arc::make_mut(&mut words), &more, &[]);
                Mask::Dense(words)
            }
            Mask::Sparse(ids) => {
                let words = ids.iter().chain(&more).max().map_or(0, |&last| last as usize / 32 + 1);
                Mask::from_ids(&[&ids[..], &more[..]].concat(), words)
            }
        }
    }

    /// Returns `words` as a patch of `base`, if they differ in few tokens.
    pub(crate) fn as_patch_of(base: &Arc<MaskWords>, words: &MaskWords) -> Option<Mask> {
        let mut differing = 0;
        for (old, new) in base.chunks(64).zip(words.chunks(64)) {
            differing +=
                old.iter().zip(new).map(|(old, new)| (old ^ new).count_ones()).sum::<u32>();
            if differing > MAX_PATCH_TOKENS as u32 {
                return None;
            }
        }
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        for (at, (old, new)) in base.iter().zip(words).enumerate() {
            let mut rest = old ^ new;
            while rest != 0 {
                let id = at as u32 * 32 + rest.trailing_zeros();
                let list =
                    if new & (rest & rest.wrapping_neg()) != 0 { &mut add } else { &mut remove };
                list.push(id);
                rest &= rest - 1;
            }
        }
        Some(Mask::patched(base, add, remove))
    }

    /// Returns the smallest form of a bitmask.
    pub(crate) fn from_words(words: Vec<u32>) -> Mask {
        let mut ids = Vec::new();
        for (at, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                if ids.len() == MAX_SPARSE_TOKENS {
                    return Mask::Dense(words.into());
                }
                ids.push(at as u32 * 32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        Mask::Sparse(own_allocation(ids))
    }

    /// Returns the smallest form of a list of distinct ids in any order.
    pub(crate) fn from_ids(ids: &[u32], words: usize) -> Mask {
        if ids.len() <= MAX_SPARSE_TOKENS {
            let mut ids: Box<[u32]> = ids.into();
            ids.sort_unstable();
            return Mask::Sparse(ids);
        }
        let mut dense: Arc<MaskWords> = std::iter::repeat_n(0, words).collect();
        patch(Arc::make_mut(&mut dense), ids, &[]);
        Mask::Dense(dense)
    }

    /// Overwrites `out` with the mask; words beyond the mask become zero.
    #[inline]
    pub fn fill(&self, out: &mut MaskWords) {
        match self {
            Mask::Sparse(ids) => {
                copy(&[], out);
                patch(out, ids, &[]);
            }
            Mask::Dense(words) => copy(words, out),
            Mask::Patched { base, add, remove } => {
                copy(base, out);
                patch(out, add, remove);
            }
        }
    }

    /// Adds the mask to `out`.
    pub(crate) fn join(&self, out: &mut MaskWords) {
        match self {
            Mask::Sparse(ids) => patch(out, ids, &[]),
            Mask::Dense(words) => {
                for (word, more) in out.iter_mut().zip(&**words) {
                    *word |= more;
                }
            }
            Mask::Patched { base, add, remove } => {
                let missing: Vec<u32> =
                    remove.iter().copied().filter(|&id| !has(out, id)).collect();
                for (word, more) in out.iter_mut().zip(&**base) {
                    *word |= more;
                }
                patch(out, add, &missing);
            }
        }
    }

    /// Returns `true` if a token is allowed.
    pub fn contains(&self, token_id: u32) -> bool {
        match self {
            Mask::Sparse(ids) => ids.binary_search(&token_id).is_ok(),
            Mask::Dense(words) => has(words, token_id),
            Mask::Patched { base, add, remove } => {
                (has(base, token_id) && !remove.contains(&token_id)) || add.contains(&token_id)
            }
        }
    }

    /// Returns the memory in use, in bytes, without a shared base.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Mask>()
            + 4 * match self {
                Mask::Sparse(ids) => ids.len(),
                Mask::Dense(words) => words.len(),
                Mask::Patched { add, remove, .. } => add.len() + remove.len(),
            }
    }
}

/// The union of many masks. Masks of machines that behave alike are mostly changes of few shared
/// bitmasks, each of which is joined once.
#[derive(Debug)]
pub(crate) struct MaskUnion {
    words: Vec<u32>,
    /// The shared bitmasks met so far, with the tokens that all masks over each lack.
    bases: Vec<(Arc<MaskWords>, Vec<u32>)>,
}

impl MaskUnion {
    /// Creates the union of no masks, of as many words.
    pub(crate) fn new(words: usize) -> MaskUnion {
        MaskUnion { words: vec![0; words], bases: Vec::new() }
    }

    /// Adds a mask.
    pub(crate) fn add(&mut self, mask: &Mask) {
        let Mask::Patched { base, add, remove } = mask else { return mask.join(&mut self.words) };
        match self.bases.iter_mut().find(|(known, _)| Arc::ptr_eq(known, base)) {
            Some((_, missing)) if missing[..] != remove[..] => {
                let mut remove = remove.to_vec();
                remove.sort_unstable();
                missing.retain(|id| remove.binary_search(id).is_ok());
            }
            Some(_) => {}
            None => self.bases.push((Arc::clone(base), remove.to_vec())),
        }
        patch(&mut self.words, add, &[]);
    }

    /// Returns the words, to which other tokens may be added.
    pub(crate) fn words(&mut self) -> &mut MaskWords {
        &mut self.words
    }

    /// Returns the bitmask.
    pub(crate) fn into_words(mut self) -> Vec<u32> {
        for (base, missing) in self.bases {
            let missing: Vec<u32> =
                missing.into_iter().filter(|&id| !has(&self.words, id)).collect();
            for (word, more) in self.words.iter_mut().zip(&*base) {
                *word |= more;
            }
            patch(&mut self.words, &[], &missing);
        }
        self.words
    }
}

/// Returns a list in an allocation of its size. A list that shrinks in place keeps up to half of its
/// allocation unused, with most allocators.
fn own_allocation(list: Vec<u32>) -> Box<[u32]> {
    if list.len() == list.capacity() { list.into_boxed_slice() } else { Box::from(&list[..]) }
}

/// Copies a mask and writes zeros beyond it, with the widest registers available: this is most of
/// the cost of a cached mask.
#[inline]
fn copy(from: &MaskWords, out: &mut MaskWords) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { copy_wide(from, out) };
    }
    copy_words(from, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn copy_wide(from: &MaskWords, out: &mut MaskWords) {
    copy_words(from, out);
}

/// Copies word by word. The library's `memcpy` can be twenty times slower for these sizes if the
/// two buffers are unluckily placed within their pages. A value unknown to the compiler keeps it
/// from inserting `memcpy` or `memset`.
#[inline(always)]
fn copy_words(from: &MaskWords, out: &mut MaskWords) {
    let nothing = std::hint::black_box(0);
    let (out, beyond) = out.split_at_mut(from.len().min(out.len()));
    let (first, lines) = at_line(out);
    let (from_first, from_lines) = from[..first.len() + lines.len()].split_at(first.len());
    for (word, &new) in first.iter_mut().zip(from_first) {
        *word = new | nothing;
    }
    for (word, &new) in lines.iter_mut().zip(from_lines) {
        *word = new | nothing;
    }
    let (first, lines) = at_line(beyond);
    first.iter_mut().for_each(|word| *word = nothing);
    lines.iter_mut().for_each(|word| *word = nothing);
}

/// Splits words at the first cache-line boundary: a write across two lines takes twice as long.
#[inline(always)]
fn at_line(out: &mut MaskWords) -> (&mut MaskWords, &mut MaskWords) {
    let before = out.as_ptr().align_offset(CACHE_LINE_BYTES).min(out.len());
    out.split_at_mut(before)
}

/// Returns `true` if a bitmask has a token.
pub(crate) fn has(words: &MaskWords, token_id: u32) -> bool {
    words.get(token_id as usize >> 5).is_some_and(|word| word >> (token_id & 31) & 1 != 0)
}

/// Sets and clears bits. Ids beyond `words` are ignored: no vocabulary of this size has them.
#[inline]
pub(crate) fn patch(words: &mut MaskWords, add: &[u32], remove: &[u32]) {
    for &id in remove {
        if let Some(word) = words.get_mut(id as usize >> 5) {
            *word &= !(1 << (id & 31));
        }
    }
    for &id in add {
        if let Some(word) = words.get_mut(id as usize >> 5) {
            *word |= 1 << (id & 31);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_has_the_tokens_of_each_mask() {
        let base = |step: u32| -> Arc<MaskWords> {
            let mut words = vec![0; 32];
            patch(&mut words, &(0..1000).filter(|id| id % step == 0).collect::<Vec<u32>>(), &[]);
            words.into()
        };
        let (even, third) = (base(2), base(3));
        let masks = [
            Mask::patched(&even, vec![1], vec![0, 2, 6, 12]),
            Mask::patched(&third, vec![5], vec![0, 6, 9, 12]),
            Mask::patched(&even, vec![6, 999], vec![2, 12, 4]),
            Mask::from_ids(&[7, 2], 32),
            Mask::patched(&third, vec![], vec![6, 9, 3]),
        ];
        for from in 0..masks.len() {
            for to in from..=masks.len() {
                let mut union = MaskUnion::new(32);
                masks[from..to].iter().for_each(|mask| union.add(mask));
                let words = union.into_words();
                for id in 0..1024 {
                    let expected = masks[from..to].iter().any(|mask| mask.contains(id));
                    assert_eq!(has(&words, id), expected, "{id} in {from}..{to}");
                }
            }
        }
    }

    #[test]
    fn every_stored_form_writes_equal_bits() {
        let ids: Vec<u32> = (0..900).filter(|id| id % 2 == 0).collect();
        let mut words = vec![0; 32];
        patch(&mut words, &ids, &[]);
        let base: Arc<MaskWords> = words.clone().into();
        let forms = [
            Mask::from_words(words.clone()),
            Mask::from_ids(&ids, 32),
            Mask::patched(&base, vec![], vec![]),
        ];
        for form in forms {
            let mut out = vec![!0; 40];
            form.fill(&mut out);
            assert_eq!(out[..32], words);
            assert_eq!(out[32..], [0; 8]);
            assert!(form.contains(898) && !form.contains(899) && !form.contains(5000));
        }
        let mut other = words.clone();
        patch(&mut other, &[1, 901], &[0, 898]);
        let near = Mask::as_patch_of(&base, &other).expect("few changes");
        let mut out = vec![!0; 40];
        near.fill(&mut out);
        assert_eq!(out[..32], other);
        assert!(Mask::as_patch_of(&base, &[!0; 32]).is_none());
        let few = Mask::patched(&base, vec![1], vec![0]);
        assert!(few.contains(1) && !few.contains(0));
    }
}
