//! Answers and cancellations.

use std::collections::{BTreeMap, HashSet};

use futures_util::future::try_join_all;
use kortyx_protocol::{RequestId, RunId};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CancelTarget, Drive, NewAnswer, Proof, Refusal,
    RunStatus, StoreError, StoreErrorKind,
};
use serde_json::{Value, json};

use crate::{
    encode::{Request, scope},
    names::{Kind, session_digest},
    reply::{Damage, Parts, Reading, Reply},
    row, script,
    store::RedisStore,
};

const ANSWER: &str = "answer";
const CANCEL: &str = "cancel";

impl RedisStore {
    pub(crate) async fn answer_questions(&self, answers: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        check(&answers.answers)?;
        let homes = try_join_all(answers.answers.iter().map(|answer| self.home(answer))).await?;
        let mut sessions: Vec<&String> = homes.iter().flatten().collect();
        sessions.sort();
        sessions.dedup();
        match sessions.as_slice() {
            [] => Ok(AnswerOutcome::Refused(all_unknown(&answers.answers))),
            [session] => self.answer_in(session, &answers).await,
            _ => self.answer_across(&homes, &answers).await,
        }
    }

    /// The session of a question, by its locator or else by what the caller says.
    async fn home(&self, answer: &NewAnswer) -> Result<Option<String>, StoreError> {
        let found = self.find(ANSWER, Kind::Question, answer.request_id.as_str()).await?;
        Ok(found.or_else(|| answer.session_id.as_ref().map(session_digest)))
    }

    /// Decides over questions of one session.
    async fn answer_in(&self, digest: &str, answers: &AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        let all: Vec<_> = answers.answers.iter().collect();
        let mut request = self.encode_answers(&all)?;
        request.driver(answers.driver.as_ref());
        let said = self.transition(ANSWER, &script::ANSWER, digest, request).await?;
        let outcome = outcome(said, &answers.answers).map_err(|damage| damage.during(ANSWER))?;
        if let AnswerOutcome::Accepted(_, Drive::Granted(claimed)) = &outcome {
            self.memory.put(Kind::Run, claimed.run.run_id.as_str(), digest);
        }
        Ok(outcome)
    }

    fn encode_answers(&self, answers: &[&NewAnswer]) -> Result<Request, StoreError> {
        let mut request = self.request(ANSWER);
        let mut encoded = Vec::with_capacity(answers.len());
        for answer in answers {
            let mut parts = json!({
                "id": answer.request_id.as_str(),
                "answer": request.payload("an answer", answer.answer.clone())?,
                "cancel": u8::from(answer.cancel),
            });
            if let Some(parts) = parts.as_object_mut() {
                let mut set = |name: &str, value: Value| parts.insert(name.to_owned(), value);
                match &answer.proof {
                    Proof::Token(token) => set("token", token.expose().into()),
                    Proof::Scope(proof) => set("scope", scope(proof)),
                };
                answer.session_id.iter().for_each(|id| drop(set("session", id.as_str().into())));
                answer.run_id.iter().for_each(|id| drop(set("run", id.as_str().into())));
                answer.actor.iter().for_each(|actor| drop(set("actor", actor.as_str().into())));
            }
            encoded.push(parts);
        }
        request.set("answers", encoded);
        Ok(request)
    }

    /// Questions of several sessions are never answered together: this only finds out what to say.
    async fn answer_across(
        &self,
        homes: &[Option<String>],
        answers: &AnswerRequest,
    ) -> Result<AnswerOutcome, StoreError> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let (mut all_known, mut refused) = (true, Vec::new());
        for (place, home) in homes.iter().enumerate() {
            if let Some(home) = home {
                groups.entry(home).or_default().push(place);
            } else {
                all_known = false;
                refused.push((place, Refusal::Unknown));
            }
        }
        for (digest, places) in groups {
            let group: Vec<_> = places.iter().filter_map(|place| answers.answers.get(*place)).collect();
            let mut request = self.encode_answers(&group)?;
            request.set("dry", true);
            let said = self.read(ANSWER, &script::ANSWER, digest, request).await?;
            let (known, some) = dry(said).map_err(|damage| damage.during(ANSWER))?;
            all_known &= known;
            refused.extend(some.into_iter().filter_map(|(at, refusal)| Some((*places.get(at)?, refusal))));
        }
        if all_known {
            let message = "the questions belong to different runs";
            return Err(StoreError::new(StoreErrorKind::InvalidRequest, ANSWER, message));
        }
        refused.sort_by_key(|(place, _)| *place);
        Ok(AnswerOutcome::Refused(named(refused, &answers.answers)))
    }

    pub(crate) async fn cancel_runs(&self, cancel: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        if cancel.scope.as_ref().is_some_and(kortyx_store::Scope::is_empty) {
            return Err(StoreError::new(StoreErrorKind::ScopeRequired, CANCEL, "the scope restricts nothing"));
        }
        let mut request = self.request(CANCEL);
        request.set("scope", cancel.scope.as_ref().map(scope));
        request.set("reason", cancel.reason);
        let digest = match &cancel.target {
            CancelTarget::Session(session_id) => session_digest(session_id),
            CancelTarget::Run(run_id) => {
                let Some(digest) = self.find(CANCEL, Kind::Run, run_id.as_str()).await? else { return Ok(Vec::new()) };
                request.set("run", run_id.as_str());
                digest
            }
        };
        let said = self.transition(CANCEL, &script::CANCEL, &digest, request).await?;
        let read = || said.list()?.into_iter().map(cancelled).collect::<Reading<_>>();
        read().map_err(|damage| damage.during(CANCEL))
    }
}

/// Refuses a request that no state could satisfy.
fn check(answers: &[NewAnswer]) -> Result<(), StoreError> {
    let refuse = |kind, message: String| Err(StoreError::new(kind, ANSWER, message));
    if answers.is_empty() {
        return refuse(StoreErrorKind::InvalidRequest, "no answer".to_owned());
    }
    let mut named = HashSet::new();
    for answer in answers {
        if matches!(&answer.proof, Proof::Scope(scope) if scope.is_empty()) {
            return refuse(StoreErrorKind::ScopeRequired, "the proof's scope restricts nothing".to_owned());
        }
        if !named.insert(&answer.request_id) {
            let message = format!("question {} is answered twice", answer.request_id);
            return refuse(StoreErrorKind::InvalidRequest, message);
        }
    }
    Ok(())
}

fn all_unknown(answers: &[NewAnswer]) -> Vec<(RequestId, Refusal)> {
    answers.iter().map(|answer| (answer.request_id.clone(), Refusal::Unknown)).collect()
}

fn named(refused: Vec<(usize, Refusal)>, answers: &[NewAnswer]) -> Vec<(RequestId, Refusal)> {
    let named = refused.into_iter();
    named.filter_map(|(place, refusal)| Some((answers.get(place)?.request_id.clone(), refusal))).collect()
}

fn outcome(said: Reply, answers: &[NewAnswer]) -> Reading<AnswerOutcome> {
    let mut parts = Parts::of(said)?;
    let code = parts.text()?;
    if code == "refused" {
        return Ok(AnswerOutcome::Refused(named(refusals(parts.list()?)?, answers)));
    }
    let receipts = parts.list()?.into_iter().map(row::receipt).collect::<Reading<_>>()?;
    if code == "duplicate" {
        return Ok(AnswerOutcome::Duplicate(receipts, Box::new(row::run(parts.next()?)?)));
    }
    let mut drive = Parts::of(parts.next()?)?;
    let drive = match drive.text()?.as_str() {
        "granted" => Drive::Granted(Box::new(row::claimed(drive.next()?)?)),
        "driven" => Drive::Driven,
        "left" => Drive::Left,
        "ended" => Drive::Ended(RunStatus::Cancelled),
        other => return Err(Damage::new(format!("an unknown drive `{other}`"))),
    };
    Ok(AnswerOutcome::Accepted(receipts, drive))
}

/// Refused answers by their places.
fn refusals(replies: Vec<Reply>) -> Reading<Vec<(usize, Refusal)>> {
    replies.into_iter().map(refusal).collect()
}

fn refusal(reply: Reply) -> Reading<(usize, Refusal)> {
    let mut parts = Parts::of(reply)?;
    let place = usize::try_from(parts.next()?.count()?).unwrap_or(usize::MAX);
    let refusal = match parts.text()?.as_str() {
        "conflict" => Refusal::Conflict(row::receipt(parts.next()?)?),
        "expired" => Refusal::Expired,
        "cancelled" => Refusal::Cancelled,
        "superseded" => Refusal::Superseded,
        "unknown" => Refusal::Unknown,
        "wrong_session" => Refusal::WrongSession,
        other => return Err(Damage::new(format!("an unknown refusal `{other}`"))),
    };
    Ok((place, refusal))
}

/// Whether every question is known to the caller, and the refused ones.
fn dry(said: Reply) -> Reading<(bool, Vec<(usize, Refusal)>)> {
    let mut parts = Parts::of(said)?;
    parts.text()?;
    let codes = parts.list()?.into_iter().map(Reply::text).collect::<Reading<Vec<_>>>()?;
    parts.next()?;
    Ok((codes.iter().all(|code| code != "unknown"), refusals(parts.list()?)?))
}

fn cancelled(reply: Reply) -> Reading<CancelOutcome> {
    let mut parts = Parts::of(reply)?;
    let run_id = RunId::new(parts.text()?).map_err(|_| Damage::new("a run's id does not read back"))?;
    let (outcome, status) = (parts.text()?, parts.text()?);
    let status = RunStatus::parse(&status).ok_or_else(|| Damage::new("a run's status does not read back"))?;
    Ok(match outcome.as_str() {
        "cancelled" => CancelOutcome::Cancelled(run_id),
        "requested" => CancelOutcome::Requested(run_id),
        _ => CancelOutcome::Ended(run_id, status),
    })
}
