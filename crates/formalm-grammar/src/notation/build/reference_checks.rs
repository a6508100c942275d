//! Reference checks: every name in a right-hand side must be defined, and only templates take
//! arguments.

use formalm_automata::{Error, Span};

use crate::notation::build::GrammarBuilder;
use crate::notation::syntax_tree::unwrap_single;
use crate::notation::{RuleSource, SyntaxTree};

impl GrammarBuilder<'_> {
    /// Refuses undefined names and misplaced arguments, including those in unused definitions.
    pub(in crate::notation) fn check_references(&self) -> Result<(), Error> {
        let source = self.source;
        for one in &source.rules {
            self.check_names(&one.body, Some(&one.parameters))?;
        }
        let terminals = source.terminals.iter().map(|one| &one.body);
        let anywhere = source.ignored.iter().chain(&source.whole).map(|one| &one.0);
        for body in terminals.chain(anywhere) {
            self.check_names(body, None)?;
        }
        Ok(())
    }

    /// Checks a right-hand side. `parameters` is `None` for a terminal, whose names are resolved
    /// when it is built.
    fn check_names(&self, body: &SyntaxTree, parameters: Option<&[String]>) -> Result<(), Error> {
        // A template passed as an argument receives its own arguments where its parameter occurs.
        let mut open = vec![(body, false)];
        while let Some((tree, is_argument)) = open.pop() {
            match unwrap_single(tree) {
                SyntaxTree::Atom(_) => {}
                SyntaxTree::Name(name, arguments, place) => {
                    self.check_name(name, arguments, *place, parameters, is_argument)?;
                    open.extend(arguments.iter().rev().map(|one| (one, true)));
                }
                SyntaxTree::Sequence(list)
                | SyntaxTree::Choice(list)
                | SyntaxTree::Intersection(list, _) => {
                    open.extend(list.iter().rev().map(|one| (one, false)));
                }
                SyntaxTree::Repeat(one, ..)
                | SyntaxTree::Optional(one)
                | SyntaxTree::Complement(one, _) => {
                    open.push((one, false));
                }
                SyntaxTree::Difference(first, second, _) => {
                    open.extend([(&**second, false), (&**first, false)]);
                }
            }
        }
        Ok(())
    }

    fn check_name(
        &self,
        name: &str,
        arguments: &[SyntaxTree],
        place: Span,
        parameters: Option<&[String]>,
        is_argument: bool,
    ) -> Result<(), Error> {
        if parameters.is_some_and(|all| all.iter().any(|one| one == name)) {
            return Ok(());
        }
        if let Some(rule) = self.templates.get(name) {
            let as_argument = is_argument && arguments.is_empty();
            if as_argument || rule.parameters.len() == arguments.len() {
                return Ok(());
            }
            return Err(self.wrong_argument_count(rule, arguments.len(), place));
        }
        if parameters.is_some() && !self.is_terminal_or_language(name) {
            return Err(self.refuse(place, &format!("{name} is not defined"), None));
        }
        if arguments.is_empty() { Ok(()) } else { Err(self.not_a_template(name, place)) }
    }

    pub(in crate::notation) fn wrong_argument_count(
        &self,
        rule: &RuleSource,
        given: usize,
        place: Span,
    ) -> Error {
        let (name, takes) = (&rule.name, rule.parameters.len());
        self.refuse(place, &format!("{name} takes {takes} arguments, not {given}"), None)
    }

    pub(in crate::notation) fn not_a_template(&self, name: &str, place: Span) -> Error {
        let message = format!("{name} is no template: it takes no arguments in braces");
        let hint =
            "a template is a rule: name{x}: …; numbers in braces repeat: A{2}, A{2,3}, A{2,}";
        self.refuse(place, &message, Some(hint))
    }

    fn is_terminal_or_language(&self, name: &str) -> bool {
        self.has_terminal(name)
            || self.is_embedded(name)
            || self.source.inlined.iter().any(|one| one.name == name)
            || self.source.declared.iter().any(|one| one.0 == *name)
    }
}
