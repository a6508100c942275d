//! The steps of a `normalizer` that lose text, and the texts that all of them leave unchanged.
//!
//! Steps are combined by intersection. That is right if what one of them changes, no other one
//! restores.
//!
//! - Each of the steps that map characters (a normalization form, lowercase, removal of accents and
//!   of control characters) leaves its own results unchanged, in any order. Two forms do restore
//!   each other's changes (NFD, then NFC), so such a sequence is refused.
//! - Stripping a text and collapsing its spaces only shorten it. Every factor of a text that the maps
//!   leave unchanged is left unchanged.
//! - A replacement of a string by a shorter one shortens the text. One of the same length is combined
//!   with steps that shorten, one by a longer string with no other step. Next to maps, only strings
//!   that no map changes are replaced.
//! - A compiled map of characters shortens every text without the characters that it changes. Next to
//!   the other maps, these must not write such characters, nor undo pairs.

use formalm_core::{CharSet, SetOnce};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::cluster_map::{ClusterMap, ClusterRules};
use super::cluster_probes::{self, CLUSTER_PROBES, WITHOUT_JOINERS};
use super::section_rules::SectionRules;
use super::text_filter::TextFilter;
use super::unicode_tables::{NormalizationForm, Probes, ProbesChanged, UnicodeTables, probes};
use crate::Error;
use crate::tokenizer_json::{TokenizerFile, kind, steps};

/// A text that the served library has to normalize, so that its tables are known.
#[derive(Clone, Debug)]
pub struct NormalizerProbe {
    /// The name of the normalizer, as the file format spells it, after a point the only one of its
    /// options that is on.
    pub kind: &'static str,
    /// Strings between separators, which the normalizer neither changes nor composes with others:
    /// letters x for the removal of control characters, otherwise line breaks. The map of a probe of
    /// `Precompiled` replaces `a + U+0301` and `↔ + U+0338` by `x`.
    pub text: String,
}

/// Normalizers that change or remove line breaks.
const BREAKING: [&str; 2] = ["BertNormalizer.clean_text", "Nmt"];

/// Normalizers that change single characters.
const BY_CHARACTER: [&str; 3] = ["Lowercase", "StripAccents", "BertNormalizer.strip_accents"];

/// Characters around which a normalizer for BERT writes spaces.
pub(crate) const IDEOGRAPHS: [(char, char); 8] = [
    ('\u{3400}', '\u{4DBF}'),
    ('\u{4E00}', '\u{9FFF}'),
    ('\u{F900}', '\u{FAFF}'),
    ('\u{20000}', '\u{2A6DF}'),
    ('\u{2A700}', '\u{2B73F}'),
    ('\u{2B740}', '\u{2B81F}'),
    ('\u{2B920}', '\u{2CEAF}'),
    ('\u{2F800}', '\u{2FA1F}'),
];

/// Ranges of characters for private use, all of which are control characters to BERT or none.
const PRIVATE_USE: [(char, char); 3] =
    [('\u{E000}', '\u{F8FF}'), ('\u{F0000}', '\u{FFFFD}'), ('\u{100000}', '\u{10FFFD}')];

/// The results of the library for the texts of [`normalizer_probes`], in order.
pub(crate) type NormalizerAnswers<'a> = &'a [String];

/// The steps of a normalizer that change text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextNormalizer {
    names: Vec<String>,
    form: Option<NormalizationForm>,
    lowercase: bool,
    /// Accents are removed: by their step, and by BERT, which keeps some.
    strip_accents: [bool; 2],
    /// Control characters are removed, and other white space becomes a space: by BERT, and by NMT.
    cleans: [bool; 2],
    /// Spaces are written around ideographs.
    separates_ideographs: bool,
    /// A compiled map of characters.
    map: Option<ClusterMap>,
    rules: SectionRules,
    /// The strings that replace those of the rules.
    contents: Vec<Vec<char>>,
}

/// Returns the texts whose normalization by the served library determines which texts a
/// `tokenizer.json` leaves unchanged; none if it changes no text.
///
/// # Errors
///
/// The file is no `tokenizer.json`.
pub fn normalizer_probes(data: &[u8]) -> Result<Vec<NormalizerProbe>, Error> {
    let file = TokenizerFile::parse(data)?;
    let mut normalizer = TextNormalizer::default();
    for step in steps(&file.normalizer, "normalizers") {
        // Other steps are refused, or part of decoding.
        let _is_known = normalizer.add(step, SpaceMarks::None).is_ok();
    }
    Ok(normalizer.probes())
}

impl NormalizerProbe {
    /// Returns the answer of a library with the newest tables.
    pub(crate) fn newest_answer(&self) -> String {
        if let Some(kind) = CLUSTER_PROBES.iter().position(|&kind| kind == self.kind) {
            return cluster_probes::newest_answer(kind, &self.text);
        }
        match self.kind {
            "NFC" => self.text.nfc().collect(),
            "NFD" => self.text.nfd().collect(),
            "NFKD" => self.text.nfkd().collect(),
            "Lowercase" => self.text.chars().flat_map(char::to_lowercase).collect(),
            "BertNormalizer.clean_text" => self.text.chars().filter_map(cleaned_for_bert).collect(),
            "Nmt" => self.text.chars().filter_map(cleaned_for_nmt).collect(),
            _ => self.text.chars().filter(|&c| !is_combining_mark(c)).collect(),
        }
    }
}

/// How spaces are written when a step reads the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpaceMarks {
    /// As spaces, and the mark of spaces is an ordinary character.
    None,
    /// As spaces; a later step writes marks, so that no text that is given back contains one.
    Later,
    /// As marks.
    Written,
}

/// The mark of a space.
const MARK: char = '\u{2581}';

impl TextNormalizer {
    /// Adds a step. Returns `false` if it is of another kind.
    ///
    /// # Errors
    ///
    /// The step cannot be combined with those before it.
    pub(crate) fn add(&mut self, step: &Value, marks: SpaceMarks) -> Result<bool, Error> {
        let form = |composes, is_compatible| Some(NormalizationForm { composes, is_compatible });
        let name = kind(step).to_owned();
        let form = match &name[..] {
            "NFC" => form(true, false),
            "NFD" => form(false, false),
            "NFKC" => form(true, true),
            "NFKD" => form(false, true),
            "Lowercase" => {
                self.lowercase = true;
                self.names.push(name);
                return Ok(true);
            }
            "StripAccents" => {
                self.strip_accents[0] = true;
                self.names.push(name);
                return Ok(true);
            }
            "Nmt" => {
                self.cleans[1] = true;
                self.names.push(name);
                return Ok(true);
            }
            "Strip" => {
                let strips = |side: &str| step[side].as_bool().unwrap_or(true);
                if marks == SpaceMarks::Written {
                    return Err(Error::new("its normalizer strips text after marking spaces"));
                }
                self.rules.strips_start |= strips("strip_left");
                self.rules.strips_end |= strips("strip_right");
                self.names.push(name);
                return Ok(true);
            }
            "Replace" => return self.add_replacement(step, marks),
            "Precompiled" => {
                self.add_map(step, marks)?;
                return Ok(true);
            }
            "BertNormalizer" => {
                self.cleans[0] |= step["clean_text"].as_bool().unwrap_or(true);
                self.separates_ideographs |= step["handle_chinese_chars"].as_bool().unwrap_or(true);
                let lowercase = step["lowercase"].as_bool().unwrap_or(true);
                let strip_accents = step["strip_accents"].as_bool().unwrap_or(lowercase);
                self.lowercase |= lowercase;
                self.strip_accents[1] |= strip_accents;
                if !strip_accents {
                    self.names.push(name);
                    return Ok(true);
                }
                form(false, false)
            }
            _ => return Ok(false),
        };
        if self.form.is_some() {
            let message = format!("its normalizer has the step {name} after another form");
            return Err(Error::new(message));
        }
        self.names.push(name);
        self.form = form;
        Ok(true)
    }

    /// Adds a compiled map of characters.
    fn add_map(&mut self, step: &Value, marks: SpaceMarks) -> Result<(), Error> {
        let refused = |why: &str| Error::new(format!("its normalizer has the step {why}"));
        if self.map.is_some() {
            return Err(refused("Precompiled twice"));
        }
        if marks == SpaceMarks::Written {
            return Err(refused("Precompiled after marking spaces"));
        }
        let data = step["precompiled_charsmap"].as_str().unwrap_or_default();
        let map = ClusterMap::read(data);
        self.map = Some(map.map_err(|why| refused(&format!("Precompiled, and {why}")))?);
        self.names.push("Precompiled".to_owned());
        Ok(())
    }

    /// Adds a step that replaces a string.
    fn add_replacement(&mut self, step: &Value, marks: SpaceMarks) -> Result<bool, Error> {
        let Some(content) = step["content"].as_str() else { return Ok(false) };
        let is_space = content == " " || content == "\u{2581}" && marks == SpaceMarks::Later;
        if step["pattern"]["Regex"].as_str() == Some(" {2,}") && is_space {
            self.rules.collapses_spaces = true;
            self.names.push("Replace".to_owned());
            return Ok(true);
        }
        let Some(pattern) = step["pattern"]["String"].as_str().filter(|one| !one.is_empty()) else {
            return Ok(false);
        };
        // The strings as they occur in a text that is given back.
        let (pattern, content): (Vec<char>, Vec<char>) = match marks {
            SpaceMarks::None => (pattern.chars().collect(), content.chars().collect()),
            SpaceMarks::Later if pattern.contains(MARK) => return Ok(true),
            SpaceMarks::Written if pattern.contains(' ') => return Ok(true),
            SpaceMarks::Later | SpaceMarks::Written => {
                let spelled = |text: &str| text.replace(MARK, " ").chars().collect();
                (spelled(pattern), spelled(content))
            }
        };
        if pattern == content {
            // Only the whole of a space is read back from its mark in every step.
            return Ok(step["pattern"]["String"].as_str() == step["content"].as_str());
        }
        self.rules.replaced.push(pattern);
        self.contents.push(content);
        self.names.push("Replace".to_owned());
        Ok(true)
    }

    /// Checks that the texts that all steps together leave unchanged are those that each does.
    ///
    /// # Errors
    ///
    /// A step might restore what another one changed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let maps = self.form.is_some()
            || self.lowercase
            || self.strip_accents != [false; 2]
            || self.cleans != [false; 2]
            || self.separates_ideographs;
        let is_inert = |c: &char| c.is_ascii() && !c.is_ascii_control() && !c.is_alphabetic();
        let steps = || self.rules.replaced.iter().zip(&self.contents);
        for (at, (pattern, content)) in steps().enumerate() {
            let is_alone = self.names.len() == 1;
            let meets_others = steps().enumerate().any(|(other, (pattern, _))| {
                other != at && pattern.iter().any(|c| content.contains(c))
            });
            let is_shorter = content.len() < pattern.len();
            let is_mapped = self.map.as_ref().is_some_and(|map| {
                pattern.iter().chain(content).any(|&c| map.characters.contains(c))
            });
            let restores = is_mapped
                || content.len() > pattern.len()
                || content.len() == pattern.len() && meets_others
                || maps && !(is_shorter && pattern.iter().chain(content).all(is_inert));
            if restores && !is_alone {
                let pattern: String = pattern.iter().collect();
                return Err(Error::new(format!(
                    "its normalizer has the step Replace ({pattern:?}) together with {}, and one \
                     might restore what the other changes",
                    self.name()
                )));
            }
        }
        self.map.as_ref().map_or(Ok(()), |map| self.check_map(map))
    }

    /// Checks that no other map restores what a compiled map changes, and the reverse.
    fn check_map(&self, map: &ClusterMap) -> Result<(), Error> {
        let at = self.names.iter().position(|name| name == "Precompiled").unwrap_or_default();
        let is_other = |name: &&String| !["Precompiled", "Replace", "Strip"].contains(&&name[..]);
        let before: Vec<&String> = self.names[..at].iter().filter(is_other).collect();
        let after: Vec<&String> = self.names[at..].iter().filter(is_other).collect();
        let others: Vec<&String> = before.iter().chain(&after).copied().collect();
        let Some(first) = others.first() else { return Ok(()) };
        let refused = |name: &str| {
            let why = "one might restore what the other changes";
            Err(Error::new(format!(
                "its normalizer has the step {name} together with Precompiled, and {why}"
            )))
        };
        let known = ["NFD", "NFKD", "Lowercase", "StripAccents"];
        if let Some(name) = others.iter().find(|name| !known.contains(&&name[..])) {
            return refused(name);
        }
        if !before.is_empty() && !after.is_empty() {
            return refused(first);
        }
        let image = |text: &str| {
            others.iter().fold(text.to_owned(), |text, name| {
                let kind = known.iter().copied().find(|kind| kind == name).unwrap_or_default();
                NormalizerProbe { kind, text }.newest_answer()
            })
        };
        let is_kept = |text: &str| image(text) == text;
        // No step changes any other character.
        let may_change = |c: char| {
            is_combining_mark(c) || !c.to_lowercase().eq([c]) || !std::iter::once(c).nfkd().eq([c])
        };
        let is_changed = |c: char| map.characters.contains(c);
        let candidates = ('\0'..=char::MAX).filter(|&c| may_change(c) && !is_changed(c));
        let writes_changed = candidates.map(String::from).any(|text| {
            let own = image(&text);
            own != text && (!is_kept(&own) || own.chars().any(is_changed))
        });
        let decomposes = self.form.is_some();
        let restores = map.pairs.iter().filter(|([one, other], _)| {
            is_kept(&String::from(*one)) && is_kept(&String::from(*other))
        });
        let mut restores = restores.filter(|(_, value)| match after.is_empty() {
            true => decomposes || !is_kept(value),
            false => image(value).chars().count() > 1,
        });
        match writes_changed || restores.next().is_some() {
            true => refused(first),
            false => Ok(()),
        }
    }

    /// Returns `true` if a compiled map of characters is applied to grapheme clusters.
    pub(crate) fn maps_clusters(&self) -> bool {
        self.map.is_some()
    }

    /// Keeps ideographs: the decoder writes the spaces around them, too.
    pub(crate) fn keep_ideographs(&mut self) {
        self.separates_ideographs = false;
    }

    /// Returns the rules of sections.
    pub(crate) fn rules(&self) -> &SectionRules {
        &self.rules
    }

    /// Returns the steps, as the file spells them.
    pub(crate) fn name(&self) -> String {
        self.names.join(", ")
    }

    fn probes(&self) -> Vec<NormalizerProbe> {
        let mut list = Vec::new();
        if self.form.is_some() {
            let Probes { marks, canonical, compatible, compositions } = probes();
            for (kind, lines) in
                [("NFD", marks), ("NFD", canonical), ("NFKD", compatible), ("NFC", compositions)]
            {
                list.push(NormalizerProbe { kind, text: lines.join("\n") });
            }
        }
        let lines = |is_candidate: &dyn Fn(char) -> bool| {
            let candidates = ('\u{20}'..=char::MAX).filter(|&c| is_candidate(c));
            candidates.map(String::from).collect::<Vec<_>>().join("\n")
        };
        if self.lowercase {
            let is_upper = |c: char| !c.to_lowercase().eq([c]);
            list.push(NormalizerProbe { kind: "Lowercase", text: lines(&is_upper) });
        }
        for (kind, is_on) in BY_CHARACTER[1..].iter().zip(self.strip_accents) {
            if is_on {
                list.push(NormalizerProbe { kind, text: lines(&is_combining_mark) });
            }
        }
        for (kind, is_on) in BREAKING.into_iter().zip(self.cleans) {
            if is_on {
                let text: Vec<String> =
                    cleaned_candidates().iter().map(|&(first, _)| first.to_string()).collect();
                list.push(NormalizerProbe { kind, text: text.join("x") });
            }
        }
        if let Some(map) = &self.map {
            let count =
                if map.joins_pictographs() { CLUSTER_PROBES.len() } else { WITHOUT_JOINERS };
            let probes = CLUSTER_PROBES[..count].iter().enumerate();
            list.extend(
                probes.map(|(at, kind)| NormalizerProbe { kind, text: cluster_probes::text(at) }),
            );
        }
        list
    }

    /// Builds the filter of texts that no step changes, and the rules of sections, from the
    /// library's answers to the probes, or by the newest tables.
    ///
    /// # Errors
    ///
    /// The answers are not those to the probes, or the library divides text in a way that is not
    /// supported.
    pub(crate) fn filter(
        &self,
        answers: Option<NormalizerAnswers<'_>>,
    ) -> Result<(Option<TextFilter>, SectionRules), Error> {
        let mut rules = self.rules.clone();
        let probes = self.probes();
        if probes.is_empty() && !self.separates_ideographs {
            return Ok((None, rules));
        }
        let newest: Vec<String>;
        let answers = match answers {
            Some(answers) => answers,
            None => {
                newest = probes.iter().map(NormalizerProbe::newest_answer).collect();
                &newest
            }
        };
        let wrong =
            || Error::new("the answers of the library do not fit the probes of its normalizer");
        let (text, changed) = self.filter_of(&probes, answers).ok_or_else(wrong)?;
        if let Some(map) = &self.map {
            let parts = cluster_probes::read(&changed).ok_or_else(wrong)?;
            let clusters = ClusterRules::new(map, parts);
            let clusters = clusters.map_err(|why| {
                Error::new(format!("its normalizer has the step Precompiled, and {why}"))
            })?;
            rules.clusters = Some(Box::new(clusters));
        }
        Ok((Some(text), rules))
    }

    /// Returns the filter, and which probes of clusters the library changes.
    fn filter_of(
        &self,
        probes: &[NormalizerProbe],
        answers: &[String],
    ) -> Option<(TextFilter, Vec<Vec<bool>>)> {
        if probes.len() != answers.len() {
            return None;
        }
        let mut changed = probes.iter().zip(answers).map(|(probe, answer)| {
            let separator = if BREAKING.contains(&probe.kind) { 'x' } else { '\n' };
            let (before, after) = (probe.text.split(separator), answer.split(separator));
            let is_complete = before.clone().count() == after.clone().count();
            is_complete.then(|| before.zip(after).map(|(one, other)| one != other).collect())
        });
        let mut next = || changed.next().flatten();
        let tables = match self.form {
            Some(_) => UnicodeTables::new(&ProbesChanged {
                marks: next()?,
                canonical: next()?,
                compatible: next()?,
                compositions: next()?,
            })?,
            None => UnicodeTables::default(),
        };
        let mut rejected = CharSet::empty();
        let characters = probes.iter().filter(|probe| BY_CHARACTER.contains(&probe.kind));
        for probe in characters {
            let changed: Vec<bool> = next()?;
            let lines = probe.text.split('\n').filter_map(|line| line.chars().next());
            let ranges = lines.zip(changed).filter(|one| one.1).map(|(c, _)| (c, c));
            rejected = rejected.union(&CharSet::from_ranges(ranges));
        }
        for _ in probes.iter().filter(|probe| BREAKING.contains(&probe.kind)) {
            let changed: Vec<bool> = next()?;
            let ranges = cleaned_candidates().iter().zip(changed).filter(|one| one.1);
            rejected = rejected.union(&CharSet::from_ranges(ranges.map(|(&range, _)| range)));
        }
        if self.separates_ideographs {
            rejected = rejected.union(&CharSet::from_ranges(IDEOGRAPHS));
        }
        let mut clusters = Vec::new();
        if let Some(map) = &self.map {
            rejected = rejected.union(&map.characters);
            let probes = probes.iter().filter(|probe| CLUSTER_PROBES.contains(&probe.kind));
            clusters = probes.map(|_| next()).collect::<Option<_>>()?;
        }
        Some((TextFilter::new(&tables, self.form, &rejected)?, clusters))
    }
}

/// Returns the characters that some library may remove or turn into a space: singly, or a range
/// that is treated alike.
fn cleaned_candidates() -> &'static [(char, char)] {
    static CANDIDATES: SetOnce<Vec<(char, char)>> = SetOnce::new();
    CANDIDATES.get_or_init(|| {
        let is_other = |c: char| c.is_control() || c.is_whitespace() || is_format(c);
        let odd = ['\u{2581}', '\u{FFFD}', '\u{FFFC}', '\u{34F}', '\u{3164}', '\u{115F}'];
        let single = ('\0'..='\u{E0FFF}')
            .filter(|&c| is_other(c) || odd.contains(&c))
            .filter(|&c| !PRIVATE_USE.iter().any(|&(first, last)| (first..=last).contains(&c)));
        single.map(|c| (c, c)).chain(PRIVATE_USE).collect()
    })
}

/// Returns `true` for a superset of the format characters (category Cf).
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{600}'..='\u{605}' | '\u{61C}' | '\u{6DD}' | '\u{70F}'
        | '\u{890}'..='\u{891}' | '\u{8E2}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202F}' | '\u{205F}'..='\u{206F}'
        | '\u{FEFF}' | '\u{FFF0}'..='\u{FFFD}' | '\u{110BD}' | '\u{110CD}'
        | '\u{13430}'..='\u{1345F}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E007F}')
}

/// Returns a character as BERT cleans it, or `None` if it is removed.
fn cleaned_for_bert(c: char) -> Option<char> {
    let is_private = PRIVATE_USE.iter().any(|&(first, last)| (first..=last).contains(&c));
    match c {
        '\t' | '\n' | '\r' => Some(' '),
        '\u{FFFD}' => None,
        _ if c.is_control() || is_private || (is_format(c) && !c.is_whitespace()) => None,
        _ if c.is_whitespace() => Some(' '),
        _ => Some(c),
    }
}

/// Returns a character as the normalizer of machine translation (NMT) cleans it, or `None` if it is
/// removed.
fn cleaned_for_nmt(c: char) -> Option<char> {
    match c {
        '\u{1}'..='\u{8}' | '\u{B}' | '\u{E}'..='\u{1F}' | '\u{7F}' | '\u{8F}' | '\u{9F}' => None,
        '\t'
        | '\n'
        | '\u{C}'
        | '\r'
        | '\u{1680}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2581}'
        | '\u{FEFF}'
        | '\u{FFFD}' => Some(' '),
        _ => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(kinds: &[&str]) -> TextFilter {
        let mut normalizer = TextNormalizer::default();
        for kind in kinds {
            let step = serde_json::json!({"type": kind});
            assert!(normalizer.add(&step, SpaceMarks::None).expect("can be combined"), "{kind}");
        }
        normalizer.filter(None).expect("answers fit").0.expect("steps that change text")
    }

    /// Starters that compose, marks of many classes, Hangul, and characters that are not stable.
    const TEXTS: &str = "[aeoASǖéồ≠=<\u{300}-\u{34f}\u{591}-\u{5bd}\u{653}-\u{655}ا\u{93c}\u{9c7}\
        \u{9be}\u{9d7}\u{b47}\u{b3e}\u{cc6}\u{cc2}\u{cd5}\u{1025}\u{102e}\u{3099}かᄀ가각\u{1161}\u{1175}\
        \u{11a8}\u{11c2}\u{1dc4}-\u{1dff}\u{20d0}-\u{20f0}\u{958}\u{2126}ﬁ²\u{11131}\u{11127}\u{1d15e}]{1,7}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn filters_accept_exactly_the_texts_that_are_normalized(text in TEXTS) {
            thread_local! {
                static FILTERS: [TextFilter; 4] =
                    [filter(&["NFC"]), filter(&["NFD"]), filter(&["NFKC"]), filter(&["NFKD"])];
            }
            let expected: [String; 4] = [
                text.nfc().collect(), text.nfd().collect(), text.nfkc().collect(), text.nfkd().collect(),
            ];
            FILTERS.with(|filters| {
                for (filter, expected) in filters.iter().zip(&expected) {
                    let state = filter.walk(filter.start(), text.as_bytes());
                    prop_assert_eq!(state.is_some(), *expected == text, "{:?}", text);
                    let prefix = filter.first_change(&text).unwrap_or(text.len());
                    prop_assert!(filter.walk(filter.start(), &text.as_bytes()[..prefix]).is_some());
                }
                Ok(())
            })?;
        }
    }

    #[test]
    fn lowercase_and_accents_reject_what_they_change() {
        let filter = filter(&["NFD", "StripAccents", "Lowercase"]);
        let accepts = |text: &str| filter.first_change(text).is_none();
        assert!(accepts("plain text, 中文 ß"));
        assert!(!accepts("Plain") && !accepts("é") && !accepts("e\u{301}") && !accepts("가"));
    }

    #[test]
    fn a_second_form_is_refused() {
        let mut normalizer = TextNormalizer::default();
        assert!(
            normalizer
                .add(&serde_json::json!({"type": "NFD"}), SpaceMarks::None)
                .expect("one form")
        );
        let error = normalizer
            .add(&serde_json::json!({"type": "NFC"}), SpaceMarks::None)
            .expect_err("two forms");
        assert!(error.message.contains("NFC"));
    }

    #[test]
    fn every_pair_of_a_starter_and_a_second_character_is_decided_alone() {
        let filter = filter(&["NFC"]);
        let starters: Vec<char> = ('\u{3c}'..'\u{1200}')
            .chain('\u{1e00}'..'\u{2300}')
            .chain('\u{ac00}'..'\u{ac40}')
            .collect();
        let seconds =
            ('\u{300}'..='\u{345}').chain(['\u{9be}', '\u{1161}', '\u{11a8}', '\u{3099}']);
        for second in seconds {
            for &starter in &starters {
                let text: String = [starter, second].iter().collect();
                let is_nfc = text.nfc().eq(text.chars());
                assert_eq!(filter.first_change(&text).is_none(), is_nfc, "{text:?}");
            }
        }
    }

    #[test]
    fn saved_tables_read_back_equal() {
        let filter = filter(&["NFKC"]);
        let read = TextFilter::from_numbers(filter.to_numbers()).expect("what was saved");
        assert_eq!(read.digest(), filter.digest());
        let mut damaged = filter.to_numbers();
        damaged[1].pop();
        assert!(TextFilter::from_numbers(damaged).is_none());
    }
}
