//! Resolution of `$ref`, `$dynamicRef` and `$recursiveRef`, and checks of identifier keywords.

use referencing::{Draft, Resolver, Vocabulary};
use serde_json::Value as Json;

use super::ineffective_keyword_notes::draft_name;
use super::keyword_table::Keyword;
use super::keyword_values::{KeywordValues, SchemaFault};
use super::resource_registry::{
    DEFAULT_BASE, alternate_meta_schema_uri, draft_from_uri, missing_message,
};
use super::{
    RESOURCES_HINT, SchemaReader, SubschemaContext, schema_error, self_contained_documents,
};
use crate::json::json_view::JsonView;
use crate::schema_nodes::{KeywordRule, NodeId, NodeLocation};

/// The base from which the references of a subschema are resolved.
#[derive(Clone)]
pub(super) enum ReferenceBase<'r, J> {
    /// A self-contained document, by its root.
    Local(J),
    Registry(Resolver<'r>),
}

impl<'r, J: JsonView<'r>> ReferenceBase<'r, J> {
    /// Returns the base of a subschema. Fails if its identifier is not a URI.
    pub(super) fn in_subschema(
        &self,
        json: J,
        draft: Draft,
    ) -> Result<ReferenceBase<'r, J>, referencing::Error> {
        match self {
            ReferenceBase::Local(root) => Ok(ReferenceBase::Local(*root)),
            ReferenceBase::Registry(resolver) => {
                let json = json.as_serde().unwrap_or(&Json::Null);
                resolver
                    .in_subresource(draft.create_resource_ref(json))
                    .map(ReferenceBase::Registry)
            }
        }
    }

    /// Returns the base URI and, if it matters, the dynamic scope: together they identify the
    /// context of a node.
    pub(super) fn identity(&self, dynamic: bool) -> (String, Vec<String>) {
        let ReferenceBase::Registry(resolver) = self else { return (String::new(), Vec::new()) };
        let mut scope: Vec<String> = Vec::new();
        if dynamic {
            for uri in &resolver.dynamic_scope() {
                // If a resource was entered twice, the outermost entry counts.
                scope.retain(|one| one != uri.as_str());
                scope.push(uri.as_str().to_owned());
            }
        }
        (resolver.base_uri().as_str().to_owned(), scope)
    }

    /// Returns `true` if a custom meta-schema includes the validation vocabulary.
    pub(super) fn has_validation(&self, draft: Draft, json: J) -> bool {
        match self {
            ReferenceBase::Local(_) => true,
            ReferenceBase::Registry(resolver) => {
                let json = json.as_serde().unwrap_or(&Json::Null);
                resolver.find_vocabularies(draft, json).contains(&Vocabulary::Validation)
            }
        }
    }
}

/// Identifier keywords with string values, and the first and last draft that have them.
const STRING_IDENTIFIERS: [(Keyword, Draft, Draft); 4] = {
    use Draft::{Draft4 as D4, Draft6 as D6, Draft201909 as D19, Draft202012 as D20, Unknown};
    [
        (Keyword::Schema, D4, Unknown),
        (Keyword::DollarId, D6, Unknown),
        (Keyword::Anchor, D19, Unknown),
        (Keyword::DynamicAnchor, D20, Unknown),
    ]
};

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    /// Checks the types of identifier keywords, and notes a draft that is read as another one.
    /// Fails if a type is wrong.
    pub(super) fn check_identifiers(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
    ) -> Result<(), SchemaFault> {
        for (keyword, first, last) in STRING_IDENTIFIERS {
            if first <= at.draft && at.draft <= last {
                fields.string(keyword)?;
            }
        }
        fields.object(Keyword::Definitions)?;
        if !at.is_legacy() {
            fields.object(Keyword::Defs)?;
            fields.object(Keyword::Vocabulary)?;
        }
        if at.draft == Draft::Draft201909 {
            fields.boolean(Keyword::RecursiveAnchor)?;
        }
        let Some(uri) = fields.string(Keyword::Schema)? else { return Ok(()) };
        // A meta-schema that was passed as a resource declares its vocabularies, so its draft is
        // known.
        if Draft::from_schema_uri(uri) == Draft::Unknown && at.draft != Draft::Unknown {
            let unknown = draft_from_uri(uri) == Draft::Unknown;
            let what = if unknown { "names an unknown draft and " } else { "" };
            let message = format!("{uri:?} {what}is read as {}", draft_name(at.draft));
            self.schema.note(at.node, &["$schema"], message);
        }
        Ok(())
    }

    /// Adds the rules of a schema's references. Returns `true` if the draft ignores their siblings.
    /// Fails if a reference leads nowhere.
    pub(super) fn reference_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<bool, SchemaFault> {
        let reference = fields.get(Keyword::Ref);
        if let Some(reference) = reference.filter(|one| one.as_str().is_some() || !at.is_legacy()) {
            let target = self.resolve_reference(reference, Keyword::Ref, at)?;
            rules.push(KeywordRule::AllOf(vec![target]));
            if at.is_legacy() {
                return Ok(true);
            }
        }
        let reference = fields.get(Keyword::DynamicRef);
        if let Some(reference) = reference.filter(|_| !at.is_before_2020()) {
            let target = self.resolve_reference(reference, Keyword::DynamicRef, at)?;
            rules.push(KeywordRule::AllOf(vec![target]));
        }
        if fields.has(Keyword::RecursiveRef)
            && at.draft == Draft::Draft201909
            && let ReferenceBase::Registry(resolver) = &at.base
        {
            let found = resolver.lookup_recursive_ref();
            let found = found.map_err(|error| self.unresolved(at, None, error, None))?;
            rules.push(KeywordRule::AllOf(vec![self.enter_resolved(
                found,
                resolver,
                "$recursiveRef",
                at,
            )?]));
        }
        Ok(false)
    }

    /// Returns the error of a reference that cannot be resolved.
    fn unresolved(
        &self,
        at: &SubschemaContext<'r, J>,
        keyword: Option<Keyword>,
        message: impl std::fmt::Display,
        hint: Option<&str>,
    ) -> SchemaFault {
        let parts: Vec<&str> = keyword.map(Keyword::name).into_iter().collect();
        SchemaFault::Other(schema_error(&self.schema.pointer_into(at.node, &parts), message, hint))
    }

    /// Returns the node of a reference's target. Fails if there is none.
    fn resolve_reference(
        &mut self,
        reference: J,
        keyword: Keyword,
        at: &SubschemaContext<'r, J>,
    ) -> Result<NodeId, SchemaFault> {
        let Some(text) = reference.as_str() else {
            let message = format!("{} must be a string", keyword.name());
            return Err(self.unresolved(at, Some(keyword), message, None));
        };
        let resolver = match &at.base {
            ReferenceBase::Local(root) => {
                let Some(json) = self_contained_documents::resolve_pointer(*root, text) else {
                    let message = format!("{text} does not resolve");
                    return Err(self.unresolved(at, Some(keyword), message, None));
                };
                let spot = NodeLocation::Pointer(text.into());
                return self.referenced_node(json, at.base.clone(), at.draft, spot);
            }
            ReferenceBase::Registry(resolver) => resolver,
        };
        let (document, fragment) = text.split_once('#').unwrap_or((text, ""));
        let passed = |found: &referencing::Resolved<'_>| !found.contents().is_null();
        let respelled = alternate_meta_schema_uri(document)
            .filter(|_| !resolver.lookup(document).as_ref().is_ok_and(passed))
            .map(|uri| format!("{uri}#{fragment}"));
        if let Some(uri) = &respelled {
            self.schema.note(at.node, &[keyword.name()], format!("{text} is resolved as {uri}"));
        }
        let (text, document) = match &respelled {
            Some(uri) => (uri.as_str(), uri.split('#').next().unwrap_or_default()),
            None => (text, document),
        };
        let absent = |found: &referencing::Resolved<'_>| found.contents().is_null();
        if !document.is_empty() && resolver.lookup(document).as_ref().is_ok_and(absent) {
            return Err(self.unresolved(
                at,
                Some(keyword),
                missing_message(document),
                Some(RESOURCES_HINT),
            ));
        }
        let found = match resolver.lookup(text) {
            Ok(found) => found,
            Err(error) => match lookup_from_root(text, resolver) {
                Some(found) => {
                    let message = format!("{text} is resolved from the root of the document");
                    self.schema.note(at.node, &[keyword.name()], message);
                    found
                }
                None if matches!(error, referencing::Error::Unretrievable { .. }) => {
                    return Err(self.unresolved(
                        at,
                        Some(keyword),
                        missing_message(document),
                        Some(RESOURCES_HINT),
                    ));
                }
                None => {
                    return Err(self.unresolved(at, Some(keyword), error, Some(RESOURCES_HINT)));
                }
            },
        };
        self.enter_resolved(found, resolver, text, at)
    }

    /// Returns the node of a resolved reference.
    fn enter_resolved(
        &mut self,
        found: referencing::Resolved<'r>,
        from: &Resolver<'r>,
        text: &str,
        at: &SubschemaContext<'r, J>,
    ) -> Result<NodeId, SchemaFault> {
        let (json, resolver, draft) = found.into_inner();
        let Some(json) = J::from_serde(json) else {
            return Err(self.unresolved(
                at,
                None,
                "the referenced schema is of another kind",
                None,
            ));
        };
        let same = resolver.base_uri() == from.base_uri();
        let draft = if draft == Draft::Unknown || same { at.draft } else { draft };
        let recursive =
            text == "$recursiveRef" && resolver.base_uri().as_str().starts_with(DEFAULT_BASE);
        let pointer = match text {
            "#" => text.to_owned(),
            _ if recursive => "#".to_owned(),
            "$recursiveRef" => format!("{}#", resolver.base_uri()),
            _ if text.starts_with("#/") => text.to_owned(),
            _ => format!("{text}#"),
        };
        self.referenced_node(
            json,
            ReferenceBase::Registry(resolver),
            draft,
            NodeLocation::Pointer(pointer.into()),
        )
    }

    /// Returns the node of a reference's target. Errors are reported at the target.
    fn referenced_node(
        &mut self,
        json: J,
        base: ReferenceBase<'r, J>,
        draft: Draft,
        spot: NodeLocation,
    ) -> Result<NodeId, SchemaFault> {
        let pointer =
            if let NodeLocation::Pointer(text) = &spot { text.to_string() } else { String::new() };
        self.schema_node(json, base, draft, spot).map_err(|fault| match fault {
            SchemaFault::Part { message, hint, .. } => {
                SchemaFault::Other(schema_error(&pointer, message, hint.as_deref()))
            }
            other => other,
        })
    }
}

/// Resolves a pointer from the document root: below an embedded identifier, authors often mean
/// that.
fn lookup_from_root<'r>(text: &str, resolver: &Resolver<'r>) -> Option<referencing::Resolved<'r>> {
    let fragment = text.strip_prefix('#')?;
    resolver.lookup(&format!("{DEFAULT_BASE}#{fragment}")).ok()
}
