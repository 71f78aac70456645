//! What is to become of calls.

use std::collections::HashMap;

use super::{Gate, Op, When};

/// What happens while a call is on its way.
pub(super) type Meanwhile = Box<dyn FnOnce() + Send>;

/// What is to become of calls, and which there were.
#[derive(Default)]
pub(super) struct Plans {
    of: HashMap<(Op, When), Plan>,
    meanwhile: Vec<(Op, Meanwhile)>,
    /// The process dies at the write after so many.
    death: Option<(u64, When)>,
    pub(super) calls: Vec<Op>,
}

enum Plan {
    Fail(u64),
    /// After so many calls that pass.
    Hold(u64, Gate),
}

/// What becomes of one call at one moment.
pub(super) enum Fate {
    Pass,
    Fail,
    Hold(Gate),
}

impl Plans {
    pub(super) fn fail(&mut self, op: Op, when: When, times: u64) {
        let before = match self.of.get(&(op, when)) {
            Some(Plan::Fail(left)) => *left,
            _ => 0,
        };
        self.of.insert((op, when), Plan::Fail(before.saturating_add(times)));
    }

    pub(super) fn hold(&mut self, passing: u64, op: Op, when: When) -> Gate {
        let gate = Gate::closed();
        self.of.insert((op, when), Plan::Hold(passing, gate.clone()));
        gate
    }

    pub(super) fn during(&mut self, op: Op, meanwhile: Meanwhile) {
        self.meanwhile.push((op, meanwhile));
    }

    pub(super) fn die(&mut self, writes: u64, when: When) {
        self.death = Some((writes, when));
    }

    /// Forgets every plan.
    pub(super) fn clear(&mut self) {
        (self.of, self.meanwhile, self.death) = (HashMap::new(), Vec::new(), None);
    }

    /// Notes a call; says when the process dies of it, and what happens meanwhile.
    pub(super) fn call(&mut self, op: Op) -> (Option<When>, Option<Meanwhile>) {
        self.calls.push(op);
        let place = self.meanwhile.iter().position(|(during, _)| *during == op);
        let meanwhile = place.map(|place| self.meanwhile.remove(place).1);
        let death = match &mut self.death {
            Some((0, when)) if op.is_write() => Some(*when),
            Some((left, _)) if op.is_write() => {
                *left = left.saturating_sub(1);
                None
            }
            _ => None,
        };
        (death, meanwhile)
    }

    pub(super) fn meet(&mut self, op: Op, when: When) -> Fate {
        match self.of.get_mut(&(op, when)) {
            Some(Plan::Fail(0)) | None => Fate::Pass,
            Some(Plan::Fail(left)) => {
                *left = left.saturating_sub(1);
                Fate::Fail
            }
            Some(Plan::Hold(0, gate)) => Fate::Hold(gate.clone()),
            Some(Plan::Hold(passing, _)) => {
                *passing = passing.saturating_sub(1);
                Fate::Pass
            }
        }
    }
}
