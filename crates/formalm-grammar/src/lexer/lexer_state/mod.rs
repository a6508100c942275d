//! Lexemes under way together with what must not match: the lexer as texts and masks read it.
//!
//! A *scan* is a pair of lexer states. What a byte does to it depends on no stack and is
//! remembered for good: scans are few and met again.

mod priority;

use std::sync::Arc;

use formalm_automata::{Ending, Error};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar::Lexing;
use crate::indentation::PLAIN;
use crate::interner::{NOTHING, union};
use crate::lexer::Kind;
use crate::state::Core;

/// What a byte does to a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Outcome {
    /// The scan if the lexeme goes on; [`NOTHING`] if it cannot.
    pub(crate) on: u32,
    /// How it may end here: a number of [`Scans::endings`]; [`NOTHING`] if it cannot.
    pub(crate) endings: u32,
    /// The certificate does not say that all this can be completed.
    pub(crate) doubtful: bool,
}

/// The outcome of a byte that is not read.
const DEAD: Outcome = Outcome { on: NOTHING, endings: NOTHING, doubtful: false };

/// Scans looked at before there is hope for one.
const HOPES: usize = 500;

/// The scans met so far. Number 0 reads nothing.
#[derive(Debug)]
pub(crate) struct Scans {
    pairs: Vec<(u32, u32)>,
    ids: FxHashMap<(u32, u32), u32>,
    /// Per scan and class an outcome plus one, as far as sixteen bits go.
    rows: Vec<Option<Box<[u16]>>>,
    /// The other ones.
    beyond: FxHashMap<(u32, u16), u32>,
    row_bytes: usize,
    outcomes: Vec<Outcome>,
    outcome_ids: FxHashMap<Outcome, u32>,
    endings: Vec<Arc<[Ending]>>,
    ending_ids: FxHashMap<Arc<[Ending]>, u32>,
    /// Scans from which no lexeme ends, as far as was found out.
    hopeless: FxHashSet<u32>,
}

impl Default for Scans {
    fn default() -> Scans {
        let mut scans = Scans {
            pairs: Vec::new(),
            ids: FxHashMap::default(),
            rows: Vec::new(),
            beyond: FxHashMap::default(),
            row_bytes: 0,
            outcomes: Vec::new(),
            outcome_ids: FxHashMap::default(),
            endings: Vec::new(),
            ending_ids: FxHashMap::default(),
            hopeless: FxHashSet::default(),
        };
        scans.number(NOTHING, NOTHING);
        scans.ending(Vec::new());
        scans
    }
}

impl Scans {
    /// The scan of a lexeme under way and of what must not match.
    pub(crate) fn number(&mut self, lexeme: u32, forbidden: u32) -> u32 {
        let pairs = &mut self.pairs;
        *self.ids.entry((lexeme, forbidden)).or_insert_with(|| {
            pairs.push((lexeme, forbidden));
            pairs.len() as u32 - 1
        })
    }

    /// The lexeme under way and what must not match.
    pub(crate) fn pair(&self, scan: u32) -> (u32, u32) {
        self.pairs[scan as usize]
    }

    pub(crate) fn endings(&self, number: u32) -> Arc<[Ending]> {
        Arc::clone(&self.endings[number as usize])
    }

    pub(crate) fn ending_count(&self, number: u32) -> usize {
        self.endings[number as usize].len()
    }

    pub(crate) fn ending_at(&self, number: u32, at: usize) -> Ending {
        self.endings[number as usize][at]
    }

    fn ending(&mut self, list: Vec<Ending>) -> u32 {
        if let Some(&known) = self.ending_ids.get(&*list) {
            return known;
        }
        let list: Arc<[Ending]> = list.into();
        let number = self.endings.len() as u32;
        self.endings.push(Arc::clone(&list));
        self.ending_ids.insert(list, number);
        number
    }

    fn known(&self, scan: u32, class: usize) -> Option<Outcome> {
        let row = self.rows.get(scan as usize)?.as_ref()?;
        let number = match row[class] {
            u16::MAX => *self.beyond.get(&(scan, class as u16))?,
            number => u32::from(number.checked_sub(1)?),
        };
        Some(self.outcomes[number as usize])
    }

    fn keep(&mut self, scan: u32, class: usize, width: usize, outcome: Outcome) {
        let outcomes = &mut self.outcomes;
        let number = *self.outcome_ids.entry(outcome).or_insert_with(|| {
            outcomes.push(outcome);
            outcomes.len() as u32 - 1
        });
        if self.rows.len() <= scan as usize {
            self.rows.resize_with(self.pairs.len(), || None);
        }
        let row = &mut self.rows[scan as usize];
        if row.is_none() {
            self.row_bytes += 2 * width;
        }
        let short = match u16::try_from(number + 1) {
            Ok(short) if short < u16::MAX => short,
            _ => {
                self.beyond.insert((scan, class as u16), number);
                u16::MAX
            }
        };
        row.get_or_insert_with(|| vec![0; width].into())[class] = short;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.row_bytes
            + self.pairs.len() * 44
            + self.outcomes.len() * 40
            + self.endings.len() * 64
            + (self.hopeless.len() + 2 * self.beyond.len()) * 8
    }
}

impl Core {
    /// What a byte does to a scan.
    #[inline]
    pub(crate) fn read_scan(&mut self, scan: u32, byte: u8) -> Result<Outcome, Error> {
        let class = usize::from(self.lexer.classes()[usize::from(byte)]);
        match self.scans.known(scan, class) {
            Some(outcome) => Ok(outcome),
            None => {
                let outcome = self.work_out(scan, byte)?;
                let width = self.lexer.representatives().len();
                self.scans.keep(scan, class, width, outcome);
                Ok(outcome)
            }
        }
    }

    fn work_out(&mut self, scan: u32, byte: u8) -> Result<Outcome, Error> {
        let mut outcome = self.outcome(scan, byte)?;
        if !self.checked {
            return Ok(outcome);
        }
        let mut goes_on = false;
        if outcome.on != NOTHING {
            let (lexeme, forbidden) = self.scans.pair(outcome.on);
            goes_on = self.is_certified(lexeme, forbidden)?;
            outcome.doubtful = !goes_on;
            if !goes_on && self.is_hopeless(outcome.on)? {
                outcome = Outcome { on: NOTHING, doubtful: false, ..outcome };
            }
        }
        outcome.endings = self.endings_with_hope(outcome.endings)?;
        for one in &*self.scans.endings(outcome.endings) {
            // What else is left matters to contexts: it is looked at where one is known.
            let good = self.leaves_nothing(one.left)?
                || (goes_on && self.is_certified(NOTHING, one.left)?);
            outcome.doubtful |= self.is_lost(one.terminal) || !good;
        }
        Ok(outcome)
    }

    /// Endings less those of lines in brackets behind which no lexeme can end: within brackets no
    /// text ends either.
    fn endings_with_hope(&mut self, endings: u32) -> Result<u32, Error> {
        let Some((newline, all)) = self.layout.as_ref().and_then(|one| one.in_brackets) else {
            return Ok(endings);
        };
        let before = self.scans.endings(endings);
        let mut list = Vec::with_capacity(before.len());
        for one in &*before {
            let behind = self.scans.number(all, one.left);
            if one.terminal != newline || !self.is_hopeless(behind)? {
                list.push(*one);
            }
        }
        Ok(if list.len() == before.len() { endings } else { self.scans.ending(list) })
    }

    /// Whether no lexeme ends whatever follows, as few bytes show: all that may be read makes match
    /// what must not.
    fn is_hopeless(&mut self, scan: u32) -> Result<bool, Error> {
        let mut met = vec![scan];
        let mut seen = FxHashSet::from_iter([scan]);
        let mut at = 0;
        while at < met.len() {
            let lexeme = self.lexer.lists.copy(self.scans.pair(met[at]).0);
            if lexeme.iter().any(|&one| self.lexer.column(one) != PLAIN) {
                return Ok(false);
            }
            for byte in self.lexer.representatives().to_vec() {
                let outcome = self.outcome(met[at], byte)?;
                if outcome.endings != NOTHING || met.len() > HOPES {
                    return Ok(false);
                }
                let on = outcome.on;
                if on != NOTHING && !self.scans.hopeless.contains(&on) && seen.insert(on) {
                    met.push(on);
                }
            }
            at += 1;
        }
        self.scans.hopeless.extend(met);
        Ok(true)
    }

    /// What a byte does to a scan; not whether it can be completed.
    pub(crate) fn outcome(&mut self, scan: u32, byte: u8) -> Result<Outcome, Error> {
        let (lexeme, forbidden) = self.scans.pair(scan);
        let read = self.lexer.step(lexeme, byte, &mut self.stacks.meter)?;
        if read == crate::lexer::DEAD {
            return Ok(DEAD);
        }
        let Some(forbidden) = self.pending(forbidden, byte)? else { return Ok(DEAD) };
        if !read.is_match() && self.lexing == Lexing::Longest && self.whole.is_empty() {
            let lexeme = self.without(read.next, forbidden);
            return Ok(Outcome { on: self.going_on(lexeme, forbidden), ..DEAD });
        }
        let matches = self.matches(read);
        if self.lexing == Lexing::Any {
            let mut all = Vec::with_capacity(matches.len());
            for one in matches {
                let asked = one.condition(&mut self.lexer, Kind::Must);
                all.push(Ending {
                    terminal: one.terminal,
                    left: self.with_thread(forbidden, asked),
                });
            }
            let endings = self.scans.ending(all);
            let on = self.going_on(read.next, forbidden);
            return Ok(Outcome { on, endings, doubtful: false });
        }
        let (endings, next) = self.preferred(read, &matches, forbidden);
        let mut outcome = Outcome { endings: self.scans.ending(endings), ..DEAD };
        // A thread that must not match and yet has to is of no use.
        let mut lexeme = self.without(next, forbidden);
        if lexeme != next && self.lexing == Lexing::First {
            lexeme = self.cut(lexeme, self.terminals);
        }
        let is_read = |&one: &u32| !self.is_whole(self.lexer.terminal(one));
        if !self.whole.is_empty() && !self.lexer.lists.get(lexeme).iter().any(is_read) {
            lexeme = NOTHING;
        }
        outcome.on = self.going_on(lexeme, forbidden);
        Ok(outcome)
    }

    /// What must not match, and what is asked of the text that follows, after a byte; `None` if it
    /// went wrong.
    pub(crate) fn pending(&mut self, forbidden: u32, byte: u8) -> Result<Option<u32>, Error> {
        let read = self.lexer.step(forbidden, byte, &mut self.stacks.meter)?;
        if read.matches != NOTHING {
            return Ok(None);
        }
        if read.conditions == NOTHING {
            return Ok(Some(read.next));
        }
        let unless: Vec<u32> = self.lexer.lists.get(read.conditions).to_vec();
        let mut left = read.next;
        for one in unless.chunks_exact(2) {
            let thread = self.lexer.asking(one[0], one[1], Kind::MustNot);
            left = self.with_thread(left, Some(thread));
        }
        Ok(Some(left))
    }

    fn with_thread(&mut self, set: u32, thread: Option<u32>) -> u32 {
        let Some(thread) = thread else { return set };
        let joined = union(self.lexer.lists.get(set), &[thread]);
        self.lexer.lists.intern(&joined)
    }

    fn going_on(&mut self, lexeme: u32, forbidden: u32) -> u32 {
        if lexeme == NOTHING { NOTHING } else { self.scans.number(lexeme, forbidden) }
    }

    pub(crate) fn union_of(&mut self, left: u32, right: u32) -> u32 {
        if left == NOTHING || left == right {
            return right;
        }
        if right == NOTHING {
            return left;
        }
        let joined = union(self.lexer.lists.get(left), self.lexer.lists.get(right));
        self.lexer.lists.intern(&joined)
    }

    fn without(&mut self, set: u32, other: u32) -> u32 {
        if set == NOTHING || other == NOTHING {
            return set;
        }
        let other = self.lexer.lists.copy(other);
        let mut kept: Vec<u32> = self.lexer.lists.get(set).to_vec();
        kept.retain(|&one| other.binary_search(&self.lexer.plain_thread(one)).is_err());
        self.lexer.lists.intern(&kept)
    }
}
