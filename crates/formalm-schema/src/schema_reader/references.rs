//! References: where they lead.

use referencing::{Draft, Resolver, Vocabulary};
use serde_json::Value as Json;

use super::keyword_table::Keyword;
use super::keyword_values::{Fault, Fields};
use super::resource_registry::{ROOT, meta_schema, missing};
use super::{HINT, Place, Reader, local_refs, refuse};
use crate::json::json_view::Source;
use crate::schema_nodes::{NodeId, Rule, Spot};

/// What the references of a place start from.
#[derive(Clone)]
pub(super) enum Base<'r, J> {
    /// A plain document, by its root.
    Document(J),
    Resources(Resolver<'r>),
}

impl<'r, J: Source<'r>> Base<'r, J> {
    /// The base of a part.
    pub(super) fn below(&self, json: J, draft: Draft) -> Result<Base<'r, J>, referencing::Error> {
        match self {
            Base::Document(root) => Ok(Base::Document(*root)),
            Base::Resources(resolver) => {
                let json = json.value().unwrap_or(&Json::Null);
                resolver.in_subresource(draft.create_resource_ref(json)).map(Base::Resources)
            }
        }
    }

    /// The URI of the base and, where it matters, those of the resources entered on the way.
    pub(super) fn names(&self, dynamic: bool) -> (String, Vec<String>) {
        let Base::Resources(resolver) = self else { return (String::new(), Vec::new()) };
        let mut scope: Vec<String> = Vec::new();
        if dynamic {
            for uri in &resolver.dynamic_scope() {
                // Of a resource entered twice, the outermost entrance is what counts.
                scope.retain(|one| one != uri.as_str());
                scope.push(uri.as_str().to_owned());
            }
        }
        (resolver.base_uri().as_str().to_owned(), scope)
    }

    /// Whether a schema of a draft of its own has the vocabulary of assertions.
    pub(super) fn validates(&self, draft: Draft, json: J) -> bool {
        match self {
            Base::Document(_) => true,
            Base::Resources(resolver) => {
                let json = json.value().unwrap_or(&Json::Null);
                resolver.find_vocabularies(draft, json).contains(&Vocabulary::Validation)
            }
        }
    }
}

impl<'r, J: Source<'r>> Reader<'r, J> {
    /// The rules of a schema's references; whether nothing beside them is read.
    pub(super) fn references(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<bool, Fault> {
        let reference = fields.get(Keyword::Ref);
        if let Some(reference) = reference.filter(|one| one.text().is_some() || !at.is_legacy()) {
            let target = self.reference(reference, Keyword::Ref, at)?;
            rules.push(Rule::All(vec![target]));
            if at.is_legacy() {
                return Ok(true);
            }
        }
        let reference = fields.get(Keyword::DynamicRef);
        if let Some(reference) = reference.filter(|_| !at.before_2020()) {
            let target = self.reference(reference, Keyword::DynamicRef, at)?;
            rules.push(Rule::All(vec![target]));
        }
        if fields.has(Keyword::RecursiveRef)
            && at.draft == Draft::Draft201909
            && let Base::Resources(resolver) = &at.base
        {
            let found = resolver.lookup_recursive_ref();
            let found = found.map_err(|error| self.nowhere(at, None, error, None))?;
            rules.push(Rule::All(vec![self.resolved(found, resolver, "$recursiveRef", at)?]));
        }
        Ok(false)
    }

    fn nowhere(
        &self,
        at: &Place<'r, J>,
        keyword: Option<Keyword>,
        message: impl std::fmt::Display,
        hint: Option<&str>,
    ) -> Fault {
        let parts: Vec<&str> = keyword.map(Keyword::name).into_iter().collect();
        Fault::Other(refuse(&self.pointer(at, &parts), message, hint))
    }

    fn reference(
        &mut self,
        reference: J,
        keyword: Keyword,
        at: &Place<'r, J>,
    ) -> Result<NodeId, Fault> {
        let Some(text) = reference.text() else {
            let message = format!("{} is a text", keyword.name());
            return Err(self.nowhere(at, Some(keyword), message, None));
        };
        let resolver = match &at.base {
            Base::Document(root) => {
                let Some(json) = local_refs::pointed(*root, text) else {
                    let message = format!("{text} leads nowhere");
                    return Err(self.nowhere(at, Some(keyword), message, None));
                };
                let spot = Spot::Pointer(text.into());
                return self.enter_referred(json, at.base.clone(), at.draft, spot);
            }
            Base::Resources(resolver) => resolver,
        };
        let (document, fragment) = text.split_once('#').unwrap_or((text, ""));
        let passed = |found: &referencing::Resolved<'_>| !found.contents().is_null();
        let respelled = meta_schema(document)
            .filter(|_| !resolver.lookup(document).as_ref().is_ok_and(passed))
            .map(|uri| format!("{uri}#{fragment}"));
        if let Some(uri) = &respelled {
            self.note(at, &[keyword.name()], format!("{text} is read as {uri}"));
        }
        let (text, document) = match &respelled {
            Some(uri) => (uri.as_str(), uri.split('#').next().unwrap_or_default()),
            None => (text, document),
        };
        let absent = |found: &referencing::Resolved<'_>| found.contents().is_null();
        if !document.is_empty() && resolver.lookup(document).as_ref().is_ok_and(absent) {
            return Err(self.nowhere(at, Some(keyword), missing(document), Some(HINT)));
        }
        let found = match resolver.lookup(text) {
            Ok(found) => found,
            Err(error) => match below_root(text, resolver) {
                Some(found) => {
                    let message = format!("{text} is read from the root of the document");
                    self.note(at, &[keyword.name()], message);
                    found
                }
                None if matches!(error, referencing::Error::Unretrievable { .. }) => {
                    return Err(self.nowhere(at, Some(keyword), missing(document), Some(HINT)));
                }
                None => return Err(self.nowhere(at, Some(keyword), error, Some(HINT))),
            },
        };
        self.resolved(found, resolver, text, at)
    }

    fn resolved(
        &mut self,
        found: referencing::Resolved<'r>,
        from: &Resolver<'r>,
        text: &str,
        at: &Place<'r, J>,
    ) -> Result<NodeId, Fault> {
        let (json, resolver, draft) = found.into_inner();
        let Some(json) = J::of_value(json) else {
            return Err(self.nowhere(at, None, "a schema of another kind", None));
        };
        let same = resolver.base_uri() == from.base_uri();
        let draft = if draft == Draft::Unknown || same { at.draft } else { draft };
        let recursive = text == "$recursiveRef" && resolver.base_uri().as_str().starts_with(ROOT);
        let pointer = match text {
            "#" => text.to_owned(),
            _ if recursive => "#".to_owned(),
            "$recursiveRef" => format!("{}#", resolver.base_uri()),
            _ if text.starts_with("#/") => text.to_owned(),
            _ => format!("{text}#"),
        };
        self.enter_referred(json, Base::Resources(resolver), draft, Spot::Pointer(pointer.into()))
    }

    /// Enters what a reference leads to: what is wrong with it is so there.
    fn enter_referred(
        &mut self,
        json: J,
        base: Base<'r, J>,
        draft: Draft,
        spot: Spot,
    ) -> Result<NodeId, Fault> {
        let pointer =
            if let Spot::Pointer(text) = &spot { text.to_string() } else { String::new() };
        self.enter_here(json, base, draft, spot).map_err(|fault| match fault {
            Fault::Part { message, hint, .. } => {
                Fault::Other(refuse(&pointer, message, hint.as_deref()))
            }
            other => other,
        })
    }
}

/// Pointers below an embedded identifier often mean the whole document.
fn below_root<'r>(text: &str, resolver: &Resolver<'r>) -> Option<referencing::Resolved<'r>> {
    let fragment = text.strip_prefix('#')?;
    resolver.lookup(&format!("{ROOT}#{fragment}")).ok()
}
