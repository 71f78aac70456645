//! What can be said about a graph before it runs: reachability, cycles, fan-out.

use std::collections::HashMap;

use super::{Edge, When};

/// A directed graph of numbered nodes.
pub(super) struct Graph {
    outgoing: Vec<Vec<Arrow>>,
}

#[derive(Clone, Copy)]
struct Arrow {
    target: usize,
    edge: usize,
}

/// A closed path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// The nodes in order, each once.
    pub(super) nodes: Vec<usize>,
    /// The number of the edge from the last node back to the first.
    pub(super) closing_edge: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

impl Graph {
    pub(super) fn new(nodes: usize) -> Self {
        Self { outgoing: vec![Vec::new(); nodes] }
    }

    pub(super) fn connect(&mut self, from: usize, target: usize, edge: usize) {
        if let Some(arrows) = self.outgoing.get_mut(from) {
            arrows.push(Arrow { target, edge });
        }
    }

    /// The first node that no path from `start` leads to.
    pub(super) fn unreachable_from(&self, start: usize) -> Option<usize> {
        let mut reached = vec![false; self.outgoing.len()];
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            let Some(seen) = reached.get_mut(node) else { continue };
            if !std::mem::replace(seen, true) {
                open.extend(self.arrows(node).iter().map(|arrow| arrow.target));
            }
        }
        reached.iter().position(|seen| !seen)
    }

    /// A cycle, if there is one. Depth first, without recursion: a graph may be as deep as it has nodes.
    pub(super) fn cycle(&self) -> Option<Cycle> {
        let mut marks = vec![Mark::New; self.outgoing.len()];
        (0..self.outgoing.len()).find_map(|root| self.cycle_from(root, &mut marks))
    }

    fn cycle_from(&self, root: usize, marks: &mut [Mark]) -> Option<Cycle> {
        let mut path: Vec<(usize, usize)> = Vec::new();
        if enter(root, marks) {
            path.push((root, 0));
        }
        while let Some((node, next)) = path.last_mut() {
            let arrow = self.arrows(*node).get(*next).copied();
            *next += 1;
            let Some(Arrow { target, edge }) = arrow else {
                if let Some(mark) = marks.get_mut(*node) {
                    *mark = Mark::Done;
                }
                path.pop();
                continue;
            };
            if marks.get(target) == Some(&Mark::Open) {
                let nodes = path.iter().map(|(node, _)| *node).skip_while(|node| *node != target).collect();
                return Some(Cycle { nodes, closing_edge: edge });
            }
            if enter(target, marks) {
                path.push((target, 0));
            }
        }
        None
    }

    fn arrows(&self, node: usize) -> &[Arrow] {
        self.outgoing.get(node).map_or(&[], Vec::as_slice)
    }
}

/// Marks a new node as open; says whether it was new.
fn enter(node: usize, marks: &mut [Mark]) -> bool {
    match marks.get_mut(node) {
        Some(mark @ Mark::New) => {
            *mark = Mark::Open;
            true
        }
        _ => false,
    }
}

/// Whether one output can select two of the edges of a node.
pub(super) fn forks<'a>(outgoing: impl IntoIterator<Item = &'a Edge>) -> bool {
    let (mut always, mut otherwise) = (0_usize, 0_usize);
    let mut conditions: HashMap<&str, usize> = HashMap::new();
    for edge in outgoing {
        match &edge.when {
            When::Always => always += 1,
            When::Otherwise => otherwise += 1,
            When::Condition(condition) => *conditions.entry(condition).or_default() += 1,
        }
    }
    let selective = conditions.into_values().max().unwrap_or_default().max(otherwise);
    always + selective >= 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workflow::Target;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::new(nodes);
        for (edge, (from, to)) in edges.iter().enumerate() {
            graph.connect(*from, *to, edge);
        }
        graph
    }

    fn edge(when: When) -> Edge {
        Edge { from: "a".into(), to: Target::End, when }
    }

    fn when(condition: &str) -> Edge {
        edge(When::Condition(condition.into()))
    }

    #[test]
    fn a_cycle_is_found_behind_a_path_that_leads_to_it() {
        let cycle = graph(4, &[(0, 1), (1, 2), (2, 3), (3, 1)]).cycle();
        assert_eq!(cycle, Some(Cycle { nodes: vec![1, 2, 3], closing_edge: 3 }));
    }

    #[test]
    fn a_node_that_leads_to_itself_is_a_cycle() {
        assert_eq!(graph(1, &[(0, 0)]).cycle(), Some(Cycle { nodes: vec![0], closing_edge: 0 }));
    }

    #[test]
    fn two_paths_to_one_node_are_no_cycle() {
        assert_eq!(graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]).cycle(), None);
    }

    #[test]
    fn a_graph_as_deep_as_it_has_nodes_needs_no_deep_stack() {
        let edges: Vec<(usize, usize)> = (0..99_999).map(|node| (node, node + 1)).collect();
        let graph = graph(100_000, &edges);
        assert_eq!(graph.cycle(), None);
        assert_eq!(graph.unreachable_from(0), None);
    }

    #[test]
    fn edges_that_exclude_each_other_are_no_fan_out() {
        assert!(!forks(&[when("a"), when("b"), edge(When::Otherwise)]));
        assert!(!forks(&[edge(When::Always)]));
        assert!(!forks(&[]));
    }

    #[test]
    fn edges_that_one_output_selects_are_a_fan_out() {
        assert!(forks(&[edge(When::Always), edge(When::Always)]));
        assert!(forks(&[when("a"), when("a")]));
        assert!(forks(&[edge(When::Always), when("a")]));
        assert!(forks(&[when("a"), edge(When::Otherwise), edge(When::Otherwise)]));
    }

    /// The model: the transitive closure, by repeated squaring of the adjacency.
    fn closure(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; nodes]; nodes];
        for (from, to) in edges {
            reach[*from][*to] = true;
        }
        for via in 0..nodes {
            for from in 0..nodes {
                for to in 0..nodes {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        reach
    }

    fn any_graph() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
        (1_usize..9).prop_flat_map(|nodes| (Just(nodes), prop::collection::vec((0..nodes, 0..nodes), 0..16)))
    }

    proptest! {
        #[test]
        fn cycles_and_reachability_agree_with_the_transitive_closure((nodes, edges) in any_graph()) {
            let graph = graph(nodes, &edges);
            let reach = closure(nodes, &edges);
            let cycle = graph.cycle();
            prop_assert_eq!(cycle.is_some(), (0..nodes).any(|node| reach[node][node]));
            if let Some(cycle) = cycle {
                let ring = cycle.nodes.iter().zip(cycle.nodes.iter().cycle().skip(1));
                for (from, to) in ring {
                    prop_assert!(edges.contains(&(*from, *to)));
                }
                prop_assert_eq!(edges[cycle.closing_edge].1, cycle.nodes[0]);
            }
            let unreached = (0..nodes).find(|node| *node != 0 && !reach[0][*node]);
            prop_assert_eq!(graph.unreachable_from(0), unreached);
        }
    }
}
