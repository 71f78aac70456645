//! Rows as scripts give them, read into records. Every row names the version of its format.

use std::{collections::BTreeMap, collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerRecord, AskKey, CheckpointRecord, Claimed, InterruptRecord, InterruptStatus, Lease, NewCheckpoint,
    NewInterrupt, NewRun, Receipt, RunRecord, RunStatus, Scalar, WorkflowPin,
};

use crate::{
    names::decode_scalar,
    reply::{Damage, Parts, Reading, Reply},
};

/// The version of rows that this code writes and reads.
const VERSION: &str = "1";

/// Fields by name.
struct Row(HashMap<Bytes, Bytes>);

impl Row {
    fn of(reply: Reply) -> Reading<Self> {
        let mut fields = HashMap::new();
        let mut parts = reply.list()?.into_iter();
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            fields.insert(name.bytes()?, value.bytes()?);
        }
        Ok(Self(fields))
    }

    /// A row whose format this code knows.
    fn versioned(reply: Reply) -> Reading<Self> {
        let row = Self::of(reply)?;
        match row.find_text("v")?.as_deref() {
            Some(VERSION) => Ok(row),
            Some(other) => Err(Damage::new(format!("a row has format {other}, this code knows {VERSION}"))),
            None => Err(Damage::new("a row does not say its format")),
        }
    }

    fn find(&self, name: &str) -> Option<Bytes> {
        self.0.get(name.as_bytes()).cloned()
    }

    fn bytes(&self, name: &str) -> Reading<Bytes> {
        self.find(name).ok_or_else(|| Damage::new(format!("a row lacks `{name}`")))
    }

    fn find_text(&self, name: &str) -> Reading<Option<String>> {
        let text = self.find(name).map(|bytes| String::from_utf8(bytes.into())).transpose();
        text.map_err(|_| Damage::new(format!("`{name}` of a row is not UTF-8")))
    }

    fn text(&self, name: &str) -> Reading<String> {
        self.find_text(name)?.ok_or_else(|| Damage::new(format!("a row lacks `{name}`")))
    }

    fn number(&self, name: &str) -> Reading<u64> {
        self.text(name)?.parse().map_err(|_| Damage::new(format!("`{name}` of a row is no number")))
    }

    fn time(&self, name: &str) -> Reading<Timestamp> {
        let millis = i64::try_from(self.number(name)?).unwrap_or(i64::MAX);
        Ok(Timestamp::from_millis(millis))
    }

    fn flag(&self, name: &str) -> bool {
        self.find(name).is_some_and(|value| value == "1")
    }

    fn parsed<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        parse(&self.text(name)?).ok_or_else(|| Damage::new(format!("`{name}` of a row does not read back")))
    }

    fn find_parsed<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<Option<T>> {
        if self.find(name).is_none() {
            return Ok(None);
        }
        self.parsed(name, parse).map(Some)
    }

    fn context(&self) -> Reading<BTreeMap<String, Scalar>> {
        let damaged = || Damage::new("a context does not read back");
        let texts: BTreeMap<String, String> = serde_json::from_slice(&self.bytes("ctx")?).map_err(|_| damaged())?;
        let pairs = texts.into_iter().map(|(key, value)| Some((key, decode_scalar(&value)?)));
        pairs.collect::<Option<_>>().ok_or_else(damaged)
    }

    fn texts(&self, name: &str) -> Reading<Vec<String>> {
        serde_json::from_slice(&self.bytes(name)?).map_err(|_| Damage::new(format!("`{name}` does not read back")))
    }
}

/// Whether a row is one of something that is not there.
pub(crate) fn is_absent(reply: &Reply) -> bool {
    matches!(reply, Reply::Nil) || matches!(reply, Reply::List(parts) if parts.is_empty())
}

pub(crate) fn run(reply: Reply) -> Reading<RunRecord> {
    let row = Row::versioned(reply)?;
    let new = NewRun {
        run_id: row.parsed("id", |text| RunId::new(text).ok())?,
        session_id: row.parsed("session", |text| SessionId::new(text).ok())?,
        workflow: WorkflowPin {
            id: row.text("wid")?.into(),
            version: row.text("wver")?.into(),
            fingerprint: row.text("wfp")?.into(),
        },
        context: row.context()?,
    };
    let mut record = RunRecord::new(new, row.time("created")?);
    record.status = row.parsed("status", RunStatus::parse)?;
    record.updated_at = row.time("updated")?;
    record.fence = row.number("fence")?;
    record.lease_until = if row.bytes("until")?.is_empty() { None } else { Some(row.time("until")?) };
    record.answers = row.number("answers")?;
    record.cancel_requested = row.flag("stop");
    record.outcome = row.find("outcome");
    record.reason = row.find_text("reason")?;
    Ok(record)
}

pub(crate) fn question(reply: Reply) -> Reading<InterruptRecord> {
    let row = Row::versioned(reply)?;
    let (created, expires) = (row.time("created")?, row.time("expires")?);
    let new = NewInterrupt {
        request_id: row.parsed("id", |text| RequestId::new(text).ok())?,
        token: row.parsed("token", |text| ResumeToken::parse(text).ok())?,
        ask: AskKey(row.text("ask")?),
        workflow: row.text("workflow")?,
        node: row.text("node")?,
        question: row.bytes("body")?,
        expires_in: Duration::ZERO,
        default: row.find("default"),
        optional_cancel: row.flag("opt"),
        after_response_completed: row.flag("after"),
    };
    let run_id = row.parsed("run", |text| RunId::new(text).ok())?;
    let session_id = row.parsed("session", |text| SessionId::new(text).ok())?;
    let mut record = InterruptRecord::new(new, run_id, session_id, Arc::new(row.context()?), created);
    record.expires_at = expires;
    record.status = row.parsed("status", InterruptStatus::parse)?;
    record.answer = row.find("answer");
    if row.find("seq").is_some() && !row.flag("bydef") {
        record.receipt = Some(receipt_of(&row)?);
    }
    Ok(record)
}

pub(crate) fn questions(replies: Vec<Reply>) -> Reading<Vec<InterruptRecord>> {
    replies.into_iter().map(question).collect()
}

pub(crate) fn receipt(reply: Reply) -> Reading<Receipt> {
    receipt_of(&Row::of(reply)?)
}

fn receipt_of(row: &Row) -> Reading<Receipt> {
    Ok(Receipt {
        request_id: row.parsed("id", |text| RequestId::new(text).ok())?,
        run_id: row.parsed("run", |text| RunId::new(text).ok())?,
        seq: row.number("seq")?,
        at: row.time("at")?,
        actor: row.find_text("actor")?,
    })
}

pub(crate) fn answers(replies: Vec<Reply>) -> Reading<Vec<AnswerRecord>> {
    replies.into_iter().map(answer).collect()
}

fn answer(reply: Reply) -> Reading<AnswerRecord> {
    let row = Row::versioned(reply)?;
    Ok(AnswerRecord {
        seq: row.number("seq")?,
        request_id: row.parsed("id", |text| RequestId::new(text).ok())?,
        ask: AskKey(row.text("ask")?),
        answer: row.bytes("answer")?,
        at: row.time("at")?,
        actor: row.find_text("actor")?,
        by_default: row.flag("bydef"),
    })
}

/// A time in milliseconds.
pub(crate) fn time(reply: Reply) -> Reading<Timestamp> {
    Ok(Timestamp::from_millis(reply.int()?))
}

pub(crate) fn claimed(reply: Reply) -> Reading<Claimed> {
    let mut parts = Parts::of(reply)?;
    let mut lease = Parts::of(parts.next()?)?;
    let (fence, until) = (lease.next()?.count()?, time(lease.next()?)?);
    let run = run(parts.next()?)?;
    let snapshot = parts.next()?.bytes()?;
    let entries = parts.list()?.into_iter().map(Reply::bytes).collect::<Reading<_>>()?;
    let answers = answers(parts.list()?)?;
    let lease = Lease { run_id: run.run_id.clone(), fence, until };
    Ok(Claimed { lease, run, snapshot, entries, answers })
}

pub(crate) fn checkpoint(reply: Reply) -> Reading<CheckpointRecord> {
    let mut parts = Parts::of(reply)?;
    let row = Row::of(parts.next()?)?;
    let checkpoint_id = |text: &str| CheckpointId::new(text).ok();
    let new = NewCheckpoint {
        id: row.parsed("id", checkpoint_id)?,
        label: row.find_text("label")?,
        nodes: row.texts("nodes")?,
        workflow: row.text("workflow")?,
        workflow_version: row.find_text("version")?,
        state: row.bytes("state")?,
        structured_stream_ids: row.texts("streams")?,
    };
    let session_id = row.parsed("session", |text| SessionId::new(text).ok())?;
    let mut record = CheckpointRecord::new(new, session_id, row.number("turn")?, row.time("created")?);
    record.parent = row.find_parsed("parent", checkpoint_id)?;
    record.parent_session = row.find_parsed("psession", |text| SessionId::new(text).ok())?;
    record.forked_from = row.find_parsed("forked", checkpoint_id)?;
    record.run_id = row.find_parsed("run", |text| RunId::new(text).ok())?;
    record.snapshot = row.find("snapshot");
    record.interrupts = questions(parts.list()?)?;
    Ok(record)
}

pub(crate) fn checkpoints(replies: Vec<Reply>) -> Reading<Vec<CheckpointRecord>> {
    replies.into_iter().map(checkpoint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[(&str, &str)]) -> Reply {
        let parts = fields.iter().flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]);
        Reply::List(parts.map(|part| Reply::Bytes(part.into())).collect())
    }

    const ANSWER: [(&str, &str); 6] =
        [("v", "1"), ("id", "human-1"), ("ask", "a"), ("answer", "yes"), ("seq", "3"), ("at", "1000")];

    #[test]
    fn an_answer_reads_back() {
        let read = answers(vec![row(&ANSWER)]).unwrap().remove(0);
        assert_eq!((read.seq, read.ask.0.as_str(), read.at.as_millis()), (3, "a", 1_000));
        assert_eq!((read.actor, read.by_default), (None, false));
    }

    #[test]
    fn a_row_of_another_format_is_refused_with_both_versions() {
        let mut newer = ANSWER;
        newer[0].1 = "2";
        let damage = answers(vec![row(&newer)]).unwrap_err();
        assert_eq!(damage.0, "a row has format 2, this code knows 1");
        assert!(answers(vec![row(&ANSWER[1..])]).is_err());
    }

    #[test]
    fn a_row_without_a_field_names_it() {
        assert_eq!(answers(vec![row(&ANSWER[..4])]).unwrap_err().0, "a row lacks `seq`");
    }
}
