//! Loading from text: what is read, and where mistakes are said to be.

use std::{error::Error, path::PathBuf, time::Duration};

use kortyx_protocol::RawJson;
use kortyx_runtime::{
    Allowances, CHILD_CALLS, TOKENS, Workflow,
    workflow::{END, LoadError, NodeLibrary, NodeOptions, Retry},
};

use crate::{idle, targets};

fn library() -> NodeLibrary {
    NodeLibrary::new().register("draft", idle).register("choose", idle)
}

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "definitions", name].iter().collect()
}

/// Loads YAML that has a mistake: its code, its place and its message after the place.
fn mistake(text: &str) -> (&'static str, (u64, u64), String) {
    describe(&Workflow::from_yaml(text, &library()).expect_err("a mistake"))
}

fn describe(error: &LoadError) -> (&'static str, (u64, u64), String) {
    let place = (error.line().expect("a line"), error.column().expect("a column"));
    let message = error.to_string();
    let message = message.strip_prefix(&format!("<text>:{}:{}: ", place.0, place.1)).expect("file, line and column");
    (error.code(), place, message.to_owned())
}

#[test]
fn a_yaml_file_is_read_with_all_its_keys() {
    let workflow = Workflow::from_file(fixture("document.yaml"), &library()).unwrap();
    let definition = workflow.definition();
    assert_eq!((&**definition.id(), &**definition.version()), ("document", "2.1"));
    assert_eq!(definition.description(), Some("Drafts, reviews and publishes.\n"));
    assert_eq!((&**definition.start(), definition.max_node_executions()), ("draft", Some(50)));
    assert_eq!(*definition.limits(), Allowances::new().limit(CHILD_CALLS, 7).unlimited(TOKENS));
    let retry = Retry::attempts(3).delay(Duration::from_millis(200)).backoff(1.5).max_delay(Duration::from_secs(1));
    assert_eq!(definition.node("draft").and_then(|node| node.options.retry), Some(retry));
    assert_eq!(definition.node("review").and_then(|node| node.options.retry), None);
    assert_eq!(targets(definition, "draft", None), ["review"]);
    assert_eq!(targets(definition, "review", Some("approve")), [END]);
    assert_eq!(targets(definition, "review", None), ["draft"]);
    let issues = definition.validate_input(&RawJson::parse("{}").unwrap()).unwrap_err();
    assert_eq!(issues.len(), 1);
    assert!(definition.validate_output(&RawJson::null()).is_ok());
}

#[test]
fn json_describes_the_same_workflow_as_yaml() {
    let yaml = Workflow::from_file(fixture("document.yaml"), &library()).unwrap();
    let json = Workflow::from_file(fixture("document.json"), &library()).unwrap();
    assert_eq!(json.definition().fingerprint(), yaml.definition().fingerprint());
}

#[test]
fn a_version_that_looks_like_a_number_keeps_its_text() {
    let version = |text: &str| {
        let text = format!("id: x\nversion: {text}\nnodes: [{{ id: draft }}]\n");
        Workflow::from_yaml(&text, &library()).unwrap().definition().version().to_string()
    };
    assert_eq!(version("1"), "1");
    assert_eq!(version("1.10"), "1.10");
    assert_eq!(version("2026-01-31"), "2026-01-31");
}

#[test]
fn a_retry_in_the_text_goes_before_the_one_of_the_library() {
    let library = NodeLibrary::new().register_with("draft", NodeOptions::new().retry(Retry::attempts(9)), idle);
    let attempts = |node: &str| {
        let text = format!("id: x\nversion: 1\nnodes: [{node}]\n");
        let workflow = Workflow::from_yaml(&text, &library).unwrap();
        workflow.definition().node("draft").and_then(|node| node.options.retry).map(|retry| retry.attempts)
    };
    assert_eq!(attempts("{ id: draft }"), Some(9));
    assert_eq!(attempts("{ id: draft, retry: { attempts: 2 } }"), Some(2));
}

#[test]
fn an_unknown_function_is_shown_where_it_is_used_with_the_nearest_name() {
    let (code, place, message) = mistake("id: x\nversion: 1\nnodes:\n  - id: draft\n  - id: review\n    use: chose\n");
    assert_eq!((code, place), ("UNKNOWN_FUNCTION", (6, 10)));
    assert_eq!(message, "no node function `chose` is in the library; did you mean `choose`?");

    let (_, place, message) = mistake("id: x\nversion: 1\nnodes:\n  - id: publish\n");
    assert_eq!(place, (4, 9));
    assert!(message.ends_with("register it with `NodeLibrary::register` or use one of `choose`, `draft`"), "{message}");
}

#[test]
fn an_unknown_edge_target_is_shown_at_its_line() {
    let head = "id: x\nversion: 1\nnodes:\n  - id: draft\nedges:\n";
    let (code, place, message) = mistake(&format!(
        "{head}  - {{ from: draft, to: draft, when: again }}\n  - {{ from: draft, to: drat, when: on }}\n"
    ));
    assert_eq!((code, place), ("UNKNOWN_NODE", (7, 24)));
    assert!(message.ends_with("did you mean `draft`?"), "{message}");

    let (_, place, _) = mistake(&format!("{head}  - to: draft\n\n    from: nobody\n"));
    assert_eq!(place, (8, 11));
}

#[test]
fn mistakes_in_the_graph_are_shown_where_they_are_made() {
    let nodes = "id: x\nversion: 1\nnodes:\n  - { id: a, use: draft }\n  - { id: b, use: draft }\n";
    let cases: &[(&str, &str, (u64, u64))] = &[
        ("edges: [{ from: a, to: b },\n  { from: a, to: b }]", "DUPLICATE_EDGE", (7, 3)),
        ("edges:\n  - from: a\n    to: b\n    otherwise: true", "OTHERWISE_WITHOUT_CONDITION", (9, 16)),
        ("edges:\n  - from: a\n    to: a\n    when: ''", "INVALID_NAME", (9, 11)),
        ("edges:\n  - { from: a, to: __end__ }", "UNREACHABLE_NODE", (5, 11)),
        ("edges:\n  - { from: a, to: b }\n  - { from: a, to: a }", "GRAPH_CYCLE", (8, 5)),
        ("edges:\n  - { from: a, to: b, when: x, otherwise: true }", "CONDITION_AND_OTHERWISE", (7, 43)),
        ("start: c", "UNKNOWN_START", (6, 8)),
        ("max_node_executions: 0", "INVALID_LIMIT", (6, 22)),
        ("edges: [{ from: a, to: b }]\noutput:\n  type: objekt", "INVALID_SCHEMA", (8, 3)),
    ];
    for (rest, expected, at) in cases {
        let (code, place, message) = mistake(&format!("{nodes}{rest}\n"));
        assert_eq!((code, place), (*expected, *at), "{rest}\n{message}");
    }
}

#[test]
fn mistakes_in_names_and_nodes_are_shown_where_they_are_made() {
    let cases: &[(&str, &str, (u64, u64))] = &[
        ("id: $x\nversion: 1\nnodes: [{ id: draft }]", "INVALID_NAME", (1, 5)),
        ("id: x\nversion: ''\nnodes: [{ id: draft }]", "INVALID_NAME", (2, 10)),
        ("id: x\nversion: 1\nnodes:\n  - id: __n\n    use: draft", "INVALID_NAME", (4, 9)),
        ("id: x\nversion: 1\nnodes:\n  - id: draft\n  - id: draft", "DUPLICATE_NODE", (5, 9)),
        ("id: x\nversion: 1\nnodes: []", "NO_NODES", (3, 8)),
        ("id: x\nversion: 1\nnodes:\n  - id: draft\n    retry:\n      attempts: 0", "INVALID_RETRY", (6, 7)),
    ];
    for (text, expected, at) in cases {
        let (code, place, message) = mistake(text);
        assert_eq!((code, place), (*expected, *at), "{text}\n{message}");
    }
}

#[test]
fn texts_of_another_form_are_refused_at_the_line_with_what_to_write() {
    let cases: &[(&str, (u64, u64), &str)] = &[
        (
            "id: x\nversion: 1\nnodes:\n  - id: draft\nedge: []",
            (5, 1),
            "the key `edge` is unknown here; did you mean `edges`?",
        ),
        (
            "id: x\nversion: 1\nnodes:\n  - { id: draft, colour: red }",
            (4, 18),
            "the key `colour` is unknown here; remove it or use one of `id`, `use`, `retry`",
        ),
        ("id: x\nid: y", (2, 1), "the key `id` is here twice: remove one of them"),
        ("id: x\nversion: [1]\nnodes: []", (2, 10), "the value has the wrong form: write a text"),
        ("id: x\nversion: 1\nnodes: {}", (3, 8), "the value has the wrong form: write a list"),
        (
            "id: x\nversion: 1\nnodes:\n  - draft",
            (4, 5),
            "the value has the wrong form: write a mapping of keys to values",
        ),
        (
            "id: x\nversion: 1\nmax_node_executions: -1",
            (3, 22),
            "the value has the wrong type: write a whole number from 0 to 4294967295",
        ),
        ("id:\nversion: 1\nnodes: []", (1, 3), "the value is missing: write a text"),
        ("id: x\n version: 1", (2, 9), "mapping values are not allowed in this context"),
        ("id: \"x\nversion: 1", (1, 5), "unclosed quote"),
        ("", (1, 1), "the text ends too early or is empty: write the keys `id`, `version` and `nodes`"),
        (
            "id: x\nversion: 1\nnodes: [{ id: draft }]\n---\nid: y",
            (5, 1),
            "a second document begins: keep one workflow per text, without `---` between",
        ),
    ];
    for (text, at, expected) in cases {
        assert_eq!(mistake(text), ("INVALID_TEXT", *at, (*expected).to_owned()), "{text}");
    }
    assert_eq!(mistake("id: x\nversion: 1").2, "the key `nodes` is missing: add it");
}

#[test]
fn json_is_read_strictly_and_its_mistakes_have_places_too() {
    let mistake = |text: &str| describe(&Workflow::from_json(text, &library()).expect_err("a mistake"));
    assert_eq!(mistake("{\n\t\"id\": \"x\",\n}").1, (3, 1));
    assert_eq!(mistake("id: x").0, "INVALID_TEXT");
    assert_eq!(mistake("{\"id\": \"x\"} # comment").1, (1, 13));
    let (code, place, _) =
        mistake("{\n\t\"id\": \"\\ud83d\\ude00\",\n\t\"version\": \"1\",\n\t\"nodes\": [{ \"id\": \"drft\" }]\n}");
    assert_eq!((code, place), ("UNKNOWN_FUNCTION", (4, 20)));
}

#[test]
fn files_that_cannot_be_read_say_so() {
    let missing = Workflow::from_file("no/such.yaml", &library()).unwrap_err();
    assert_eq!((missing.code(), missing.file(), missing.line()), ("FILE_UNREADABLE", "no/such.yaml", None));
    assert!(missing.source().is_some());
    let unknown = Workflow::from_file("workflow.toml", &library()).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "workflow.toml: the format of the file is unknown: name it `.yaml`, `.yml` or `.json`"
    );
}

#[test]
fn hostile_texts_are_refused_without_being_unfolded() {
    let deep = "[".repeat(100_000);
    assert!(Workflow::from_yaml(&deep, &library()).is_err());
    assert!(Workflow::from_json(&deep, &library()).is_err());

    let level = |level: usize| {
        let inner = format!("*a{}", level - 1);
        format!("  a{level}: &a{level} [{inner}, {inner}, {inner}, {inner}]\n")
    };
    let head = "id: x\nversion: 1\nnodes: [{ id: draft }]\ninput:\n  a0: &a0 [ha, ha]\n".to_owned();
    let laughs = std::iter::once(head).chain((1..40).map(level)).collect::<String>();
    let error = Workflow::from_yaml(&laughs, &library()).unwrap_err();
    assert_eq!(error.code(), "INVALID_TEXT");
}
