//! Edits, rewrites, reversal and edit scripts as operations on expressions, with their checks.

use formalm_core::{Error, InterruptCheck, Resource, check_limit};

use crate::automaton::AutomatonLimits;
use crate::language_expression::{Expression, ExpressionNode};
use crate::terms::expression_lowering::ExpressionLowering;
use crate::transduce::{EditRules, EditScript, reversed_pattern, reversed_text, script};

/// Maximum number of edits; the cost of a state grows with its square. Chosen, not measured.
const MAX_EDITS: u64 = 100;

impl Expression {
    /// Returns the strings within some edits of a member, members included.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if members may not be valid UTF-8, since edits count characters, or if
    /// a group cannot be a region; [`Error::Limit`] for more than 100 edits.
    pub fn edits(self, edits: EditRules) -> Result<Expression, Error> {
        check_limit(Resource::Edits, u64::from(edits.budget), MAX_EDITS)?;
        let regions = [&edits.after, &edits.before];
        if !self.is_utf8() || regions.into_iter().flatten().any(|region| !region.is_utf8()) {
            return Err(refused(
                "edits count characters, but some member may not be valid UTF-8",
                "apply edits to a language of Unicode strings",
            ));
        }
        if let Some(name) = &edits.group {
            let ExpressionNode::Pattern(pattern) = self.node() else {
                return Err(refused(
                    "region must name a group of a single pattern, not of a combination",
                    "edit the pattern before combining it",
                ));
            };
            formalm_regex::check_region(pattern, name)?;
        }
        Expression::combine(ExpressionNode::Edits(self, edits))
    }

    /// Replaces occurrences of the rules' sources in members by strings of the targets; `optional`
    /// also keeps occurrences. See `transduce/rewrite_rules.rs` for the order of obligatory
    /// replacement.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] for an empty or repeated source.
    pub fn rewrite(
        self,
        rules: Vec<(String, Expression)>,
        optional: bool,
    ) -> Result<Expression, Error> {
        let mut sources: Vec<&str> = rules.iter().map(|(source, _)| source.as_str()).collect();
        sources.sort_unstable();
        if sources.first() == Some(&"") {
            return Err(refused(
                "the empty string cannot be replaced: it occurs everywhere",
                "give a non-empty string to replace",
            ));
        }
        if let Some(pair) = sources.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("{:?} is replaced by two rules", pair[0]);
            return Err(refused(&message, "merge them into one rule with both replacements"));
        }
        Expression::combine(ExpressionNode::Rewrite { original: self, rules, optional })
    }

    /// Returns the members read from right to left, character by character.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] for what reads in one direction only: atomic groups, possessive
    /// quantifiers, and obligatory rewriting of strings that may overlap.
    pub fn reverse(&self) -> Result<Expression, Error> {
        let all = |list: &[Expression]| {
            list.iter().map(Expression::reverse).collect::<Result<Vec<_>, _>>()
        };
        match self.node() {
            ExpressionNode::Pattern(pattern) => Ok(Expression::pattern(reversed_pattern(pattern)?)),
            ExpressionNode::Lexeme(_) => Err(refused(
                "a terminal that looks beyond its lexeme cannot be reversed",
                "reverse the pattern instead",
            )),
            ExpressionNode::Literals(list) => {
                Ok(Expression::literals(list.iter().map(|text| reversed_text(text)).collect()))
            }
            ExpressionNode::Custom(..) => Err(refused(
                "a language with a custom reader can be read in one direction only",
                "reverse the other parts before combining them with it",
            )),
            ExpressionNode::Union(list) => Expression::combine(ExpressionNode::Union(all(list)?)),
            ExpressionNode::Concat(list) => {
                let list: Result<Vec<_>, _> = list.iter().rev().map(Expression::reverse).collect();
                Expression::combine(ExpressionNode::Concat(list?))
            }
            ExpressionNode::Repeat(one, min, max) => {
                Expression::combine(ExpressionNode::Repeat(one.reverse()?, *min, *max))
            }
            ExpressionNode::Intersection(list) => {
                Expression::combine(ExpressionNode::Intersection(all(list)?))
            }
            ExpressionNode::Difference(left, right) => left.reverse()?.difference(right.reverse()?),
            ExpressionNode::Complement(one) => one.reverse()?.complement(),
            ExpressionNode::Edits(one, edits) => {
                let turned = |region: &Option<Expression>| {
                    region.as_ref().map(Expression::reverse).transpose()
                };
                let (after, before) = (turned(&edits.before)?, turned(&edits.after)?);
                one.reverse()?.edits(EditRules { after, before, ..edits.clone() })
            }
            ExpressionNode::Rewrite { original, rules, optional } => {
                if !optional && rules.iter().any(|(one, _)| overlaps(one, rules)) {
                    return Err(refused(
                        "obligatory rewriting of overlapping strings cannot be reversed",
                        "reverse the language before rewriting it, or rewrite with optional=True",
                    ));
                }
                let turned = rules.iter().map(|(source, target)| {
                    Ok((source.chars().rev().collect(), target.reverse()?))
                });
                original.reverse()?.rewrite(turned.collect::<Result<_, Error>>()?, *optional)
            }
        }
    }

    /// Returns the fewest edits under which `text` belongs to an expression made by
    /// [`Expression::edits`]. Returns `None` if it does not belong, or for other expressions.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], [`Error::Interrupted`].
    pub fn edit_script(
        &self,
        text: &str,
        limits: AutomatonLimits,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<EditScript>, Error> {
        let ExpressionNode::Edits(original, edits) = self.node() else { return Ok(None) };
        let mut lowering = ExpressionLowering::new(limits.work());
        let edited = lowering.lower_edits(original, edits);
        let edited = edited.map_err(|error| lowering.work().limit_error(error))?;
        let text: Vec<char> = text.chars().collect();
        script(&mut lowering.into_deriver(), edited, &text, limits.bytes, poll)
    }
}

/// Returns `true` if an occurrence of `one` may share characters with that of any source.
fn overlaps(one: &str, rules: &[(String, Expression)]) -> bool {
    rules.iter().any(|(other, _)| {
        let inner = one != other && other.contains(one);
        let starts = other.char_indices().map(|(at, _)| &other[at..]).skip(1);
        inner || starts.into_iter().any(|end| one.starts_with(end))
    })
}

fn refused(message: &str, hint: &str) -> Error {
    Error::language(message, Some(hint))
}
