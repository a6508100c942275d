//! Typical instances: JSON texts such as models write, to compute masks before they are needed.
//!
//! ```text
//!  {"name": "█", "age": ▒, "tags": ["█", "█"]}      number 0: all properties, first alternatives
//!  {"name": "█"}                                    number 1: required ones, second alternatives
//! ```
//!
//! An instance is written from the schema's nodes, in the order of the schema. Numbered instances
//! differ in the alternatives, types and enumerated values that they choose, and in the properties
//! that they have. Nothing depends on their validity: a reader stops where a text is refused.
//!
//! Strings and numbers are *blanks* ([`STRING_BLANK`], [`NUMBER_BLANK`]), which the reader fills
//! with whatever its automaton allows there: patterns, formats and bounds need no solver here.
//!
//! *Rejected:* breadth-first search over tokens (most of the work finds known masks), and random
//! members (a model writes other tokens).

use formalm_core::{NUMBER_BLANK, STRING_BLANK};

use crate::json::interned_values::{JsonValue, ValueId};
use crate::json::property_names::NameId;
use crate::machine::spelling::json::whitespace::{GapRules, WhitespaceGap};
use crate::schema_nodes::{JsonType, KeywordRule, NodeId, ResolvedSchema};

/// Number of instances written: more alternatives than that are not visited. Chosen, not measured.
const INSTANCES: usize = 64;

/// Maximum nesting of an instance; deeper containers are empty. Chosen, not measured.
const MAX_DEPTH: u32 = 12;

/// Nesting from which optional properties are left out, so that recursive schemas end. Chosen, not
/// measured.
const REQUIRED_ONLY_DEPTH: u32 = 6;

/// Maximum length of an instance, in bytes: the rest is left out. Chosen, not measured.
const MAX_BYTES: usize = 1 << 14;

/// Maximum number of nodes that apply to one value. Chosen, not measured.
const MAX_NODES: usize = 64;

/// Number of items of an array, and of undeclared properties of an object, where more are allowed.
const MANY: usize = 2;

/// Returns typical instance number `number`, or `None` beyond the last.
pub(super) fn typical_instance(
    schema: &ResolvedSchema,
    gaps: GapRules,
    number: usize,
) -> Option<Vec<u8>> {
    let root = schema.root.filter(|_| number < INSTANCES)?;
    let mut writer = InstanceWriter {
        schema,
        gaps,
        adds_spaces: !gaps.has_layout() && gaps.over() > 0,
        number,
        depth: 0,
        text: Vec::new(),
    };
    writer.write_value(&[root]);
    Some(writer.text)
}

/// The keywords that apply to one value, of all its nodes.
#[derive(Default)]
struct ValueKeywords {
    never: bool,
    types: Option<Vec<JsonType>>,
    integer: bool,
    values: Option<Vec<ValueId>>,
    /// Declared properties with all their nodes, in the order of the schema.
    properties: Vec<(NameId, Vec<NodeId>)>,
    /// Nodes of properties by pattern, and of all others.
    other_properties: Vec<NodeId>,
    required: Vec<NameId>,
    items: Vec<(u32, u32, NodeId)>,
    min_items: usize,
    max_items: usize,
}

/// The writer of one instance.
struct InstanceWriter<'a> {
    schema: &'a ResolvedSchema,
    gaps: GapRules,
    /// Commas and colons are followed by a space, which no layout prescribes.
    adds_spaces: bool,
    number: usize,
    /// Number of open containers.
    depth: u32,
    text: Vec<u8>,
}

impl InstanceWriter<'_> {
    /// Returns one of `count` choices; instances with other numbers make others.
    fn choice(&self, count: usize) -> usize {
        self.number % count.max(1)
    }

    /// Returns `true` if optional properties are written.
    fn is_full(&self) -> bool {
        self.number.is_multiple_of(2) && self.depth < REQUIRED_ONLY_DEPTH
    }

    /// Collects the keywords of nodes and of everything that applies with them.
    fn keywords(&self, nodes: &[NodeId]) -> ValueKeywords {
        let mut found = ValueKeywords { max_items: usize::MAX, ..ValueKeywords::default() };
        let (mut open, mut visited) = (nodes.to_vec(), 0);
        open.reverse();
        while let Some(node) = open.pop() {
            visited += 1;
            if visited > MAX_NODES {
                break;
            }
            for rule in &*self.schema.node(node).rules {
                self.add_rule(rule, &mut found, &mut open);
            }
        }
        found
    }

    fn add_rule(&self, rule: &KeywordRule, found: &mut ValueKeywords, open: &mut Vec<NodeId>) {
        match rule {
            KeywordRule::Never => found.never = true,
            KeywordRule::Types { types, integer } => {
                let is_allowed =
                    |one: &JsonType| found.types.as_ref().is_none_or(|known| known.contains(one));
                found.types = Some(types.iter().copied().filter(is_allowed).collect());
                found.integer |= integer;
            }
            KeywordRule::Enum(values) => found.values = Some(values.clone()),
            KeywordRule::Properties(list) => {
                for (selector, node) in &**list {
                    let Some(names) = &selector.names else {
                        found.other_properties.push(*node);
                        continue;
                    };
                    for &name in names {
                        match found.properties.iter_mut().find(|(known, _)| *known == name) {
                            Some((_, nodes)) => nodes.push(*node),
                            None => found.properties.push((name, vec![*node])),
                        }
                    }
                }
            }
            KeywordRule::Required(names) => {
                for &name in names {
                    if !found.required.contains(&name) {
                        found.required.push(name);
                    }
                }
            }
            KeywordRule::Items(list) => found.items.extend(list.iter().copied()),
            KeywordRule::Contains { node, .. } => found.items.push((0, u32::MAX, *node)),
            KeywordRule::MinItems(count) => {
                found.min_items = usize::try_from(*count).unwrap_or(usize::MAX);
            }
            KeywordRule::MaxItems(count) => {
                found.max_items = usize::try_from(*count).unwrap_or(usize::MAX);
            }
            KeywordRule::AllOf(nodes) => open.extend(nodes.iter().rev()),
            KeywordRule::AnyOf(nodes) | KeywordRule::OneOf(nodes) => {
                open.extend(nodes.get(self.choice(nodes.len())));
            }
            KeywordRule::If { condition, then, otherwise } => match self.number.is_multiple_of(2) {
                true => open.extend([*condition].into_iter().chain(*then)),
                false => open.extend(otherwise),
            },
            _ => {}
        }
    }

    /// Writes a value that satisfies the nodes, as far as their structure tells.
    fn write_value(&mut self, nodes: &[NodeId]) {
        let found = self.keywords(nodes);
        if let Some(values) = found.values.as_ref().filter(|values| !values.is_empty()) {
            self.write_known(values[self.choice(values.len())]);
            return;
        }
        match self.value_type(&found) {
            JsonType::Null => self.text.extend(b"null"),
            JsonType::Bool => {
                self.text.extend([&b"true"[..], b"false"][self.choice(2)]);
            }
            JsonType::String => self.write_string_blank(),
            JsonType::Number => self.text.push(NUMBER_BLANK),
            JsonType::Array => self.write_array(&found),
            JsonType::Object => self.write_object(&found),
        }
    }

    /// Returns the type of the value that is written.
    fn value_type(&self, found: &ValueKeywords) -> JsonType {
        let types: &[JsonType] = match &found.types {
            Some(types) => types,
            None if !found.properties.is_empty() || !found.required.is_empty() => {
                &[JsonType::Object]
            }
            None if !found.items.is_empty() => &[JsonType::Array],
            None => &[JsonType::String, JsonType::Number, JsonType::Object, JsonType::Array],
        };
        types.get(self.choice(types.len())).copied().unwrap_or(JsonType::Null)
    }

    fn write_string_blank(&mut self) {
        self.text.extend([b'"', STRING_BLANK, b'"']);
    }

    fn write_string(&mut self, text: &str) {
        let escaped = serde_json::to_string(text).unwrap_or_default();
        self.text.extend(escaped.into_bytes());
    }

    /// Writes an interned value.
    fn write_known(&mut self, value: ValueId) {
        let schema = self.schema;
        match schema.values.get(value) {
            JsonValue::Null => self.text.extend(b"null"),
            JsonValue::Bool(truth) => self.text.extend(truth.to_string().into_bytes()),
            JsonValue::Number(number) => self.text.extend(number.to_string().into_bytes()),
            JsonValue::String(text) => self.write_string(text),
            JsonValue::Array(items) => self.write_container(b"[]", items, |writer, &item| {
                writer.write_known(item);
            }),
            JsonValue::Object(list) => {
                self.write_container(b"{}", list, |writer, &(name, value)| {
                    writer.write_name(Some(name));
                    writer.write_known(value);
                })
            }
        }
    }

    fn write_array(&mut self, found: &ValueKeywords) {
        let declared = found.items.iter().filter(|&&(first, end, _)| end - first == 1).count();
        let usual = if self.is_full() { MANY.max(declared) } else { 1 };
        let count = usual.clamp(found.min_items.min(found.max_items), found.max_items);
        let count = if self.depth >= MAX_DEPTH { 0 } else { count };
        let items: Vec<Vec<NodeId>> = (0..count)
            .map(|at| {
                let applies = |&&(first, end, _): &&(u32, u32, NodeId)| {
                    (first as usize..end as usize).contains(&at)
                };
                found.items.iter().filter(applies).map(|&(.., node)| node).collect()
            })
            .collect();
        self.write_container(b"[]", &items, |writer, nodes| writer.write_value(nodes));
    }

    fn write_object(&mut self, found: &ValueKeywords) {
        let mut list: Vec<(Option<NameId>, Vec<NodeId>)> = Vec::new();
        if self.depth < MAX_DEPTH {
            for (name, nodes) in &found.properties {
                let is_required = found.required.contains(name);
                if (is_required || self.is_full()) && !self.keywords(nodes).never {
                    list.push((Some(*name), nodes.clone()));
                }
            }
            for &name in &found.required {
                if found.properties.iter().all(|(known, _)| *known != name) {
                    list.push((Some(name), found.other_properties.clone()));
                }
            }
        }
        if list.is_empty() && self.is_full() {
            let is_closed = found.other_properties.iter().any(|&node| self.keywords(&[node]).never);
            let count = if is_closed { 0 } else { MANY };
            list.extend((0..count).map(|_| (None, found.other_properties.clone())));
        }
        self.write_container(b"{}", &list, |writer, (name, nodes)| {
            writer.write_name(*name);
            writer.write_value(nodes);
        });
    }

    /// Writes a property name, or a blank, and the colon.
    fn write_name(&mut self, name: Option<NameId>) {
        let schema = self.schema;
        match name {
            Some(name) => self.write_string(schema.names.get(name)),
            None => self.write_string_blank(),
        }
        self.write_gap(WhitespaceGap::BeforeColon);
        self.text.push(b':');
        self.write_gap(WhitespaceGap::AfterColon);
    }

    /// Writes a container with all its parts, up to the maximum length.
    fn write_container<T>(
        &mut self,
        brackets: &[u8; 2],
        parts: &[T],
        mut write: impl FnMut(&mut Self, &T),
    ) {
        self.text.push(brackets[0]);
        self.depth += 1;
        for (at, part) in parts.iter().enumerate() {
            if self.text.len() > MAX_BYTES {
                break;
            }
            if at > 0 {
                self.text.push(b',');
            }
            self.write_gap(if at > 0 { WhitespaceGap::Next } else { WhitespaceGap::First });
            write(self, part);
        }
        if !parts.is_empty() {
            self.write_gap(WhitespaceGap::Close);
        }
        self.depth -= 1;
        self.text.push(brackets[1]);
    }

    /// Writes the whitespace of a gap: that of the layout, or a space after commas and colons.
    fn write_gap(&mut self, gap: WhitespaceGap) {
        if self.adds_spaces && matches!(gap, WhitespaceGap::Next | WhitespaceGap::AfterColon) {
            self.text.push(b' ');
        }
        let bytes = (0..).map_while(|at| self.gaps.byte(gap, self.depth, at));
        self.text.extend(bytes);
    }
}
