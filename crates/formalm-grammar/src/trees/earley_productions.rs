//! Productions in the form the Earley chart reads, with their FIRST and FOLLOW sets.

use formalm_core::{ByteSet, Error, InterruptCheck, Resource};

use crate::limits::check;
use crate::normal_form::lowering::LoweredRules;

/// The symbol after the last one of a production.
pub(super) const END: u32 = u32::MAX;

/// Maximum number of lookahead kinds; beyond it there is no lookahead. Chosen, not measured.
const MAX_KINDS: usize = 4096;
/// Maximum size of all sets together, in 64-bit words. Chosen, not measured.
const MAX_SET_WORDS: usize = 1 << 24;

/// Counts the steps of one parse or count, and checks for interrupts.
pub(crate) struct StepBudget<'a, 'p> {
    spent: u64,
    allowed: u64,
    poll: &'a mut InterruptCheck<'p>,
}

impl<'a, 'p> StepBudget<'a, 'p> {
    pub(crate) fn new(allowed: u64, poll: &'a mut InterruptCheck<'p>) -> StepBudget<'a, 'p> {
        StepBudget { spent: 0, allowed, poll }
    }

    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.spent += steps as u64;
        check(Resource::Steps, self.spent, self.allowed)?;
        self.poll.tick(steps)
    }
}

/// Productions laid out as one sequence of dot positions.
#[derive(Debug)]
pub(crate) struct EarleyProductions {
    /// The symbol at each dot position; [`END`] after the last one of a production.
    pub(super) symbol: Vec<u32>,
    /// The left-hand side at each dot position.
    pub(super) left: Vec<u32>,
    /// The alternative of its rule at each dot position.
    pub(super) alternative: Vec<u32>,
    /// First dot positions of each symbol's productions, in source order.
    pub(super) firsts: Vec<Vec<u32>>,
    pub(super) terminals: u32,
    /// The augmented start symbol: the start rule and trailing ignored input.
    pub(super) goal: u32,
    /// The symbol of trailing ignored input.
    pub(super) trail: u32,
    sets: Option<FirstFollowSets>,
}

/// FIRST and FOLLOW sets over lookahead kinds: terminals if the lexemes are known, bytes otherwise.
/// The kind after all others is the end of input.
#[derive(Debug)]
struct FirstFollowSets {
    words: usize,
    /// Per dot position: FIRST of the rest of the production, and whether that is nullable.
    begins: Vec<u64>,
    empty: Vec<bool>,
    /// FOLLOW per symbol.
    follows: Vec<u64>,
}

impl EarleyProductions {
    /// Lays out productions. If the chart reads bytes, `first_bytes` holds the first bytes of each
    /// terminal and the ignored terminals.
    pub(crate) fn new(
        lowering: LoweredRules,
        terminals: u32,
        start: u32,
        first_bytes: Option<(&Vec<ByteSet>, &Vec<u32>)>,
    ) -> EarleyProductions {
        let (goal, trail) = (lowering.symbols, lowering.symbols + 1);
        let mut made = EarleyProductions {
            symbol: Vec::new(),
            left: Vec::new(),
            alternative: Vec::new(),
            firsts: vec![Vec::new(); trail as usize + 1],
            terminals,
            goal,
            trail,
            sets: None,
        };
        let rows = lowering.productions.iter().zip(&lowering.alternatives);
        for (one, &alternative) in rows {
            made.production(one.left, &one.right, alternative);
        }
        made.production(goal, &[start, trail], 0);
        made.sets = FirstFollowSets::new(&made, first_bytes);
        made
    }

    fn production(&mut self, left: u32, right: &[u32], alternative: u32) {
        self.firsts[left as usize].push(self.symbol.len() as u32);
        self.symbol.extend_from_slice(right);
        self.symbol.push(END);
        self.left.resize(self.symbol.len(), left);
        self.alternative.resize(self.symbol.len(), alternative);
    }

    pub(super) fn is_terminal(&self, symbol: u32) -> bool {
        symbol < self.terminals || symbol == self.trail
    }

    /// Returns the kind of the end of input.
    pub(super) fn end_kind(&self, is_free: bool) -> u32 {
        if is_free { 256 } else { self.terminals }
    }

    /// Returns the kinds that a symbol starts with, without the end of input, and whether it is
    /// nullable.
    pub(super) fn beginnings(&self, symbol: u32) -> Option<(Vec<usize>, bool)> {
        let sets = self.sets.as_ref()?;
        let firsts = &self.firsts[symbol as usize];
        let kinds = 0..(sets.words * 64) as u32;
        let has_it = |kind: &u32| {
            firsts.iter().any(|&first_sets| has(&sets.begins, sets.words, first_sets, *kind))
        };
        let empty = firsts.iter().any(|&first_sets| sets.empty[first_sets as usize]);
        Some((kinds.filter(has_it).map(|kind| kind as usize).collect(), empty))
    }

    /// Returns `true` if a production can continue from a dot position with this lookahead.
    #[inline]
    pub(super) fn begins(&self, position: u32, next: u32) -> bool {
        let Some(sets) = &self.sets else { return true };
        sets.empty[position as usize] || has(&sets.begins, sets.words, position, next)
    }

    /// Returns `true` if this lookahead may follow a symbol.
    #[inline]
    pub(crate) fn follows(&self, symbol: u32, next: u32) -> bool {
        let Some(sets) = &self.sets else { return true };
        has(&sets.follows, sets.words, symbol, next)
    }
}

#[inline]
fn has(sets: &[u64], words: usize, at: u32, kind: u32) -> bool {
    sets[at as usize * words + (kind as usize >> 6)] >> (kind & 63) & 1 != 0
}

fn insert(set: &mut [u64], kind: u32) {
    set[kind as usize >> 6] |= 1 << (kind & 63);
}

/// Adds a set to another one. Returns `true` if that changed it.
fn union_into(sets: &mut [u64], words: usize, into: u32, from: &[u64]) -> bool {
    let at = into as usize * words;
    let mut new = false;
    for (word, more) in sets[at..at + words].iter_mut().zip(from) {
        new |= more & !*word != 0;
        *word |= more;
    }
    new
}

impl FirstFollowSets {
    fn new(
        of: &EarleyProductions,
        first_bytes: Option<(&Vec<ByteSet>, &Vec<u32>)>,
    ) -> Option<FirstFollowSets> {
        let kinds = if first_bytes.is_some() { 257 } else { of.terminals as usize + 1 };
        let words = kinds.div_ceil(64);
        let symbols = of.firsts.len();
        if kinds > MAX_KINDS || words * (of.symbol.len() + 2 * symbols) > MAX_SET_WORDS {
            return None;
        }
        let (first_sets, empty) = FirstFollowSets::first_sets(of, first_bytes, words);
        let mut sets = FirstFollowSets {
            words,
            begins: vec![0; words * of.symbol.len()],
            empty: vec![false; of.symbol.len()],
            follows: vec![0; words * symbols],
        };
        // FIRST of the rest from each dot position, from the back.
        for position in (0..of.symbol.len()).rev() {
            let symbol = of.symbol[position];
            if symbol == END {
                sets.empty[position] = true;
                continue;
            }
            let own = first_sets[symbol as usize * words..][..words].to_vec();
            union_into(&mut sets.begins, words, position as u32, &own);
            if empty[symbol as usize] {
                let rest = sets.begins[(position + 1) * words..][..words].to_vec();
                union_into(&mut sets.begins, words, position as u32, &rest);
                sets.empty[position] = sets.empty[position + 1];
            }
        }
        sets.find_follows(of);
        Some(sets)
    }

    /// Returns FIRST of all symbols, and which symbols are nullable.
    fn first_sets(
        of: &EarleyProductions,
        first_bytes: Option<(&Vec<ByteSet>, &Vec<u32>)>,
        words: usize,
    ) -> (Vec<u64>, Vec<bool>) {
        let symbols = of.firsts.len();
        let mut first_sets = vec![0u64; words * symbols];
        let end = of.end_kind(first_bytes.is_some());
        insert(&mut first_sets[of.trail as usize * words..][..words], end);
        for terminal in 0..of.terminals {
            let set = &mut first_sets[terminal as usize * words..][..words];
            match first_bytes {
                None => insert(set, terminal),
                Some((bytes, _)) => {
                    bytes[terminal as usize].iter().for_each(|b| insert(set, b.into()))
                }
            }
        }
        // Ignored input may precede every lexeme and the end.
        if let Some((bytes, ignored)) = first_bytes {
            for symbol in (0..of.terminals).chain([of.trail]) {
                let set = &mut first_sets[symbol as usize * words..][..words];
                for &one in ignored {
                    bytes[one as usize].iter().for_each(|b| insert(set, b.into()));
                }
            }
        }
        let mut empty = vec![false; symbols];
        let mut uses: Vec<Vec<u32>> = vec![Vec::new(); symbols];
        let mut begin = 0u32;
        for (position, &symbol) in of.symbol.iter().enumerate() {
            match symbol {
                END => begin = position as u32 + 1,
                _ => uses[symbol as usize].push(begin),
            }
        }
        let mut queue: Vec<u32> = of.firsts.iter().flatten().copied().collect();
        while let Some(begin) = queue.pop() {
            let left = of.left[begin as usize];
            let mut position = begin as usize;
            let mut changed = false;
            loop {
                let symbol = of.symbol[position];
                if symbol == END {
                    changed |= !std::mem::replace(&mut empty[left as usize], true);
                    break;
                }
                let from = first_sets[symbol as usize * words..][..words].to_vec();
                changed |= union_into(&mut first_sets, words, left, &from);
                if !empty[symbol as usize] {
                    break;
                }
                position += 1;
            }
            if changed {
                queue.extend(&uses[left as usize]);
            }
        }
        (first_sets, empty)
    }

    fn find_follows(&mut self, of: &EarleyProductions) {
        let words = self.words;
        // FOLLOW of a left-hand side is passed to the last symbols of its productions.
        let mut passed_to: Vec<Vec<u32>> = vec![Vec::new(); of.firsts.len()];
        let mut queue: Vec<u32> = Vec::new();
        for (position, &symbol) in of.symbol.iter().enumerate() {
            if symbol == END {
                continue;
            }
            let rest = self.begins[(position + 1) * words..][..words].to_vec();
            union_into(&mut self.follows, words, symbol, &rest);
            if self.empty[position + 1] {
                passed_to[of.left[position] as usize].push(symbol);
            }
            queue.push(symbol);
        }
        while let Some(symbol) = queue.pop() {
            let own = self.follows[symbol as usize * words..][..words].to_vec();
            for &to in &passed_to[symbol as usize] {
                if union_into(&mut self.follows, words, to, &own) {
                    queue.push(to);
                }
            }
        }
    }
}
