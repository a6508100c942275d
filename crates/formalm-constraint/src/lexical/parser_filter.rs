//! Which joins tokens come to behind the end of a lexeme.
//!
//! A place is looked at from its top: first at very little of it, which most places have in common
//! with many others, and then at more for what is open still. What was found out at a depth is
//! remembered for all places that look alike down to there.

use std::sync::Arc;

use formalm_automata::{BEYOND, Error, Lexemes, Place};
use formalm_vocabulary::Vocabulary;
use rustc_hash::FxHashSet;

use super::Tables;

/// Depths of stacks that are looked at before all of them are.
const DEPTHS: [u32; 5] = [1, 2, 4, 8, 14];

/// Terminals in a row, and the group of nodes at which the last one's lexemes end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    terminals: Box<[u32]>,
    group: u32,
}

/// What ways come to from all places that look alike.
#[derive(Debug)]
pub(super) struct Reach {
    /// Joins, as numbers of [`Tables::joins`].
    parts: Box<[u32]>,
    /// Ways for which more of a place has to be known.
    open: Arc<[Way]>,
}

impl Reach {
    /// Without what is open, which others share.
    fn memory_bytes(&self) -> usize {
        140 + 4 * self.parts.len()
    }
}

/// Ways that are being followed.
#[derive(Default)]
struct Following {
    parts: Vec<u32>,
    /// What could not be told.
    open: Vec<Way>,
    seen: FxHashSet<(Place, u32)>,
    /// Terminals, each with the number of the one before it.
    links: Vec<(u32, u32)>,
}

/// Before the first terminal.
const FIRST: u32 = u32::MAX;

impl Following {
    fn link(&mut self, before: u32, terminal: u32) -> u32 {
        self.links.push((before, terminal));
        self.links.len() as u32 - 1
    }

    fn leave_open(&mut self, before: u32, terminal: u32, group: u32) {
        let (mut terminals, mut at) = (vec![terminal], before);
        while at != FIRST {
            let (before, terminal) = self.links[at as usize];
            terminals.push(terminal);
            at = before;
        }
        terminals.reverse();
        self.open.push(Way { terminals: terminals.into(), group });
    }
}

impl Tables {
    /// Adds the joins that a list of groups comes to from a place; `false` if it is not certain
    /// of all of them that members continue so.
    pub(super) fn reached<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        (place, list): (Place, u32),
        parts: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        let mut open: Option<Arc<[Way]>> = None;
        for depth in DEPTHS {
            if open.as_ref().is_some_and(|open| open.is_empty()) {
                return Ok(true);
            }
            let Some(outline) = lexemes.outline(place, depth) else { break };
            let reach = match self.reaches.get(&(list, outline)) {
                Some(known) => Arc::clone(known),
                None => {
                    let ways = open.unwrap_or_else(|| self.ways(list));
                    let from = lexemes.drawn(outline);
                    let reach = Arc::new(self.follow(lexemes, vocabulary, from, &ways)?);
                    self.bytes += reach.memory_bytes();
                    self.reaches.insert((list, outline), Arc::clone(&reach));
                    reach
                }
            };
            parts.extend_from_slice(&reach.parts);
            open = Some(Arc::clone(&reach.open));
        }
        let ways = open.unwrap_or_else(|| self.ways(list));
        let reach = self.follow(lexemes, vocabulary, place, &ways)?;
        parts.extend_from_slice(&reach.parts);
        Ok(reach.open.is_empty())
    }

    fn ways(&self, list: u32) -> Arc<[Way]> {
        let groups = self.lists[list as usize].iter();
        groups.map(|&(terminal, group)| Way { terminals: [terminal].into(), group }).collect()
    }

    /// The joins that ways come to from a place.
    fn follow<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        place: Place,
        ways: &[Way],
    ) -> Result<Reach, Error> {
        let mut all = Following::default();
        let mut stack: Vec<(Place, u32, u32, u32)> = Vec::new();
        for way in ways {
            let Some((&last, front)) = way.terminals.split_last() else { continue };
            let (mut at, mut link) = (place, FIRST);
            for &terminal in front {
                // More is seen than when it was followed so far.
                let Some(next) = lexemes.after(at, terminal)? else { break };
                (at, link) = (next, all.link(link, terminal));
            }
            stack.push((at, link, last, way.group));
            while let Some((place, link, terminal, group)) = stack.pop() {
                self.spend(1)?;
                match self.next(lexemes, vocabulary, (place, terminal, group), &mut all) {
                    Ok(Some((next, join))) => {
                        let joined = &self.joins[join as usize];
                        all.parts.extend((!joined.is_empty()).then_some(join));
                        let groups = &self.lists[joined.groups as usize];
                        if groups.is_empty() {
                            continue;
                        }
                        let (link, groups) = (all.link(link, terminal), groups.iter());
                        stack
                            .extend(groups.map(|&(terminal, group)| (next, link, terminal, group)));
                    }
                    Ok(None) => {}
                    Err(error) if error == BEYOND => all.leave_open(link, terminal, group),
                    Err(error) => return Err(error),
                }
            }
        }
        all.parts.sort_unstable();
        all.parts.dedup();
        Ok(Reach { parts: all.parts.into(), open: self.opened(all.open) })
    }

    fn opened(&mut self, ways: Vec<Way>) -> Arc<[Way]> {
        if let Some(known) = self.opens.get(&ways[..]) {
            return Arc::clone(known);
        }
        let terminals: usize = ways.iter().map(|way| way.terminals.len()).sum();
        self.bytes += 60 + 40 * ways.len() + 4 * terminals;
        let ways: Arc<[Way]> = ways.into();
        self.opens.insert(Arc::clone(&ways));
        ways
    }

    /// The place behind a terminal, and the join of a group there; `None` if there is none or if it
    /// was met before. What is not certain is [`BEYOND`].
    fn next<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        (place, terminal, group): (Place, u32, u32),
        all: &mut Following,
    ) -> Result<Option<(Place, u32)>, Error> {
        let Some(next) = lexemes.after(place, terminal)? else { return Ok(None) };
        if all.seen.contains(&(next, group)) {
            return Ok(None);
        }
        let context = lexemes.context(next)?;
        let number = self.joined(lexemes, vocabulary, group, context)?;
        let joined = &self.joins[number];
        if joined.doubtful || (!joined.is_empty() && !lexemes.is_certain(next)?) {
            return Err(BEYOND);
        }
        all.seen.insert((next, group));
        Ok(Some((next, number as u32)))
    }
}
