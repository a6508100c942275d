//! A nondeterministic automaton for one split step: it guesses matches and gaps while it reads.
//!
//! A pattern splits a text into its matches and the gaps between them. While reading, the end of a
//! match is unknown: it can depend on any amount of text to come. So the automaton *guesses*,
//! character by character, and watches what would disprove the guess: threads of the pattern that
//! are preferred to the guessed match, or begin in a guessed gap, must never match. Of all guesses
//! about a text exactly one survives to its end, and it is the split that the pattern makes.

use super::pike_vm::PikeProgram;

/// The treatment of a match and its neighbors, as in the `Split` pre-tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Matches and gaps are pre-tokens.
    Isolated,
    /// A match joins the gap before it.
    MergedWithPrevious,
    /// A match joins the gap after it.
    MergedWithNext,
    /// Adjacent matches are one pre-token.
    Contiguous,
    /// Matches are pre-tokens; gaps are lost, so that no tokens spell a text with a gap.
    Lossy,
}

/// A split step: a pattern and the treatment of its matches.
#[derive(Clone, Debug)]
pub(crate) struct SplitStep {
    pub(crate) program: PikeProgram,
    pub(crate) behavior: Behavior,
    /// Matches count as gaps, and gaps as matches.
    pub(crate) invert: bool,
    /// Per character class, the threads of a match that begins with it.
    entries: Vec<Vec<u16>>,
}

/// The guess about a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guess {
    /// It belongs to the same match or gap as the previous one.
    Same,
    /// A match begins with it.
    Match,
    /// A gap begins with it.
    Gap,
}

/// The part of the current match or gap that has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MatchSegment {
    /// Threads of the current match, in order of preference; empty in a gap.
    threads: Vec<u16>,
    /// Threads that must not match, ascending.
    watched: Vec<u16>,
}

impl SplitStep {
    pub(crate) fn new(program: PikeProgram, behavior: Behavior, invert: bool) -> SplitStep {
        SplitStep { program, behavior, invert, entries: Vec::new() }
    }

    /// Sets the character classes, given one representative of each.
    pub(crate) fn use_classes(&mut self, representatives: &[char]) {
        self.program.use_classes(representatives);
        let entry = |class: u16| {
            let ways = self.program.epsilon_closure(&[self.program.start()], Some(class));
            self.program.step(&ways.threads, class)
        };
        self.entries = (0..representatives.len() as u16).map(entry).collect();
    }

    /// Reads the first character of a text.
    pub(crate) fn begin(&self, class: u16, guess: Guess) -> Option<MatchSegment> {
        self.enter(MatchSegment::default(), class, guess)
    }

    /// Reads a further character.
    pub(crate) fn step(
        &self,
        segment: &MatchSegment,
        class: u16,
        guess: Guess,
    ) -> Option<MatchSegment> {
        let program = &self.program;
        let watched = program.epsilon_closure(&segment.watched, Some(class));
        if watched.matched.is_some() {
            return None;
        }
        let mut next =
            MatchSegment { threads: Vec::new(), watched: program.step(&watched.threads, class) };
        let in_gap = segment.threads.is_empty();
        if in_gap {
            // A gap begins where the last match ended, so another gap cannot begin inside it.
            return match guess {
                Guess::Gap => None,
                Guess::Same => self.enter(next, class, Guess::Gap),
                Guess::Match => self.enter(next, class, Guess::Match),
            };
        }
        let ways = program.epsilon_closure(&segment.threads, Some(class));
        let preferred = &ways.threads[..ways.matched.unwrap_or(ways.threads.len())];
        let further = program.step(preferred, class);
        if guess == Guess::Same {
            next.threads = further;
            return (!next.threads.is_empty()).then(|| next.normalized());
        }
        ways.matched?;
        next.watched.extend(further);
        self.enter(next, class, guess)
    }

    /// Reads a character that begins a match, or begins or continues a gap.
    fn enter(&self, mut segment: MatchSegment, class: u16, guess: Guess) -> Option<MatchSegment> {
        let ways = &self.entries[usize::from(class)];
        if guess == Guess::Match {
            segment.threads.clone_from(ways);
            return (!segment.threads.is_empty()).then(|| segment.normalized());
        }
        if self.behavior == Behavior::Lossy {
            return None;
        }
        segment.watched.extend_from_slice(ways);
        Some(segment.normalized())
    }

    /// Returns `true` if the text may end here.
    pub(crate) fn may_end(&self, segment: &MatchSegment) -> bool {
        let watched = self.program.epsilon_closure(&segment.watched, None);
        let in_gap = segment.threads.is_empty();
        watched.matched.is_none()
            && (in_gap || self.program.epsilon_closure(&segment.threads, None).matched.is_some())
    }

    /// Returns `true` if a pre-token ends between a segment and a following guess other than
    /// [`Guess::Same`].
    pub(crate) fn ends_pretoken(&self, segment: &MatchSegment, guess: Guess) -> bool {
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

impl MatchSegment {
    fn normalized(mut self) -> MatchSegment {
        self.watched.sort_unstable();
        self.watched.dedup();
        self
    }

    /// Returns `true` if the segment is a match.
    pub(crate) fn is_match(&self) -> bool {
        !self.threads.is_empty()
    }
}
