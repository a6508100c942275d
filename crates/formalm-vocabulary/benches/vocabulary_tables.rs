//! Benchmarks of loading tokenizer files, building tables and combining class masks.
//!
//! `cargo bench -p formalm-vocabulary` reads the files of `../shared/tokenizers`, or of the
//! directory given as an argument. One thread is timed: `RAYON_NUM_THREADS=1`.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use formalm_core::ClassCover;
use formalm_vocabulary::{ProfileFilter, Vocabulary};

/// Returns the shortest time of several runs, that is the cost without disturbance.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn ascii(members: impl Fn(u8) -> bool) -> u128 {
    (0..128).filter(|&byte| members(byte)).fold(0, |set, byte| set | 1 << byte)
}

fn sets() -> Vec<(&'static str, ProfileFilter)> {
    let (none, full) = ([ClassCover::None; 4], [ClassCover::Full; 4]);
    let word = [ClassCover::Full, ClassCover::Full, ClassCover::None, ClassCover::None];
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let email = |byte: u8| is_word(byte) || b".%+-".contains(&byte);
    let body = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    vec![
        ("[a-zA-Z0-9._%+-]", ProfileFilter::new(ascii(email), none)),
        ("[a-z]", ProfileFilter::new(ascii(|byte| byte.is_ascii_lowercase()), none)),
        ("[a-m]", ProfileFilter::new(ascii(|byte| (b'a'..=b'm').contains(&byte)), none)),
        ("[0-9]", ProfileFilter::new(ascii(|byte| byte.is_ascii_digit()), none)),
        (".", ProfileFilter::new(ascii(|byte| byte != b'\n'), full)),
        ("JSON string", ProfileFilter::new(ascii(body), full)),
        ("\\w", ProfileFilter::new(ascii(is_word), word)),
        ("[ -~]", ProfileFilter::new(ascii(|byte| (b' '..=b'~').contains(&byte)), none)),
        ("[a-z\u{e0}-\u{ff}]", {
            let wide =
                [ClassCover::Partial, ClassCover::None, ClassCover::None, ClassCover::Partial];
            ProfileFilter::new(ascii(|byte| byte.is_ascii_lowercase()), wide)
        }),
    ]
}

fn unzipped(path: &Path) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    flate2::read::GzDecoder::new(file).read_to_end(&mut data).ok()?;
    Some(data)
}

fn report(name: &str, data: &[u8]) {
    let Ok(vocabulary) = Vocabulary::from_tokenizer_json(data, None) else {
        println!("{name}: refused");
        return;
    };
    let whole = best(5, || Vocabulary::from_tokenizer_json(data, None));
    let ids = 0..vocabulary.len() as u32;
    let tokens: Vec<Option<Vec<u8>>> =
        ids.map(|id| vocabulary.token_bytes(id).map(<[u8]>::to_vec)).collect();
    let tables = best(5, || Vocabulary::from_tokens(tokens.clone(), vec![]));
    let (trie, classes) = (vocabulary.trie(), vocabulary.class_masks());
    let (groups, dense) = classes.group_counts();
    println!(
        "{name}: {} ids; file {whole:.1?}, tables {tables:.1?}; {:.1} MB (trie {:.1}, classes {:.1}, crossings {:.1}); \
         {} nodes, {} signatures, {groups} groups ({dense} dense), {} ragged, {} broken, {} crossing nodes",
        vocabulary.len(),
        vocabulary.memory_bytes() as f64 / 1e6,
        trie.memory_bytes() as f64 / 1e6,
        classes.memory_bytes() as f64 / 1e6,
        classes.exits().memory_bytes() as f64 / 1e6,
        trie.nodes().len(),
        trie.signatures().len(),
        classes.partial_tokens().len(),
        classes.broken_tokens().len(),
        classes.exits().nodes().len(),
    );
    let mut out = vec![0; vocabulary.len().div_ceil(32)];
    let mut undecided = Vec::new();
    for (set, inside) in sets() {
        let time = best(200, || {
            undecided.clear();
            classes.fill_mask(&inside, &mut out, &mut undecided);
        });
        let allowed: u32 = out.iter().map(|word| word.count_ones()).sum();
        println!("  {set:18} {time:>8.1?}  {allowed} tokens, {} undecided", undecided.len());
    }
}

fn main() {
    let given = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/tokenizers");
    let directory = given.map_or(shared, PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&directory) else {
        println!("no tokenizer files in {}", directory.display());
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "gz")) {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        if let Some(data) = unzipped(path) {
            report(&name, &data);
        }
    }
}
