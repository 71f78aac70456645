//! What a model delivers: planned when it has written it, handed out when its turn has come.

use kortyx_protocol::StreamChunk;
use serde_json::Value;

use super::{
    Reasoning, Verdict,
    record::{Delivery, PassRecord, Plan, Planned},
    settle::{Settled, message},
    streams::{Last, Written},
};
use crate::{
    Delivered, ReasonError,
    output::{Streamed, Unfit},
    outputs::{Declared, delivery_of},
};

/// What a model is told that returns more than once in a turn: which one it means is not for us to guess.
pub(super) const RETURNED_TWICE: &str = "This turn returns more than once. Return once, with nothing after it.";

/// What a model is told of calls behind one that returned. No pass follows, so it is the caller who reads it.
pub(super) const AFTER_RETURN: &str = "The call comes after what was returned; it was not made.";

/// Why a return beside a call that waits does not count.
pub(super) const RETURNED_TOO_EARLY: &str =
    "A call before this one waits for a person, so nothing was returned. Read the answer, then return.";

/// Why a return behind a call that went wrong does not count.
pub(super) const RETURNED_REGARDLESS: &str =
    "A call before this one went wrong, so nothing was returned. Read what became of it, then return.";

/// Whether a tool ends the call.
pub(super) fn is_return(tool: &str) -> bool {
    delivery_of(tool).is_some_and(|(_, returns)| returns)
}

/// What is to be done about a call that delivers.
pub(super) fn delivery(contract: &Declared, written: Result<Written, String>) -> Plan {
    let Written { data, stream } = match written {
        Ok(written) => written,
        Err(why) => return Plan::Refuse { why },
    };
    let delivery = Delivery {
        contract: contract.info.name.to_owned(),
        schema_id: contract.info.schema_id.to_owned(),
        schema_version: contract.info.version.to_owned(),
        stream,
        data,
    };
    if contract.returns { Plan::Return(delivery) } else { Plan::Emit(delivery) }
}

impl<T> Reasoning<'_, T> {
    /// Hands out what was delivered. The client is told now, not when it was written: only what is recorded is final.
    pub(super) async fn deliver(&self, planned: &Planned, delivery: &Delivery) -> Result<Settled, ReasonError> {
        if let Some(stream) = &delivery.stream {
            let last = Last {
                stream,
                data_type: delivery.contract.as_str().into(),
                schema: Some((&delivery.schema_id, &delivery.schema_version)),
                data: delivery.data.clone(),
            };
            self.ctx.chunk(last.chunk(self.ctx)).await?;
        }
        let delivered = Delivered {
            contract: delivery.contract.clone(),
            schema_id: delivery.schema_id.clone(),
            schema_version: delivery.schema_version.clone(),
            call_id: planned.call.id.clone(),
            stream_id: delivery.stream.clone(),
            data: delivery.data.clone(),
        };
        Ok(Settled {
            message: message(planned, "Delivered.".into(), false),
            result: None,
            answered: None,
            delivered: Some(delivered),
        })
    }

    /// Takes back what a client was told of an output that does not count.
    pub(super) async fn take_back(&self, planned: &Planned) -> Result<(), ReasonError> {
        let (Plan::Emit(delivery) | Plan::Return(delivery)) = &planned.plan else { return Ok(()) };
        let was_told = self.reason.outputs.find(&planned.call.tool).is_some_and(Declared::has_fields);
        match &delivery.stream {
            Some(stream) if was_told => self.invalidate(stream).await,
            _ => Ok(()),
        }
    }

    async fn invalidate(&self, stream: &str) -> Result<(), ReasonError> {
        let stream_id = stream.into();
        Ok(self.ctx.chunk(StreamChunk::StructuredDataInvalidated { stream_id, checkpoint_id: None }).await?)
    }

    /// Judges a turn without calls, and tells the client what became of a final object that it saw being written.
    pub(super) async fn verdict(&mut self, record: &PassRecord) -> Result<Verdict<T>, ReasonError> {
        let verdict = self.judge(&record.text);
        match (&verdict, &self.reason.streamed, &record.stream) {
            (Ok(Verdict::Done(_)), Some(streamed), stream) => {
                let unnamed = stream.is_none().then(|| self.unnamed_stream());
                let last = Last {
                    stream: stream.as_deref().or(unnamed.as_deref()).unwrap_or_default(),
                    data_type: streamed.data_type.clone(),
                    schema: None,
                    data: self.streamed_value(streamed, &record.text).unwrap_or_default(),
                };
                self.ctx.chunk(last.chunk(self.ctx)).await?;
            }
            (_, _, Some(stream)) => self.invalidate(stream).await?,
            _ => {}
        }
        verdict
    }

    /// The stream of a final object whose pass was recorded by code that did not stream it.
    fn unnamed_stream(&self) -> String {
        self.ctx.idempotency_key(&format!("{}/output", self.scope)).chars().take(32).collect()
    }

    /// Whether this text of a turn without calls is what the call ends with.
    pub(super) fn is_final(&self, text: &str) -> bool {
        !self.has_yet_to_ask() && self.reason.outputs.endings().next().is_none() && self.fit(text).is_ok()
    }

    /// The final object in a text, read in the way in which it is streamed.
    pub(super) fn fit(&self, text: &str) -> Result<T, Unfit> {
        if let Some(streamed) = &self.reason.streamed {
            self.streamed_value(streamed, text)?;
        }
        (self.reason.output.read)(text)
    }

    fn streamed_value(&self, streamed: &Streamed, text: &str) -> Result<Value, Unfit> {
        let schema = self.reason.output_schema().ok().flatten().unwrap_or_default();
        let mut json = streamed.json(&schema);
        let read = json.push(text.as_bytes(), &mut Vec::new()).and_then(|()| json.finish());
        let value = read.map_err(|error| Unfit::NotJson(error.to_string()))?.to_value();
        value.map_err(|error| Unfit::NotJson(error.to_string()))
    }
}
