//! Tests that self-contained documents are read as they are through the registry.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::{read_additional, read_schema, self_contained_documents};
use crate::json::document::Document;
use crate::options::JsonSchemaOptions;
use crate::schema_nodes::{NodeId, ResolvedSchema};

/// Renders everything that was read of a schema, or the error.
fn rendered(read: Result<ResolvedSchema, formalm_core::Error>) -> Result<String, String> {
    let schema = read.map_err(|error| error.to_string())?;
    let places: Vec<String> =
        (0..schema.nodes.len() as u32).map(|id| schema.json_pointer(NodeId(id))).collect();
    let rules: Vec<_> = schema.nodes.iter().map(|node| &node.rules).collect();
    let parts = (schema.root, &schema.names, &schema.values, &schema.regex_ids, &schema.notes);
    Ok(format!("{rules:?} {places:?} {parts:?}"))
}

/// Returns whether a document is self-contained, after checking that both paths read it alike.
fn agrees(schema: &Json) -> bool {
    let options = JsonSchemaOptions::default();
    let from_value = Document::from(schema.clone());
    let from_text = Document::read(&schema.to_string()).expect("a text of JSON");
    let with_registry =
        rendered(read_additional(ResolvedSchema::default(), &from_value, &[], options));
    for document in [from_value, from_text] {
        assert_eq!(rendered(read_schema(&document, &[], options)), with_registry, "{schema}");
        assert_eq!(
            rendered(read_additional(ResolvedSchema::default(), &document, &[], options)),
            with_registry
        );
    }
    self_contained_documents::local_draft(schema).is_some()
}

#[test]
fn local_documents_are_read_as_through_the_registry() {
    let four = "http://json-schema.org/draft-04/schema#";
    let cases = [
        (true, json!({"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"type": "null"}}})),
        (true, json!({"properties": {"a": {"$ref": "#"}, "id": {"$ref": "#/properties/a"}}})),
        (true, json!({"allOf": [{"$ref": "#/allOf/1"}, {"minimum": 1}]})),
        (true, json!({"allOf": [{"$ref": "#/allOf/+1"}, {"minimum": 1}]})),
        (true, json!({"allOf": [{"$ref": "#/allOf/01"}, {"minimum": 1}]})),
        (true, json!({"allOf": [{"$ref": "#/allOf/7"}]})),
        (true, json!({"$ref": "#/definitions/none"})),
        (true, json!({"$ref": "#/", "": {"type": "null"}})),
        (true, json!({"$ref": 7})),
        (true, json!({"properties": {"$ref": {"type": "string"}, "$id": {"not": true}}})),
        (true, json!({"properties": {"a/b": {"type": "text"}}})),
        (true, json!({"properties": {"a/b": 7}})),
        (true, json!({"patternProperties": {"a/b": {"items": {"pattern": "("}}}})),
        (true, json!({"dependentRequired": {"a": [1]}, "items": [{"minLength": -1}]})),
        (true, json!({"minProperty": 1, "properties": {"a": {"then": {}, "fomat": 1}}})),
        (true, json!({"anyOf": [{"$ref": "#"}]})),
        (true, json!({"$id": "https://a.example/b", "items": {"$ref": "#/$defs/c"}})),
        (true, json!({"$schema": four, "id": "http://a.b/c#", "items": {"$ref": "#/x"}})),
        (true, json!({"$schema": four, "$ref": "#/a", "a": {"id": 1, "type": "integer"}})),
        (true, json!({"items": {"id": "#item"}, "contains": {"$ref": "#/items"}})),
        (true, json!({"$schema": four, "not": {"$schema": four, "exclusiveMinimum": true}})),
        (true, json!({"$schema": four, "$ref": "#/a/b", "a": {"$schema": four, "b": {"type": 1}}})),
        (true, json!({"const": {"$schema": "https://json-schema.org/draft/2020-12/schema"}})),
        (true, json!(true)),
        (true, json!(7)),
        (false, json!({"$schema": four, "items": {"id": "a"}, "not": {"$ref": "#/items"}})),
        (false, json!({"$ref": "#/a%25b", "a%b": {"type": "null"}})),
        (false, json!({"$ref": "#a", "$defs": {"b": {"$anchor": "a"}}})),
        (false, json!({"$ref": "a", "$defs": {"b": {"$id": "a"}}})),
        (false, json!({"$ref": "http://json-schema.org/draft-07/schema#"})),
        (false, json!({"$schema": "https://a.example/mine", "type": "null"})),
        (false, json!({"$schema": 4, "type": "null"})),
        (true, json!({"$schema": four, "not": {"$schema": 4, "type": "null"}})),
        (false, json!({"$schema": four, "not": {"$schema": "draft-04"}})),
        (false, json!({"$schema": four.replace('4', "6"), "not": {"$schema": four}})),
        (false, json!({"$id": "a b", "type": "null"})),
        (false, json!({"$id": "#a", "type": "null"})),
        (false, json!({"items": {"$schema": four, "$ref": "#/items/not", "not": true}})),
        (false, json!({"$dynamicRef": "#a", "$defs": {"b": {"$dynamicAnchor": "a"}}})),
        (false, json!({"$schema": "http://json-schema.org/draft-03/schema#"})),
        (false, json!({"$id": "http://json-schema.org/draft-07/schema", "items": {"$ref": "#"}})),
    ];
    for (expected, schema) in &cases {
        assert_eq!(agrees(schema), *expected, "{schema}");
    }
}

#[test]
fn official_suite_schemas_are_read_as_through_the_registry() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/json-schema-test-suite/tests");
    if !folder.is_dir() {
        return;
    }
    let (mut plain, mut all) = (0, 0);
    for draft in ["draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"] {
        for entry in std::fs::read_dir(folder.join(draft)).into_iter().flatten().flatten() {
            let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
            let cases: Json = serde_json::from_str(&text).expect("a file of JSON");
            for case in cases.as_array().into_iter().flatten() {
                all += 1;
                plain += usize::from(agrees(&case["schema"]));
            }
        }
    }
    assert!(all > 300 && 2 * plain > all, "{plain} of {all} are plain");
}
