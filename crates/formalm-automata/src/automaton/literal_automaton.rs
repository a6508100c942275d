//! Automata of literals: words and sequences of character sets, such as keywords, with no
//! derivatives at all.
//!
//! The acyclic automaton is the whole machine. The automata of many literals share one arena, which
//! never grows.

use std::sync::Arc;

use formalm_core::{
    ByteSet, CharSet, CompletionClasses, CompletionHints, Error, LazyDfa, ReadingHints, Renewal,
    ScratchCopies, StateId,
};

use crate::language_expression::Expression;
use crate::terms::dawg::{DawgId, Dawgs, END};

/// Maximum total length of listed strings, in bytes. Longer lists get an automaton with limits.
/// Chosen, not measured.
const MAX_LITERAL_BYTES: usize = 1 << 20;

/// The automaton of one word, or of a list of strings.
#[derive(Clone, Debug)]
pub struct LiteralAutomaton {
    dags: Arc<Dawgs>,
    start: DawgId,
    class_starts: Box<[u8]>,
    /// Its share of the memory of the arena, in bytes.
    bytes: usize,
}

/// Returns the automata of the languages that are literals; `None` for others.
pub fn literal_automata<'a>(
    languages: impl Iterator<Item = &'a Expression>,
) -> Vec<Option<LiteralAutomaton>> {
    let mut dags = Dawgs::new();
    let starts: Vec<Option<DawgId>> = languages.map(|one| literal_node(one, &mut dags)).collect();
    let count = starts.iter().flatten().count().max(1);
    let (bytes, dags) = (dags.memory_bytes() / count, Arc::new(dags));
    let machine = |start: DawgId| {
        let (dags, class_starts) = (Arc::clone(&dags), dags.class_starts(start));
        LiteralAutomaton { dags, start, class_starts, bytes }
    };
    starts.into_iter().map(|start| start.map(machine)).collect()
}

/// Returns the node of a language if it is a literal.
fn literal_node(language: &Expression, dags: &mut Dawgs) -> Option<DawgId> {
    if let Some(texts) = language.as_literals() {
        if texts.iter().map(Vec::len).sum::<usize>() > MAX_LITERAL_BYTES {
            return None;
        }
        let mut texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        texts.sort_unstable();
        texts.dedup();
        return dags.words(&texts);
    }
    let characters: Vec<&CharSet> = language.as_class_sequence()?;
    characters.into_iter().rev().try_fold(END, |end, set| dags.class_before(set, end))
}

impl LiteralAutomaton {
    /// Returns the first byte of each byte class. Bytes of one class are never distinguished.
    pub fn class_starts(&self) -> &[u8] {
        &self.class_starts
    }

    /// Returns `true` if the input read so far is a member.
    #[inline]
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.dags.is_accepting(DawgId(state.number()))
    }
}

impl LazyDfa for LiteralAutomaton {
    fn start(&self) -> StateId {
        StateId::from_number(self.start.0)
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        Ok(self.dags.step(DawgId(state.number()), byte).map(|next| StateId::from_number(next.0)))
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(LiteralAutomaton::is_accepting(self, state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        let mut bytes = ByteSet::default();
        for &(low, high, _) in self.dags.edges(DawgId(state.number())) {
            bytes.insert_range(low, high);
        }
        Ok(bytes)
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        self.dags.write_shortest_word(DawgId(state.number()), &mut text);
        Ok(text)
    }

    fn memory_bytes(&self) -> usize {
        self.bytes + self.class_starts.len()
    }
}

impl ReadingHints for LiteralAutomaton {}

impl CompletionHints for LiteralAutomaton {}

impl CompletionClasses for LiteralAutomaton {}

impl ScratchCopies for LiteralAutomaton {}

impl Renewal for LiteralAutomaton {}

#[cfg(test)]
mod tests {
    use formalm_regex::{PatternDialect, PatternFlags, parse};

    use super::*;
    use crate::{Automaton, AutomatonLimits};

    fn pattern(text: &str, ignore_case: bool) -> Expression {
        let flags = PatternFlags { ignore_case, ..PatternFlags::default() };
        Expression::pattern(parse(text, PatternDialect::Python, flags).unwrap())
    }

    /// Compares both automata on every string that they read up to a length.
    fn check(word: &LiteralAutomaton, automaton: &Automaton) {
        assert!(
            word.class_starts().iter().all(|one| automaton.class_starts().contains(one)),
            "{word:?}"
        );
        let mut open = vec![(word.start(), automaton.start())];
        while let Some((one, other)) = open.pop() {
            assert_eq!(word.is_accepting(one), automaton.is_accepting(other));
            assert_eq!(word.live_bytes(one).unwrap(), automaton.live_bytes(other).unwrap());
            assert_eq!(
                word.shortest_completion(one).unwrap(),
                automaton.shortest_completion(other).unwrap()
            );
            for byte in 0..=255u8 {
                let next = (word.step(one, byte).unwrap(), automaton.step(other, byte).unwrap());
                match next {
                    (Some(one), Some(other)) => open.push((one, other)),
                    (None, None) => {}
                    other => panic!("{byte}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn literal_automata_agree_with_derivative_automata() {
        let texts = [&b"ab"[..], b"abc", b"\xff", b"ab"].map(<[u8]>::to_vec).to_vec();
        let all = [
            pattern("a", false),
            pattern("s", true),
            pattern("kiss", true),
            pattern("selse", true),
            pattern("(a)[b-dé](?:[𝄞x])", false),
            pattern("", false),
            Expression::literals(vec![b"else".to_vec()]),
            Expression::literals(texts),
        ];
        let found = literal_automata(all.iter());
        for (language, word) in all.iter().zip(&found) {
            let automaton = Automaton::new(language, AutomatonLimits::default()).unwrap();
            check(word.as_ref().unwrap(), &automaton);
        }
    }

    #[test]
    fn other_languages_have_no_literal_automaton() {
        let others = ["a*", "a|bc", "(?=a)b", "[^\\s\\S]", "a[^\\s\\S]", "a?", "(?>a)"];
        let all: Vec<Expression> = others.iter().map(|one| pattern(one, false)).collect();
        assert!(literal_automata(all.iter()).iter().all(Option::is_none));
        assert!(literal_automata([Expression::literals(Vec::new())].iter())[0].is_none());
        let long = Expression::literals(vec![vec![b'a'; MAX_LITERAL_BYTES], vec![b'b']]);
        assert!(literal_automata([long].iter())[0].is_none());
        let parsed = parse("a", PatternDialect::Python, PatternFlags::default()).unwrap();
        assert!(literal_automata([Expression::lexeme(parsed)].iter())[0].is_none());
    }
}
