//! Emptiness of intersections without a search, in three cases: a recognizer or a pure term with
//! bounded length, and a required letter that another operand lacks.

use crate::terms::custom_language::{ANY_CHAR, RecognizerPosition};
use crate::terms::{TermArena, TermId, TermNode};

/// Maximum depth of terms examined. Chosen, not measured.
const MAX_TERM_DEPTH: usize = 32;

/// Maximum number of terms examined for one question; beyond it there is no answer. Chosen, not
/// measured.
const MAX_TERMS: usize = 1 << 14;

/// The question whether a term has members.
pub(crate) struct EmptinessShortcuts<'a> {
    terms: &'a TermArena,
    /// Number of terms that may still be examined.
    left: usize,
}

impl EmptinessShortcuts<'_> {
    /// Returns whether a term has members, where a shortcut decides.
    pub(crate) fn is_nonempty(terms: &TermArena, term: TermId) -> Option<bool> {
        let TermNode::And(list) = terms.get(term) else { return None };
        if (EmptinessShortcuts { terms, left: MAX_TERMS }).has_letter_conflict(list) {
            Some(false)
        } else {
            custom_member_of_length(terms, list).or_else(|| pure_member_of_length(terms, list))
        }
    }

    /// Returns `true` if every string of one operand has a letter that another operand lacks.
    fn has_letter_conflict(&mut self, list: &[TermId]) -> bool {
        list.iter().any(|&other| {
            let properties = self.terms.properties(other);
            let letters = properties.alphabet.ascii;
            let mut differs = |&one: &TermId| {
                one != other && self.requires_ascii_outside(one, letters, MAX_TERM_DEPTH)
            };
            properties.pure && letters != !0 && list.iter().any(&mut differs)
        })
    }

    /// Returns `true` if every string of a term has an ASCII byte outside `letters`.
    fn requires_ascii_outside(&mut self, id: TermId, letters: u128, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let Some(fewer) = self.left.checked_sub(1) else { return false };
        self.left = fewer;
        let terms = self.terms;
        let mut needs_other = |&id: &TermId| self.requires_ascii_outside(id, letters, depth);
        match terms.get(id) {
            TermNode::Dawg(dag) => terms.dawgs.requires_ascii_outside(*dag, letters),
            TermNode::Cat(head, tail) => needs_other(head) || needs_other(tail),
            TermNode::Alt(list) => list.iter().all(&mut needs_other),
            TermNode::And(list) => list.iter().any(&mut needs_other),
            TermNode::Repeat { body, min, .. } => *min > 0 && needs_other(body),
            _ => false,
        }
    }
}

/// Decides whether "this recognizer's language, and a number of characters" has members, where
/// the recognizer knows.
fn custom_member_of_length(terms: &TermArena, list: &[TermId]) -> Option<bool> {
    let &[one, other] = list else { return None };
    let (at, count) = match (terms.get(one), terms.get(other)) {
        (&TermNode::Custom(at), _) => (at, other),
        (_, &TermNode::Custom(at)) => (at, one),
        _ => return None,
    };
    let lengths = terms.recognizers.lengths(at)?;
    if at.is_char_boundary() {
        let (least, most) = terms.any_char_counts(count)?;
        return lengths.has_member_of_length(at.state, least, most);
    }
    let TermNode::Cat(rest, count) = *terms.get(count) else { return None };
    let (least, most) = terms.any_char_counts(count)?;
    let (body, ..) = terms.repetition(count)?;
    let (&TermNode::Dawg(rest), &TermNode::Dawg(body)) = (terms.get(rest), terms.get(body)) else {
        return None;
    };
    // The counter reads whatever completes the character.
    let read = at.bytes_read()?.try_fold(body, |dag, byte| terms.dawgs.step(dag, byte))?;
    if read == rest { lengths.has_member_after_non_ascii(at.state, least, most) } else { None }
}

/// Decides whether "a pure term, and a number of characters" has members, where the length of the
/// shortest ones or a loop at their end decides it.
fn pure_member_of_length(terms: &TermArena, list: &[TermId]) -> Option<bool> {
    let &[one, other] = list else { return None };
    let (id, (least, most)) = match (terms.any_char_counts(one), terms.any_char_counts(other)) {
        (None, Some(counts)) => (one, counts),
        (Some(counts), None) => (other, counts),
        _ => return None,
    };
    let properties = terms.properties(id);
    if !properties.pure || !properties.min_len_is_exact || !terms.is_utf8(id) {
        return None;
    }
    // The shortest members have at most `upper` characters, and no member has fewer than `lower`.
    let (upper, lower) = (properties.min_len, terms.min_chars_of_utf8(id));
    if lower > most {
        return Some(false);
    }
    let in_reach = |longer: u32| upper.max(least).checked_add(longer).is_some_and(|it| it <= most);
    let is_member = least <= lower && upper <= most
        || properties.appendable_chars.is_some_and(|step| in_reach(step.get() - 1));
    is_member.then_some(true)
}

impl RecognizerPosition {
    /// Returns the bytes read of the current character, where they are known.
    fn bytes_read(self) -> Option<impl Iterator<Item = u8>> {
        let (lead, length) = match self.least {
            _ if self.bits == ANY_CHAR => return None,
            0x80 => (0xC0, 2),
            0x800 => (0xE0, 3),
            0x1_0000 => (0xF0, 4),
            _ => return None,
        };
        let bits = self.bits << (6 * self.left);
        let byte = move |at: u8| {
            let mark = if at == 0 { lead } else { 0x80 };
            mark | (bits >> (6 * (length - 1 - at))) as u8 & 0x3F
        };
        Some((0..length - self.left).map(byte))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use formalm_core::{Error, LazyDfa, StateId};

    use crate::tests::expression;
    use crate::{Automaton, AutomatonLimits, Expression};

    /// Returns `true` if both automata accept a common string from these states.
    fn have_common_completion(
        one: (&Automaton, StateId),
        other: (&Automaton, StateId),
    ) -> Result<bool, Error> {
        let mut open = vec![(one.1, other.1)];
        let mut seen = HashSet::from([(one.1, other.1)]);
        while let Some((left, right)) = open.pop() {
            if one.0.is_accepting(left) && other.0.is_accepting(right) {
                return Ok(true);
            }
            for byte in 0..=255 {
                let next = (one.0.step(left, byte)?, other.0.step(right, byte)?);
                if let (Some(left), Some(right)) = next
                    && seen.insert((left, right))
                {
                    open.push((left, right));
                }
            }
        }
        Ok(false)
    }

    #[test]
    fn intersections_are_viable_where_both_sides_have_a_common_completion() -> Result<(), Error> {
        let patterns = [
            "[0-9:.Zz+-]*",
            "[0-9]{4}-[0-9]{2}[Tt][0-9:]+[Zz]",
            "(?s:.*)T(?s:.*)",
            "(?s:.*)(T|t)[^Z+-]+(?s:.*)",
            "([ab]c|é)*",
            "(?s:.*)é(?s:.*)",
            "(?s:.*)(xy|[xX]z){1,3}(?s:.*)",
            "(x?y?z?)*",
            "a{0,3}(Tb){0,2}",
            "(?s:.){2,4}",
            "(?s:.){3}",
            ".{4,}",
            "[^x]{0,2}",
            "(aTb)+",
            "[ab]*(cTb){2,}|é{2,}",
            "(é|[a-z]b?)+",
        ];
        let texts = ["", "2", "2010-10T", "2010-10t", "2010-10T1", "é", "bc", "aTb", "xy", "X"];
        let machine = |one: &Expression| Automaton::new(one, AutomatonLimits::default());
        for one in patterns {
            for other in patterns {
                let (left, right) = (machine(&expression(one))?, machine(&expression(other))?);
                let both = Expression::intersection(vec![expression(one), expression(other)])?;
                // An empty intersection is refused.
                let both = machine(&both).ok();
                for text in texts {
                    let read = |automaton: &Automaton| {
                        let read = automaton.walk(automaton.start(), text.as_bytes());
                        Ok::<_, Error>(read?.ok())
                    };
                    let expected = match (read(&left)?, read(&right)?) {
                        (Some(one), Some(other)) => {
                            have_common_completion((&left, one), (&right, other))?
                        }
                        _ => false,
                    };
                    let found = match &both {
                        Some(both) => read(both)?.is_some(),
                        None => false,
                    };
                    assert_eq!(found, expected, "{one} and {other} behind {text:?}");
                }
            }
        }
        Ok(())
    }

    /// Shared terms are looked at once: there are over a trillion paths through these unions.
    #[test]
    fn lengths_of_shared_unions_take_no_time_for_each_path() -> Result<(), Error> {
        let (mut before, mut both) = (expression("c*"), expression("e+"));
        for _ in 0..60 {
            let longer = [("a+", &both), ("b", &before)]
                .map(|(head, tail)| Expression::concat(vec![expression(head), tail.clone()]));
            let next = Expression::union(longer.into_iter().collect::<Result<_, _>>()?)?;
            before = std::mem::replace(&mut both, next);
        }
        let lengths = expression("(?s:.){50,300}");
        let both = Expression::intersection(vec![both, lengths])?;
        let automaton = Automaton::new(&both, AutomatonLimits::default())?;
        assert!(automaton.walk(automaton.start(), b"aab")?.is_ok());
        Ok(())
    }
}
