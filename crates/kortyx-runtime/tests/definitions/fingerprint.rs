//! What changes a fingerprint, and what does not.

use kortyx_runtime::workflow::{END, NodeOptions, Retry, WorkflowBuilder};
use serde_json::json;

use crate::{idle, workflow};

fn review() -> WorkflowBuilder {
    workflow(&["draft", "review"])
        .edge("draft", "review")
        .edge_if("review", END, "approve")
        .otherwise("review", "draft")
}

fn fingerprint(builder: WorkflowBuilder) -> String {
    builder.build().unwrap().definition().fingerprint().to_owned()
}

#[test]
fn it_is_the_same_in_every_release() {
    // A change of this value parks every paused run of every user: see `FORMAT` in fingerprint.rs.
    assert_eq!(fingerprint(review()), "4fc84ab8acbc9e549bb85b1f1439973297d6ec59bf036083eb26089746e879c6");
}

#[test]
fn the_order_of_declarations_does_not_matter() {
    let other = workflow(&["review", "draft"])
        .start("draft")
        .otherwise("review", "draft")
        .edge_if("review", END, "approve")
        .edge("draft", "review");
    let (one, other) = (review().build().unwrap(), other.build().unwrap());
    assert_eq!(one.definition().fingerprint(), other.definition().fingerprint());
    assert!(one.definition().edges().eq(other.definition().edges()), "edges have the same numbers");
}

#[test]
fn what_does_not_decide_the_way_does_not_matter() {
    let same = workflow(&["draft"])
        .node_with("review", NodeOptions::new().retry(Retry::attempts(3)), idle)
        .description("Other words.")
        .max_node_executions(5)
        .input_schema(json!({ "type": "object" }))
        .edge("draft", "review")
        .edge_if("review", END, "approve")
        .otherwise("review", "draft");
    assert_eq!(fingerprint(same), fingerprint(review()));
}

#[test]
fn every_part_of_the_graph_matters() {
    let draft = || workflow(&["draft", "review"]).edge("draft", "review");
    let mut all = vec![
        fingerprint(review()),
        fingerprint(review().version("2")),
        fingerprint(review().start("review")),
        fingerprint(review().node("more", idle).edge_if("review", "more", "more")),
        fingerprint(draft()),
        fingerprint(draft().edge("review", END)),
        fingerprint(draft().edge_if("review", END, "accept").otherwise("review", "draft")),
        fingerprint(draft().edge_if("review", END, "approve").edge_if("review", "draft", "otherwise")),
        fingerprint(draft().edge_if("review", "draft", "approve").otherwise("review", END)),
    ];
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(all.iter().all(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit())));
}
