//! One splitting of a text by a pattern, guessed while it is read.
//!
//! A pattern divides a text into its matches and the gaps between them. While reading, nobody knows
//! where a match will end: that can depend on any amount of text to come. So a division is
//! *guessed*, character by character, and what would disprove the guess is watched: threads of the
//! pattern that are preferred to the guessed match, or begin in a guessed gap, must never match. Of
//! all guesses about a text exactly one survives to its end, and it is the pattern's division.

use super::pike_vm::Program;

/// What becomes of a match and its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Matches and gaps are pieces.
    Isolated,
    /// A match belongs to the gap before it.
    MergedWithPrevious,
    /// A match belongs to the gap behind it.
    MergedWithNext,
    /// Matches that touch are one piece.
    Contiguous,
    /// Matches are pieces; gaps are lost, so that no tokens spell a text with one.
    Lossy,
}

/// A pattern and what is done with its matches.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    pub(crate) program: Program,
    pub(crate) behavior: Behavior,
    /// Matches count as gaps and gaps as matches.
    pub(crate) invert: bool,
    /// Per class of characters the ways through a match that begins with one.
    entries: Vec<Vec<u16>>,
}

/// What is guessed of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guess {
    /// It belongs to the same match or gap as the one before.
    Same,
    /// A match begins with it.
    Match,
    /// A gap begins with it.
    Gap,
}

/// How far the current match or gap has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Segment {
    /// Ways through the current match, in order of preference; none in a gap.
    threads: Vec<u16>,
    /// Ways that must not match, ascending.
    watched: Vec<u16>,
}

impl Division {
    pub(crate) fn new(program: Program, behavior: Behavior, invert: bool) -> Division {
        Division { program, behavior, invert, entries: Vec::new() }
    }

    /// Takes note of classes of characters, given one character of each.
    pub(crate) fn use_classes(&mut self, representatives: &[char]) {
        self.program.use_classes(representatives);
        let entry = |class: u16| {
            let ways = self.program.close(&[self.program.start()], Some(class));
            self.program.step(&ways.threads, class)
        };
        self.entries = (0..representatives.len() as u16).map(entry).collect();
    }

    /// The first character of a text, which is of a class.
    pub(crate) fn begin(&self, class: u16, guess: Guess) -> Option<Segment> {
        self.enter(Segment::default(), class, guess)
    }

    /// A further character.
    pub(crate) fn step(&self, segment: &Segment, class: u16, guess: Guess) -> Option<Segment> {
        let program = &self.program;
        let watched = program.close(&segment.watched, Some(class));
        if watched.matched.is_some() {
            return None;
        }
        let mut next =
            Segment { threads: Vec::new(), watched: program.step(&watched.threads, class) };
        let in_gap = segment.threads.is_empty();
        if in_gap {
            // A gap begins where the last match ended, so another gap cannot.
            return match guess {
                Guess::Gap => None,
                Guess::Same => self.enter(next, class, Guess::Gap),
                Guess::Match => self.enter(next, class, Guess::Match),
            };
        }
        let ways = program.close(&segment.threads, Some(class));
        let preferred = &ways.threads[..ways.matched.unwrap_or(ways.threads.len())];
        let further = program.step(preferred, class);
        if guess == Guess::Same {
            next.threads = further;
            return (!next.threads.is_empty()).then(|| next.tidy());
        }
        ways.matched?;
        next.watched.extend(further);
        self.enter(next, class, guess)
    }

    /// Begins a match, or a gap or its next character, with a character.
    fn enter(&self, mut segment: Segment, class: u16, guess: Guess) -> Option<Segment> {
        let ways = &self.entries[usize::from(class)];
        if guess == Guess::Match {
            segment.threads.clone_from(ways);
            return (!segment.threads.is_empty()).then(|| segment.tidy());
        }
        if self.behavior == Behavior::Lossy {
            return None;
        }
        segment.watched.extend_from_slice(ways);
        Some(segment.tidy())
    }

    /// Whether the text may end here.
    pub(crate) fn ends(&self, segment: &Segment) -> bool {
        let watched = self.program.close(&segment.watched, None);
        let in_gap = segment.threads.is_empty();
        watched.matched.is_none()
            && (in_gap || self.program.close(&segment.threads, None).matched.is_some())
    }

    /// Whether a piece ends where a guess other than [`Guess::Same`] follows a segment.
    pub(crate) fn parts(&self, segment: &Segment, guess: Guess) -> bool {
        let before = segment.threads.is_empty() == self.invert;
        let after = (guess == Guess::Match) != self.invert;
        match self.behavior {
            Behavior::Isolated | Behavior::Lossy => true,
            Behavior::MergedWithPrevious => before || !after,
            Behavior::MergedWithNext => !before || after,
            Behavior::Contiguous => before != after,
        }
    }
}

impl Segment {
    fn tidy(mut self) -> Segment {
        self.watched.sort_unstable();
        self.watched.dedup();
        self
    }

    /// Whether it is a match.
    pub(crate) fn is_match(&self) -> bool {
        !self.threads.is_empty()
    }
}
