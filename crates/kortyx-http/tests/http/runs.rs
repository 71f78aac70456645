//! Following a run, from any place on.

use kortyx_protocol::SseReader;
use serde_json::{Value, json};

use crate::{
    client::{Call, Open},
    world::{Plan, Site},
};

/// Plays a turn that asks. Its run, and its question.
async fn asked(site: &Site) -> (String, Value) {
    let messages = json!([{"role": "user", "content": "x"}]);
    let body = json!({"sessionId": "s1", "workflowId": "talk", "messages": messages});
    let reply = Call::post(site.address, "/chat", &body).send().await;
    let run_id = reply.headers["kortyx-run-id"].to_str().unwrap().to_owned();
    let question = reply.chunks().into_iter().find(|chunk| chunk["type"] == "interrupt").unwrap();
    (run_id, question)
}

async fn answer(site: &Site, question: &Value) {
    let path = format!("/interrupts/{}/answer", question["requestId"].as_str().unwrap());
    let body = json!({"response": {"type": "text", "text": "Ann"}});
    assert_eq!(Call::post(site.address, &path, &body).send().await.status, 200);
}

fn follow(site: &Site, run_id: &str, after: &str) -> Call {
    Call::get(site.address, &format!("/runs/{run_id}/stream{after}"))
}

/// What frames hold, as `id:type`.
fn shown(frames: &[String]) -> Vec<String> {
    let shown = |frame: &String| {
        if frame == "data: [DONE]" {
            return "[DONE]".to_owned();
        }
        let (id, data) = frame.split_once('\n').map_or(("-", frame.as_str()), |(id, data)| (&id["id: ".len()..], data));
        let chunk: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        format!("{id}:{}", chunk["type"].as_str().unwrap())
    };
    frames.iter().map(shown).collect()
}

async fn frames(open: &mut Open, count: usize) -> Vec<String> {
    let mut frames = Vec::new();
    while frames.len() < count {
        frames.push(open.frame().await.unwrap());
    }
    frames
}

#[tokio::test]
async fn a_run_is_followed_across_its_pause_and_from_where_the_client_was() {
    let site = Site::start().await;
    let (run_id, question) = asked(&site).await;
    let mut early = follow(&site, &run_id, "").open().await;
    assert_eq!((early.status, &early.headers["content-type"]), (200, &"text/event-stream".parse().unwrap()));
    assert_eq!(shown(&frames(&mut early, 3).await), ["-:session", "1:text-delta", "-:interrupt"]);

    answer(&site, &question).await;

    assert_eq!(shown(&early.rest().await), ["2:message", "-:done", "[DONE]"]);
    let after = follow(&site, &run_id, "?after=1").open().await.rest().await;
    assert_eq!(shown(&after), ["-:session", "2:message", "-:done", "[DONE]"]);
    let again = follow(&site, &run_id, "?after=0").header("last-event-id", "2").open().await.rest().await;
    assert_eq!(shown(&again), ["-:session", "-:done", "[DONE]"]);
    let whole = follow(&site, &run_id, "").send().await;
    let (mut reader, mut events) = (SseReader::new(), Vec::new());
    events.extend(reader.push(&whole.body).into_iter().map(Result::unwrap));
    assert_eq!(events.len(), 5, "a reader of server-sent events takes every frame");
}

#[tokio::test]
async fn whoever_may_not_see_a_run_is_told_that_there_is_none() {
    let site = Site::start().await;
    let (run_id, _) = asked(&site).await;
    let unknown = (404, "NOT_FOUND".to_owned());
    assert_eq!(follow(&site, &run_id, "").header("x-tenant", "other").send().await.refusal(), unknown);
    assert_eq!(follow(&site, &run_id, "").header("x-session", "s2").send().await.refusal(), unknown);
    assert_eq!(follow(&site, "run-none", "").send().await.refusal(), unknown);
    let nobody = follow(&site, &run_id, "").header("x-tenant", "nobody").send().await;
    assert_eq!(nobody.refusal(), (403, "SCOPE_REQUIRED".to_owned()));
    let nameless = follow(&site, &run_id, "").header("x-tenant", "").send().await;
    assert_eq!(nameless.status, 401);
}

#[tokio::test]
async fn a_buffered_turn_that_says_too_much_goes_on_and_can_be_followed() {
    let mut plan = Plan::new();
    plan.limits.buffered_bytes = 100;
    let site = plan.start().await;
    let messages = json!([{"role": "user", "content": "x"}]);
    let body = json!({"sessionId": "s1", "workflowId": "talk", "stream": false, "messages": messages});
    let reply = Call::post(site.address, "/chat", &body).send().await;
    assert_eq!(reply.refusal(), (500, "LIMIT_REACHED".to_owned()));
    let run_id = reply.json()["failure"]["details"]["runId"].as_str().unwrap().to_owned();
    assert_eq!(reply.headers["kortyx-run-id"], run_id.as_str());

    let mut open = follow(&site, &run_id, "").open().await;
    let frames = frames(&mut open, 3).await;

    assert_eq!(shown(&frames), ["-:session", "1:text-delta", "-:interrupt"]);
    let question: Value = serde_json::from_str(frames[2].strip_prefix("data: ").unwrap()).unwrap();
    answer(&site, &question).await;
    assert_eq!(shown(&open.rest().await), ["2:message", "-:done", "[DONE]"]);
}

#[tokio::test]
async fn a_place_that_is_no_number_is_refused() {
    let site = Site::start().await;
    let (run_id, _) = asked(&site).await;
    let malformed = (400, "INVALID_REQUEST".to_owned());
    for after in ["?after=x", "?after=-1", "?after=", "?after=99999999999999999999"] {
        assert_eq!(follow(&site, &run_id, after).send().await.refusal(), malformed);
        let again = follow(&site, &run_id, after).header("last-event-id", "1").send().await;
        assert_eq!(again.refusal(), malformed, "whichever counts");
    }
    let header = follow(&site, &run_id, "").header("last-event-id", "cp-1").send().await;
    assert_eq!(header.refusal(), malformed);
}

#[tokio::test]
async fn followers_count_as_streams_of_their_session_and_end_with_the_server() {
    let mut plan = Plan::new();
    plan.limits.streams_per_session = 1;
    let mut site = plan.start().await;
    let (run_id, _) = asked(&site).await;
    let mut open = follow(&site, &run_id, "?after=1").open().await;
    assert_eq!(shown(&frames(&mut open, 2).await), ["-:session", "-:interrupt"]);
    assert_eq!(follow(&site, &run_id, "").send().await.status, 429);
    site.signal();
    assert_eq!(shown(&open.rest().await), ["-:status", "-:done", "[DONE]"]);
    site.ended().await;
}
