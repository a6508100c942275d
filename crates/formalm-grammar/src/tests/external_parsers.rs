//! External parsers against the reference: what they reject is rejected, and every member is
//! accepted.

use std::sync::Arc;

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, LazyDfa, Machine, ReadingHints, Renewal,
    Resource, ScratchCopies, StateId,
};

use super::sublanguages::embed_sublanguages;
use super::{PATTERNS, SeededRng, cases, grammar, texts, verdict};
use crate::tests::reference::SlowReference;
use crate::{Grammar, GrammarAutomaton, GrammarLimits, Lexing, SeparatedState};

/// A machine that reveals only what it rejects.
#[derive(Debug)]
struct OpaqueMachine(Arc<dyn Machine>);

impl LazyDfa for OpaqueMachine {
    fn start(&self) -> StateId {
        self.0.start()
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        self.0.step(state, byte)
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        self.0.is_accepting(state)
    }

    fn live_bytes(&self, _: StateId) -> Result<ByteSet, Error> {
        let mut all = ByteSet::default();
        (0..=255).for_each(|byte| all.insert(byte));
        Ok(all)
    }

    fn shortest_completion(&self, _: StateId) -> Result<Vec<u8>, Error> {
        panic!("nobody may ask for a member")
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

impl ReadingHints for OpaqueMachine {
    fn is_exact(&self) -> bool {
        false
    }
}

impl CompletionHints for OpaqueMachine {}

impl CompletionClasses for OpaqueMachine {}

impl ScratchCopies for OpaqueMachine {}

impl Renewal for OpaqueMachine {}

/// Returns the separated state after `text`, querying the parsers step by step.
fn walk_with_parsers(
    machine: &GrammarAutomaton,
    text: &[u8],
) -> Result<Option<SeparatedState>, Error> {
    let mut separated = machine.separated_state(machine.start())?;
    for &byte in text {
        let mut answers = Vec::new();
        for one in separated.external_states() {
            let asked = machine.sublanguage_machine(one.terminal).unwrap();
            answers.push(asked.step_with_acceptance(one.state, byte)?);
        }
        match machine.separated_step(&separated, byte, &answers)? {
            Some(next) => separated = next,
            None => return Ok(None),
        }
    }
    Ok(Some(separated))
}

/// Returns the number of members; `None` if undecided.
fn check(seed: u64, grammar: &mut Grammar, alphabet: &[u8]) -> Option<usize> {
    let plain = grammar.clone();
    let reference = SlowReference::new(&plain);
    for terminal in &mut grammar.terminals {
        if let Some(embedded) = &mut terminal.sublanguage {
            embedded.machine = Arc::new(OpaqueMachine(Arc::clone(&embedded.machine)));
        }
    }
    let all = texts(alphabet, 4);
    let members: Vec<&Vec<u8>> = all.iter().filter(|text| reference.accepts(text)).collect();
    let machine = match GrammarAutomaton::new(
        grammar,
        GrammarLimits { search: 300, ..GrammarLimits::default() },
    ) {
        Ok(machine) => machine,
        Err(Error::Limit { .. }) => return None,
        Err(error) => {
            let empty = matches!(&error, Error::Language { message, .. } if message.contains("the empty string"));
            assert!(empty || members.is_empty(), "seed {seed}: {error}");
            return Some(0);
        }
    };
    for text in &all {
        let (viable, member) = match verdict(&machine, text) {
            Ok(verdict) => verdict,
            Err(Error::Limit { resource: Resource::Readings, .. }) => return None,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        assert_eq!(member, members.contains(&text), "seed {seed}: {text:?} of {grammar:#?}");
        let begins = members.iter().any(|member| member.starts_with(text));
        assert!(viable || !begins, "seed {seed}: {text:?} of {grammar:#?}");
        match walk_with_parsers(&machine, text) {
            Ok(separated) => {
                assert_eq!(viable, separated.is_some(), "seed {seed}: {text:?} of {grammar:#?}")
            }
            Err(Error::Limit { .. }) => return None,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    Some(members.len())
}

#[test]
fn external_parsers_match_the_reference() {
    for lexing in [Lexing::Any, Lexing::Longest] {
        let (mut undecided, mut members, count) = (0, 0, cases(80, 4_000));
        for seed in 0..count {
            let mut random = SeededRng(seed);
            let mut grammar = grammar(&mut random, lexing, &PATTERNS, &["c", "c+", "bc", "ca?"]);
            embed_sublanguages(&mut random, &mut grammar);
            match check(seed, &mut grammar, b"abc") {
                Some(found) => members += found,
                None => undecided += 1,
            }
        }
        assert!(undecided * 10 <= count, "{undecided} grammars were not decided");
        assert!(members > 300, "{members}");
    }
}
