//! Random models against the definition: the best segmentation of the whole text.

use rustc_hash::FxHashSet;

use super::*;

/// A small linear congruential generator, so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The characters of the random models; only two are pieces in every model.
const LETTERS: [&str; 4] = ["a", "b", "c", "é"];

struct Case {
    pieces: Vec<UnigramPiece>,
    unknown_score: f64,
    arithmetic: ScoreArithmetic,
    bytes: Option<Box<[u32; 256]>>,
}

fn case(random: &mut Random) -> Case {
    let letters = 2 + random.below(3) as usize;
    let scale = [1.0, 0.5, 0.1, 0.3711][random.below(4) as usize];
    let range = 2 + random.below(12);
    let mut texts: Vec<String> = Vec::new();
    for letter in &LETTERS[..letters] {
        if random.below(5) != 0 {
            texts.push((*letter).to_owned());
        }
    }
    for _ in 0..1 + random.below(9) {
        let count = 2 + random.below(3);
        let text = (0..count).map(|_| LETTERS[random.below(letters as u64) as usize]);
        texts.push(text.collect());
    }
    texts.sort();
    texts.dedup();
    let single = random.below(3) == 0;
    let arithmetic = if single { ScoreArithmetic::Single } else { ScoreArithmetic::Double };
    let mut least: f64 = 0.0;
    let pieces: Vec<UnigramPiece> = texts
        .into_iter()
        .zip(0u32..)
        .map(|(text, token)| {
            let score = arithmetic.store(-scale * random.below(range) as f64);
            least = least.min(score);
            let has_text = random.below(20) != 0;
            UnigramPiece { text: text.into_bytes(), score, token, has_text }
        })
        .collect();
    let bytes =
        (random.below(2) == 0).then(|| Box::new(std::array::from_fn(|at| 1000 + at as u32)));
    Case { pieces, unknown_score: arithmetic.store(least - 10.0), arithmetic, bytes }
}

/// The definition: fills the lattice in the order of the libraries.
fn naive(case: &Case, text: &str) -> Option<Vec<u32>> {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    starts.push(text.len());
    let mut best: Vec<Option<(f64, usize, Vec<u32>)>> = vec![None; text.len() + 1];
    best[0] = Some((0.0, 0, Vec::new()));
    for pair in starts.windows(2) {
        let (start, next) = (pair[0], pair[1]);
        let (score, ..) = best[start].clone()?;
        let mut known = false;
        let mut add = |end: usize, sum: f64, tokens: Vec<u32>| {
            let sum = case.arithmetic.store(sum);
            if best[end].as_ref().is_none_or(|one| sum > one.0) {
                best[end] = Some((sum, start, tokens));
            }
        };
        let mut here: Vec<&UnigramPiece> = case
            .pieces
            .iter()
            .filter(|piece| text.as_bytes()[start..].starts_with(&piece.text))
            .collect();
        here.sort_by_key(|piece| piece.text.len());
        for piece in here {
            let end = start + piece.text.len();
            known = known || end == next;
            add(
                end,
                piece.score + score,
                if piece.has_text { vec![piece.token] } else { vec![u32::MAX] },
            );
        }
        if !known {
            let bytes = text.as_bytes()[start..next].iter();
            let tokens = match &case.bytes {
                Some(ids) => bytes.map(|&byte| ids[usize::from(byte)]).collect(),
                None => vec![u32::MAX],
            };
            add(next, case.arithmetic.store(case.unknown_score + score), tokens);
        }
    }
    let mut units: Vec<Vec<u32>> = Vec::new();
    let mut end = text.len();
    while end > 0 {
        let (_, start, tokens) = best[end].clone()?;
        units.push(tokens);
        end = start;
    }
    let tokens: Vec<u32> = units.into_iter().rev().flatten().collect();
    (!tokens.contains(&u32::MAX)).then_some(tokens)
}

fn model(case: &Case) -> UnigramModel {
    UnigramModel::new(
        case.pieces.clone(),
        case.unknown_score,
        case.arithmetic,
        (case.bytes.clone(), true),
    )
    .unwrap()
}

/// Returns all texts of at most some characters.
fn texts(letters: usize, longest: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let end = all.len();
        for at in from..end {
            for letter in &LETTERS[..letters] {
                all.push(format!("{}{letter}", all[at]));
            }
        }
        from = end;
    }
    all
}

/// Compares what is known of all tokens after a state with reading each: which are forbidden, and
/// what their leads decide.
fn check_tokens(
    model: &UnigramModel,
    case: &Case,
    state: &OpenPieces,
    (rests, random): (&[String], &mut Random),
    led: &mut [usize; 2],
) {
    let (mut forbidden, mut near) = (FxHashSet::default(), FxHashSet::default());
    model.for_each_forbidden(
        state,
        |token| {
            forbidden.insert(token);
        },
        |token| {
            near.insert(token);
        },
    );
    for piece in case.pieces.iter().filter(|piece| piece.has_text) {
        let next = model.step(state, piece.token, false);
        let masked = forbidden.contains(&piece.token) || !model.may_occur(piece.token);
        if !near.contains(&piece.token) && state.character.is_empty() {
            assert_eq!(next.is_none(), masked, "{:?} {piece:?} {state:?}", case.pieces);
        }
        let Some(next) = next.filter(|_| !near.contains(&piece.token)) else { continue };
        let rest = rests[random.below(rests.len() as u64) as usize].as_bytes();
        let ahead = &rest[..random.below(rest.len() as u64 + 1) as usize];
        if !model.encode(rest, &mut Vec::new()) || !model.encodes_however_split(rest) {
            continue;
        }
        for (known, is_open) in [(rest, false), (ahead, true)] {
            if let Some(lead) = model.boundary_lead(piece.token, known, is_open)
                && model.keeps_lead(state, piece.token, lead)
            {
                let keeps = model.encode_rest(&next, rest, &mut Vec::new());
                let read = (&case.pieces, state, piece, rest);
                assert_eq!(lead > 0.0, keeps, "{read:?} {lead}");
                led[usize::from(keeps)] += 1;
            }
        }
    }
}

#[test]
fn states_accept_the_best_segmentation_of_every_text_and_no_other() {
    let mut random = Random(7);
    let (mut sequences, mut rounded) = (0usize, 0usize);
    let (mut kept, mut led) = ([0usize; 2], [0usize; 2]);
    for _ in 0..10_000 {
        let case = case(&mut random);
        let model = model(&case);
        rounded += usize::from(!model.is_exact());
        let longest = 4;
        let mut expected: FxHashSet<Vec<u32>> = FxHashSet::default();
        for text in texts(4, longest) {
            let tokens = naive(&case, &text);
            let mut own = Vec::new();
            let encoded = model.encode(text.as_bytes(), &mut own).then_some(own);
            assert_eq!(encoded, tokens, "{text:?} {:?}", case.pieces);
            expected.extend(tokens);
        }
        let rests = texts(4, 3);
        // Every sequence that the states allow, by reading every token.
        let mut found: FxHashSet<Vec<u32>> = FxHashSet::default();
        let mut pending = vec![(OpenPieces::default(), String::new(), Vec::<u32>::new())];
        while let Some((state, text, tokens)) = pending.pop() {
            if state.character.is_empty() && text.chars().count() <= longest {
                found.insert(tokens.clone());
            }
            for _ in 0..3 {
                let rest = &rests[random.below(rests.len() as u64) as usize];
                if rest.is_empty() || !model.encode(rest.as_bytes(), &mut Vec::new()) {
                    continue;
                }
                let however_split = model.encodes_however_split(rest.as_bytes());
                let known = (rest.as_bytes(), however_split);
                if let Some(keeps) = model.keeps_boundary(&state, known) {
                    let all = model.encode_rest(&state, rest.as_bytes(), &mut Vec::new());
                    assert_eq!(keeps, all, "{rest:?} {:?} {state:?}", case.pieces);
                    kept[usize::from(keeps)] += 1;
                }
            }
            check_tokens(&model, &case, &state, (&rests, &mut random), &mut led);
            if !model.is_exact() {
                // As after much text.
                let far = -(random.below(1 << 20) as f64) / 1.3;
                let after = |score: f64| case.arithmetic.store(score + far);
                let shifted = OpenPieces {
                    base: after(state.base),
                    pairs: state.pairs.iter().map(|&(node, score)| (node, after(score))).collect(),
                    character: state.character.clone(),
                };
                check_tokens(&model, &case, &shifted, (&rests, &mut random), &mut led);
            }
            for piece in case.pieces.iter().filter(|piece| piece.has_text) {
                let next = model.step(&state, piece.token, false);
                let longer = format!("{text}{}", String::from_utf8_lossy(&piece.text));
                if let Some(next) = next
                    && longer.chars().count() <= longest
                {
                    let mut tokens = tokens.clone();
                    tokens.push(piece.token);
                    pending.push((next, longer, tokens));
                }
            }
            for letter in LETTERS {
                let Some(ids) = &case.bytes else { break };
                let longer = format!("{text}{letter}");
                if !state.character.is_empty() || longer.chars().count() > longest {
                    break;
                }
                let mut tokens = tokens.clone();
                let next = letter.bytes().try_fold(state.clone(), |state, byte| {
                    tokens.push(ids[usize::from(byte)]);
                    model.step(&state, ids[usize::from(byte)], false)
                });
                pending.extend(next.map(|next| (next, longer, tokens)));
            }
        }
        sequences += found.len();
        assert!(found == expected, "{:?}", case.pieces);
    }
    assert!(sequences > 300_000 && rounded > 1_000, "{sequences} {rounded}");
    assert!(kept[0].min(kept[1]) > 1_000, "{kept:?}");
    assert!(led[0].min(led[1]) > 10_000, "{led:?}");
}

#[test]
fn a_longer_last_token_wins_a_tie() {
    let piece = |text: &str, score: f64, token: u32| UnigramPiece {
        text: text.as_bytes().to_vec(),
        score,
        token,
        has_text: true,
    };
    let pieces = vec![piece("a", -1.0, 0), piece("b", -1.0, 1), piece("ab", -2.0, 2)];
    let model = UnigramModel::new(pieces, -12.0, ScoreArithmetic::Double, (None, true)).unwrap();
    let mut tokens = Vec::new();
    assert!(model.encode(b"aab", &mut tokens));
    assert_eq!(tokens, [0, 2]);
    let after = model.step(&OpenPieces::default(), 0, true).unwrap();
    assert_eq!(model.step(&after, 1, false), None);
}
