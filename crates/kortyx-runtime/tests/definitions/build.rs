//! What a builder accepts, and what it says when it does not.

use std::time::Duration;

use kortyx_protocol::RawJson;
use kortyx_runtime::{
    Workflow,
    workflow::{DefinitionError, END, NodeOptions, Retry, WorkflowBuilder},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{idle, workflow};

fn error(builder: WorkflowBuilder) -> (&'static str, String) {
    let error = builder.build().expect_err("a mistake");
    (error.code(), error.to_string())
}

#[test]
fn a_workflow_tells_what_was_declared() {
    let workflow = workflow(&["a", "b"])
        .version("3")
        .description("Does a, then b.")
        .edge("a", "b")
        .edge("b", END)
        .max_node_executions(7)
        .build()
        .unwrap();
    let definition = workflow.definition();
    assert_eq!((&**definition.id(), &**definition.version()), ("w", "3"));
    assert_eq!(definition.description(), Some("Does a, then b."));
    assert_eq!(&**definition.start(), "a");
    assert_eq!(definition.nodes().map(|node| &*node.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(definition.max_node_executions(), Some(7));
    assert!(definition.node("b").is_some() && definition.node("c").is_none());
    assert_eq!(definition.outgoing("a"), definition.incoming("b"));
    assert_eq!(definition.incoming("a"), []);
    assert_eq!(definition.outgoing("nowhere"), []);
}

#[test]
fn defaults_are_version_1_the_first_node_and_1000_executions() {
    let workflow = workflow(&["only"]).build().unwrap();
    let definition = workflow.definition();
    assert_eq!((&**definition.version(), &**definition.start()), ("1", "only"));
    assert_eq!(definition.max_node_executions(), Some(1000));
    assert!(!definition.is_parallel());
    let unlimited = crate::workflow(&["only"]).unlimited_node_executions().build().unwrap();
    assert_eq!(unlimited.definition().max_node_executions(), None);
}

#[test]
fn an_edge_number_that_was_kept_is_checked() {
    let workflow = workflow(&["a", "b"]).edge("a", "b").build().unwrap();
    let definition = workflow.definition();
    let ix = definition.outgoing("a")[0];
    assert_eq!(definition.edge_at(ix.get()), Some(ix));
    assert_eq!(definition.edge_at(1), None);
    assert_eq!(definition.edge_at(u32::MAX), None);
}

#[test]
fn names_that_break_a_rule_are_refused() {
    assert_eq!(error(Workflow::builder("")).0, "INVALID_NAME");
    assert_eq!(error(workflow(&["a\nb"])).0, "INVALID_NAME");
    assert_eq!(error(workflow(&["a"]).version(" ")).0, "INVALID_NAME");
    assert_eq!(error(workflow(&["a"]).edge_if("a", END, "")).0, "INVALID_NAME");
    let (_, message) = error(workflow(&[END]));
    assert_eq!(
        message,
        "node name `__end__` is not accepted: it starts with `$` or `__`, which are reserved: choose another first \
         character"
    );
}

#[test]
fn a_workflow_without_nodes_is_refused() {
    assert_eq!(error(workflow(&[])), ("NO_NODES", "workflow `w` has no nodes: add at least one".into()));
}

#[test]
fn two_nodes_of_one_name_are_refused() {
    assert_eq!(error(workflow(&["a", "b", "a"])).0, "DUPLICATE_NODE");
}

#[test]
fn an_edge_to_an_unknown_node_suggests_the_nearest_name() {
    let (code, message) = error(workflow(&["draft", "review"]).edge("draft", "reveiw"));
    assert_eq!(code, "UNKNOWN_NODE");
    assert_eq!(
        message,
        "edge `draft` → `reveiw` of workflow `w` names `reveiw`, which is not a node; did you mean `review`?"
    );
    assert!(error(workflow(&["a"]).edge("a", "end")).1.ends_with("did you mean `__end__`?"));
    assert!(error(workflow(&["a"]).edge("zzz", "a")).1.ends_with("add a node of that name or use one of `a`"));
    assert!(error(workflow(&["a"]).edge(END, "a")).1.contains("nothing follows the end"));
}

#[test]
fn a_start_that_is_not_a_node_is_refused() {
    let (code, message) = error(workflow(&["draft"]).start("darft"));
    assert_eq!(code, "UNKNOWN_START");
    assert!(message.ends_with("did you mean `draft`?"), "{message}");
}

#[test]
fn edges_that_repeat_each_other_are_refused() {
    for builder in [
        workflow(&["a", "b"]).edge("a", "b").edge("a", "b"),
        workflow(&["a", "b"]).edge_if("a", "b", "x").edge_if("a", "b", "x"),
        workflow(&["a", "b"]).edge("a", "b").edge_if("a", "b", "x"),
        workflow(&["a", "b"]).edge_if("a", "b", "x").otherwise("a", "b").edge("a", "b"),
    ] {
        assert_eq!(error(builder).0, "DUPLICATE_EDGE");
    }
    assert!(workflow(&["a", "b"]).edge_if("a", "b", "x").edge_if("a", "b", "y").otherwise("a", "b").build().is_ok());
}

#[test]
fn otherwise_needs_a_condition_beside_it() {
    let (code, message) = error(workflow(&["a", "b"]).otherwise("a", "b"));
    assert_eq!(code, "OTHERWISE_WITHOUT_CONDITION");
    assert!(message.starts_with("edge `a` → `b` otherwise of workflow `w`"), "{message}");
}

#[test]
fn a_node_that_no_path_reaches_is_refused() {
    let (code, message) = error(workflow(&["a", "b", "c"]).edge("a", "b").edge("c", "b"));
    assert_eq!(code, "UNREACHABLE_NODE");
    assert!(message.starts_with("node `c`"), "{message}");
}

#[test]
fn a_sequential_graph_may_loop() {
    let built = workflow(&["draft", "review"])
        .edge("draft", "review")
        .edge_if("review", END, "approve")
        .otherwise("review", "draft")
        .build()
        .unwrap();
    assert!(!built.definition().is_parallel());
    assert!(workflow(&["a"]).edge("a", "a").build().is_ok());
}

#[test]
fn a_graph_with_fan_out_must_be_acyclic() {
    let fan_out = workflow(&["split", "left", "right"]).edge("split", "left").edge("split", "right");
    assert!(fan_out.build().unwrap().definition().is_parallel());

    let looping = workflow(&["split", "left", "right"]).edge("split", "left").edge("split", "right");
    let error = looping.edge("right", "split").build().unwrap_err();
    let DefinitionError::GraphCycle { path, fork, .. } = &error else { panic!("{error}") };
    assert_eq!(path.iter().map(|node| &**node).collect::<Vec<_>>(), ["split", "right", "split"]);
    assert_eq!(&**fork, "split");
    assert_eq!(error.code(), "GRAPH_CYCLE");
    assert!(error.to_string().contains("`split` → `right` → `split`"), "{error}");
}

#[test]
fn too_many_nodes_and_edges_are_refused() {
    let names: Vec<String> = (0..1001).map(|number| format!("n{number}")).collect();
    let nodes = |count: usize| {
        let chain = names[..count].windows(2);
        let builder = names[..count].iter().fold(workflow(&[]), |builder, name| builder.node(name.as_str(), idle));
        chain.fold(builder, |builder, pair| builder.edge(pair[0].as_str(), pair[1].as_str()))
    };
    assert!(nodes(1000).build().is_ok());
    assert_eq!(error(nodes(1001)).0, "GRAPH_TOO_LARGE");

    let edges = |count: usize| {
        (0..count).fold(workflow(&["a"]), |builder, number| builder.edge_if("a", END, format!("c{number}")))
    };
    assert!(edges(10_000).build().is_ok());
    assert_eq!(error(edges(10_001)).0, "GRAPH_TOO_LARGE");
}

#[test]
fn options_out_of_range_are_refused() {
    let retrying = |retry| workflow(&[]).node_with("a", NodeOptions::new().retry(retry), idle);
    assert_eq!(error(retrying(Retry::attempts(0))).0, "INVALID_RETRY");
    assert_eq!(error(retrying(Retry::attempts(2).backoff(f64::NAN))).0, "INVALID_RETRY");
    assert_eq!(error(workflow(&["a"]).max_node_executions(0)).0, "INVALID_LIMIT");

    let built = retrying(Retry::attempts(2).delay(Duration::ZERO)).build().unwrap();
    let retry = built.definition().node("a").and_then(|node| node.options.retry).unwrap();
    assert_eq!((retry.attempts, retry.delay_before(2)), (2, Duration::ZERO));
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    amount: u32,
}

#[test]
fn typed_workflows_validate_input_and_output() {
    let workflow: Workflow<Order, String> = workflow(&["a"]).input::<Order>().output::<String>().build().unwrap();
    let definition = workflow.definition();
    assert_eq!(definition.validate_input(&RawJson::of(&Order { amount: 3 }).unwrap()), Ok(()));
    let issues = definition.validate_input(&RawJson::of(&json!({ "amount": -3 })).unwrap()).unwrap_err();
    assert_eq!(issues[0].path, "/amount");
    assert_eq!(definition.validate_output(&RawJson::of("done").unwrap()), Ok(()));
    assert!(definition.validate_output(&RawJson::null()).is_err());

    let erased: Workflow = workflow.erase();
    assert_eq!(erased.definition().input_schema(), definition.input_schema());
}

#[test]
fn untyped_workflows_take_any_value() {
    let workflow = workflow(&["a"]).build().unwrap();
    assert_eq!(workflow.definition().validate_input(&RawJson::null()), Ok(()));
    assert!(workflow.definition().output_schema().is_none());
}

#[test]
fn a_schema_that_is_none_is_refused() {
    let (code, message) = error(workflow(&["a"]).input_schema(json!({ "type": "objekt" })));
    assert_eq!(code, "INVALID_SCHEMA");
    assert!(message.starts_with("the input schema of workflow `w`"), "{message}");
}
