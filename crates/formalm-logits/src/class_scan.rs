//! One pass over a row: log-sum-exp of all tokens, and of the allowed ones of each class.
//!
//! Additions to a table by class are scalar. The largest class, often that of tokens that begin with
//! a space, is summed in vectors instead, and its tokens are in no table's way:
//!
//! ```text
//!  block    weights ──┬── all: lanes ──────────────► log-sum-exp of the row
//!                     ├── allowed, common class: lanes
//!                     └── allowed, other classes ──► 4 tables of 256 sums, in turn
//! ```

use std::marker::PhantomData;
use std::sync::Arc;

use crate::exponential::Real;
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::{
    BITS, LANES, Soundness, Total, block_sum, block_total, lane_tops, log_sum_error, mask_block,
    power_of_two, top_of,
};
use crate::vectorized::{Kernel, run};

/// Tables that tokens in turn are added to, so that few additions wait for the one before.
const TABLES: usize = 4;
/// Sums of a table, a few more than classes: equal places of two tables must differ in more than
/// the upper bits of their addresses.
const TABLE: usize = 264;
/// Largest exponent of a block relative to that of the sums, which follows larger ones.
const MOST_ABOVE: f64 = 8.0;
/// Smallest such exponent with which weights are relative to that of the sums.
const MOST_BELOW: f64 = 30.0;
/// Distances of exponents from which on a class may be lost in float64.
const TOO_FAR: f64 = 500.0;
/// Distances in nats from which on weights are constant: above zero, also relative to the sums.
const SMALLEST: f64 = 86.0;
const SMALLEST_WIDE: f64 = 300.0;
/// Classes of a smaller share are not accurate, because of constant weights of 4e-38.
const TINY_SHARE: f64 = 1e-25;
/// The error of a class's sum relative to that of a row's: a class may be far below the rest of its
/// block.
const ERROR_FACTOR: f64 = 1.2;
/// Masks that are remembered, and those whose tokens are listed.
const REMEMBERED: usize = 4;

/// The classes of the tokens of a vocabulary, prepared for scans.
#[derive(Debug)]
pub struct TokenClasses {
    size: usize,
    /// The class of most tokens.
    common: u8,
    all: ListedTokens,
}

/// Tokens by block.
#[derive(Debug)]
struct ListedTokens {
    /// A bit for each token of the common class.
    common: Box<[u32]>,
    /// Other tokens: the place within the block, and the class in the upper half.
    others: Box<[u32]>,
    /// Where the tokens of each block start in `others`; one more at the end.
    starts: Box<[u32]>,
}

impl TokenClasses {
    /// Prepares the class of each token.
    pub fn new(classes: &[u8]) -> TokenClasses {
        let mut counts = [0usize; 256];
        for &class in classes {
            counts[class as usize] += 1;
        }
        let common = (0..=u8::MAX).max_by_key(|&class| counts[class as usize]).unwrap_or(0);
        let mut words = vec![0u32; classes.len().div_ceil(BLOCK) * BLOCK / 32];
        let (mut others, mut starts) = (Vec::new(), vec![0]);
        for (number, block) in classes.chunks(BLOCK).enumerate() {
            for (place, &class) in block.iter().enumerate() {
                if class == common {
                    words[(number * BLOCK + place) / 32] |= 1 << (place % 32);
                } else {
                    others.push(place as u32 | u32::from(class) << 16);
                }
            }
            starts.push(others.len() as u32);
        }
        let all =
            ListedTokens { common: words.into(), others: others.into(), starts: starts.into() };
        TokenClasses { size: classes.len(), common, all }
    }

    /// Returns the tokens that a mask allows.
    fn listed(&self, allowed: Allowed<'_>) -> ListedTokens {
        let words = self.all.common.iter().enumerate();
        let common = words.map(|(at, word)| word & allowed.word(at)).collect();
        let (mut others, mut starts) = (Vec::new(), vec![0]);
        for number in 0..self.all.starts.len() - 1 {
            let is_allowed = |&&one: &&u32| allowed.has(number * BLOCK + (one & 0xFFFF) as usize);
            others.extend(self.all.others_of(number).iter().filter(is_allowed));
            starts.push(others.len() as u32);
        }
        ListedTokens { common, others: others.into(), starts: starts.into() }
    }
}

impl ListedTokens {
    fn common_of(&self, block: usize) -> [u32; BLOCK / 32] {
        let mut words = [0; BLOCK / 32];
        if let Some(found) = self.common.as_chunks().0.get(block) {
            words = *found;
        }
        words
    }

    fn others_of(&self, block: usize) -> &[u32] {
        match self.starts.get(block..block + 2) {
            Some(&[start, end]) => &self.others[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Scans rows. A mask that comes again has its tokens listed, which spares the others.
#[derive(Debug)]
pub struct ClassScanner {
    classes: Arc<TokenClasses>,
    /// Masks, the last one used first, and their tokens, if they came again.
    masks: Vec<(Box<[u32]>, Option<ListedTokens>)>,
}

impl ClassScanner {
    /// Creates a scanner for the tokens of a vocabulary.
    pub fn new(classes: Arc<TokenClasses>) -> ClassScanner {
        ClassScanner { classes, masks: Vec::new() }
    }

    /// Sums a row and its allowed tokens by class. Returns `None` for logits of large magnitude,
    /// which [`crate::RowScan`] sums one by one.
    ///
    /// A row may be wider than the vocabulary: elements without a class count only in the whole sum.
    pub fn run(&mut self, row: Row<'_>, words: &[u32]) -> Option<ClassScan> {
        let allowed = Allowed::of(words, self.classes.size.min(row.width()));
        match self.masks.iter().position(|one| *one.0 == *words) {
            Some(place) => self.masks[..=place].rotate_right(1),
            None => {
                self.masks.truncate(REMEMBERED - 1);
                self.masks.insert(0, (words.into(), None));
                return scan(row, allowed, &self.classes.all, self.classes.common, true);
            }
        }
        let classes = &self.classes;
        let listed = self.masks[0].1.get_or_insert_with(|| classes.listed(allowed));
        scan(row, allowed, listed, classes.common, false)
    }
}

/// The sums of a row, and of its allowed tokens by class.
#[derive(Clone, Debug)]
pub struct ClassScan {
    /// The logarithm of the sum of exponentials of the whole row.
    pub log_sum_exp: f64,
    /// The same of the allowed tokens with a class.
    pub log_allowed: f64,
    /// The same of each class; minus infinity if no token of it is allowed. Where it is too small to
    /// be accurate, it is NaN.
    pub log_by_class: Box<[f64; 256]>,
    /// If it is not [`Soundness::Sound`], the other fields have no meaning.
    pub soundness: Soundness,
}

/// Returns an upper bound on the error of [`ClassScan::log_allowed`] and of each class, in nats.
pub fn class_sum_error(kind: ElementType) -> f64 {
    ERROR_FACTOR * log_sum_error(kind)
}

/// Sums a row. `is_masked` says that not all listed tokens are allowed.
fn scan(
    row: Row<'_>,
    allowed: Allowed<'_>,
    listed: &ListedTokens,
    common: u8,
    is_masked: bool,
) -> Option<ClassScan> {
    let job = (row, allowed, listed, common, is_masked);
    match row.element_type() {
        ElementType::Float16 => run(Scan::<Half> { job, kind: PhantomData }),
        ElementType::Bfloat16 => run(Scan::<Brain> { job, kind: PhantomData }),
        ElementType::Float32 => run(Scan::<f32> { job, kind: PhantomData }),
        ElementType::Float64 => run(Scan::<f64> { job, kind: PhantomData }),
    }
}

fn unsound(soundness: Soundness) -> ClassScan {
    let (log_sum_exp, log_allowed) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let log_by_class = Box::new([f64::NEG_INFINITY; 256]);
    ClassScan { log_sum_exp, log_allowed, log_by_class, soundness }
}

struct Scan<'a, E> {
    job: (Row<'a>, Allowed<'a>, &'a ListedTokens, u8, bool),
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Scan<'_, E> {
    type Output = Option<ClassScan>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Option<ClassScan> {
        let (row, allowed, listed, common_class, is_masked) = self.job;
        let limit = E::Real::MAX_EXPONENT_INPUT;
        let mut copied = [E::Real::LOWEST; BLOCK];
        let mut weights = [E::Real::ZERO; BLOCK];
        let mut whole = Total::default();
        let mut tables = [[0.0f64; TABLE]; TABLES];
        // The exponent that the tables are relative to; none before the first block.
        let mut reference = f64::NEG_INFINITY;
        for at in (0..row.width()).step_by(BLOCK) {
            row.prefetch::<E>(at);
            row.read::<E>(at, &mut copied);
            let block = &copied;
            let top = top_of(&lane_tops(block));
            let top_wide: f64 = top.into();
            if top_wide == f64::INFINITY {
                return Some(unsound(Soundness::PositiveInfinity));
            }
            if top_wide == f64::NEG_INFINITY {
                let mut has_nan = false;
                for x in block {
                    #[expect(clippy::eq_op, reason = "NaN differs from itself")]
                    let is_nan = x != x;
                    has_nan |= is_nan;
                }
                if has_nan {
                    return Some(unsound(Soundness::Nan));
                }
                continue;
            }
            if top_wide.abs() > limit {
                return None;
            }
            let number = at / BLOCK;
            let mut bits = listed.common_of(number);
            let others = listed.others_of(number);
            let mut any = others.len() as u32;
            if is_masked {
                any = 0;
                let words = allowed.block(at);
                for place in 0..BLOCK / 32 {
                    bits[place] &= words[place];
                    any |= words[place];
                }
            } else {
                for &word in &bits {
                    any |= word;
                }
            }
            let own: f64 = E::Real::exponent(top).into();
            if any == 0 {
                let (exponent, floor) = (E::Real::exponent(top), E::Real::floor(top));
                let sum = block_sum::<E::Real, FMA>(block, exponent, floor);
                if sum.is_nan() {
                    return Some(unsound(Soundness::Nan));
                }
                whole.add(sum, own);
                continue;
            }
            if reference == f64::NEG_INFINITY {
                reference = own;
            } else if (own - reference).abs() > TOO_FAR {
                return None;
            } else if own > reference + MOST_ABOVE {
                let scale = power_of_two(reference - own);
                for table in &mut tables {
                    for sum in table {
                        *sum *= scale;
                    }
                }
                reference = own;
            }
            let is_near = own >= reference - MOST_BELOW;
            let exponent = if is_near { reference } else { own };
            let factor = if is_near { 1.0 } else { power_of_two(own - reference) };
            let base = exponent * std::f64::consts::LN_2;
            let is_wide = size_of::<E::Real>() == size_of::<f64>();
            let smallest = if is_wide { SMALLEST_WIDE } else { SMALLEST };
            let factors = (E::Real::of(exponent), E::Real::of(base - smallest));
            let (sum, common) = weigh::<E::Real, FMA>(block, &bits, factors, &mut weights);
            if sum.is_nan() {
                return Some(unsound(Soundness::Nan));
            }
            whole.add(sum, exponent);
            tables[0][common_class as usize] += common * factor;
            if is_masked {
                let block = weights;
                mask_block(&block, &allowed.block(at), E::Real::ZERO, &mut weights);
            }
            add_by_class(others, &weights, factor, &mut tables);
        }
        if whole.is_empty() {
            return Some(unsound(Soundness::AllNegativeInfinity));
        }
        let ln2 = E::Real::ln2::<FMA>();
        let log_sum_exp = whole.log(ln2);
        let tiny = TINY_SHARE * (log_sum_exp - reference * ln2).exp();
        let (mut total, mut log_by_class) = (0.0, Box::new([f64::NEG_INFINITY; 256]));
        for (class, to) in log_by_class.iter_mut().enumerate() {
            let sum = (tables[0][class] + tables[1][class]) + (tables[2][class] + tables[3][class]);
            total += sum;
            if sum > 0.0 {
                *to = if sum < tiny { f64::NAN } else { sum.ln() + reference * ln2 };
            }
        }
        let log_allowed =
            if total > 0.0 { total.ln() + reference * ln2 } else { f64::NEG_INFINITY };
        Some(ClassScan { log_sum_exp, log_allowed, log_by_class, soundness: Soundness::Sound })
    }
}

/// Writes the weights of a block, and returns their sum and that of some tokens. Minus infinity has
/// none.
#[expect(clippy::needless_range_loop, reason = "indices below a constant are vectorized")]
#[inline(always)]
fn weigh<R: Real, const FMA: bool>(
    block: &[R; BLOCK],
    bits: &[u32; BLOCK / 32],
    (exponent, floor): (R, R),
    weights: &mut [R; BLOCK],
) -> (f64, f64) {
    let (mut sums, mut kept) = ([R::ZERO; LANES], [R::ZERO; LANES]);
    let (chunks, to) = (block.as_chunks::<LANES>().0, weights.as_chunks_mut::<LANES>().0);
    for at in 0..BLOCK / LANES {
        let (chunk, to) = (&chunks[at], &mut to[at]);
        for half in 0..2 {
            let word = bits[2 * at + half];
            for bit in 0..32 {
                let lane = half * 32 + bit;
                let weight = chunk[lane].weight::<FMA>(exponent, floor);
                let weight = if chunk[lane] == R::LOWEST { R::ZERO } else { weight };
                to[lane] = weight;
                sums[lane] = sums[lane].plus(weight);
                let own = if word & BITS[bit] != 0 { weight } else { R::ZERO };
                kept[lane] = kept[lane].plus(own);
            }
        }
    }
    (block_total(&sums), block_total(&kept))
}

/// Adds the weights of tokens, times a factor, to the sums of their classes.
#[inline(always)]
fn add_by_class<R: Real>(
    others: &[u32],
    weights: &[R; BLOCK],
    factor: f64,
    tables: &mut [[f64; TABLE]; TABLES],
) {
    // Iterators in step would be calls in some builds.
    let (groups, rest) = others.as_chunks::<TABLES>();
    for group in groups {
        for turn in 0..TABLES {
            let one = group[turn];
            let weight: f64 = weights[(one & 511) as usize].into();
            tables[turn][(one >> 16) as u8 as usize] += weight * factor;
        }
    }
    for &one in rest {
        let weight: f64 = weights[(one & 511) as usize].into();
        tables[0][(one >> 16) as u8 as usize] += weight * factor;
    }
}
