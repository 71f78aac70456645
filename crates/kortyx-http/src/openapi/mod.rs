//! An `OpenAPI` 3.1 document of the routes, with schemas made from the wire types.

mod operation;
mod types;

use kortyx_protocol::{
    AnswerRequest, BufferedResponse, ChatRequest, CheckpointRequest, CheckpointSummary, CheckpointView, ExecuteRequest,
    ExecutionResult, Forked, ResumeRequest, RolledBack, StreamChunk,
};
use serde_json::{Map, Value, json};

use self::{
    operation::{Operation, failures},
    types::{Error, Health, Interrupt, Interrupts, Types},
};
use crate::Paths;

/// The document of routes at these paths.
pub(crate) fn document(paths: &Paths) -> Value {
    let mut types = Types::new();
    let mut described: Map<String, Value> = Map::new();
    for (path, operation) in operations(paths, &mut types) {
        let methods = described.entry(path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(operation.method.to_owned(), operation.describe());
        }
    }
    let error = types.of::<Error>();
    let responses = failures(&error);
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Kortyx",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Workflows that stop, ask a person, and go on later. The application decides who may call; how callers \
                            say who they are is its own.",
        },
        "paths": described,
        "components": {"schemas": types.into_schemas(), "responses": responses},
    })
}

fn operations(paths: &Paths, types: &mut Types) -> Vec<(String, Operation)> {
    let mut all = asking(paths, types);
    all.extend(finding(paths, types));
    all.extend(about_the_server(paths, types));
    all
}

fn asking(paths: &Paths, types: &mut Types) -> Vec<(String, Operation)> {
    let result = types.of::<ExecutionResult>();
    let chunk = types.of::<StreamChunk>();
    let chat = Operation::post("chat", "Plays a chat turn", types.of::<ChatRequest>())
        .answering("The turn: one object, or a stream that ends with `data: [DONE]`", &types.of::<BufferedResponse>())
        .streaming(&chunk)
        .failing(&[404, 409, 429]);
    let execute =
        Operation::post("execute", "Runs a workflow until it waits or has ended", types.of::<ExecuteRequest>())
            .answering("How the run stands", &result)
            .failing(&[404, 409, 422]);
    let resume = Operation::post("resume", "Answers with a question's handle", types.of::<ResumeRequest>())
        .answering("How the run stands", &result)
        .failing(&[404, 409, 410, 422]);
    let checkpoints =
        Operation::post("checkpoints", "Lists, reads, goes back to, forks", types.of::<CheckpointRequest>())
            .answering(
                "By action: the session's checkpoints, a checkpoint or null, what a rollback did, the new session",
                &json!({"anyOf": [
                    {"type": "array", "items": types.of::<CheckpointSummary>()},
                    {"anyOf": [types.of::<CheckpointView>(), {"type": "null"}]},
                    types.of::<RolledBack>(),
                    types.of::<Forked>(),
                ]}),
            )
            .failing(&[404, 409, 410]);
    vec![
        (paths.chat.clone(), chat),
        (paths.execute.clone(), execute),
        (paths.resume.clone(), resume),
        (paths.checkpoints.clone(), checkpoints),
    ]
}

fn finding(paths: &Paths, types: &mut Types) -> Vec<(String, Operation)> {
    let one = format!("{}/{{id}}", paths.interrupts);
    let list = Operation::get("listInterrupts", "Open questions of the caller's scope, oldest first")
        .filtered()
        .answering("A page of them", &types.of::<Interrupts>())
        .failing(&[400, 404]);
    let get = Operation::get("getInterrupt", "A question, whatever became of it")
        .of_one()
        .answering("The question", &types.of::<Interrupt>())
        .failing(&[404]);
    let answer = Operation::post("answerInterrupt", "Answers a question", types.of::<AnswerRequest>())
        .of_one()
        .answering("How the run stands", &types.of::<ExecutionResult>())
        .failing(&[404, 409, 410, 422]);
    let follow = Operation::get("followRun", "What a run said above a number, and says, until it has ended")
        .of_one_run()
        .described("Chunks with their numbers as `id:` lines, and how the run stands; ends with `data: [DONE]`")
        .streaming(&types.of::<StreamChunk>())
        .failing(&[400, 404, 429]);
    let run = format!("{}/{{id}}/stream", paths.runs);
    vec![(paths.interrupts.clone(), list), (format!("{one}/answer"), answer), (one, get), (run, follow)]
}

fn about_the_server(paths: &Paths, types: &mut Types) -> Vec<(String, Operation)> {
    let health = types.of::<Health>();
    let live = Operation::get("live", "Whether the process serves").open().answering("It does", &health);
    let ready = Operation::get("ready", "Whether the process can work").open().answering("It can", &health).also(
        503,
        "It cannot now",
        &health,
    );
    let document = Operation::get("openapi", "This document").answering("The document", &json!({"type": "object"}));
    vec![
        (format!("{}/live", paths.health), live),
        (format!("{}/ready", paths.health), ready),
        (paths.openapi.clone(), document),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every object of the document, with its place.
    fn walk<'a>(value: &'a Value, place: &str, seen: &mut Vec<(String, &'a Map<String, Value>)>) {
        match value {
            Value::Object(fields) => {
                seen.push((place.to_owned(), fields));
                for (key, field) in fields {
                    walk(field, &format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), seen);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, &format!("{place}/{index}"), seen);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document(&Paths::default());
        let mut objects = Vec::new();
        walk(&document, "", &mut objects);
        let references: Vec<_> = objects.iter().filter_map(|(_, fields)| fields.get("$ref")?.as_str()).collect();
        assert!(references.len() > 50, "{}", references.len());
        for reference in references {
            let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
            assert!(target.is_some(), "{reference}");
        }
    }

    #[test]
    fn every_operation_has_what_the_specification_asks() {
        let document = document(&Paths::under("/api"));
        assert_eq!(document["openapi"], "3.1.0");
        let mut ids = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            assert!(path.starts_with("/api/"), "{path}");
            for (method, operation) in methods.as_object().unwrap() {
                assert!(ids.insert(operation["operationId"].to_string()), "{path} {method}");
                assert_eq!(operation.get("requestBody").is_some(), method == "post");
                let responses = operation["responses"].as_object().unwrap();
                for (status, response) in responses {
                    let status: u16 = status.parse().unwrap();
                    assert!((200..600).contains(&status));
                    assert!(response.get("$ref").is_some() || response["description"].is_string());
                }
                let parameters = operation.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
                let in_path = parameters.iter().filter(|one| one["in"] == "path");
                let named: Vec<_> =
                    in_path.clone().map(|one| format!("{{{}}}", one["name"].as_str().unwrap())).collect();
                assert!(in_path.clone().all(|one| one["required"] == true));
                assert_eq!(path.matches('{').count(), named.len());
                assert!(named.iter().all(|name| path.contains(name.as_str())));
            }
        }
        assert_eq!(ids.len(), 11);
    }

    #[test]
    fn every_code_has_its_status_among_the_failures() {
        let document = document(&Paths::default());
        let described = document["components"]["responses"].as_object().unwrap();
        for code in kortyx_protocol::FailureCode::ALL {
            // Those of runs that failed are in results, and in streams.
            if !matches!(code.status(), 502) {
                assert!(described.contains_key(&code.status().to_string()), "{code} {}", code.status());
            }
        }
        let codes = document["components"]["schemas"]["FailureCode"]["enum"].as_array().unwrap();
        assert_eq!(codes.len(), kortyx_protocol::FailureCode::ALL.len());
    }
}
