//! What the groups of a language capture in one of its members.
//!
//! Each part of an expression sees its own piece of the text only, as its set of texts demands.
//! So a text is divided among the parts first, with their machines ([`divide`]), and every
//! pattern is then matched against its piece from end to end.

mod split;

use std::ops::Range;
use std::sync::Arc;

use crate::automaton::fork_safe_automaton::ForkSafeAutomaton;
use crate::automaton::{Automaton, Limits};
use crate::error::Error;
use crate::expression::{Expression, ExpressionNode};
use crate::machine::Machine;
use crate::syntax::capture_matcher::{MatchProgram, group_spans, out_of_steps};
use crate::terms::UNBOUNDED;
use crate::terms::derivative::StepMeter;

use split::{SplitRequest, split_string};

pub use split::divided;

/// A language prepared to tell what its groups capture.
///
/// The groups are those of [`Expression::groups`]. A union shows those of its first operand that
/// has the text; a sequence is divided so that every part in turn takes as much as it can; a
/// repetition shows those of its last member; an intersection those of all its operands; a
/// difference those of its left one.
#[derive(Debug)]
pub struct Grouping {
    machine: ForkSafeAutomaton,
    part: CapturePart,
    groups: usize,
}

/// What the groups of a language captured in a member, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureGroups {
    /// Where each group begins and ends, in bytes; `None` if it took no part.
    pub spans: Vec<Option<Range<usize>>>,
    /// Whether the pattern of the group was matched against a piece of the text at all, unlike
    /// those in operands of a union that were not chosen and in repetitions of nothing.
    pub asked: Vec<bool>,
}

/// An expression with what is needed to find its groups; `groups` are theirs.
#[derive(Debug)]
struct CapturePart {
    form: CaptureForm,
    groups: Range<usize>,
}

#[derive(Debug)]
enum CaptureForm {
    /// No groups.
    Plain,
    Pattern(MatchProgram),
    Union(Vec<(PartAutomaton, CapturePart)>),
    Concat(Vec<(PartAutomaton, CapturePart)>),
    Repeat {
        member: PartAutomaton,
        part: Box<CapturePart>,
        least: usize,
        most: Option<usize>,
    },
    All(Vec<CapturePart>),
}

/// The machine of a part; none if the part has no member.
pub(super) type PartAutomaton = Option<ForkSafeAutomaton>;

impl Grouping {
    /// Prepares a language whose machine is `machine`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when the machine of a part exceeds `limits`.
    pub fn new(
        expression: &Expression,
        machine: Arc<Automaton>,
        limits: Limits,
    ) -> Result<Grouping, Error> {
        let mut groups = 0;
        let part = prepare_part(expression, limits, &mut groups)?;
        Ok(Grouping { machine: ForkSafeAutomaton::new(machine), part, groups })
    }

    /// What the groups capture in a text; nothing at all if it is not a member.
    ///
    /// A step is an instruction of a pattern or a byte read by a machine.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] after `steps` steps, or when too much memory would be needed.
    pub fn captured(&self, text: &[u8], steps: u64) -> Result<Option<CaptureGroups>, Error> {
        let mut work = StepMeter { steps: 0, allowed: steps };
        if !is_member(self.machine.get(), text, &mut work)? {
            return Ok(None);
        }
        let (spans, asked) = (vec![None; self.groups], vec![false; self.groups]);
        let mut captured = CaptureGroups { spans, asked };
        let good = self.part.find(text, 0, &mut work, &mut captured)?;
        Ok(good.then_some(captured))
    }
}

/// Whether the machine accepts the text.
fn is_member(machine: &Automaton, text: &[u8], work: &mut StepMeter) -> Result<bool, Error> {
    work.steps = work.steps.saturating_add(text.len() as u64);
    if work.steps > work.allowed {
        return Err(out_of_steps(work));
    }
    let end = machine.walk(machine.start(), text)?;
    Ok(end.is_ok_and(|state| machine.is_accepting(state)))
}

/// Prepares an expression whose first group has the number `groups`, and counts its groups.
fn prepare_part(
    expression: &Expression,
    limits: Limits,
    groups: &mut usize,
) -> Result<CapturePart, Error> {
    let first = *groups;
    if !expression.has_groups() {
        return Ok(CapturePart { form: CaptureForm::Plain, groups: first..first });
    }
    let mut all = |list: &[Expression]| -> Result<Vec<(PartAutomaton, CapturePart)>, Error> {
        list.iter()
            .map(|one| Ok((part_automaton(one, limits)?, prepare_part(one, limits, groups)?)))
            .collect()
    };
    let form = match expression.node() {
        ExpressionNode::Pattern(pattern) => {
            *groups += pattern.groups.len();
            CaptureForm::Pattern(MatchProgram::new(pattern))
        }
        ExpressionNode::Union(list) => CaptureForm::Union(all(list)?),
        ExpressionNode::Concat(list) => CaptureForm::Concat(all(list)?),
        ExpressionNode::Repeat(one, least, most) => CaptureForm::Repeat {
            member: part_automaton(one, limits)?,
            part: Box::new(prepare_part(one, limits, groups)?),
            least: *least as usize,
            most: (*most != UNBOUNDED).then_some(*most as usize),
        },
        ExpressionNode::Intersection(list) => {
            let parts: Result<_, Error> =
                list.iter().map(|one| prepare_part(one, limits, groups)).collect();
            CaptureForm::All(parts?)
        }
        ExpressionNode::Difference(left, _) => {
            CaptureForm::All(vec![prepare_part(left, limits, groups)?])
        }
        ExpressionNode::Lexeme(_)
        | ExpressionNode::Literals(_)
        | ExpressionNode::Custom(_)
        | ExpressionNode::Complement(_)
        | ExpressionNode::Edits(..)
        | ExpressionNode::Rewrite { .. } => CaptureForm::Plain,
    };
    Ok(CapturePart { form, groups: first..*groups })
}

fn part_automaton(expression: &Expression, limits: Limits) -> Result<PartAutomaton, Error> {
    match Automaton::new(expression, limits) {
        Ok(machine) => Ok(Some(ForkSafeAutomaton::new(Arc::new(machine)))),
        Err(Error::Language { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl CapturePart {
    /// Writes the spans of the groups in `text`, which begins at `offset` of the whole text, into
    /// `found`; whether the text is a member.
    fn find(
        &self,
        text: &[u8],
        offset: usize,
        work: &mut StepMeter,
        found: &mut CaptureGroups,
    ) -> Result<bool, Error> {
        match &self.form {
            CaptureForm::Plain => {}
            CaptureForm::Pattern(program) => {
                let Ok(text) = std::str::from_utf8(text) else { return Ok(false) };
                let Some(spans) = group_spans(program, text, work)? else { return Ok(false) };
                for (group, span) in self.groups.clone().zip(spans) {
                    found.spans[group] = span.map(|(start, end)| offset + start..offset + end);
                    found.asked[group] = true;
                }
            }
            CaptureForm::Union(operands) => {
                for (machine, part) in operands {
                    if let Some(machine) = machine
                        && is_member(machine.get(), text, work)?
                    {
                        return part.find(text, offset, work, found);
                    }
                }
                return Ok(false);
            }
            CaptureForm::Concat(parts) => return find_each(parts, text, offset, work, found),
            CaptureForm::Repeat { member, part, least, most } => {
                let member = |_| as_machine(member);
                let division = SplitRequest { least: *least, most: *most, member: &member };
                let Some(ends) = split_string(text, &division, work)? else { return Ok(false) };
                if let Some((&end, before)) = ends.split_last() {
                    let start = before.last().copied().unwrap_or(0);
                    return part.find(&text[start..end], offset + start, work, found);
                }
            }
            CaptureForm::All(parts) => {
                for part in parts {
                    if !part.find(text, offset, work, found)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

fn as_machine(member: &PartAutomaton) -> Option<&dyn Machine> {
    member.as_ref().map(|machine| machine.get() as &dyn Machine)
}

/// Divides the text among the parts of a sequence, and finds the groups of each.
fn find_each(
    parts: &[(PartAutomaton, CapturePart)],
    text: &[u8],
    offset: usize,
    work: &mut StepMeter,
    found: &mut CaptureGroups,
) -> Result<bool, Error> {
    let member = |number: usize| as_machine(&parts[number].0);
    let division = SplitRequest { least: parts.len(), most: Some(parts.len()), member: &member };
    let Some(ends) = split_string(text, &division, work)? else { return Ok(false) };
    let mut start = 0;
    for ((_, part), end) in parts.iter().zip(ends) {
        if !part.find(&text[start..end], offset + start, work, found)? {
            return Ok(false);
        }
        start = end;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
