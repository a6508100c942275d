//! The resolved schema: a graph of subschemas (nodes), each with its keyword rules.
//!
//! References are edges here, booleans and all drafts' spellings are unified, and values, names and
//! patterns are interned. [`crate::schema_reader`] builds the graph, [`crate::expansion`] turns
//! nodes into formulas.

use std::fmt::Write;
use std::sync::Arc;

use formalm_automata::Expression;
use formalm_core::memory_bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::NameSelector;
use crate::json::decimal::Decimal;
use crate::json::interned_values::{ValueId, ValueInterner};
use crate::json::property_names::{NameId, PropertyNames};

/// A subschema in one context (base URI, dynamic scope), interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

memory_bytes!(none: NodeId);

/// A regular language of strings, interned by its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegexId(pub(crate) u32);

/// The JSON types; integers are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JsonType {
    Null,
    Bool,
    String,
    Number,
    Array,
    Object,
}

memory_bytes!(none: JsonType);

impl JsonType {
    /// All types, cheapest to decide first.
    pub(crate) const ALL: [JsonType; 6] = [
        JsonType::Null,
        JsonType::Bool,
        JsonType::String,
        JsonType::Number,
        JsonType::Array,
        JsonType::Object,
    ];
}

/// One constraint of a schema object. A node is the conjunction of its rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeywordRule {
    Never,
    Types {
        types: Vec<JsonType>,
        integer: bool,
    },
    /// The number is spelled without a fraction: draft 4 does not count `1.0` as an integer.
    IntegerSpelling,
    Enum(Vec<ValueId>),
    Minimum(Decimal),
    ExclusiveMinimum(Decimal),
    Maximum(Decimal),
    ExclusiveMaximum(Decimal),
    MultipleOf(Decimal),
    StringLanguage(RegexId),
    Properties(Arc<[(NameSelector, NodeId)]>),
    Required(Vec<NameId>),
    MinProperties(u64),
    MaxProperties(u64),
    PropertyNames(NodeId),
    Items(Arc<[(u32, u32, NodeId)]>),
    Contains {
        node: NodeId,
        min: u64,
        max: Option<u64>,
        marks_evaluated: bool,
    },
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    DependentRequired(NameId, Vec<NameId>),
    DependentSchema(NameId, NodeId),
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

/// The location of a node in its document. The JSON pointer is built on demand.
#[derive(Clone, Debug, Default)]
pub(crate) enum NodeLocation {
    /// No location: the node was synthesized.
    #[default]
    Nowhere,
    /// The target of a reference, or the root.
    Pointer(Box<str>),
    /// A keyword's value, or a part of it, in another node.
    Within(NodeId, &'static str, KeywordPart),
}

/// A part of a keyword's value.
#[derive(Clone, Debug)]
pub(crate) enum KeywordPart {
    Whole,
    Item(usize),
    Name(NameId),
    Text(Box<str>),
}

impl KeywordPart {
    /// Returns the reference token of a JSON pointer, before escaping; `None` for the whole value.
    pub(crate) fn text(&self, names: &PropertyNames) -> Option<String> {
        match self {
            KeywordPart::Whole => None,
            KeywordPart::Item(number) => Some(number.to_string()),
            KeywordPart::Name(name) => Some(names.get(*name).to_owned()),
            KeywordPart::Text(text) => Some(text.to_string()),
        }
    }
}

/// A subschema: its rules and its location.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchemaNode {
    pub(crate) rules: Arc<[KeywordRule]>,
    pub(crate) location: NodeLocation,
}

impl SchemaNode {
    /// Creates a synthesized node, without a location.
    pub(crate) fn synthetic(rules: Vec<KeywordRule>) -> SchemaNode {
        SchemaNode { rules: rules.into(), location: NodeLocation::Nowhere }
    }

    /// Returns `true` if the node occurs in the document.
    pub(crate) fn has_location(&self) -> bool {
        !matches!(self.location, NodeLocation::Nowhere)
    }
}

/// The resolved schema and its interned parts.
#[derive(Debug, Default)]
pub(crate) struct ResolvedSchema {
    pub(crate) nodes: Vec<SchemaNode>,
    pub(crate) root: Option<NodeId>,
    /// For each node the representative of its equivalence class, which may be itself.
    pub(crate) representatives: Vec<NodeId>,
    pub(crate) names: PropertyNames,
    pub(crate) values: ValueInterner,
    pub(crate) regexes: Vec<Expression>,
    pub(crate) regex_ids: FxHashMap<String, RegexId>,
    /// For each regex its description, except for enumerations of strings.
    pub(crate) regex_descriptions: Vec<Option<String>>,
    /// Regexes that are searched for, so that every string can be extended to a match.
    pub(crate) extensible_regexes: FxHashSet<RegexId>,
    /// Strings of the regexes that are enumerations; sorted.
    pub(crate) enum_strings: FxHashMap<RegexId, Arc<[String]>>,
    pub(crate) notes: Vec<SchemaNote>,
    /// Synthesized nodes "equals one of these values".
    pub(crate) value_nodes: FxHashMap<Vec<ValueId>, NodeId>,
    /// Heap bytes of the lists in `value_nodes`.
    pub(crate) value_bytes: usize,
    /// Synthesized nodes "satisfies one of these nodes".
    pub(crate) any_of_nodes: FxHashMap<Vec<NodeId>, NodeId>,
}

/// A remark for the user about one location of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaNote {
    /// JSON pointer of the keyword.
    pub place: String,
    /// One sentence without a full stop.
    pub message: String,
    /// How the remark affects the language.
    pub effect: NoteEffect,
}

/// The relation between the automaton's language and the schema's literal meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteEffect {
    /// Exactly the schema, as the standard or the note says.
    Exact,
    /// Some instances of the schema are missing.
    Fewer,
    /// Exactly the instances, but some prefixes that no instance completes may be allowed.
    DeadEnds,
}

impl NoteEffect {
    /// Returns the name of the effect.
    pub fn name(self) -> &'static str {
        match self {
            NoteEffect::Exact => "exact",
            NoteEffect::Fewer => "fewer",
            NoteEffect::DeadEnds => "dead ends",
        }
    }
}

/// The first character of descriptions of enumerations.
const ENUM_KEY_PREFIX: char = 't';

impl ResolvedSchema {
    pub(crate) fn node(&self, id: NodeId) -> &SchemaNode {
        &self.nodes[id.0 as usize]
    }

    /// Returns the JSON pointer of a node; empty for synthesized nodes.
    pub(crate) fn json_pointer(&self, id: NodeId) -> String {
        let (mut parts, mut at): (Vec<String>, NodeId) = (Vec::new(), id);
        let mut pointer = loop {
            match &self.node(at).location {
                NodeLocation::Nowhere => break String::new(),
                NodeLocation::Pointer(text) => break text.to_string(),
                NodeLocation::Within(above, keyword, part) => {
                    parts.extend(part.text(&self.names));
                    parts.push((*keyword).to_owned());
                    at = *above;
                }
            }
        };
        for part in parts.iter().rev() {
            push_pointer_token(&mut pointer, part);
        }
        pointer
    }

    /// Returns the JSON pointer of a part of a node.
    pub(crate) fn pointer_into(&self, id: NodeId, parts: &[&str]) -> String {
        let mut pointer = self.json_pointer(id);
        for part in parts {
            push_pointer_token(&mut pointer, part);
        }
        pointer
    }

    /// Adds a note that does not affect the language on a part of a node.
    pub(crate) fn note(&mut self, id: NodeId, parts: &[&str], message: impl Into<String>) {
        self.note_with_effect(id, parts, message, NoteEffect::Exact);
    }

    /// Adds a note with the given effect on the language.
    pub(crate) fn note_with_effect(
        &mut self,
        id: NodeId,
        parts: &[&str],
        message: impl Into<String>,
        effect: NoteEffect,
    ) {
        let place = self.pointer_into(id, parts);
        self.notes.push(SchemaNote { place, message: message.into(), effect });
    }

    /// Returns the representative of the node's equivalence class.
    pub(crate) fn representative(&self, id: NodeId) -> NodeId {
        self.representatives.get(id.0 as usize).copied().unwrap_or(id)
    }

    pub(crate) fn add_node(&mut self, node: SchemaNode) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    pub(crate) fn intern_regex(
        &mut self,
        key: String,
        make: impl FnOnce() -> Expression,
    ) -> RegexId {
        if let Some(&id) = self.regex_ids.get(&key) {
            return id;
        }
        let id = RegexId(self.regexes.len() as u32);
        self.regexes.push(make());
        self.regex_descriptions.push((!key.starts_with(ENUM_KEY_PREFIX)).then(|| key.clone()));
        self.regex_ids.insert(key, id);
        id
    }

    /// Returns the regex of all strings.
    pub(crate) fn any_string_regex(&mut self) -> RegexId {
        self.intern_regex("*".to_owned(), crate::solver::context::any_string)
    }

    /// Returns `true` for the regex of all strings.
    pub(crate) fn is_any_string(&self, regex: RegexId) -> bool {
        self.regex_ids.get("*") == Some(&regex)
    }

    /// Returns the regex of exactly these strings.
    pub(crate) fn enum_regex(&mut self, mut texts: Vec<String>) -> RegexId {
        texts.sort_unstable();
        texts.dedup();
        let mut key = String::from(ENUM_KEY_PREFIX);
        for text in &texts {
            // The length prefix makes the description unambiguous.
            let _ = write!(key, "{}:{text}", text.len());
        }
        if let Some(&id) = self.regex_ids.get(&key) {
            return id;
        }
        let bytes = texts.iter().map(|text| text.clone().into_bytes()).collect();
        let id = self.intern_regex(key, || Expression::literals(bytes));
        self.enum_strings.insert(id, texts.into());
        id
    }

    /// Returns the node "equals one of these values".
    pub(crate) fn node_for_values(&mut self, values: &[ValueId]) -> NodeId {
        if let Some(&id) = self.value_nodes.get(values) {
            return id;
        }
        // The rule and the map's key each hold the list.
        self.value_bytes += 2 * size_of_val(values);
        let rules = vec![KeywordRule::Enum(values.to_vec())];
        let id = self.add_node(SchemaNode::synthetic(rules));
        self.value_nodes.insert(values.to_vec(), id);
        id
    }

    /// Returns the node "satisfies at least one of these nodes".
    pub(crate) fn any_of_node(&mut self, nodes: Vec<NodeId>) -> NodeId {
        if let Some(&id) = self.any_of_nodes.get(&nodes) {
            return id;
        }
        let id = self.add_node(SchemaNode::synthetic(vec![KeywordRule::AnyOf(nodes.clone())]));
        self.any_of_nodes.insert(nodes, id);
        id
    }
}

/// Appends an escaped reference token to a JSON pointer.
pub(crate) fn push_pointer_token(pointer: &mut String, part: &str) {
    pointer.push('/');
    if part.bytes().any(|byte| matches!(byte, b'~' | b'/')) {
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(part);
    }
}
