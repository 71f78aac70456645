//! Somebody who means well, meanwhile.

use std::net::SocketAddr;

use serde_json::json;

use crate::{
    broken::{Broken, holds},
    client::{get, post},
    turn::Turn,
};

/// Begins a chat, is asked, answers, and finds the question closed.
pub(crate) async fn visit(address: SocketAddr, number: u64) -> Result<(), Broken> {
    let session = format!("honest{number}");
    let hello = json!({"sessionId": session, "workflowId": "wait", "messages": [{"role": "user", "content": "x"}]});
    let first = Turn::streamed(post(address, "/chat", &hello).await?).await?;
    holds(first.questions.len() == 1, || format!("nothing is asked: {first:?}"))?;
    let id = &first.questions[0].request_id;
    let body = json!({"response": {"type": "text", "text": "yes"}});
    let result = post(address, &format!("/interrupts/{id}/answer"), &body).await?.json(200).await?;
    holds(result["status"] == "completed", || format!("it should be complete: {result}"))?;
    let found = get(address, &format!("/interrupts/{id}")).await?.json(200).await?;
    holds(found["status"] == "answered", || format!("it should be answered: {found}"))
}
