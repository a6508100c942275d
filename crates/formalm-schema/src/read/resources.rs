//! What references may lead to: the schema itself, and the resources that the user passes.
//!
//! Nothing is fetched. A reference to what was not passed is refused where it is met: one that
//! stands in a resource nobody comes to is nobody's mistake.

use std::sync::{Arc, Mutex, PoisonError};

use formalm_automata::Error;
use referencing::{Draft, Registry};
use serde_json::Value as Json;

use super::{HINT, refuse};

/// The URI of schemas that have none.
pub(super) const ROOT: &str = "json-schema:///";

/// Puts [`Json::Null`], which is no schema, where nothing was passed, and tells of it.
struct NoRetrieval(Arc<Mutex<Vec<String>>>);

impl referencing::Retrieve for NoRetrieval {
    fn retrieve(
        &self,
        uri: &referencing::Uri<String>,
    ) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(uri.to_string());
        Ok(Json::Null)
    }
}

/// What is said of a URI that is not there.
pub(super) fn missing(uri: &str) -> String {
    format!("{uri} is not among the resources passed")
}

/// All that references may lead to, with the URI and the draft of the schema itself.
pub(super) fn registry<'r>(
    json: &'r Json,
    resources: &[(&str, &'r Json)],
) -> Result<(Registry<'r>, String, Draft), Error> {
    let draft = known_draft(json, resources, Draft::default());
    let base = json.get(draft.id_keyword()).and_then(Json::as_str);
    let base = match base {
        Some(id) if !id.starts_with('#') => referencing::uri::from_str(id.trim_end_matches('#'))
            .ok()
            .filter(|uri| uri.as_str().contains("://"))
            .map_or_else(|| ROOT.to_owned(), |uri| uri.as_str().to_owned()),
        _ => ROOT.to_owned(),
    };
    let failed = |error: &dyn std::fmt::Display| {
        let message = error.to_string();
        let keywords = ["$ref", "$dynamicRef", "$schema"];
        let place = place_of_reference(json, &keywords, &message).unwrap_or_default();
        refuse(&place, message, Some(HINT))
    };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut builder = Registry::new().draft(draft).retriever(NoRetrieval(asked.clone()));
    // A resource that does not say its draft has that of the schema that refers to it.
    let usual = if draft == Draft::Unknown { Draft::default() } else { draft };
    for &(uri, resource) in resources {
        let draft = known_draft(resource, resources, usual);
        let draft = if draft == Draft::Unknown { Draft::default() } else { draft };
        builder = builder
            .add(uri, draft.create_resource_ref(resource))
            .map_err(|error| failed(&error))?;
    }
    let builder =
        builder.add(&base, draft.create_resource_ref(json)).map_err(|error| failed(&error))?;
    let registry = builder.prepare().map_err(|error| failed(&error))?;
    for uri in asked.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        // A meta-schema that was not passed is told of where it is read.
        if let Some(place) = place_of_reference(json, &["$ref", "$dynamicRef"], uri) {
            return Err(refuse(&place, missing(uri), Some(HINT)));
        }
    }
    Ok((registry, base, draft))
}

/// The draft that a meta-schema's URI is read as. Draft 3 is nearest to draft 4; what a draft has
/// for links, and its name alone, stand for the draft.
pub(super) fn draft_of(uri: &str) -> Draft {
    let exact = Draft::from_schema_uri(uri);
    let path = uri.split_once("://json-schema.org/").map_or("", |(_, path)| path);
    let path = path.trim_end_matches(['#', '/']);
    let short = path.trim_end_matches("/schema").trim_end_matches("/hyper-schema");
    match (exact, short) {
        (Draft::Unknown, "draft-03" | "draft-04") => Draft::Draft4,
        (Draft::Unknown, "draft-06") => Draft::Draft6,
        (Draft::Unknown, "draft-07") => Draft::Draft7,
        (Draft::Unknown, "draft/2019-09") => Draft::Draft201909,
        (Draft::Unknown, "draft/2020-12") => Draft::Draft202012,
        (exact, _) => exact,
    }
}

/// The draft of a document, `usual` if it names none; a meta-schema nobody knows leaves the newest.
fn known_draft(json: &Json, resources: &[(&str, &Json)], usual: Draft) -> Draft {
    let Some(named) = json.get("$schema").and_then(Json::as_str) else { return usual };
    match draft_of(named) {
        Draft::Unknown => {
            let known = resources
                .iter()
                .any(|(one, _)| one.trim_end_matches('#') == named.trim_end_matches('#'));
            if known { Draft::Unknown } else { Draft::default() }
        }
        draft => draft,
    }
}

/// The pointer of the reference that a message speaks of by its URI, which ends as it does.
fn place_of_reference(json: &Json, keywords: &[&str], message: &str) -> Option<String> {
    let mut stack = vec![(json, "#".to_owned())];
    while let Some((json, place)) = stack.pop() {
        let below = |part: &str| format!("{place}/{}", part.replace('~', "~0").replace('/', "~1"));
        match json {
            Json::Array(list) => {
                let items = list.iter().enumerate().rev();
                stack.extend(items.map(|(at, one)| (one, below(&at.to_string()))));
            }
            Json::Object(map) => {
                for &keyword in keywords {
                    let text = map.get(keyword).and_then(Json::as_str).unwrap_or_default();
                    let uri = text.split('#').next().unwrap_or_default();
                    if !uri.is_empty() && message.contains(uri) {
                        return Some(below(keyword));
                    }
                }
                stack.extend(map.iter().rev().map(|(name, one)| (one, below(name))));
            }
            _ => {}
        }
    }
    None
}
