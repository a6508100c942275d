//! Directives of Lark grammars: lines that begin with `%`.

use formalm_core::Error;

use crate::notation::lark::{LarkReader, is_name};

/// The hint for texts that refer to other files.
pub(in crate::notation) const USE_LARK_HINT: &str =
    "load the grammar with Lark: Grammar.from_lark(lark.Lark.open(path, parser=\"lalr\"))";

impl LarkReader {
    /// Reads the tree options that Lark takes for a whole grammar.
    fn tree_options(&mut self) -> Result<(), Error> {
        loop {
            let start = self.scanner.at;
            match &*self.scanner.take_while(is_name) {
                "keep_all_tokens" => self.source.keeps_all = true,
                "no_placeholders" => self.source.without_placeholders = true,
                _ => {
                    self.scanner.at = start;
                    let wanted = "keep_all_tokens or no_placeholders";
                    return Err(self.scanner.unexpected(wanted));
                }
            }
            self.skip_blanks();
            if matches!(self.scanner.peek(), None | Some('\n')) {
                return Ok(());
            }
        }
    }

    /// Reads a directive up to the end of its line.
    pub(in crate::notation) fn directive(&mut self) -> Result<(), Error> {
        let start = self.scanner.at;
        self.scanner.at += 1;
        let name = self.name()?;
        self.skip_blanks();
        match &*name {
            "ignore" | "whole" if matches!(self.scanner.peek(), None | Some('\n' | '\r')) => {
                Err(self.scanner.unexpected(&format!("a terminal after %{name}")))
            }
            "ignore" => {
                let tree = self.choice()?;
                self.refuse_aliases(start, "an ignored terminal")?;
                self.source.ignored.push((tree, self.scanner.span(start)));
                Ok(())
            }
            "whole" => {
                let tree = self.choice()?;
                self.refuse_aliases(start, "a %whole terminal")?;
                self.source.whole.push((tree, self.scanner.span(start)));
                Ok(())
            }
            "declare" => {
                if matches!(self.scanner.peek(), None | Some('\n' | '\r')) {
                    return Err(self.scanner.unexpected("a name after %declare"));
                }
                while self.scanner.peek().is_some_and(is_name) {
                    let start = self.scanner.at;
                    let name = self.name()?;
                    self.source.declared.push((name, self.scanner.span(start)));
                    self.skip_blanks();
                }
                Ok(())
            }
            "import" => self.import(start),
            "ascii" => {
                let all = &self.source;
                if all.rules.len() + all.terminals.len() + all.ignored.len() + all.whole.len() > 0 {
                    let message = "%ascii must precede all definitions";
                    return Err(self.scanner.refuse(start, message, None));
                }
                self.ascii = true;
                Ok(())
            }
            "trees" => self.tree_options(),
            "override" | "extend" => {
                let hint = format!("write the final definition directly, or {USE_LARK_HINT}");
                let message = format!("%{name} is not supported");
                Err(self.scanner.refuse(start, &message, Some(&hint)))
            }
            "llguidance" => {
                let hint = Some("remove the line: formalm has no such options");
                let message = "%llguidance sets options of llguidance, which do not apply here";
                Err(self.scanner.refuse(start, message, hint))
            }
            _ => Err(self.scanner.refuse(start, &format!("unknown directive %{name}"), None)),
        }
    }
}
