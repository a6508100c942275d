//! Translates the `pre_tokenizer` of a tokenizer file into split steps.
//!
//! A step that changes the text instead of splitting it, or splits it in a way that we cannot
//! reproduce exactly, is rejected by name.

use formalm_core::CharSet;
use formalm_regex::{PatternDialect, PatternFlags, PatternNode, parse};
use serde_json::Value;

use super::byte_level_steps::{ClassSplit, SplitBytes, class_of, of_ascii, of_class};
use super::pike_vm::PikeProgram;
use super::pretokenizer_nfa::{SplitBehavior, SplitStep};
use crate::Error;
use crate::normalization::white_space;
use crate::tokenizer_json::{kind, steps};

/// The pattern of ByteLevel unless `use_regex` is false.
const BYTE_LEVEL: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The characters of a Punctuation step.
pub(crate) const PUNCTUATION: &str = r"[\p{P}$+<=>^`|~]";

/// The regex dialect of `tokenizer.json` files.
const ONIGURUMA: PatternDialect = PatternDialect::Oniguruma;

/// The split steps of a pre-tokenizer, and whether it maps text to byte-level characters.
pub(crate) struct SplitSteps {
    pub(crate) list: Vec<SplitStep>,
    pub(crate) byte_level: bool,
    /// The splits inside characters.
    pub(crate) split_bytes: Option<SplitBytes>,
}

impl SplitSteps {
    /// Reads a `pre_tokenizer`. With `marked`, the normalizer has replaced spaces by their mark.
    ///
    /// # Errors
    ///
    /// The pre-tokenizer has a step that is not supported.
    pub(crate) fn read(pre_tokenizer: &Value, marked: bool) -> Result<SplitSteps, Error> {
        let mut split_steps = SplitSteps::none();
        let mut rest = &steps(pre_tokenizer, "pretokenizers")[..];
        while let Some((step, after)) = rest.split_first() {
            let next = after.first().copied().unwrap_or(&Value::Null);
            rest = after;
            let split_step = if split_steps.byte_level {
                split_steps.step_after_byte_level(step).map(Some)
            } else if kind(step) == "WhitespaceSplit" && writes_spaces(next) {
                rest = &after[1..];
                spaced_words().map(Some)
            } else if kind(step) == "WhitespaceSplit" && prepend_scheme(next) == "first" {
                Err(refused(
                    "it splits at white space, and prepends a space to the first word only",
                ))
            } else {
                split_steps.step(step, marked)
            };
            split_steps.list.extend(split_step.map_err(|error| error.at("pre_tokenizer"))?);
        }
        Ok(split_steps)
    }

    fn step(&mut self, step: &Value, marked: bool) -> Result<Option<SplitStep>, Error> {
        let on = |name: &str, default: bool| step[name].as_bool().unwrap_or(default);
        match kind(step) {
            "ByteLevel" => {
                self.byte_level = true;
                if on("add_prefix_space", true) {
                    return Err(refused("its ByteLevel step inserts a space before the text"));
                }
                match on("use_regex", true) {
                    true => {
                        split_step(&read(BYTE_LEVEL, ONIGURUMA)?, SplitBehavior::Isolated, false)
                            .map(Some)
                    }
                    false => Ok(None),
                }
            }
            "Split" => {
                let node = split_pattern(step)?;
                let node = if marked { with_marks(node) } else { node };
                let invert = on("invert", false);
                match step["behavior"].as_str() {
                    // Matches are removed, or gaps if it is inverted.
                    Some("Removed") => split_step(&node, SplitBehavior::Lossy, !invert).map(Some),
                    _ => split_step(&node, behavior(step)?, invert).map(Some),
                }
            }
            "Digits" => {
                let pattern = if on("individual_digits", false) { r"\p{N}" } else { r"\p{N}+" };
                split_step(&read(pattern, ONIGURUMA)?, SplitBehavior::Isolated, false).map(Some)
            }
            "Punctuation" => {
                let node = read(PUNCTUATION, ONIGURUMA)?;
                split_step(&node, behavior(step)?, false).map(Some)
            }
            "Metaspace" => {
                if step["replacement"].as_str() != Some("\u{2581}") {
                    return Err(refused(
                        "its Metaspace step replaces spaces with a character other than ▁",
                    ));
                }
                match on("split", true) {
                    // The mark itself, if the text contains it, looks like a space from here on.
                    true => split_step(
                        &read("[ \u{2581}]", ONIGURUMA)?,
                        SplitBehavior::MergedWithNext,
                        false,
                    )
                    .map(Some),
                    false => Ok(None),
                }
            }
            "WhitespaceSplit" => {
                // What it removes cannot be given back.
                let node = PatternNode::Class(white_space());
                split_step(&node, SplitBehavior::Lossy, true).map(Some)
            }
            "Whitespace" => {
                let node = read(r"\w+|[^\w\s]+", PatternDialect::Rust)?;
                split_step(&node, SplitBehavior::Lossy, false).map(Some)
            }
            other => Err(refused(&format!("it has the unknown step {other}"))),
        }
    }

    /// Reads a step that splits the characters that stand for bytes.
    fn step_after_byte_level(&mut self, step: &Value) -> Result<SplitStep, Error> {
        let name = kind(step);
        let refuse = |why: &str| refused(&format!("it has the step {name} after ByteLevel{why}"));
        let individual = || step["individual_digits"].as_bool().unwrap_or(false);
        let (node, split) = match name {
            "Digits" if individual() => (read(r"\p{N}", ONIGURUMA)?, SplitBehavior::Isolated),
            "Digits" => (read(r"\p{N}+", ONIGURUMA)?, SplitBehavior::Isolated),
            "Punctuation" => (read(PUNCTUATION, ONIGURUMA)?, behavior(step)?),
            "Split" => (split_pattern(step)?, behavior(step)?),
            _ => return Err(refuse("")),
        };
        let invert = name == "Split" && step["invert"].as_bool().unwrap_or(false);
        if let Some(node) = of_ascii(node.clone()) {
            return split_step(&node, split, invert);
        }
        let inside = "which splits inside characters";
        let (class, kind) = match (class_of(&node), split) {
            (Some(one), SplitBehavior::Isolated) => one,
            (Some((class, _)), SplitBehavior::Contiguous) => (class, ClassSplit::Runs),
            _ => return Err(refuse(&format!(", {inside} at more than one class"))),
        };
        let Some((node, bytes)) = of_class(class, kind) else {
            return Err(refuse(&format!(", {inside} after their first byte")));
        };
        if self.split_bytes.replace(bytes).is_some() {
            return Err(refuse(&format!(", {inside} as another step does")));
        }
        split_step(&node, SplitBehavior::Isolated, false)
    }

    /// Builds the split of tiktoken: its pre-tokens are the matches of a pattern.
    pub(crate) fn of_pattern(pattern: &str) -> Result<SplitSteps, Error> {
        let node = read(pattern, PatternDialect::Fancy).map_err(|error| error.at("pattern"))?;
        let list = vec![split_step(&node, SplitBehavior::Lossy, false)?];
        Ok(SplitSteps { list, byte_level: true, split_bytes: None })
    }

    /// Builds a split whose pre-tokens are the matches of a pattern; other text has no tokens.
    pub(crate) fn of_matches(node: &PatternNode) -> Result<SplitSteps, Error> {
        let list = vec![split_step(node, SplitBehavior::Lossy, false)?];
        Ok(SplitSteps { list, ..SplitSteps::none() })
    }

    /// Returns no steps: the text is one pre-token.
    pub(crate) fn none() -> SplitSteps {
        SplitSteps { list: Vec::new(), byte_level: false, split_bytes: None }
    }

    /// Inserts a first step that cuts out the added tokens with a string.
    pub(crate) fn cut_out<'a>(
        &mut self,
        added: impl Iterator<Item = &'a str>,
    ) -> Result<(), Error> {
        // If several begin at one place, the longest one is meant.
        let mut texts: Vec<&str> = added.collect();
        if texts.is_empty() {
            return Ok(());
        }
        texts.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
        let node = PatternNode::Alternation(texts.into_iter().map(literal).collect());
        self.list.insert(0, split_step(&node, SplitBehavior::Isolated, false)?);
        Ok(())
    }

    /// Returns the steps, at least one: a step that splits nothing has a pattern without matches.
    pub(crate) fn at_least_one(self) -> Result<Vec<SplitStep>, Error> {
        match self.list.is_empty() {
            true => {
                let nothing = PatternNode::Class(CharSet::empty());
                Ok(vec![split_step(&nothing, SplitBehavior::Isolated, false)?])
            }
            false => Ok(self.list),
        }
    }
}

/// Returns how a Metaspace step prepends spaces: `always`, `first` or `never`.
pub(crate) fn prepend_scheme(step: &Value) -> &str {
    let without = step["add_prefix_space"].as_bool() == Some(false);
    step["prepend_scheme"].as_str().unwrap_or(if without { "never" } else { "always" })
}

/// Returns `true` for a step that prepends a space to every part.
fn writes_spaces(step: &Value) -> bool {
    kind(step) == "Metaspace"
        && step["replacement"].as_str() == Some("\u{2581}")
        && prepend_scheme(step) == "always"
}

/// Builds the split at white space after which every word gets a space: words with single spaces are
/// given back.
fn spaced_words() -> Result<SplitStep, Error> {
    let repeat = |set: CharSet, min, max| {
        let node = Box::new(PatternNode::Class(set));
        PatternNode::Repeat { node, min, max, lazy: false }
    };
    let space = repeat(CharSet::single(' '), 0, Some(1));
    let word = repeat(white_space().complement(), 1, None);
    split_step(&PatternNode::Concat(vec![space, word]), SplitBehavior::Lossy, false)
}

/// Returns the pattern of a Split step.
fn split_pattern(step: &Value) -> Result<PatternNode, Error> {
    match (step["pattern"]["Regex"].as_str(), &step["pattern"]["String"]) {
        (Some(pattern), _) => read(pattern, ONIGURUMA),
        (None, Value::String(text)) => Ok(literal(text)),
        _ => Err(refused("its Split step has an unknown kind of pattern")),
    }
}

/// Returns the pattern of raw text for a pattern of text in which the normalizer has written the mark
/// of spaces: no space is left, and a mark stands for one.
fn with_marks(node: PatternNode) -> PatternNode {
    let all = |nodes: Vec<PatternNode>| nodes.into_iter().map(with_marks).collect();
    match node {
        PatternNode::Class(set) => {
            let (space, mark) = (CharSet::single(' '), CharSet::single('\u{2581}'));
            let is_marked = set.contains('\u{2581}');
            let set = set.difference(&space.union(&mark));
            PatternNode::Class(if is_marked { set.union(&space) } else { set })
        }
        PatternNode::Concat(nodes) => PatternNode::Concat(all(nodes)),
        PatternNode::Alternation(nodes) => PatternNode::Alternation(all(nodes)),
        PatternNode::Repeat { node, min, max, lazy } => {
            PatternNode::Repeat { node: Box::new(with_marks(*node)), min, max, lazy }
        }
        PatternNode::Group { index, node } => {
            PatternNode::Group { index, node: Box::new(with_marks(*node)) }
        }
        PatternNode::Atomic(node) => PatternNode::Atomic(Box::new(with_marks(*node))),
        PatternNode::Look { ahead, negative, node } => {
            PatternNode::Look { ahead, negative, node: Box::new(with_marks(*node)) }
        }
        other => other,
    }
}

/// Returns the characters of a class as `tokenizer.json` files write it.
pub(crate) fn character_set(class: &str) -> Result<CharSet, Error> {
    match read(class, ONIGURUMA)? {
        PatternNode::Class(set) => Ok(set),
        _ => Err(refused("a character class is not understood")),
    }
}

fn behavior(step: &Value) -> Result<SplitBehavior, Error> {
    match step["behavior"].as_str() {
        Some("Isolated") => Ok(SplitBehavior::Isolated),
        Some("MergedWithPrevious") => Ok(SplitBehavior::MergedWithPrevious),
        Some("MergedWithNext") => Ok(SplitBehavior::MergedWithNext),
        Some("Contiguous") => Ok(SplitBehavior::Contiguous),
        Some("Removed") => Err(refused("it removes punctuation")),
        _ => Err(refused("its Split step has an unknown behavior")),
    }
}

fn read(pattern: &str, dialect: PatternDialect) -> Result<PatternNode, Error> {
    match parse(pattern, dialect, PatternFlags::default()) {
        Ok(pattern) => Ok(pattern.root),
        Err(error) => Err(refused(&format!("its pattern is not supported: {error}"))),
    }
}

fn literal(text: &str) -> PatternNode {
    PatternNode::Concat(text.chars().map(|c| PatternNode::Class(CharSet::single(c))).collect())
}

fn split_step(
    node: &PatternNode,
    behavior: SplitBehavior,
    invert: bool,
) -> Result<SplitStep, Error> {
    Ok(SplitStep::new(PikeProgram::new(node)?, behavior, invert))
}

fn refused(reason: &str) -> Error {
    Error::new(format!("this pre-tokenizer is not supported exactly: {reason}"))
        .hint("use tokenization=\"all\" with this vocabulary")
}
