//! Schemas as users write them, read into [`Schema`].
//!
//! Every subschema that can be reached becomes a [`Node`] once for each of its surroundings: base
//! URI and, where dynamic references occur, the resources entered on the way.

mod applicators;
mod assertions;
mod duplicate_nodes;
mod format;
mod identifiers;
mod ignored_keywords;
mod in_place_cycles;
mod keyword_table;
mod keyword_types;
mod keyword_values;
mod local_refs;
#[cfg(test)]
mod local_refs_tests;
pub(crate) mod pattern_search;
mod references;
mod resource_registry;
mod string_parts;

use std::sync::Arc;

use formalm_automata::{Error, Resource as Limited};
use referencing::Draft;
use serde_json::Value as Json;

use crate::interner::Map;
use crate::json::document::Document;
use crate::json::json_view::Source;
use crate::options::Options;
use crate::schema_nodes::{Effect, Node, NodeId, Note, Part, Rule, Schema, Spot, push_part};
use keyword_table::Keyword;
use keyword_types::Unread;
use keyword_values::{Fault, Fields, wrong};
use references::Base;
use resource_registry::{draft_of, registry};

/// What to do about a reference that leads nowhere.
const HINT: &str = "pass what a schema refers to as resources, by URI";

/// Subschemas in their surroundings; more are refused.
const MAX_NODES: usize = 500_000;

/// A refusal at a place of the schema.
pub(crate) fn refuse(place: &str, message: impl std::fmt::Display, hint: Option<&str>) -> Error {
    let place = if place.is_empty() { "#" } else { place };
    Error::Language {
        message: format!("{message} (at {place})"),
        span: None,
        hint: hint.map(str::to_owned),
    }
}

/// A schema that is still to be read, and where it stands.
struct Pending<'r, J> {
    json: J,
    at: Place<'r, J>,
}

/// The surroundings of a subschema.
#[derive(Clone)]
struct Place<'r, J> {
    base: Base<'r, J>,
    draft: Draft,
    node: NodeId,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    json: usize,
    base: String,
    scope: Vec<String>,
}

struct Reader<'r, J> {
    schema: Schema,
    options: Options,
    ids: Map<Key, NodeId>,
    pending: Vec<Pending<'r, J>>,
    /// Subschemas that were not read when they were met.
    unread: Vec<Unread<'r, J>>,
    /// Notes, by index, of keywords that are no mistake if a reference leads into them.
    wrappers: Vec<usize>,
    dynamic: bool,
}

/// Reads the text of a schema; `resources` are the schemas that it may refer to, by URI.
pub(crate) fn read(
    schema: &Document,
    resources: &[(String, Document)],
    options: Options,
) -> Result<Schema, Error> {
    if resources.is_empty() {
        let read = match &schema.tree {
            Some(tree) => read_plain(tree.root(), options),
            None => read_plain(schema.value()?, options),
        };
        if let Some(schema) = read {
            return Ok(schema);
        }
    }
    read_beside(Schema::default(), schema, resources, options)
}

/// Reads a plain document; `None` if it is not plain, or something is wrong with it.
fn read_plain<'r>(json: impl Source<'r>, options: Options) -> Option<Schema> {
    let draft = local_refs::draft(json)?;
    let mut reader = Reader::new(Schema::default(), options, false);
    reader.read(json, Base::Document(json), draft).ok()?;
    Some(reader.schema)
}

/// The same beside what was read before: nodes are added, and the root is that of this text.
pub(crate) fn read_beside(
    before: Schema,
    schema: &Document,
    resources: &[(String, Document)],
    options: Options,
) -> Result<Schema, Error> {
    let json = schema.value()?;
    let others: Result<Vec<(&str, &Json)>, Error> =
        resources.iter().map(|(uri, one)| Ok((uri.as_str(), one.value()?))).collect();
    let others = others?;
    let (registry, base, draft) = registry(json, &others)?;
    let base = referencing::uri::from_str(&base).map_err(|error| refuse("", error, Some(HINT)))?;
    let dynamic = mentions_dynamic(json) || others.iter().any(|(_, one)| mentions_dynamic(one));
    let mut reader = Reader::new(before, options, dynamic);
    reader.read(json, Base::Resources(registry.resolver(base)), draft)?;
    Ok(reader.schema)
}

fn mentions_dynamic(json: &Json) -> bool {
    let mut stack = vec![json];
    while let Some(json) = stack.pop() {
        match json {
            Json::Array(list) => stack.extend(list),
            Json::Object(map) => {
                let reference = map.get("$ref").and_then(Json::as_str).unwrap_or_default();
                if map.contains_key("$dynamicRef")
                    || map.contains_key("$recursiveRef")
                    // Meta-schemas refer so to themselves.
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

impl<J> Place<'_, J> {
    fn is_legacy(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    fn before_2020(&self) -> bool {
        self.is_legacy() || self.draft == Draft::Draft201909
    }
}

impl<'r, J: Source<'r>> Reader<'r, J> {
    fn new(before: Schema, options: Options, dynamic: bool) -> Reader<'r, J> {
        let (ids, pending, unread) = (Map::default(), Vec::new(), Vec::new());
        let wrappers = Vec::new();
        Reader { schema: before, options, ids, pending, unread, wrappers, dynamic }
    }

    fn read(&mut self, json: J, base: Base<'r, J>, draft: Draft) -> Result<(), Error> {
        let spot = Spot::Pointer("#".into());
        let root = self.enter_here(json, base, draft, spot).map_err(|fault| match fault {
            Fault::Part { message, hint, .. } => refuse("#", message, hint.as_deref()),
            Fault::Other(error) => error,
        })?;
        self.schema.root = Some(root);
        while let Some(Pending { json, at }) = self.pending.pop() {
            let rules = self.rules(json, &at).map_err(|fault| self.refused(&at, fault))?;
            if !rules.is_empty() {
                self.schema.nodes[at.node.0 as usize].rules = rules.into();
            }
        }
        self.check_unread()?;
        self.forget_wrappers();
        in_place_cycles::in_place(&self.schema)?;
        self.schema.same = duplicate_nodes::alike(&self.schema);
        Ok(())
    }

    fn refused(&self, at: &Place<'r, J>, fault: Fault) -> Error {
        match fault {
            Fault::Part { parts, message, hint } => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                refuse(&self.pointer(at, &parts), message, hint.as_deref())
            }
            Fault::Other(error) => error,
        }
    }

    /// The JSON pointer of a part of a place.
    fn pointer(&self, at: &Place<'r, J>, parts: &[&str]) -> String {
        let mut pointer = self.schema.place(at.node);
        for part in parts {
            push_part(&mut pointer, part);
        }
        pointer
    }

    fn note(&mut self, at: &Place<'r, J>, parts: &[&str], message: impl Into<String>) {
        self.tell(at, parts, message, Effect::Exact);
    }

    /// The same of what may not be exact.
    fn tell(
        &mut self,
        at: &Place<'r, J>,
        parts: &[&str],
        message: impl Into<String>,
        effect: Effect,
    ) {
        let note = Note { place: self.pointer(at, parts), message: message.into(), effect };
        self.schema.notes.push(note);
    }

    /// The node of a part of a schema, which is read later.
    fn enter(
        &mut self,
        json: J,
        at: &Place<'r, J>,
        keyword: Keyword,
        part: Part,
    ) -> Result<NodeId, Fault> {
        let entered = match at.base.below(json, at.draft) {
            Ok(base) => {
                let spot = Spot::Within(at.node, keyword.name(), part.clone());
                self.enter_here(json, base, at.draft, spot)
            }
            Err(error) => Err(wrong(&[], error)),
        };
        entered.map_err(|fault| match fault {
            Fault::Part { message, hint, .. } => {
                let part = part.text(&self.schema.names);
                let parts = [keyword.name().to_owned()].into_iter().chain(part).collect();
                Fault::Part { parts, message, hint }
            }
            other => other,
        })
    }

    /// The same where the base is that of the schema already: at the root, behind a reference.
    fn enter_here(
        &mut self,
        json: J,
        base: Base<'r, J>,
        mut draft: Draft,
        spot: Spot,
    ) -> Result<NodeId, Fault> {
        if !json.is_object() && json.truth().is_none() {
            return Err(wrong(&[], "a schema is an object, true or false"));
        }
        if matches!(base, Base::Resources(_))
            && let Some(uri) = json.get("$schema").and_then(J::text)
        {
            let detected = draft_of(uri);
            if detected != Draft::Unknown {
                draft = detected;
            }
        }
        let (uri, scope) = base.names(self.dynamic);
        let key = Key { json: json.number(), base: uri, scope };
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        if self.schema.nodes.len() >= MAX_NODES {
            return Err(Fault::Other(Error::Limit {
                resource: Limited::Terms,
                needed: MAX_NODES as u64 + 1,
                allowed: MAX_NODES as u64,
            }));
        }
        let node = self.schema.add(Node { rules: Arc::default(), place: spot });
        self.ids.insert_new(key, node);
        self.pending.push(Pending { json, at: Place { base, draft, node } });
        Ok(node)
    }

    fn rules(&mut self, json: J, at: &Place<'r, J>) -> Result<Vec<Rule>, Fault> {
        if !json.is_object() {
            let never = json.truth() == Some(false);
            return Ok(if never { vec![Rule::Never] } else { Vec::new() });
        }
        let fields = &Fields::of(json);
        self.identity(fields, at)?;
        self.tell_of_unread(fields, at);
        let mut rules = Vec::with_capacity(4);
        let hides_siblings = self.references(fields, at, &mut rules)?;
        if !hides_siblings {
            let validates = at.draft != Draft::Unknown || at.base.validates(at.draft, json);
            self.keywords(fields, at, validates, &mut rules)?;
        }
        self.check_shapes(fields, at, hides_siblings)?;
        Ok(rules)
    }

    /// The nodes of a list of subschemas.
    fn enter_all(
        &mut self,
        list: J,
        keyword: Keyword,
        at: &Place<'r, J>,
    ) -> Result<Vec<NodeId>, Fault> {
        let mut nodes = Vec::new();
        for (index, (_, json)) in list.parts().enumerate() {
            nodes.push(self.enter(json, at, keyword, Part::Item(index))?);
        }
        Ok(nodes)
    }
}
