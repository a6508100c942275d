//! The grammars of Lark.

use formalm_automata::syntax::Flags;
use formalm_automata::{CharSet, Error};

use super::leaves::{Leaf, pattern_key};
use super::repeats::{Counts, repeated};
use super::scanner::Scanner;
use super::{RuleSource, Source, TerminalSource, Tree};
use crate::grammar::Note;
use crate::shown::Shown;

pub(super) fn read(text: &str) -> Result<Source, Error> {
    let mut reader = Reader {
        scanner: Scanner::new(text),
        source: Source::default(),
        ascii: false,
        alias: None,
        aliases: Vec::new(),
    };
    reader.lines();
    while reader.scanner.peek().is_some() {
        if reader.scanner.peek() == Some('%') {
            reader.statement()?;
        } else {
            reader.definition()?;
        }
        reader.blanks();
        if !matches!(reader.scanner.peek(), None | Some('\n')) {
            return Err(reader.scanner.unexpected("the end of the definition"));
        }
        reader.lines();
    }
    let mut source = reader.source;
    for rule in &mut source.rules {
        rule.shown.keeps_all |= source.keeps_all;
    }
    Ok(source)
}

pub(super) struct Reader {
    pub(super) scanner: Scanner,
    pub(super) source: Source,
    /// Texts and patterns know letters of ASCII only.
    pub(super) ascii: bool,
    /// What trees call the alternative that was read last, and those of the definition.
    alias: Option<String>,
    aliases: Vec<Option<String>>,
}

/// Whether a name is that of a terminal: its letters are upper case.
pub(super) fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|one: char| one.is_ascii_uppercase())
}

pub(super) fn is_name(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '_'
}

/// Skips blanks and comments within a line.
fn within(scanner: &mut Scanner) {
    loop {
        match scanner.peek() {
            Some(' ' | '\t' | '\r' | '\u{c}') => scanner.at += 1,
            Some('#') => scanner.skip_line(),
            Some('/') if scanner.peek_at(1) == Some('/') => scanner.skip_line(),
            _ => return,
        }
    }
}

/// Reads `~2` or `~2..3`.
fn counted(scanner: &mut Scanner) -> Result<Option<Counts>, Error> {
    let before = scanner.at;
    if !scanner.eat("~") {
        return Ok(None);
    }
    within(scanner);
    if !scanner.peek().is_some_and(|one| one.is_ascii_digit()) {
        // What follows is a complement.
        scanner.at = before;
        return Ok(None);
    }
    let min = scanner.count()?;
    let max = if scanner.eat("..") { scanner.count()? } else { min };
    Ok(Some((min, Some(max))))
}

impl Reader {
    pub(super) fn blanks(&mut self) {
        within(&mut self.scanner);
    }

    /// Skips lines too.
    pub(super) fn lines(&mut self) {
        self.blanks();
        while self.scanner.peek() == Some('\n') {
            self.scanner.at += 1;
            self.blanks();
        }
    }

    pub(super) fn name(&mut self) -> Result<String, Error> {
        let name = self.scanner.take_while(is_name);
        if name.is_empty() { Err(self.scanner.unexpected("a name")) } else { Ok(name) }
    }

    fn definition(&mut self) -> Result<(), Error> {
        let start = self.scanner.at;
        // How trees are shaped does not change the language.
        let signs = self.scanner.take_while(|one| one == '?' || one == '!');
        let name = self.name()?;
        let span = self.scanner.span(start);
        let parameters = self.parameters()?;
        let mut priority = 0;
        if self.scanner.eat(".") {
            priority = self.priority()?;
        }
        let attributes = self.attributes(&name)?;
        self.blanks();
        self.scanner.expect(":", "after the name")?;
        let body = self.choice()?;
        if is_terminal(&name) && self.aliases.iter().any(Option::is_some) {
            let message = format!("the terminal {name} has an alias");
            return Err(self.scanner.refuse(start, &message, Some("only rules have them")));
        }
        if !is_terminal(&name) {
            if priority != 0 {
                let message = "the priority of a rule chooses among trees only".to_owned();
                self.source.notes.push(Note { message, span: Some(span) });
            }
            let shown = Shown {
                aliases: std::mem::take(&mut self.aliases),
                unwraps: signs.contains('?'),
                keeps_all: signs.contains('!'),
                inlined: name.starts_with('_'),
                ..Shown::ALL
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

    fn parameters(&mut self) -> Result<Vec<String>, Error> {
        let mut parameters = Vec::new();
        if self.scanner.eat("{") {
            loop {
                self.blanks();
                let start = self.scanner.at;
                let name = self.name()?;
                if parameters.contains(&name) {
                    let message = format!("the template has two parameters {name}");
                    return Err(self.scanner.refuse(start, &message, None));
                }
                parameters.push(name);
                self.blanks();
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
        let value = i64::from(self.scanner.integer("a priority is")?);
        Ok(if negative { -value } else { value })
    }

    pub(super) fn choice(&mut self) -> Result<Tree, Error> {
        let mut list = vec![self.both()?];
        let mut aliases = vec![self.alias.take()];
        loop {
            let before = self.scanner.at;
            self.lines();
            if !self.scanner.eat("|") {
                if !self.scanner.is_nested() {
                    self.scanner.at = before;
                    self.aliases = aliases;
                }
                return Ok(Tree::Choice(list));
            }
            list.push(self.both()?);
            aliases.push(self.alias.take());
        }
    }

    /// `A & B`, which goes before `|` and behind everything else.
    fn both(&mut self) -> Result<Tree, Error> {
        let start = self.scanner.at;
        let mut list = vec![self.sequence()?];
        loop {
            let before = self.scanner.at;
            self.lines();
            let is_bare = |one: &Tree| matches!(one, Tree::Sequence(parts) if parts.is_empty());
            if self.scanner.peek() == Some('&') && list.iter().any(is_bare) {
                return Err(self.scanner.unexpected("a part in front of &"));
            }
            if !self.scanner.eat("&") {
                self.scanner.at = before;
                break;
            }
            let one = self.sequence()?;
            if is_bare(&one) {
                return Err(self.scanner.unexpected("a part behind &"));
            }
            list.push(one);
        }
        match list.len() {
            1 => Ok(list.swap_remove(0)),
            _ => Ok(Tree::Both(list, self.scanner.span(start))),
        }
    }

    fn sequence(&mut self) -> Result<Tree, Error> {
        let mut list = Vec::new();
        loop {
            if self.scanner.is_nested() {
                self.lines()
            } else {
                self.blanks()
            }
            match self.scanner.peek() {
                None | Some('\n' | '|' | '&' | ')' | ']' | '}' | ',') => break,
                Some('-') if self.scanner.peek_at(1) == Some('>') => {
                    self.alias = Some(self.alias()?);
                    break;
                }
                _ => {
                    let atom = self.atom()?;
                    list.push(repeated(&mut self.scanner, atom, within, counted)?);
                }
            }
        }
        Ok(Tree::Sequence(list))
    }

    /// The name of an alternative, which ends with it.
    fn alias(&mut self) -> Result<String, Error> {
        let start = self.scanner.at;
        self.scanner.at += 2;
        self.blanks();
        let name = self.name()?;
        if self.scanner.is_nested() || is_terminal(&name) {
            let message = format!("-> {name} is no alias of an alternative");
            let hint = "an alias is written as names of rules are, behind a whole alternative";
            return Err(self.scanner.refuse(start, &message, Some(hint)));
        }
        self.blanks();
        match self.scanner.peek() {
            None | Some('\n' | '|') => Ok(name),
            _ => Err(self.scanner.unexpected("the end of the alternative, behind its alias")),
        }
    }

    fn atom(&mut self) -> Result<Tree, Error> {
        let start = self.scanner.at;
        match self.scanner.peek() {
            Some('(') => self.group(")"),
            Some('[') => Ok(Tree::Maybe(Box::new(self.group("]")?))),
            Some('"') => {
                let (text, ignore_case) = self.text()?;
                let low = self.scanner.at;
                self.blanks();
                if !self.scanner.eat("..") {
                    return Ok(Tree::Leaf(Leaf::text(
                        &text,
                        Flags { ignore_case, ascii: self.ascii, ..Flags::default() },
                        self.scanner.span(start),
                    )?));
                }
                self.blanks();
                let begins = self.scanner.at;
                let (high, high_case) = self.text()?;
                // As the class [a-z], each end as it is written.
                let low = self.scanner.slice(start + 1, low - 1);
                let class =
                    format!("[{low}-{}]", self.scanner.slice(begins + 1, self.scanner.at - 1));
                self.range(start, (&text, &high), &class, ignore_case || high_case)
            }
            Some('/') => self.pattern(),
            Some('%') => self.inline(),
            Some('<') => self.source.special(&mut self.scanner),
            Some('~') => {
                self.scanner.at += 1;
                self.blanks();
                self.scanner.enter()?;
                let one = self.atom()?;
                self.scanner.leave();
                let one = repeated(&mut self.scanner, one, within, counted)?;
                Ok(Tree::Outside(Box::new(one), self.scanner.span(start)))
            }
            Some(one) if is_name(one) => self.reference(),
            _ => Err(self.scanner.unexpected("a name, a text, a pattern or a bracket")),
        }
    }

    fn group(&mut self, close: &str) -> Result<Tree, Error> {
        self.scanner.at += 1;
        self.scanner.enter()?;
        let inner = self.choice()?;
        self.lines();
        self.scanner.leave();
        self.scanner.expect(close, "at the end of a group")?;
        Ok(inner)
    }

    fn reference(&mut self) -> Result<Tree, Error> {
        let start = self.scanner.at;
        let name = self.name()?;
        let mut arguments = Vec::new();
        if self.scanner.eat("{") {
            self.scanner.enter()?;
            loop {
                arguments.push(self.choice()?);
                self.lines();
                if self.scanner.eat("}") {
                    break;
                }
                self.scanner.expect(",", "between the arguments of a template")?;
            }
            self.scanner.leave();
        }
        Ok(Tree::Name(name, arguments, self.scanner.span(start)))
    }

    /// A text and whether case is ignored.
    pub(super) fn text(&mut self) -> Result<(String, bool), Error> {
        let start = self.scanner.at;
        self.scanner.expect("\"", "at the beginning of a text")?;
        let mut text = String::new();
        loop {
            match self.scanner.next() {
                None | Some('\n') => {
                    return Err(self.scanner.refuse(start, "the text has no closing quote", None));
                }
                Some('"') => break,
                Some('\\') => self.escape(&mut text)?,
                Some(one) => text.push(one),
            }
        }
        let ignore_case =
            self.scanner.peek() == Some('i') && !self.scanner.peek_at(1).is_some_and(is_name);
        self.scanner.at += usize::from(ignore_case);
        Ok((text, ignore_case))
    }

    /// Reads what follows a backslash; where that says nothing, the backslash is one.
    fn escape(&mut self, text: &mut String) -> Result<(), Error> {
        let start = self.scanner.at - 1;
        text.push(match self.scanner.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('f') => '\u{c}',
            Some('x') => self.scanner.code_point(start, 2)?,
            Some('u') => self.scanner.code_point(start, 4)?,
            Some('U') => self.scanner.code_point(start, 8)?,
            Some(one @ ('"' | '\\')) => one,
            following => {
                self.scanner.at -= usize::from(following.is_some());
                '\\'
            }
        });
        Ok(())
    }

    fn range(
        &self,
        start: usize,
        ends: (&str, &str),
        class: &str,
        fold: bool,
    ) -> Result<Tree, Error> {
        let single = |text: &str| {
            let mut all = text.chars();
            all.next().filter(|_| all.next().is_none())
        };
        match (single(ends.0), single(ends.1)) {
            (Some(low), Some(high)) if low <= high && !fold => {
                let set = CharSet::from_ranges([(low, high)]);
                let written = format!("{low:?}..{high:?}");
                let mut leaf = Leaf::class(set, written, self.scanner.span(start));
                leaf.length = class.chars().count() as u64;
                (leaf.key, leaf.written_length) = (pattern_key(class, ""), leaf.length);
                Ok(Tree::Leaf(leaf))
            }
            _ => {
                let message = "a range goes from one character up to another, both with case";
                Err(self.scanner.refuse(start, message, None))
            }
        }
    }

    fn pattern(&mut self) -> Result<Tree, Error> {
        let start = self.scanner.at;
        self.scanner.at += 1;
        let mut pattern = String::new();
        loop {
            match self.scanner.next() {
                None => {
                    let message = "the pattern has no closing slash";
                    return Err(self.scanner.refuse(start, message, None));
                }
                Some('/') => break,
                // An escaped slash is one character more in this text than in the pattern's own.
                Some('\\') => {
                    pattern.push('\\');
                    pattern.extend(self.scanner.next());
                }
                Some(one) => pattern.push(one),
            }
        }
        let letters = self.scanner.take_while(|one| "imslux".contains(one));
        if self.scanner.peek().is_some_and(is_name) {
            return Err(self.scanner.unexpected("one of the flags i, m, s, l, u, x"));
        }
        if letters.contains('l') {
            let message = "the flag l depends on a locale, which no grammar has";
            return Err(self.scanner.refuse(start, message, None));
        }
        if letters.contains('u') && self.ascii {
            let message = "the flag u knows all letters, and %ascii those of ASCII only";
            return Err(self.scanner.refuse(start, message, None));
        }
        if pattern.contains('\n') && !letters.contains('x') {
            let message = "the pattern goes on behind the end of its line";
            let hint = Some("close it with a slash, or write the flag x behind it");
            return Err(self.scanner.refuse(start, message, hint));
        }
        let flags = Flags {
            ignore_case: letters.contains('i'),
            multi_line: letters.contains('m'),
            dot_all: letters.contains('s'),
            ascii: self.ascii,
            verbose: letters.contains('x'),
        };
        Ok(Tree::Leaf(Leaf::pattern(&self.scanner, &pattern, start + 1, flags, &letters)?))
    }
}
