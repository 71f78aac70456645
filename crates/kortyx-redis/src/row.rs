//! Rows as scripts give them, read into records. Every row names the version of its format.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerRecord, AskKey, ChunkPage, Claimed, InterruptRecord, InterruptStatus, Lease, NewInterrupt, NewRun, Receipt,
    RunRecord, RunStatus, Scalar, WorkflowPin,
};

use crate::{
    encode::VERSION,
    names::decode_scalar,
    pack::Unpacker,
    reply::{Damage, Parts, Reading, Reply},
    snapshot,
};

/// Statuses as records name them, from 1 on.
const RUN: [RunStatus; 7] = [
    RunStatus::Running,
    RunStatus::Suspended,
    RunStatus::Parked,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Cancelled,
    RunStatus::Expired,
];
const QUESTION: [InterruptStatus; 5] = [
    InterruptStatus::Pending,
    InterruptStatus::Answered,
    InterruptStatus::Cancelled,
    InterruptStatus::Expired,
    InterruptStatus::Superseded,
];

/// The number by which records name a status.
pub(crate) fn status_number(status: RunStatus) -> u8 {
    (1..).zip(RUN).find(|(_, named)| *named == status).map_or(0, |(number, _)| number)
}

fn status<S: Copy>(names: &[S], number: u8) -> Reading<S> {
    let status = names.get(usize::from(number).wrapping_sub(1)).copied();
    status.ok_or_else(|| Damage::new(format!("a status {number} is unknown")))
}

/// Starts reading a record whose format this code knows.
pub(crate) fn versioned(record: Bytes) -> Reading<Unpacker> {
    let mut record = Unpacker::of(record);
    match record.byte().map_err(|_| Damage::new("a row does not say its format"))? {
        VERSION => Ok(record),
        other => Err(Damage::new(format!("a row has format {other}, this code knows {VERSION}"))),
    }
}

pub(crate) fn parsed<T, E>(what: &str, made: Result<T, E>) -> Reading<T> {
    made.map_err(|_| Damage::new(format!("{what} does not read back")))
}

pub(crate) fn run_id(text: String) -> Reading<RunId> {
    parsed("a run's id", RunId::new(text))
}

/// The status of a run that this number names.
pub(crate) fn run_status(number: Reply) -> Reading<RunStatus> {
    status(&RUN, u8::try_from(number.int()?).unwrap_or(0))
}

fn time(record: &mut Unpacker) -> Reading<Timestamp> {
    record.signed().map(Timestamp::from_millis)
}

/// What never changes of a run.
struct Fixed {
    run_id: RunId,
    session_id: SessionId,
    context: BTreeMap<String, Scalar>,
}

impl Fixed {
    fn of(reply: Reply) -> Reading<Self> {
        let mut record = versioned(reply.bytes()?)?;
        record.bytes()?;
        let context = context(&record.bytes()?)?;
        let (run, session) = (record.id()?, record.id()?);
        Ok(Self { run_id: run_id(run)?, session_id: parsed("a session's id", SessionId::new(session))?, context })
    }
}

fn context(json: &[u8]) -> Reading<BTreeMap<String, Scalar>> {
    if json == b"{}" {
        return Ok(BTreeMap::new());
    }
    let texts: BTreeMap<String, String> = parsed("a context", serde_json::from_slice(json))?;
    let pairs = texts.into_iter().map(|(key, value)| Some((key, decode_scalar(&value)?)));
    pairs.collect::<Option<_>>().ok_or_else(|| Damage::new("a context does not read back"))
}

fn definition(reply: Reply) -> Reading<WorkflowPin> {
    let mut record = Unpacker::of(reply.bytes()?);
    record.raw(32)?;
    Ok(WorkflowPin { id: record.text()?.into(), version: record.text()?.into(), fingerprint: record.text()?.into() })
}

/// What scripts keep of a question.
#[expect(clippy::struct_excessive_bools, reason = "flags as they are stored, each on its own")]
struct Record {
    status: InterruptStatus,
    optional_cancel: bool,
    after_response_completed: bool,
    has_default: bool,
    by_default: bool,
    seq: u64,
    at: Timestamp,
    created: Timestamp,
    expires: Timestamp,
    request_id: RequestId,
    token: ResumeToken,
    ask: AskKey,
    actor: Option<String>,
}

impl Record {
    fn of(reply: Reply) -> Reading<Self> {
        Self::read(&mut Unpacker::of(reply.bytes()?))
    }

    fn read(record: &mut Unpacker) -> Reading<Self> {
        match record.byte()? {
            VERSION => {}
            other => return Err(Damage::new(format!("a row has format {other}, this code knows {VERSION}"))),
        }
        let status = status(&QUESTION, record.byte()?)?;
        let (optional_cancel, after_response_completed) = (record.flag()?, record.flag()?);
        let (has_default, by_default) = (record.flag()?, record.flag()?);
        let (seq, at, created, expires) = (record.number()?, time(record)?, time(record)?, time(record)?);
        record.raw(32 + 16)?;
        Ok(Self {
            status,
            optional_cancel,
            after_response_completed,
            has_default,
            by_default,
            seq,
            at,
            created,
            expires,
            request_id: parsed("a question's id", RequestId::new(record.id()?))?,
            token: parsed("a token", ResumeToken::parse(record.id()?))?,
            ask: AskKey(record.text()?),
            actor: record.text()?.strip_prefix('=').map(str::to_owned),
        })
    }

    fn receipt(&self, run_id: &RunId) -> Receipt {
        Receipt {
            request_id: self.request_id.clone(),
            run_id: run_id.clone(),
            seq: self.seq,
            at: self.at,
            actor: self.actor.clone(),
        }
    }

    fn answer(self, answer: Bytes) -> AnswerRecord {
        AnswerRecord {
            seq: self.seq,
            request_id: self.request_id,
            ask: self.ask,
            answer,
            at: self.at,
            actor: self.actor,
            by_default: self.by_default,
        }
    }

    /// The whole question.
    fn question(self, rest: Bytes, fixed: Fixed, answer: Option<Bytes>) -> Reading<InterruptRecord> {
        let mut rest = Unpacker::of(rest);
        let default = rest.bytes()?;
        let (workflow, node, question) = (rest.text()?, rest.text()?, rest.bytes()?);
        let receipt = (self.seq > 0 && !self.by_default).then(|| self.receipt(&fixed.run_id));
        let new = NewInterrupt {
            request_id: self.request_id,
            token: self.token,
            ask: self.ask,
            workflow,
            node,
            question,
            expires_in: Duration::ZERO,
            default: self.has_default.then_some(default),
            optional_cancel: self.optional_cancel,
            after_response_completed: self.after_response_completed,
        };
        let Fixed { run_id, session_id, context } = fixed;
        let mut record = InterruptRecord::new(new, run_id, session_id, Arc::new(context), self.created);
        record.expires_at = self.expires;
        record.status = self.status;
        record.answer = answer;
        record.receipt = receipt;
        Ok(record)
    }
}

/// Whether a row is one of something that is not there.
pub(crate) fn is_absent(reply: &Reply) -> bool {
    matches!(reply, Reply::Nil) || matches!(reply, Reply::List(parts) if parts.is_empty())
}

fn find_bytes(reply: Reply) -> Reading<Option<Bytes>> {
    match reply {
        Reply::Nil => Ok(None),
        reply => reply.bytes().map(Some),
    }
}

pub(crate) fn run(reply: Reply) -> Reading<RunRecord> {
    let mut parts = Parts::of(reply)?;
    let mut head = versioned(parts.next()?.bytes()?)?;
    let Fixed { run_id, session_id, context } = Fixed::of(parts.next()?)?;
    let new = NewRun { run_id, session_id, workflow: definition(parts.next()?)?, context, follows: None };
    let (status, cancel_requested) = (status(&RUN, head.byte()?)?, head.flag()?);
    let (fence, until, answers) = (head.number()?, head.signed()?, head.number()?);
    head.number()?;
    let mut record = RunRecord::new(new, time(&mut head)?);
    record.status = status;
    record.updated_at = time(&mut head)?;
    record.fence = fence;
    record.lease_until = (until >= 0).then(|| Timestamp::from_millis(until));
    record.answers = answers;
    record.cancel_requested = cancel_requested;
    record.reason = find_bytes(parts.next()?)?.map(|reason| Reply::Bytes(reason).text()).transpose()?;
    record.outcome = find_bytes(parts.next()?)?;
    Ok(record)
}

/// A run with what its response ended with.
pub(crate) fn run_with_response(reply: Reply) -> Reading<RunRecord> {
    let mut parts = reply.list()?;
    let response = if parts.len() > 5 { parts.remove(5) } else { Reply::Nil };
    let mut record = run(Reply::List(parts))?;
    record.response = find_bytes(response)?;
    Ok(record)
}

/// A piece of a run's output, if there is such a run: the run's head, whether its response is complete, the number of its last
/// chunk, chunks.
pub(crate) fn output(reply: Reply, after: u64) -> Reading<Option<ChunkPage>> {
    if is_absent(&reply) {
        return Ok(None);
    }
    let mut parts = Parts::of(reply)?;
    let status = status(&RUN, versioned(parts.next()?.bytes()?)?.byte()?)?;
    let response_completed = parts.next()? == Reply::Int(1);
    let last = parts.next()?.count()?;
    let chunks = parts.list()?.into_iter().map(Reply::bytes).collect::<Reading<Vec<_>>>()?;
    let mut page = ChunkPage::new(after, chunks, last, status);
    page.response_completed = response_completed;
    Ok(Some(page))
}

/// A question as scripts give it: its record, its rest, the fixed part of its run, its answer.
pub(crate) fn question(reply: Reply) -> Reading<InterruptRecord> {
    let mut parts = Parts::of(reply)?;
    let record = Record::of(parts.next()?)?;
    let (rest, fixed) = (parts.next()?.bytes()?, Fixed::of(parts.next()?)?);
    record.question(rest, fixed, find_bytes(parts.next()?)?)
}

pub(crate) fn questions(replies: Vec<Reply>) -> Reading<Vec<InterruptRecord>> {
    replies.into_iter().map(question).collect()
}

/// A question as `question.lua` gives it, if it is there: the run's parts among which it is, and the time; and what its locator
/// says, if that was read.
pub(crate) fn one_question(reply: Reply, id: &str) -> Reading<(Option<InterruptRecord>, Option<String>)> {
    let mut values = reply.list()?;
    let place = match values.get(7).cloned() {
        None | Some(Reply::Nil) => None,
        Some(place) => Some(place.text()?),
    };
    values.truncate(7);
    Ok((question_of(Parts::of(Reply::List(values))?, id)?, place))
}

fn question_of(mut parts: Parts, id: &str) -> Reading<Option<InterruptRecord>> {
    let Some(head) = find_bytes(parts.next()?)? else { return Ok(None) };
    versioned(head)?;
    let (fixed, live) = (parts.next()?, find_bytes(parts.next()?)?);
    let (rest, answer, moved) = (find_bytes(parts.next()?)?, find_bytes(parts.next()?)?, find_bytes(parts.next()?)?);
    let now = self::moment(parts.next()?)?;
    let Some(rest) = rest else { return Ok(None) };
    let mut records = Unpacker::of(moved.or(live).unwrap_or_default());
    while !records.is_empty() {
        let mut record = Record::read(&mut records)?;
        if record.request_id.as_str() == id {
            if record.status == InterruptStatus::Pending && record.expires <= now {
                record.status = InterruptStatus::Expired;
            }
            return record.question(rest, Fixed::of(fixed)?, answer).map(Some);
        }
    }
    Err(Damage::new("a question has no record"))
}

/// A receipt: a question's record, the fixed part of its run.
pub(crate) fn receipt(reply: Reply) -> Reading<Receipt> {
    let mut parts = Parts::of(reply)?;
    let record = Record::of(parts.next()?)?;
    Ok(record.receipt(&Fixed::of(parts.next()?)?.run_id))
}

pub(crate) fn answers(replies: Vec<Reply>) -> Reading<Vec<AnswerRecord>> {
    replies.into_iter().map(answer).collect()
}

/// An answer: its question's record, and what was said.
fn answer(reply: Reply) -> Reading<AnswerRecord> {
    let mut parts = Parts::of(reply)?;
    Ok(Record::of(parts.next()?)?.answer(parts.next()?.bytes()?))
}

/// A time in milliseconds.
pub(crate) fn moment(reply: Reply) -> Reading<Timestamp> {
    Ok(Timestamp::from_millis(reply.int()?))
}

pub(crate) fn claimed(reply: Reply) -> Reading<Claimed> {
    let mut parts = Parts::of(reply)?;
    let (fence, until) = (parts.next()?.count()?, moment(parts.next()?)?);
    let run = run(parts.next()?)?;
    let snapshot = snapshot::given(parts.next()?.bytes()?)?;
    let entries = parts.list()?.into_iter().map(Reply::bytes).collect::<Reading<_>>()?;
    let answers = answers(parts.list()?)?;
    let lease = Lease { run_id: run.run_id.clone(), fence, until };
    Ok(Claimed { lease, run, snapshot, entries, answers })
}

/// A question as the ordinary pause replies it: its record behind a letter; the caller has the rest.
pub(crate) fn saved(said: Bytes, rest: Bytes, fixed: Bytes) -> Reading<InterruptRecord> {
    let mut said = Unpacker::of(said);
    said.byte()?;
    Record::read(&mut said)?.question(rest, Fixed::of(Reply::Bytes(fixed))?, None)
}

/// What the ordinary answer replies: the run's parts and the question's record in one text, and the snapshot; the caller has
/// the answer.
pub(crate) fn granted(said: Bytes, snapshot: Bytes, answer: Bytes) -> Reading<(Receipt, Claimed)> {
    let mut said = Unpacker::of(said);
    said.byte()?;
    let lengths = [said.count()?, said.count()?, said.count()?];
    let mut parts = Vec::with_capacity(5);
    for length in lengths {
        parts.push(Reply::Bytes(said.raw(length)?));
    }
    parts.extend([Reply::Nil, Reply::Nil]);
    let (run, record) = (run(Reply::List(parts))?, Record::read(&mut said)?);
    let receipt = record.receipt(&run.run_id);
    let until = run.lease_until.ok_or_else(|| Damage::new("a run that was granted has no lease"))?;
    let lease = Lease { run_id: run.run_id.clone(), fence: run.fence, until };
    let snapshot = snapshot::given(snapshot)?;
    Ok((receipt, Claimed { lease, run, snapshot, entries: Vec::new(), answers: vec![record.answer(answer)] }))
}

#[cfg(test)]
mod tests {
    use crate::pack::Packer;

    use super::*;

    fn record(version: u8) -> Packer {
        let mut record = Packer::default();
        record.raw(&[version, 2, 1, 0, 0, 0]).number(3).number(1_000).number(500).number(9_000);
        record.raw(&[b'0'; 48]).id("human-1").id("token").bytes(b"a").bytes(b"=bob");
        record
    }

    fn said(record: Bytes) -> Reply {
        Reply::List(vec![Reply::Bytes(record), Reply::Bytes("yes".into())])
    }

    #[test]
    fn an_answer_reads_back() {
        let read = answers(vec![said(record(VERSION).take())]).unwrap().remove(0);
        assert_eq!((read.seq, read.ask.0.as_str(), read.at.as_millis()), (3, "a", 1_000));
        assert_eq!((read.actor.as_deref(), read.by_default, read.answer), (Some("bob"), false, "yes".into()));
    }

    #[test]
    fn a_row_of_another_format_is_refused_with_both_versions() {
        let damage = answers(vec![said(record(VERSION + 1).take())]).unwrap_err();
        assert_eq!(damage.0, "a row has format 3, this code knows 2");
        assert!(answers(vec![said(Bytes::new())]).is_err());
    }

    #[test]
    fn a_record_that_ends_too_early_is_refused_wherever_it_does() {
        let whole = record(VERSION).take();
        for length in 0..whole.len() {
            assert!(answers(vec![said(whole.slice(..length))]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_status_has_one_number_and_a_number_one_status() {
        for named in RUN {
            assert_eq!(status(&RUN, status_number(named)), Ok(named));
        }
        assert!(status(&RUN, 0).is_err() && status(&RUN, 8).is_err());
    }
}
