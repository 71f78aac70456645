//! Random graphs against a simple model.

use kortyx_runtime::{
    Workflow,
    workflow::{DefinitionError, END, Edge, When},
};
use proptest::prelude::*;

use crate::workflow;

const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// Every condition that an edge may have, none, and one that no edge has.
const CONDITIONS: [Option<&str>; 4] = [None, Some("x"), Some("y"), Some("z")];

/// From, to (5 is the end), when.
type Line = (usize, usize, When);

fn any_when() -> impl Strategy<Value = When> {
    prop_oneof![
        2 => Just(When::Always),
        4 => prop_oneof![Just("x"), Just("y")].prop_map(|condition| When::Condition(condition.into())),
        1 => Just(When::Otherwise),
    ]
}

/// Edges that reach every node from the first, and some more, without repetitions.
fn any_lines() -> impl Strategy<Value = Vec<Line>> {
    let reach = (any_when(), any_when(), any_when(), any_when(), 0..1_usize, 0..2_usize, 0..3_usize, 0..4_usize);
    let more = prop::collection::vec((0..5_usize, 0..6_usize, any_when()), 0..5);
    (reach, more).prop_map(|((w1, w2, w3, w4, f1, f2, f3, f4), more)| {
        let mut lines: Vec<Line> = vec![(f1, 1, w1), (f2, 2, w2), (f3, 3, w3), (f4, 4, w4)];
        for line in more {
            let repeats = |other: &Line| {
                let always = line.2 == When::Always || other.2 == When::Always;
                (other.0, other.1) == (line.0, line.1) && (always || other.2 == line.2)
            };
            if !lines.iter().any(repeats) {
                lines.push(line);
            }
        }
        lines
    })
}

fn build(lines: &[Line]) -> Result<Workflow, DefinitionError> {
    let mut builder = workflow(&NODES);
    for (from, to, when) in lines {
        let (from, to) = (NODES[*from], NODES.get(*to).copied().unwrap_or(END));
        builder = match when {
            When::Always => builder.edge(from, to),
            When::Condition(condition) => builder.edge_if(from, to, condition.clone()),
            When::Otherwise => builder.otherwise(from, to),
        };
    }
    builder.build()
}

/// The rule of DESIGN.md in words of its own: the lines that an output selects, or nothing when there is no route.
fn select(lines: &[Line], node: usize, condition: Option<&str>) -> Option<Vec<Line>> {
    let own: Vec<&Line> = lines.iter().filter(|line| line.0 == node).collect();
    let with = |when: &When| own.iter().filter(|line| &line.2 == when).map(|line| (*line).clone()).collect::<Vec<_>>();
    let mut matched = condition.map(|name| with(&When::Condition(name.into()))).unwrap_or_default();
    if matched.is_empty() && own.iter().any(|line| matches!(line.2, When::Condition(_))) {
        matched = with(&When::Otherwise);
    }
    let mut selected = with(&When::Always);
    selected.append(&mut matched);
    (!selected.is_empty() || own.is_empty()).then_some(selected)
}

fn is_parallel(lines: &[Line]) -> bool {
    let outputs = (0..5).flat_map(|node| CONDITIONS.map(|condition| (node, condition)));
    outputs.filter_map(|(node, condition)| select(lines, node, condition)).any(|selected| selected.len() > 1)
}

/// Removes nodes that nothing leads to until none is left: what stays is a cycle.
fn is_cyclic(lines: &[Line]) -> bool {
    let mut rest: Vec<usize> = (0..5).collect();
    loop {
        let has_incoming = |node: &usize| lines.iter().any(|line| line.1 == *node && rest.contains(&line.0));
        let next: Vec<usize> = rest.iter().copied().filter(has_incoming).collect();
        if next.len() == rest.len() {
            return !rest.is_empty();
        }
        rest = next;
    }
}

/// A line and an edge in comparable form.
type Plain = (String, String, When);

fn plain_line((from, to, when): &Line) -> Plain {
    (NODES[*from].to_owned(), NODES.get(*to).copied().unwrap_or(END).to_owned(), when.clone())
}

fn plain_edge(edge: &Edge) -> Plain {
    (edge.from.to_string(), edge.to.as_str().to_owned(), edge.when.clone())
}

proptest! {
    #[test]
    fn what_builds_routes_as_the_model_says(lines in any_lines()) {
        match build(&lines) {
            Ok(workflow) => {
                let definition = workflow.definition();
                prop_assert_eq!(definition.is_parallel(), is_parallel(&lines));
                prop_assert!(!(is_parallel(&lines) && is_cyclic(&lines)));
                for (number, name) in NODES.iter().enumerate() {
                    for condition in CONDITIONS {
                        let route = definition.route(name, condition).ok();
                        let mut edges: Option<Vec<Plain>> =
                            route.map(|route| route.into_iter().map(|ix| plain_edge(definition.edge(ix))).collect());
                        let mut expected: Option<Vec<Plain>> =
                            select(&lines, number, condition).map(|lines| lines.iter().map(plain_line).collect());
                        for edges in [&mut edges, &mut expected].into_iter().flatten() {
                            edges.sort();
                        }
                        prop_assert_eq!(edges, expected);
                    }
                }
            }
            Err(DefinitionError::GraphCycle { path, .. }) => {
                prop_assert!(is_parallel(&lines) && is_cyclic(&lines));
                prop_assert_eq!(path.first(), path.last());
                for pair in path.windows(2) {
                    let is_step = |line: &Line| NODES[line.0] == &*pair[0] && NODES.get(line.1) == Some(&&*pair[1]);
                    prop_assert!(lines.iter().any(is_step));
                }
            }
            Err(DefinitionError::OtherwiseAlone { .. }) => {
                let alone = |node: usize| {
                    let own = || lines.iter().filter(|line| line.0 == node);
                    own().any(|line| line.2 == When::Otherwise) && !own().any(|line| matches!(line.2, When::Condition(_)))
                };
                prop_assert!((0..5).any(alone));
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn the_order_of_declarations_changes_nothing(
        (lines, shuffled) in any_lines().prop_flat_map(|lines| (Just(lines.clone()), Just(lines).prop_shuffle()))
    ) {
        match (build(&lines), build(&shuffled)) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(one.definition().fingerprint(), other.definition().fingerprint());
                prop_assert!(one.definition().edges().eq(other.definition().edges()));
            }
            (Err(one), Err(other)) => prop_assert_eq!(one.code(), other.code()),
            _ => prop_assert!(false, "only one of them builds"),
        }
    }
}
