//! Answers and cancellations.

use std::collections::{BTreeMap, HashSet};

use futures_util::future::try_join_all;
use kortyx_protocol::{RequestId, RunId, SessionId};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CancelTarget, Drive, Driver, NewAnswer, Proof, Refusal,
    RunStatus, StoreError, StoreErrorKind,
};

use crate::{
    encode::{Request, millis, scope},
    locate::Place,
    names::{Kind, session_digest, token_digest},
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
        let mut sessions: Vec<&String> = homes.iter().flatten().map(|home| &home.digest).collect();
        sessions.sort();
        sessions.dedup();
        match sessions.as_slice() {
            [] => Ok(AnswerOutcome::Refused(all_unknown(&answers.answers))),
            [session] => self.answer_in(session, &homes, &answers).await,
            _ => self.answer_across(&homes, &answers).await,
        }
    }

    /// Where a question is, by its locator or else by what the caller says.
    async fn home(&self, answer: &NewAnswer) -> Result<Option<Place>, StoreError> {
        let found = self.find(ANSWER, Kind::Question, answer.request_id.as_str()).await?;
        let told = || {
            let digest = answer.session_id.as_ref().map(session_digest)?;
            Some(Place { digest, run: String::new() })
        };
        Ok(found.or_else(told))
    }

    /// Decides over questions of one session.
    async fn answer_in(
        &self,
        digest: &str,
        homes: &[Option<Place>],
        answers: &AnswerRequest,
    ) -> Result<AnswerOutcome, StoreError> {
        let all: Vec<_> = answers.answers.iter().zip(homes).collect();
        let request = self.encode_answers(&all, answers.driver.as_ref(), false)?;
        let said = self.transition(ANSWER, &script::ANSWER, digest, request).await?;
        let outcome = outcome(said, &answers.answers).map_err(|damage| damage.during(ANSWER))?;
        if let AnswerOutcome::Accepted(_, Drive::Granted(claimed)) = &outcome {
            self.memory.put(Kind::Run, claimed.run.run_id.as_str(), digest);
        }
        Ok(outcome)
    }

    fn encode_answers(
        &self,
        answers: &[(&NewAnswer, &Option<Place>)],
        driver: Option<&Driver>,
        is_dry: bool,
    ) -> Result<Request, StoreError> {
        let mut request = self.request(ANSWER);
        let ttl = driver.map_or(0, |driver| millis(driver.ttl));
        request.packed.byte(u8::from(driver.is_some())).number(ttl).byte(u8::from(is_dry)).count(answers.len());
        for (answer, home) in answers {
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            request.packed.id(answer.request_id.as_str()).id(home.as_ref().map_or("", |home| home.run.as_str()));
            match &answer.proof {
                Proof::Token(token) => request.packed.raw(&[0, 16]).raw(&token_digest(token)).count(0),
                Proof::Scope(proof) => request.packed.id("").bytes(scope(proof).to_string().as_bytes()),
            };
            request.packed.id(&text(answer.session_id.as_ref().map(SessionId::as_str)));
            request.packed.id(&text(answer.run_id.as_ref().map(RunId::as_str))).byte(u8::from(answer.cancel));
            let actor = answer.actor.as_ref().map(|actor| format!("={actor}"));
            request.packed.bytes(text(actor.as_deref()).as_bytes());
            request.payload("an answer", answer.answer.clone())?;
        }
        Ok(request)
    }

    /// Questions of several sessions are never answered together: this only finds out what to say.
    async fn answer_across(
        &self,
        homes: &[Option<Place>],
        answers: &AnswerRequest,
    ) -> Result<AnswerOutcome, StoreError> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let (mut all_known, mut refused) = (true, Vec::new());
        for (place, home) in homes.iter().enumerate() {
            if let Some(home) = home {
                groups.entry(&home.digest).or_default().push(place);
            } else {
                all_known = false;
                refused.push((place, Refusal::Unknown));
            }
        }
        for (digest, places) in groups {
            let group = places.iter().filter_map(|place| answers.answers.get(*place).zip(homes.get(*place)));
            let request = self.encode_answers(&group.collect::<Vec<_>>(), None, true)?;
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
                let Some(place) = self.find(CANCEL, Kind::Run, run_id.as_str()).await? else { return Ok(Vec::new()) };
                request.set("run", run_id.as_str());
                place.digest
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
    let code = parts.next()?.bytes()?;
    if let (Some(b'A'), [new]) = (code.first(), answers) {
        let (receipt, claimed) = row::granted(code, parts.next()?.bytes()?, new.answer.clone())?;
        return Ok(AnswerOutcome::Accepted(vec![receipt], Drive::Granted(Box::new(claimed))));
    }
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
    let outcome = parts.text()?;
    let run_id = RunId::new(parts.text()?).map_err(|_| Damage::new("a run's id does not read back"))?;
    let status = parts.text()?;
    let status = RunStatus::parse(&status).ok_or_else(|| Damage::new("a run's status does not read back"))?;
    Ok(match outcome.as_str() {
        "cancelled" => CancelOutcome::Cancelled(run_id),
        "requested" => CancelOutcome::Requested(run_id),
        _ => CancelOutcome::Ended(run_id, status),
    })
}
