//! Guesses about all divisions of a text at once, made deterministic.
//!
//! A state of the machine is the set of guesses that may still be true. Guesses are numbered, and
//! so are the segments that they are made of: few of them are met again and again.

use rustc_hash::FxHashMap;

use super::pretoken_splitter::{DEAD, MOST_STATES, Mark};
use super::pretokenizer_nfa::{Division, Guess, Segment};
use crate::Error;

/// Steps taken while the machine is built, of sets and of instructions: bounds the time it takes.
const MOST_WORK: usize = 2_000_000_000;

/// Has read nothing of the current piece.
const NOTHING: u32 = u32::MAX;

/// No such segment.
const NONE: u32 = u32::MAX - 1;

/// Has not been asked for.
const UNKNOWN: u32 = u32::MAX - 2;

/// The states of a machine, where each leads by mark and class, and what is true of each.
pub(super) struct States {
    /// `[state][mark][class]`
    pub(super) table: Vec<u32>,
    pub(super) ends: Vec<bool>,
    pub(super) added: Vec<bool>,
}

/// The segments of one division that were met.
struct Segments<'a> {
    division: &'a Division,
    classes: usize,
    ids: FxHashMap<Segment, u32>,
    list: Vec<Segment>,
    ends: Vec<bool>,
    /// `[segment][class][guess]`, where that was asked for.
    after: Vec<u32>,
    /// `[class][guess]`: the first character of a piece.
    first: Vec<u32>,
    /// Steps of segments that were taken.
    steps: usize,
}

/// The guesses that were met, each a segment of every division, and where each leads.
struct Builder<'a> {
    divisions: Vec<Segments<'a>>,
    /// Matches of the first division are added tokens.
    has_added: bool,
    classes: usize,
    ids: FxHashMap<Box<[u32]>, u32>,
    list: Vec<Box<[u32]>>,
    /// Per guesses and class a part of `arena`, where that was asked for.
    ways: Vec<Option<(u32, u32)>>,
    /// Guesses, and the mark in front of the character.
    arena: Vec<(u32, Mark)>,
    /// Guesses for which ways were found.
    steps: usize,
}

/// The deterministic machine of some divisions; with `has_added` matches of the first one are added
/// tokens. Texts with characters of the classes in `never` are not read.
///
/// # Errors
///
/// It would have too many states.
pub(super) fn explore(
    divisions: &[Division],
    has_added: bool,
    never: &[bool],
) -> Result<States, Error> {
    let classes = never.len();
    let instructions: usize = divisions.iter().map(|division| division.program.len()).sum();
    let mut builder = Builder::new(divisions, has_added, classes);
    let mut ids: FxHashMap<Box<[u32]>, u32> = FxHashMap::from_iter([([0].into(), 0)]);
    let mut states: Vec<Box<[u32]>> = vec![[0].into()];
    let mut table = Vec::new();
    let (mut at, mut work) = (0, 0);
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); 3 * classes];
    while at < states.len() {
        for &guesses in &states[at] {
            for class in 0..classes {
                let (start, end) = builder.after(guesses, class);
                for &(next, mark) in &builder.arena[start..end] {
                    after[mark as usize * classes + class].push(next);
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
            let id = ids.get(&**state).copied().unwrap_or_else(|| {
                let id = states.len() as u32;
                ids.insert((&**state).into(), id);
                states.push((&**state).into());
                id
            });
            table.push(id);
            state.clear();
        }
        if states.len() > MOST_STATES || work + builder.work(instructions) > MOST_WORK {
            let message =
                format!("the pre-tokenizer needs more than {MOST_STATES} states, or is too large");
            return Err(Error::new(message).at("pre_tokenizer"));
        }
        at += 1;
    }
    let any = |holds: &dyn Fn(u32) -> bool| -> Vec<bool> {
        states.iter().map(|state| state.iter().any(|&guesses| holds(guesses))).collect()
    };
    let ends = any(&|guesses| builder.ends(guesses));
    let added = any(&|guesses| builder.is_added(&builder.list[guesses as usize]));
    for (at, next) in table.iter_mut().enumerate() {
        if never[at % classes] {
            *next = DEAD;
        }
    }
    trim(&mut table, &ends, 3 * classes);
    Ok(States { table, ends, added })
}

impl<'a> Segments<'a> {
    fn new(division: &'a Division, classes: usize) -> Segments<'a> {
        let (ids, list) = (FxHashMap::default(), Vec::new());
        let mut segments = Segments {
            division,
            classes,
            ids,
            list,
            ends: Vec::new(),
            after: Vec::new(),
            first: Vec::new(),
            steps: 0,
        };
        for class in 0..classes as u16 {
            for guess in [Guess::Match, Guess::Gap] {
                let first = division.begin(class, guess);
                let first = segments.id(first);
                segments.first.push(first);
            }
        }
        segments
    }

    fn id(&mut self, segment: Option<Segment>) -> u32 {
        let Some(segment) = segment else { return NONE };
        if let Some(&id) = self.ids.get(&segment) {
            return id;
        }
        let id = self.list.len() as u32;
        self.ends.push(self.division.ends(&segment));
        self.ids.insert(segment.clone(), id);
        self.list.push(segment);
        self.after.resize(self.list.len() * self.classes * 3, UNKNOWN);
        id
    }

    /// A further character.
    fn step(&mut self, segment: u32, class: usize, guess: Guess) -> u32 {
        let at = (segment as usize * self.classes + class) * 3 + guess as usize;
        if self.after[at] == UNKNOWN {
            self.steps += 1;
            let next = self.division.step(&self.list[segment as usize], class as u16, guess);
            self.after[at] = self.id(next);
        }
        self.after[at]
    }
}

impl Builder<'_> {
    fn new(divisions: &[Division], has_added: bool, classes: usize) -> Builder<'_> {
        let segments = divisions.iter().map(|division| Segments::new(division, classes));
        let mut builder = Builder {
            divisions: segments.collect(),
            has_added,
            classes,
            ids: FxHashMap::default(),
            list: Vec::new(),
            ways: Vec::new(),
            arena: Vec::new(),
            steps: 0,
        };
        builder.id(&vec![NOTHING; divisions.len()]);
        builder
    }

    /// What was done so far, for patterns of so many instructions.
    fn work(&self, instructions: usize) -> usize {
        let steps: usize = self.divisions.iter().map(|segments| segments.steps).sum();
        self.steps * self.divisions.len() + steps * instructions
    }

    fn id(&mut self, guesses: &[u32]) -> u32 {
        if let Some(&id) = self.ids.get(guesses) {
            return id;
        }
        let id = self.list.len() as u32;
        self.ids.insert(guesses.into(), id);
        self.list.push(guesses.into());
        self.ways.resize(self.list.len() * self.classes, None);
        id
    }

    /// Every way to go on with a character: the part of `arena`.
    fn after(&mut self, guesses: u32, class: usize) -> (usize, usize) {
        let at = guesses as usize * self.classes + class;
        let (start, end) = self.ways[at].unwrap_or_else(|| {
            self.steps += 1;
            let start = self.arena.len() as u32;
            for (next, mark) in self.step(guesses, class) {
                let id = self.id(&next);
                self.arena.push((id, mark));
            }
            self.ways[at] = Some((start, self.arena.len() as u32));
            (start, self.arena.len() as u32)
        });
        (start as usize, end as usize)
    }

    /// Every way to go on with a character, and the mark in front of it.
    fn step(&mut self, guesses: u32, class: usize) -> Vec<(Vec<u32>, Mark)> {
        let mut ways: Vec<(Vec<u32>, Mark)> = vec![(Vec::new(), Mark::Inside)];
        for level in 0..self.divisions.len() {
            let segment = self.list[guesses as usize][level];
            let mut further = Vec::new();
            for (before, mark) in ways {
                let begins = mark != Mark::Inside || segment == NOTHING;
                // Where a piece begins, the one before must be complete in itself.
                if begins && segment != NOTHING && !self.divisions[level].ends[segment as usize] {
                    continue;
                }
                let mut add = |segment: u32, mark: Mark| {
                    let mut next = before.clone();
                    next.push(segment);
                    further.push((next, mark));
                };
                if level > 0 && self.is_added(&before) {
                    // An added token is not divided further.
                    add(NOTHING, mark);
                    continue;
                }
                let may_add = level == 0 && self.has_added;
                let segments = &mut self.divisions[level];
                if begins {
                    for (at, guess) in [Guess::Match, Guess::Gap].into_iter().enumerate() {
                        let added = may_add && guess == Guess::Match;
                        let mark = if added { Mark::Added } else { Mark::Piece };
                        let first = segments.first[2 * class + at];
                        if first != NONE {
                            add(first, mark);
                        }
                    }
                    continue;
                }
                for guess in [Guess::Same, Guess::Match, Guess::Gap] {
                    let next = segments.step(segment, class, guess);
                    if next == NONE {
                        continue;
                    }
                    let mark = match guess {
                        Guess::Same => Mark::Inside,
                        Guess::Match if may_add => Mark::Added,
                        _ => match segments.division.parts(&segments.list[segment as usize], guess)
                        {
                            true => Mark::Piece,
                            false => Mark::Inside,
                        },
                    };
                    add(next, mark);
                }
            }
            ways = further;
        }
        ways
    }

    fn ends(&self, guesses: u32) -> bool {
        let segments = self.list[guesses as usize].iter().zip(&self.divisions);
        segments
            .into_iter()
            .all(|(&segment, division)| segment == NOTHING || division.ends[segment as usize])
    }

    /// Whether guesses are that an added token is read.
    fn is_added(&self, guesses: &[u32]) -> bool {
        self.has_added
            && guesses.first().is_some_and(|&first| {
                first != NOTHING && self.divisions[0].list[first as usize].is_match()
            })
    }
}

/// Removes transitions to states from which no text ends.
fn trim(table: &mut [u32], ends: &[bool], row: usize) {
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
