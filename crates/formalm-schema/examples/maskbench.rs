//! Counts the verdicts on schemas and instances of MaskBench: `cargo run --release --example
//! maskbench -- FILE`, with a file of JSON lines.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::time::Instant;

use formalm_core::{Error, LazyDfa};
use formalm_schema::{
    Document, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, SchemaAutomaton,
};
use serde_json::Value as Json;

fn verdict(case: &Json, order: PropertyOrder) -> (String, String) {
    let options = JsonSchemaOptions { property_order: order, ..JsonSchemaOptions::default() };
    let machine = match SchemaAutomaton::new(
        &Document::from(case["schema"].clone()),
        &[],
        options,
        JsonSchemaLimits::default(),
    ) {
        Ok(machine) => machine,
        Err(error @ Error::Limit { .. }) => return ("limit".into(), error.to_string()),
        Err(error) => return ("refused".into(), error.to_string()),
    };
    for test in case["tests"].as_array().into_iter().flatten() {
        let text = test["data"].to_string();
        let expected = test["valid"] == Json::Bool(true);
        match machine.walk(machine.start(), text.as_bytes()) {
            Err(error) => {
                let mut state = machine.start();
                let mut at = 0;
                while let Ok(Some(next)) = machine.step(state, text.as_bytes()[at]) {
                    (state, at) = (next, at + 1);
                }
                let read = String::from_utf8_lossy(&text.as_bytes()[..=at]).into_owned();
                return ("limit at an instance".into(), format!("{error}, reading {read}"));
            }
            Ok(read) => {
                let good = read.err();
                let accepted = read.is_ok_and(|state| machine.is_accepting(state));
                if accepted != expected {
                    let name = if expected { "valid refused" } else { "invalid accepted" };
                    let at = good.unwrap_or(text.len());
                    let shown: String = text.chars().take(300).collect();
                    return (name.into(), format!("at {at}: {shown}"));
                }
            }
        }
    }
    ("passing".into(), String::new())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).ok_or("which file?")?;
    let order = if arguments.iter().any(|one| one == "schema") {
        PropertyOrder::Schema
    } else {
        PropertyOrder::Any
    };
    let mut out = std::io::stdout();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in BufReader::new(std::fs::File::open(path)?).lines() {
        let case: Json = serde_json::from_str(&line?)?;
        let start = Instant::now();
        let (name, detail) = verdict(&case, order);
        let seconds = start.elapsed().as_secs_f64();
        if name != "passing" || seconds > 1.0 {
            writeln!(out, "{seconds:7.2} {name}: {}: {detail}", case["name"])?;
        }
        *counts.entry(name).or_default() += 1;
    }
    writeln!(out, "{counts:?}")?;
    Ok(())
}
