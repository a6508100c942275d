//! Unused symbols: names that the start rule does not need. They are reported, and mistakes in them
//! are still errors.

use formalm_automata::{Error, Span};
use rustc_hash::FxHashSet;

use crate::grammar::Note;
use crate::notation::build::{GrammarBuilder, MAX_DEPTH};
use crate::notation::{RuleSource, SyntaxTree};

impl GrammarBuilder<'_> {
    /// Returns notes on unused terminals, declared names and templates. Unused rules are noted by
    /// the automaton.
    pub(in crate::notation) fn unused_symbol_notes(
        &self,
        needed_symbols: &FxHashSet<&str>,
    ) -> Vec<Note> {
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
        let unused_symbol_notes =
            all.filter(|one| !needed_symbols.contains(one.1.as_str()) && met.insert(one.1));
        let mut list: Vec<(&str, &String, Span)> = unused_symbol_notes.collect();
        list.sort_by_key(|one| one.2.start);
        let note = |(what, name, span): (&str, &String, Span)| Note {
            message: format!("the {what} {name} is not needed by the start rule"),
            span: Some(span),
        };
        list.into_iter().map(note).collect()
    }

    /// Returns the names that the start rule, ignored terminals and indentation refer to,
    /// transitively.
    pub(in crate::notation) fn needed_symbols(&self, start: &str) -> FxHashSet<&str> {
        let mut needed_symbols: FxHashSet<&str> = FxHashSet::default();
        let mut open: Vec<(&SyntaxTree, &[String])> = Vec::new();
        let mut collect_names = vec![start];
        if let Some(levels) = self.levels {
            collect_names
                .extend([&levels.newline, &levels.indent, &levels.dedent].map(String::as_str));
            collect_names.extend(levels.opening.iter().chain(&levels.closing).map(String::as_str));
        }
        let anywhere = self.source.ignored.iter().chain(&self.source.whole);
        open.extend(anywhere.map(|one| (&one.0, [].as_slice())));
        loop {
            while let Some(name) = collect_names.pop() {
                let Some(name) = self.defined_name(name) else { continue };
                if !needed_symbols.insert(name) {
                    continue;
                }
                if let Some(one) = self.defined.get(name) {
                    open.push((&one.body, &[]));
                } else if let Some(RuleSource { body, parameters, .. }) = self.templates.get(name) {
                    open.push((body, parameters));
                }
            }
            let Some((tree, parameters)) = open.pop() else { return needed_symbols };
            match tree {
                SyntaxTree::Atom(atom) => {
                    collect_names
                        .extend(self.named_atoms.get(&atom.identity).map(|one| one.name.as_str()));
                }
                SyntaxTree::Name(name, arguments, _) => {
                    if !parameters.contains(name) {
                        collect_names.push(name);
                    }
                    open.extend(arguments.iter().map(|one| (one, parameters)));
                }
                SyntaxTree::Sequence(list)
                | SyntaxTree::Choice(list)
                | SyntaxTree::Intersection(list, _) => {
                    open.extend(list.iter().map(|one| (one, parameters)));
                }
                SyntaxTree::Repeat(one, ..)
                | SyntaxTree::Optional(one)
                | SyntaxTree::Complement(one, _) => {
                    open.push((one, parameters));
                }
                SyntaxTree::Difference(first, second, _) => {
                    open.extend([(&**first, parameters), (&**second, parameters)]);
                }
            }
        }
    }

    /// Refuses unused terminals that no grammar could use.
    pub(in crate::notation) fn check_unused_terminals(
        &self,
        needed_symbols: &FxHashSet<&str>,
    ) -> Result<(), Error> {
        let source = self.source;
        for one in source.terminals.iter().filter(|one| !needed_symbols.contains(one.name.as_str()))
        {
            if self.algebra_terminals.contains(one.name.as_str()) {
                self.terminal_language(one, MAX_DEPTH)?;
            } else {
                self.pattern(&one.body, MAX_DEPTH, one.span)?;
            }
        }
        Ok(())
    }

    /// Returns a name as stored in the text, if it is defined or declared.
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
