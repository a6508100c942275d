//! Names that a text defines, declares or is given, and that its start rule does not need: they are
//! told of, and mistakes in them are mistakes as anywhere.

use formalm_automata::{Error, Span};
use rustc_hash::FxHashSet;

use crate::grammar::Note;
use crate::notation::build::{Build, DEPTH};
use crate::notation::{RuleSource, Tree};

impl Build<'_> {
    /// Notes of terminals, declared names and templates that are of no use; other rules have
    /// theirs from the machine.
    pub(in crate::notation) fn unneeded(&self, needed: &FxHashSet<&str>) -> Vec<Note> {
        let source = self.source;
        let terminals = source.terminals.iter().map(|one| ("terminal", &one.name, one.span));
        let declared = source.declared.iter().map(|(name, span)| {
            let what = if self.is_embedded(name) { "language" } else { "terminal" };
            (what, name, *span)
        });
        let templates = source.rules.iter().filter(|one| !one.parameters.is_empty());
        let templates = templates.map(|one| ("template", &one.name, one.span));
        let mut met: FxHashSet<&str> = FxHashSet::default();
        let all = terminals.chain(declared).chain(templates);
        let unneeded = all.filter(|one| !needed.contains(one.1.as_str()) && met.insert(one.1));
        let mut list: Vec<(&str, &String, Span)> = unneeded.collect();
        list.sort_by_key(|one| one.2.start);
        let note = |(what, name, span): (&str, &String, Span)| Note {
            message: format!("the {what} {name} is not needed by the start rule"),
            span: Some(span),
        };
        list.into_iter().map(note).collect()
    }

    /// Names that the start rule refers to, what is ignored and what tells indentation, and all
    /// that these refer to.
    pub(in crate::notation) fn needed(&self, start: &str) -> FxHashSet<&str> {
        let mut needed: FxHashSet<&str> = FxHashSet::default();
        let mut open: Vec<(&Tree, &[String])> = Vec::new();
        let mut names = vec![start];
        if let Some(levels) = self.levels {
            names.extend([&levels.newline, &levels.indent, &levels.dedent].map(String::as_str));
            names.extend(levels.opening.iter().chain(&levels.closing).map(String::as_str));
        }
        let anywhere = self.source.ignored.iter().chain(&self.source.whole);
        open.extend(anywhere.map(|one| (&one.0, [].as_slice())));
        loop {
            while let Some(name) = names.pop() {
                let Some(name) = self.defined_name(name) else { continue };
                if !needed.insert(name) {
                    continue;
                }
                if let Some(one) = self.defined.get(name) {
                    open.push((&one.body, &[]));
                } else if let Some(RuleSource { body, parameters, .. }) = self.templates.get(name) {
                    open.push((body, parameters));
                }
            }
            let Some((tree, parameters)) = open.pop() else { return needed };
            match tree {
                Tree::Leaf(leaf) => {
                    names.extend(self.named_texts.get(&leaf.key).map(|one| one.name.as_str()));
                }
                Tree::Name(name, arguments, _) => {
                    if !parameters.contains(name) {
                        names.push(name);
                    }
                    open.extend(arguments.iter().map(|one| (one, parameters)));
                }
                Tree::Sequence(list) | Tree::Choice(list) | Tree::Both(list, _) => {
                    open.extend(list.iter().map(|one| (one, parameters)));
                }
                Tree::Repeat(one, ..) | Tree::Maybe(one) | Tree::Outside(one, _) => {
                    open.push((one, parameters));
                }
                Tree::Except(first, second, _) => {
                    open.extend([(&**first, parameters), (&**second, parameters)]);
                }
            }
        }
    }

    /// Refuses terminals that are not needed where no grammar could need them.
    pub(in crate::notation) fn check_unneeded(
        &self,
        needed: &FxHashSet<&str>,
    ) -> Result<(), Error> {
        let source = self.source;
        for one in source.terminals.iter().filter(|one| !needed.contains(one.name.as_str())) {
            if self.algebra.contains(one.name.as_str()) {
                self.whole_terminal(one, DEPTH)?;
            } else {
                self.pattern(&one.body, DEPTH, one.span)?;
            }
        }
        Ok(())
    }

    /// A name as the text has it where it is defined or declared.
    fn defined_name<'b>(&'b self, name: &str) -> Option<&'b str> {
        let defined = self.defined.get_key_value(name).map(|one| *one.0);
        let rule = || self.templates.get_key_value(name).map(|one| *one.0);
        let declared = || {
            let mut all = self.source.declared.iter();
            all.find(|one| one.0 == name).map(|one| one.0.as_str())
        };
        defined.or_else(rule).or_else(declared)
    }
}
