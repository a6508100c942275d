//! Schemas as users write them, read into [`Schema`].
//!
//! Every subschema that can be reached becomes a [`Node`] once for each of its surroundings: base
//! URI and, where dynamic references occur, the resources entered on the way.

mod alike;
mod checks;
mod fields;
mod format;
mod identity;
mod keywords;
mod resources;
mod unread;

use formalm_automata::{Error, Resource as Limited};
use referencing::{Draft, Resolver, Vocabulary};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json};

use crate::document::Document;
use crate::node::{Effect, Node, NodeId, Note, Rule, Schema};
use crate::options::Options;
use resources::{ROOT, draft_of, missing, registry};

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
struct Pending<'r> {
    id: NodeId,
    json: &'r Json,
    at: Place<'r>,
}

/// The surroundings of a subschema.
#[derive(Clone)]
pub(super) struct Place<'r> {
    resolver: Resolver<'r>,
    draft: Draft,
    pointer: String,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    json: usize,
    base: String,
    scope: Vec<String>,
}

pub(super) struct Reader<'r> {
    pub(super) schema: Schema,
    options: Options,
    ids: FxHashMap<Key, NodeId>,
    pending: Vec<Pending<'r>>,
    dynamic: bool,
}

/// Reads the text of a schema; `resources` are the schemas that it may refer to, by URI.
pub(crate) fn read(
    schema: &Document,
    resources: &[(String, Document)],
    options: Options,
) -> Result<Schema, Error> {
    read_beside(Schema::default(), schema, resources, options)
}

/// The same beside what was read before: nodes are added, and the root is that of this text.
pub(crate) fn read_beside(
    before: Schema,
    schema: &Document,
    resources: &[(String, Document)],
    options: Options,
) -> Result<Schema, Error> {
    let json = &schema.0;
    let (registry, base, draft) = registry(json, resources)?;
    let base = referencing::uri::from_str(&base).map_err(|error| refuse("", error, Some(HINT)))?;
    let mut reader = Reader {
        schema: before,
        options,
        ids: FxHashMap::default(),
        pending: Vec::new(),
        dynamic: mentions_dynamic(json)
            || resources.iter().any(|(_, one)| mentions_dynamic(&one.0)),
    };
    let place = Place { resolver: registry.resolver(base), draft, pointer: "#".to_owned() };
    let root = reader.enter_here(json, place)?;
    reader.schema.root = Some(root);
    while let Some(Pending { id, json, at }) = reader.pending.pop() {
        let rules = reader.rules(json, &at)?;
        reader.schema.nodes[id.0 as usize] = Node { rules, place: at.pointer };
    }
    checks::in_place(&reader.schema)?;
    reader.schema.same = alike::alike(&reader.schema);
    Ok(reader.schema)
}

fn mentions_dynamic(json: &Json) -> bool {
    let mut stack = vec![json];
    while let Some(json) = stack.pop() {
        match json {
            Json::Array(list) => stack.extend(list),
            Json::Object(map) => {
                if map.contains_key("$dynamicRef") || map.contains_key("$recursiveRef") {
                    return true;
                }
                stack.extend(map.values());
            }
            _ => {}
        }
    }
    false
}

impl<'r> Place<'r> {
    /// The place of a part.
    pub(super) fn below(&self, parts: &[&str]) -> Place<'r> {
        let mut pointer = self.pointer.clone();
        for part in parts {
            pointer.push('/');
            pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
        }
        Place { pointer, ..self.clone() }
    }

    fn is_legacy(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    fn before_2020(&self) -> bool {
        self.is_legacy() || self.draft == Draft::Draft201909
    }
}

impl<'r> Reader<'r> {
    pub(super) fn note(&mut self, place: &str, message: impl Into<String>) {
        self.tell(place, message, Effect::Exact);
    }

    /// The same of what may not be exact.
    pub(super) fn tell(&mut self, place: &str, message: impl Into<String>, effect: Effect) {
        let note = Note { place: place.to_owned(), message: message.into(), effect };
        self.schema.notes.push(note);
    }

    /// The node of a part of a schema, which is read later.
    pub(super) fn enter(&mut self, json: &'r Json, mut at: Place<'r>) -> Result<NodeId, Error> {
        at.resolver = at
            .resolver
            .in_subresource(at.draft.create_resource_ref(json))
            .map_err(|error| refuse(&at.pointer, error, None))?;
        self.enter_here(json, at)
    }

    /// The same where the resolver stands at the schema already: at the root, behind a reference.
    fn enter_here(&mut self, json: &'r Json, mut at: Place<'r>) -> Result<NodeId, Error> {
        if !json.is_object() && !json.is_boolean() {
            return Err(refuse(&at.pointer, "a schema is an object, true or false", None));
        }
        if let Some(uri) = json.get("$schema").and_then(Json::as_str) {
            let detected = draft_of(uri);
            if detected != Draft::Unknown {
                at.draft = detected;
            }
        }
        let scope = if self.dynamic {
            let mut scope: Vec<String> = Vec::new();
            for uri in &at.resolver.dynamic_scope() {
                // Of a resource entered twice, the outermost entrance is what counts.
                scope.retain(|one| one != uri.as_str());
                scope.push(uri.as_str().to_owned());
            }
            scope
        } else {
            Vec::new()
        };
        let base = at.resolver.base_uri().as_str().to_owned();
        let key = Key { json: std::ptr::from_ref(json) as usize, base, scope };
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        if self.schema.nodes.len() >= MAX_NODES {
            return Err(Error::Limit {
                resource: Limited::Terms,
                needed: MAX_NODES as u64 + 1,
                allowed: MAX_NODES as u64,
            });
        }
        let id = self.schema.add(Node::default());
        self.ids.insert(key, id);
        self.pending.push(Pending { id, json, at });
        Ok(id)
    }

    fn rules(&mut self, json: &'r Json, at: &Place<'r>) -> Result<Vec<Rule>, Error> {
        let Json::Object(map) = json else {
            return Ok(if json == &Json::Bool(false) { vec![Rule::Never] } else { Vec::new() });
        };
        self.identity(map, at)?;
        self.tell_of_unread(map, at);
        let mut rules = Vec::new();
        if let Some(reference) = map.get("$ref").filter(|one| one.is_string() || !at.is_legacy()) {
            let target = self.reference(reference, "$ref", at)?;
            rules.push(Rule::All(vec![target]));
            if at.is_legacy() {
                return Ok(rules);
            }
        }
        if let Some(reference) = map.get("$dynamicRef").filter(|_| !at.before_2020()) {
            let target = self.reference(reference, "$dynamicRef", at)?;
            rules.push(Rule::All(vec![target]));
        }
        if map.contains_key("$recursiveRef") && at.draft == Draft::Draft201909 {
            let found = at.resolver.lookup_recursive_ref();
            let found = found.map_err(|error| refuse(&at.pointer, error, None))?;
            rules.push(Rule::All(vec![self.resolved(found, "$recursiveRef", at)?]));
        }
        let validates = at.draft != Draft::Unknown || {
            let known = at.resolver.find_vocabularies(at.draft, json);
            known.contains(&Vocabulary::Validation)
        };
        self.keywords(map, at, validates, &mut rules)?;
        Ok(rules)
    }

    fn reference(
        &mut self,
        reference: &'r Json,
        keyword: &str,
        at: &Place<'r>,
    ) -> Result<NodeId, Error> {
        let here = at.below(&[keyword]);
        let Json::String(text) = reference else {
            return Err(refuse(&here.pointer, format!("{keyword} is a text"), None));
        };
        let document = text.split('#').next().unwrap_or_default();
        let absent = |found: &referencing::Resolved<'_>| found.contents().is_null();
        if !document.is_empty() && at.resolver.lookup(document).as_ref().is_ok_and(absent) {
            return Err(refuse(&here.pointer, missing(document), Some(HINT)));
        }
        let found = match at.resolver.lookup(text) {
            Ok(found) => found,
            Err(error) => match self.below_root(text, at) {
                Some(found) => {
                    let message = format!("{text} is read from the root of the document");
                    self.note(&here.pointer, message);
                    found
                }
                None => return Err(refuse(&here.pointer, error, Some(HINT))),
            },
        };
        self.resolved(found, text, at)
    }

    /// Pointers below an embedded identifier often mean the whole document.
    fn below_root(&self, text: &str, at: &Place<'r>) -> Option<referencing::Resolved<'r>> {
        let fragment = text.strip_prefix('#')?;
        at.resolver.lookup(&format!("{ROOT}#{fragment}")).ok()
    }

    fn resolved(
        &mut self,
        found: referencing::Resolved<'r>,
        text: &str,
        at: &Place<'r>,
    ) -> Result<NodeId, Error> {
        let (json, resolver, draft) = found.into_inner();
        let same = resolver.base_uri() == at.resolver.base_uri();
        let draft = if draft == Draft::Unknown || same { at.draft } else { draft };
        let recursive = text == "$recursiveRef" && resolver.base_uri().as_str().starts_with(ROOT);
        let pointer = match text {
            "#" => text.to_owned(),
            _ if recursive => "#".to_owned(),
            "$recursiveRef" => format!("{}#", resolver.base_uri()),
            _ if text.starts_with("#/") => text.to_owned(),
            _ => format!("{text}#"),
        };
        self.enter_here(json, Place { resolver, draft, pointer })
    }

    /// The nodes of a list of subschemas.
    pub(super) fn enter_all(
        &mut self,
        list: &'r [Json],
        keyword: &str,
        at: &Place<'r>,
    ) -> Result<Vec<NodeId>, Error> {
        let mut nodes = Vec::with_capacity(list.len());
        for (index, json) in list.iter().enumerate() {
            nodes.push(self.enter(json, at.below(&[keyword, &index.to_string()]))?);
        }
        Ok(nodes)
    }
}

pub(super) type Fields = Map<String, Json>;
