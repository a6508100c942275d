//! Literals of Lark grammars: strings, character ranges and patterns.

use formalm_core::{CharSet, Error};
use formalm_regex::PatternFlags;

use crate::notation::SyntaxTree;
use crate::notation::atoms::{Atom, pattern_key};
use crate::notation::lark::{LarkReader, is_name};

impl LarkReader {
    /// Reads a string, or a range between two.
    pub(in crate::notation) fn literal(&mut self) -> Result<SyntaxTree, Error> {
        let start = self.scanner.at;
        let (text, ignore_case) = self.text()?;
        let low = self.scanner.at;
        self.skip_blanks();
        if !self.scanner.eat("..") {
            return Ok(SyntaxTree::Atom(Atom::text(
                &text,
                PatternFlags { ignore_case, ascii: self.ascii, ..PatternFlags::default() },
                self.scanner.span(start),
            )?));
        }
        self.skip_blanks();
        let begins = self.scanner.at;
        let (high, high_case) = self.text()?;
        // Its source form is the class `[a-z]`, with each end as written.
        let low = self.scanner.slice(start + 1, low - 1);
        let class = format!("[{low}-{}]", self.scanner.slice(begins + 1, self.scanner.at - 1));
        self.range(start, (&text, &high), &class, ignore_case || high_case)
    }

    /// Reads a string, and whether it ignores case.
    pub(in crate::notation) fn text(&mut self) -> Result<(String, bool), Error> {
        let start = self.scanner.at;
        self.scanner.expect("\"", "at the start of a string")?;
        let mut text = String::new();
        loop {
            match self.scanner.next() {
                None | Some('\n') => {
                    return Err(self.scanner.refuse(
                        start,
                        "the string has no closing quote",
                        None,
                    ));
                }
                Some('"') => break,
                Some('\\') => self.escape(&mut text)?,
                Some(one) => text.push(one),
            }
        }
        // Lark reads the flag wherever the letter follows, even if it begins a longer name.
        let ignore_case = self.scanner.eat("i");
        Ok((text, ignore_case))
    }

    /// Reads an escape. An unknown escape is a backslash.
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
    ) -> Result<SyntaxTree, Error> {
        let single = |text: &str| {
            let mut all = text.chars();
            all.next().filter(|_| all.next().is_none())
        };
        match (single(ends.0), single(ends.1)) {
            (Some(low), Some(high)) if low <= high && !fold => {
                let set = CharSet::from_ranges([(low, high)]);
                let source = format!("{low:?}..{high:?}");
                let mut atom = Atom::class(set, source, self.scanner.span(start));
                atom.len = class.chars().count() as u64;
                (atom.identity, atom.escaped_len) = (pattern_key(class, ""), atom.len);
                Ok(SyntaxTree::Atom(atom))
            }
            _ => {
                let message = "the ends of a range must be single case-sensitive characters in \
                               ascending order";
                Err(self.scanner.refuse(start, message, None))
            }
        }
    }

    pub(in crate::notation) fn pattern(&mut self) -> Result<SyntaxTree, Error> {
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
                // An escaped slash is one character longer here than in the pattern itself.
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
            let message = "the flag l depends on a locale, which grammars do not have";
            return Err(self.scanner.refuse(start, message, None));
        }
        if letters.contains('u') && self.ascii {
            let message = "the flag u contradicts %ascii";
            return Err(self.scanner.refuse(start, message, None));
        }
        if pattern.contains('\n') && !letters.contains('x') {
            let message = "the pattern continues past the end of its line";
            let hint = Some("close it with a slash, or add the flag x after the slash");
            return Err(self.scanner.refuse(start, message, hint));
        }
        let flags = PatternFlags {
            ignore_case: letters.contains('i'),
            multi_line: letters.contains('m'),
            dot_all: letters.contains('s'),
            ascii: self.ascii,
            verbose: letters.contains('x'),
        };
        Ok(SyntaxTree::Atom(Atom::pattern(&self.scanner, &pattern, start + 1, flags, &letters)?))
    }
}
