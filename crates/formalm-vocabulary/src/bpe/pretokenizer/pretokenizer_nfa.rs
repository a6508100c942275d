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
pub(crate) enum SplitBehavior {
    /// Matches and gaps are pre-tokens.
    Isolated,
    /// A match joins the gap before it.
    MergedWithPrevious,
    /// A match joins the gap after it.
    MergedWithNext,
    /// Adjacent matches are one pre-token.
    Contiguous,
    /// Matches are pre-tokens; gaps are lost, so that no tokens spell a text with a gap. If the step
    /// is inverted, matches are lost.
    Lossy,
}

/// A split step: a pattern and the treatment of its matches.
#[derive(Clone, Debug)]
pub(crate) struct SplitStep {
    pub(crate) program: PikeProgram,
    pub(crate) behavior: SplitBehavior,
    /// Matches count as gaps, and gaps as matches.
    pub(crate) invert: bool,
    /// Per character class, the threads of a match that begins with it.
    entries: Vec<Vec<u16>>,
}

/// The guess about a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentGuess {
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
    pub(crate) fn new(program: PikeProgram, behavior: SplitBehavior, invert: bool) -> SplitStep {
        SplitStep { program, behavior, invert, entries: Vec::new() }
    }

    /// Sets the character classes, given one representative of each.
    pub(crate) fn use_classes(&mut self, representatives: &[char]) {
        self.program.use_classes(representatives);
        let entry = |class: u16| {
            let closure = self.program.epsilon_closure(&[self.program.start()], Some(class));
            self.program.step(&closure.threads, class)
        };
        self.entries = (0..representatives.len() as u16).map(entry).collect();
    }

    /// Reads the first character of a text.
    pub(crate) fn begin(&self, class: u16, guess: SegmentGuess) -> Option<MatchSegment> {
        self.enter(MatchSegment::default(), class, guess)
    }

    /// Reads a further character.
    pub(crate) fn step(
        &self,
        segment: &MatchSegment,
        class: u16,
        guess: SegmentGuess,
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
                SegmentGuess::Gap => None,
                SegmentGuess::Same => self.enter(next, class, SegmentGuess::Gap),
                SegmentGuess::Match => self.enter(next, class, SegmentGuess::Match),
            };
        }
        let closure = program.epsilon_closure(&segment.threads, Some(class));
        let preferred = &closure.threads[..closure.matched.unwrap_or(closure.threads.len())];
        let further = program.step(preferred, class);
        if guess == SegmentGuess::Same {
            next.threads = further;
            return (!next.threads.is_empty()).then(|| next.normalized());
        }
        closure.matched?;
        next.watched.extend(further);
        self.enter(next, class, guess)
    }

    /// Reads a character that begins a match, or begins or continues a gap.
    fn enter(
        &self,
        mut segment: MatchSegment,
        class: u16,
        guess: SegmentGuess,
    ) -> Option<MatchSegment> {
        let closure = &self.entries[usize::from(class)];
        if self.behavior == SplitBehavior::Lossy && (guess == SegmentGuess::Match) == self.invert {
            return None;
        }
        if guess == SegmentGuess::Match {
            segment.threads.clone_from(closure);
            return (!segment.threads.is_empty()).then(|| segment.normalized());
        }
        segment.watched.extend_from_slice(closure);
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
    /// [`SegmentGuess::Same`].
    pub(crate) fn ends_pretoken(&self, segment: &MatchSegment, guess: SegmentGuess) -> bool {
        let before = segment.threads.is_empty() == self.invert;
        let after = (guess == SegmentGuess::Match) != self.invert;
        match self.behavior {
            SplitBehavior::Isolated | SplitBehavior::Lossy => true,
            SplitBehavior::MergedWithPrevious => before || !after,
            SplitBehavior::MergedWithNext => !before || after,
            SplitBehavior::Contiguous => before != after,
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
