//! Name resolution: definitions, checks of references, and unused symbols.
//!
//! Each name of a rule, template, terminal or given language is defined once. Every name in a
//! right-hand side must be defined, and only templates take arguments. Names that the start rule does
//! not need are reported, and mistakes in their definitions are still errors.

use std::cell::Cell;

use formalm_automata::Expression;
use formalm_core::{Error, SourceSpan};
use rustc_hash::{FxHashMap, FxHashSet};

use super::indent_terminals::IndentationNames;
use super::{MAX_DEPTH, argument_context};
use crate::grammar::{GrammarNote, Lexing, Sublanguage};
use crate::notation::lark::common_terminals::is_common_terminal;
use crate::notation::parse_options::{ParseOptions, Syntax};
use crate::notation::scanner::refusal;
use crate::notation::syntax_tree::{template_name, unwrap_single};
use crate::notation::{GrammarSource, RuleSource, SyntaxTree, TerminalSource};

/// The names that a text defines, declares or is given, with their definitions.
pub(in crate::notation) struct Definitions<'a> {
    text: &'a str,
    pub(in crate::notation) source: &'a GrammarSource,
    /// The names of the indentation terminals, if indentation matters.
    pub(super) levels: Option<&'a IndentationNames>,
    pub(in crate::notation) lexing: Lexing,
    pub(in crate::notation) defined: FxHashMap<&'a str, &'a TerminalSource>,
    /// Declared terminals given as languages.
    pub(super) given: FxHashMap<&'a str, &'a Expression>,
    /// Declared rules and inline languages given as languages of any kind.
    pub(super) embedded: FxHashMap<&'a str, &'a Sublanguage>,
    /// Terminals combined from languages, not patterns.
    pub(super) algebra_terminals: FxHashSet<&'a str>,
    pub(in crate::notation) templates: FxHashMap<&'a str, &'a RuleSource>,
    /// Named terminals that consist of one string or pattern, by its identity.
    pub(in crate::notation) named_atoms: FxHashMap<String, &'a TerminalSource>,
    /// Parts of terminals expanded so far.
    pub(super) parts: Cell<u64>,
    /// `true` if rules may occur inside languages, because the notation has no terminals.
    pub(super) rules_within: bool,
    syntax: Syntax,
}

impl<'a> Definitions<'a> {
    /// Collects all names of a text and checks every reference to them.
    pub(super) fn new(
        text: &'a str,
        source: &'a GrammarSource,
        options: &'a ParseOptions,
    ) -> Result<Definitions<'a>, Error> {
        let given = options.languages.iter().chain(&source.special);
        let embedded = options.sublanguages.iter();
        let mut definitions = Definitions {
            text,
            source,
            levels: options.indentation.as_ref(),
            lexing: options.reading(),
            defined: FxHashMap::default(),
            given: given.map(|(name, one)| (name.as_str(), one)).collect(),
            embedded: embedded.map(|(name, one)| (name.as_str(), one)).collect(),
            algebra_terminals: FxHashSet::default(),
            templates: FxHashMap::default(),
            named_atoms: FxHashMap::default(),
            parts: Cell::new(0),
            rules_within: source.terminals.is_empty(),
            syntax: options.syntax,
        };
        definitions.collect_names(&options.languages)?;
        definitions.check_sublanguage_names(&options.sublanguages)?;
        definitions.check_references()?;
        definitions.find_algebra_terminals();
        Ok(definitions)
    }

    /// Returns the definition of the start rule.
    pub(super) fn start_rule(&self, name: &str) -> Result<&'a RuleSource, Error> {
        let Some(&first) = self.templates.get(name) else {
            return Err(self.missing_start(name));
        };
        if !first.parameters.is_empty() {
            return Err(self.refuse(first.span, "a template cannot be the start rule", None));
        }
        Ok(first)
    }

    /// Returns the index of an indentation terminal, if a name denotes one.
    pub(super) fn level(&self, name: &str) -> Option<usize> {
        let levels = self.levels?;
        [&levels.indent, &levels.dedent].iter().position(|one| *one == name)
    }

    pub(in crate::notation) fn has_terminal(&self, name: &str) -> bool {
        self.defined.contains_key(name) || self.given.contains_key(name)
    }

    /// Builds the error for a missing start rule.
    fn missing_start(&self, name: &str) -> Error {
        let Some(first) = self.source.rules.first() else {
            let message = format!("the grammar has no start rule {name}, nor any other rule");
            return Error::language(message, None);
        };
        let message = format!("the grammar has no start rule {name}");
        let hint = format!("the first rule is {0}: rename it, or pass start=\"{0}\"", first.name);
        self.refuse(first.span, &message, Some(&hint))
    }

    /// Returns `true` for the name of a language of any kind.
    pub(in crate::notation) fn is_embedded(&self, name: &str) -> bool {
        self.embedded.contains_key(name)
    }

    pub(in crate::notation) fn refuse(
        &self,
        span: SourceSpan,
        message: &str,
        hint: Option<&str>,
    ) -> Error {
        refusal(self.text, span, message, hint)
    }

    /// Builds the error for a name without a definition.
    pub(in crate::notation) fn undefined(&self, name: &str, span: SourceSpan) -> Error {
        let hint = self.import_hint(name).or_else(|| {
            let is_rule = name.starts_with(|first: char| first.is_lowercase());
            is_rule.then(|| format!("define the rule, or put quotes around a keyword: \"{name}\""))
        });
        self.refuse(span, &format!("{name} is not defined"), hint.as_deref())
    }

    /// Returns the hint for an undefined name that can be imported.
    pub(super) fn import_hint(&self, name: &str) -> Option<String> {
        let is_importable = self.syntax == Syntax::Lark && is_common_terminal(name);
        is_importable.then(|| format!("Lark's library has it: write %import common.{name}"))
    }

    /// Collects all names. Fails if one is defined twice.
    pub(in crate::notation) fn collect_names(
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
                let message = format!("{name} is both declared and defined in the grammar");
                let hint = "remove the %declare; it is for languages passed as arguments and for \
                            indentation";
                return Err(self.refuse(*span, &message, Some(hint)));
            }
        }
        for (at, (name, _)) in languages.iter().enumerate() {
            let declared = self.source.declared.iter().any(|one| one.0 == *name);
            let twice = languages[..at].iter().any(|one| one.0 == *name);
            let why = match self.defined.contains_key(name.as_str()) || twice {
                true => "is defined twice",
                false if !declared => "is not declared in the grammar",
                false => continue,
            };
            return Err(Error::language(
                format!("the terminal {name} {why}"),
                Some(&format!("write %declare {name} once, on a line of its own")),
            ));
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
    pub(in crate::notation) fn check_sublanguage_names(
        &self,
        all: &[(String, Sublanguage)],
    ) -> Result<(), Error> {
        for (at, (name, _)) in all.iter().enumerate() {
            let declared = self.source.declared.iter().any(|one| one.0 == *name)
                || self.source.inlined.iter().any(|one| one.name == *name);
            let twice = all[..at].iter().any(|one| one.0 == *name);
            let why = match self.templates.contains_key(name.as_str()) || twice {
                true => "is defined twice",
                false if !declared => "is not declared in the grammar",
                false => continue,
            };
            return Err(Error::language(
                format!("the rule {name} {why}"),
                Some(&format!("write %declare {name} once, on a line of its own")),
            ));
        }
        Ok(())
    }

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
        place: SourceSpan,
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
            return Err(self.undefined(name, place));
        }
        if arguments.is_empty() { Ok(()) } else { Err(self.not_a_template(name, place)) }
    }

    pub(in crate::notation) fn wrong_argument_count(
        &self,
        rule: &RuleSource,
        given: usize,
        place: SourceSpan,
    ) -> Error {
        let (name, takes) = (&rule.name, rule.parameters.len());
        self.refuse(
            place,
            &format!("number of arguments of {name} must be {takes}, got {given}"),
            None,
        )
    }

    pub(in crate::notation) fn not_a_template(&self, name: &str, place: SourceSpan) -> Error {
        let message = format!("{name} is not a template and takes no arguments in braces");
        let hint = "a template is a rule such as name{x}: …; numbers in braces are repetition \
                    counts: A{2}, A{2,3}, A{2,}";
        self.refuse(place, &message, Some(hint))
    }

    fn is_terminal_or_language(&self, name: &str) -> bool {
        self.has_terminal(name)
            || self.is_embedded(name)
            || self.source.inlined.iter().any(|one| one.name == name)
            || self.source.declared.iter().any(|one| one.0 == *name)
    }

    /// Returns notes on unused terminals, declared names and templates. Unused rules are noted by
    /// the automaton.
    pub(in crate::notation) fn unused_symbol_notes(
        &self,
        needed_symbols: &FxHashSet<&str>,
    ) -> Vec<GrammarNote> {
        let source = self.source;
        let terminals = source.terminals.iter().map(|one| ("terminal", &one.name, one.span));
        let declared = source.declared.iter().map(|(name, span)| {
            let what = if self.is_embedded(name) { "language" } else { "terminal" };
            (what, name, *span)
        });
        let templates = source.rules.iter().filter(|one| !one.parameters.is_empty());
        let templates = templates.map(|one| ("template", &one.name, one.span));
        let mut reported: FxHashSet<&str> = FxHashSet::default();
        let all = terminals.chain(declared).chain(templates);
        let unused =
            all.filter(|one| !needed_symbols.contains(one.1.as_str()) && reported.insert(one.1));
        let mut list: Vec<(&str, &String, SourceSpan)> = unused.collect();
        list.sort_by_key(|one| one.2.start);
        let note = |(what, name, span): (&str, &String, SourceSpan)| GrammarNote {
            message: format!("the {what} {name} is unreachable from the start rule"),
            span: Some(span),
        };
        list.into_iter().map(note).collect()
    }

    /// Returns the names that the start rule, ignored terminals and indentation refer to,
    /// transitively.
    pub(in crate::notation) fn needed_symbols(&self, start: &str) -> FxHashSet<&str> {
        let mut needed_symbols: FxHashSet<&str> = FxHashSet::default();
        let mut open: Vec<(&SyntaxTree, &[String])> = Vec::new();
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
                    names.extend(self.named_atoms.get(&atom.identity).map(|one| one.name.as_str()));
                }
                SyntaxTree::Name(name, arguments, _) => {
                    if !parameters.contains(name) {
                        names.push(name);
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

    /// Returns the maximum number of tree children of a part. As in Lark, long repetitions count as
    /// zero.
    pub(in crate::notation) fn size(
        &self,
        tree: &SyntaxTree,
        rule: &RuleSource,
        given: &[SyntaxTree],
    ) -> u32 {
        /// From this count on, Lark expands a repetition to rules of its own.
        const MANY: u32 = 50;
        let all =
            |list: &[SyntaxTree]| list.iter().map(|one| self.size(one, rule, given)).collect();
        let keeps = rule.shown.keeps_all_lexemes || self.source.keeps_all;
        match tree {
            SyntaxTree::Atom(atom) => u32::from(keeps || !atom.is_string),
            SyntaxTree::Name(name, arguments, _) => {
                match rule.parameters.iter().position(|one| one == name) {
                    Some(at) if !arguments.is_empty() => {
                        u32::from(!template_name(&given[at]).starts_with('_'))
                    }
                    Some(at) => self.size(&given[at], argument_context(rule), &[]),
                    None => {
                        let name = name.as_str();
                        let terminal =
                            self.defined.contains_key(name) || self.given.contains_key(name);
                        u32::from(!name.starts_with('_') || (terminal && keeps))
                    }
                }
            }
            SyntaxTree::Sequence(list) => {
                let sizes: Vec<u32> = all(list);
                sizes.into_iter().fold(0, u32::saturating_add)
            }
            SyntaxTree::Choice(list) => {
                let sizes: Vec<u32> = all(list);
                sizes.into_iter().max().unwrap_or(0)
            }
            SyntaxTree::Optional(one) => self.size(one, rule, given),
            SyntaxTree::Repeat(one, _, Some(max)) if *max < MANY => {
                self.size(one, rule, given).saturating_mul(*max)
            }
            SyntaxTree::Repeat(..) => 0,
            SyntaxTree::Difference(..)
            | SyntaxTree::Intersection(..)
            | SyntaxTree::Complement(..) => 1,
        }
    }
}
