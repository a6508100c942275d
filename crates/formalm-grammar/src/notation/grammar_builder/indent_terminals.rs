//! The indentation terminals of a Lark text, by name.

use formalm_automata::Expression;
use formalm_core::Error;

use super::{Definitions, TerminalTable};
use crate::grammar::Terminal;
use crate::indentation::{ColumnRules, Indentation};
use crate::notation::lark::terminal_length::PatternLengths;
use crate::notation::terminal_order::{RankedTerminal, TerminalRank};

/// The indentation rules of a grammar, with terminals given by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndentationNames {
    /// The newline terminal, which the text defines.
    pub newline: String,
    /// The terminal before an indented block, which the text declares.
    pub indent: String,
    /// The terminal after an indented block, which the text declares.
    pub dedent: String,
    /// Opening brackets, by terminal name or by string.
    pub opening: Vec<String>,
    /// Closing brackets, by terminal name or by string.
    pub closing: Vec<String>,
    /// The rules for counting columns.
    pub rules: ColumnRules,
    /// The width of a tab, in columns.
    pub tab: u32,
    /// The widest indentation, in columns.
    pub widest: u32,
    /// Maximum number of levels, including the outermost.
    pub levels: u32,
}

fn refused(message: String, hint: &str) -> Error {
    Error::language(message, Some(hint))
}

impl TerminalTable {
    /// Adds the indentation terminals, which come first.
    pub(super) fn add_indent_terminals(&mut self, names: &Definitions<'_>) -> Result<(), Error> {
        let Some(levels) = names.levels else { return Ok(()) };
        for name in [&levels.indent, &levels.dedent] {
            let Some((_, span)) = names.source.declared.iter().find(|one| one.0 == *name) else {
                let message = format!("the indentation terminal {name} is not declared");
                return Err(refused(
                    message,
                    "write %declare followed by its name on a line of its own",
                ));
            };
            if names.has_terminal(name) || (levels.indent == levels.dedent) {
                let message = format!("the indentation terminal {name} is defined twice");
                return Err(refused(
                    message,
                    "remove its definition: indentation terminals have no pattern",
                ));
            }
            let language = Expression::literals(Vec::new());
            let terminal =
                Terminal { name: name.clone(), language, sublanguage: None, span: Some(*span) };
            let pattern_lengths = PatternLengths::unbounded();
            let kind =
                TerminalRank { priority: 0, text: None, pattern_lengths, sort_name: name.clone() };
            self.push(terminal, kind);
        }
        Ok(())
    }

    /// Returns the indentation rules with terminals by index.
    pub(super) fn indentation(
        &self,
        names: &Definitions<'_>,
    ) -> Result<Option<Indentation>, Error> {
        let Some(levels) = names.levels else { return Ok(None) };
        let found =
            |name: &str| {
                let is_it = |one: &RankedTerminal| {
                    one.terminal.name == name
                        || one.kind.text.as_deref() == Some(name)
                        || one.kind.sort_name == name
                };
                self.terminals.iter().position(is_it).ok_or_else(|| {
                let message = format!("indentation refers to the terminal {name}, which the \
                                       grammar does not have");
                let hint = "use terminals that the rules contain, or literals as written in the \
                            rules; without brackets, pass opening=() and closing=()";
                refused(message, hint)
            })
            };
        let all = |collect_names: &[String]| -> Result<Vec<usize>, Error> {
            collect_names.iter().map(|one| found(one)).collect()
        };
        Ok(Some(Indentation {
            newline: found(&levels.newline)?,
            indent: 0,
            dedent: 1,
            opening: all(&levels.opening)?,
            closing: all(&levels.closing)?,
            rules: levels.rules,
            tab: levels.tab,
            widest: levels.widest,
            levels: levels.levels,
        }))
    }
}
