//! The official JSON Schema Test Suite: every schema against every instance, each read byte by
//! byte.

use std::path::{Path, PathBuf};

use formalm_core::LazyDfa;
use formalm_schema::{
    Document, FormatSet, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, SchemaAutomaton,
};
use serde_json::Value as Json;

fn suite() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/json-schema-test-suite");
    path.is_dir().then_some(path)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn read(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).expect("a readable file");
    serde_json::from_str(&text).expect("a file of JSON")
}

fn remotes(suite: &Path) -> Vec<(String, Document)> {
    let folder = suite.join("remotes");
    let all = files(&folder).into_iter();
    all.filter(|path| {
        !path.to_string_lossy().contains("/draft3/") && !path.to_string_lossy().contains("/v1/")
    })
    .map(|path| {
        let name = path.strip_prefix(&folder).expect("a path below").to_string_lossy();
        (format!("http://localhost:1234/{name}"), read(&path).into())
    })
    .collect()
}

/// Returns `true` if the instance is accepted, which requires that each of its bytes is viable.
fn accepts(machine: &SchemaAutomaton, instance: &Json) -> Result<bool, formalm_core::Error> {
    let text = instance.to_string();
    let read = machine.walk(machine.start(), text.as_bytes())?;
    Ok(read.is_ok_and(|state| machine.is_accepting(state)))
}

struct Tally {
    passed: usize,
    failed: Vec<String>,
}

fn run(suite: &Path, paths: &[PathBuf], options: JsonSchemaOptions) -> Tally {
    let resources = remotes(suite);
    let mut tally = Tally { passed: 0, failed: Vec::new() };
    for path in paths {
        for case in read(path).as_array().expect("a list of cases") {
            let options = JsonSchemaOptions { property_order: PropertyOrder::Any, ..options };
            let schema = &case["schema"];
            // Without resources most schemas are read without a registry of identifiers.
            let refers = schema.to_string().contains("://localhost:1234");
            let machine = SchemaAutomaton::new(
                &Document::from(schema.clone()),
                if refers { &resources } else { &[] },
                options,
                JsonSchemaLimits::default(),
            );
            for test in case["tests"].as_array().expect("a list of tests") {
                let expected = test["valid"] == Json::Bool(true);
                let verdict = match &machine {
                    Ok(machine) => {
                        accepts(machine, &test["data"]).map_err(|error| error.to_string())
                    }
                    Err(error) if error.to_string().contains("has no instance") => Ok(false),
                    Err(error) => Err(error.to_string()),
                };
                if verdict == Ok(expected) {
                    tally.passed += 1;
                } else {
                    tally.failed.push(format!(
                        "{}: {}: {}: {verdict:?}",
                        path.file_name().unwrap_or_default().to_string_lossy(),
                        case["description"],
                        test["description"]
                    ));
                }
            }
        }
    }
    tally
}

#[test]
fn required_tests_pass() {
    let Some(suite) = suite() else { return };
    let all = files(&suite.join("tests/draft2020-12"));
    let required: Vec<PathBuf> =
        all.into_iter().filter(|path| !path.to_string_lossy().contains("/optional/")).collect();
    let tally = run(
        &suite,
        &required,
        JsonSchemaOptions { formats: FormatSet::NONE, ..JsonSchemaOptions::default() },
    );
    assert!(tally.passed > 1_000, "the suite is there");
    assert_eq!(tally.failed, Vec::<String>::new(), "{} are right", tally.passed);
}

/// Every enforced format against the optional format tests of the suite.
#[test]
fn optional_format_tests_pass() {
    let Some(suite) = suite() else { return };
    let all = files(&suite.join("tests/draft2020-12/optional/format"));
    let tally = run(&suite, &all, JsonSchemaOptions::default());
    assert!(tally.passed > 700, "the suite is there");
    assert_eq!(tally.failed, Vec::<String>::new(), "{} are right", tally.passed);
}
