//! Random graphs of nodes that step, ask, fail and route, for real.

use std::{fmt, sync::Arc};

use kortyx_contracts::Text;
use kortyx_runtime::{
    NodeContext, NodeError, NodeOutput, NodeResult, Workflow,
    workflow::{END, NodeOptions, Retry},
};
use proptest::{collection::vec, option, prelude::*};

use crate::model_probe::Probe;

/// A graph with all that happens to it.
#[derive(Clone)]
pub(crate) struct Graph {
    /// Node 0 is the start; every node can be reached.
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
    /// After how many activations the run asks whether to go on.
    pub(crate) limit: Option<u32>,
    pub(crate) tape: Vec<u8>,
    pub(crate) seed: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) asks: bool,
    /// Whether it does a step before and after the question.
    pub(crate) steps: [bool; 2],
    pub(crate) fails: Fails,
    /// The field that it writes.
    pub(crate) writes: Option<u8>,
    /// The conditions of its visits, in turn.
    pub(crate) conditions: Vec<Option<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    Never,
    /// At its first attempt only.
    Once,
    /// Before its question, in a way that the client may see.
    Early,
    /// At its end.
    Late,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    /// `None`: the end.
    pub(crate) to: Option<usize>,
    pub(crate) when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    Is(u8),
    Otherwise,
}

/// On one line, whatever the format.
impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, edges, limit, tape, seed } = self;
        let edge = |edge: &Edge| format!("{}->{:?} {:?}", edge.from, edge.to, edge.when);
        let edges: Vec<_> = edges.iter().map(edge).collect();
        f.write_str(&format!("seed {seed}, tape {tape:?}, limit {limit:?}, edges {edges:?}, nodes {nodes:?}"))
    }
}

pub(crate) fn name(node: usize) -> String {
    format!("n{node}")
}

impl Node {
    pub(crate) fn condition(&self, visit: usize) -> Option<String> {
        let condition = self.conditions.get(visit % self.conditions.len().max(1)).copied().flatten();
        condition.map(|condition| format!("c{condition}"))
    }

    async fn run(&self, ctx: NodeContext, probe: &Probe) -> NodeResult {
        let visits = ctx.node_state("visits", 0_usize);
        let visit = visits.get()?;
        visits.set(&(visit + 1))?;
        let address = format!("{}#{visit}", ctx.node());
        self.step(0, &ctx, &address, probe).await?;
        match self.fails {
            Fails::Early => return Err(NodeError::public("early", "it fails early")),
            Fails::Once if probe.is_first_attempt(&address) => return Err(NodeError::message("it fails once")),
            _ => {}
        }
        if self.asks {
            let answer = ctx.interrupt("q", Text::new(&address)).await?;
            probe.answered(&address, &answer);
        }
        self.step(1, &ctx, &address, probe).await?;
        if self.fails == Fails::Late {
            return Err(NodeError::message("it fails late"));
        }
        let output = NodeOutput::new();
        let output = self.writes.iter().fold(output, |output, field| output.data(format!("f{field}"), &address));
        Ok(self.condition(visit).into_iter().fold(output, NodeOutput::condition))
    }

    async fn step(&self, number: usize, ctx: &NodeContext, address: &str, probe: &Probe) -> Result<(), NodeError> {
        if !self.steps[number] {
            return Ok(());
        }
        let address = format!("{address}/{number}");
        let effect = || async {
            probe.effect(ctx.idempotency_key("step"), &address, "");
            probe.meddle().pass().await;
            Ok::<_, NodeError>(address.clone())
        };
        let result = ctx.step("step", effect).await?;
        probe.finished(&address, &result);
        Ok(())
    }
}

impl Graph {
    /// The workflow; `None`: the builder refuses it.
    pub(crate) fn workflow(&self, probe: &Arc<Probe>) -> Option<Workflow> {
        let mut builder = Workflow::builder("graph");
        for (number, node) in self.nodes.iter().enumerate() {
            let options = match node.fails {
                Fails::Once => NodeOptions::new().retry(Retry::attempts(2)),
                _ => NodeOptions::new(),
            };
            let (node, probe) = (Arc::new(node.clone()), probe.clone());
            let body = move |ctx: NodeContext| {
                let (node, probe) = (node.clone(), probe.clone());
                async move { node.run(ctx, &probe).await }
            };
            builder = builder.node_with(name(number), options, body);
        }
        for edge in &self.edges {
            let (from, to) = (name(edge.from), edge.to.map_or_else(|| END.to_owned(), name));
            builder = match edge.when {
                When::Always => builder.edge(from, to),
                When::Is(condition) => builder.edge_if(from, to, format!("c{condition}")),
                When::Otherwise => builder.otherwise(from, to),
            };
        }
        let builder = match self.limit {
            Some(limit) => builder.max_node_executions(limit),
            None => builder.unlimited_node_executions(),
        };
        builder.build().ok()
    }

    /// Keeps what the start leads to.
    fn reachable(mut self) -> Self {
        let mut reached = vec![false; self.nodes.len()];
        reached[0] = true;
        for _ in 0..self.nodes.len() {
            for edge in self.edges.iter().filter(|edge| edge.to.is_some()) {
                reached[edge.to.unwrap()] |= reached[edge.from];
            }
        }
        let numbers: Vec<usize> =
            reached.iter().scan(0, |next, is| Some(std::mem::replace(next, *next + usize::from(*is)))).collect();
        self.edges.retain(|edge| reached[edge.from]);
        for edge in &mut self.edges {
            edge.from = numbers[edge.from];
            edge.to = edge.to.map(|to| numbers[to]);
        }
        let mut kept = reached.iter();
        self.nodes.retain(|_| *kept.next().unwrap());
        self
    }
}

/// Graphs where one node follows another, with loops.
pub(crate) fn sequential() -> impl Strategy<Value = Graph> {
    let ways = prop_oneof![
        2 => (0..8_usize).prop_map(|to| vec![(to, When::Always)]),
        3 => vec(0..8_usize, 1..=4).prop_map(one_of),
        1 => Just(Vec::new()),
    ];
    let limit = (1..=6_u32).prop_map(Some);
    graphs(ways, limit, |_, to, nodes| Some(to).filter(|to| *to < nodes))
}

/// Conditional ways; the last is for all other conditions when there are many.
fn one_of(targets: Vec<usize>) -> Vec<(usize, When)> {
    let last = targets.len() - 1;
    let when = |at: usize| if at > 0 && at == last { When::Otherwise } else { When::Is(u8::try_from(at).unwrap()) };
    targets.into_iter().enumerate().map(|(at, to)| (to, when(at))).collect()
}

/// Graphs where nodes run at once and join; they lead forward only.
pub(crate) fn parallel() -> impl Strategy<Value = Graph> {
    let when = prop_oneof![4 => Just(When::Always), 2 => (0..2_u8).prop_map(When::Is), 1 => Just(When::Otherwise)];
    let ways = vec((0..4_usize, when), 0..=4);
    let limit = prop_oneof![3 => Just(None), 1 => (1..=4_u32).prop_map(Some)];
    graphs(ways, limit, |from, ahead, nodes| Some(from + 1 + ahead).filter(|to| *to < nodes))
}

fn graphs(
    ways: impl Strategy<Value = Vec<(usize, When)>>,
    limit: impl Strategy<Value = Option<u32>>,
    target: fn(usize, usize, usize) -> Option<usize>,
) -> impl Strategy<Value = Graph> {
    let tape = prop_oneof![vec(any::<u8>(), 0..30), Just(Vec::new())];
    let seed = prop_oneof![3 => any::<u64>(), 1 => Just(0)];
    (vec((node(), ways), 1..=7), limit, tape, seed).prop_map(move |(nodes, limit, tape, seed)| {
        let mut edges: Vec<Edge> = Vec::new();
        for (from, (_, ways)) in nodes.iter().enumerate() {
            for (to, when) in ways {
                edges.push(Edge { from, to: target(from, *to, nodes.len()), when: *when });
            }
        }
        let nodes = nodes.into_iter().map(|(node, _)| node).collect();
        Graph { nodes, edges: valid(&edges), limit, tape, seed }.reachable()
    })
}

/// Leaves out edges that the builder refuses: doubles, and those for the rest where there is no condition.
fn valid(edges: &[Edge]) -> Vec<Edge> {
    let mut kept: Vec<Edge> = Vec::new();
    for edge in edges {
        let is_double = |other: &Edge| {
            let is_same = other.when == edge.when || [other.when, edge.when].contains(&When::Always);
            (other.from, other.to) == (edge.from, edge.to) && is_same
        };
        let has_condition = edges.iter().any(|other| other.from == edge.from && matches!(other.when, When::Is(_)));
        if !kept.iter().any(is_double) && (edge.when != When::Otherwise || has_condition) {
            kept.push(edge.clone());
        }
    }
    kept
}

fn node() -> impl Strategy<Value = Node> {
    let fails = prop_oneof![
        12 => Just(Fails::Never),
        1 => Just(Fails::Once),
        1 => Just(Fails::Early),
        1 => Just(Fails::Late),
    ];
    let conditions = vec(option::weighted(0.9, 0..3_u8), 1..=3);
    (any::<bool>(), any::<[bool; 2]>(), fails, option::of(0..4_u8), conditions)
        .prop_map(|(asks, steps, fails, writes, conditions)| Node { asks, steps, fails, writes, conditions })
}
