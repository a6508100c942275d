//! The steps of a `normalizer` that lose text, and the filter of texts that all of them leave
//! unchanged.
//!
//! Steps are combined by intersection. That is right for at most one normalization form, lowercase
//! and removal of accents, in any order: what one of them changes, no other one restores. Two forms
//! do restore each other's changes (NFD, then NFC), so such a sequence is refused.

use formalm_core::CharSet;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::text_filter::TextFilter;
use super::unicode_tables::{NormalizationForm, Probes, ProbesChanged, UnicodeTables, probes};
use crate::Error;
use crate::tokenizer_json::{TokenizerFile, kind, steps};

/// A text that the served library has to normalize, so that its tables are known.
#[derive(Clone, Debug)]
pub struct NormalizerProbe {
    /// The name of the normalizer, as the file format spells it.
    pub kind: &'static str,
    /// Strings, one a line. No normalizer changes a line break or composes across it.
    pub text: String,
}

/// The results of the library for the texts of [`normalizer_probes`], in order.
pub(crate) type NormalizerAnswers<'a> = &'a [String];

/// The steps of a normalizer that change text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextNormalizer {
    names: Vec<String>,
    form: Option<NormalizationForm>,
    lowercase: bool,
    strip_accents: bool,
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
        let _is_known = normalizer.add(step).is_ok();
    }
    Ok(normalizer.probes())
}

impl NormalizerProbe {
    /// Returns the answer of a library with the newest tables.
    pub(crate) fn newest_answer(&self) -> String {
        match self.kind {
            "NFC" => self.text.nfc().collect(),
            "NFD" => self.text.nfd().collect(),
            "NFKD" => self.text.nfkd().collect(),
            "Lowercase" => self.text.chars().flat_map(char::to_lowercase).collect(),
            _ => self.text.chars().filter(|&c| !is_combining_mark(c)).collect(),
        }
    }
}

impl TextNormalizer {
    /// Adds a step. Returns `false` if it is of another kind.
    ///
    /// # Errors
    ///
    /// The step cannot be combined with those before it.
    pub(crate) fn add(&mut self, step: &Value) -> Result<bool, Error> {
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
                self.strip_accents = true;
                self.names.push(name);
                return Ok(true);
            }
            // What else it does, the split steps of words say.
            "BertNormalizer" => {
                let lowercase = step["lowercase"].as_bool().unwrap_or(true);
                let strip_accents = step["strip_accents"].as_bool().unwrap_or(lowercase);
                self.lowercase |= lowercase;
                self.strip_accents |= strip_accents;
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

    /// Returns `true` if no step changes text.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
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
        if self.strip_accents {
            list.push(NormalizerProbe { kind: "StripAccents", text: lines(&is_combining_mark) });
        }
        list
    }

    /// Builds the filter of texts that no step changes, from the library's answers to the probes,
    /// or by the newest tables.
    ///
    /// # Errors
    ///
    /// The answers are not those to the probes.
    pub(crate) fn filter(
        &self,
        answers: Option<NormalizerAnswers<'_>>,
    ) -> Result<Option<TextFilter>, Error> {
        if self.is_empty() {
            return Ok(None);
        }
        let probes = self.probes();
        let newest: Vec<String>;
        let answers = match answers {
            Some(answers) => answers,
            None => {
                newest = probes.iter().map(NormalizerProbe::newest_answer).collect();
                &newest
            }
        };
        self.filter_of(&probes, answers).map(Some).ok_or_else(|| {
            Error::new("the answers of the library do not fit the probes of its normalizer")
        })
    }

    fn filter_of(&self, probes: &[NormalizerProbe], answers: &[String]) -> Option<TextFilter> {
        if probes.len() != answers.len() {
            return None;
        }
        let mut changed = probes.iter().zip(answers).map(|(probe, answer)| {
            let (before, after) = (probe.text.split('\n'), answer.split('\n'));
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
        let characters = probes
            .iter()
            .filter(|probe| (probe.kind == "Lowercase") || (probe.kind == "StripAccents"));
        for probe in characters {
            let changed: Vec<bool> = next()?;
            let lines = probe.text.split('\n').filter_map(|line| line.chars().next());
            let ranges = lines.zip(changed).filter(|one| one.1).map(|(c, _)| (c, c));
            rejected = rejected.union(&CharSet::from_ranges(ranges));
        }
        TextFilter::new(&tables, self.form, &rejected)
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
            assert!(normalizer.add(&step).expect("can be combined"), "{kind}");
        }
        normalizer.filter(None).expect("answers fit").expect("steps that change text")
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
        assert!(normalizer.add(&serde_json::json!({"type": "NFD"})).expect("one form"));
        let error = normalizer.add(&serde_json::json!({"type": "NFC"})).expect_err("two forms");
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
