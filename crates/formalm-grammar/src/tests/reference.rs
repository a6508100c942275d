//! The reference: membership and viability by a slow, direct definition, the oracle of the tests.
//!
//! It shares nothing with the automaton except the automata of single terminals. The spans that a
//! node derives, and whether an input is a prefix of one, are least fixed points over positions.

use std::cell::RefCell;
use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits};
use formalm_core::Machine;
use rustc_hash::FxHashMap;

use crate::grammar::{Grammar, Lexing, RuleBody, Terminal};

/// An input: a string split into lexemes in any way, or a sequence of terminals.
trait Input {
    fn len(&self) -> usize;
    /// Returns the ends of a terminal that starts at a position, including ignored lexemes before
    /// it.
    fn ends(&self, terminal: usize, from: usize) -> Vec<usize>;
    /// Returns `true` if the rest of the input is a prefix of such lexemes.
    fn begins(&self, terminal: usize, from: usize) -> bool;
}

/// Per rule and position: the ends of what it derives from there, and whether it can extend beyond
/// the input.
struct DerivationFacts {
    ends: Vec<Vec<Vec<bool>>>,
    begins: Vec<Vec<bool>>,
    productive: Vec<bool>,
}

impl DerivationFacts {
    fn new(grammar: &Grammar, input: &dyn Input, barren: &[bool]) -> DerivationFacts {
        let (rules, places) = (grammar.rules.len(), input.len() + 1);
        let mut facts = DerivationFacts {
            ends: vec![vec![vec![false; places]; places]; rules],
            begins: vec![vec![false; places]; rules],
            productive: vec![false; rules],
        };
        let mut changed = true;
        while changed {
            changed = false;
            for (at, rule) in grammar.rules.iter().enumerate() {
                let productive = facts.is_productive(&rule.body, barren);
                changed |= productive != facts.productive[at];
                facts.productive[at] = productive;
                for from in 0..places {
                    let ends = facts.ends(&rule.body, &[from], input);
                    for end in ends {
                        changed |= !std::mem::replace(&mut facts.ends[at][from][end], true);
                    }
                }
            }
        }
        changed = true;
        while changed {
            changed = false;
            for (at, rule) in grammar.rules.iter().enumerate() {
                for from in 0..places {
                    let begins = facts.begins(&rule.body, from, input, barren);
                    changed |= begins != facts.begins[at][from];
                    facts.begins[at][from] = begins;
                }
            }
        }
        facts
    }

    fn is_productive(&self, node: &RuleBody, barren: &[bool]) -> bool {
        match node {
            RuleBody::Empty => true,
            RuleBody::Terminal(at) => !barren[*at],
            RuleBody::Rule(at) => self.productive[*at],
            RuleBody::Sequence(list) => list.iter().all(|one| self.is_productive(one, barren)),
            RuleBody::Choice(list) => list.iter().any(|one| self.is_productive(one, barren)),
            RuleBody::Repeat(one, min, _) => *min == 0 || self.is_productive(one, barren),
        }
    }

    fn ends(&self, node: &RuleBody, from: &[usize], input: &dyn Input) -> Vec<usize> {
        let mut ends: Vec<usize> = match node {
            RuleBody::Empty => from.to_vec(),
            RuleBody::Terminal(at) => from.iter().flat_map(|&one| input.ends(*at, one)).collect(),
            RuleBody::Rule(at) => {
                let reached = |from: usize, end: usize| self.ends[*at][from][end];
                let places = 0..=input.len();
                places.filter(|&end| from.iter().any(|&one| reached(one, end))).collect()
            }
            RuleBody::Sequence(list) => {
                list.iter().fold(from.to_vec(), |from, one| self.ends(one, &from, input))
            }
            RuleBody::Choice(list) => {
                list.iter().flat_map(|one| self.ends(one, from, input)).collect()
            }
            RuleBody::Repeat(one, min, max) => {
                let mut here = from.to_vec();
                let mut all = if *min == 0 { here.clone() } else { Vec::new() };
                let most = max.unwrap_or(*min + input.len() as u32 + 1);
                for count in 1..=most.min(min + input.len() as u32 + 1) {
                    here = self.ends(one, &here, input);
                    if count >= *min {
                        all.extend_from_slice(&here);
                    }
                }
                all
            }
        };
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Returns `true` if the rest of the input is a prefix of what a node derives.
    fn begins(&self, node: &RuleBody, from: usize, input: &dyn Input, barren: &[bool]) -> bool {
        let productive = |node: &RuleBody| self.is_productive(node, barren);
        match node {
            RuleBody::Empty => from == input.len(),
            RuleBody::Terminal(at) => !barren[*at] && input.begins(*at, from),
            RuleBody::Rule(at) => self.begins[*at][from],
            RuleBody::Sequence(list) => {
                let mut here = vec![from];
                for (at, one) in list.iter().enumerate() {
                    let rest = list[at + 1..].iter().all(productive);
                    let begins = |&from: &usize| self.begins(one, from, input, barren);
                    if rest && here.iter().any(begins) {
                        return true;
                    }
                    here = self.ends(one, &here, input);
                }
                here.contains(&input.len())
            }
            RuleBody::Choice(list) => list.iter().any(|one| self.begins(one, from, input, barren)),
            RuleBody::Repeat(one, min, max) => {
                let most = max.unwrap_or(u32::MAX).min(min + input.len() as u32 + 1);
                let mut here = vec![from];
                if *min == 0 && from == input.len() {
                    return true;
                }
                for _ in 0..most {
                    let begins = |&from: &usize| self.begins(one, from, input, barren);
                    // Whatever `one` derives can be repeated as often as required.
                    if here.iter().any(begins) {
                        return true;
                    }
                    here = self.ends(one, &here, input);
                }
                self.ends(node, &[from], input).contains(&input.len())
            }
        }
    }
}

/// The slow definition of a grammar.
pub(crate) struct SlowReference<'a> {
    grammar: &'a Grammar,
    terminals: Vec<Option<Arc<dyn Machine>>>,
    barren: Vec<bool>,
    /// Cached verdicts on sequences of terminals: prefix of a sentence, and sentence.
    sentences: RefCell<FxHashMap<Vec<usize>, (bool, bool)>>,
}

struct TextInput<'a> {
    reference: &'a SlowReference<'a>,
    text: &'a [u8],
}

impl TextInput<'_> {
    /// Returns the positions reached over ignored lexemes.
    fn skipped(&self, from: usize) -> Vec<usize> {
        let mut places = vec![from];
        let mut at = 0;
        while at < places.len() {
            for &ignored in &self.reference.grammar.ignored {
                for end in places[at]..=self.text.len() {
                    let matches = self.reference.matches(ignored, &self.text[places[at]..end]);
                    if matches && !places.contains(&end) {
                        places.push(end);
                    }
                }
            }
            at += 1;
        }
        places
    }

    fn begins_ignored(&self, from: usize) -> bool {
        let ignored = &self.reference.grammar.ignored;
        ignored.iter().any(|&one| self.reference.begins(one, &self.text[from..]))
    }
}

impl Input for TextInput<'_> {
    fn len(&self) -> usize {
        self.text.len()
    }

    fn ends(&self, terminal: usize, from: usize) -> Vec<usize> {
        let mut ends = Vec::new();
        for from in self.skipped(from) {
            let all = from..=self.text.len();
            ends.extend(all.filter(|&end| self.reference.matches(terminal, &self.text[from..end])));
        }
        ends
    }

    fn begins(&self, terminal: usize, from: usize) -> bool {
        self.skipped(from).into_iter().any(|from| {
            self.reference.begins(terminal, &self.text[from..]) || self.begins_ignored(from)
        })
    }
}

/// A sequence of terminals.
struct TerminalInput<'a>(&'a SlowReference<'a>, &'a [usize]);

impl Input for TerminalInput<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }

    fn ends(&self, terminal: usize, from: usize) -> Vec<usize> {
        // An empty member leaves no trace.
        let empty = self.0.is_sublanguage(terminal) && self.0.matches(terminal, b"");
        let here = empty.then_some(from);
        let next = (self.1.get(from) == Some(&terminal)).then_some(from + 1);
        here.into_iter().chain(next).collect()
    }

    fn begins(&self, terminal: usize, from: usize) -> bool {
        let left = &self.1[from..];
        left.is_empty() || left == [terminal]
    }
}

impl<'a> SlowReference<'a> {
    pub(crate) fn new(grammar: &'a Grammar) -> SlowReference<'a> {
        let machine = |one: &Terminal| -> Option<Arc<dyn Machine>> {
            match &one.sublanguage {
                Some(embedded) => Some(Arc::clone(&embedded.machine)),
                None => {
                    Some(Arc::new(Automaton::new(&one.language, AutomatonLimits::default()).ok()?))
                }
            }
        };
        let terminals: Vec<_> = grammar.terminals.iter().map(machine).collect();
        // No sentence contains a terminal that never reaches the parser.
        let unread = |at: usize| grammar.lexing != Lexing::Any && grammar.ignored.contains(&at);
        let all = terminals.iter().enumerate();
        let barren = all.map(|(at, one)| one.is_none() || unread(at)).collect();
        SlowReference { grammar, terminals, barren, sentences: RefCell::default() }
    }

    fn matches(&self, terminal: usize, text: &[u8]) -> bool {
        let Some(automaton) = &self.terminals[terminal] else { return false };
        automaton.accepts_from(automaton.start(), text).expect("within limits")
    }

    fn begins(&self, terminal: usize, text: &[u8]) -> bool {
        let Some(automaton) = &self.terminals[terminal] else { return false };
        automaton.walk(automaton.start(), text).expect("within limits").is_ok()
    }

    fn facts(&self, input: &dyn Input) -> DerivationFacts {
        DerivationFacts::new(self.grammar, input, &self.barren)
    }

    pub(crate) fn accepts(&self, text: &[u8]) -> bool {
        match self.grammar.lexing {
            Lexing::Any => {
                let input = TextInput { reference: self, text };
                let facts = self.facts(&input);
                let ends = 0..=text.len();
                let reached = |end: &usize| facts.ends[self.grammar.start][0][*end];
                ends.filter(reached).any(|end| input.skipped(end).contains(&text.len()))
            }
            Lexing::Longest | Lexing::First => {
                self.lexemes(text).iter().any(|lexemes| self.sentence(lexemes).1)
            }
        }
    }

    /// Returns `true` if some member starts with `text`, with every split into lexemes allowed.
    pub(crate) fn is_viable(&self, text: &[u8]) -> bool {
        let input = TextInput { reference: self, text };
        let facts = self.facts(&input);
        let ends = 0..=text.len();
        let reached = |end: &usize| facts.ends[self.grammar.start][0][*end];
        let trailing = |end: usize| {
            let places = input.skipped(end);
            places.into_iter().any(|at| at == text.len() || input.begins_ignored(at))
        };
        facts.begins[self.grammar.start][0] || ends.filter(reached).any(trailing)
    }

    /// Returns whether a sequence of terminals is a prefix of a sentence, and whether it is one.
    fn sentence(&self, terminals: &[usize]) -> (bool, bool) {
        if let Some(&known) = self.sentences.borrow().get(terminals) {
            return known;
        }
        let facts = self.facts(&TerminalInput(self, terminals));
        let start = self.grammar.start;
        let found = (facts.begins[start][0], facts.ends[start][0][terminals.len()]);
        self.sentences.borrow_mut().insert(terminals.to_vec(), found);
        found
    }

    fn is_sublanguage(&self, terminal: usize) -> bool {
        self.grammar.terminals[terminal].sublanguage.is_some()
    }

    /// Returns the splits of an input into longest allowed lexemes, and members of sublanguages of
    /// any length.
    fn lexemes(&self, text: &[u8]) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        let mut open = vec![(0, Vec::new())];
        while let Some((from, lexemes)) = open.pop() {
            if from == text.len() {
                found.push(lexemes);
                continue;
            }
            let (embedded, context): (Vec<usize>, Vec<usize>) = (0..self.grammar.terminals.len())
                .filter(|terminal| {
                    let more = [&lexemes[..], &[*terminal]].concat();
                    self.grammar.ignored.contains(terminal) || self.sentence(&more).0
                })
                .partition(|&one| self.is_sublanguage(one));
            for (end, terminal) in (from + 1..=text.len())
                .flat_map(|end| embedded.iter().map(move |&terminal| (end, terminal)))
            {
                if self.matches(terminal, &text[from..end]) {
                    open.push((end, [&lexemes[..], &[terminal]].concat()));
                }
            }
            let longest = (from + 1..=text.len()).rev().find_map(|end| {
                let fits = |&&one: &&usize| self.matches(one, &text[from..end]);
                context.iter().find(fits).map(|&one| (end, one))
            });
            let Some((end, terminal)) = longest else { continue };
            let is_ignored = self.grammar.ignored.contains(&terminal);
            let own = (!is_ignored).then_some(terminal);
            open.push((end, lexemes.into_iter().chain(own).collect()));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
