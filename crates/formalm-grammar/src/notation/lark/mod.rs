//! The reader of Lark grammars: definitions of rules, templates and terminals.

mod anonymous_names;
pub(super) mod common_terminals;
pub(super) mod definition_attributes;
mod directives;
pub(super) mod inline_languages;
pub(super) mod keywords;
mod literals;
mod pattern_concat;
pub(super) mod terminal_length;

use formalm_core::Error;

use crate::grammar::GrammarNote;
use crate::notation::lark::literals::LiteralReader;
use crate::notation::quantifiers::{RepeatBounds, braces, repeated};
use crate::notation::scanner::Scanner;
use crate::notation::{GrammarSource, RuleSource, SyntaxTree, TerminalSource};
use crate::trees::tree_shape::RuleTreeShape;

pub(super) fn read(text: &str) -> Result<GrammarSource, Error> {
    let mut reader = LarkReader {
        scanner: Scanner::new(text),
        source: GrammarSource::default(),
        ascii: false,
        alias: None,
        aliases: Vec::new(),
    };
    reader.skip_lines();
    while reader.scanner.peek().is_some() {
        if reader.scanner.peek() == Some('%') {
            reader.directive()?;
        } else {
            reader.definition()?;
        }
        reader.skip_blanks();
        if !matches!(reader.scanner.peek(), None | Some('\n')) {
            return Err(reader.scanner.unexpected("the end of the definition"));
        }
        reader.skip_lines();
    }
    let mut source = reader.source;
    for rule in &mut source.rules {
        rule.shown.keeps_all_lexemes |= source.keeps_all;
    }
    Ok(source)
}

pub(super) struct LarkReader {
    pub(super) scanner: Scanner,
    pub(super) source: GrammarSource,
    /// `true` after `%ascii`: strings and patterns know only ASCII letters.
    pub(super) ascii: bool,
    /// The alias of the alternative read last, and the aliases of the current definition.
    alias: Option<String>,
    aliases: Vec<Option<String>>,
}

/// Returns `true` for the name of a terminal, whose letters are upper case. Lark prefixes imported
/// names with the module's lower-case name and `__`.
pub(super) fn is_terminal(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    let own = name.rsplit("__").next().unwrap_or(name);
    [name, own].iter().any(|one| one.starts_with(|one: char| one.is_ascii_uppercase()))
}

pub(super) fn is_name(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '_'
}

/// Skips whitespace and comments inside a line. A backslash at its end continues the line.
fn skip_inline_whitespace(scanner: &mut Scanner) {
    loop {
        match scanner.peek() {
            Some(' ' | '\t' | '\r' | '\u{c}') => scanner.at += 1,
            Some('\\') => match line_continuation(scanner) {
                Some(after) => scanner.at = after,
                None => return,
            },
            Some('#') => scanner.skip_line(),
            Some('/') if scanner.peek_at(1) == Some('/') => scanner.skip_line(),
            _ => return,
        }
    }
}

/// Returns the position after a line end escaped by this backslash.
fn line_continuation(scanner: &Scanner) -> Option<usize> {
    let is_blank = |ahead: &usize| matches!(scanner.peek_at(*ahead), Some(' ' | '\r'));
    let ahead = (1..).find(|ahead| !is_blank(ahead))?;
    (scanner.peek_at(ahead) == Some('\n')).then_some(scanner.at + ahead + 1)
}

/// Consumes whitespace and `text` if `text` comes next.
fn eat_after_whitespace(scanner: &mut Scanner, text: &str) -> bool {
    let before = scanner.at;
    skip_inline_whitespace(scanner);
    let found = scanner.eat(text);
    scanner.at = if found { scanner.at } else { before };
    found
}

/// Skips whitespace, comments and line ends.
fn skip_whitespace(scanner: &mut Scanner) {
    skip_inline_whitespace(scanner);
    while scanner.peek() == Some('\n') {
        scanner.at += 1;
        skip_inline_whitespace(scanner);
    }
}

/// Returns `true` if the braces that follow hold a count, as in llguidance (`{2`, `{,`), and not
/// template arguments.
fn is_count_next(scanner: &mut Scanner) -> bool {
    let before = scanner.at;
    let mut is_count = eat_after_whitespace(scanner, "{");
    if is_count {
        skip_whitespace(scanner);
        is_count = scanner.peek().is_some_and(|one| one.is_ascii_digit() || one == ',');
    }
    scanner.at = before;
    is_count
}

/// Reads `~2`, `~2..3`, or a count in braces.
fn counted(scanner: &mut Scanner) -> Result<Option<RepeatBounds>, Error> {
    if scanner.peek() == Some('{') {
        return braces(scanner, skip_whitespace);
    }
    let before = scanner.at;
    if !scanner.eat("~") {
        return Ok(None);
    }
    skip_inline_whitespace(scanner);
    if !scanner.peek().is_some_and(|one| one.is_ascii_digit()) {
        // A complement follows.
        scanner.at = before;
        return Ok(None);
    }
    let min = scanner.count()?;
    if !eat_after_whitespace(scanner, "..") {
        return Ok(Some((min, Some(min))));
    }
    skip_inline_whitespace(scanner);
    Ok(Some((min, Some(scanner.count()?))))
}

impl LarkReader {
    pub(super) fn skip_blanks(&mut self) {
        skip_inline_whitespace(&mut self.scanner);
    }

    fn literals(&mut self) -> LiteralReader<'_> {
        LiteralReader { scanner: &mut self.scanner, ascii: self.ascii }
    }

    /// Skips line ends too.
    pub(super) fn skip_lines(&mut self) {
        skip_whitespace(&mut self.scanner);
    }

    pub(super) fn name(&mut self) -> Result<String, Error> {
        if self.scanner.peek().is_some_and(|one| one.is_ascii_digit()) {
            return Err(self.scanner.unexpected("a name that starts with a letter or _"));
        }
        let name = self.scanner.take_while(is_name);
        if name.is_empty() { Err(self.scanner.unexpected("a name")) } else { Ok(name) }
    }

    fn definition(&mut self) -> Result<(), Error> {
        let start = self.scanner.at;
        // Tree shaping does not change the language.
        let signs = self.scanner.take_while(|one| one == '?' || one == '!');
        let name = self.name()?;
        self.check_signs(start, &signs, &name)?;
        let span = self.scanner.span(start);
        let parameters = self.parameters()?;
        let mut priority = 0;
        if eat_after_whitespace(&mut self.scanner, ".") {
            self.skip_blanks();
            priority = self.priority()?;
        }
        let attributes = self.attributes(&name)?;
        self.skip_blanks();
        self.scanner.expect(":", "after the name")?;
        let body = self.choice()?;
        if is_terminal(&name) {
            self.refuse_aliases(start, &format!("the terminal {name}"))?;
        }
        if !is_terminal(&name) {
            if priority != 0 {
                let message =
                    "the priority of a rule does not change which strings match; it only chooses \
                     among parse trees"
                        .to_owned();
                self.source.notes.push(GrammarNote { message, span: Some(span) });
            }
            let shown = RuleTreeShape {
                aliases: std::mem::take(&mut self.aliases),
                inlines_single_child: signs.contains('?'),
                keeps_all_lexemes: signs.contains('!'),
                inlines_children: name.starts_with('_'),
                ..RuleTreeShape::ALL
            };
            self.source.rules.push(RuleSource { name, parameters, body, span, shown, attributes });
        } else if parameters.is_empty() {
            self.source.terminals.push(TerminalSource {
                name,
                priority,
                body,
                span,
                attributes,
                imported: None,
            });
        } else {
            return Err(self.scanner.refuse(start, "a terminal cannot be a template", None));
        }
        Ok(())
    }

    /// Refuses prefix signs that Lark does not accept.
    fn check_signs(&self, start: usize, signs: &str, name: &str) -> Result<(), Error> {
        let twice = signs.chars().any(|one| signs.matches(one).count() > 1);
        let (message, hint) = if twice {
            (format!("{signs} repeats a sign"), "write each of ? and ! at most once")
        } else if !signs.is_empty() && is_terminal(name) {
            let message = format!("{signs} shapes parse trees of rules, but {name} is a terminal");
            (message, "remove it, or make it a rule (a name in lowercase)")
        } else {
            return Ok(());
        };
        Err(self.scanner.refuse(start, &message, Some(hint)))
    }

    /// Refuses aliases where no tree could show them.
    pub(super) fn refuse_aliases(&self, start: usize, what: &str) -> Result<(), Error> {
        if self.aliases.iter().all(Option::is_none) {
            return Ok(());
        }
        let message = format!("{what} cannot have an alias");
        Err(self.scanner.refuse(start, &message, Some("only rules can have aliases")))
    }

    fn parameters(&mut self) -> Result<Vec<String>, Error> {
        let mut parameters = Vec::new();
        if eat_after_whitespace(&mut self.scanner, "{") {
            loop {
                self.skip_blanks();
                let start = self.scanner.at;
                let name = self.name()?;
                if parameters.contains(&name) {
                    let message = format!("the template has two parameters named {name}");
                    return Err(self.scanner.refuse(start, &message, None));
                }
                parameters.push(name);
                self.skip_blanks();
                if self.scanner.eat("}") {
                    break;
                }
                self.scanner.expect(",", "between the parameters of a template")?;
            }
        }
        Ok(parameters)
    }

    fn priority(&mut self) -> Result<i64, Error> {
        let negative = self.scanner.eat("-");
        let value = i64::from(self.scanner.integer("a priority")?);
        Ok(if negative { -value } else { value })
    }

    pub(super) fn choice(&mut self) -> Result<SyntaxTree, Error> {
        let mut list = vec![self.intersection()?];
        let mut aliases = vec![self.alias.take()];
        loop {
            let before = self.scanner.at;
            self.skip_lines();
            if !self.scanner.eat("|") {
                if !self.scanner.is_nested() {
                    self.scanner.at = before;
                    self.aliases = aliases;
                }
                return Ok(SyntaxTree::Choice(list));
            }
            list.push(self.intersection()?);
            aliases.push(self.alias.take());
        }
    }

    /// Reads `A & B`, which binds tighter than `|` and looser than everything else.
    fn intersection(&mut self) -> Result<SyntaxTree, Error> {
        let start = self.scanner.at;
        let mut list = vec![self.sequence()?];
        loop {
            let before = self.scanner.at;
            self.skip_lines();
            let is_bare =
                |one: &SyntaxTree| matches!(one, SyntaxTree::Sequence(parts) if parts.is_empty());
            if self.scanner.peek() == Some('&') && list.first().is_some_and(is_bare) {
                return Err(self.scanner.unexpected("an operand before &"));
            }
            if !self.scanner.eat("&") {
                self.scanner.at = before;
                break;
            }
            let one = self.sequence()?;
            if is_bare(&one) {
                return Err(self.scanner.unexpected("an operand after &"));
            }
            list.push(one);
        }
        match list.len() {
            1 => Ok(list.swap_remove(0)),
            _ => Ok(SyntaxTree::Intersection(list, self.scanner.span(start))),
        }
    }

    fn sequence(&mut self) -> Result<SyntaxTree, Error> {
        let mut list = Vec::new();
        loop {
            if self.scanner.is_nested() {
                self.skip_lines()
            } else {
                self.skip_blanks()
            }
            match self.scanner.peek() {
                None | Some('\n' | '|' | '&' | ')' | ']' | '}' | ',') => break,
                Some('-') if self.scanner.peek_at(1) == Some('>') => {
                    self.alias = Some(self.alias()?);
                    break;
                }
                _ => {
                    let atom = self.atom()?;
                    list.push(repeated(&mut self.scanner, atom, skip_inline_whitespace, counted)?);
                }
            }
        }
        Ok(SyntaxTree::Sequence(list))
    }

    /// Reads the alias that ends an alternative.
    fn alias(&mut self) -> Result<String, Error> {
        let start = self.scanner.at;
        self.scanner.at += 2;
        self.skip_blanks();
        let name = self.name()?;
        if self.scanner.is_nested() || is_terminal(&name) {
            let message = format!("-> {name} is not a valid alias");
            let hint = "an alias is a lowercase name at the end of a top-level alternative";
            return Err(self.scanner.refuse(start, &message, Some(hint)));
        }
        self.skip_blanks();
        match self.scanner.peek() {
            None | Some('\n' | '|') => Ok(name),
            _ => Err(self.scanner.unexpected("the end of the alternative after its alias")),
        }
    }

    fn atom(&mut self) -> Result<SyntaxTree, Error> {
        let start = self.scanner.at;
        match self.scanner.peek() {
            Some('(') => self.group(")"),
            Some('[') => Ok(SyntaxTree::Optional(Box::new(self.group("]")?))),
            Some('"') => self.literals().literal(),
            Some('/') => self.literals().pattern(),
            Some('%') => self.inline(),
            Some('<') => self.source.special(&mut self.scanner),
            Some('~') => {
                self.scanner.at += 1;
                self.skip_blanks();
                self.scanner.enter()?;
                let one = self.atom()?;
                self.scanner.leave();
                let one = repeated(&mut self.scanner, one, skip_inline_whitespace, counted)?;
                if matches!(one, SyntaxTree::Repeat(..)) {
                    self.source.notes.push(GrammarNote {
                        message:
                            "~A+ is read as ~(A+), but llguidance reads (~A)+: add parentheses to \
                             make it explicit"
                                .to_owned(),
                        span: Some(self.scanner.span(start)),
                    });
                }
                Ok(SyntaxTree::Complement(Box::new(one), self.scanner.span(start)))
            }
            Some(one) if is_name(one) => self.reference(),
            _ => Err(self.scanner.unexpected("a name, a string, a pattern or a bracket")),
        }
    }

    fn group(&mut self, close: &str) -> Result<SyntaxTree, Error> {
        self.scanner.at += 1;
        self.scanner.enter()?;
        let inner = self.choice()?;
        self.skip_lines();
        self.scanner.leave();
        self.scanner.expect(close, "at the end of a group")?;
        Ok(inner)
    }

    fn reference(&mut self) -> Result<SyntaxTree, Error> {
        let start = self.scanner.at;
        let name = self.name()?;
        let mut arguments = Vec::new();
        if !is_count_next(&mut self.scanner) && eat_after_whitespace(&mut self.scanner, "{") {
            self.scanner.enter()?;
            loop {
                arguments.push(self.choice()?);
                self.skip_lines();
                if self.scanner.eat("}") {
                    break;
                }
                self.scanner.expect(",", "between the arguments of a template")?;
            }
            self.scanner.leave();
        }
        Ok(SyntaxTree::Name(name, arguments, self.scanner.span(start)))
    }
}
