//! What a schema says, keyword by keyword, with references resolved.

use std::fmt::Write;
use std::sync::Arc;

use formalm_automata::Expression;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::Which;
use crate::json::decimal::Decimal;
use crate::json::interned_values::{ValueId, Values};
use crate::json::property_names::{NameId, Names};

/// A subschema in its surroundings, interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

/// A regular language of texts, interned by what it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegexId(pub(crate) u32);

/// The types of JSON; integers are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Null,
    Bool,
    String,
    Number,
    Array,
    Object,
}

impl Type {
    /// Cheapest to decide first.
    pub(crate) const ALL: [Type; 6] =
        [Type::Null, Type::Bool, Type::String, Type::Number, Type::Array, Type::Object];
}

/// One statement of a schema; all of a node's hold together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    Never,
    Types {
        types: Vec<Type>,
        integer: bool,
    },
    /// Draft 4 takes `1.0` for no integer.
    IntegerSpelling,
    Enum(Vec<ValueId>),
    Minimum(Decimal),
    ExclusiveMinimum(Decimal),
    Maximum(Decimal),
    ExclusiveMaximum(Decimal),
    MultipleOf(Decimal),
    StringLanguage(RegexId),
    Members(Arc<[(Which, NodeId)]>),
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
    Unique,
    All(Vec<NodeId>),
    Any(Vec<NodeId>),
    One(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        other: Option<NodeId>,
    },
    DependentRequired(NameId, Vec<NameId>),
    SchemaWith(NameId, NodeId),
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

/// Where a node stands. Its JSON pointer is only written when somebody asks for it.
#[derive(Clone, Debug, Default)]
pub(crate) enum NodeLocation {
    /// Nowhere: it was made for other nodes.
    #[default]
    Nowhere,
    /// At a reference, or the root.
    Pointer(Box<str>),
    /// In a part of another node.
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
    /// The part as a JSON pointer has it, before what is special there is escaped.
    pub(crate) fn text(&self, names: &Names) -> Option<String> {
        match self {
            KeywordPart::Whole => None,
            KeywordPart::Item(number) => Some(number.to_string()),
            KeywordPart::Name(name) => Some(names.get(*name).to_owned()),
            KeywordPart::Text(text) => Some(text.to_string()),
        }
    }
}

/// A node: what it says and where it stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchemaNode {
    pub(crate) rules: Arc<[Rule]>,
    pub(crate) location: NodeLocation,
}

impl SchemaNode {
    /// A node that stands nowhere.
    pub(crate) fn synthetic(rules: Vec<Rule>) -> SchemaNode {
        SchemaNode { rules: rules.into(), location: NodeLocation::Nowhere }
    }

    /// Whether it stands somewhere in the schema.
    pub(crate) fn has_location(&self) -> bool {
        !matches!(self.location, NodeLocation::Nowhere)
    }
}

/// Everything read from a schema.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    pub(crate) nodes: Vec<SchemaNode>,
    pub(crate) root: Option<NodeId>,
    /// For each node that was read one that says the same, which may be itself.
    pub(crate) representatives: Vec<NodeId>,
    pub(crate) names: Names,
    pub(crate) values: Values,
    pub(crate) regexes: Vec<Expression>,
    pub(crate) regex_ids: FxHashMap<String, RegexId>,
    /// Of each regex what it is, unless it is a list of texts.
    pub(crate) regex_descriptions: Vec<Option<String>>,
    /// Regexes that are searched for, so that every text is the beginning of a member.
    pub(crate) extensible_regexes: FxHashSet<RegexId>,
    /// Regexes of a few texts: which, sorted.
    pub(crate) listed: FxHashMap<RegexId, Arc<[String]>>,
    pub(crate) notes: Vec<Note>,
    /// Nodes made for values: those that equal one of them.
    pub(crate) value_nodes: FxHashMap<Vec<ValueId>, NodeId>,
    /// Bytes of the lists of those.
    pub(crate) value_bytes: usize,
    /// Nodes made for alternatives.
    pub(crate) any_of_nodes: FxHashMap<Vec<NodeId>, NodeId>,
}

/// Something the user should know about a place of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// JSON pointer of the keyword.
    pub place: String,
    /// One sentence, no full stop.
    pub message: String,
    /// What it does to the language.
    pub effect: Effect,
}

/// How a language differs from what a schema may be taken to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// As the standard has it, or as the note says: exactly that.
    Exact,
    /// Instances of the schema are missing.
    Fewer,
    /// No text too many or too few, but beginnings that no member has may be allowed.
    DeadEnds,
}

impl Effect {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Exact => "exact",
            Effect::Fewer => "fewer",
            Effect::DeadEnds => "dead ends",
        }
    }
}

/// What keys of regexes begin with that list texts.
const ENUM_KEY_PREFIX: char = 't';

impl Schema {
    pub(crate) fn node(&self, id: NodeId) -> &SchemaNode {
        &self.nodes[id.0 as usize]
    }

    /// The JSON pointer of a node; empty for those that were made.
    pub(crate) fn place(&self, id: NodeId) -> String {
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

    /// The node that stands for all that say the same.
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

    /// The regex of all texts.
    pub(crate) fn any_string_regex(&mut self) -> RegexId {
        self.intern_regex("*".to_owned(), crate::solver::context::any_string)
    }

    /// Whether a regex is the one of all texts.
    pub(crate) fn is_any_string(&self, regex: RegexId) -> bool {
        self.regex_ids.get("*") == Some(&regex)
    }

    /// Exactly these texts.
    pub(crate) fn texts(&mut self, mut texts: Vec<String>) -> RegexId {
        texts.sort_unstable();
        texts.dedup();
        let mut key = String::from(ENUM_KEY_PREFIX);
        for text in &texts {
            // The length tells where the text ends.
            let _ = write!(key, "{}:{text}", text.len());
        }
        if let Some(&id) = self.regex_ids.get(&key) {
            return id;
        }
        let bytes = texts.iter().map(|text| text.clone().into_bytes()).collect();
        let id = self.intern_regex(key, || Expression::texts(bytes));
        self.listed.insert(id, texts.into());
        id
    }

    /// The node that values equal to one of these satisfy.
    pub(crate) fn node_of_values(&mut self, values: &[ValueId]) -> NodeId {
        if let Some(&id) = self.value_nodes.get(values) {
            return id;
        }
        // The list is in the rule and in the key.
        self.value_bytes += 2 * size_of_val(values);
        let rules = vec![Rule::Enum(values.to_vec())];
        let id = self.add_node(SchemaNode::synthetic(rules));
        self.value_nodes.insert(values.to_vec(), id);
        id
    }

    /// The node that satisfies one of these at least.
    pub(crate) fn any_of_node(&mut self, nodes: Vec<NodeId>) -> NodeId {
        if let Some(&id) = self.any_of_nodes.get(&nodes) {
            return id;
        }
        let id = self.add_node(SchemaNode::synthetic(vec![Rule::Any(nodes.clone())]));
        self.any_of_nodes.insert(nodes, id);
        id
    }
}

/// Adds a part to a JSON pointer.
pub(crate) fn push_pointer_token(pointer: &mut String, part: &str) {
    pointer.push('/');
    if part.bytes().any(|byte| matches!(byte, b'~' | b'/')) {
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(part);
    }
}
