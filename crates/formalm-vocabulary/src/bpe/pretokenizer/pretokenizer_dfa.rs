//! Subset construction of the pre-tokenizer: determinizes the guesses of all split steps at once.
//!
//! A state of the DFA is the set of guesses that may still be true. A guess is one segment per
//! split step. Guesses and segments are interned: few of them occur again and again.

use formalm_core::Interner;

use super::boundary_automaton::{Boundary, DEAD, MAX_STATES};
use super::pretokenizer_nfa::{MatchSegment, SegmentGuess, SplitStep};
use crate::Error;

/// Work limit of the construction, in set operations and instructions; bounds its time. Chosen, not
/// measured.
const MAX_WORK: usize = 2_000_000_000;

/// No character of the current pre-token has been read.
const NO_SEGMENT: u32 = u32::MAX;

/// No such segment.
const NONE: u32 = u32::MAX - 1;

/// Not computed yet.
const UNKNOWN: u32 = u32::MAX - 2;

/// The states of the DFA: transitions by boundary and class, and the properties of each state.
pub(in crate::bpe) struct SplitterDfa {
    /// `[state][boundary][class]`
    pub(in crate::bpe) table: Vec<u32>,
    pub(in crate::bpe) ends: Vec<bool>,
    pub(in crate::bpe) added: Vec<bool>,
}

/// The interned segments of one split step.
struct SegmentInterner<'a> {
    split_step: &'a SplitStep,
    classes: usize,
    list: Interner<MatchSegment>,
    ends: Vec<bool>,
    /// `[segment][class][guess]`, computed on demand.
    after: Vec<u32>,
    /// `[class][guess]`: the segment after the first character of a pre-token.
    first: Vec<u32>,
    /// Number of segment transitions computed.
    steps: usize,
}

/// The interned guesses, each one segment per split step, and their transitions.
struct DfaBuilder<'a> {
    split_steps: Vec<SegmentInterner<'a>>,
    /// Matches of the first step are added tokens.
    has_added: bool,
    classes: usize,
    list: Interner<Box<[u32]>>,
    /// Per guess and class, a slice of `arena` if it was computed.
    successors: Vec<Option<(u32, u32)>>,
    /// Successor guesses, with the boundary before the character.
    arena: Vec<(u32, Boundary)>,
    /// Number of guesses whose successors were computed.
    steps: usize,
}

/// Builds the DFA of the split steps. With `has_added`, matches of the first step are added tokens.
/// Text with characters of the classes in `never` is not accepted, except in added tokens.
///
/// # Errors
///
/// The DFA would have too many states.
pub(in crate::bpe) fn build_dfa(
    split_steps: &[SplitStep],
    has_added: bool,
    never: &[bool],
) -> Result<SplitterDfa, Error> {
    let classes = never.len();
    let instructions: usize = split_steps.iter().map(|split_step| split_step.program.len()).sum();
    let mut builder = DfaBuilder::new(split_steps, has_added, classes);
    let mut states: Interner<Box<[u32]>> = Interner::from_iter([[0].into()]);
    let mut table = Vec::new();
    let (mut at, mut work) = (0u32, 0);
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); 3 * classes];
    while (at as usize) < states.len() {
        for &guesses in &*states[at] {
            for class in 0..classes {
                let (start, end) = builder.after(guesses, class);
                for &(next, boundary) in &builder.arena[start..end] {
                    after[boundary as usize * classes + class].push(next);
                }
            }
        }
        work += states[at].len() * classes;
        for state in &mut after {
            if state.is_empty() {
                table.push(DEAD);
                continue;
            }
            state.sort_unstable();
            state.dedup();
            table.push(states.intern_borrowed(&**state, || (&**state).into()));
            state.clear();
        }
        if states.len() > MAX_STATES || work + builder.work(instructions) > MAX_WORK {
            let message =
                format!("the pre-tokenizer needs more than {MAX_STATES} states, or is too large");
            return Err(Error::new(message).at("pre_tokenizer"));
        }
        at += 1;
    }
    let any = |holds: &dyn Fn(u32) -> bool| -> Vec<bool> {
        states.iter().map(|state| state.iter().any(|&guesses| holds(guesses))).collect()
    };
    let ends = any(&|guesses| builder.ends(guesses));
    let added = any(&|guesses| builder.is_added(&builder.list[guesses]));
    for (at, next) in table.iter_mut().enumerate() {
        if never[at % classes] && *next != DEAD && !added[*next as usize] {
            *next = DEAD;
        }
    }
    trim(&mut table, &ends, 3 * classes);
    Ok(SplitterDfa { table, ends, added })
}

impl<'a> SegmentInterner<'a> {
    fn new(split_step: &'a SplitStep, classes: usize) -> SegmentInterner<'a> {
        let mut segments = SegmentInterner {
            split_step,
            classes,
            list: Interner::default(),
            ends: Vec::new(),
            after: Vec::new(),
            first: Vec::new(),
            steps: 0,
        };
        for class in 0..classes as u16 {
            for guess in [SegmentGuess::Match, SegmentGuess::Gap] {
                let first = split_step.begin(class, guess);
                let first = segments.id(first);
                segments.first.push(first);
            }
        }
        segments
    }

    fn id(&mut self, segment: Option<MatchSegment>) -> u32 {
        let Some(segment) = segment else { return NONE };
        if let Some(id) = self.list.find(&segment) {
            return id;
        }
        self.ends.push(self.split_step.may_end(&segment));
        let id = self.list.intern_new(segment);
        self.after.resize(self.list.len() * self.classes * 3, UNKNOWN);
        id
    }

    /// Returns the segment after one more character.
    fn step(&mut self, segment: u32, class: usize, guess: SegmentGuess) -> u32 {
        let at = (segment as usize * self.classes + class) * 3 + guess as usize;
        if self.after[at] == UNKNOWN {
            self.steps += 1;
            let next = self.split_step.step(&self.list[segment], class as u16, guess);
            self.after[at] = self.id(next);
        }
        self.after[at]
    }
}

impl DfaBuilder<'_> {
    fn new(split_steps: &[SplitStep], has_added: bool, classes: usize) -> DfaBuilder<'_> {
        let segments =
            split_steps.iter().map(|split_step| SegmentInterner::new(split_step, classes));
        let mut builder = DfaBuilder {
            split_steps: segments.collect(),
            has_added,
            classes,
            list: Interner::default(),
            successors: Vec::new(),
            arena: Vec::new(),
            steps: 0,
        };
        builder.id(&vec![NO_SEGMENT; split_steps.len()]);
        builder
    }

    /// Returns the work done so far, for patterns of `instructions` instructions in all.
    fn work(&self, instructions: usize) -> usize {
        let steps: usize = self.split_steps.iter().map(|segments| segments.steps).sum();
        self.steps * self.split_steps.len() + steps * instructions
    }

    fn id(&mut self, guesses: &[u32]) -> u32 {
        let id = self.list.intern_borrowed(guesses, || guesses.into());
        self.successors.resize(self.list.len() * self.classes, None);
        id
    }

    /// Returns the successors of a guess under a character, as a slice of `arena`.
    fn after(&mut self, guesses: u32, class: usize) -> (usize, usize) {
        let at = guesses as usize * self.classes + class;
        let (start, end) = self.successors[at].unwrap_or_else(|| {
            self.steps += 1;
            let start = self.arena.len() as u32;
            for (next, boundary) in self.step(guesses, class) {
                let id = self.id(&next);
                self.arena.push((id, boundary));
            }
            self.successors[at] = Some((start, self.arena.len() as u32));
            (start, self.arena.len() as u32)
        });
        (start as usize, end as usize)
    }

    /// Computes the successors of a guess under a character, each with the boundary before the
    /// character.
    fn step(&mut self, guesses: u32, class: usize) -> Vec<(Vec<u32>, Boundary)> {
        let mut successors: Vec<(Vec<u32>, Boundary)> = vec![(Vec::new(), Boundary::Inside)];
        for level in 0..self.split_steps.len() {
            let segment = self.list[guesses][level];
            let mut further = Vec::new();
            for (before, boundary) in successors {
                let begins = boundary != Boundary::Inside || segment == NO_SEGMENT;
                // Where a pre-token begins, the one before must be complete.
                if begins
                    && segment != NO_SEGMENT
                    && !self.split_steps[level].ends[segment as usize]
                {
                    continue;
                }
                let mut add = |segment: u32, boundary: Boundary| {
                    let mut next = before.clone();
                    next.push(segment);
                    further.push((next, boundary));
                };
                if level > 0 && self.is_added(&before) {
                    // An added token is not split further.
                    add(NO_SEGMENT, boundary);
                    continue;
                }
                let may_add = level == 0 && self.has_added;
                let segments = &mut self.split_steps[level];
                if begins {
                    for (at, guess) in
                        [SegmentGuess::Match, SegmentGuess::Gap].into_iter().enumerate()
                    {
                        let added = may_add && guess == SegmentGuess::Match;
                        let boundary = if added { Boundary::Added } else { Boundary::Pretoken };
                        let first = segments.first[2 * class + at];
                        if first != NONE {
                            add(first, boundary);
                        }
                    }
                    continue;
                }
                for guess in [SegmentGuess::Same, SegmentGuess::Match, SegmentGuess::Gap] {
                    let next = segments.step(segment, class, guess);
                    if next == NONE {
                        continue;
                    }
                    let boundary = match guess {
                        SegmentGuess::Same => Boundary::Inside,
                        SegmentGuess::Match if may_add => Boundary::Added,
                        _ => {
                            match segments.split_step.ends_pretoken(&segments.list[segment], guess)
                            {
                                true => Boundary::Pretoken,
                                false => Boundary::Inside,
                            }
                        }
                    };
                    add(next, boundary);
                }
            }
            successors = further;
        }
        successors
    }

    fn ends(&self, guesses: u32) -> bool {
        let segments = self.list[guesses].iter().zip(&self.split_steps);
        segments.into_iter().all(|(&segment, split_step)| {
            segment == NO_SEGMENT || split_step.ends[segment as usize]
        })
    }

    /// Returns `true` if the guess says that an added token is being read.
    fn is_added(&self, guesses: &[u32]) -> bool {
        self.has_added
            && guesses.first().is_some_and(|&first| {
                first != NO_SEGMENT && self.split_steps[0].list[first].is_match()
            })
    }
}

/// Removes transitions to states from which no text is accepted.
pub(in crate::bpe) fn trim(table: &mut [u32], ends: &[bool], row: usize) {
    let mut live = ends.to_vec();
    let mut changed = true;
    while changed {
        changed = false;
        for state in 0..live.len() {
            let mut row = table[state * row..(state + 1) * row].iter();
            if !live[state] && row.any(|&next| next != DEAD && live[next as usize]) {
                live[state] = true;
                changed = true;
            }
        }
    }
    for next in table.iter_mut() {
        if *next != DEAD && !live[*next as usize] {
            *next = DEAD;
        }
    }
}
