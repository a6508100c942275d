//! How many bytes the members through a state have at least.

pub(crate) mod containers;
pub(crate) mod disjunctions;
pub(crate) mod distinct_values;
pub(crate) mod escaped_strings;
pub(crate) mod numbers;

use formalm_automata::deadline::DeadlineTicks;
use formalm_automata::{Error, Resource};
use rustc_hash::FxHashMap;

use std::sync::Arc;

use crate::core::TextId;
use crate::formula::F;
use crate::machine::completion::unique_items::Jump;
use crate::machine::frame::{DONE, DigitsId, Frame, FrameId, Mode, OwesId, Place};
use crate::machine::min_bytes::containers::{Child, NEVER};
use crate::machine::min_bytes::distinct_values::{Counts, Lengths};
use crate::machine::min_bytes::escaped_strings::{Rest, begun, left, still_spelled};
use crate::machine::reader::cache::NOT_ASKED;
use crate::machine::reader::enum_verdicts::Told;
use crate::machine::reader::whitespace::Gap;
use crate::machine::{Grown, UNRECORDED};
use crate::value::ValueId;

/// What searches for completions have learnt.
#[derive(Debug, Default)]
pub(crate) struct Learnt {
    /// By its machine's state what a text needs.
    pub(crate) texts: FxHashMap<(TextId, u32), Rest>,
    /// By their machine how many texts of each length, spelled or not, there are at most.
    pub(crate) counts: FxHashMap<(TextId, bool), Counts>,
    /// How long the values of a formula are, and by which length one of them was counted.
    pub(crate) values: FxHashMap<F, Arc<Lengths>>,
    pub(crate) lengths: FxHashMap<(F, ValueId), usize>,
    /// Bytes that more members and items need at least.
    pub(crate) rests: FxHashMap<F, usize>,
    /// By what a container owes and what the child needs that is being read, what both need.
    pub(crate) children: FxHashMap<(OwesId, Child), Child>,
    /// By what they owe and what was read what numbers need.
    pub(crate) numbers: FxHashMap<(OwesId, DigitsId), Child>,
}

impl Learnt {
    /// Forgets everything if it is much.
    pub(crate) fn limit(&mut self) {
        let others = self.rests.len() + self.children.len() + self.counts.len();
        let others = others + self.values.len() + self.lengths.len();
        if self.texts.len() + self.numbers.len() + others > LEARNT {
            *self = Learnt::default();
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let (texts, rests, numbers) =
            (self.texts.capacity(), self.rests.capacity(), self.numbers.capacity());
        let (children, counts) = (self.children.capacity(), self.counts.capacity());
        let (values, lengths) = (self.values.capacity(), self.lengths.capacity());
        let known = 128 * (counts + values) + 24 * lengths;
        80 * texts + 16 * rests + 64 * numbers + 160 * children + known
    }
}

/// Steps between two looks at the deadline; each may be one of a machine.
const CHECKED: u32 = 64;

/// A search for one completion.
pub(crate) struct Search {
    pub(crate) steps: u64,
    pub(crate) limit: u64,
    ticks: DeadlineTicks,
    /// By the place what items that must be distinct are completed with at once.
    pub(crate) jumps: FxHashMap<Place, Option<Jump>>,
}

impl Search {
    /// A search that takes at most so many steps.
    pub(crate) fn new(limit: u64) -> Search {
        Search { steps: 0, limit, ticks: DeadlineTicks::default(), jumps: FxHashMap::default() }
    }

    pub(crate) fn step(&mut self) -> Result<(), Error> {
        self.steps_of(1)
    }

    /// Counts what takes the time of several steps.
    pub(crate) fn steps_of(&mut self, count: u64) -> Result<(), Error> {
        self.steps += count;
        self.ticks.tick(1, CHECKED)?;
        if self.steps > self.limit {
            let (needed, allowed) = (self.steps, self.limit);
            return Err(Error::Limit { resource: Resource::Steps, needed, allowed });
        }
        Ok(())
    }
}

/// Answers that are kept.
const LEARNT: usize = 1 << 16;

impl Grown {
    /// Bytes that every continuation has at least; within a text of which nothing is asked that may
    /// be taken from what the frame before needs, which is much to find out.
    pub(crate) fn needs(
        &mut self,
        frame: Frame,
        before: Option<(Frame, usize)>,
        search: &mut Search,
    ) -> Result<usize, Error> {
        if let (
            Frame::Text { language, state, asked: NOT_ASKED, .. },
            Some((Frame::Text { .. }, least)),
        ) = (frame, before)
            && !self.learnt.texts.contains_key(&(language, state.number()))
        {
            return Ok(least.saturating_sub(1));
        }
        let Some((mut child, mut below)) = self.own_needs(frame, search)? else { return Ok(0) };
        while let Frame::Object { owes, below: next, .. } | Frame::Array { owes, below: next, .. } =
            *self.frames.get(below.0)
        {
            let close = self.gap_length(Gap::Close, self.depth(below)) + 1;
            child = self.after_least(owes, child, close, search)?;
            below = next;
        }
        Ok(child.must)
    }

    /// What the value at hand needs by itself, also for each truth that is asked of it, and the
    /// frame below.
    fn own_needs(
        &mut self,
        frame: Frame,
        search: &mut Search,
    ) -> Result<Option<(Child, FrameId)>, Error> {
        let (must, truths, below) = match frame {
            Frame::Done => return Ok(None),
            Frame::Value { owes, blanks, below } => {
                let (gap, depth) = self.gap_of_value(below);
                let gap = match below {
                    DONE => 0,
                    _ => self.gap_length(gap, depth).saturating_sub(blanks.into()),
                };
                let formulas = self.parts.owes.get(owes.0).formulas.clone();
                let must = gap + self.least_value(formulas[0], search);
                let mut truths = Vec::with_capacity(formulas.len() - 1);
                for &one in &formulas[1..] {
                    let both = self.core.formulas.both(formulas[0], one);
                    truths.push(gap + self.least_value(both, search));
                }
                (must, truths, below)
            }
            Frame::Word { rest, below, .. } => (rest.len(), Vec::new(), below),
            Frame::Number { owes, digits, below } => {
                return Ok(Some((self.number_needs(owes, digits, search)?, below)));
            }
            Frame::Text { language, state, asked, escape, below } => {
                let asked = self.parts.asked.get(asked.0).clone();
                let mut of = |(language, state)| -> Result<usize, Error> {
                    let rest = self.rest_of_text(language, state, search)?;
                    Ok(rest.len() + 1)
                };
                let must = of((language, state))?;
                let mut truths = Vec::with_capacity(asked.len());
                for one in &asked.machines {
                    truths.push(one.map_or(Ok(NEVER), &mut of)?);
                }
                if let Some(telling) = asked.telling {
                    // Which of the listed texts it will be is left open.
                    let told = self.parts.tellings[telling as usize].truths();
                    let told = told.iter().map(|told| match told {
                        Told::Machine(at) => truths[*at],
                        Told::Number(_) => must,
                    });
                    truths = told.collect();
                }
                // What is spelled of a character may be of another one than the shortest text has.
                let begun = begun(escape);
                let own = |least: usize| match begun {
                    0 => least,
                    _ => least.saturating_sub(begun).max(1 + left(escape)),
                };
                (own(must), truths.into_iter().map(own).collect(), below)
            }
            Frame::Name { object, text, reach, escape, .. } => {
                let Frame::Object { owes, below, .. } = *self.frames.get(object.0) else {
                    return Ok(None);
                };
                // What was read, its quote too, may be of a name that is owed, of which the comma
                // is read as well. Of other names one letter is, if they may be any.
                let letters = self.records.get(text).2 as usize;
                let is_any = reach.from == reach.to && self.takes_any(reach.classes);
                let read = if is_any { letters.min(1) } else { letters } + 1 + self.comma();
                let known = text != UNRECORDED;
                let spelled = still_spelled(escape, self.core.options.escapes);
                let own = |owed: usize| {
                    let rest = if known { owed.saturating_sub(read) } else { 0 };
                    rest.saturating_add_signed(spelled).max(3 + left(escape))
                };
                let close = self.gap_length(Gap::Close, self.depth(below) + 1) + 1;
                return self.container_needs(owes, below, search, &|owed| own(owed) + close);
            }
            Frame::Object { owes, mode, blanks, below, .. }
            | Frame::Array { owes, mode, blanks, below, .. } => {
                let close = self.gap_length(Gap::Close, self.depth(below) + 1);
                let begun = self.gap_begun(blanks);
                let comma = self.comma();
                let needs = |owed: usize| {
                    let own = match mode {
                        Mode::First => owed.saturating_sub(comma),
                        Mode::Next => owed.saturating_sub(comma).max(4),
                        Mode::Colon => 2 + owed,
                        Mode::Inside | Mode::After => owed,
                    };
                    let close = match (mode, begun) {
                        (Mode::First, false) if owed == 0 => 0,
                        (Mode::After, true) => close.saturating_sub(blanks.into()),
                        _ => close,
                    };
                    own + close + 1
                };
                return self.container_needs(owes, below, search, &needs);
            }
        };
        Ok(Some((Child { must, truths }, below)))
    }

    /// What an object or array needs between its parts, given what it does for what is owed.
    fn container_needs(
        &mut self,
        owes: OwesId,
        below: FrameId,
        search: &mut Search,
        needs: &dyn Fn(usize) -> usize,
    ) -> Result<Option<(Child, FrameId)>, Error> {
        let formulas = self.parts.owes.get(owes.0).formulas.clone();
        let must = needs(self.rest(formulas[0], search)?);
        let mut truths = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            truths.push(needs(self.rest(one, search)?));
        }
        Ok(Some((Child { must, truths }, below)))
    }

    /// Bytes of a comma and the blanks of a layout behind it at least, wherever it stands.
    pub(crate) fn comma(&self) -> usize {
        1 + self.gap_length(Gap::Next, 1)
    }

    pub(crate) fn colon(&self) -> usize {
        1 + self.gap_length(Gap::BeforeColon, 1) + self.gap_length(Gap::AfterColon, 1)
    }
}
