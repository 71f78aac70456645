//! What a program must come to, worked out by plain recursion: no futures, no journal, no crashes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    model_language::{Case, Op, Place, Program, Scope, Work},
    model_probe::answer_to,
};

/// What is given: which questions have answers, and which branch of each select was first.
pub(crate) struct Reference<'a> {
    pub(crate) case: &'a Case,
    pub(crate) answered: &'a BTreeSet<String>,
    pub(crate) winners: &'a BTreeMap<String, usize>,
}

/// What is to be expected of a run that can go no further.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// The root's data; `None`: it waits.
    pub(crate) data: Option<Value>,
    pub(crate) open: BTreeSet<String>,
    /// What has happened, in the program's order.
    pub(crate) done: Happened,
    /// What may have happened besides, in branches that were not first.
    pub(crate) maybe: Happened,
    /// Selects that somebody has won, unless they really are undecided.
    pub(crate) undecided: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Happened {
    pub(crate) steps: BTreeSet<String>,
    pub(crate) texts: Vec<String>,
    pub(crate) counts: BTreeMap<(String, Scope), u32>,
}

/// Whether a branch counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Certain,
    /// It was not first: how far it came is not known.
    Lost,
}

impl Reference<'_> {
    pub(crate) fn expect(&self) -> Expected {
        let mut expected = Expected::default();
        let mut data = Some(Map::new());
        for (level, program) in self.case.programs[..self.case.roots].iter().enumerate() {
            let value = self.run(program, &Place::root(level), Standing::Certain, &mut expected);
            data = data
                .zip(value)
                .map(|(data, value)| data.into_iter().chain([(format!("value{level}"), value)]).collect());
        }
        expected.data = data.map(Value::Object);
        expected
    }

    /// The value of a program that has ended.
    fn run(&self, program: &Program, place: &Place, standing: Standing, out: &mut Expected) -> Option<Value> {
        let ops = program.iter().enumerate();
        ops.map(|(index, op)| self.op(op, &place.at(index), standing, out))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array)
    }

    fn op(&self, op: &Op, place: &Place, standing: Standing, out: &mut Expected) -> Option<Value> {
        match op {
            Op::Text(text) => out.happened(standing).texts.push(text.to_string()),
            Op::Step(_, work) => {
                out.happened(standing).steps.insert(place.address.clone());
                if let Work::Talks(text) = work {
                    out.happened(standing).texts.push(text.to_string());
                }
                return Some(place.address.clone().into());
            }
            Op::Ask(_) => return self.ask(place, standing, out),
            Op::Group(questions) => {
                let asks: Vec<_> =
                    (0..*questions).map(|member| self.ask(&place.at(member.into()), standing, out)).collect();
                return asks.into_iter().collect::<Option<Vec<_>>>().map(Value::Array);
            }
            Op::Join(_, branches) => {
                let ends: Vec<_> = self.branches(branches, place, standing, out);
                return ends.into_iter().collect::<Option<Vec<_>>>().map(Value::Array);
            }
            Op::Select(_, branches) => return self.select(branches, place, standing, out),
            Op::Loop(rounds, body) => {
                let rounds = 0..*rounds;
                let ended = rounds.map(|round| self.run(body, &place.round(round), standing, out));
                return ended.collect::<Option<Vec<_>>>().map(Value::Array);
            }
            Op::Call(_, number) => {
                let Some(callee) = self.case.callee(place, *number) else { return Some(Value::Null) };
                let child = Place::called(callee, &place.address);
                return self.run(&self.case.programs[callee], &child, standing, out);
            }
            Op::Count(scope) => {
                *out.happened(standing).counts.entry((place.root.clone(), *scope)).or_default() += 1;
            }
            Op::Now | Op::Random => {}
        }
        Some(Value::Null)
    }

    fn ask(&self, place: &Place, standing: Standing, out: &mut Expected) -> Option<Value> {
        if self.answered.contains(&place.address) {
            return Some(answer_to(&place.address).into());
        }
        if standing == Standing::Certain {
            out.open.insert(place.address.clone());
        }
        None
    }

    fn branches(
        &self,
        branches: &[Program],
        place: &Place,
        standing: Standing,
        out: &mut Expected,
    ) -> Vec<Option<Value>> {
        let branches = branches.iter().enumerate();
        branches.map(|(index, branch)| self.run(branch, &place.at(index), standing, out)).collect()
    }

    fn select(&self, branches: &[Program], place: &Place, standing: Standing, out: &mut Expected) -> Option<Value> {
        let winner = self.winners.get(&place.address).filter(|_| standing == Standing::Certain);
        let Some(winner) = winner else {
            let ended = self.branches(branches, place, standing, out);
            let first = ended.into_iter().flatten().next()?;
            if standing == Standing::Certain {
                out.undecided.push(place.address.clone());
            }
            return Some(first);
        };
        let mut value = None;
        for (index, branch) in branches.iter().enumerate() {
            let standing = if index == *winner { standing } else { Standing::Lost };
            let ended = self.run(branch, &place.at(index), standing, out);
            value = if index == *winner { ended } else { value };
        }
        Some(json!({ "won": winner, "value": value? }))
    }
}

impl Expected {
    fn happened(&mut self, standing: Standing) -> &mut Happened {
        match standing {
            Standing::Certain => &mut self.done,
            Standing::Lost => &mut self.maybe,
        }
    }
}
