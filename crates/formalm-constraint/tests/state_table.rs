//! Property test: the states of a table against matchers that read the same tokens and bytes.

use std::sync::Arc;

use formalm_constraint::{Constraint, Matcher, STATE_TABLE_LIMIT, StateTable};
use formalm_core::{Error, InterruptCheck, Resource};
use formalm_grammar::{GrammarAutomaton, GrammarLimits, GrammarMaskClasses, Lexing, Syntax, parse};
use formalm_vocabulary::Vocabulary;
use proptest::prelude::*;

const LISTS: &str = r#"
start: value
value: "[" [value ("," value)*] "]" | NUMBER
NUMBER: /[0-9]+/
%ignore " "
"#;
const TOKENS: [&[u8]; 8] = [b"[", b"]", b",", b"1", b"12", b"],[", b" ", b"1,"];

fn constraint(replace_every: u32) -> Arc<Constraint<GrammarMaskClasses>> {
    let grammar = parse(LISTS, Syntax::Lark, Some(Lexing::Longest), None).expect("a grammar");
    let automaton =
        Arc::new(GrammarAutomaton::new(&grammar, GrammarLimits::default()).expect("a grammar"));
    let mut tokens: Vec<Option<Vec<u8>>> = TOKENS.iter().map(|one| Some(one.to_vec())).collect();
    tokens.push(None);
    let vocabulary = Arc::new(Vocabulary::from_tokens(tokens, vec![8]).expect("a vocabulary"));
    let keys = GrammarMaskClasses::new(automaton);
    Arc::new(Constraint::over(keys, vocabulary, 1 << 20).replacing_every(replace_every))
}

proptest! {
    /// Each step extends an earlier state, by a token or by a byte.
    #[test]
    fn states_are_those_of_matchers(
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0u32..12), 1..40),
        replace_every in prop_oneof![Just(0u32), Just(2)],
    ) {
        let constraint = constraint(replace_every);
        let mut table = StateTable::new(STATE_TABLE_LIMIT);
        let root = table.add_root(Matcher::new(Arc::clone(&constraint)));
        let mut known = vec![(root.expect("a state"), Matcher::new(constraint))];
        for (from, step) in steps {
            let (state, matcher) = &known[from.index(known.len())];
            let mut matcher = matcher.clone();
            let (next, read) = if step < 8 {
                (table.step(*state, step), matcher.advance(step))
            } else {
                let byte = b"[],1"[step as usize - 8];
                let mut go_on = || true;
                let poll = &mut InterruptCheck::new(&mut go_on);
                (table.step_byte(*state, byte), matcher.advance_inside(&[byte], poll))
            };
            prop_assert_eq!(next.is_ok(), read.is_ok());
            let Ok(next) = next else { continue };
            let (mut mine, mut expected) = ([0u32], [0u32]);
            prop_assert_eq!(table.fill(next, &mut mine), Ok(()));
            prop_assert_eq!(matcher.fill(&mut expected), Ok(()));
            prop_assert_eq!(mine, expected);
            prop_assert_eq!(Ok(table.is_accepting(next)), matcher.is_accepting());
            prop_assert_eq!(table.is_finished(next), matcher.is_finished());
            known.push((next, matcher));
        }
    }
}

#[test]
fn a_table_is_limited() {
    let mut table = StateTable::new(1);
    let root = table.add_root(Matcher::new(constraint(0))).expect("a state");
    let refused = table.step(root, 0).err();
    let expected = Error::Limit { resource: Resource::States, needed: 2, allowed: 1 };
    assert_eq!(refused, Some(expected.into()));
}
