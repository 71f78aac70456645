//! One chat, from its first message to its end, whose client trusts nothing.

use std::{net::SocketAddr, time::Duration};

use kortyx_load::{PIECES, ROUNDS};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    broken::{Broken, Doing as _, holds},
    client::{Open, get, post},
    turn::{Followed, Question, Stand, Turn, text},
};

/// How a client answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Streamed,
    Buffered,
    /// By the question's id, as an inbox does.
    ById,
    /// With the question's handle, on the route for executions.
    WithHandle,
    /// With a turn whose connection is lost as soon as the answer shows; the run is followed instead.
    Lost,
    /// Twice at once, with two answers of which one wins; and once more with the one that won.
    Raced,
}

const WAYS: [Way; 6] = [Way::Streamed, Way::Buffered, Way::ById, Way::WithHandle, Way::Lost, Way::Raced];

/// A chat under way.
struct Chat {
    address: SocketAddr,
    number: u64,
    way: Way,
    run_id: String,
    /// The answers that were accepted.
    answers: Vec<String>,
}

/// Plays one chat. The effects that it was told of.
pub(crate) async fn play(address: SocketAddr, number: u64) -> Result<Vec<u64>, Broken> {
    let way = WAYS[usize::try_from(number).unwrap() % WAYS.len()];
    let told = |broken: Broken| format!("chat {number}, {way:?}: {broken}");
    let open = post(address, "/chat", &json!({"sessionId": session(number), "messages": [message()]})).await;
    let open = open.map_err(told)?;
    let run_id = open.run_id.clone().unwrap_or_default();
    let mut chat = Chat { address, number, way, run_id, answers: Vec::new() };
    chat.play(open).await.map_err(told)
}

fn session(number: u64) -> String {
    format!("s{number}")
}

fn message() -> Value {
    json!({"role": "user", "content": "Hello"})
}

impl Chat {
    async fn play(&mut self, open: Open) -> Result<Vec<u64>, Broken> {
        let first = Turn::streamed(open).await?;
        self.check_turn(&first)?;
        let mut question = first.questions.first().cloned();
        while let Some(open) = question {
            self.think().await;
            question = self.answer(&open).await?;
        }
        holds(self.answers.len() == ROUNDS, || format!("it was asked {} times", self.answers.len()))?;
        self.check_whole().await
    }

    /// As people do, though faster; all chats differ.
    async fn think(&self) {
        let spread = (self.number * 7919 + self.answers.len() as u64 * 104_729) % 1_000;
        sleep(Duration::from_millis(500 + spread)).await;
    }

    /// Gives an answer. The next question, if there is one.
    async fn answer(&mut self, question: &Question) -> Result<Option<Question>, Broken> {
        let answer = format!("a{}.{}", self.number, self.answers.len());
        match self.way {
            Way::Raced => return self.race(question, answer).await,
            Way::Lost => return self.lose(question, answer).await,
            Way::ById => {
                let path = format!("/interrupts/{}/answer", question.request_id);
                let body = json!({"response": {"type": "text", "text": answer}});
                let result = post(self.address, &path, &body).await?.json(200).await?;
                self.answers.push(answer);
                return next_of(&result);
            }
            Way::WithHandle => {
                let result = post(self.address, "/resume", &self.with_handle(question, &answer)).await?;
                self.answers.push(answer);
                return next_of(&result.json(200).await?);
            }
            Way::Streamed | Way::Buffered => {}
        }
        let turn = self.turn(question, &answer).await?;
        self.answers.push(answer);
        self.check_turn(&turn)?;
        Ok(turn.questions.into_iter().next())
    }

    fn with_handle(&self, question: &Question, answer: &str) -> Value {
        let Question { request_id, token } = question;
        let handle = json!({
            "token": token, "requestId": request_id, "sessionId": session(self.number), "runId": self.run_id
        });
        json!({"resume": handle, "response": {"type": "text", "text": answer}})
    }

    /// A turn that answers.
    async fn open(&self, question: &Question, answer: &str) -> Result<Open, Broken> {
        let resume = json!({"token": question.token, "requestId": question.request_id, "text": answer});
        let message = json!({"role": "user", "content": answer, "metadata": {"resume": resume}});
        let is_streamed = self.way != Way::Buffered;
        let body = json!({"sessionId": session(self.number), "stream": is_streamed, "messages": [message]});
        post(self.address, "/chat", &body).await
    }

    async fn turn(&self, question: &Question, answer: &str) -> Result<Turn, Broken> {
        let open = self.open(question, answer).await?;
        if self.way == Way::Buffered { Turn::buffered(open).await } else { Turn::streamed(open).await }
    }

    async fn lose(&mut self, question: &Question, answer: String) -> Result<Option<Question>, Broken> {
        let mut open = self.open(question, &answer).await?;
        let shown = format!("<{answer}>");
        loop {
            let frame = open.frame().await?.doing("waiting for the answer to show")?;
            if frame.contains(&shown) {
                break;
            }
        }
        drop(open);
        self.answers.push(answer);
        let mut followed = self.follow().await?;
        loop {
            match followed.next().await? {
                Stand::Asks(next) if next.request_id != question.request_id => return Ok(Some(next)),
                Stand::Asks(_) => {}
                Stand::Ended(_) => return Ok(None),
            }
        }
    }

    async fn race(&mut self, question: &Question, answer: String) -> Result<Option<Question>, Broken> {
        let other = format!("{answer}-too");
        let (one, two) = tokio::join!(self.turn(question, &answer), self.turn(question, &other));
        let (one, two) = (one?, two?);
        let (won, lost, answer) = if one.failure.is_none() { (one, two, answer) } else { (two, one, other) };
        let is_refused = lost.failure.as_deref() == Some("INTERRUPT_ALREADY_RESOLVED");
        holds(won.failure.is_none() && is_refused, || format!("two answers: {won:?}, {lost:?}"))?;
        let again = self.turn(question, &answer).await?;
        let is_the_same = again.failure.is_none() && again.text.is_empty() && again.questions == won.questions;
        holds(is_the_same, || format!("the answer again: {again:?} instead of {won:?}"))?;
        self.answers.push(answer);
        self.check_turn(&won)?;
        Ok(won.questions.into_iter().next())
    }

    async fn follow(&self) -> Result<Followed, Broken> {
        Followed::new(get(self.address, &format!("/runs/{}/stream", self.run_id)).await?)
    }

    /// A turn says all that comes between two answers, asks once and leaves one checkpoint.
    fn check_turn(&self, turn: &Turn) -> Result<(), Broken> {
        let round = self.answers.len();
        let mut wanted = self.answers.last().map_or(String::new(), |answer| format!("<{answer}>"));
        if round < ROUNDS {
            wanted.push_str(&of_round(round));
        }
        let (said, _) = without_effects(&turn.text)?;
        let is_whole = said == wanted && turn.messages.is_empty() && turn.checkpoints == 1 && turn.failure.is_none();
        let is_asked = turn.questions.len() == usize::from(round < ROUNDS);
        holds(is_whole && is_asked, || format!("turn {round} should say {wanted}: {turn:?}"))
    }

    /// Follows the run from its beginning: nothing is missing, nothing is there twice, and every answer has arrived.
    async fn check_whole(&self) -> Result<Vec<u64>, Broken> {
        let mut followed = self.follow().await?;
        let done = match followed.next().await? {
            Stand::Ended(done) => done,
            Stand::Asks(question) => return Err(format!("still open at the end: {question:?}")),
        };
        holds(done["status"] == "completed" && done["data"]["answers"] == json!(self.answers), || {
            format!("{:?} were answered, and the run ends with {done}", self.answers)
        })?;
        let rounds: Vec<String> =
            self.answers.iter().enumerate().map(|(round, answer)| format!("{}<{answer}>", of_round(round))).collect();
        let wanted = rounds.concat();
        let (said, effects) = without_effects(&followed.text)?;
        holds(said == wanted && effects.len() == ROUNDS, || format!("{} instead of {wanted}", followed.text))?;
        Ok(effects)
    }
}

/// What the workflow says before a question, but for the number of its effect.
fn of_round(round: usize) -> String {
    let pieces: Vec<String> = (0..PIECES).map(|piece| format!("{round}.{piece} ")).collect();
    format!("[{round}]{}", pieces.concat())
}

/// Takes the numbers of effects out of a text.
fn without_effects(said: &str) -> Result<(String, Vec<u64>), Broken> {
    let (mut text, mut effects, mut rest) = (String::new(), Vec::new(), said);
    while let Some((before, (effect, after))) =
        rest.split_once(':').and_then(|(before, after)| Some((before, after.split_once(']')?)))
    {
        text.push_str(before);
        text.push(']');
        effects.push(effect.parse().doing("reading the number of an effect")?);
        rest = after;
    }
    text.push_str(rest);
    Ok((text, effects))
}

/// The question in the result of an execution.
fn next_of(result: &Value) -> Result<Option<Question>, Broken> {
    match text(result, "status")? {
        "completed" => Ok(None),
        "suspended" => {
            let handle = &result["resume"];
            let (request_id, token) = (text(handle, "requestId")?.to_owned(), text(handle, "token")?.to_owned());
            Ok(Some(Question { request_id, token }))
        }
        _ => Err(format!("it should wait or be complete: {result}")),
    }
}
