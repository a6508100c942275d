//! Minimal acyclic word automata (DAWGs) over bytes: the leaves of terms.
//!
//! A character class is the DAWG of its UTF-8 encodings, a list of strings the DAWG of its members.
//! Nodes are hash-consed, so equal suffixes are shared and automata built here are minimal. Unicode
//! classes stay cheap because they are leaves: they are never expanded into terms.

use std::convert::Infallible;

use formalm_core::{CharSet, ClassCover, Interner, WIDE_PARTS, memory_bytes};
use regex_syntax::utf8::{Utf8Range, Utf8Sequence, Utf8Sequences};
use rustc_hash::FxHashMap;

use crate::terms::INITIAL_CAPACITY;

/// Identifies a node of one [`Dawgs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DawgId(pub(crate) u32);

memory_bytes!(none: DawgId);

/// The node that accepts only the empty string.
pub(crate) const END: DawgId = DawgId(0);

/// An inclusive byte range and its successor. The edges of a node are sorted and disjoint.
type DawgEdge = (u8, u8, DawgId);

/// The bytes of the strings below a node; see [`ByteAlphabet::within`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteAlphabet {
    /// ASCII bytes that occur, as bits.
    pub(crate) ascii: u128,
    /// `true` if bytes of multi-byte characters occur.
    pub(crate) wide: bool,
    /// `true` if a string may start inside a character.
    pub(crate) inside: bool,
    /// `true` if bytes may occur where no UTF-8 has them.
    pub(crate) invalid_utf8: bool,
}

impl ByteAlphabet {
    /// Returns the bytes of either.
    pub(crate) fn join(self, other: ByteAlphabet) -> ByteAlphabet {
        ByteAlphabet {
            ascii: self.ascii | other.ascii,
            wide: self.wide || other.wide,
            inside: self.inside || other.inside,
            invalid_utf8: self.invalid_utf8 || other.invalid_utf8,
        }
    }

    /// Returns `true` if every string over these bytes is one over the characters of `class`.
    pub(crate) fn within(self, class: CharClassCover) -> bool {
        !self.inside
            && !self.invalid_utf8
            && self.ascii & !class.ascii == 0
            && (!self.wide || class.wide == [ClassCover::Full; WIDE_PARTS])
    }
}

/// The extent of a node that stands for a character class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CharClassCover {
    /// ASCII members, as bits.
    pub(crate) ascii: u128,
    /// How much of each part of the non-ASCII characters is in the class.
    pub(crate) wide: [ClassCover; WIDE_PARTS],
}

impl CharClassCover {
    /// Returns `true` if the class has all characters.
    pub(crate) fn is_total(self) -> bool {
        self.ascii == !0 && self.wide == [ClassCover::Full; WIDE_PARTS]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DawgNode {
    accepting: bool,
    edges: Box<[DawgEdge]>,
}

/// The nodes along a word while the automaton of sorted words is built. Nodes below the word are
/// empty and keep their allocations.
struct WordPath {
    nodes: Vec<(bool, Vec<DawgEdge>)>,
    /// The length of the word.
    depth: usize,
}

/// An arena of hash-consed acyclic automata.
#[derive(Clone, Debug)]
pub(crate) struct Dawgs {
    nodes: Interner<DawgNode>,
    min_len: Vec<u32>,
    alphabet: Vec<ByteAlphabet>,
    classes: FxHashMap<DawgId, (CharClassCover, CharSet)>,
    /// The nodes of classes by their set: a pattern often repeats a class.
    sets: FxHashMap<CharSet, DawgId>,
    edge_count: usize,
}

impl Dawgs {
    pub(crate) fn new() -> Dawgs {
        let mut dags = Dawgs {
            nodes: Interner::with_capacity(INITIAL_CAPACITY),
            min_len: Vec::with_capacity(INITIAL_CAPACITY),
            alphabet: Vec::with_capacity(INITIAL_CAPACITY),
            classes: FxHashMap::default(),
            sets: FxHashMap::default(),
            edge_count: 0,
        };
        dags.intern(true, &mut Vec::new());
        dags
    }

    /// Returns the automaton of one character of `set`, or `None` if the set is empty.
    pub(crate) fn class(&mut self, set: &CharSet) -> Option<DawgId> {
        if let Some(&known) = self.sets.get(set) {
            return Some(known);
        }
        let id = self.class_before(set, END)?;
        let ascii = self.alphabet[id.0 as usize].ascii;
        let cover = CharClassCover { ascii, wide: set.wide_cover() };
        self.classes.insert(id, (cover, set.clone()));
        self.sets.insert(set.clone(), id);
        Some(id)
    }

    /// Returns the automaton of one character of `set` followed by `end`, or `None` if the set is
    /// empty.
    pub(crate) fn class_before(&mut self, set: &CharSet, end: DawgId) -> Option<DawgId> {
        let last = set.ranges().last()?.1;
        if last.is_ascii() {
            let edge = |&(low, high): &(char, char)| (low as u8, high as u8, end);
            return Some(self.intern(false, &mut set.ranges().iter().map(edge).collect()));
        }
        let ranges = set.ranges().iter();
        let sequences: Vec<Utf8Sequence> =
            ranges.flat_map(|&(low, high)| Utf8Sequences::new(low, high)).collect();
        let slices: Vec<&[Utf8Range]> = sequences.iter().map(Utf8Sequence::as_slice).collect();
        Some(self.class_node(&slices, 0, end))
    }

    /// Builds the node of the sequences that share their first `depth` ranges. The ranges of a set
    /// are disjoint, so first ranges are equal or disjoint.
    fn class_node(&mut self, sequences: &[&[Utf8Range]], depth: usize, end: DawgId) -> DawgId {
        let mut edges: Vec<DawgEdge> = Vec::new();
        let mut rest = sequences;
        while let Some(first) = rest.first() {
            if first.len() == depth {
                return end;
            }
            let range = first[depth];
            let same = rest.partition_point(|other| other[depth].start <= range.start);
            let child = self.class_node(&rest[..same], depth + 1, end);
            edges.push((range.start, range.end, child));
            rest = &rest[same..];
        }
        self.intern(false, &mut edges)
    }

    /// Returns the bytes at which a new byte class starts; a class is not distinguished anywhere
    /// below a node.
    pub(crate) fn class_starts(&self, node: DawgId) -> Box<[u8]> {
        let mut starts = [false; 256];
        starts[0] = true;
        self.mark_starts(node, &mut vec![false; self.nodes.len()], &mut starts);
        (0..=255u8).filter(|&byte| starts[usize::from(byte)]).collect()
    }

    /// Marks the bytes at which edges below a node begin, or that follow their ends. `seen` holds
    /// nodes that are done.
    pub(crate) fn mark_starts(&self, node: DawgId, seen: &mut [bool], starts: &mut [bool; 256]) {
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut seen[node.0 as usize], true) {
                continue;
            }
            for &(low, high, child) in self.edges(node) {
                starts[usize::from(low)] = true;
                if high < 255 {
                    starts[usize::from(high) + 1] = true;
                }
                stack.push(child);
            }
        }
    }

    /// Builds the automaton of sorted, distinct words; `None` if there are none.
    ///
    /// Incremental construction over sorted words (Daciuk et al., 2000). It is iterative, so a word
    /// may be as long as memory allows.
    pub(crate) fn words<T: AsRef<[u8]>>(&mut self, texts: &[T]) -> Option<DawgId> {
        let Ok(found) = self.words_checked(texts, || Ok::<_, Infallible>(()));
        found
    }

    /// Builds the automaton as [`Dawgs::words`] does, and fails where `check`, called at each word,
    /// does.
    pub(crate) fn words_checked<T: AsRef<[u8]>, E>(
        &mut self,
        texts: &[T],
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<DawgId>, E> {
        let mut path = WordPath { nodes: vec![(false, Vec::new())], depth: 0 };
        let mut previous: &[u8] = &[];
        for text in texts {
            check()?;
            let text = text.as_ref();
            let common = previous.iter().zip(text).take_while(|(a, b)| a == b).count();
            self.close(&mut path, previous, common);
            path.depth = text.len();
            if path.nodes.len() <= path.depth {
                path.nodes.resize_with(path.depth + 1, || (false, Vec::new()));
            }
            path.nodes[path.depth].0 = true;
            previous = text;
        }
        self.close(&mut path, previous, 0);
        let (accepting, edges) = &mut path.nodes[0];
        Ok((*accepting || !edges.is_empty()).then(|| self.intern(*accepting, edges)))
    }

    /// Interns the nodes of `path` below depth `keep`.
    fn close(&mut self, path: &mut WordPath, word: &[u8], keep: usize) {
        while path.depth > keep {
            let (accepting, edges) = &mut path.nodes[path.depth];
            let child = self.intern(*accepting, edges);
            (*accepting, path.depth) = (false, path.depth - 1);
            edges.clear();
            let byte = word[path.depth];
            path.nodes[path.depth].1.push((byte, byte, child));
        }
    }

    fn intern(&mut self, accepting: bool, edges: &mut Vec<DawgEdge>) -> DawgId {
        edges.dedup_by(|next, kept| {
            let joins = kept.2 == next.2 && kept.1.checked_add(1) == Some(next.0);
            if joins {
                kept.1 = next.1;
            }
            joins
        });
        let node = DawgNode { accepting, edges: edges.as_slice().into() };
        if let Some(id) = self.nodes.find(&node) {
            return DawgId(id);
        }
        let below = node.edges.iter().map(|edge| self.min_len[edge.2.0 as usize]);
        self.min_len.push(if accepting { 0 } else { below.min().unwrap_or(0).saturating_add(1) });
        self.alphabet.push(self.edge_alphabet(&node.edges));
        self.edge_count += node.edges.len();
        DawgId(self.nodes.intern_new(node))
    }

    /// Returns a node for the nonempty words below `node`; there must be one.
    pub(crate) fn without_empty(&mut self, node: DawgId) -> DawgId {
        let mut edges = self.edges(node).to_vec();
        self.intern(false, &mut edges)
    }

    fn edge_alphabet(&self, edges: &[DawgEdge]) -> ByteAlphabet {
        let mut letters = ByteAlphabet::default();
        for &(low, high, child) in edges {
            let below = self.alphabet[child.0 as usize];
            letters = letters.join(ByteAlphabet { inside: false, ..below });
            letters.wide |= high >= 0x80;
            letters.inside |= high >= 0x80 && low < 0xC0;
            // A lead byte needs continuation bytes after it; an ASCII byte must not have one.
            let goes_on = |&(low, high, _): &DawgEdge| low >= 0x80 && high < 0xC0;
            let parted = self.is_accepting(child) || !self.edges(child).iter().all(goes_on);
            letters.invalid_utf8 |= low < 0x80 && below.inside
                || high >= 0xC0 && parted
                || high >= 0xF5
                || low <= 0xC1 && high >= 0xC0;
            if low < 0x80 {
                let (below, upto) = ((1u128 << low) - 1, u128::MAX >> (127 - high.min(0x7F)));
                letters.ascii |= upto & !below;
            }
        }
        letters
    }

    /// Returns the node after `byte`.
    pub(crate) fn step(&self, node: DawgId, byte: u8) -> Option<DawgId> {
        let edges = self.edges(node);
        let after = edges.partition_point(|edge| edge.0 <= byte);
        let edge = edges[..after].last()?;
        (byte <= edge.1).then_some(edge.2)
    }

    /// Returns the bytes around `byte` with the same successor.
    pub(crate) fn byte_span(&self, node: DawgId, byte: u8) -> (u8, u8) {
        let edges = self.edges(node);
        let after = edges.partition_point(|edge| edge.0 <= byte);
        match edges[..after].last() {
            Some(&(low, high, _)) if byte <= high => (low, high),
            before => {
                let low = before.map_or(0, |edge| edge.1 + 1);
                (low, edges.get(after).map_or(255, |edge| edge.0 - 1))
            }
        }
    }

    pub(crate) fn edges(&self, node: DawgId) -> &[DawgEdge] {
        &self.nodes.get(node.0).edges
    }

    pub(crate) fn is_accepting(&self, node: DawgId) -> bool {
        self.nodes.get(node.0).accepting
    }

    /// Returns the length of the shortest word, in bytes.
    pub(crate) fn min_len(&self, node: DawgId) -> u32 {
        self.min_len[node.0 as usize]
    }

    /// Writes the smallest shortest word.
    pub(crate) fn write_shortest_word(&self, mut node: DawgId, text: &mut Vec<u8>) {
        while let Some(left) = self.min_len(node).checked_sub(1) {
            let next = self.edges(node).iter().find(|edge| self.min_len(edge.2) == left);
            let Some(&(byte, _, next)) = next else { return };
            text.push(byte);
            node = next;
        }
    }

    pub(crate) fn alphabet(&self, node: DawgId) -> ByteAlphabet {
        self.alphabet[node.0 as usize]
    }

    /// Returns `true` if every word below a node has an ASCII byte outside `letters`, as far as its
    /// unbranched first bytes show.
    pub(crate) fn requires_ascii_outside(&self, node: DawgId, letters: u128) -> bool {
        let mut node = node;
        loop {
            let edges = self.edges(node);
            let other = |&(low, high, _): &DawgEdge| {
                high < 0x80 && (low..=high).all(|byte| letters & 1 << byte == 0)
            };
            if self.is_accepting(node) || edges.is_empty() {
                return false;
            }
            if edges.iter().all(other) {
                return true;
            }
            let &[(.., next)] = edges else { return false };
            node = next;
        }
    }

    /// Returns the cover of a node made by [`Dawgs::class`].
    pub(crate) fn class_cover(&self, node: DawgId) -> Option<CharClassCover> {
        self.classes.get(&node).map(|(cover, _)| *cover)
    }

    /// Returns the characters of a node made by [`Dawgs::class`].
    pub(crate) fn class_set(&self, node: DawgId) -> Option<&CharSet> {
        self.classes.get(&node).map(|(_, set)| set)
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.len() * 112 + 2 * self.edge_count * size_of::<DawgEdge>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(dags: &Dawgs, node: DawgId, text: &[u8]) -> bool {
        let end = text.iter().try_fold(node, |node, &byte| dags.step(node, byte));
        end.is_some_and(|node| dags.is_accepting(node))
    }

    #[test]
    fn a_class_accepts_the_encodings_of_its_members() {
        let mut dags = Dawgs::new();
        let set = CharSet::from_ranges([('a', 'f'), ('é', 'ÿ'), ('一', '龥'), ('😀', '😏')]);
        let node = dags.class(&set).unwrap();
        for character in ('\0'..='\u{FFFF}').step_by(7).chain('😀'..='😏').chain("aéÿ龥".chars())
        {
            let text = character.to_string();
            assert_eq!(accepts(&dags, node, text.as_bytes()), set.contains(character));
        }
    }

    #[test]
    fn class_cover_distinguishes_full_and_partial_unicode_parts() {
        let mut dags = Dawgs::new();
        let dot = dags.class(&CharSet::single('\n').complement()).unwrap();
        let cover = dags.class_cover(dot).unwrap();
        assert!(cover.wide == [ClassCover::Full; WIDE_PARTS] && cover.ascii == !(1 << 10));
        let latin = dags.class(&CharSet::from_ranges([('a', 'ÿ')])).unwrap();
        assert_eq!(dags.class_cover(latin).unwrap().wide[0], ClassCover::Partial);
    }

    #[test]
    fn words_are_accepted_and_suffixes_are_shared() {
        let mut dags = Dawgs::new();
        let words: [&[u8]; 5] = [b"", b"bake", b"baked", b"cake", b"caked"];
        let node = dags.words(&words).unwrap();
        for word in words {
            assert!(accepts(&dags, node, word));
        }
        assert!(!accepts(&dags, node, b"bak") && !accepts(&dags, node, b"bakedd"));
        assert_eq!(dags.step(node, b'b'), dags.step(node, b'c'));
        assert_eq!(dags.words::<&[u8]>(&[]), None);
    }
}
