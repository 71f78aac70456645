//! Things that are there before anybody asks, so that a client that guesses finds something.

use std::{collections::BTreeMap, time::Duration};

use kortyx::{
    ChatOptions, ExecuteOptions,
    http::{AnswerLink, Grant},
    protocol::{ChatMessage, RawJson, RequestId, ResumeHandle, SessionId},
    store::InterruptQuery,
};
use serde_json::{Value, json};

use super::{Site, links};

/// How long answer links live.
const LINK: Duration = Duration::from_mins(10);

/// The workflows that begin with a question.
const ASKING: [&str; 7] = ["choice", "multi", "text", "picker", "contract", "pair", "optional"];

/// Begins runs and a conversation of the tenant `acme`, and tells what is known of them: lists of ids by what they are ids of, and
/// the queries of answer links.
pub async fn seeds(site: &Site) -> Value {
    let mut questions = Vec::new();
    for workflow in ASKING {
        questions.push(asked(site, workflow).await.request_id);
    }
    let session = SessionId::new("seed").unwrap();
    let scope = Grant::new().tenant("tenant", "acme").scope;
    for workflow in ["writer", "choice", "writer"] {
        let mut options = ChatOptions::new().session(session.clone()).within(scope.clone());
        options.workflow_id = Some(workflow.to_owned());
        options.context.insert("tenant".to_owned(), "acme".into());
        site.agent.stream_chat(vec![ChatMessage::user("Hello")], options).collect().await;
    }
    let checkpoints = site.agent.list_checkpoints(&session, Some(&scope)).await.unwrap();
    let spoken = site.agent.get_checkpoint(&checkpoints[1].id, Some(&scope)).await.unwrap().unwrap();
    let expires = site.agent.store().now().await.unwrap().saturating_add(LINK);
    let page = InterruptQuery { scope, limit: 2, ..InterruptQuery::default() };
    let cursor = site.agent.list_interrupts(page).await.unwrap().next_cursor;
    let handle = asked(site, "choice").await;
    // What one answers, the other could not show.
    let (shown, linked) = (asked(site, "choice").await.request_id, asked(site, "choice").await.request_id);
    let signed = |id: &RequestId| (id.to_string(), query(&AnswerLink::new(id.clone(), expires).choice("approve")));
    let signed = BTreeMap::from([signed(&shown), signed(&linked)]);
    let checkpoints: Vec<_> = checkpoints.into_iter().map(|checkpoint| checkpoint.id).collect();
    let workflows = [&ASKING[..], &["writer", "domain", "broken"]].concat();
    json!({
        "questions": questions,
        "options": ["approve", "red", "7"],
        "runs": [spoken.run_id],
        "sessions": [session],
        "checkpoints": checkpoints,
        "workflows": workflows,
        "cursors": [cursor],
        "tokens": [handle.token],
        "asked": [handle.request_id],
        "asked-in": [handle.session_id],
        "asked-by": [handle.run_id],
        "shown": [shown],
        "linked": [linked],
        "links": signed,
    })
}

/// The query of a link, which needs no decoding.
fn query(link: &AnswerLink) -> BTreeMap<String, String> {
    let link = links().answer_link(link);
    let pairs = link.split_once('?').unwrap().1.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The question that a workflow begins with.
async fn asked(site: &Site, workflow: &str) -> ResumeHandle {
    let mut options = ExecuteOptions::new();
    options.context.insert("tenant".to_owned(), "acme".into());
    let result = site.agent.execute_by_id(workflow, None, RawJson::null(), options).await.unwrap();
    result.interrupts()[0].resume.clone()
}
