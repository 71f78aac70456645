//! The requests of one cycle, to be repeated under other ids without an agent.

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId};
use kortyx_store::{
    AnswerRequest, Driver, Finish, Lease, NewAnswer, NewInterrupt, NewRun, Proof, RunRef, Suspend, WorkflowPin,
};

use crate::error::Error;

/// What an agent asked of its store over one cycle.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    run: NewRun,
    driver: Driver,
    suspend: Suspend,
    question: NewInterrupt,
    answer: NewAnswer,
    finish: Finish,
}

/// The ids of one cycle.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    pub(crate) run_id: RunId,
    pub(crate) session_id: SessionId,
    pub(crate) request_id: RequestId,
    pub(crate) token: ResumeToken,
}

impl Ids {
    /// The ids of the cycle with this number.
    pub(crate) fn of(number: u64) -> Self {
        let bytes = scattered(number);
        Self {
            run_id: RunId::from_random(bytes),
            session_id: SessionId::from_random(bytes),
            request_id: RequestId::from_random(bytes),
            token: ResumeToken::mint(bytes, [7; 32]),
        }
    }
}

/// Sixteen bytes of a number's own, in no order that an index would like better than random ones.
fn scattered(number: u64) -> [u8; 16] {
    // An odd factor: no two numbers give the same product. That of Fibonacci hashing.
    let first = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (u128::from(first) << 64 | u128::from(!first)).to_be_bytes()
}

impl Template {
    pub(crate) fn new(suspend: Suspend, answer: AnswerRequest, finish: Finish) -> Result<Self, Error> {
        let RunRef::New(run, driver) = suspend.run.clone() else {
            return Err(Error::unexpected("the run of a cycle must be created as it suspends"));
        };
        let (Some(question), Some(answer)) = (suspend.publish.first().cloned(), answer.answers.into_iter().next())
        else {
            return Err(Error::unexpected("a cycle must ask and be answered"));
        };
        Ok(Self { run, driver, suspend, question, answer, finish })
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    pub(crate) fn pin(&self) -> &WorkflowPin {
        &self.run.workflow
    }

    pub(crate) fn snapshot(&self) -> &Bytes {
        &self.suspend.snapshot
    }

    pub(crate) fn question(&self) -> &NewInterrupt {
        &self.question
    }

    pub(crate) fn given(&self) -> &Bytes {
        &self.answer.answer
    }

    pub(crate) fn outcome(&self) -> &Bytes {
        &self.finish.outcome
    }

    /// The pause.
    pub(crate) fn suspend(&self, ids: &Ids) -> Suspend {
        let run = NewRun { run_id: ids.run_id.clone(), session_id: ids.session_id.clone(), ..self.run.clone() };
        let question =
            NewInterrupt { request_id: ids.request_id.clone(), token: ids.token.clone(), ..self.question.clone() };
        Suspend { run: RunRef::New(run, self.driver.clone()), publish: vec![question], ..self.suspend.clone() }
    }

    /// The answer.
    pub(crate) fn answer(&self, ids: &Ids) -> AnswerRequest {
        let answer = NewAnswer {
            request_id: ids.request_id.clone(),
            proof: Proof::Token(ids.token.clone()),
            session_id: Some(ids.session_id.clone()),
            run_id: Some(ids.run_id.clone()),
            ..self.answer.clone()
        };
        AnswerRequest { answers: vec![answer], driver: Some(self.driver.clone()) }
    }

    /// The end.
    pub(crate) fn finish(&self, lease: Lease) -> Finish {
        Finish { run: RunRef::Held(lease), ..self.finish.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_number_has_ids_of_its_own() {
        let ids: HashSet<RunId> = (0..10_000).map(|number| Ids::of(number).run_id).collect();

        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn a_token_is_that_of_its_question() {
        let ids = Ids::of(7);

        assert_eq!(ids.token.request_id().unwrap(), ids.request_id);
    }
}
