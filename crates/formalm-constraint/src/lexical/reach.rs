//! Which joins tokens come to behind the end of a lexeme.

use std::sync::Arc;

use formalm_automata::{BEYOND, Error, Lexemes, Place};
use formalm_vocabulary::Vocabulary;
use rustc_hash::FxHashSet;

use super::Tables;

/// Depths of stacks that are looked at before all of them are.
const DEPTHS: [u32; 2] = [8, 20];

/// What the groups of a join come to from all places that look alike.
#[derive(Debug)]
pub(super) struct Reach {
    /// Joins, as numbers of [`Tables::joins`].
    parts: Box<[u32]>,
    /// Terminals with groups for which more of the stacks has to be known.
    open: Arc<[(u32, u32)]>,
}

impl Tables {
    /// Adds the joins that the groups of a join come to from a place, as far as what the place
    /// looks like tells. What is left over has to be followed from the place itself.
    pub(super) fn reached<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        (place, root): (Place, u32),
        parts: &mut Vec<u32>,
    ) -> Result<Arc<[(u32, u32)]>, Error> {
        let mut open = Arc::clone(&self.joins[root as usize].groups);
        for depth in DEPTHS {
            if open.is_empty() {
                break;
            }
            let Some(outline) = lexemes.outline(place, depth) else { break };
            let reach = match self.reaches.get(&(root, outline)) {
                Some(known) => Arc::clone(known),
                None => {
                    let from = lexemes.drawn(outline);
                    let reach = Arc::new(self.reach(lexemes, vocabulary, from, &open)?);
                    self.bytes += 120 + 4 * reach.parts.len() + 8 * reach.open.len();
                    self.reaches.insert((root, outline), Arc::clone(&reach));
                    reach
                }
            };
            parts.extend_from_slice(&reach.parts);
            open = Arc::clone(&reach.open);
        }
        Ok(open)
    }

    fn reach<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        from: Place,
        groups: &[(u32, u32)],
    ) -> Result<Reach, Error> {
        let (mut parts, mut open) = (Vec::new(), Vec::new());
        for &(terminal, group) in groups {
            let before = parts.len();
            let first = vec![(from, terminal, group)];
            match self.follow(lexemes, vocabulary, first, &mut parts) {
                Ok(true) => {}
                Err(error) if error != BEYOND => return Err(error),
                _ => {
                    parts.truncate(before);
                    open.push((terminal, group));
                }
            }
        }
        parts.sort_unstable();
        parts.dedup();
        Ok(Reach { parts: parts.into(), open: open.into() })
    }

    /// Adds the joins that groups come to behind lexemes of terminals, each from a place; `false`
    /// if it is not certain of all of them that members continue so.
    pub(super) fn follow<L: Lexemes>(
        &mut self,
        lexemes: &L,
        vocabulary: &Vocabulary,
        mut open: Vec<(Place, u32, u32)>,
        parts: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        let mut seen: FxHashSet<(Place, u32)> = FxHashSet::default();
        while let Some((place, terminal, group)) = open.pop() {
            self.spend(1)?;
            let Some(next) = lexemes.after(place, terminal)? else { continue };
            if !seen.insert((next, group)) {
                continue;
            }
            let context = lexemes.context(next)?;
            let number = self.joined(lexemes, vocabulary, group, context)?;
            let joined = &self.joins[number];
            if joined.doubtful || (!joined.is_empty() && !lexemes.is_certain(next)?) {
                return Ok(false);
            }
            parts.extend((!joined.is_empty()).then_some(number as u32));
            open.extend(joined.groups.iter().map(|&(terminal, group)| (next, terminal, group)));
        }
        Ok(true)
    }
}
