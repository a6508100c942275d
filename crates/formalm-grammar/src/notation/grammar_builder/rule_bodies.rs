//! Translation of right-hand sides: names become rule and terminal indices, and templates are
//! expanded.

use formalm_automata::{Automaton, AutomatonLimits, Expression};
use formalm_core::{Error, LazyDfa, SourceSpan};

use super::{GrammarBuilder, MAX_DEPTH};
use crate::grammar::{Lexing, RuleBody};
use crate::notation::lark::definition_attributes::DefinitionAttributes;
use crate::notation::lark::is_terminal;
use crate::notation::syntax_tree::{template_name, weight};
use crate::notation::{RuleSource, SyntaxTree};
use crate::trees::tree_shape::RuleTreeShape;

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
                let at = self.terminals.anonymous(atom, &self.names)?;
                self.rules.lexeme(
                    at,
                    atom.is_string && !rule.shown.keeps_all_lexemes,
                    &self.terminals,
                )
            }
            SyntaxTree::Name(name, arguments, span) => {
                let parameter = rule.parameters.iter().position(|one| one == name);
                if let Some(at) = parameter.filter(|_| !arguments.is_empty()) {
                    let name = template_name(&given[at]);
                    if !self.names.templates.contains_key(name.as_str()) {
                        return Err(self.names.not_a_template(&name, *span));
                    }
                    let list = self.rules.arguments(arguments, rule, given)?;
                    return Ok(RuleBody::Rule(self.rules.rule(&name, list, *span, &self.names)?));
                }
                if let Some(at) = parameter {
                    self.rules.count_expansion(weight(&given[at], &HIDE_STRINGS, &[]))?;
                    return self.body(&given[at], argument_context(rule), &[]);
                }
                if self.names.has_terminal(name) {
                    let at = self.terminals.named(name, *span, &self.names)?;
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all_lexemes;
                    return Ok(self.rules.lexeme(at, hidden, &self.terminals));
                }
                let list = self.rules.arguments(arguments, rule, given)?;
                if let Some(at) = self.names.level(name) {
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all_lexemes;
                    return Ok(self.rules.lexeme(at, hidden, &self.terminals));
                }
                if let Some(at) = self.terminals.embedded(name, *span, &self.names) {
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all_lexemes;
                    return Ok(self.rules.lexeme(at, hidden, &self.terminals));
                }
                if let Some((name, _)) =
                    self.names.source.declared.iter().find(|one| one.0 == *name)
                {
                    let what = if is_terminal(name) { "terminal" } else { "rule" };
                    let message = format!("the {what} {name} is declared but has no definition");
                    let hint = "define it, or pass it as a language: languages={name: language}; \
                                for indentation terminals, pass indentation=Indentation(...)";
                    return Err(self.names.refuse(*span, &message, Some(hint)));
                }
                RuleBody::Rule(self.rules.rule(name, list, *span, &self.names)?)
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
                let size = self.names.size(one, rule, given);
                let one = self.body(one, rule, given)?;
                self.rules.maybe(one, size)
            }
            SyntaxTree::Difference(first, second, span) => {
                RuleBody::Terminal(self.terminals.difference(first, second, *span, &self.names)?)
            }
            SyntaxTree::Intersection(_, span) | SyntaxTree::Complement(_, span) => {
                let message = "& and ~ apply to terminals only: the language of a rule may have no \
                               complement";
                let hint = Some("move this part into a terminal (a name in capitals)");
                return Err(self.names.refuse(*span, message, hint));
            }
        })
    }

    /// Returns the body of a rule with `max_bytes` or `stop`: its strings are one lexeme, or empty.
    pub(super) fn bounded_rule_body(&mut self, rule: &RuleSource) -> Result<RuleBody, Error> {
        if !rule.parameters.is_empty() {
            let message = "a template cannot have max_bytes or stop";
            return Err(self.names.refuse(
                rule.span,
                message,
                Some("give them to a terminal in the template"),
            ));
        }
        if self.names.lexing == Lexing::First {
            let message = format!(
                "{} has max_bytes or stop, which lexing=\"first\" does not support",
                rule.name
            );
            let hint = Some("use lexing=\"longest\" or lexing=\"any\"");
            return Err(self.names.refuse(rule.span, &message, hint));
        }
        let language =
            self.names.apply_bounds(&rule.body, &rule.attributes, MAX_DEPTH, rule.span)?;
        let whole = Automaton::of(&language, AutomatonLimits::default())?;
        let empty = whole.is_some_and(|one| one.is_accepting(one.start()));
        // No lexeme is empty.
        let some = language.difference(Expression::literals(vec![Vec::new()]))?;
        let (terminals, names) = (&mut self.terminals, &self.names);
        let terminal = terminals.language_terminal(&rule.name, 0, some, rule.span, names)?;
        let terminal = RuleBody::Terminal(terminal);
        Ok(if empty { RuleBody::Repeat(Box::new(terminal), 0, Some(1)) } else { terminal })
    }
}

/// The context of substituted arguments: a rule without parameters.
pub(super) static HIDE_STRINGS: RuleSource = nameless(RuleTreeShape::SOME);
/// As [`HIDE_STRINGS`], showing strings too.
pub(super) static KEEP_STRINGS: RuleSource = nameless(RuleTreeShape::ALL);

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
pub(super) fn argument_context(template: &RuleSource) -> &'static RuleSource {
    if template.shown.keeps_all_lexemes { &KEEP_STRINGS } else { &HIDE_STRINGS }
}
