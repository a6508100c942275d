//! Lexemes of a text that has several ways to be cut: ordered ones around members of embedded
//! languages, which end in any way.

use formalm_automata::{Error, Machine};
use rustc_hash::{FxHashMap, FxHashSet};

use super::earley_productions::Steps;
use super::tokenize::{Input, Lexeme};
use crate::automaton::GrammarAutomaton;
use crate::state::{Core, Reading};

/// Places between lexemes, told apart by what may follow there: readings with how much of the text
/// they have read, in that order.
pub(super) struct Paths<'a> {
    text: &'a [u8],
    places: Vec<(usize, Reading)>,
    /// Lexemes from each place, with the places behind them.
    lexemes: Vec<Vec<(Lexeme, usize)>>,
    /// Places behind what is ignored at each.
    skipped: Vec<Vec<usize>>,
    /// Whether the text may end at a place.
    ends: Vec<bool>,
}

impl<'a> Paths<'a> {
    pub(super) fn new(
        automaton: &GrammarAutomaton,
        text: &'a [u8],
        steps: &mut Steps<'_, '_>,
    ) -> Result<Paths<'a>, Error> {
        if !automaton.is_asking() {
            return Paths::under_way(&mut automaton.lock().core, text, steps);
        }
        // Answers are found along the text first, so that few are missing.
        let _ = automaton.walk(automaton.start(), text)?;
        automaton.asking(|core| Paths::under_way(core, text, steps))
    }

    fn under_way(
        core: &mut Core,
        text: &'a [u8],
        steps: &mut Steps<'_, '_>,
    ) -> Result<Paths<'a>, Error> {
        let mut paths = Paths {
            text,
            places: Vec::new(),
            lexemes: Vec::new(),
            skipped: Vec::new(),
            ends: Vec::new(),
        };
        let mut known: FxHashMap<(usize, Reading), usize> = FxHashMap::default();
        let mut alive: Vec<(Reading, usize)> = Vec::new();
        for reading in core.start_readings()? {
            alive.push((reading, paths.place(&mut known, 0, reading)));
        }
        let mut next = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            let mut later: FxHashSet<(Reading, usize)> = FxHashSet::default();
            for (reading, from) in alive {
                steps.spend(1)?;
                core.stacks.meter.reset();
                next.clear();
                core.read_ending(reading, byte, &mut next)?;
                for &(reading, ended) in &next {
                    let Some(terminal) = ended else {
                        later.insert((reading, from));
                        continue;
                    };
                    let to = paths.place(&mut known, at + 1, reading);
                    later.insert((reading, to));
                    match core.read_as(terminal) {
                        Some(terminal) => {
                            let start = paths.places[from].0;
                            paths.lexemes[from].push((Lexeme { terminal, start, end: at + 1 }, to));
                        }
                        None => paths.skipped[from].push(to),
                    }
                }
            }
            alive = later.into_iter().collect();
            alive.sort_unstable();
        }
        for at in 0..paths.places.len() {
            let (read, reading) = paths.places[at];
            core.stacks.meter.reset();
            paths.ends.push(read == text.len() && core.accepts(reading)?);
        }
        Ok(paths)
    }

    fn place(
        &mut self,
        known: &mut FxHashMap<(usize, Reading), usize>,
        read: usize,
        reading: Reading,
    ) -> usize {
        *known.entry((read, reading)).or_insert_with(|| {
            self.places.push((read, reading));
            self.lexemes.push(Vec::new());
            self.skipped.push(Vec::new());
            self.places.len() - 1
        })
    }

    /// A place and those behind what is ignored there.
    fn around(&self, at: usize, steps: &mut Steps<'_, '_>) -> Result<Vec<usize>, Error> {
        let mut all = vec![at];
        let mut looked = 0;
        while let Some(&at) = all.get(looked) {
            looked += 1;
            for &behind in &self.skipped[at] {
                steps.spend(1)?;
                if !all.contains(&behind) {
                    all.push(behind);
                }
            }
        }
        Ok(all)
    }
}

impl Input for Paths<'_> {
    fn len(&self) -> usize {
        self.places.len() - 1
    }

    fn next(&self, at: usize) -> Option<u32> {
        self.text.get(self.places[at].0).map(|&byte| byte.into())
    }

    fn is_free(&self) -> bool {
        true
    }

    fn lexemes(
        &mut self,
        terminal: u32,
        at: usize,
        steps: &mut Steps<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error> {
        let mut all = Vec::new();
        for place in self.around(at, steps)? {
            all.extend(self.lexemes[place].iter().filter(|one| one.0.terminal == terminal));
        }
        Ok(all)
    }

    fn ends(&mut self, at: usize, steps: &mut Steps<'_, '_>) -> Result<bool, Error> {
        Ok(self.around(at, steps)?.into_iter().any(|place| self.ends[place]))
    }
}
