//! Properties of the reader and the solver on random schemas.

use jsonschema::validator_for;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::formula::{FALSE, TRUE};
use crate::json::document::Document;
use crate::machine::frame::{ContainerState, DONE, Frame, Obligation, ReaderPosition};
use crate::machine::{NO_RECORD, SchemaAutomaton};
use crate::options::{FormatSet, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder};
use crate::schema_nodes::NodeId;
use crate::schema_reader;
use crate::solver::context::SolverContext;

fn options() -> JsonSchemaOptions {
    let formats = FormatSet::NONE;
    JsonSchemaOptions {
        property_order: PropertyOrder::Any,
        formats,
        allow_approximate: true,
        ..JsonSchemaOptions::default()
    }
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Json::from),
        (-3..8i32).prop_map(Json::from),
        Just(json!(2.5)),
        prop_oneof![Just("a"), Just("ab"), Just("b"), Just("")].prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = prop_oneof![Just("a"), Just("b"), Just("ab")].prop_map(str::to_owned);
        let members = proptest::collection::btree_map(name, inner.clone(), 0..4);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(Json::from),
            members.prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

/// Schemas over all types; recursive ones contain `{"$ref": "#"}`.
fn schema(refers: bool) -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({"type": "integer", "minimum": 1})),
        Just(json!({"type": ["string", "null"], "maxLength": 1})),
        Just(json!({"type": "object", "required": ["a"]})),
        Just(json!({"type": "array", "minItems": 1})),
        Just(json!({"maximum": 2})),
        Just(json!({"pattern": "b"})),
        value().prop_map(|one| json!({"const": one})),
        proptest::collection::vec(value(), 1..4).prop_map(|all| json!({"enum": all})),
    ];
    leaf.prop_recursive(4, 20, 3, move |inner| {
        let some = proptest::collection::vec(inner.clone(), 1..4);
        let parent = if refers {
            prop_oneof![2 => inner.clone(), 1 => Just(json!({"$ref": "#"}))].boxed()
        } else {
            inner.clone().boxed()
        };
        prop_oneof![
            some.clone().prop_map(|all| json!({"anyOf": all})),
            some.clone().prop_map(|all| json!({"oneOf": all})),
            some.prop_map(|all| json!({"allOf": all})),
            inner.clone().prop_map(|one| json!({"not": one})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(i, t, e)| json!({"if": i, "then": t, "else": e})),
            (parent.clone(), any::<bool>()).prop_map(|(one, required)| {
                let required: &[&str] = if required { &["a"] } else { &[] };
                json!({"type": "object", "properties": {"a": one}, "required": required})
            }),
            (parent.clone(), inner.clone()).prop_map(|(one, other)| {
                json!({"additionalProperties": one, "unevaluatedProperties": other})
            }),
            (parent.clone(), 0..3u8).prop_map(|(one, min)| json!({"items": one, "minItems": min})),
            (parent, 0..3u8, 1..3u8).prop_map(|(one, min, max)| {
                json!({"contains": one, "minContains": min, "maxContains": max})
            }),
        ]
    })
}

/// Returns the verdicts that a value reports to its container, one for each node.
fn verdicts(machine: &SchemaAutomaton, nodes: &[NodeId], text: &str) -> Option<Vec<bool>> {
    let tables = &mut machine.lock();
    let mut formulas = vec![TRUE];
    for &node in nodes {
        formulas.push(tables.reader.values.core.base.formulas.child(node));
    }
    let container =
        Obligation { formulas: formulas.clone().into(), queries: [].into(), goal: TRUE };
    let child = Obligation { formulas: formulas.into(), queries: nodes.into(), goal: TRUE };
    let (obligation, child) = (
        tables.reader.values.residuals.intern(container),
        tables.reader.values.residuals.intern(child),
    );
    let mode = ContainerState::InValue;
    let parent = tables.reader.values.frames.intern(Frame::Array {
        obligation,
        mode,
        mark: 0,
        from: 0,
        parent: DONE,
    });
    let frame = Frame::Value { obligation: child, mark: 0, parent };
    let mut position = ReaderPosition { frame, record: NO_RECORD };
    for &byte in text.as_bytes().iter().chain(b" ") {
        position = tables.reader.read_byte(position, byte).ok()??;
    }
    let Frame::Array { obligation, .. } = position.frame else { return None };
    let required = tables.reader.values.residuals.get(obligation);
    let verdict = |id| match id {
        TRUE => Some(true),
        FALSE => Some(false),
        _ => None,
    };
    required.formulas[1..].iter().map(|&id| verdict(id)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn child_verdicts_agree_with_a_validator(
        parts in proptest::collection::vec(schema(false), 1..4),
        values in proptest::collection::vec(value(), 1..4),
    ) {
        let all: Vec<Json> = [json!(true)].into_iter().chain(parts.clone()).collect();
        let document = Document::from(json!({"anyOf": all}));
        let made = SchemaAutomaton::new(&document, &[], options(), JsonSchemaLimits::default());
        let Ok(machine) = made else { return Ok(()) };
        let mut queries: Vec<(NodeId, &Json)> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let position = format!("#/anyOf/{}", at + 1);
            let tables = machine.lock();
            let schema = &tables.reader.values.core.base.schema;
            let mut nodes = (0..schema.nodes.len() as u32).map(NodeId);
            let node = nodes.find(|&id| {
                schema.json_pointer(id) == position && !schema.node(id).rules.is_empty()
            });
            queries.extend(node.map(|node| (node, part)));
        }
        queries.sort_by_key(|one| one.0);
        queries.dedup_by_key(|one| one.0);
        let nodes: Vec<NodeId> = queries.iter().map(|one| one.0).collect();
        for value in &values {
            let expected: Vec<bool> = queries
                .iter()
                .map(|(_, part)| validator_for(part).is_ok_and(|part| part.is_valid(value)))
                .collect();
            let told = verdicts(&machine, &nodes, &value.to_string());
            prop_assert_eq!(told, Some(expected), "{:?} {}", parts, value);
        }
    }

    #[test]
    fn solver_answers_do_not_depend_on_the_cache(schema in schema(true)) {
        let document = Document::from(schema.clone());
        let Ok(read) = schema_reader::read_schema(&document, &[], options()) else { return Ok(()) };
        let count = read.nodes.len() as u32;
        let mut cached = SolverContext::new(read, options(), JsonSchemaLimits::default());
        for node in (0..count).map(NodeId) {
            let Ok(read) = schema_reader::read_schema(&document, &[], options()) else { return Ok(()) };
            let mut uncached = SolverContext::new(read, options(), JsonSchemaLimits::default());
            uncached.answers.forgets = true;
            let (one, other) = (cached.base.child(node), uncached.base.child(node));
            cached.base.reset_steps();
            let found = cached.has_value(one);
            if found.is_err() {
                cached.answers.abandon();
            }
            // Without its cache the solver may exceed its limit, which is no answer.
            if let (Ok(one), Ok(other)) = (found, uncached.has_value(other)) {
                prop_assert_eq!(one, other, "{} {:?}", schema, node);
            }
        }
    }
}
