//! Rows of logits in memory, and the tokens that a mask allows.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::mass_ranks::Ranked;

/// Number of elements that are converted and summed at a time. A block of float32 fits into a
/// quarter of a first-level cache.
pub(crate) const BLOCK: usize = 512;

/// The types of the elements of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// IEEE half precision.
    Float16,
    /// The upper half of a float32.
    Bfloat16,
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Float64,
}

impl ElementType {
    /// Returns the size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            ElementType::Float16 | ElementType::Bfloat16 => 2,
            ElementType::Float32 => 4,
            ElementType::Float64 => 8,
        }
    }
}

/// A row of logits or log-probabilities: contiguous, of any alignment.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    start: *const u8,
    width: usize,
    kind: ElementType,
    owner: PhantomData<&'a [u8]>,
}

// SAFETY: a row is a shared borrow of plain numbers.
unsafe impl Send for Row<'_> {}
// SAFETY: as above.
unsafe impl Sync for Row<'_> {}

impl<'a> Row<'a> {
    /// Returns the row of a slice.
    pub fn of_f32(values: &'a [f32]) -> Row<'a> {
        let (start, width) = (values.as_ptr().cast(), values.len());
        Row { start, width, kind: ElementType::Float32, owner: PhantomData }
    }

    /// Returns the row of a slice.
    pub fn of_f64(values: &'a [f64]) -> Row<'a> {
        let (start, width) = (values.as_ptr().cast(), values.len());
        Row { start, width, kind: ElementType::Float64, owner: PhantomData }
    }

    /// Returns the row of a slice of bit patterns.
    pub fn of_f16_bits(values: &'a [u16]) -> Row<'a> {
        let (start, width) = (values.as_ptr().cast(), values.len());
        Row { start, width, kind: ElementType::Float16, owner: PhantomData }
    }

    /// Returns the row of a slice of bit patterns.
    pub fn of_bf16_bits(values: &'a [u16]) -> Row<'a> {
        let (start, width) = (values.as_ptr().cast(), values.len());
        Row { start, width, kind: ElementType::Bfloat16, owner: PhantomData }
    }

    /// Returns a row in foreign memory.
    ///
    /// # Safety
    ///
    /// For the lifetime of the row, `start` points to `width` readable elements of type `kind`, of
    /// any alignment.
    pub unsafe fn from_raw(start: *const u8, width: usize, kind: ElementType) -> Row<'a> {
        Row { start, width, kind, owner: PhantomData }
    }

    /// Returns the address of the first element.
    pub fn start(self) -> *const u8 {
        self.start
    }

    /// Returns the number of elements.
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns the type of the elements.
    pub fn element_type(self) -> ElementType {
        self.kind
    }

    /// Returns an element; exact, as every type converts to float64 without rounding.
    ///
    /// # Panics
    ///
    /// If `at` is not below the width.
    pub fn get(self, at: usize) -> f64 {
        assert!(at < self.width, "element {at} of a row of {}", self.width);
        // SAFETY: `at` is within the row.
        unsafe {
            match self.kind {
                ElementType::Float16 => f64::from(self.load::<Half>(at)),
                ElementType::Bfloat16 => f64::from(self.load::<Brain>(at)),
                ElementType::Float32 => f64::from(self.load::<f32>(at)),
                ElementType::Float64 => self.load::<f64>(at),
            }
        }
    }

    /// # Safety
    ///
    /// The row's elements are of type `E`, and `at` is below the width.
    #[inline(always)]
    pub(crate) unsafe fn load<E: Element>(self, at: usize) -> E::Real {
        // SAFETY: promised by the caller; the read is unaligned.
        unsafe { self.start.cast::<E>().add(at).read_unaligned() }.real()
    }

    /// Returns the elements from `at` on, followed by minus infinity: where they are, if they need no
    /// conversion, or copied into `block`.
    ///
    /// The row's elements must be of type `E`.
    #[inline(always)]
    pub(crate) fn view<'b, E: Element>(
        self,
        at: usize,
        block: &'b mut [E::Real; BLOCK],
    ) -> &'b [E::Real; BLOCK]
    where
        'a: 'b,
    {
        if E::IS_REAL && self.width.saturating_sub(at) >= BLOCK {
            // SAFETY: within the row.
            let start = unsafe { self.start.cast::<E::Real>().add(at) };
            if start.is_aligned() {
                // SAFETY: the elements are within the row, and are of this type.
                return unsafe { &*start.cast::<[E::Real; BLOCK]>() };
            }
        }
        self.read::<E>(at, block);
        block
    }

    /// Asks for the memory of the block that follows the one at `at`.
    #[inline(always)]
    pub(crate) fn prefetch<E: Element>(self, at: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.width.saturating_sub(at) >= 2 * BLOCK {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: within the row.
            let start = unsafe { self.start.add((at + BLOCK) * size_of::<E>()) };
            for line in 0..BLOCK * size_of::<E>() / 64 {
                // SAFETY: a prefetch has no effect on memory.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(line * 64).cast()) };
            }
        }
    }

    /// Copies the elements from `at` on into `block`, followed by minus infinity.
    ///
    /// The row's elements must be of type `E`.
    #[inline(always)]
    pub(crate) fn read<E: Element>(self, at: usize, block: &mut [E::Real; BLOCK]) {
        debug_assert_eq!(size_of::<E>(), self.kind.size());
        let count = self.width.saturating_sub(at).min(BLOCK);
        if E::IS_REAL && count == BLOCK {
            // SAFETY: `at + BLOCK` elements are within the row, and are of this type.
            unsafe {
                let start = self.start.add(at * size_of::<E>());
                let size = size_of_val(block);
                std::ptr::copy_nonoverlapping(start, block.as_mut_ptr().cast(), size);
            }
            return;
        }
        if count == BLOCK {
            for (place, cell) in block.iter_mut().enumerate() {
                // SAFETY: `at + BLOCK` elements are within the row.
                *cell = unsafe { self.load::<E>(at + place) };
            }
            return;
        }
        for (place, cell) in block.iter_mut().enumerate() {
            // SAFETY: elements below `count` are within the row.
            *cell =
                if place < count { unsafe { self.load::<E>(at + place) } } else { Real::LOWEST };
        }
    }
}

/// A type of elements as it is stored.
pub(crate) trait Element: Copy {
    /// The type in which it is computed with.
    type Real: Ranked;

    /// `true` if elements are stored as they are computed with.
    const IS_REAL: bool;

    fn real(self) -> Self::Real;
}

impl Element for f32 {
    type Real = f32;

    const IS_REAL: bool = true;

    #[inline(always)]
    fn real(self) -> f32 {
        self
    }
}

impl Element for f64 {
    type Real = f64;

    const IS_REAL: bool = true;

    #[inline(always)]
    fn real(self) -> f64 {
        self
    }
}

/// The bits of a float16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Half(u16);

impl Element for Half {
    type Real = f32;

    const IS_REAL: bool = false;

    #[inline(always)]
    fn real(self) -> f32 {
        // Exponent and fraction move into place; the product corrects the exponent's bias, and
        // makes subnormal numbers normal.
        const SHIFT_BIAS: f32 = f32::from_bits(0x7780_0000); // 2^112
        let bits = u32::from(self.0);
        let magnitude = (bits & 0x7FFF) << 13;
        let finite = (f32::from_bits(magnitude) * SHIFT_BIAS).to_bits();
        let special = magnitude | 0x7F80_0000;
        let value = if magnitude >= 0x0F80_0000 { special } else { finite };
        f32::from_bits(value | (bits & 0x8000) << 16)
    }
}

/// The bits of a bfloat16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Brain(u16);

impl Element for Brain {
    type Real = f32;

    const IS_REAL: bool = false;

    #[inline(always)]
    fn real(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// The tokens that a mask allows: those with a bit in `words`, among the first `size`.
///
/// Bit `id & 31` of word `id >> 5` belongs to token `id`. Tokens beyond the words are not allowed.
#[derive(Clone, Copy, Debug)]
pub struct Allowed<'a> {
    words: Option<&'a [u32]>,
    size: usize,
}

impl<'a> Allowed<'a> {
    /// Returns all of the first `size` tokens.
    pub fn all(size: usize) -> Allowed<'a> {
        Allowed { words: None, size }
    }

    /// Returns the tokens of a bitmask among the first `size`.
    pub fn of(words: &'a [u32], size: usize) -> Allowed<'a> {
        Allowed { words: Some(words), size }
    }

    /// Returns `true` if the token is allowed.
    #[inline]
    pub fn has(self, id: usize) -> bool {
        let word = match self.words {
            None => u32::MAX,
            Some(words) => words.get(id >> 5).copied().unwrap_or(0),
        };
        (id < self.size) & (word >> (id & 31) & 1 != 0)
    }

    /// Returns the bits of 32 tokens.
    #[inline(always)]
    pub(crate) fn word(self, at: usize) -> u32 {
        let word = match self.words {
            None => u32::MAX,
            Some(words) => words.get(at).copied().unwrap_or(0),
        };
        let left = self.size.saturating_sub(at * 32);
        if left >= 32 { word } else { word & ((1u32 << left) - 1) }
    }

    /// Returns the bits of the block that starts at token `at`.
    #[inline(always)]
    pub(crate) fn block(self, at: usize) -> [u32; BLOCK / 32] {
        let first = at / 32;
        if at + BLOCK <= self.size {
            match self.words {
                None => return [u32::MAX; BLOCK / 32],
                Some(words) => {
                    if let Some(words) = words.get(first..first + BLOCK / 32)
                        && let Ok(words) = words.try_into()
                    {
                        return words;
                    }
                }
            }
        }
        let mut words = [0; BLOCK / 32];
        for (place, word) in words.iter_mut().enumerate() {
            *word = self.word(first + place);
        }
        words
    }
}
