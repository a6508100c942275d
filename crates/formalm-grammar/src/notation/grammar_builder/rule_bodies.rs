//! Translation of right-hand sides: names become rule and terminal indices, and templates are
//! expanded.

use formalm_core::{Error, Resource, SourceSpan};

use super::GrammarBuilder;
use crate::grammar::RuleBody;
use crate::limits::check;
use crate::notation::lark::definition_attributes::DefinitionAttributes;
use crate::notation::lark::is_terminal;
use crate::notation::syntax_tree::{keep_all_strings, substitute, template_name, weight};
use crate::notation::{RuleSource, SyntaxTree};
use crate::trees::tree_shape::RuleTreeShape;

/// Maximum parts of template arguments expanded in all rules together. Chosen, not measured.
const MAX_EXPANDED_PARTS: u64 = 200_000;

impl GrammarBuilder<'_> {
    pub(super) fn body(
        &mut self,
        tree: &SyntaxTree,
        rule: &RuleSource,
        given: &[SyntaxTree],
    ) -> Result<RuleBody, Error> {
        Ok(match tree {
            SyntaxTree::Atom(atom) if atom.text.as_deref() == Some("") => RuleBody::Empty,
            SyntaxTree::Atom(atom) => {
                let at = self.anonymous(atom)?;
                self.lexeme(at, atom.is_string && !rule.shown.keeps_all_lexemes)
            }
            SyntaxTree::Name(name, arguments, span) => {
                let parameter = rule.parameters.iter().position(|one| one == name);
                if let Some(at) = parameter.filter(|_| !arguments.is_empty()) {
                    let name = template_name(&given[at]);
                    if !self.templates.contains_key(name.as_str()) {
                        return Err(self.not_a_template(&name, *span));
                    }
                    let list = self.arguments(arguments, rule, given)?;
                    return Ok(RuleBody::Rule(self.rule(&name, list, *span)?));
                }
                if let Some(at) = parameter {
                    self.count_expansion(weight(&given[at], &HIDE_STRINGS, &[]))?;
                    return self.body(&given[at], argument_context(rule), &[]);
                }
                if self.has_terminal(name) {
                    let at = self.named(name, *span)?;
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all_lexemes;
                    return Ok(self.lexeme(at, hidden));
                }
                let list = self.arguments(arguments, rule, given)?;
                if let Some(at) = self.level(name) {
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all_lexemes;
                    return Ok(self.lexeme(at, hidden));
                }
                if let Some(at) = self.embedded(name, *span) {
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all_lexemes;
                    return Ok(self.lexeme(at, hidden));
                }
                if let Some((name, _)) = self.source.declared.iter().find(|one| one.0 == *name) {
                    let what = if is_terminal(name) { "terminal" } else { "rule" };
                    let message = format!("the {what} {name} is declared but has no definition");
                    let hint = "define it, or pass it as a language: languages={name: language}; \
                                for indentation terminals, pass indentation=Indentation(...)";
                    return Err(self.refuse(*span, &message, Some(hint)));
                }
                RuleBody::Rule(self.rule(name, list, *span)?)
            }
            SyntaxTree::Sequence(list) => RuleBody::Sequence(
                list.iter().map(|one| self.body(one, rule, given)).collect::<Result<_, _>>()?,
            ),
            SyntaxTree::Choice(list) => RuleBody::Choice(
                list.iter().map(|one| self.body(one, rule, given)).collect::<Result<_, _>>()?,
            ),
            SyntaxTree::Repeat(one, min, max) => {
                RuleBody::Repeat(Box::new(self.body(one, rule, given)?), *min, *max)
            }
            SyntaxTree::Optional(one) => {
                let size = self.size(one, rule, given);
                let one = self.body(one, rule, given)?;
                self.maybe(one, size)
            }
            SyntaxTree::Difference(first, second, span) => {
                RuleBody::Terminal(self.difference(first, second, *span)?)
            }
            SyntaxTree::Intersection(_, span) | SyntaxTree::Complement(_, span) => {
                let message = "& and ~ apply to terminals only: the language of a rule may have no \
                               complement";
                let hint = Some("move this part into a terminal (a name in capitals)");
                return Err(self.refuse(*span, message, hint));
            }
        })
    }
}

impl GrammarBuilder<'_> {
    /// Substitutes the arguments of a rule into those of a template inside it.
    fn arguments(
        &self,
        arguments: &[SyntaxTree],
        rule: &RuleSource,
        given: &[SyntaxTree],
    ) -> Result<Vec<SyntaxTree>, Error> {
        let weights = match arguments {
            [] => Vec::new(),
            _ => given.iter().map(|one| weight(one, &HIDE_STRINGS, &[])).collect(),
        };
        let mut list = Vec::with_capacity(arguments.len());
        for one in arguments {
            self.count_expansion(weight(one, rule, &weights))?;
            let mut one = substitute(one, rule, given);
            // An argument already had its strings kept or not where it was written.
            if rule.shown.keeps_all_lexemes && !std::ptr::eq(rule, &KEEP_STRINGS) {
                keep_all_strings(&mut one);
            }
            list.push(one);
        }
        Ok(list)
    }

    /// Counts expanded parts: the names of endless templates grow with every expansion, and may
    /// double.
    fn count_expansion(&self, parts: u64) -> Result<(), Error> {
        self.argument_context.set(self.argument_context.get().saturating_add(parts));
        check(Resource::Terms, self.argument_context.get(), MAX_EXPANDED_PARTS)
    }
}

/// The context of substituted arguments: a rule without parameters.
static HIDE_STRINGS: RuleSource = nameless(RuleTreeShape::SOME);
/// As [`HIDE_STRINGS`], showing strings too.
static KEEP_STRINGS: RuleSource = nameless(RuleTreeShape::ALL);

const fn nameless(shown: RuleTreeShape) -> RuleSource {
    RuleSource {
        name: String::new(),
        parameters: Vec::new(),
        body: SyntaxTree::Sequence(Vec::new()),
        span: SourceSpan { start: 0, end: 0 },
        shown,
        attributes: DefinitionAttributes::NONE,
    }
}

/// Returns the context of a template's arguments, which takes over its tree signs.
pub(in crate::notation) fn argument_context(template: &RuleSource) -> &'static RuleSource {
    if template.shown.keeps_all_lexemes { &KEEP_STRINGS } else { &HIDE_STRINGS }
}
