//! What the groups of a language capture in one of its members.
//!
//! Each part of an expression sees its own piece of the text only, as its set of texts demands.
//! So a text is divided among the parts first, with their machines ([`divide`]), and every
//! pattern is then matched against its piece from end to end.

mod split;

use std::ops::Range;
use std::sync::Arc;

use crate::automaton::fork_safe_automaton::Lasting;
use crate::automaton::{Automaton, Limits};
use crate::error::Error;
use crate::expression::{Expression, Node};
use crate::machine::Machine;
use crate::syntax::capture_matcher::{Program, out_of_steps, spans};
use crate::terms::UNBOUNDED;
use crate::terms::derivative::Work;

use split::{Division, divide};

pub use split::divided;

/// A language prepared to tell what its groups capture.
///
/// The groups are those of [`Expression::groups`]. A union shows those of its first operand that
/// has the text; a sequence is divided so that every part in turn takes as much as it can; a
/// repetition shows those of its last member; an intersection those of all its operands; a
/// difference those of its left one.
#[derive(Debug)]
pub struct Grouping {
    machine: Lasting,
    part: Part,
    groups: usize,
}

/// What the groups of a language captured in a member, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Where each group begins and ends, in bytes; `None` if it took no part.
    pub spans: Vec<Option<Range<usize>>>,
    /// Whether the pattern of the group was matched against a piece of the text at all, unlike
    /// those in operands of a union that were not chosen and in repetitions of nothing.
    pub asked: Vec<bool>,
}

/// An expression with what is needed to find its groups; `groups` are theirs.
#[derive(Debug)]
struct Part {
    form: Form,
    groups: Range<usize>,
}

#[derive(Debug)]
enum Form {
    /// No groups.
    Plain,
    Pattern(Program),
    Union(Vec<(Member, Part)>),
    Concat(Vec<(Member, Part)>),
    Repeat {
        member: Member,
        part: Box<Part>,
        least: usize,
        most: Option<usize>,
    },
    All(Vec<Part>),
}

/// The machine of a part; none if the part has no member.
pub(super) type Member = Option<Lasting>;

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
        let part = prepared(expression, limits, &mut groups)?;
        Ok(Grouping { machine: Lasting::new(machine), part, groups })
    }

    /// What the groups capture in a text; nothing at all if it is not a member.
    ///
    /// A step is an instruction of a pattern or a byte read by a machine.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] after `steps` steps, or when too much memory would be needed.
    pub fn captured(&self, text: &[u8], steps: u64) -> Result<Option<Captured>, Error> {
        let mut work = Work { steps: 0, allowed: steps };
        if !is_member(self.machine.get(), text, &mut work)? {
            return Ok(None);
        }
        let (spans, asked) = (vec![None; self.groups], vec![false; self.groups]);
        let mut captured = Captured { spans, asked };
        let good = self.part.find(text, 0, &mut work, &mut captured)?;
        Ok(good.then_some(captured))
    }
}

/// Whether the machine accepts the text.
fn is_member(machine: &Automaton, text: &[u8], work: &mut Work) -> Result<bool, Error> {
    work.steps = work.steps.saturating_add(text.len() as u64);
    if work.steps > work.allowed {
        return Err(out_of_steps(work));
    }
    let end = machine.walk(machine.start(), text)?;
    Ok(end.is_ok_and(|state| machine.is_accepting(state)))
}

/// Prepares an expression whose first group has the number `groups`, and counts its groups.
fn prepared(expression: &Expression, limits: Limits, groups: &mut usize) -> Result<Part, Error> {
    let first = *groups;
    if !expression.has_groups() {
        return Ok(Part { form: Form::Plain, groups: first..first });
    }
    let mut all = |list: &[Expression]| -> Result<Vec<(Member, Part)>, Error> {
        list.iter().map(|one| Ok((member(one, limits)?, prepared(one, limits, groups)?))).collect()
    };
    let form = match expression.node() {
        Node::Pattern(pattern) => {
            *groups += pattern.groups.len();
            Form::Pattern(Program::new(pattern))
        }
        Node::Union(list) => Form::Union(all(list)?),
        Node::Concat(list) => Form::Concat(all(list)?),
        Node::Repeat(one, least, most) => Form::Repeat {
            member: member(one, limits)?,
            part: Box::new(prepared(one, limits, groups)?),
            least: *least as usize,
            most: (*most != UNBOUNDED).then_some(*most as usize),
        },
        Node::Intersection(list) => {
            let parts: Result<_, Error> =
                list.iter().map(|one| prepared(one, limits, groups)).collect();
            Form::All(parts?)
        }
        Node::Difference(left, _) => Form::All(vec![prepared(left, limits, groups)?]),
        Node::Lexeme(_)
        | Node::Texts(_)
        | Node::Recognized(_)
        | Node::Complement(_)
        | Node::Edits(..)
        | Node::Rewrite { .. } => Form::Plain,
    };
    Ok(Part { form, groups: first..*groups })
}

fn member(expression: &Expression, limits: Limits) -> Result<Member, Error> {
    match Automaton::new(expression, limits) {
        Ok(machine) => Ok(Some(Lasting::new(Arc::new(machine)))),
        Err(Error::Language { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Part {
    /// Writes the spans of the groups in `text`, which begins at `offset` of the whole text, into
    /// `found`; whether the text is a member.
    fn find(
        &self,
        text: &[u8],
        offset: usize,
        work: &mut Work,
        found: &mut Captured,
    ) -> Result<bool, Error> {
        match &self.form {
            Form::Plain => {}
            Form::Pattern(program) => {
                let Ok(text) = std::str::from_utf8(text) else { return Ok(false) };
                let Some(spans) = spans(program, text, work)? else { return Ok(false) };
                for (group, span) in self.groups.clone().zip(spans) {
                    found.spans[group] = span.map(|(start, end)| offset + start..offset + end);
                    found.asked[group] = true;
                }
            }
            Form::Union(operands) => {
                for (machine, part) in operands {
                    if let Some(machine) = machine
                        && is_member(machine.get(), text, work)?
                    {
                        return part.find(text, offset, work, found);
                    }
                }
                return Ok(false);
            }
            Form::Concat(parts) => return find_each(parts, text, offset, work, found),
            Form::Repeat { member, part, least, most } => {
                let member = |_| machine_of(member);
                let division = Division { least: *least, most: *most, member: &member };
                let Some(ends) = divide(text, &division, work)? else { return Ok(false) };
                if let Some((&end, before)) = ends.split_last() {
                    let start = before.last().copied().unwrap_or(0);
                    return part.find(&text[start..end], offset + start, work, found);
                }
            }
            Form::All(parts) => {
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

fn machine_of(member: &Member) -> Option<&dyn Machine> {
    member.as_ref().map(|machine| machine.get() as &dyn Machine)
}

/// Divides the text among the parts of a sequence, and finds the groups of each.
fn find_each(
    parts: &[(Member, Part)],
    text: &[u8],
    offset: usize,
    work: &mut Work,
    found: &mut Captured,
) -> Result<bool, Error> {
    let member = |number: usize| machine_of(&parts[number].0);
    let division = Division { least: parts.len(), most: Some(parts.len()), member: &member };
    let Some(ends) = divide(text, &division, work)? else { return Ok(false) };
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
