//! What a graph must come to, worked out over sets: no scheduler, no journal, no crashes.

use std::collections::{BTreeMap, BTreeSet};

use crate::model_graph::{Edge, Fails, Graph, Node, When, name};

/// What is to be expected of a run that can go no further.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) open: BTreeSet<String>,
    pub(crate) steps: BTreeSet<String>,
    /// `None`: it waits.
    pub(crate) end: Option<End>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The writers of its fields.
    Completed(BTreeMap<String, String>),
    /// The codes of all failures that were not caused by another; the run fails with whichever was first.
    Failed(BTreeSet<&'static str>),
}

/// How an activation ended.
enum Ended {
    Waits,
    Fails(&'static str),
    /// The numbers of the edges that it selected.
    Routes(Vec<usize>),
}

const LIMIT_REACHED: &str = "LIMIT_REACHED";
const CONFLICT: &str = "GRAPH_OUTPUT_CONFLICT";

/// Whether the run may go on after so many activations.
pub(crate) fn may_go_on(consumed: u64) -> bool {
    consumed < 12
}

/// The address of the question whether to go on.
pub(crate) fn limit_address(consumed: u64) -> String {
    format!("limit#{consumed}")
}

impl Graph {
    fn edges_of(&self, from: usize) -> impl Iterator<Item = (usize, &Edge)> {
        self.edges.iter().enumerate().filter(move |(_, edge)| edge.from == from)
    }

    /// One activation of a node.
    fn enter(&self, number: usize, visit: usize, answered: &BTreeSet<String>, out: &mut Expected) -> Ended {
        let node = &self.nodes[number];
        let address = format!("{}#{visit}", name(number));
        let mut step = |at: usize| {
            if node.steps[at] {
                out.steps.insert(format!("{address}/{at}"));
            }
        };
        step(0);
        if node.fails == Fails::Early {
            return Ended::Fails("DOMAIN_ERROR");
        }
        if node.asks && !answered.contains(&address) {
            out.open.insert(address);
            return Ended::Waits;
        }
        step(1);
        if node.fails == Fails::Late {
            return Ended::Fails("EXECUTION_FAILED");
        }
        self.route(number, node, visit)
    }

    fn route(&self, number: usize, node: &Node, visit: usize) -> Ended {
        let condition = node.condition(visit);
        let is_match = |edge: &Edge| matches!(edge.when, When::Is(c) if Some(format!("c{c}")) == condition);
        let is_matched = self.edges_of(number).any(|(_, edge)| is_match(edge));
        let is_selected = |edge: &Edge| match edge.when {
            When::Always => true,
            When::Is(_) => is_match(edge),
            When::Otherwise => !is_matched,
        };
        let selected: Vec<_> = self.edges_of(number).filter(|(_, edge)| is_selected(edge)).map(|(ix, _)| ix).collect();
        if selected.is_empty() && self.edges_of(number).next().is_some() {
            return Ended::Fails("NO_ROUTE");
        }
        Ended::Routes(selected)
    }

    /// One node after another.
    pub(crate) fn expect_sequential(&self, answered: &BTreeSet<String>) -> Expected {
        let (mut out, mut data) = (Expected::default(), BTreeMap::new());
        let (mut next, mut visits, mut consumed) = (Some(0), vec![0; self.nodes.len()], 0);
        let mut allowance = self.limit.map_or(u64::MAX, u64::from);
        while let Some(number) = next {
            while consumed >= allowance {
                if !answered.contains(&limit_address(consumed)) {
                    out.open.insert(limit_address(consumed));
                    return out;
                }
                if !may_go_on(consumed) {
                    out.end = Some(End::Failed(BTreeSet::from([LIMIT_REACHED])));
                    return out;
                }
                allowance += self.limit.map_or(0, u64::from);
            }
            consumed += 1;
            let visit = visits[number];
            visits[number] += 1;
            match self.enter(number, visit, answered, &mut out) {
                Ended::Waits => return out,
                Ended::Fails(code) => {
                    out.end = Some(End::Failed(BTreeSet::from([code])));
                    return out;
                }
                Ended::Routes(selected) => {
                    let field = self.nodes[number].writes;
                    data.extend(field.map(|field| (format!("f{field}"), format!("{}#{visit}", name(number)))));
                    next = selected.first().and_then(|ix| self.edges[*ix].to);
                }
            }
        }
        out.end = Some(End::Completed(data));
        out
    }

    /// Nodes as soon as all before them have ended.
    pub(crate) fn expect_parallel(&self, answered: &BTreeSet<String>) -> Expected {
        let mut out = Expected::default();
        let mut nodes: Vec<Parallel> = Vec::new();
        for number in 0..self.nodes.len() {
            let state = self.parallel(number, &nodes, answered, &mut out);
            nodes.push(state);
        }
        if nodes.iter().any(|node| matches!(node, Parallel::NotYet)) {
            return out;
        }
        let failures = nodes.iter().filter_map(|node| match node {
            Parallel::Failed(code) => *code,
            _ => None,
        });
        let failures: BTreeSet<_> = failures.collect();
        let last = nodes.iter().enumerate().filter_map(|(number, node)| match node {
            Parallel::Done { selected, seen } if self.is_last(number, selected) => Some(seen),
            _ => None,
        });
        out.end = Some(match merge(last) {
            _ if !failures.is_empty() => End::Failed(failures),
            None => End::Failed(BTreeSet::from([CONFLICT])),
            Some(seen) => End::Completed(seen.data()),
        });
        out
    }

    fn is_last(&self, number: usize, selected: &[usize]) -> bool {
        self.edges_of(number).next().is_none() || selected.iter().any(|ix| self.edges[*ix].to.is_none())
    }

    fn parallel(
        &self,
        number: usize,
        before: &[Parallel],
        answered: &BTreeSet<String>,
        out: &mut Expected,
    ) -> Parallel {
        let incoming = self.edges.iter().enumerate().filter(|(_, edge)| edge.to == Some(number));
        let incoming: Vec<_> = incoming.map(|(ix, edge)| (ix, &before[edge.from])).collect();
        if incoming.iter().any(|(_, node)| matches!(node, Parallel::NotYet)) {
            return Parallel::NotYet;
        }
        if incoming.iter().any(|(_, node)| matches!(node, Parallel::Failed(_))) {
            return Parallel::Failed(None);
        }
        let selected: Vec<_> = incoming.iter().filter_map(|(ix, node)| node.seen_through(*ix)).collect();
        if selected.is_empty() && number > 0 {
            return Parallel::Skipped;
        }
        let Some(mut seen) = merge(selected.into_iter()) else { return Parallel::Failed(Some(CONFLICT)) };
        match self.enter(number, 0, answered, out) {
            Ended::Waits => Parallel::NotYet,
            Ended::Fails(code) => Parallel::Failed(Some(code)),
            Ended::Routes(selected) => {
                seen.before.insert(number);
                seen.writers.extend(self.nodes[number].writes.map(|field| (field, number)));
                Parallel::Done { selected, seen }
            }
        }
    }
}

/// What has become of a node of a graph with fan-out.
enum Parallel {
    NotYet,
    Skipped,
    /// `None`: because another failed.
    Failed(Option<&'static str>),
    Done {
        selected: Vec<usize>,
        seen: Seen,
    },
}

impl Parallel {
    fn seen_through(&self, edge: usize) -> Option<&Seen> {
        match self {
            Self::Done { selected, seen } if selected.contains(&edge) => Some(seen),
            _ => None,
        }
    }
}

/// What is known at the end of a node: who wrote each field last, and which nodes came before.
#[derive(Debug, Clone, Default)]
struct Seen {
    writers: BTreeMap<u8, usize>,
    before: BTreeSet<usize>,
}

impl Seen {
    fn data(&self) -> BTreeMap<String, String> {
        self.writers.iter().map(|(field, writer)| (format!("f{field}"), format!("{}#0", name(*writer)))).collect()
    }
}

/// Merges branches; `None`: two wrote one field, neither knowing of the other. Of two writers the later one counts when
/// it came after the other on its branch.
fn merge<'a>(branches: impl Iterator<Item = &'a Seen>) -> Option<Seen> {
    let branches: Vec<&Seen> = branches.collect();
    let mut merged =
        Seen { before: branches.iter().flat_map(|seen| seen.before.iter().copied()).collect(), ..Seen::default() };
    let fields: BTreeSet<u8> = branches.iter().flat_map(|seen| seen.writers.keys().copied()).collect();
    for field in fields {
        let wrote = branches.iter().filter_map(|seen| Some((*seen.writers.get(&field)?, *seen)));
        let wrote: Vec<(usize, &Seen)> = wrote.collect();
        let is_outdated =
            |writer: usize| wrote.iter().any(|(other, seen)| *other != writer && seen.before.contains(&writer));
        let writers: BTreeSet<usize> =
            wrote.iter().map(|(writer, _)| *writer).filter(|writer| !is_outdated(*writer)).collect();
        if writers.len() > 1 {
            return None;
        }
        merged.writers.extend(writers.first().map(|writer| (field, *writer)));
    }
    Some(merged)
}
