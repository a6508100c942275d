//! Keywords: strings that a pattern matches too, as `if` is matched by a name.

use formalm_automata::{Automaton, AutomatonLimits, LEXEME_END};
use formalm_core::{Error, LazyDfa, Resource};
use rustc_hash::FxHashMap;

use crate::grammar::LexemeReplacement;
use crate::limits::check;
use crate::notation::terminal_order::RankedTerminal;

/// Maximum steps, and the steps charged per pattern and per keyword it matches. Chosen, not
/// measured.
const MAX_STEPS: u64 = 10_000_000;
const STEPS_PER_PATTERN: u64 = 50;
const STEPS_PER_MATCH: u64 = 25;

/// Strings of one priority with their terminals, sorted.
type KeywordList<'a> = Vec<(&'a [u8], usize)>;

/// Returns the strings that patterns of equal priority match. Such a string is not read by itself,
/// unless it ignores case and the pattern does not.
pub(in crate::notation) fn find_replacements(
    ranked: &[RankedTerminal],
) -> Result<Vec<LexemeReplacement>, Error> {
    let mut by_priority: FxHashMap<i64, KeywordList<'_>> = FxHashMap::default();
    for (at, one) in ranked.iter().enumerate() {
        if let Some(text) = &one.kind.text {
            by_priority.entry(one.kind.priority).or_default().push((text.as_bytes(), at));
        }
    }
    by_priority.values_mut().for_each(|keywords| keywords.sort_unstable());
    let (mut list, mut steps) = (Vec::new(), 0);
    for (pattern, one) in ranked.iter().enumerate().filter(|(_, one)| one.kind.text.is_none()) {
        let Some(keywords) = by_priority.get(&one.kind.priority) else { continue };
        steps += STEPS_PER_PATTERN;
        let automaton = match Automaton::new(&one.terminal.language, AutomatonLimits::default()) {
            Ok(automaton) => automaton,
            Err(Error::Language { .. }) => continue,
            Err(limit) => return Err(limit),
        };
        let edge: &[u8] = if one.terminal.language.is_lexeme() { &[LEXEME_END] } else { &[] };
        let mut matched = matched_keywords(&automaton, keywords, edge, &mut steps)?;
        matched.sort_unstable();
        for text in matched {
            let only = one.kind.pattern_lengths.ignores_case
                || !ranked[text].kind.pattern_lengths.ignores_case;
            list.push(LexemeReplacement { pattern, text, only });
        }
    }
    Ok(list)
}

/// Returns the keywords that an automaton matches. Groups with a rejected common prefix are
/// skipped.
fn matched_keywords(
    automaton: &Automaton,
    keywords: &KeywordList<'_>,
    edge: &[u8],
    steps: &mut u64,
) -> Result<Vec<usize>, Error> {
    let (mut found, mut at) = (Vec::new(), 0);
    // States after each prefix of the last keyword.
    let (mut states, mut last): (Vec<_>, &[u8]) = (vec![automaton.start()], &[]);
    while at < keywords.len() {
        let (text, number) = keywords[at];
        let shared = text.iter().zip(last).take_while(|(one, other)| one == other).count();
        states.truncate(shared + 1);
        last = text;
        while states.len() <= text.len() {
            *steps += 1;
            check(Resource::Steps, *steps, MAX_STEPS)?;
            let (state, byte) = (states[states.len() - 1], text[states.len() - 1]);
            let Some(next) = automaton.step(state, byte)? else { break };
            states.push(next);
        }
        if states.len() <= text.len() {
            let dead = &text[..states.len()];
            at += keywords[at..].partition_point(|one| one.0.starts_with(dead));
            continue;
        }
        let read = automaton.walk(states[text.len()], edge)?;
        if read.is_ok_and(|state| automaton.is_accepting(state)) {
            *steps += STEPS_PER_MATCH;
            found.push(number);
        }
        at += 1;
    }
    Ok(found)
}
