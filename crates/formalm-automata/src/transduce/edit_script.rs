//! Edit scripts: a shortest alignment of a member with a string.

use std::collections::VecDeque;

use formalm_core::{BudgetExhausted, Error, InterruptCheck, Resource, check_limit};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::terms::derivative::Deriver;
use crate::terms::edit_and_rewrite_plans::{EditsId, ImageKind};
use crate::terms::{EMPTY, EPSILON, TermId, TermNode};

/// The fewest edits that turn a member into a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditScript {
    /// Member and string side by side. Both are present for a character kept or substituted, only
    /// the member's for a deletion, only the string's for an insertion.
    pub pairs: Vec<(Option<char>, Option<char>)>,
}

impl EditScript {
    /// Returns the number of edits.
    pub fn count(&self) -> usize {
        self.pairs.iter().filter(|(member, text)| member != text).count()
    }
}

/// The characters of member and string that a step of the search reads.
type EditPair = Option<(Option<char>, Option<char>)>;

struct ScriptNode {
    at: usize,
    term: TermId,
    from: usize,
    pair: EditPair,
}

struct ScriptSearch<'a> {
    deriver: &'a mut Deriver,
    edits: EditsId,
    /// Terms known to contain an image under `edits`, or not.
    holds: FxHashMap<TermId, bool>,
}

/// Returns the script of fewest edits under which `start` contains `text`, or `None` if it does
/// not. Only images under `edits` count. Breadth first by the number of edits (0-1 BFS).
pub(crate) fn script(
    deriver: &mut Deriver,
    (edits, start): (EditsId, TermId),
    text: &[char],
    limit_bytes: u64,
    poll: &mut InterruptCheck<'_>,
) -> Result<Option<EditScript>, Error> {
    let mut search = ScriptSearch { deriver, edits, holds: FxHashMap::default() };
    let mut nodes = vec![ScriptNode { at: 0, term: start, from: 0, pair: None }];
    let mut open: VecDeque<usize> = VecDeque::from([0]);
    let mut closed: FxHashSet<(usize, TermId)> = FxHashSet::default();
    while let Some(index) = open.pop_front() {
        let (at, term) = (nodes[index].at, nodes[index].term);
        if !closed.insert((at, term)) {
            continue;
        }
        poll.tick(64)?;
        let bytes = nodes.len() * (size_of::<ScriptNode>() + 8) + closed.len() * 32;
        let all = bytes + search.deriver.memory_bytes();
        check_limit(Resource::Bytes, all as u64, limit_bytes)?;
        if at == text.len() && search.ends(term) {
            return Ok(Some(traced(&nodes, index)));
        }
        let moves = search.moves(term, text.get(at).copied());
        for (pair, next) in moves.map_err(|error| search.deriver.work.limit_error(error))? {
            search.deriver.work.step().map_err(|error| search.deriver.work.limit_error(error))?;
            let at = at + usize::from(matches!(pair, Some((_, Some(_)))));
            let edited = pair.is_some_and(|(member, text)| member != text);
            nodes.push(ScriptNode { at, term: next, from: index, pair });
            if edited {
                open.push_back(nodes.len() - 1);
            } else {
                open.push_front(nodes.len() - 1);
            }
        }
    }
    Ok(None)
}

fn traced(nodes: &[ScriptNode], mut index: usize) -> EditScript {
    let mut pairs = Vec::new();
    while index != 0 {
        pairs.extend(nodes[index].pair);
        index = nodes[index].from;
    }
    pairs.reverse();
    EditScript { pairs }
}

impl ScriptSearch<'_> {
    fn holds(&mut self, id: TermId) -> bool {
        if let Some(&known) = self.holds.get(&id) {
            return known;
        }
        let holds = match self.deriver.terms.get(id).clone() {
            TermNode::Image {
                change: ImageKind::Gate { edits, .. } | ImageKind::Edit { edits, .. },
                ..
            } => edits == self.edits,
            TermNode::Cat(head, tail) => self.holds(head) || self.holds(tail),
            TermNode::Alt(list) => list.iter().any(|&one| self.holds(one)),
            _ => false,
        };
        self.holds.insert(id, holds);
        holds
    }

    /// Returns `true` if the term contains the empty string without an edit. The operands of a
    /// union of images are examined one by one, after a step that reads nothing.
    fn ends(&mut self, id: TermId) -> bool {
        if !self.holds(id) {
            return self.deriver.terms.nullable(id, &[]);
        }
        match *self.deriver.terms.get(id) {
            TermNode::Cat(head, tail) => self.ends(head) && self.ends(tail),
            TermNode::Image { rest, change: ImageKind::Edit { .. }, .. } => {
                let free = self.deriver.terms.plans.edits(self.edits).before.is_none();
                free && self.deriver.terms.nullable(rest, &[])
            }
            _ => false,
        }
    }

    /// Returns the steps from a term: what is read, and the residual.
    fn moves(
        &mut self,
        id: TermId,
        character: Option<char>,
    ) -> Result<Vec<(EditPair, TermId)>, BudgetExhausted> {
        let mut moves = Vec::new();
        if !self.holds(id) {
            if let Some(character) = character {
                let next = self.after(id, character)?;
                moves.push((Some((Some(character), Some(character))), next));
            }
        } else {
            match self.deriver.terms.get(id).clone() {
                TermNode::Alt(list) => moves.extend(list.iter().map(|&one| (None, one))),
                TermNode::Cat(head, tail) => {
                    for (pair, next) in self.moves(head, character)? {
                        moves.push((pair, self.deriver.terms.cat(next, tail)));
                    }
                    if self.ends(head) {
                        moves.push((None, tail));
                    }
                }
                TermNode::Image { rest, change: ImageKind::Gate { gate, edits }, .. } => {
                    if let Some(character) = character {
                        let gate = self.after(gate, character)?;
                        let rest = self.after(rest, character)?;
                        let next = self.deriver.edits(edits).gated(rest, gate)?;
                        moves.push((Some((Some(character), Some(character))), next));
                    }
                    if self.deriver.terms.nullable(gate, &[]) {
                        moves.push((None, self.deriver.edits(edits).anywhere(rest)?));
                    }
                }
                TermNode::Image { rest, change: ImageKind::Edit { budget, .. }, .. } => {
                    self.edits(rest, budget, character, &mut moves)?;
                }
                _ => {}
            }
        }
        moves.retain(|&(_, next)| next != EMPTY);
        Ok(moves)
    }

    fn edits(
        &mut self,
        rest: TermId,
        budget: u32,
        character: Option<char>,
        moves: &mut Vec<(EditPair, TermId)>,
    ) -> Result<(), BudgetExhausted> {
        let plan = *self.deriver.terms.plans.edits(self.edits);
        if let Some(before) = plan.before {
            moves.push((None, self.deriver.terms.and(vec![rest, before])));
        }
        if let Some(character) = character {
            let next = self.after(rest, character)?;
            let next = self.deriver.edits(self.edits).within(next, budget, 0)?;
            moves.push((Some((Some(character), Some(character))), next));
        }
        if budget == 0 {
            return Ok(());
        }
        let left = budget - 1;
        let mut written = None;
        if let Some(character) = character
            && self.after(plan.alphabet, character)? == EPSILON
        {
            written = Some(character);
        }
        if written.is_some() && plan.operations.insert {
            let next = self.deriver.edits(self.edits).within(rest, left, 0)?;
            moves.push((Some((None, written)), next));
        }
        if plan.operations.delete || written.is_some() && plan.operations.substitute {
            for &(dropped, next) in self.deriver.char_outcomes(rest)?.iter() {
                let next = self.deriver.edits(self.edits).within(next, left, 0)?;
                if plan.operations.substitute && written.is_some_and(|other| other != dropped) {
                    moves.push((Some((Some(dropped), written)), next));
                }
                if plan.operations.delete {
                    moves.push((Some((Some(dropped), None)), next));
                }
            }
        }
        Ok(())
    }

    fn after(&mut self, id: TermId, character: char) -> Result<TermId, BudgetExhausted> {
        let mut id = id;
        for &byte in character.encode_utf8(&mut [0; 4]).as_bytes() {
            if id == EMPTY {
                break;
            }
            id = self.deriver.derive(id, byte, &[])?;
        }
        Ok(id)
    }
}
