//! The difference of two schemas: instances of one that are not instances of the other.

use std::sync::Arc;

use formalm_core::Error;

use crate::json::document::Document;
use crate::machine::{SchemaAutomaton, SchemaSource};
use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
use crate::schema_nodes::{KeywordRule, ResolvedSchema, SchemaNode, SchemaNote};
use crate::schema_reader;
use crate::schema_reader::read_additional;

/// A schema document, the documents that it may refer to (by URI), and the options to read it with.
pub type SchemaDescription<'a> = (&'a Document, &'a [(String, Document)], JsonSchemaOptions);

/// An owned [`SchemaDescription`].
pub(crate) type OwnedDescription = (Document, Arc<[(String, Document)]>, JsonSchemaOptions);

impl SchemaAutomaton {
    /// Returns the automaton of the instances of `left` that are not instances of `right`, spelled
    /// according to the options of `left`; `None` if there are none. Each schema is read in
    /// isolation, so that equal identifiers keep their own meaning. The notes say where the result
    /// is not exact.
    ///
    /// # Errors
    ///
    /// Those of [`SchemaAutomaton::new`].
    pub fn difference(
        left: SchemaDescription<'_>,
        right: SchemaDescription<'_>,
        limits: JsonSchemaLimits,
    ) -> Result<(Option<SchemaAutomaton>, Vec<SchemaNote>), Error> {
        let side = |(schema, resources, options): SchemaDescription<'_>| {
            (schema.clone(), resources.into(), options)
        };
        let source = SchemaSource::Difference(Box::new([side(left), side(right)]));
        let options = JsonSchemaOptions { allow_approximate: true, ..left.2 };
        let (made, notes) = SchemaAutomaton::from_source(source, options, limits)?;
        Ok((made, notes.to_vec()))
    }
}

/// Reads two schemas into one node graph whose root is "the first and not the second".
pub(crate) fn read(sides: &[OwnedDescription; 2]) -> Result<ResolvedSchema, Error> {
    let [(left, resources, options), (right, others, other_options)] = sides;
    let mut schema = schema_reader::read_schema(left, resources, *options)?;
    let wanted = schema.root;
    schema = read_additional(schema, right, others, *other_options)?;
    let others = schema.root.map(KeywordRule::Not).into_iter().collect();
    let not = schema.add_node(SchemaNode::synthetic(others));
    let both = wanted.into_iter().chain([not]).collect();
    let root = schema.add_node(SchemaNode::synthetic(vec![KeywordRule::AllOf(both)]));
    schema.root = Some(root);
    Ok(schema)
}
