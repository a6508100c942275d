//! Capture groups of combined languages: the spans that each pattern's groups capture in a member.
//!
//! ```text
//!  member ──split_among──► one piece per part ──capture_matcher──► spans of the part's groups
//! ```
//!
//! Each part of an expression sees only its own piece of the string. So the string is first split
//! among the parts with their automata ([`leftmost_longest_split`]), and every pattern is then matched against its
//! whole piece.

mod leftmost_longest_split;

use std::ops::Range;
use std::sync::Arc;

use formalm_core::{Error, LazyDfa, Machine, StepMeter};
use formalm_regex::capture_matcher::{MatchProgram, group_spans, out_of_steps};

use crate::automaton::fork_safe_automaton::ForkSafeAutomaton;
use crate::automaton::{Automaton, AutomatonLimits};
use crate::language_expression::{Expression, ExpressionNode};
use crate::terms::UNBOUNDED;
use leftmost_longest_split::{SplitRequest, split_string};

pub use leftmost_longest_split::split_among;

/// A language prepared to report what its groups capture.
///
/// The groups are those of [`Expression::groups`]. A union reports those of its first operand that
/// matches. A sequence is split so that each part in turn is as long as possible. A repetition
/// reports its last iteration, an intersection all operands, a difference its left operand.
#[derive(Debug)]
pub struct CaptureFinder {
    machine: ForkSafeAutomaton,
    part: CapturePart,
    groups: usize,
}

/// The captures of a language's groups in a member, by group number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberCaptures {
    /// The span of each group in bytes; `None` if it did not participate.
    pub spans: Vec<Option<Range<usize>>>,
    /// `true` if the pattern of the group was matched against a piece at all. Operands of a union
    /// that were not chosen, and repetitions of nothing, are not matched.
    pub was_matched: Vec<bool>,
}

/// An expression with what finding its groups requires; `groups` are its group numbers.
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

/// The automaton of a part; `None` if the part is empty.
pub(super) type PartAutomaton = Option<ForkSafeAutomaton>;

impl CaptureFinder {
    /// Prepares a language whose automaton is `machine`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when the machine of a part exceeds `limits`.
    pub fn new(
        expression: &Expression,
        machine: Arc<Automaton>,
        limits: AutomatonLimits,
    ) -> Result<CaptureFinder, Error> {
        let mut groups = 0;
        let part = prepare_part(expression, limits, &mut groups)?;
        Ok(CaptureFinder { machine: ForkSafeAutomaton::new(machine), part, groups })
    }

    /// Returns what the groups capture in a string, or `None` if it is not a member.
    ///
    /// A step is an instruction of a pattern or a byte read by an automaton.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] after `steps` steps, or when too much memory would be needed.
    pub fn find_captures(&self, text: &[u8], steps: u64) -> Result<Option<MemberCaptures>, Error> {
        let mut work = StepMeter { steps: 0, allowed: steps };
        if !is_member(self.machine.get(), text, &mut work)? {
            return Ok(None);
        }
        let (spans, asked) = (vec![None; self.groups], vec![false; self.groups]);
        let mut captured = MemberCaptures { spans, was_matched: asked };
        let good = self.part.find(text, 0, &mut work, &mut captured)?;
        Ok(good.then_some(captured))
    }
}

/// Returns `true` if the automaton accepts the string.
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
    limits: AutomatonLimits,
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
        | ExpressionNode::Custom(..)
        | ExpressionNode::Complement(_)
        | ExpressionNode::Edits(..)
        | ExpressionNode::Rewrite { .. } => CaptureForm::Plain,
    };
    Ok(CapturePart { form, groups: first..*groups })
}

fn part_automaton(
    expression: &Expression,
    limits: AutomatonLimits,
) -> Result<PartAutomaton, Error> {
    match Automaton::new(expression, limits) {
        Ok(machine) => Ok(Some(ForkSafeAutomaton::new(Arc::new(machine)))),
        Err(Error::Language { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl CapturePart {
    /// Finds the groups in `text`, which begins at `offset` of the whole string, and writes their
    /// spans to `found`. Returns whether `text` is a member.
    fn find(
        &self,
        text: &[u8],
        offset: usize,
        work: &mut StepMeter,
        found: &mut MemberCaptures,
    ) -> Result<bool, Error> {
        match &self.form {
            CaptureForm::Plain => {}
            CaptureForm::Pattern(program) => {
                let Ok(text) = std::str::from_utf8(text) else { return Ok(false) };
                let Some(spans) = group_spans(program, text, work)? else { return Ok(false) };
                for (group, span) in self.groups.clone().zip(spans) {
                    found.spans[group] = span.map(|(start, end)| offset + start..offset + end);
                    found.was_matched[group] = true;
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

/// Splits the string among the parts of a sequence, and finds the groups of each.
fn find_each(
    parts: &[(PartAutomaton, CapturePart)],
    text: &[u8],
    offset: usize,
    work: &mut StepMeter,
    found: &mut MemberCaptures,
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
