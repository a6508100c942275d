//! Statements of Lark: lines that begin with `%`.

use formalm_automata::Error;

use super::lark::{Reader, is_name};

impl Reader {
    /// Reads a statement, up to the end of its line.
    pub(super) fn statement(&mut self) -> Result<(), Error> {
        let start = self.scanner.at;
        self.scanner.at += 1;
        let name = self.name()?;
        self.blanks();
        match &*name {
            "ignore" => {
                let tree = self.choice()?;
                self.source.ignored.push((tree, self.scanner.span(start)));
                Ok(())
            }
            "whole" => {
                let tree = self.choice()?;
                self.source.whole.push((tree, self.scanner.span(start)));
                Ok(())
            }
            "declare" => {
                while self.scanner.peek().is_some_and(is_name) {
                    let start = self.scanner.at;
                    let name = self.name()?;
                    self.source.declared.push((name, self.scanner.span(start)));
                    self.blanks();
                }
                Ok(())
            }
            "import" => self.import(start),
            "override" | "extend" => {
                let hint = Some("write the definition as it is meant");
                let message = format!("%{name} changes what was imported: not supported");
                Err(self.scanner.refuse(start, &message, hint))
            }
            _ => Err(self.scanner.refuse(start, &format!("%{name} is not known"), None)),
        }
    }
}
