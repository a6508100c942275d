//! The product of the boundary automaton's DFA and the rules of sections.

use formalm_core::Interner;

use super::boundary_automaton::{Boundary, DEAD, MAX_STATES};
use super::pretokenizer_dfa::{SplitterDfa, trim};
use crate::Error;
use crate::normalization::{SectionPlace, SectionRules, SectionState};

/// The boundaries in the order of the table.
const ORDER: [Boundary; 3] = [Boundary::Inside, Boundary::Pretoken, Boundary::Added];

/// Returns the DFA of the annotated texts that break no rule, given one character of each class, and
/// its state before a text that an inserted space begins.
///
/// # Errors
///
/// The DFA would have too many states.
pub(in crate::bpe) fn with_section_rules(
    dfa: SplitterDfa,
    rules: &SectionRules,
    representatives: &[char],
) -> Result<(SplitterDfa, u32), Error> {
    if rules.is_empty() {
        return Ok((dfa, 0));
    }
    let classes = representatives.len();
    let mut states: Interner<(u32, SectionState)> = Interner::from_iter([(0, rules.start())]);
    let text_start = states.intern((0, rules.text_start()));
    let mut table = Vec::new();
    let mut at = 0u32;
    while (at as usize) < states.len() {
        let (from, section) = states[at];
        for boundary in ORDER {
            for (class, &c) in representatives.iter().enumerate() {
                let next = dfa.table[(from as usize * 3 + boundary as usize) * classes + class];
                if next == DEAD {
                    table.push(DEAD);
                    continue;
                }
                let place = match (dfa.added[next as usize], boundary) {
                    (false, _) => SectionPlace::Section,
                    (true, Boundary::Added) => SectionPlace::AddedStart,
                    (true, _) => SectionPlace::Added,
                };
                let section = rules.step(section, c, place);
                table.push(section.map_or(DEAD, |section| states.intern((next, section))));
            }
        }
        if states.len() > MAX_STATES {
            return Err(Error::new(format!(
                "the pre-tokenizer and the normalizer together need more than {MAX_STATES} states"
            ))
            .at("normalizer"));
        }
        at += 1;
    }
    let ends =
        states.iter().map(|&(state, section)| dfa.ends[state as usize] && rules.may_end(section));
    let ends: Vec<bool> = ends.collect();
    let added = states.iter().map(|&(state, _)| dfa.added[state as usize]).collect();
    trim(&mut table, &ends, 3 * classes);
    Ok((SplitterDfa { table, ends, added }, text_start))
}
