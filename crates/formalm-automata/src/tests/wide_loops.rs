//! The parts of the non-ASCII characters over which classes loop, compared with reading each of
//! their characters.

use std::sync::Arc;

use formalm_core::{LazyDfa, StateId, WIDE_PARTS, WideParts, wide_parts};
use formalm_regex::{PatternDialect, PatternFlags, parse};

use crate::{Automaton, AutomatonLimits, BoundedQuotient, Expression};

/// The longest text that classes tell apart, in bytes.
const MAX_BYTES: usize = 24;

const PATTERNS: [&str; 16] = [
    r"(?:\S+\s+){0,99}\S+",
    r"(?:\S+\s+){0,2}\S+",
    r"\w+( \w+){0,30}\.",
    r"[^é]*",
    r"[^é]*é?",
    r"[^x]*(?:é|[\u3000-\u3002])",
    r"\S*\s*[^0-9]*",
    r"\w*(?:[^\w]|é)x",
    r"[\w.]*|[^a]*b",
    r"[^a]*b|\S*",
    r".*\u00a0",
    r"\s*\S",
    r"[^\u0660-\u0669]*\d*",
    r"\D*\d{0,3}\D*",
    r"(?:[^ab]|a[^b])*",
    r"[^\ufeff]*z",
];

const TEXTS: [&str; 8] = ["", "a", "ab", "a b", "é", "a\u{a0}é", "1", "x."];

fn read(quotient: &BoundedQuotient, from: StateId, bytes: &[u8]) -> Option<StateId> {
    bytes.iter().try_fold(from, |class, &byte| quotient.step(class, byte).unwrap())
}

#[test]
fn every_character_of_a_part_leads_back_to_its_class() {
    let mut found = [0; WIDE_PARTS];
    for dialect in [PatternDialect::Python, PatternDialect::Ecma] {
        for pattern in PATTERNS {
            let node = parse(pattern, dialect, PatternFlags::default()).unwrap();
            let expression = Expression::pattern(node);
            let automaton = Automaton::new(&expression, AutomatonLimits::default()).unwrap();
            let start = automaton.start();
            let quotient = BoundedQuotient::new(Arc::new(automaton), MAX_BYTES);
            let start = quotient.class_of(start).unwrap();
            for text in TEXTS {
                let Some(class) = read(&quotient, start, text.as_bytes()) else { continue };
                let loops = quotient.wide_loops(class);
                for (part, found) in found.iter_mut().enumerate() {
                    if !WideParts::one(part).is_within(loops) {
                        continue;
                    }
                    *found += 1;
                    for &(low, high) in wide_parts()[part].ranges() {
                        let inner = (low..=high).skip(1).step_by(13);
                        for character in [low, high].into_iter().chain(inner) {
                            let mut bytes = [0; 4];
                            let bytes = character.encode_utf8(&mut bytes).as_bytes();
                            let next = read(&quotient, class, bytes);
                            assert_eq!(
                                next,
                                Some(class),
                                "{pattern} after {text:?}: {character:?}"
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(found.iter().all(|&count| count > 5), "{found:?}");
}
