//! Lowering of right-hand sides with operators to plain productions.

use formalm_core::{Error, Resource};
use rustc_hash::FxHashMap;

use crate::grammar::{Grammar, RuleBody};
use crate::limits::check;

/// A production. Symbols below the number of terminals are terminals.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Production {
    pub(crate) left: u32,
    pub(crate) right: Vec<u32>,
}

/// Optional repetitions up to this count become a chain of symbols. Longer ones are halved, because
/// one state would get as many alternatives. Chosen, not measured.
const MAX_CHAIN: u32 = 64;
/// As [`MAX_CHAIN`] where each string must have a single derivation: such chains add no
/// alternatives to a state. Chosen, not measured.
const MAX_UNAMBIGUOUS_CHAIN: u32 = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RepeatCount {
    Star,
    Plus,
    Exactly(u32),
    AtMost(u32),
}

/// Productions under construction. Rule `r` is symbol `terminals + r`; helper symbols follow.
#[derive(Debug)]
pub(crate) struct LoweredRules {
    pub(crate) productions: Vec<Production>,
    /// Per production, the alternative of its rule.
    pub(crate) alternatives: Vec<u32>,
    alternative: u32,
    /// Per symbol after the terminals, the rule it belongs to.
    pub(crate) owners: Vec<u32>,
    owner: u32,
    /// `true` if each string of a helper symbol must have a single derivation.
    unambiguous: bool,
    pub(crate) symbols: u32,
    terminals: u32,
    helper_of_node: FxHashMap<RuleBody, u32>,
    helper_of_repeat: FxHashMap<(u32, RepeatCount), u32>,
    allowed: u64,
}

impl LoweredRules {
    /// Lowers a grammar. `nullable` marks the terminals that match the empty string. They become
    /// optional, because an empty lexeme is indistinguishable from none. Fails if there are more
    /// than `allowed` productions.
    pub(crate) fn new(
        grammar: &Grammar,
        nullable: &[bool],
        allowed: u64,
    ) -> Result<LoweredRules, Error> {
        LoweredRules::build(grammar, nullable, allowed, false)
    }

    /// Lowers a grammar for parse trees: no two derivations may coincide unless the grammar says
    /// so. Large counts are therefore split in a single way.
    pub(crate) fn for_trees(
        grammar: &Grammar,
        nullable: &[bool],
        allowed: u64,
    ) -> Result<LoweredRules, Error> {
        LoweredRules::build(grammar, nullable, allowed, true)
    }

    fn build(
        grammar: &Grammar,
        nullable: &[bool],
        allowed: u64,
        unambiguous: bool,
    ) -> Result<LoweredRules, Error> {
        let terminals = grammar.terminals.len() as u32;
        let mut lowered = LoweredRules {
            productions: Vec::new(),
            alternatives: Vec::new(),
            alternative: 0,
            owners: (0..grammar.rules.len() as u32).collect(),
            owner: 0,
            unambiguous,
            symbols: terminals + grammar.rules.len() as u32,
            terminals,
            helper_of_node: FxHashMap::default(),
            helper_of_repeat: FxHashMap::default(),
            allowed,
        };
        for (at, &nullable) in nullable.iter().enumerate() {
            if nullable {
                let helper = lowered.helper();
                lowered.add(helper, Vec::new())?;
                lowered.add(helper, vec![at as u32])?;
                lowered.helper_of_node.insert(RuleBody::Terminal(at), helper);
            }
        }
        for (at, rule) in grammar.rules.iter().enumerate() {
            lowered.owner = at as u32;
            let all = match &rule.body {
                RuleBody::Choice(list) => &list[..],
                one => std::slice::from_ref(one),
            };
            for (number, one) in (0..).zip(all) {
                lowered.alternative = number;
                lowered.alternatives(terminals + at as u32, one)?;
            }
        }
        Ok(lowered)
    }

    fn helper(&mut self) -> u32 {
        self.symbols += 1;
        self.owners.push(self.owner);
        self.symbols - 1
    }

    fn add(&mut self, left: u32, right: Vec<u32>) -> Result<(), Error> {
        self.productions.push(Production { left, right });
        self.alternatives.push(self.alternative);
        check(Resource::Terms, self.productions.len() as u64, self.allowed)
    }

    fn alternatives(&mut self, left: u32, node: &RuleBody) -> Result<(), Error> {
        match node {
            RuleBody::Choice(list) => list.iter().try_for_each(|one| self.alternatives(left, one)),
            RuleBody::Repeat(one, 0, Some(1)) => {
                self.add(left, Vec::new())?;
                self.alternatives(left, one)
            }
            _ => {
                let mut right = Vec::new();
                self.sequence(node, &mut right)?;
                self.add(left, right)
            }
        }
    }

    fn sequence(&mut self, node: &RuleBody, right: &mut Vec<u32>) -> Result<(), Error> {
        match node {
            RuleBody::Empty => {}
            RuleBody::Rule(at) => right.push(self.terminals + *at as u32),
            RuleBody::Terminal(at) => {
                right.push(self.helper_of_node.get(node).copied().unwrap_or(*at as u32));
            }
            RuleBody::Sequence(list) => {
                list.iter().try_for_each(|one| self.sequence(one, right))?
            }
            RuleBody::Repeat(one, min, max) if (*min, *max) != (0, Some(1)) => {
                self.repetition(one, (*min, *max), right)?;
            }
            RuleBody::Choice(_) | RuleBody::Repeat(..) => right.push(self.symbol(node)?),
        }
        Ok(())
    }

    /// Returns one symbol for a node; equal nodes share it.
    fn symbol(&mut self, node: &RuleBody) -> Result<u32, Error> {
        let mut right = Vec::new();
        if !matches!(node, RuleBody::Choice(_) | RuleBody::Repeat(_, 0, Some(1))) {
            self.sequence(node, &mut right)?;
            if let [one] = right[..] {
                return Ok(one);
            }
        }
        if let Some(&symbol) = self.helper_of_node.get(node) {
            return Ok(symbol);
        }
        let helper = self.helper();
        self.helper_of_node.insert(node.clone(), helper);
        if right.is_empty() {
            self.alternatives(helper, node)?;
        } else {
            self.add(helper, right)?;
        }
        Ok(helper)
    }

    fn repetition(
        &mut self,
        one: &RuleBody,
        (min, max): (u32, Option<u32>),
        right: &mut Vec<u32>,
    ) -> Result<(), Error> {
        if max == Some(0) {
            return Ok(());
        }
        let one = self.symbol(one)?;
        match (min, max) {
            (0, None) => right.push(self.repeat(one, RepeatCount::Star)?),
            (min, None) => {
                right.extend(self.exactly(one, min - 1)?);
                right.push(self.repeat(one, RepeatCount::Plus)?);
            }
            (min, Some(max)) => {
                right.extend(self.exactly(one, min)?);
                if max > min {
                    right.push(self.repeat(one, RepeatCount::AtMost(max - min))?);
                }
            }
        }
        Ok(())
    }

    fn exactly(&mut self, one: u32, repeat: u32) -> Result<Option<u32>, Error> {
        match repeat {
            0 => Ok(None),
            1 => Ok(Some(one)),
            _ => Ok(Some(self.repeat(one, RepeatCount::Exactly(repeat))?)),
        }
    }

    /// Returns the helper symbol of a repetition. Left recursion keeps the stack flat; large counts
    /// are halved.
    fn repeat(&mut self, one: u32, repeat: RepeatCount) -> Result<u32, Error> {
        if let Some(&symbol) = self.helper_of_repeat.get(&(one, repeat)) {
            return Ok(symbol);
        }
        let helper = self.helper();
        self.helper_of_repeat.insert((one, repeat), helper);
        match repeat {
            RepeatCount::Star => {
                self.add(helper, Vec::new())?;
                self.add(helper, vec![helper, one])?;
            }
            RepeatCount::Plus => {
                self.add(helper, vec![one])?;
                self.add(helper, vec![helper, one])?;
            }
            RepeatCount::Exactly(repeat) => {
                let halves =
                    [self.exactly(one, repeat / 2)?, self.exactly(one, repeat - repeat / 2)?];
                self.add(helper, halves.into_iter().flatten().collect())?;
            }
            RepeatCount::AtMost(1) => {
                self.add(helper, Vec::new())?;
                self.add(helper, vec![one])?;
            }
            // The rest comes last, so that no decision is made before it is needed.
            RepeatCount::AtMost(repeat) if self.unambiguous && repeat <= MAX_UNAMBIGUOUS_CHAIN => {
                let fewer = self.repeat(one, RepeatCount::AtMost(repeat - 1))?;
                self.add(helper, Vec::new())?;
                self.add(helper, vec![one, fewer])?;
            }
            RepeatCount::AtMost(repeat) if repeat <= MAX_CHAIN => {
                let fewer = self.repeat(one, RepeatCount::AtMost(repeat - 1))?;
                self.add(helper, Vec::new())?;
                self.add(helper, vec![fewer, one])?;
            }
            // Either fewer than half of them, or half of them and up to as many again.
            RepeatCount::AtMost(repeat) if self.unambiguous => {
                let half = repeat.div_ceil(2);
                let fewer = self.repeat(one, RepeatCount::AtMost(half - 1))?;
                let rest = self.repeat(one, RepeatCount::AtMost(repeat - half))?;
                let half = self.exactly(one, half)?;
                self.add(helper, vec![fewer])?;
                self.add(helper, half.into_iter().chain([rest]).collect())?;
            }
            RepeatCount::AtMost(repeat) => {
                let half = self.repeat(one, RepeatCount::AtMost(repeat / 2))?;
                let rest = self.repeat(one, RepeatCount::AtMost(repeat - repeat / 2))?;
                self.add(helper, vec![half, rest])?;
            }
        }
        Ok(helper)
    }
}
