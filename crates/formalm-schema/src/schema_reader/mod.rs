//! The schema reader: turns JSON Schema documents into a [`ResolvedSchema`].
//!
//! ```text
//! document ── self_contained_documents? ──yes──► tape ─────────────┐
//!                     └──no──► resource_registry ────┤
//!                                                    ▼
//!    worklist of subschemas: references → assertions, applicators → rules
//!                                                    ▼
//!         in_place_cycles (check), duplicate_nodes (representatives), notes
//! ```
//!
//! Each reachable subschema becomes one [`SchemaNode`] per context: base URI and, if dynamic
//! references occur, the dynamic scope. Whatever has no effect gets a note or an error; nothing is
//! dropped silently.

mod applicators;
mod assertions;
mod duplicate_nodes;
mod in_place_cycles;
mod ineffective_keyword_notes;
mod keyword_table;
mod keyword_value_types;
mod keyword_values;
pub(crate) mod pattern_search;
mod references;
mod resource_registry;
mod self_contained_documents;
#[cfg(test)]
mod self_contained_documents_tests;
mod string_parts;

use std::sync::Arc;

use formalm_core::{CompactMap, Error, Resource as Limited};
use referencing::Draft;
use serde_json::Value as Json;

use crate::json::document::Document;
use crate::json::json_view::JsonView;
use crate::options::JsonSchemaOptions;
use crate::schema_nodes::{
    KeywordPart, KeywordRule, NodeId, NodeLocation, NoteEffect, ResolvedSchema, SchemaNode,
    SchemaNote,
};
use ineffective_keyword_notes::IgnoredKeywords;
use keyword_table::Keyword;
use keyword_value_types::UnreadSchemas;
use keyword_values::{KeywordValues, SchemaFault, fault_at};
use references::ReferenceBase;
use resource_registry::{build_registry, draft_from_uri};

/// Advice for references that lead nowhere.
const RESOURCES_HINT: &str = "pass the schemas that are referenced as resources, keyed by URI";

/// Maximum number of nodes. Chosen, not measured.
const MAX_NODES: usize = 500_000;

/// Returns a language error at a location of the schema.
pub(crate) fn schema_error(
    place: &str,
    message: impl std::fmt::Display,
    hint: Option<&str>,
) -> Error {
    let place = if place.is_empty() { "#" } else { place };
    Error::language(format!("{message} (at {place})"), hint)
}

/// A subschema that is still to be read, with its context.
struct PendingSubschema<'r, J> {
    json: J,
    at: SubschemaContext<'r, J>,
}

/// The context of a subschema.
#[derive(Clone)]
struct SubschemaContext<'r, J> {
    base: ReferenceBase<'r, J>,
    draft: Draft,
    node: NodeId,
}

/// The identity of a node: its position and its context.
#[derive(PartialEq, Eq, Hash)]
struct NodeKey {
    json: usize,
    base: String,
    scope: Vec<String>,
}

/// The state of the reader: the graph so far and a worklist.
struct SchemaReader<'r, J> {
    schema: ResolvedSchema,
    options: JsonSchemaOptions,
    ids: CompactMap<NodeKey, NodeId>,
    pending: Vec<PendingSubschema<'r, J>>,
    /// Subschemas in parts of the document that were skipped.
    unread: UnreadSchemas<'r, J>,
    ignored_keywords: IgnoredKeywords,
    has_dynamic_refs: bool,
}

/// Reads a schema. `resources` are the documents that it may refer to, by URI. Fails if the schema
/// is invalid or refers to anything else.
pub(crate) fn read_schema(
    schema: &Document,
    resources: &[(String, Document)],
    options: JsonSchemaOptions,
) -> Result<ResolvedSchema, Error> {
    if resources.is_empty() {
        let read = match &schema.tape {
            Some(tree) => read_local(tree.root(), options),
            None => read_local(schema.serde_value()?, options),
        };
        if let Some(mut read) = read {
            note_duplicate_names(&mut read, "", schema);
            return Ok(read);
        }
    }
    read_additional(ResolvedSchema::default(), schema, resources, options)
}

/// Notes names that occur more than once in one object of a document: the last value counts.
fn note_duplicate_names(read: &mut ResolvedSchema, uri: &str, document: &Document) {
    for pointer in document.duplicate_names.iter() {
        let message = "the name occurs more than once in its object; the last value counts";
        let (place, message) = (format!("{uri}{pointer}"), message.to_owned());
        read.notes.push(SchemaNote { place, message, effect: NoteEffect::Exact });
    }
}

/// Reads a self-contained document. Returns `None` if it is not, or on any error: the registry path
/// words it.
fn read_local<'r>(json: impl JsonView<'r>, options: JsonSchemaOptions) -> Option<ResolvedSchema> {
    let draft = self_contained_documents::local_draft(json)?;
    let mut reader = SchemaReader::new(ResolvedSchema::default(), options, false);
    reader.read(json, ReferenceBase::Local(json), draft).ok()?;
    Some(reader.schema)
}

/// Reads a schema into the graph of another one: nodes are added, and the root is replaced. Fails
/// as [`read_schema`].
pub(crate) fn read_additional(
    before: ResolvedSchema,
    schema: &Document,
    resources: &[(String, Document)],
    options: JsonSchemaOptions,
) -> Result<ResolvedSchema, Error> {
    let json = schema.serde_value()?;
    let others: Result<Vec<(&str, &Json)>, Error> =
        resources.iter().map(|(uri, one)| Ok((uri.as_str(), one.serde_value()?))).collect();
    let others = others?;
    let (registry, base, draft) = build_registry(json, &others)?;
    let base = referencing::uri::from_str(&base)
        .map_err(|error| schema_error("", error, Some(RESOURCES_HINT)))?;
    let dynamic = has_dynamic_refs(json) || others.iter().any(|(_, one)| has_dynamic_refs(one));
    let mut reader = SchemaReader::new(before, options, dynamic);
    reader.read(json, ReferenceBase::Registry(registry.resolver(base)), draft)?;
    note_duplicate_names(&mut reader.schema, "", schema);
    for (uri, document) in resources {
        note_duplicate_names(&mut reader.schema, uri, document);
    }
    Ok(reader.schema)
}

/// Returns `true` if a document contains dynamic references, so that nodes depend on the dynamic
/// scope.
fn has_dynamic_refs(json: &Json) -> bool {
    let mut stack = vec![json];
    while let Some(json) = stack.pop() {
        match json {
            Json::Array(list) => stack.extend(list),
            Json::Object(map) => {
                let reference = map.get("$ref").and_then(Json::as_str).unwrap_or_default();
                if map.contains_key("$dynamicRef")
                    || map.contains_key("$recursiveRef")
                    // Meta-schemas refer to themselves dynamically.
                    || reference.contains("://json-schema.org/")
                {
                    return true;
                }
                stack.extend(map.values());
            }
            _ => {}
        }
    }
    false
}

impl<J> SubschemaContext<'_, J> {
    /// Returns `true` for drafts in which `$ref` hides its siblings.
    fn is_legacy(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    fn is_before_2020(&self) -> bool {
        self.is_legacy() || self.draft == Draft::Draft201909
    }
}

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    fn new(
        before: ResolvedSchema,
        options: JsonSchemaOptions,
        dynamic: bool,
    ) -> SchemaReader<'r, J> {
        SchemaReader {
            schema: before,
            options,
            ids: CompactMap::default(),
            pending: Vec::new(),
            unread: UnreadSchemas::default(),
            ignored_keywords: IgnoredKeywords::default(),
            has_dynamic_refs: dynamic,
        }
    }

    /// Reads the root and everything reachable from it, then checks the whole graph.
    fn read(&mut self, json: J, base: ReferenceBase<'r, J>, draft: Draft) -> Result<(), Error> {
        let spot = NodeLocation::Pointer("#".into());
        let root = self.schema_node(json, base, draft, spot).map_err(|fault| match fault {
            SchemaFault::Part { message, hint, .. } => schema_error("#", message, hint.as_deref()),
            SchemaFault::Other(error) => error,
        })?;
        self.schema.root = Some(root);
        while let Some(PendingSubschema { json, at }) = self.pending.pop() {
            let rules = self.rules_of(json, &at).map_err(|fault| self.locate_fault(&at, fault))?;
            if !rules.is_empty() {
                self.schema.nodes[at.node.0 as usize].rules = rules.into();
            }
        }
        self.unread.check(&self.ids, &self.schema)?;
        self.ignored_keywords.drop_referenced_wrappers(&mut self.schema);
        in_place_cycles::check_in_place(&self.schema)?;
        self.schema.representatives = duplicate_nodes::find_representatives(&self.schema);
        Ok(())
    }

    /// Turns a fault into an error with its location.
    fn locate_fault(&self, at: &SubschemaContext<'r, J>, fault: SchemaFault) -> Error {
        match fault {
            SchemaFault::Part { parts, message, hint } => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                schema_error(&self.schema.pointer_into(at.node, &parts), message, hint.as_deref())
            }
            SchemaFault::Other(error) => error,
        }
    }

    /// Returns the node of a subschema, adding it to the worklist if it is new. Fails if it is not
    /// a schema.
    fn subschema_node(
        &mut self,
        json: J,
        at: &SubschemaContext<'r, J>,
        keyword: Keyword,
        part: KeywordPart,
    ) -> Result<NodeId, SchemaFault> {
        let entered = match at.base.in_subschema(json, at.draft) {
            Ok(base) => {
                let spot = NodeLocation::Within(at.node, keyword.name(), part.clone());
                self.schema_node(json, base, at.draft, spot)
            }
            Err(error) => Err(fault_at(&[], error)),
        };
        entered.map_err(|fault| match fault {
            SchemaFault::Part { message, hint, .. } => {
                let part = part.text(&self.schema.names);
                let parts = [keyword.name().to_owned()].into_iter().chain(part).collect();
                SchemaFault::Part { parts, message, hint }
            }
            other => other,
        })
    }

    /// Returns the node of a schema whose base is already that of its resource: the root, or the
    /// target of a reference.
    fn schema_node(
        &mut self,
        json: J,
        base: ReferenceBase<'r, J>,
        mut draft: Draft,
        spot: NodeLocation,
    ) -> Result<NodeId, SchemaFault> {
        if !json.shape().is_object() && json.as_bool().is_none() {
            return Err(fault_at(&[], "a schema must be an object, true or false"));
        }
        if matches!(base, ReferenceBase::Registry(_))
            && let Some(uri) = json.get("$schema").and_then(J::as_str)
        {
            let detected = draft_from_uri(uri);
            if detected != Draft::Unknown {
                draft = detected;
            }
        }
        let (uri, scope) = base.identity(self.has_dynamic_refs);
        let key = NodeKey { json: json.address(), base: uri, scope };
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        if self.schema.nodes.len() >= MAX_NODES {
            return Err(SchemaFault::Other(Error::Limit {
                resource: Limited::Terms,
                needed: MAX_NODES as u64 + 1,
                allowed: MAX_NODES as u64,
            }));
        }
        let node = self.schema.add_node(SchemaNode { rules: Arc::default(), location: spot });
        self.ids.insert_new(key, node);
        self.pending.push(PendingSubschema { json, at: SubschemaContext { base, draft, node } });
        Ok(node)
    }

    /// Reads the rules of a subschema.
    fn rules_of(
        &mut self,
        json: J,
        at: &SubschemaContext<'r, J>,
    ) -> Result<Vec<KeywordRule>, SchemaFault> {
        if !json.shape().is_object() {
            let never = json.as_bool() == Some(false);
            return Ok(if never { vec![KeywordRule::Never] } else { Vec::new() });
        }
        let fields = &KeywordValues::of(json);
        self.check_identifiers(fields, at)?;
        self.ignored_keywords.note_all(&mut self.schema, fields, at);
        let mut rules = Vec::with_capacity(4);
        let hides_siblings = self.reference_rules(fields, at, &mut rules)?;
        if !hides_siblings {
            let validates = at.draft != Draft::Unknown || at.base.has_validation(at.draft, json);
            self.keyword_rules(fields, at, validates, &mut rules)?;
        }
        self.unread.record_unapplied(fields, at, hides_siblings)?;
        Ok(rules)
    }

    /// Returns the nodes of a list of subschemas.
    fn subschema_nodes(
        &mut self,
        list: J,
        keyword: Keyword,
        at: &SubschemaContext<'r, J>,
    ) -> Result<Vec<NodeId>, SchemaFault> {
        let mut nodes = Vec::new();
        for (index, (_, json)) in list.children().enumerate() {
            nodes.push(self.subschema_node(json, at, keyword, KeywordPart::Item(index))?);
        }
        Ok(nodes)
    }
}
