//! The registry of documents that references may lead to: the schema itself and the resources
//! passed by the user.
//!
//! Nothing is fetched. A reference to a missing document is an error where it is read; one in a
//! part that is never reached is none. The meta-schemas of all drafts are always available, under
//! `http` and `https`.
//!
//! The crate `referencing` visits documents in hash-map order. Reports are therefore sorted in
//! document order, and two different documents with one identifier are refused, since either could
//! be found.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use formalm_core::Error;
use referencing::{Draft, Registry, ResourceRef, SPECIFICATIONS, Uri};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::{RESOURCES_HINT, schema_error};

/// The base URI of schemas without one.
pub(super) const DEFAULT_BASE: &str = "json-schema:///";

/// Answers every retrieval with [`Json::Null`], which is not a schema, and records the URI.
struct OfflineRetriever(Arc<Mutex<BTreeSet<String>>>);

impl referencing::Retrieve for OfflineRetriever {
    fn retrieve(
        &self,
        uri: &referencing::Uri<String>,
    ) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
        if alternate_meta_schema_uri(uri.as_str()).is_some() {
            return Ok(Json::Null);
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uri.to_string());
        Ok(Json::Null)
    }
}

/// Returns the identifier of the meta-schema that a URI means in another spelling: `http` for
/// `https` or vice versa, or the unversioned URI, which names the newest.
pub(super) fn alternate_meta_schema_uri(uri: &str) -> Option<String> {
    let uri = uri.trim_end_matches('#');
    let (scheme, rest) = uri.split_once("://")?;
    let spelled = match (scheme, rest) {
        ("http" | "https", "json-schema.org/schema") => {
            "https://json-schema.org/draft/2020-12/schema".to_owned()
        }
        ("http", _) => format!("https://{rest}"),
        ("https", _) => format!("http://{rest}"),
        _ => return None,
    };
    SPECIFICATIONS.contains_resource(&spelled).then_some(spelled)
}

/// Returns the message for a document that is not available.
pub(super) fn missing_message(uri: &str) -> String {
    format!("{uri} is not among the given resources")
}

/// Builds the registry, and returns it with the base URI and the draft of the schema. Fails if an
/// identifier is invalid or ambiguous, or a document is missing.
pub(super) fn build_registry<'r>(
    json: &'r Json,
    resources: &[(&str, &'r Json)],
) -> Result<(Registry<'r>, String, Draft), Error> {
    let draft = known_draft(json, resources, Draft::default());
    let base = json.get(draft.id_keyword()).and_then(Json::as_str);
    let base = match base {
        Some(id) if !id.starts_with('#') => referencing::uri::from_str(id.trim_end_matches('#'))
            .ok()
            .filter(|uri| uri.as_str().contains("://"))
            .map_or_else(|| DEFAULT_BASE.to_owned(), |uri| uri.as_str().to_owned()),
        _ => DEFAULT_BASE.to_owned(),
    };
    // The schema itself comes first, so that its errors are reported first.
    let mut documents = vec![(base.as_str(), draft.create_resource_ref(json))];
    // A resource that does not declare its draft has that of the referring schema.
    let usual = if draft == Draft::Unknown { Draft::default() } else { draft };
    for &(uri, resource) in resources {
        let draft = known_draft(resource, resources, usual);
        let draft = if draft == Draft::Unknown { Draft::default() } else { draft };
        documents.push((uri, draft.create_resource_ref(resource)));
    }
    check_identifiers(&documents[1..])?;
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let registry = match prepare_registry(&documents, draft, &asked) {
        Ok(registry) => registry,
        Err(error) => {
            // Prepare the documents one by one, so that the reported error is deterministic.
            let alone = documents.iter().find_map(|&one| {
                let error = prepare_registry(&[one], draft, &Arc::default()).err()?;
                Some(registry_error(one, &base, &error))
            });
            return Err(alone.unwrap_or_else(|| registry_error(documents[0], &base, &error)));
        }
    };
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    // A missing meta-schema is reported where the reference is read.
    if !asked.is_empty()
        && let Some((place, uri)) = first_missing(json, &base, &asked)
    {
        return Err(schema_error(&place, missing_message(uri), Some(RESOURCES_HINT)));
    }
    Ok((registry, base, draft))
}

/// A document with its URI.
type UriResource<'r> = (&'r str, ResourceRef<'r>);

/// Builds the registry of `referencing`, recording documents that are missing.
fn prepare_registry<'r>(
    documents: &[(&str, ResourceRef<'r>)],
    draft: Draft,
    asked: &Arc<Mutex<BTreeSet<String>>>,
) -> Result<Registry<'r>, referencing::Error> {
    let none: [(&str, ResourceRef<'r>); 0] = [];
    let builder = SPECIFICATIONS.extend(none)?;
    let builder = builder.draft(draft).retriever(OfflineRetriever(asked.clone()));
    // The schema itself wins over a resource passed under its URI.
    builder.extend(documents.iter().rev().copied())?.prepare()
}

/// Returns the error for a document that the registry does not accept.
fn registry_error(
    (uri, document): UriResource<'_>,
    base: &str,
    error: &referencing::Error,
) -> Error {
    let message = error.to_string();
    let place = pointer_of_quoted_reference(document.contents(), &message);
    let place = if uri == base {
        place.unwrap_or_default()
    } else {
        place.map_or_else(|| uri.to_owned(), |place| format!("{uri}{place}"))
    };
    schema_error(&place, message, Some(RESOURCES_HINT))
}

/// Fails if two different resources have the same identifier.
fn check_identifiers(resources: &[UriResource<'_>]) -> Result<(), Error> {
    let mut known: FxHashMap<String, &Json> = FxHashMap::default();
    for &(uri, resource) in resources {
        let Ok(base) = referencing::uri::from_str(uri.trim_end_matches('#')) else { continue };
        let keyword = resource.draft().id_keyword();
        // Identifiers in this resource; within one document the last of equal ones counts.
        let mut own: FxHashMap<String, &Json> = FxHashMap::default();
        let mut rest = vec![(base, resource.contents())];
        while let Some((mut base, json)) = rest.pop() {
            match json {
                Json::Array(list) => rest.extend(list.iter().map(|one| (base.clone(), one))),
                Json::Object(map) => {
                    let id = map.get(keyword).and_then(Json::as_str);
                    if let Some(id) = id.map(|id| id.trim_end_matches('#'))
                        && !id.contains('#')
                        && let Ok(found) = referencing::uri::resolve_against(&base.borrow(), id)
                    {
                        own.insert(found.as_str().to_owned(), json);
                        base = found;
                    }
                    let schemas = map.iter().filter(|(name, one)| {
                        let values = ["const", "enum", "default", "examples"];
                        (one.is_object() || one.is_array()) && !values.contains(&name.as_str())
                    });
                    rest.extend(schemas.map(|(_, one)| (base.clone(), one)));
                }
                _ => {}
            }
        }
        let mut own: Vec<(String, &Json)> = own.into_iter().collect();
        own.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (id, json) in own {
            if known.insert(id.clone(), json).is_some_and(|other| other != json) {
                let message = format!("two resources have the identifier {id}");
                let hint = "pass one resource per identifier";
                return Err(schema_error(uri, message, Some(hint)));
            }
        }
    }
    Ok(())
}

/// Returns the draft that a meta-schema URI is read as. Draft 3 is read as draft 4. Hyper-schema
/// URIs and bare draft names stand for their draft.
pub(super) fn draft_from_uri(uri: &str) -> Draft {
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

/// Returns the draft of a document: `usual` if it declares none, the newest for an unknown
/// meta-schema that was not passed.
fn known_draft(json: &Json, resources: &[(&str, &Json)], usual: Draft) -> Draft {
    let Some(named) = json.get("$schema").and_then(Json::as_str) else { return usual };
    match draft_from_uri(named) {
        Draft::Unknown => {
            let known = resources
                .iter()
                .any(|(one, _)| one.trim_end_matches('#') == named.trim_end_matches('#'));
            if known { Draft::Unknown } else { Draft::default() }
        }
        draft => draft,
    }
}

/// Returns the JSON pointer of the reference whose URI an error message quotes.
fn pointer_of_quoted_reference(json: &Json, message: &str) -> Option<String> {
    let keywords = ["$ref", "$dynamicRef", "$schema", "$id", "id"];
    first_reference(json, &keywords, &mut |text| {
        let uri = text.split('#').next().unwrap_or_default();
        let quoted = format!("'{uri}'");
        (!uri.is_empty() && (message.contains(&quoted) || message.contains(text))).then_some(())
    })
    .map(|found| found.0)
}

/// Returns the first reference to a missing document: its JSON pointer and the URI.
fn first_missing<'a>(
    json: &Json,
    base: &str,
    asked: &'a BTreeSet<String>,
) -> Option<(String, &'a String)> {
    let base = referencing::uri::from_str(base).ok();
    first_reference(json, &["$ref", "$dynamicRef"], &mut |text| {
        let uri = text.split('#').next().unwrap_or_default();
        if uri.is_empty() {
            return None;
        }
        let from = |base: &Uri<String>| referencing::uri::resolve_against(&base.borrow(), uri).ok();
        let resolved = base.as_ref().and_then(from);
        let exact = [Some(uri), resolved.as_ref().map(Uri::as_str)].into_iter().flatten();
        let exact = exact.filter_map(|uri| asked.get(uri)).next();
        // The base may be an identifier inside the document.
        let ends = || asked.iter().find(|one| !uri.contains("://") && ends_at_slash(one, uri));
        exact.or_else(ends)
    })
}

/// Returns `true` if a URI ends with a relative reference.
fn ends_at_slash(uri: &str, reference: &str) -> bool {
    let reference = reference.trim_start_matches(['.', '/']);
    uri.strip_suffix(reference).is_some_and(|rest| rest.ends_with('/'))
}

/// Returns the JSON pointer of the first of these keywords, in document order, whose text `wanted`
/// accepts.
fn first_reference<T>(
    json: &Json,
    keywords: &[&str],
    wanted: &mut impl FnMut(&str) -> Option<T>,
) -> Option<(String, T)> {
    /// A value on the search path: its parent and its name or index.
    struct SearchStep<'j> {
        json: &'j Json,
        above: Option<usize>,
        name: Option<&'j str>,
        index: usize,
    }
    let mut steps = vec![SearchStep { json, above: None, name: None, index: 0 }];
    let mut stack = vec![0];
    while let Some(at) = stack.pop() {
        let json = steps[at].json;
        let first = steps.len();
        match json {
            Json::Array(list) => {
                steps.extend(list.iter().enumerate().map(|(index, json)| SearchStep {
                    json,
                    above: Some(at),
                    name: None,
                    index,
                }))
            }
            Json::Object(map) => {
                for &keyword in keywords {
                    let text = map.get(keyword).and_then(Json::as_str).unwrap_or_default();
                    if let Some(found) = wanted(text).filter(|_| !text.is_empty()) {
                        let mut names = vec![keyword.to_owned()];
                        let mut at = at;
                        while let Some(above) = steps[at].above {
                            let index = || steps[at].index.to_string();
                            names.push(steps[at].name.map_or_else(index, str::to_owned));
                            at = above;
                        }
                        let escape = |name: &String| name.replace('~', "~0").replace('/', "~1");
                        let names: Vec<String> = names.iter().rev().map(escape).collect();
                        return Some((format!("#/{}", names.join("/")), found));
                    }
                }
                steps.extend(map.iter().map(|(name, json)| SearchStep {
                    json,
                    above: Some(at),
                    name: Some(name),
                    index: 0,
                }));
            }
            _ => {}
        }
        stack.extend((first..steps.len()).rev());
    }
    None
}
