//! Walks of a language and the marked text along the vocabulary.

use formalm_automata::{Error, Machine, StateId};
use formalm_vocabulary::canonical::{Kind, Mark, Path, Place};
use rustc_hash::FxHashMap;

use super::Context;

/// Goals looked up without a hash, a power of two.
const RECENT: usize = 256;

/// Where a token leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Goal {
    pub(crate) state: StateId,
    pub(crate) place: Place,
    pub(crate) path: Path,
}

/// Tokens by where they lead.
struct Walk {
    index: FxHashMap<Goal, u32>,
    groups: Vec<(Goal, Vec<u32>)>,
    /// Groups by a few bits of their goal; most tokens lead to one of few.
    recent: [u32; RECENT],
}

/// The tokens that may be read from somewhere, the first byte with a mark, by where they lead.
pub(crate) fn tokens<M: Machine>(
    context: Context<'_, M>,
    from: Goal,
    mark: Mark,
) -> Result<Vec<(Goal, Vec<u32>)>, Error> {
    let mut walk =
        Walk { index: FxHashMap::default(), groups: Vec::new(), recent: [u32::MAX; RECENT] };
    walk.trie(context, from, mark)?;
    walk.bytes(context, from, mark)?;
    Ok(walk.groups)
}

/// Whether a token may begin with a mark and end where an added token is being read or not.
#[inline]
pub(crate) fn fits_kind(kind: Kind, mark: Mark, in_added: bool) -> bool {
    match kind {
        Kind::Never => false,
        Kind::Added => in_added && mark == Mark::Added,
        Kind::Merged | Kind::Byte(_) => !in_added,
        Kind::Whole => !in_added && mark == Mark::Piece,
    }
}

impl Walk {
    #[inline]
    fn add(&mut self, goal: Goal, token: u32) {
        let slot = (goal.state.number() ^ goal.place ^ goal.place >> 8) as usize % RECENT;
        let known = self.recent[slot] as usize;
        if let Some((other, tokens)) = self.groups.get_mut(known)
            && *other == goal
        {
            tokens.push(token);
            return;
        }
        let at = *self.index.entry(goal).or_insert_with(|| {
            self.groups.push((goal, Vec::new()));
            (self.groups.len() - 1) as u32
        });
        self.recent[slot] = at;
        self.groups[at as usize].1.push(token);
    }

    /// Tokens that are read byte by byte.
    fn trie<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        from: Goal,
        mark: Mark,
    ) -> Result<(), Error> {
        let (trie, encoder) = (context.vocabulary.trie(), context.encoder);
        let splitter = encoder.splitter();
        let nodes = trie.nodes();
        let mut stack = vec![(from.state, from.place)];
        let mut at = 0;
        while (at as usize) < nodes.len() {
            let here = nodes[at as usize];
            let depth = here.depth();
            let (state, place) = stack[depth - 1];
            let mark_here = if depth == 1 { mark } else { Mark::Inside };
            let Some(place) = splitter.step(place, here.byte(), mark_here) else {
                at = here.end();
                continue;
            };
            let Some(state) = context.machine.step(state, here.byte())? else {
                at = here.end();
                continue;
            };
            if here.word().is_some() {
                let in_added = splitter.is_added(place);
                for &token in trie.tokens_at(at) {
                    let kind = encoder.kind(token);
                    if matches!(kind, Kind::Byte(_)) || !fits_kind(kind, mark, in_added) {
                        continue;
                    }
                    if let Some(path) = encoder.path(from.path, token, mark != Mark::Inside) {
                        self.add(Goal { state, place, path }, token);
                    }
                }
            }
            stack.truncate(depth);
            stack.push((state, place));
            at += 1;
        }
        Ok(())
    }

    /// Tokens for single bytes of characters that are no symbols.
    fn bytes<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        from: Goal,
        mark: Mark,
    ) -> Result<(), Error> {
        for byte in 0..=255u8 {
            let Some(token) = context.encoder.byte_token(byte) else { return Ok(()) };
            let place = context.encoder.splitter().step_alone(from.place, byte, mark);
            if let Some(place) = place
                && context.vocabulary.token_bytes(token).is_some()
                && let Some(state) = context.machine.step(from.state, byte)?
            {
                self.add(Goal { state, place, path: Path::PLAIN }, token);
            }
        }
        Ok(())
    }
}
