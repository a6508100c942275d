//! Name resolution: the definitions of rules, templates, terminals and given languages.

use formalm_automata::{Error, Expression, Resource, Span};

use super::{GrammarBuilder, MAX_DEPTH};
use crate::grammar::{Embedded, Lexing, Node, Rule};
use crate::notation::syntax_tree::to_source;
use crate::notation::{SyntaxTree, TerminalSource};
use crate::trees::tree_shape::Shown;

/// Maximum number of template instances. Chosen, not measured.
const MAX_TEMPLATE_INSTANCES: usize = 10_000;

impl GrammarBuilder<'_> {
    /// Collects all names. Fails if one is defined twice.
    pub(super) fn collect_names(
        &mut self,
        languages: &[(String, Expression)],
    ) -> Result<(), Error> {
        for one in &self.source.terminals {
            let other = self.defined.insert(&one.name, one);
            // The same import may occur twice.
            if other.is_some_and(|other| one.imported.is_none() || one.imported != other.imported) {
                return Err(self.refuse(one.span, &format!("{} is defined twice", one.name), None));
            }
        }
        for one in &self.source.rules {
            if self.templates.insert(&one.name, one).is_some() {
                return Err(self.refuse(one.span, &format!("{} is defined twice", one.name), None));
            }
        }
        for (name, span) in &self.source.declared {
            let defined = self.defined.contains_key(name.as_str())
                || self.templates.contains_key(name.as_str());
            // Given languages are checked separately.
            let given = self.given.contains_key(name.as_str())
                || self.is_embedded(name)
                || self.level(name).is_some();
            if defined && !given {
                let message = format!("{name} is declared, and defined in the text as well");
                let hint = "leave out %declare, which is for languages that are given and levels";
                return Err(self.refuse(*span, &message, Some(hint)));
            }
        }
        for (at, (name, _)) in languages.iter().enumerate() {
            let declared = self.source.declared.iter().any(|one| one.0 == *name);
            let twice = languages[..at].iter().any(|one| one.0 == *name);
            let why = match self.defined.contains_key(name.as_str()) || twice {
                true => "is defined twice",
                false if !declared => "is not declared in the text",
                false => continue,
            };
            return Err(Error::Language {
                message: format!("the terminal {name} {why}"),
                span: None,
                hint: Some(format!("write %declare {name} on a line of its own, once")),
            });
        }
        self.collect_named_atoms();
        Ok(())
    }

    /// Collects named terminals by their atom: the same string in a rule is the same terminal.
    fn collect_named_atoms(&mut self) {
        // Of several names, Lark takes the last, with imported ones first.
        let first = self.lexing == Lexing::First;
        let mut all: Vec<&TerminalSource> = self.source.terminals.iter().collect();
        if first {
            all.sort_by_key(|one| one.imported.is_none());
        }
        for one in all {
            let atom = self.single_atom(&one.body, MAX_DEPTH);
            if let Some(atom) = atom.filter(|_| !one.attributes.are_bounds()) {
                match first {
                    true => drop(self.named_atoms.insert(atom.identity.clone(), one)),
                    false => drop(self.named_atoms.entry(atom.identity.clone()).or_insert(one)),
                }
            }
        }
    }

    /// Checks the names of given languages of any kind: each must be declared and must not be a
    /// rule.
    pub(super) fn check_sublanguage_names(&self, all: &[(String, Embedded)]) -> Result<(), Error> {
        for (at, (name, _)) in all.iter().enumerate() {
            let declared = self.source.declared.iter().any(|one| one.0 == *name)
                || self.source.inlined.iter().any(|one| one.name == *name);
            let twice = all[..at].iter().any(|one| one.0 == *name);
            let why = match self.templates.contains_key(name.as_str()) || twice {
                true => "is defined twice",
                false if !declared => "is not declared in the text",
                false => continue,
            };
            return Err(Error::Language {
                message: format!("the rule {name} {why}"),
                span: None,
                hint: Some(format!("write %declare {name} on a line of its own, once")),
            });
        }
        Ok(())
    }

    /// Returns the index of a rule or template instance.
    pub(super) fn rule(
        &mut self,
        name: &str,
        arguments: Vec<SyntaxTree>,
        span: Span,
    ) -> Result<usize, Error> {
        let Some(&source) = self.templates.get(name) else {
            let message = format!("{name} is not defined");
            return Err(self.refuse(span, &message, None));
        };
        if source.parameters.len() != arguments.len() {
            return Err(self.wrong_argument_count(source, arguments.len(), span));
        }
        let to_source: Vec<String> = arguments.iter().map(to_source).collect();
        let name = match to_source.len() {
            0 => name.to_owned(),
            _ => format!("{name}{{{}}}", to_source.join(", ")),
        };
        if let Some(&at) = self.instances.get(&name) {
            return Ok(at);
        }
        let at = self.rules.len();
        if !arguments.is_empty() && (at > MAX_TEMPLATE_INSTANCES || name.len() > 100 * MAX_DEPTH) {
            let (needed, allowed) = (at as u64 + 1, MAX_TEMPLATE_INSTANCES as u64);
            return Err(Error::Limit { resource: Resource::Terms, needed, allowed });
        }
        self.instances.insert(name.clone(), at);
        self.add_rule(Rule { name, body: Node::Empty, span: Some(source.span) }, &source.shown);
        self.queue.push((at, source, arguments));
        Ok(at)
    }

    pub(in crate::notation) fn add_rule(&mut self, rule: Rule, shown: &Shown) {
        self.rules.push(rule);
        if self.shaped {
            self.shown.push(shown.clone());
        }
    }
}
