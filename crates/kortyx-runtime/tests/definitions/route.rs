//! Which edges an output selects.

use kortyx_runtime::workflow::END;

use crate::{targets, workflow};

#[test]
fn a_condition_selects_its_edges_and_otherwise_the_rest() {
    let workflow = workflow(&["a", "b", "c"])
        .edge_if("a", "b", "yes")
        .edge_if("a", END, "stop")
        .otherwise("a", "c")
        .build()
        .unwrap();
    let definition = workflow.definition();
    assert_eq!(targets(definition, "a", Some("yes")), ["b"]);
    assert_eq!(targets(definition, "a", Some("stop")), [END]);
    assert_eq!(targets(definition, "a", Some("YES")), ["c"]);
    assert_eq!(targets(definition, "a", None), ["c"]);
}

#[test]
fn unconditional_edges_are_always_selected() {
    let workflow = workflow(&["a", "always", "x", "rest"])
        .edge("a", "always")
        .edge_if("a", "x", "x")
        .otherwise("a", "rest")
        .build()
        .unwrap();
    let definition = workflow.definition();
    assert!(definition.is_parallel());
    assert_eq!(targets(definition, "a", Some("x")), ["always", "x"]);
    assert_eq!(targets(definition, "a", Some("y")), ["always", "rest"]);
    assert_eq!(targets(definition, "a", None), ["always", "rest"]);
}

#[test]
fn a_node_without_outgoing_edges_ends_whatever_its_condition() {
    let workflow = workflow(&["a", "b"]).edge("a", "b").build().unwrap();
    assert_eq!(workflow.definition().route("b", Some("anything")), Ok(vec![]));
    assert_eq!(targets(workflow.definition(), "a", Some("anything")), ["b"]);
}

#[test]
fn an_output_that_selects_nothing_is_an_error_that_names_the_conditions() {
    let workflow =
        workflow(&["review"]).edge_if("review", END, "approve").edge_if("review", "review", "revise").build().unwrap();
    let definition = workflow.definition();
    assert_eq!(
        definition.route("review", Some("maybe")).unwrap_err().to_string(),
        "node `review` of workflow `w` ended with the condition `maybe`, its edges handle `approve`, `revise`: add an \
         edge for `maybe` or an `otherwise` edge"
    );
    let error = definition.route("review", None).unwrap_err();
    assert_eq!(error.known.len(), 2);
    assert!(error.to_string().contains("without a condition"), "{error}");
}

#[test]
fn a_node_that_is_unknown_has_no_route() {
    let workflow = workflow(&["a"]).build().unwrap();
    let error = workflow.definition().route("b", None).unwrap_err();
    assert_eq!(error.to_string(), "workflow `w` has no node `b`");
}
