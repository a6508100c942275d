//! The binary format of a saved encoder, which a later process reads in a fraction of the time it
//! takes to build one.
//!
//! ```text
//! "formalm encoder\n"   format version u32   payload length u64   checksum 16
//! payload: vocabulary fingerprint   tokenizer checksum   adjacency …   splitter …   normalizer …
//!          pieces …   transitions …   parts …
//! ```
//!
//! Numbers are little-endian; lists and strings begin with their length as u64, as in a saved
//! vocabulary. A checksum is no proof of good intent, so the payload is checked: no number may
//! point outside its table, and no token may be part of itself.

use formalm_core::{ForkSafeMutex, SetOnce};
use rustc_hash::FxHashMap;

use super::adjacency::{Adjacency, NONE};
use super::adjacency_masks::AdjacencyMasks;
use super::base_symbols::{BaseSymbols, ByteTokens};
use super::encoder::{BpeEncoder, TokenOrigin};
use super::forbidden_intervals::{AdjacencySide, ForbiddenInterval};
use super::free_text::FreeTextTables;
use super::merge_rules::{MergeRule, MergeRules};
use super::part_library::PartLibrary;
use super::pretoken_model::PretokenModel;
use super::pretokenizer::boundary_automaton::BoundaryAutomaton;
use super::pretokenizer::byte_level_steps::SplitBytes;
use super::pretokenizer::pretoken_splitter::{SectionFilter, Splitter};
use super::pretokenizer::unsettled_boundaries::UnsettledBoundaries;
use super::token_transitions::{SavedTransitions, TokenTransitions};
use super::whole_tokens::WholeTokens;
use crate::checksum::{CHECKSUM_BYTES, checksum};
use crate::normalization::{ClusterRules, SectionRules, TextFilter};
use crate::saved_vocabulary::{ByteReader, write_bytes, write_length, write_numbers};
use crate::token_byte_table::MAX_IDS;
use crate::{Error, Vocabulary};

const FILE_LABEL: &[u8] = b"formalm encoder\n";
const FORMAT_VERSION: u32 = 8;

impl BpeEncoder {
    /// Serializes the encoder for [`BpeEncoder::from_saved`], with the fingerprint of the
    /// vocabulary that it was checked against and the checksum of its tokenizer file.
    pub fn save(&self, vocabulary: &Vocabulary, tokenizer: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(64 * self.origins.len());
        write_bytes(&mut payload, vocabulary.fingerprint().as_bytes());
        write_bytes(&mut payload, &checksum(tokenizer));
        write_adjacency(&mut payload, &self.adjacency);
        let (partition, table, flags) = self.splitter.boundaries().parts();
        write_numbers(&mut payload, &partition);
        write_numbers(&mut payload, table);
        write_numbers(&mut payload, &[self.splitter.boundaries().text_start_number()]);
        flags.into_iter().for_each(|flags| write_flags(&mut payload, flags));
        let split_bytes = self.splitter.boundaries().split_bytes();
        write_numbers(&mut payload, &split_bytes.map(SplitBytes::to_numbers).unwrap_or_default());
        write_filter(&mut payload, self.splitter.section_filter());
        self.write_piece_tables(&mut payload);
        write_transitions(&mut payload, self.token_transitions(vocabulary));
        self.parts.write(&mut payload);
        let mut out = Vec::with_capacity(payload.len() + 64);
        out.extend_from_slice(FILE_LABEL);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        out.extend_from_slice(&checksum(&payload));
        out.extend_from_slice(&payload);
        out
    }

    /// Reads the bytes that [`BpeEncoder::save`] returned.
    ///
    /// # Errors
    ///
    /// The data is something else, truncated, damaged, written by another version of this library,
    /// or belongs to another vocabulary or tokenizer.
    pub fn from_saved(
        data: &[u8],
        vocabulary: &Vocabulary,
        tokenizer_checksum: &[u8],
    ) -> Result<BpeEncoder, Error> {
        let rest =
            data.strip_prefix(FILE_LABEL).ok_or_else(|| again("is not in a known format"))?;
        let mut reader = ByteReader(rest);
        let version = reader.number()?;
        if version != FORMAT_VERSION {
            let message = format!(
                "has format {version}, but this version of formalm reads format {FORMAT_VERSION}"
            );
            return Err(again(&message));
        }
        let length = reader.length()?;
        let expected = reader.take(CHECKSUM_BYTES)?;
        if reader.0.len() as u64 != length || checksum(reader.0) != expected {
            return Err(again("is damaged"));
        }
        if reader.text()? != vocabulary.fingerprint() || reader.bytes()? != tokenizer_checksum {
            return Err(again("belongs to another tokenizer"));
        }
        let adjacency = read_adjacency(&mut reader, vocabulary)?;
        let (partition, table) = (reader.numbers()?, reader.numbers()?);
        let [text_start] = reader.numbers()?[..] else { return Err(wrong("cuts")) };
        let flags = [flags(&mut reader)?, flags(&mut reader)?, flags(&mut reader)?];
        let split_bytes = match &reader.numbers()?[..] {
            [] => None,
            numbers => Some(SplitBytes::from_numbers(numbers).ok_or_else(|| wrong("cuts"))?),
        };
        let table = (table, text_start);
        let boundaries = BoundaryAutomaton::from_parts(&partition, table, flags, split_bytes)
            .ok_or_else(|| wrong("cuts"))?;
        let splitter = Splitter::new(boundaries, read_filter(&mut reader)?);
        let mut encoder = read_piece_tables(&mut reader, adjacency, splitter)?;
        let len = encoder.origins.len().max(vocabulary.len());
        *encoder.saved_transitions.lock() = read_transitions(&mut reader, len)?;
        let splitter = &encoder.splitter;
        encoder.parts = PartLibrary::read(&mut reader, splitter, vocabulary, || wrong("parts"))?;
        if !reader.0.is_empty() {
            return Err(wrong("end"));
        }
        Ok(encoder)
    }

    fn write_piece_tables(&self, out: &mut Vec<u8>) {
        let kinds: Vec<u8> = self.origins.iter().map(|&kind| number(kind)).collect();
        write_bytes(out, &kinds);
        let (mut characters, bytes) = match &self.symbols {
            BaseSymbols::Bytes(bytes) => (Vec::new(), Some(bytes)),
            BaseSymbols::Characters(ids, bytes) => {
                (ids.iter().map(|(&c, &id)| (u32::from(c), id)).collect(), bytes.as_ref())
            }
        };
        characters.sort_unstable();
        write_numbers(out, bytes.map_or(&[], |bytes| &bytes[..]));
        write_numbers(out, &characters.into_iter().flat_map(|(c, id)| [c, id]).collect::<Vec<_>>());
        let whole_tokens = self.whole_tokens.list();
        write_length(out, whole_tokens.len());
        for (id, merged) in whole_tokens {
            write_numbers(out, &[*id, u32::from(merged.is_some())]);
            write_numbers(out, merged.as_deref().unwrap_or_default());
        }
        let mut texts: Vec<(&Vec<u8>, &u32)> = self.by_text.iter().collect();
        texts.sort_unstable();
        write_length(out, texts.len());
        for (text, &id) in texts {
            write_numbers(out, &[id]);
            write_bytes(out, text);
        }
        write_flags(out, &[self.prepends, self.prepends_after_special]);
    }
}

fn write_flags(out: &mut Vec<u8>, flags: &[bool]) {
    write_bytes(out, &flags.iter().map(|&flag| u8::from(flag)).collect::<Vec<_>>());
}

fn write_adjacency(out: &mut Vec<u8>, adjacency: &Adjacency) {
    let rank = |token: usize| {
        let rule = adjacency.rules.get(adjacency.left[token], adjacency.right[token]);
        rule.map_or(0, |rule| rule.rank)
    };
    let ranks: Vec<u32> = (0..adjacency.left.len()).map(rank).collect();
    let lists =
        [&adjacency.left, &adjacency.right, &adjacency.time, &ranks, &adjacency.early_tokens];
    lists.into_iter().for_each(|list| write_numbers(out, list));
    write_flags(out, &adjacency.reachable);
    write_flags(out, &adjacency.early);
    for side in [&adjacency.after, &adjacency.before] {
        write_numbers(out, &side.order);
        write_numbers(out, &side.offsets);
        write_length(out, 12 * side.intervals.len());
        for interval in &side.intervals {
            for number in [interval.time, interval.start, interval.end] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }
}

fn read_adjacency(
    reader: &mut ByteReader<'_>,
    vocabulary: &Vocabulary,
) -> Result<Adjacency, Error> {
    let (left, right) = (reader.numbers()?, reader.numbers()?);
    let (time, ranks) = (reader.numbers()?, reader.numbers()?);
    let early_tokens = reader.numbers()?;
    let (reachable, early) = (flags(reader)?, flags(reader)?);
    let len = left.len();
    let lengths = [right.len(), time.len(), ranks.len(), reachable.len(), early.len()];
    let size = |token: u32| vocabulary.token_bytes(token).map_or(0, <[u8]>::len);
    let made = |token: usize| match (left[token], right[token]) {
        (NONE, NONE) => time[token] == 0,
        (left, right) => {
            // Parts are shorter than the whole, so decomposing a token terminates.
            let fits = left < len as u32 && right < len as u32 && reachable[token];
            fits && size(left) > 0
                && size(right) > 0
                && size(left) + size(right) == size(token as u32)
        }
    };
    if lengths != [len; 5] || len > MAX_IDS || !(0..len).all(made) {
        return Err(wrong("tokens"));
    }
    if early_tokens.iter().any(|&token| token as usize >= len) {
        return Err(wrong("early tokens"));
    }
    let (after, before) = (side(reader, len)?, side(reader, len)?);
    let joined: Vec<(u32, u32, MergeRule)> = (0..len)
        .filter(|&token| left[token] != NONE)
        .map(|at| (left[at], right[at], MergeRule { rank: ranks[at], token: at as u32 }))
        .collect();
    let rules = MergeRules::new(joined);
    let patches = ForkSafeMutex::default();
    let (early_partners, early_positions) = Default::default();
    Ok(Adjacency {
        left,
        right,
        time,
        reachable,
        early,
        early_tokens,
        rules,
        after,
        before,
        patches,
        early_partners,
        early_positions,
    })
}

fn side(reader: &mut ByteReader<'_>, len: usize) -> Result<AdjacencySide, Error> {
    let (order, offsets) = (reader.numbers()?, reader.numbers()?);
    let numbers = reader.bytes()?;
    let number = |part: &[u8], at: usize| u32::from_le_bytes(std::array::from_fn(|i| part[at + i]));
    let intervals: Vec<ForbiddenInterval> = numbers
        .chunks_exact(12)
        .map(|part| ForbiddenInterval {
            time: number(part, 0),
            start: number(part, 4),
            end: number(part, 8),
        })
        .collect();
    let fits = order.iter().all(|&token| (token as usize) < len)
        && offsets.len() == len + 1
        && offsets.is_sorted()
        && offsets.last() == Some(&(intervals.len() as u32))
        && numbers.len() % 12 == 0
        && intervals.iter().all(|i| i.start < i.end && i.end as usize <= order.len());
    if fits { Ok(AdjacencySide { order, offsets, intervals }) } else { Err(wrong("neighbors")) }
}

fn write_filter(out: &mut Vec<u8>, filter: Option<&SectionFilter>) {
    let Some(filter) = filter else { return write_flags(out, &[]) };
    write_flags(out, &[filter.added_separates, filter.text.is_some()]);
    write_bytes(out, filter.name.as_bytes());
    let (flags, replaced) = filter.rules.parts();
    write_flags(out, &flags);
    write_length(out, replaced.len());
    replaced.iter().for_each(|text| write_bytes(out, text.as_bytes()));
    let clusters = filter.rules.clusters.as_ref();
    let lists = clusters.map_or_else(Vec::new, |clusters| clusters.to_numbers());
    write_length(out, lists.len());
    lists.iter().for_each(|list| write_numbers(out, list));
    for numbers in filter.text.as_ref().map(TextFilter::to_numbers).into_iter().flatten() {
        write_numbers(out, &numbers);
    }
}

fn read_filter(reader: &mut ByteReader<'_>) -> Result<Option<SectionFilter>, Error> {
    let [added_separates, has_text] = flags(reader)?[..] else { return Ok(None) };
    let name = reader.text()?;
    let rule_flags = flags(reader)?;
    let mut replaced = Vec::new();
    for _ in 0..reader.length()? {
        replaced.push(reader.text()?.to_owned());
    }
    let wrong = || wrong("normalizer");
    let mut rules = SectionRules::from_parts(&rule_flags, &replaced).ok_or_else(wrong)?;
    let mut lists = Vec::new();
    for _ in 0..reader.length()? {
        lists.push(reader.numbers()?);
    }
    if !lists.is_empty() {
        rules.clusters = Some(Box::new(ClusterRules::from_numbers(&lists).ok_or_else(wrong)?));
    }
    let mut text = None;
    if has_text {
        let numbers = [reader.numbers()?, reader.numbers()?, reader.numbers()?];
        text = Some(TextFilter::from_numbers(numbers).ok_or_else(wrong)?);
    }
    Ok(Some(SectionFilter { name, text, rules, added_separates }))
}

fn read_piece_tables(
    reader: &mut ByteReader<'_>,
    adjacency: Adjacency,
    splitter: Splitter,
) -> Result<BpeEncoder, Error> {
    let kinds = reader.bytes()?;
    let bytes = reader.numbers()?.into_boxed_slice();
    let bytes: Option<ByteTokens> = match bytes.is_empty() {
        true => None,
        false => Some(bytes.try_into().map_err(|_| wrong("bytes"))?),
    };
    let mut kinds: Vec<TokenOrigin> = kinds
        .iter()
        .map(|&byte| kind(byte))
        .collect::<Option<_>>()
        .ok_or_else(|| wrong("kinds"))?;
    let numbers = reader.numbers()?;
    let characters: Option<FxHashMap<char, u32>> =
        numbers.chunks_exact(2).map(|pair| Some((char::from_u32(pair[0])?, pair[1]))).collect();
    let characters = characters.ok_or_else(|| wrong("characters"))?;
    let symbols = match characters.is_empty() {
        true => BaseSymbols::Bytes(bytes.ok_or_else(|| wrong("bytes"))?),
        false => {
            for (byte, &id) in bytes.iter().flat_map(|bytes| bytes.iter()).enumerate() {
                *kinds.get_mut(id as usize).ok_or_else(|| wrong("bytes"))? =
                    TokenOrigin::Byte(byte as u8);
            }
            BaseSymbols::Characters(characters, bytes)
        }
    };
    let mut whole_tokens = Vec::new();
    for _ in 0..reader.length()? {
        let [id, is_known] = reader.numbers()?[..] else { return Err(wrong("whole pieces")) };
        let merged = reader.numbers()?;
        if merged.iter().chain([&id]).any(|&token| token as usize >= kinds.len()) {
            return Err(wrong("whole pieces"));
        }
        whole_tokens.push((id, (is_known == 1).then_some(merged)));
    }
    let mut by_text = FxHashMap::default();
    for _ in 0..reader.length()? {
        let [id] = reader.numbers()?[..] else { return Err(wrong("texts")) };
        by_text.insert(reader.bytes()?.to_vec(), id);
    }
    let [prepends, prepends_after_special] = flags(reader)?[..] else {
        return Err(wrong("spaces"));
    };
    Ok(BpeEncoder {
        adjacency,
        splitter,
        symbols,
        whole_tokens: WholeTokens::new(whole_tokens),
        model: PretokenModel::Merges,
        by_text,
        origins: kinds,
        prepends,
        prepends_after_special,
        transition_tables: SetOnce::new(),
        saved_transitions: ForkSafeMutex::default(),
        adjacency_masks: AdjacencyMasks::default(),
        unsettled: UnsettledBoundaries::default(),
        free_text: FreeTextTables::default(),
        parts: PartLibrary::default(),
        extension: SetOnce::new(),
    })
}

/// Writes the transitions of tokens; nothing if there are too many distinct ones.
fn write_transitions(out: &mut Vec<u8>, transitions: Option<&TokenTransitions>) {
    let (of, extends) = transitions.map(TokenTransitions::parts).unwrap_or_default();
    write_bytes(out, &of.into_iter().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    let rows = extends.into_iter().map(|(before, byte)| u32::from(before) << 8 | u32::from(byte));
    write_numbers(out, &rows.collect::<Vec<_>>());
}

fn read_transitions(
    reader: &mut ByteReader<'_>,
    len: usize,
) -> Result<Option<SavedTransitions>, Error> {
    let of = reader.bytes()?.chunks_exact(2);
    let of: Vec<u16> = of.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let rows = reader.numbers()?;
    if of.is_empty() && rows.is_empty() {
        return Ok(None);
    }
    let extends = rows.into_iter().map(|row| ((row >> 8) as u16, row as u8)).collect();
    let saved = (of, extends);
    match TokenTransitions::are_consistent(&saved, len) {
        true => Ok(Some(saved)),
        false => Err(wrong("transitions")),
    }
}

fn flags(reader: &mut ByteReader<'_>) -> Result<Vec<bool>, Error> {
    Ok(reader.bytes()?.iter().map(|&byte| byte != 0).collect())
}

fn number(kind: TokenOrigin) -> u8 {
    match kind {
        // The base symbols hold the byte.
        TokenOrigin::Never | TokenOrigin::Byte(_) => 0,
        TokenOrigin::Merged => 1,
        TokenOrigin::Whole => 2,
        TokenOrigin::Added => 3,
    }
}

fn kind(number: u8) -> Option<TokenOrigin> {
    [TokenOrigin::Never, TokenOrigin::Merged, TokenOrigin::Whole, TokenOrigin::Added]
        .get(usize::from(number))
        .copied()
}

fn again(what: &str) -> Error {
    Error::new(format!("the saved tokenizer data {what}"))
        .hint("save the vocabulary again from the tokenizer's file")
}

fn wrong(what: &str) -> Error {
    again(&format!("is inconsistent: {what}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use formalm_core::ByteSet;

    use super::*;
    use crate::bpe::part_library::{PartPositionKey, PartTokens, UnsettledTokens};
    use crate::bpe::token_set::TokenSet;
    use crate::bpe::whole_tokens::PretokenState;

    /// A tokenizer that merges characters and spells other characters in bytes.
    fn file() -> String {
        let mut pieces: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
        let list = ["\u{2581}", "a", "b", "c", "\u{e9}", "ab", "abc", "\u{2581}a", "cc", "bcc"];
        pieces.extend(list.map(str::to_owned));
        let vocab: Vec<String> =
            pieces.iter().enumerate().map(|(id, piece)| format!("{piece:?}: {id}")).collect();
        format!(
            r#"{{"normalizer": {{"type": "Replace", "pattern": {{"String": " "}},
                "content": "\u2581"}}, "decoder": {{"type": "Sequence", "decoders": [
                {{"type": "Replace", "pattern": {{"String": "\u2581"}}, "content": " "}},
                {{"type": "ByteFallback"}}, {{"type": "Fuse"}}]}}, "model": {{"type": "BPE",
                "byte_fallback": true, "vocab": {{{}}}, "merges": ["a b", "ab c", "\u2581 a",
                "c c", "b cc"]}}}}"#,
            vocab.join(", ")
        )
    }

    fn made() -> (Vocabulary, BpeEncoder) {
        let file = file();
        let vocabulary =
            Vocabulary::from_tokenizer_json(file.as_bytes(), None).expect("a vocabulary");
        let encoder = BpeEncoder::from_tokenizer_json(file.as_bytes(), None).expect("an encoder");
        encoder.check(&vocabulary).expect("its own vocabulary");
        let splitter_state = encoder.splitter().start();
        for name in [7, u128::MAX] {
            let all = TokenSet::Mask(vec![u32::MAX; 8].into_iter().chain([3]).collect());
            let list = Arc::new(TokenSet::List(vec![258, 257]));
            let group = |begins| {
                let (pretoken, tokens) = (PretokenState::PLAIN, Arc::clone(&list));
                Arc::new(UnsettledTokens { begins, splitter_state, pretoken, tokens })
            };
            let settled = [Arc::new(all), Arc::new(TokenSet::List(Vec::new()))];
            let tokens = PartTokens { settled, unsettled: [group(true), group(false)].into() };
            let key = PartPositionKey { name, boundaries: splitter_state.boundaries };
            let first_bytes = (ByteSet::default(), name == 7);
            assert!(encoder.parts.insert(&[key], Some(first_bytes), tokens));
        }
        (vocabulary, encoder)
    }

    /// The answers of an encoder about some strings and all pairs of tokens.
    fn answers(encoder: &BpeEncoder) -> (Vec<Option<Vec<u32>>>, Vec<u32>) {
        let texts = ["abcc bcc", " a\u{e9}\n", "\u{4e2d}ab", ""];
        let mut forbidden = Vec::new();
        for token in 0..266 {
            for after in [true, false] {
                encoder.forbidden(token, after, |tokens| forbidden.extend_from_slice(tokens));
            }
            forbidden.extend((256..266).filter(|&other| encoder.may_follow(token, other)));
        }
        (texts.map(|text| encoder.encode(text)).to_vec(), forbidden)
    }

    #[test]
    fn a_saved_encoder_reads_back_equal() {
        let (vocabulary, encoder) = made();
        let saved = encoder.save(&vocabulary, b"name");
        let read = BpeEncoder::from_saved(&saved, &vocabulary, &checksum(b"name"))
            .expect("what was saved");
        assert_eq!(answers(&read), answers(&encoder));
        assert_eq!(read.parts.len(), 2);
        assert_eq!(read.save(&vocabulary, b"name"), saved);
        let message = |data: &[u8], name: &[u8]| {
            BpeEncoder::from_saved(data, &vocabulary, &checksum(name)).expect_err("wrong").message
        };
        assert!(message(&saved, b"other").contains("another tokenizer"));
        for at in (0..saved.len()).step_by(97) {
            message(&saved[..at], b"name");
            let mut damaged = saved.clone();
            damaged[at] ^= 4;
            message(&damaged, b"name");
        }
    }

    #[test]
    fn damage_with_a_valid_checksum_does_not_panic() {
        let (vocabulary, encoder) = made();
        let saved = encoder.save(&vocabulary, b"name");
        let start = FILE_LABEL.len() + 12;
        let (mut refused, mut read) = (0, 0);
        for at in (start + CHECKSUM_BYTES..saved.len()).step_by(37) {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut damaged = saved.clone();
                damaged[at] = value;
                let true_checksum = checksum(&damaged[start + CHECKSUM_BYTES..]);
                damaged[start..start + CHECKSUM_BYTES].copy_from_slice(&true_checksum);
                // Some changes yield other valid tokenizers. None may panic, hang or allocate much
                // memory.
                match BpeEncoder::from_saved(&damaged, &vocabulary, &checksum(b"name")) {
                    Ok(encoder) => {
                        answers(&encoder);
                        read += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > 100 && read > 100, "{refused} {read}");
    }
}
