//! Streams and buffered responses, read strictly: the grammar of a turn and of a run that is followed.

use serde_json::Value;

use crate::{
    broken::{Broken, Doing as _, holds},
    client::Open,
};

/// An open question, as its client knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) request_id: String,
    pub(crate) token: String,
}

/// What a turn said.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) text: String,
    /// Whole messages.
    pub(crate) messages: Vec<String>,
    pub(crate) questions: Vec<Question>,
    pub(crate) checkpoints: usize,
    /// The code of its failure.
    pub(crate) failure: Option<String>,
    /// The data of its end.
    pub(crate) done: Value,
    /// How far in the order of a turn it has come.
    place: u8,
}

impl Turn {
    /// Reads a stream to its end, which is `[DONE]`.
    pub(crate) async fn streamed(mut open: Open) -> Result<Self, Broken> {
        let mut turn = Self::default();
        let mut is_done = false;
        while let Some(frame) = open.frame().await? {
            if frame == ": " {
                continue;
            }
            holds(!is_done, || format!("after the end: {frame}"))?;
            let data = frame.strip_prefix("data: ").doing("finding the data of a frame")?;
            is_done = data == "[DONE]";
            if !is_done {
                turn.hear(&serde_json::from_str(data).doing("reading a chunk")?)?;
            }
        }
        holds(is_done && turn.place == DONE, || format!("the stream is cut off: {turn:?}"))?;
        Ok(turn)
    }

    /// Reads a buffered response.
    pub(crate) async fn buffered(open: Open) -> Result<Self, Broken> {
        let whole = open.json(200).await?;
        let mut turn = Self::default();
        for chunk in whole["chunks"].as_array().doing("finding chunks")? {
            turn.hear(chunk)?;
        }
        holds(turn.place == DONE && whole["text"] == *turn.text, || format!("the response does not fit: {whole}"))?;
        Ok(turn)
    }

    /// A chunk, in its place: nothing comes after what follows it.
    fn hear(&mut self, chunk: &Value) -> Result<(), Broken> {
        let place = match text(chunk, "type")? {
            "session" => SESSION,
            "text-delta" | "message" => TEXT,
            "interrupt" => QUESTION,
            "checkpoint" | "error" => CHECKPOINT,
            "done" => DONE,
            other => return Err(format!("a chunk is `{other}`: {chunk}")),
        };
        let is_alone = [SESSION, CHECKPOINT, DONE].contains(&place);
        let is_in_order = if is_alone { place > self.place } else { place >= self.place && self.place > 0 };
        holds(is_in_order, || format!("out of order, after {}: {chunk}", self.place))?;
        self.place = place;
        match place {
            TEXT if chunk["type"] == "message" => self.messages.push(text(chunk, "content")?.to_owned()),
            TEXT => self.text.push_str(text(chunk, "delta")?),
            QUESTION => self.questions.push(question(chunk)?),
            CHECKPOINT if chunk["type"] == "error" => {
                self.failure = Some(text(&chunk["failure"], "code")?.to_owned());
            }
            CHECKPOINT => self.checkpoints += 1,
            DONE => self.done = chunk["data"].clone(),
            _ => {}
        }
        Ok(())
    }
}

const SESSION: u8 = 1;
const TEXT: u8 = 2;
const QUESTION: u8 = 3;
const CHECKPOINT: u8 = 4;
const DONE: u8 = 5;

/// A run that is followed from its beginning.
pub(crate) struct Followed {
    open: Open,
    /// The number of the last chunk.
    last: u64,
    pub(crate) text: String,
}

/// What somebody who follows a run waits for.
#[derive(Debug)]
pub(crate) enum Stand {
    /// A question.
    Asks(Question),
    /// The end, with the data of `done`.
    Ended(Value),
}

impl Followed {
    pub(crate) fn new(open: Open) -> Result<Self, Broken> {
        holds(open.status == 200, || format!("following a run: status {}", open.status))?;
        Ok(Self { open, last: 0, text: String::new() })
    }

    /// Reads on to the next question, or to the end. Chunks must be numbered without gaps.
    pub(crate) async fn next(&mut self) -> Result<Stand, Broken> {
        loop {
            let frame = self.open.frame().await?.doing("following a run to its end")?;
            if frame == ": " {
                continue;
            }
            let mut data = &*frame;
            if let Some((number, rest)) = frame.strip_prefix("id: ").and_then(|rest| rest.split_once('\n')) {
                let number: u64 = number.parse().doing("reading a number")?;
                holds(number == self.last + 1, || format!("chunk {number} comes after {}", self.last))?;
                (self.last, data) = (number, rest);
            }
            let data = data.strip_prefix("data: ").doing("finding the data of a frame")?;
            let chunk: Value = serde_json::from_str(data).doing("reading a chunk")?;
            match text(&chunk, "type")? {
                "session" => {}
                "text-delta" => self.text.push_str(text(&chunk, "delta")?),
                "interrupt" => return Ok(Stand::Asks(question(&chunk)?)),
                "done" => {
                    let last = self.open.frame().await?;
                    holds(last.as_deref() == Some("data: [DONE]"), || format!("after `done`: {last:?}"))?;
                    return Ok(Stand::Ended(chunk["data"].clone()));
                }
                _ => return Err(format!("a run that is followed says {chunk}")),
            }
        }
    }
}

fn question(chunk: &Value) -> Result<Question, Broken> {
    let (request_id, token) = (text(chunk, "requestId")?.to_owned(), text(chunk, "resumeToken")?.to_owned());
    Ok(Question { request_id, token })
}

/// The text in a field.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, Broken> {
    value[field].as_str().ok_or_else(|| format!("no text at `{field}`: {value}"))
}
