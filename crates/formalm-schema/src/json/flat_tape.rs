//! JSON as one flat table, which is quick to make and to walk.
//!
//! Whatever is not read here is left to the usual reader: errors, deep nesting, huge texts.

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::json::json_view::{Shape, Source};

/// Arrays and objects within each other.
const MAX_NESTING: usize = 100;

/// Members of an object up to which names are compared one by one.
const FEW: usize = 16;

/// A part of the texts, or of the entries.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
}

const NOWHERE: Span = Span { start: 0, end: 0 };

#[derive(Clone, Copy, Debug)]
enum Kind {
    Null,
    Bool(bool),
    Number,
    Text,
    Array,
    Object,
}

/// A value: what it is, the name that it has in an object, its text or its parts.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: Kind,
    name: Span,
    content: Span,
}

/// A parsed text.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The text that was parsed, and behind it the strings in which something was escaped.
    texts: String,
    length: usize,
    /// The parts of a value are next to each other; the root is the last.
    entries: Vec<Entry>,
}

/// A value of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'r> {
    tree: &'r Tree,
    at: u32,
}

impl Tree {
    /// The table of a text; `None` if it is better read by the usual reader, or no JSON.
    pub(crate) fn read(text: &str) -> Option<Tree> {
        if text.len() > u32::MAX as usize / 4 {
            return None;
        }
        let mut texts = String::with_capacity(text.len() + 32);
        texts.push_str(text);
        let entries = Vec::with_capacity(text.len() / 16 + 4);
        let tree = Tree { texts, length: text.len(), entries };
        Parser { text: text.as_bytes(), at: 0, tree, waiting: Vec::new() }.whole()
    }

    /// The text that was parsed.
    pub(crate) fn source(&self) -> &str {
        &self.texts[..self.length]
    }

    pub(crate) fn root(&self) -> Element<'_> {
        Element { tree: self, at: (self.entries.len() - 1) as u32 }
    }

    fn text(&self, span: Span) -> &str {
        &self.texts[span.start as usize..span.end as usize]
    }
}

impl<'r> Element<'r> {
    fn entry(self) -> &'r Entry {
        &self.tree.entries[self.at as usize]
    }
}

impl<'r> Source<'r> for Element<'r> {
    fn shape(self) -> Shape<'r> {
        let entry = self.entry();
        match entry.kind {
            Kind::Null => Shape::Null,
            Kind::Bool(truth) => Shape::Bool(truth),
            Kind::Number => Shape::Number(self.tree.text(entry.content)),
            Kind::Text => Shape::Text(self.tree.text(entry.content)),
            Kind::Array => Shape::Array,
            Kind::Object => Shape::Object,
        }
    }

    fn parts(self) -> impl Iterator<Item = (&'r str, Self)> {
        let Element { tree, .. } = self;
        let entry = self.entry();
        let span = match entry.kind {
            Kind::Array | Kind::Object => entry.content,
            _ => NOWHERE,
        };
        (span.start..span.end)
            .map(move |at| (tree.text(tree.entries[at as usize].name), Element { tree, at }))
    }

    fn number(self) -> usize {
        self.at as usize
    }

    fn value(self) -> Option<&'r Json> {
        None
    }

    fn of_value(_: &'r Json) -> Option<Self> {
        None
    }
}

/// An array or object that has not ended.
struct Open {
    name: Span,
    is_object: bool,
    /// The first of its parts among those that wait.
    first: usize,
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    tree: Tree,
    /// Values whose array or object has not ended.
    waiting: Vec<Entry>,
}

impl Parser<'_> {
    fn whole(mut self) -> Option<Tree> {
        let mut open: Vec<Open> = Vec::new();
        let mut name = NOWHERE;
        loop {
            self.blanks();
            let byte = *self.text.get(self.at)?;
            if byte == b'{' || byte == b'[' {
                self.at += 1;
                self.blanks();
                let is_object = byte == b'{';
                let first = self.waiting.len();
                if open.len() >= MAX_NESTING {
                    return None;
                }
                open.push(Open { name, is_object, first });
                if *self.text.get(self.at)? != if is_object { b'}' } else { b']' } {
                    name = if is_object { self.name()? } else { NOWHERE };
                    continue;
                }
            } else {
                let (kind, content) = self.scalar(byte)?;
                self.waiting.push(Entry { kind, name, content });
            }
            // Ends of arrays and objects, up to a comma or the end of all.
            loop {
                self.blanks();
                let Some(last) = open.last() else {
                    if self.at < self.text.len() {
                        return None;
                    }
                    self.tree.entries.append(&mut self.waiting);
                    return Some(self.tree);
                };
                let byte = *self.text.get(self.at)?;
                self.at += 1;
                let is_object = last.is_object;
                if byte == b',' {
                    self.blanks();
                    name = if is_object { self.name()? } else { NOWHERE };
                    break;
                }
                if byte != if is_object { b'}' } else { b']' } {
                    return None;
                }
                let Open { name, first, .. } = open.pop()?;
                if is_object {
                    self.last_of_each_name(first);
                }
                let start = self.tree.entries.len() as u32;
                self.tree.entries.extend(self.waiting.drain(first..));
                let content = Span { start, end: self.tree.entries.len() as u32 };
                let kind = if is_object { Kind::Object } else { Kind::Array };
                self.waiting.push(Entry { kind, name, content });
            }
        }
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// The name of a member, with its colon.
    fn name(&mut self) -> Option<Span> {
        if *self.text.get(self.at)? != b'"' {
            return None;
        }
        let name = self.string()?;
        self.blanks();
        if *self.text.get(self.at)? != b':' {
            return None;
        }
        self.at += 1;
        Some(name)
    }

    fn scalar(&mut self, first: u8) -> Option<(Kind, Span)> {
        let (word, kind): (&[u8], Kind) = match first {
            b'"' => return Some((Kind::Text, self.string()?)),
            b't' => (b"true", Kind::Bool(true)),
            b'f' => (b"false", Kind::Bool(false)),
            b'n' => (b"null", Kind::Null),
            _ => return Some((Kind::Number, self.digits()?)),
        };
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            (kind, NOWHERE)
        })
    }

    fn string(&mut self) -> Option<Span> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            match *self.text.get(at)? {
                b'"' => break,
                b'\\' => (escaped, at) = (true, at + 2),
                0..0x20 => return None,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        if !escaped {
            return Some(Span { start: start as u32, end: at as u32 });
        }
        // What escapes mean is for the usual reader to say.
        let quoted = self.tree.texts.get(start - 1..=at)?;
        let decoded: String = serde_json::from_str(quoted).ok()?;
        let start = self.tree.texts.len();
        self.tree.texts.push_str(&decoded);
        Some(Span { start: start as u32, end: self.tree.texts.len() as u32 })
    }

    fn digits(&mut self) -> Option<Span> {
        let start = self.at;
        self.at += usize::from(self.text.get(self.at) == Some(&b'-'));
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.some_digits()?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.some_digits()?;
        }
        Some(Span { start: start as u32, end: self.at as u32 })
    }

    fn some_digits(&mut self) -> Option<()> {
        let rest = &self.text[self.at.min(self.text.len())..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    /// Of members with one name the last counts, in the place of the first.
    fn last_of_each_name(&mut self, first: usize) {
        let members = &self.waiting[first..];
        let text = |span: Span| self.tree.text(span);
        if members.len() <= FEW {
            let alike = |one: &Entry, other: &Entry| text(one.name) == text(other.name);
            let mut pairs = members.iter().enumerate();
            if pairs.all(|(at, one)| !members[..at].iter().any(|other| alike(one, other))) {
                return;
            }
        }
        let mut places: FxHashMap<&str, usize> = FxHashMap::default();
        let mut kept: Vec<Entry> = Vec::with_capacity(members.len());
        for member in members {
            let at = *places.entry(text(member.name)).or_insert(kept.len());
            if at < kept.len() {
                kept[at] = *member;
            } else {
                kept.push(*member);
            }
        }
        self.waiting.truncate(first);
        self.waiting.extend(kept);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value as Json};

    use super::{Element, Tree};
    use crate::json::json_view::{Shape, Source};

    fn json(part: Element<'_>) -> Json {
        match part.shape() {
            Shape::Null => Json::Null,
            Shape::Bool(truth) => Json::Bool(truth),
            Shape::Number(text) => serde_json::from_str(text).expect("a number"),
            Shape::Text(text) => Json::String(text.to_owned()),
            Shape::Array => part.parts().map(|(_, one)| json(one)).collect(),
            Shape::Object => {
                let members = part.parts().map(|(name, one)| (name.to_owned(), json(one)));
                let all: Vec<(String, Json)> = members.collect();
                let count = all.len();
                let map: Map<String, Json> = all.into_iter().collect();
                assert_eq!(map.len(), count, "names are distinct");
                Json::Object(map)
            }
        }
    }

    fn order(json: &Json) -> String {
        json.to_string()
    }

    #[test]
    fn many_members_keep_their_places() {
        let members: Vec<String> = (0..60).map(|at| format!("\"{}\":{at}", at % 40)).collect();
        let text = format!("{{{}}}", members.join(","));
        let usual: Json = serde_json::from_str(&text).expect("an object");
        let tree = Tree::read(&text).expect("a tree");
        assert_eq!(order(&json(tree.root())), order(&usual));
        assert_eq!(tree.source(), text);
    }

    #[test]
    fn deep_texts_are_left_to_others() {
        let text = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Tree::read(&text(100)).is_some() && Tree::read(&text(101)).is_none());
    }

    proptest! {
        /// Pieces of JSON in any order: the usual reader says which are texts and what they mean.
        #[test]
        fn texts_are_read_as_by_the_usual_reader(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("["), Just("]"), Just("{"), Just("}"), Just(","), Just(":"), Just(" "),
                    Just("\"a\""), Just("\"a\":"), Just("\"\\u0061\":"), Just("\"\\\"\\\\\""),
                    Just("1.50"), Just("-2e3"), Just("-0"), Just("01"), Just("1."), Just("2E+7"),
                    Just("null"), Just("true"), Just("fals"), Just("{\"b\":"), Just("[1,"),
                    Just(",\"é\":"), Just("\u{a0}"), Just("\"\\ud800\""), Just("\"\\ud83d\\ude00\""),
                    Just("\"\t\""), Just("\n"), Just("\"\u{7f}\""), Just("\""), Just("-"), Just("\\"),
                ],
                0..14,
            )
        ) {
            let text = pieces.concat();
            let usual: Option<Json> = serde_json::from_str(&text).ok();
            let tree = Tree::read(&text);
            let read = tree.as_ref().map(|tree| json(tree.root()));
            prop_assert_eq!(read.as_ref().map(order), usual.as_ref().map(order), "{}", text);
        }
    }
}
