//! From the `pre_tokenizer` of a file to divisions. What changes the text instead of dividing it,
//! or divides it in ways that we do not know exactly, is refused by name.

use formalm_automata::CharSet;
use formalm_automata::syntax::{Dialect, Flags, Node, parse};
use serde_json::Value;

use super::pike_vm::Program;
use super::pretokenizer_nfa::{Behavior, Division};
use crate::Error;
use crate::tokenizer_json::{kind, steps};

/// What ByteLevel divides by unless it is told not to.
const BYTE_LEVEL: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The patterns of `tokenizer.json` files.
const ONIGURUMA: Dialect = Dialect::Oniguruma;

/// The divisions of a pre-tokenizer, and whether it turns text into byte-level characters.
pub(crate) struct Divisions {
    pub(crate) list: Vec<Division>,
    pub(crate) byte_level: bool,
}

impl Divisions {
    /// Reads a `pre_tokenizer`.
    ///
    /// # Errors
    ///
    /// A step that we cannot follow.
    pub(crate) fn read(pre_tokenizer: &Value) -> Result<Divisions, Error> {
        let mut divisions = Divisions { list: Vec::new(), byte_level: false };
        for step in steps(pre_tokenizer, "pretokenizers") {
            let division = divisions.step(step).map_err(|error| error.at("pre_tokenizer"))?;
            if divisions.byte_level && division.is_some() && kind(step) != "ByteLevel" {
                let message = format!("it has {} after ByteLevel", kind(step));
                return Err(refused(&message).at("pre_tokenizer"));
            }
            divisions.list.extend(division);
        }
        Ok(divisions)
    }

    fn step(&mut self, step: &Value) -> Result<Option<Division>, Error> {
        let on = |name: &str, default: bool| step[name].as_bool().unwrap_or(default);
        match kind(step) {
            "ByteLevel" => {
                self.byte_level = true;
                if on("add_prefix_space", true) {
                    return Err(refused("its ByteLevel puts a space in front of text"));
                }
                match on("use_regex", true) {
                    true => {
                        division(&read(BYTE_LEVEL, ONIGURUMA)?, Behavior::Isolated, false).map(Some)
                    }
                    false => Ok(None),
                }
            }
            "Split" => {
                let node = match (step["pattern"]["Regex"].as_str(), &step["pattern"]["String"]) {
                    (Some(pattern), _) => read(pattern, ONIGURUMA)?,
                    (None, Value::String(text)) => literal(text),
                    _ => return Err(refused("its Split has a pattern of an unknown kind")),
                };
                let behavior = behavior(step)?;
                division(&node, behavior, on("invert", false)).map(Some)
            }
            "Digits" => {
                let pattern = if on("individual_digits", false) { r"\p{N}" } else { r"\p{N}+" };
                division(&read(pattern, ONIGURUMA)?, Behavior::Isolated, false).map(Some)
            }
            "Metaspace" => {
                if step["replacement"].as_str() != Some("\u{2581}") {
                    return Err(refused("its Metaspace replaces spaces by something else than ▁"));
                }
                match on("split", true) {
                    // The mark itself, where a text has it, looks like a space from then on.
                    true => {
                        division(&read("[ \u{2581}]", ONIGURUMA)?, Behavior::MergedWithNext, false)
                            .map(Some)
                    }
                    false => Ok(None),
                }
            }
            other => Err(refused(&format!("it has {other}"))),
        }
    }

    /// What tiktoken divides by: its pieces are the matches of a pattern.
    pub(crate) fn of_pattern(pattern: &str) -> Result<Divisions, Error> {
        let node = read(pattern, Dialect::Fancy).map_err(|error| error.at("pattern"))?;
        let list = vec![division(&node, Behavior::Lossy, false)?];
        Ok(Divisions { list, byte_level: true })
    }

    /// None: text is one piece.
    pub(crate) fn none() -> Divisions {
        Divisions { list: Vec::new(), byte_level: false }
    }

    /// Puts the added tokens that are text in front: they are cut out before anything else.
    pub(crate) fn cut_out<'a>(
        &mut self,
        added: impl Iterator<Item = &'a str>,
    ) -> Result<(), Error> {
        // Of several that begin at one place the longest is meant.
        let mut texts: Vec<&str> = added.collect();
        if texts.is_empty() {
            return Ok(());
        }
        texts.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
        let node = Node::Alternation(texts.into_iter().map(literal).collect());
        self.list.insert(0, division(&node, Behavior::Isolated, false)?);
        Ok(())
    }

    /// The divisions, at least one: what divides nothing has no match.
    pub(crate) fn at_least_one(self) -> Result<Vec<Division>, Error> {
        match self.list.is_empty() {
            true => {
                let nothing = Node::Class(CharSet::empty());
                Ok(vec![division(&nothing, Behavior::Isolated, false)?])
            }
            false => Ok(self.list),
        }
    }
}

fn behavior(step: &Value) -> Result<Behavior, Error> {
    match step["behavior"].as_str() {
        Some("Isolated") => Ok(Behavior::Isolated),
        Some("MergedWithPrevious") => Ok(Behavior::MergedWithPrevious),
        Some("MergedWithNext") => Ok(Behavior::MergedWithNext),
        Some("Contiguous") => Ok(Behavior::Contiguous),
        Some("Removed") => Err(refused("its Split removes text")),
        _ => Err(refused("its Split has an unknown behavior")),
    }
}

fn read(pattern: &str, dialect: Dialect) -> Result<Node, Error> {
    match parse(pattern, dialect, Flags::default()) {
        Ok(pattern) => Ok(pattern.root),
        Err(error) => Err(refused(&format!("its pattern cannot be followed: {error}"))),
    }
}

fn literal(text: &str) -> Node {
    Node::Concat(text.chars().map(|c| Node::Class(CharSet::single(c))).collect())
}

fn division(node: &Node, behavior: Behavior, invert: bool) -> Result<Division, Error> {
    Ok(Division::new(Program::new(node)?, behavior, invert))
}

fn refused(reason: &str) -> Error {
    Error::new(format!("this pre-tokenizer is not known exactly: {reason}"))
        .hint("use tokenization=\"all\" with this vocabulary")
}
