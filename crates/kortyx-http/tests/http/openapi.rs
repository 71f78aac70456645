//! The document tells the truth: its routes are there, and what they answer has its schemas.

use kortyx_http::{Http, Paths};
use serde_json::{Value, json};

use crate::{
    client::{Call, kinds},
    execute::execute,
    world::{Headers, Plan, Site},
};

async fn document(site: &Site) -> Value {
    Call::get(site.address, "/openapi.json").send().await.json()
}

/// Whether a value has a schema of the document.
fn check(document: &Value, pointer: &str, value: &Value) {
    let mut schema = json!({"$ref": format!("#{pointer}")});
    schema["components"] = document["components"].clone();
    schema["paths"] = document["paths"].clone();
    let validator = jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{pointer}: {error}"));
    let faults: Vec<_> = validator.iter_errors(value).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{pointer}: {faults:?} in {value}");
}

fn response(path: &str, method: &str) -> String {
    let path = path.replace('/', "~1").replace('{', "%7B").replace('}', "%7D");
    format!("/paths/{path}/{method}/responses/200/content/application~1json/schema")
}

#[tokio::test]
async fn every_route_of_the_document_is_there_with_its_methods_and_no_others() {
    let site = Site::start().await;
    let document = document(&site).await;
    for (path, described) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "human-1");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let reply = Call::new(site.address, method, &path).send().await;
            let text = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(!text.contains("nothing at this address"), "{path}");
            let is_described = described.get(method.to_lowercase()).is_some();
            assert_eq!(is_described, reply.status != 405, "{method} {path}: {text}");
        }
    }
    let hidden = Call::get(site.address, "/openapi.json").header("x-tenant", "").send().await;
    assert_eq!(hidden.status, 401);
}

#[tokio::test]
async fn routes_that_are_not_mounted_are_not_in_the_document() {
    let plan = Plan::new();
    let http = Http::new(plan.agent().build().await.unwrap(), Headers).paths(Paths::under("/api"));
    let app = http.router();
    let site = plan.serve(http, app).await;
    let document = Call::get(site.address, "/api/openapi.json").send().await.json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/api/chat") && paths.keys().all(|path| !path.contains("answers")), "{paths:?}");
    assert_eq!(Call::get(site.address, "/api/answers/human-1").send().await.status, 404);
}

#[tokio::test]
async fn what_routes_answer_has_its_schema() {
    let site = Site::start().await;
    let document = document(&site).await;
    for workflow in ["review", "pair", "echo"] {
        check(&document, &response("/execute", "post"), &execute(&site, workflow).await);
    }
    let listed = Call::get(site.address, "/interrupts?limit=1").send().await.json();
    check(&document, &response("/interrupts", "get"), &listed);
    let body = json!({"sessionId": "c", "stream": false, "messages": [{"role": "user", "content": "x"}]});
    let turn = Call::post(site.address, "/chat", &body).send().await.json();
    check(&document, &response("/chat", "post"), &turn);
    let chunks = turn["chunks"].as_array().unwrap();
    assert!(kinds(chunks).contains(&"checkpoint"));
    for action in [json!({"action": "list", "sessionId": "c"}), json!({"action": "get", "checkpointId": "cp-1"})] {
        let reply = Call::post(site.address, "/checkpoints", &action).send().await.json();
        check(&document, &response("/checkpoints", "post"), &reply);
    }
    check(&document, &response("/health/ready", "get"), &Call::get(site.address, "/health/ready").send().await.json());
    let refused = Call::post(site.address, "/resume", &json!({})).send().await.json();
    check(&document, "/components/responses/400/content/application~1json/schema", &refused);
}

#[tokio::test]
async fn requests_that_are_taken_have_the_schema_of_their_body() {
    let site = Site::start().await;
    let document = document(&site).await;
    let asked = execute(&site, "pair").await;
    let answer = json!({"type": "text", "text": "x"});
    let requests = [
        ("chat", json!({"messages": [{"role": "user", "content": "x"}], "other": 1})),
        ("execute", json!({"workflow": "echo", "input": null, "context": {"a": 1}})),
        ("resume", json!({"resume": asked["resume"], "response": answer})),
        ("checkpoints", json!({"action": "list", "sessionId": "s1"})),
    ];
    for (name, body) in requests {
        assert_eq!(Call::post(site.address, &format!("/{name}"), &body).send().await.status, 200, "{name}");
        check(&document, &format!("/paths/~1{name}/post/requestBody/content/application~1json/schema"), &body);
    }
}
