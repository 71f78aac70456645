//! Who may see what: the authoriser's word counts, and what is another's is unknown.

use axum::Router;
use kortyx_http::{AllowLocal, Http};
use serde_json::{Value, json};

use crate::{
    client::Call,
    execute::execute,
    world::{Plan, Site},
};

fn hello() -> Value {
    json!({"messages": [{"role": "user", "content": "Hello"}]})
}

#[tokio::test]
async fn a_caller_whom_the_authoriser_refuses_gets_nowhere() {
    let site = Site::start().await;
    let routes = [
        ("POST", "/chat"),
        ("POST", "/execute"),
        ("POST", "/resume"),
        ("GET", "/interrupts"),
        ("GET", "/interrupts/human-1"),
        ("POST", "/interrupts/human-1/answer"),
    ];
    for (method, path) in routes {
        for (tenant, status) in [("", 401), ("banned", 403), ("broken", 503)] {
            let reply = Call::new(site.address, method, path).header("x-tenant", tenant).body("not read").send().await;
            assert_eq!(reply.refusal(), (status, "INVALID_REQUEST".to_owned()), "{method} {path} {tenant}");
            assert_eq!(reply.headers.contains_key("www-authenticate"), status == 401);
        }
    }
}

#[tokio::test]
async fn a_scope_that_restricts_nothing_may_chat_but_not_look_around() {
    let site = Site::start().await;
    let run = execute(&site, "review").await["runId"].as_str().unwrap().to_owned();
    let as_nobody = |call: Call| call.header("x-tenant", "nobody");
    assert_eq!(as_nobody(Call::post(site.address, "/chat", &hello())).send().await.status, 200);
    let answer = json!({"response": {"type": "cancel"}});
    for call in [
        Call::get(site.address, "/interrupts"),
        Call::get(site.address, "/interrupts?sessionId=s1"),
        Call::get(site.address, &format!("/interrupts?runId={run}")),
        Call::get(site.address, "/interrupts?context.tenant=acme"),
        Call::get(site.address, "/interrupts/human-1"),
        Call::post(site.address, "/interrupts/human-1/answer", &answer),
    ] {
        assert_eq!(as_nobody(call).send().await.refusal(), (403, "SCOPE_REQUIRED".to_owned()));
    }
}

#[tokio::test]
async fn what_is_another_tenants_cannot_be_told_from_what_is_not_there() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let id = asked["interrupt"]["requestId"].as_str().unwrap();
    let nothing = "human-00000000-0000-4000-8000-000000000000";
    let spy = |call: Call| call.header("x-tenant", "spy");
    let approve = json!({"type": "select", "ids": ["approve"]});
    let mut forged = asked["resume"].clone();
    forged["token"] = "x".repeat(64).into();
    let pairs = [
        (
            Call::get(site.address, &format!("/interrupts/{id}")),
            Call::get(site.address, &format!("/interrupts/{nothing}")),
        ),
        (
            Call::post(site.address, &format!("/interrupts/{id}/answer"), &json!({"response": approve})),
            Call::post(site.address, &format!("/interrupts/{nothing}/answer"), &json!({"response": approve})),
        ),
        (
            Call::post(site.address, "/resume", &json!({"resume": asked["resume"], "response": approve})),
            Call::post(site.address, "/resume", &json!({"resume": forged, "response": approve})),
        ),
    ];
    for (theirs, none) in pairs {
        let (theirs, none) = (spy(theirs).send().await, spy(none).send().await);
        assert_eq!(theirs.refusal(), (404, "NOT_FOUND".to_owned()));
        assert_eq!((theirs.status, theirs.body), (none.status, none.body));
    }
    for query in ["", "?sessionId=s1", "?context.tenant=acme"] {
        let listed = spy(Call::get(site.address, &format!("/interrupts{query}"))).send().await.json();
        assert_eq!(listed, json!({"interrupts": []}), "{query}");
    }
    let done = Call::post(site.address, "/resume", &json!({"resume": asked["resume"], "response": approve}));
    assert_eq!(done.send().await.json()["status"], "completed", "nothing was consumed");
}

#[tokio::test]
async fn a_session_of_the_scope_is_that_of_the_request_or_the_request_is_refused() {
    let site = Site::start().await;
    let mine = |call: Call| call.header("x-session", "s9");
    let chunks = mine(Call::post(site.address, "/chat", &hello())).send().await.chunks();
    assert_eq!(chunks[0]["sessionId"], "s9");
    let body = json!({"workflow": "review", "input": 1});
    let ran = mine(Call::post(site.address, "/execute", &body)).send().await.json();
    assert_eq!(ran["sessionId"], "s9");

    let foreign = execute(&site, "review").await;
    let mut chat = hello();
    chat["sessionId"] = "s1".into();
    let execution = json!({"workflow": "review", "input": 1, "sessionId": "s1"});
    let answer = json!({"resume": foreign["resume"], "response": {"type": "cancel"}});
    for call in [
        Call::post(site.address, "/chat", &chat),
        Call::post(site.address, "/execute", &execution),
        Call::post(site.address, "/resume", &answer),
        Call::get(site.address, "/interrupts?sessionId=s1"),
        Call::get(site.address, &format!("/interrupts/{}", foreign["resume"]["requestId"].as_str().unwrap())),
    ] {
        assert_eq!(mine(call).send().await.refusal(), (404, "NOT_FOUND".to_owned()));
    }
    let listed = mine(Call::get(site.address, "/interrupts")).send().await.json();
    assert_eq!(listed["interrupts"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_applications_context_wins_over_the_clients() {
    let site = Site::start().await;
    let body = json!({"workflow": "echo", "input": 1, "context": {"tenant": "other", "page": 7}});
    let ran = Call::post(site.address, "/execute", &body).send().await.json();
    assert_eq!(ran["data"]["context"], json!({"tenant": "acme", "page": 7}));
    let mut chat = hello();
    chat["workflowId"] = "echo".into();
    chat["context"] = json!({"tenant": "other"});
    let chunks = Call::post(site.address, "/chat", &chat).send().await.chunks();
    assert_eq!(chunks.last().unwrap()["data"]["data"]["context"], json!({"tenant": "acme"}));
}

#[tokio::test]
async fn development_lets_in_this_machine_and_no_page_of_the_web() {
    let plan = Plan::new();
    let http = Http::new(plan.agent().build().await.unwrap(), AllowLocal::new());
    let app = Router::new().nest("/api", http.router());
    let site = plan.serve(http, app).await;
    let chat = || Call::post(site.address, "/api/chat", &hello());
    assert_eq!(chat().send().await.status, 200);
    let listed = Call::get(site.address, "/api/interrupts").send().await.json();
    assert_eq!(listed["interrupts"].as_array().unwrap().len(), 1);
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(chat().header(name, value).send().await.refusal().0, 403, "{name}");
    }
}
