//! A tiny language of node bodies: everything that a node can do around a pause, in any combination.

use std::{fmt, ops::RangeInclusive};

use proptest::{collection::vec, prelude::*};

/// A node body.
pub(crate) type Program = Vec<Op>;

/// One thing that a node does.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Streams a text; few different ones, so that equal texts meet.
    Text(u8),
    Step(Id, Work),
    Ask(Id),
    /// So many questions that make sense only together.
    Group(u8),
    Join(How, Vec<Program>),
    Select(How, Vec<Program>),
    Loop(u8, Program),
    /// Calls one of the children with a higher number than the caller.
    Call(Id, u8),
    /// Counts one up in the state of the node or of the workflow.
    Count(Scope),
    Now,
    Random,
}

/// The author's id of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Id {
    /// One that no other place uses; the rounds of a loop share it.
    Own,
    /// One that many places use.
    Shared(u8),
}

/// What a step does besides its effect.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Plain,
    Talks(u8),
    Reads,
}

/// How branches are polled.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    /// All of them, in order.
    Ordered,
    /// Those that were woken.
    Woken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Node,
    Workflow,
}

/// Programs with all that happens to them.
#[derive(Clone)]
pub(crate) struct Case {
    /// The root's nodes, then the children's.
    pub(crate) programs: Vec<Program>,
    /// How many nodes the root has. They run at once.
    pub(crate) roots: usize,
    /// What the people and the processes do; all zeros is the quiet life.
    pub(crate) tape: Vec<u8>,
    /// Where the world and the nodes wait, and who acts meanwhile. Zero: nowhere and nobody.
    pub(crate) seed: u64,
    /// Whether the nodes' own code takes now more, now fewer polls from one call to the next.
    pub(crate) dawdles: bool,
}

/// On one line, whatever the format: failing cases are read by people.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!(
            "seed {}, tape {:?}, roots {}, programs {:?}",
            self.seed, self.tape, self.roots, self.programs
        ))
    }
}

/// A place in a program.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The program's number.
    pub(crate) level: usize,
    /// Where the activation was called.
    pub(crate) root: String,
    /// The place in the text of the program.
    fixed: String,
    /// The place in the run, unique.
    pub(crate) address: String,
}

impl Place {
    /// The beginning of a node of the root.
    pub(crate) fn root(level: usize) -> Self {
        Self::called(level, &format!("root{level}"))
    }

    /// The beginning of a child.
    pub(crate) fn called(level: usize, by: &str) -> Self {
        Self { level, root: by.to_owned(), fixed: String::new(), address: format!("{by}/") }
    }

    pub(crate) fn at(&self, index: usize) -> Self {
        let (fixed, address) = (format!("{}.{index}", self.fixed), format!("{}.{index}", self.address));
        Self { fixed, address, ..self.clone() }
    }

    pub(crate) fn round(&self, round: u8) -> Self {
        Self { address: format!("{}#{round}", self.address), ..self.clone() }
    }

    /// The id of a call here.
    pub(crate) fn id(&self, id: Id) -> String {
        match id {
            Id::Own => format!("own{}", self.fixed),
            Id::Shared(number) => format!("shared{number}"),
        }
    }
}

impl Case {
    /// The program that a call here runs; `None`: there is none, the call does nothing.
    pub(crate) fn callee(&self, place: &Place, number: u8) -> Option<usize> {
        let first = self.roots.max(place.level + 1);
        let below = self.programs.len() - first;
        (below > 0).then(|| first + usize::from(number) % below)
    }

    /// The case with nodes whose own code dawdles. Their branches then come to their calls in any order, so nothing may
    /// hang on that order: ids are not shared, nothing is read, and no branch wins without waiting for anything.
    pub(crate) fn steady(mut self) -> Self {
        self.dawdles = true;
        self.programs.iter_mut().flatten().for_each(make_steady);
        self
    }

    /// Whether no two things of it happen at once.
    pub(crate) fn is_sequential(&self) -> bool {
        self.roots == 1 && self.programs.iter().all(|program| program.iter().all(is_sequential))
    }
}

fn make_steady(op: &mut Op) {
    match op {
        Op::Step(id, _) | Op::Ask(id) | Op::Call(id, _) => *id = Id::Own,
        Op::Now | Op::Random => *op = Op::Ask(Id::Own),
        Op::Join(_, branches) => branches.iter_mut().flatten().for_each(make_steady),
        Op::Select(_, branches) => {
            for branch in branches {
                branch.iter_mut().for_each(make_steady);
                branch.insert(0, Op::Ask(Id::Own));
            }
        }
        Op::Loop(_, body) => body.iter_mut().for_each(make_steady),
        Op::Text(_) | Op::Group(_) | Op::Count(_) => {}
    }
}

fn is_sequential(op: &Op) -> bool {
    match op {
        Op::Join(..) | Op::Select(..) => false,
        Op::Loop(_, body) => body.iter().all(is_sequential),
        _ => true,
    }
}

/// Random cases with so many nodes of the root and so many children.
pub(crate) fn cases(roots: RangeInclusive<usize>, children: usize) -> impl Strategy<Value = Case> {
    let tape = prop_oneof![vec(any::<u8>(), 0..40), Just(Vec::new())];
    let seed = prop_oneof![3 => any::<u64>(), 1 => Just(0)];
    let programs = roots.prop_flat_map(move |roots| (Just(roots), vec(program(), roots..=roots + children)));
    let case = |((roots, programs), tape, seed)| Case { programs, roots, tape, seed, dawdles: false };
    (programs, tape, seed).prop_map(case)
}

fn program() -> impl Strategy<Value = Program> {
    vec(op(), 0..=3)
}

fn op() -> impl Strategy<Value = Op> {
    leaf().prop_recursive(3, 16, 3, |op| {
        let branches = vec(vec(op.clone(), 0..=3), 2..=3);
        prop_oneof![
            (how(), branches.clone()).prop_map(|(how, branches)| Op::Join(how, branches)),
            (how(), branches).prop_map(|(how, branches)| Op::Select(how, branches)),
            (1..=2u8, vec(op, 1..=3)).prop_map(|(rounds, body)| Op::Loop(rounds, body)),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (id(), work()).prop_map(|(id, work)| Op::Step(id, work)),
        5 => id().prop_map(Op::Ask),
        2 => (0..3u8).prop_map(Op::Text),
        1 => (2..=3u8).prop_map(Op::Group),
        2 => (id(), any::<u8>()).prop_map(|(id, child)| Op::Call(id, child)),
        1 => prop_oneof![Just(Scope::Node), Just(Scope::Workflow)].prop_map(Op::Count),
        1 => Just(Op::Now),
        1 => Just(Op::Random),
    ]
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![Just(Id::Own), (0..2u8).prop_map(Id::Shared)]
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![3 => Just(Work::Plain), 1 => (0..3u8).prop_map(Work::Talks), 1 => Just(Work::Reads)]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![Just(How::Ordered), Just(How::Woken)]
}
