//! Prints the time of each kernel on a row of 128,256 random float32 logits, in microseconds.
use formalm_logits::{Allowed, DrawRules, Row, RowScan, draw};
use std::time::Instant;

fn time(name: &str, mut work: impl FnMut()) {
    // An argument selects kernels by name.
    if !std::env::args().nth(1).is_none_or(|part| name.contains(&part)) {
        return;
    }
    let mut times = Vec::new();
    for _ in 0..2000 {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    eprintln!("{name:28} {:8.1} µs at best, {:8.1} in the median", times[0], times[1000]);
}

fn main() {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / (1u32 << 24) as f32
    };
    let mut normal =
        || (-2.0 * (1.0 - next()).ln()).sqrt() * (std::f32::consts::TAU * next()).cos();
    let values: Vec<f32> = (0..128_256).map(|_| normal()).collect();
    let words: Vec<u32> = (0..4008).map(|at: u32| at.wrapping_mul(2_654_435_761)).collect();
    let row = Row::of_f32(&values);
    let mut scan = RowScan::default();
    for (name, allowed) in
        [("all", Allowed::all(values.len())), ("half", Allowed::of(&words, values.len()))]
    {
        time(&format!("{name}: scan"), || {
            scan.run(row, allowed);
        });
        scan.run(row, allowed);
        for k in [1, 8, 50, 1000] {
            time(&format!("{name}: best {k}"), || {
                scan.best(row, allowed, None, k);
            });
        }
        time(&format!("{name}: next 8"), || {
            scan.best(row, allowed, Some((5, 3.0)), 8);
        });
        let rules = DrawRules::default();
        for (what, rules) in [
            ("draw", rules),
            ("draw T", DrawRules { temperature: 0.7, ..rules }),
            ("draw top_k", DrawRules { top_k: Some(50), ..rules }),
            ("draw top_p", DrawRules { top_p: Some(0.9), ..rules }),
            ("draw min_p", DrawRules { min_p: Some(0.1), ..rules }),
        ] {
            let mut uniform = 0.37;
            time(&format!("{name}: {what}"), || {
                uniform = (uniform + 0.618_033_988) % 1.0;
                draw(&mut scan, row, allowed, &rules, uniform);
            });
        }
    }
}
