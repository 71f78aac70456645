//! Every refusal has the same shape, and comes before anything ran.

use kortyx_orchestrator::WaitingPolicy;
use serde_json::{Value, json};

use crate::{
    client::Call,
    world::{Plan, Site},
};

fn hello() -> Value {
    json!({"sessionId": "s1", "messages": [{"role": "user", "content": "Hello"}]})
}

#[tokio::test]
async fn what_cannot_begin_is_refused_before_the_stream() {
    let plan = Plan::new();
    let agent = plan.agent().on_waiting(WaitingPolicy::Refuse).build().await.unwrap();
    let site = plan.start_with(agent).await;
    let chat = |body: Value| Call::post(site.address, "/chat", &body);
    let mut unknown = hello();
    unknown["workflowId"] = "no-such".into();
    assert_eq!(chat(unknown).send().await.refusal(), (404, "UNKNOWN_WORKFLOW".to_owned()));
    assert_eq!(chat(hello()).send().await.status, 200);
    assert_eq!(chat(hello()).send().await.refusal(), (409, "CONFLICT".to_owned()));
}

#[tokio::test]
async fn malformed_bodies_of_every_kind_are_refused() {
    let mut plan = Plan::new();
    plan.limits.request.body_bytes = 2_000;
    plan.limits.request.messages = 3;
    plan.limits.request.metadata_depth = 4;
    let site = plan.start().await;
    let message = r#"{"role":"user","content":"x"}"#;
    let deep = format!(r#"{{"role":"user","content":"x","metadata":{{"a":{}{}}}}}"#, "[".repeat(8), "]".repeat(8));
    let bodies: Vec<(Vec<u8>, u16)> = vec![
        (b"".to_vec(), 400),
        (b"{".to_vec(), 400),
        (b"null".to_vec(), 400),
        (b"[]".to_vec(), 400),
        (b"\xff\xfe{}".to_vec(), 400),
        (b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}".to_vec(), 400),
        (br#"{"messages":[]}"#.to_vec(), 400),
        (br#"{"messages":[{"role":"robot","content":"x"}]}"#.to_vec(), 400),
        (br#"{"messages":[{"role":"user","content":"x","extra":1}]}"#.to_vec(), 400),
        (br#"{"messages":[{"role":"user","content":7}]}"#.to_vec(), 400),
        (br#"{"messages":[{"role":"user","content":"x","metadata":{"n":18446744073709551616}}]}"#.to_vec(), 400),
        (format!(r#"{{"messages":[{message}],"clientTurnId":"{}"}}"#, "x".repeat(129)).into_bytes(), 400),
        (format!(r#"{{"messages":[{message}]}} trailing"#).into_bytes(), 400),
        (format!(r#"{{"messages":[{message},{message},{message},{message}]}}"#).into_bytes(), 413),
        (format!(r#"{{"messages":[{deep}]}}"#).into_bytes(), 413),
        ("[".repeat(1_000).into_bytes(), 400),
        (vec![b' '; 2_001], 413),
    ];
    for (body, status) in bodies {
        let reply = Call::new(site.address, "POST", "/chat").body(body.clone()).send().await;
        let code = if status == 400 { "INVALID_REQUEST" } else { "PAYLOAD_TOO_LARGE" };
        assert_eq!(reply.refusal(), (status, code.to_owned()), "{}", String::from_utf8_lossy(&body));
    }
    let text = Call::post(site.address, "/chat", &hello()).header("content-type", "text/plain").send().await;
    assert_eq!(text.status, 200, "the type of the body does not matter");
}

#[tokio::test]
async fn addresses_methods_and_encodings_that_are_not_there_have_the_same_shape() {
    let site = Site::start().await;
    for path in ["/", "/chat/x", "/interrupts/human-1/answer/x", "/..%2fchat"] {
        assert_eq!(Call::get(site.address, path).send().await.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
    for (method, path, allow) in [
        ("GET", "/chat", "OPTIONS, POST"),
        ("DELETE", "/execute", "OPTIONS, POST"),
        ("PUT", "/resume", "OPTIONS, POST"),
        ("POST", "/interrupts", "OPTIONS, GET, HEAD"),
        ("PURGE", "/interrupts/human-1", "OPTIONS, GET, HEAD"),
        ("GET", "/interrupts/human-1/answer", "OPTIONS, POST"),
        ("POST", "/health/live", "OPTIONS, GET, HEAD"),
    ] {
        let reply = Call::new(site.address, method, path).send().await;
        assert_eq!(reply.refusal(), (405, "INVALID_REQUEST".to_owned()), "{method} {path}");
        assert_eq!(reply.headers["allow"], allow);
        let options = Call::new(site.address, "OPTIONS", path).send().await;
        assert_eq!((options.status, options.headers["allow"].to_str().unwrap()), (204, allow));
    }
    let packed = Call::post(site.address, "/chat", &hello()).header("content-encoding", "gzip").send().await;
    assert_eq!(packed.refusal(), (415, "INVALID_REQUEST".to_owned()));
    let head = Call::new(site.address, "HEAD", "/chat").send().await;
    assert_eq!((head.status, head.body.len()), (405, 0));
    let head = Call::new(site.address, "HEAD", "/health/live").send().await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn health_tells_whether_the_store_is_there_and_asks_nobody() {
    let site = Site::start().await;
    let probe = |path| Call::get(site.address, path).header("x-tenant", "");
    assert_eq!(probe("/health/live").send().await.status, 200);
    assert_eq!(probe("/health/ready").send().await.json(), json!({"status": "ok"}));
    kortyx_store::Store::close(&*site.store).await;
    assert_eq!(probe("/health/live").send().await.status, 200);
    // The store in memory keeps time also when closed, or does not; a failing one is told apart either way.
    let ready = probe("/health/ready").send().await.status;
    assert_eq!(ready, if site.agent().store().now().await.is_ok() { 200 } else { 503 });
}
