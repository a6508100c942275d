//! The kernels against their definitions in float64, over random rows of every type.

use std::sync::Arc;

use crate::{
    Allowed, ClassScanner, DrawRules, DrawTable, ElementType, Row, RowScan, Soundness,
    TokenClasses, class_sum_error, draw, log_sum_error, log_sum_of,
};

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

const KINDS: [ElementType; 4] =
    [ElementType::Float16, ElementType::Bfloat16, ElementType::Float32, ElementType::Float64];

/// A row as bytes, at any alignment.
struct Stored {
    bytes: Vec<u8>,
    offset: usize,
    width: usize,
    kind: ElementType,
}

impl Stored {
    fn row(&self) -> Row<'_> {
        // SAFETY: `bytes` has the elements from `offset` on.
        unsafe { Row::from_raw(self.bytes[self.offset..].as_ptr(), self.width, self.kind) }
    }
}

fn store(kind: ElementType, values: &[f64], offset: usize) -> Stored {
    let mut bytes = vec![0xA5; offset];
    for &value in values {
        match kind {
            ElementType::Float16 => bytes.extend(half_bits(value).to_ne_bytes()),
            ElementType::Bfloat16 => {
                let bits = (value as f32).to_bits() >> 16;
                // Truncation must not turn a NaN into an infinity.
                let bits = if value.is_nan() { 0x7FC0 } else { bits };
                bytes.extend((bits as u16).to_ne_bytes());
            }
            ElementType::Float32 => bytes.extend((value as f32).to_ne_bytes()),
            ElementType::Float64 => bytes.extend(value.to_ne_bytes()),
        }
    }
    Stored { bytes, offset, width: values.len(), kind }
}

/// Returns a float16 near a number, truncated.
fn half_bits(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = (bits >> 23 & 0xFF) as i32 - 127 + 15;
    if value.is_nan() {
        0x7E00
    } else if exponent >= 31 {
        sign | 0x7C00
    } else if exponent <= 0 {
        let fraction = (bits & 0x7F_FFFF | 0x80_0000) >> 13;
        sign | (fraction >> (1 - exponent).min(31)) as u16
    } else {
        sign | (exponent as u16) << 10 | (bits >> 13 & 0x3FF) as u16
    }
}

fn half_value(bits: u16) -> f64 {
    let sign = if bits >> 15 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

#[test]
fn every_float16_and_bfloat16_has_its_value() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let (halves, brains) = (Row::of_f16_bits(&all), Row::of_bf16_bits(&all));
    for bits in 0..=u16::MAX {
        let at = usize::from(bits);
        let exact = half_value(bits);
        let same = |one: f64, other: f64| one == other || one.is_nan() && other.is_nan();
        assert!(same(halves.get(at), exact), "{bits:#x}: {} instead of {exact}", halves.get(at));
        assert!(
            same(brains.get(at), f64::from(f32::from_bits(u32::from(bits) << 16))),
            "{bits:#x}"
        );
    }
}

fn log_sum(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    // Neumaier's sum: the definition must not have an error of its own.
    let (mut sum, mut rest) = (0.0f64, 0.0f64);
    for value in values {
        let term = (value - top).exp();
        let next = sum + term;
        rest += if sum >= term { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    top + (sum + rest).ln()
}

/// Returns random values: narrow, wide, tied, sparse or huge, with or without invalid ones.
fn values(random: &mut Random, width: usize) -> Vec<f64> {
    let scale = [0.0, 1e-3, 1.0, 3.0, 10.0, 50.0, 300.0, 1e4, 1e30][random.below(9)];
    let shift = [0.0, 0.0, -100.0, 30.0, 5e3][random.below(5)];
    let step = [0.0, 0.0, 0.5, 4.0][random.below(4)];
    let sparse = [0.0, 0.0, 0.3, 0.99, 1.0][random.below(5)];
    let mut values: Vec<f64> = (0..width)
        .map(|_| {
            let value = shift + scale * random.normal();
            let value = if step > 0.0 { (value / step).round() * step } else { value };
            if random.uniform() < sparse { f64::NEG_INFINITY } else { value }
        })
        .collect();
    if width > 0 && random.below(8) == 0 {
        let at = random.below(width);
        values[at] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][random.below(3)];
    }
    values
}

fn words(random: &mut Random, width: usize) -> Vec<u32> {
    let count = match random.below(6) {
        0 => width / 64,
        1 => width.div_ceil(32) + 2,
        _ => width.div_ceil(32),
    };
    let density = random.below(6);
    (0..count)
        .map(|_| match density {
            0 => 0,
            1 => u32::MAX,
            2 => random.next() as u32,
            3 => (random.next() & random.next() & random.next() & random.next()) as u32,
            4 => 1 << random.below(32),
            _ => {
                if random.below(40) == 0 {
                    random.next() as u32
                } else {
                    0
                }
            }
        })
        .collect()
}

fn naive_soundness(values: &[f64]) -> Soundness {
    if values.iter().any(|x| x.is_nan()) {
        Soundness::Nan
    } else if values.contains(&f64::INFINITY) {
        Soundness::PositiveInfinity
    } else if values.iter().all(|&x| x == f64::NEG_INFINITY) {
        Soundness::AllNegativeInfinity
    } else {
        Soundness::Sound
    }
}

#[test]
fn sums_and_best_tokens_of_ten_thousand_rows_agree_with_float64() {
    let mut random = Random(1);
    let mut scan = RowScan::default();
    let mut worst = [0.0f64; 4];
    for case in 0..10_000 {
        let kind = KINDS[case % 4];
        let width = match random.below(4) {
            0 => random.below(40),
            1 => 500 + random.below(30),
            _ => random.below(3000),
        };
        let given = values(&mut random, width);
        let stored = store(kind, &given, random.below(8));
        let row = stored.row();
        let exact: Vec<f64> = (0..width).map(|at| row.get(at)).collect();
        let size = if random.below(3) == 0 { random.below(width + 40) } else { width };
        let words = words(&mut random, width);
        let allowed =
            if random.below(4) == 0 { Allowed::all(size) } else { Allowed::of(&words, size) };
        let sums = scan.run(row, allowed);
        let soundness = naive_soundness(&exact);
        if soundness == Soundness::Nan {
            // A row may have both; either is reported.
            assert!(matches!(sums.soundness, Soundness::Nan | Soundness::PositiveInfinity));
        } else {
            assert_eq!(sums.soundness, soundness, "case {case}");
        }
        if soundness != Soundness::Sound {
            continue;
        }
        let ids: Vec<usize> = (0..width).filter(|&at| allowed.has(at)).collect();
        let whole = log_sum(exact.iter().copied());
        let part = log_sum(ids.iter().map(|&at| exact[at]));
        let slack = log_sum_error(kind) + 4.0 * f64::EPSILON * whole.abs().max(1.0);
        for (found, exact) in [(sums.log_sum_exp, whole), (sums.log_allowed, part)] {
            if exact == f64::NEG_INFINITY {
                assert_eq!(found, exact, "case {case}");
                continue;
            }
            let slack = slack + 4.0 * f64::EPSILON * exact.abs();
            worst[case % 4] = worst[case % 4].max((found - exact).abs() / slack);
            assert!((found - exact).abs() <= slack, "case {case}: {found} instead of {exact}");
        }
        assert_eq!(sums.max, exact.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let mut order: Vec<usize> =
            ids.iter().copied().filter(|&at| exact[at] > f64::NEG_INFINITY).collect();
        order.sort_by(|&one, &other| exact[other].total_cmp(&exact[one]).then(one.cmp(&other)));
        // Zeros of both signs are equal.
        order.sort_by(|&one, &other| {
            exact[other].partial_cmp(&exact[one]).unwrap().then(one.cmp(&other))
        });
        let best: Vec<(u32, f64)> = order.iter().map(|&at| (at as u32, exact[at])).collect();
        let count = [1, 2, 8, 50, 1000, 5000][random.below(6)];
        let first = scan.best(row, allowed, None, count);
        assert_eq!(first, best[..count.min(best.len())], "case {case}");
        assert_eq!(scan.best_token(row, allowed), best.first().map(|one| one.0), "case {case}");
        if let Some(&last) = first.last() {
            let next = scan.best(row, allowed, Some(last), 9);
            assert_eq!(next, best[first.len()..best.len().min(first.len() + 9)], "case {case}");
        }
    }
    assert!(worst.iter().all(|&one| one < 1.0), "{worst:?}");
}

/// Returns the token of a draw by the definition, and the distance of the draw from the nearest
/// boundary between tokens, as a share.
fn naive_draw(
    values: &[(usize, f64)],
    rules: &DrawRules,
    uniform: f64,
) -> (Option<usize>, f64, f64) {
    let mut tokens: Vec<(usize, f64)> =
        values.iter().copied().filter(|one| one.1 > f64::NEG_INFINITY).collect();
    if tokens.is_empty() {
        return (None, 1.0, 1.0);
    }
    let top = tokens.iter().map(|one| one.1).fold(f64::NEG_INFINITY, f64::max);
    let order = |one: &(usize, f64), other: &(usize, f64)| {
        other.1.partial_cmp(&one.1).unwrap().then(one.0.cmp(&other.0))
    };
    if rules.temperature == 0.0 {
        tokens.sort_by(order);
        return (Some(tokens[0].0), 1.0, 1.0);
    }
    let has_rules = (rules.top_k, rules.top_p, rules.min_p) != (None, None, None);
    if has_rules {
        tokens.sort_by(order);
    }
    let weights: Vec<f64> =
        tokens.iter().map(|one| ((one.1 - top) / rules.temperature).exp()).collect();
    let mut kept = weights.len();
    let mut doubt = 1.0f64;
    if let Some(count) = rules.top_k {
        kept = kept.min(count);
    }
    if let Some(share) = rules.top_p {
        let total: f64 = weights[..kept].iter().sum();
        let mut sum = 0.0;
        let mut last = 0;
        for (at, weight) in weights[..kept].iter().enumerate() {
            last = at;
            sum += weight;
            doubt = doubt.min((sum / total - share).abs());
            if sum >= share * total {
                break;
            }
        }
        kept = last + 1;
    }
    if let Some(share) = rules.min_p {
        doubt = weights.iter().map(|w| (w / weights[0] / share - 1.0).abs()).fold(doubt, f64::min);
        kept = weights[..kept].iter().filter(|&&w| w >= share * weights[0]).count().max(1);
    }
    let total: f64 = weights[..kept].iter().sum();
    let mut sum = 0.0;
    let mut near = 1.0f64;
    let mut found = None;
    for at in 0..kept {
        sum += weights[at];
        near = near.min((sum / total - uniform).abs());
        if found.is_none() && sum > uniform * total {
            found = Some(tokens[at].0);
        }
    }
    (found.or(Some(tokens[kept - 1].0)), near, doubt)
}

#[test]
fn draws_agree_with_the_definition_away_from_boundaries() {
    let mut random = Random(2);
    let mut scan = RowScan::default();
    let mut compared = 0;
    for case in 0..10_000 {
        let kind = KINDS[case % 4];
        let width = if random.below(20) == 0 { 12_000 } else { 1 + random.below(1500) };
        let scale = [0.0, 1.0, 3.0, 10.0][random.below(4)];
        let step = [0.0, 0.0, 0.5][random.below(3)];
        let given: Vec<f64> = (0..width)
            .map(|_| {
                let value = scale * random.normal();
                if step > 0.0 { (value / step).round() * step } else { value }
            })
            .collect();
        let stored = store(kind, &given, random.below(8));
        let row = stored.row();
        let words = words(&mut random, width);
        let allowed =
            if random.below(3) == 0 { Allowed::all(width) } else { Allowed::of(&words, width) };
        let rules = DrawRules {
            temperature: [1.0, 1.0, 0.7, 2.0, 0.1, 1e-40, 0.0][random.below(7)],
            top_k: [None, None, Some(1), Some(7), Some(2000)][random.below(5)],
            top_p: [None, None, Some(0.9), Some(0.3), Some(1.0)][random.below(5)],
            min_p: [None, None, Some(0.05), Some(1.0)][random.below(4)],
        };
        let uniform = random.uniform();
        scan.run(row, allowed);
        let found = draw(&mut scan, row, allowed, &rules, uniform);
        let listed: Vec<(usize, f64)> =
            (0..width).filter(|&at| allowed.has(at)).map(|at| (at, row.get(at))).collect();
        let (expected, near, doubt) = naive_draw(&listed, &rules, uniform);
        assert_eq!(found.is_none(), expected.is_none(), "case {case}: {rules:?} {width} {kind:?}");
        if near > 1e-5 && doubt > 1e-5 {
            compared += 1;
            assert_eq!(
                found.map(|id| id as usize),
                expected,
                "case {case}: {rules:?} {width} {kind:?}"
            );
        }
    }
    assert!(compared > 7000, "{compared}");
}

#[test]
fn draws_by_rank_from_wide_rows_agree_with_the_definition() {
    let mut random = Random(5);
    let mut scan = RowScan::default();
    let mut compared = 0;
    for case in 0..400 {
        let kind = KINDS[case % 4];
        let width = 5000 + random.below(30_000);
        let scale = [0.0, 0.3, 1.0, 3.0][random.below(4)];
        let step = [0.0, 0.0, 0.0, 0.25, 2.0][random.below(5)];
        let shift = [0.0, -40.0, 300.0][random.below(3)];
        let sparse = [0.0, 0.0, 0.5][random.below(3)];
        let given: Vec<f64> = (0..width)
            .map(|at| {
                // Neighbors are alike, and the row has a trend: a sample may mislead.
                let trend = [0.0, 2.0 * at as f64 / width as f64][case / 4 % 2];
                let value = shift + trend + scale * random.normal();
                let value = if step > 0.0 { (value / step).round() * step } else { value };
                if random.uniform() < sparse { f64::NEG_INFINITY } else { value }
            })
            .collect();
        let stored = store(kind, &given, random.below(8));
        let row = stored.row();
        let words = words(&mut random, width);
        let allowed =
            if random.below(3) == 0 { Allowed::all(width) } else { Allowed::of(&words, width) };
        let rules = DrawRules {
            temperature: [1.0, 1.0, 0.7, 1.5][random.below(4)],
            top_k: None,
            top_p: [None, Some(random.uniform()), Some(0.9), Some(1.0)][random.below(4)],
            min_p: [None, Some(random.uniform()), Some(0.02), Some(1e-6)][random.below(4)],
        };
        scan.run(row, allowed);
        let listed: Vec<(usize, f64)> =
            (0..width).filter(|&at| allowed.has(at)).map(|at| (at, row.get(at))).collect();
        for _ in 0..4 {
            let uniform = random.uniform();
            let found = draw(&mut scan, row, allowed, &rules, uniform);
            let (expected, near, doubt) = naive_draw(&listed, &rules, uniform);
            assert_eq!(found.is_none(), expected.is_none(), "case {case}: {rules:?}");
            if near > 2e-6 && doubt > 2e-6 {
                compared += 1;
                let found = found.map(|id| id as usize);
                assert_eq!(found, expected, "case {case}: {rules:?} {width} {kind:?} {uniform}");
            }
        }
    }
    assert!(compared > 700, "{compared}");
}

#[test]
fn sums_of_given_tokens_agree_with_float64() {
    let mut random = Random(3);
    for case in 0..500 {
        let kind = KINDS[case % 4];
        let width = 1 + random.below(2000);
        let given: Vec<f64> = (0..width).map(|_| 3.0 * random.normal()).collect();
        let stored = store(kind, &given, random.below(8));
        let row = stored.row();
        let ids: Vec<u32> = (0..width as u32).filter(|_| random.below(3) > 0).collect();
        let exact = log_sum(ids.iter().map(|&id| row.get(id as usize)));
        let found = log_sum_of(row, &ids);
        assert!(found == exact || (found - exact).abs() < 1e-12);
    }
}

#[test]
fn scans_by_class_agree_with_float64() {
    let mut random = Random(6);
    let mut compared = 0;
    for case in 0..1500 {
        let kind = KINDS[case % 4];
        let width = 1 + random.below(3000);
        let given = values(&mut random, width);
        let stored = store(kind, &given, random.below(8));
        let row = stored.row();
        let size = [width, width / 2, width + 40][random.below(3)];
        let classes: Vec<u8> = (0..size)
            .map(|_| [7, 7, random.below(256) as u8, random.below(3) as u8][random.below(4)])
            .collect();
        let mut scanner = ClassScanner::new(Arc::new(TokenClasses::new(&classes)));
        let (words, others) = (words(&mut random, width), words(&mut random, width));
        let exact: Vec<f64> = (0..width).map(|at| row.get(at)).collect();
        let soundness = naive_soundness(&exact);
        let top = exact
            .iter()
            .copied()
            .fold(0.0, |top: f64, x| if x.is_finite() { top.max(x.abs()) } else { top });
        // The tokens of a mask are listed when it comes again.
        for words in [&words, &others, &words, &words, &others] {
            let allowed = Allowed::of(words, size.min(width));
            let Some(found) = scanner.run(row, words) else {
                assert!(top > 300.0, "case {case}: {top}");
                continue;
            };
            if soundness == Soundness::Nan {
                assert!(matches!(found.soundness, Soundness::Nan | Soundness::PositiveInfinity));
                continue;
            }
            assert_eq!(found.soundness, soundness, "case {case}");
            if soundness != Soundness::Sound {
                continue;
            }
            let whole = log_sum(exact.iter().copied());
            let slack = 8.0 * f64::EPSILON * top.max(1.0);
            assert!(
                (found.log_sum_exp - whole).abs() <= log_sum_error(kind) + slack,
                "case {case}"
            );
            for class in 0..=255u8 {
                let own = (0..size.min(width))
                    .filter(|&at| classes[at] == class && allowed.has(at))
                    .map(|at| exact[at]);
                let expected = log_sum(own);
                let sum = found.log_by_class[class as usize];
                if expected == f64::NEG_INFINITY {
                    assert_eq!(sum, expected, "case {case}: {class}");
                } else if sum.is_nan() {
                    assert!(expected < whole - 57.0, "case {case}: {class} {expected} {whole}");
                } else {
                    compared += 1;
                    let error = (sum - expected).abs();
                    assert!(error <= class_sum_error(kind) + slack, "case {case}: {class} {error}");
                }
            }
            let part =
                log_sum((0..size.min(width)).filter(|&at| allowed.has(at)).map(|at| exact[at]));
            if part > whole - 57.0 {
                assert!((found.log_allowed - part).abs() <= class_sum_error(kind) + slack);
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
}

#[test]
fn reweighted_draws_agree_with_the_definition() {
    let mut random = Random(4);
    let mut scan = RowScan::default();
    for case in 0..2000 {
        let kind = KINDS[case % 4];
        let width = 1 + random.below(3000);
        let given: Vec<f64> = (0..width).map(|_| 2.0 * random.normal()).collect();
        let stored = store(kind, &given, random.below(8));
        let row = stored.row();
        let words = words(&mut random, width);
        let allowed = Allowed::of(&words, width);
        scan.run(row, allowed);
        let table = DrawTable::of(&scan);
        let every = random.below(4) == 0;
        let tokens: Vec<u32> = (0..width as u32)
            .filter(|&id| allowed.has(id as usize) && (every || random.below(9) == 0))
            .collect();
        let factors: Vec<f64> = tokens
            .iter()
            .map(|_| if every { 0.0 } else { [0.0, 0.5, 1.0][random.below(3)] })
            .collect();
        let weigh = |id: usize| {
            let factor = tokens.binary_search(&(id as u32)).map_or(1.0, |at| factors[at]);
            (id, row.get(id) + f64::ln(factor))
        };
        let listed: Vec<(usize, f64)> =
            (0..width).filter(|&at| allowed.has(at)).map(weigh).collect();
        let exact = log_sum(listed.iter().map(|one| one.1));
        let found = table.reweighted_log_sum(row, allowed, &tokens, &factors);
        assert!(
            found == exact || (found - exact).abs() <= 2.0 * log_sum_error(kind),
            "case {case}"
        );
        let uniform = random.uniform();
        let drawn = table.draw(row, allowed, uniform, &tokens, &factors);
        let (expected, near, _) = naive_draw(&listed, &DrawRules::default(), uniform);
        assert_eq!(drawn.is_none(), expected.is_none(), "case {case}");
        if near > 1e-5 {
            assert_eq!(drawn.map(|id| id as usize), expected, "case {case}");
        }
    }
}
