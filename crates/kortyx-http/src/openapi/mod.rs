//! An `OpenAPI` 3.1 document of the routes, with schemas made from the wire types.

mod operation;
mod types;

use serde_json::{Map, Value, json};

use self::operation::failures;
pub(crate) use self::{
    operation::Operation,
    types::{Error, Health, Interrupt, Interrupts, Types},
};
use crate::routes::Route;

/// The document of these routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let mut types = Types::new();
    let mut paths = Map::new();
    for (path, methods) in routes {
        let described = methods.iter().map(|endpoint| {
            let operation = (endpoint.describe)(&mut types).describe();
            (endpoint.method.as_str().to_ascii_lowercase(), operation)
        });
        paths.insert(path.clone(), Value::Object(described.collect()));
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
        "paths": paths,
        "components": {"schemas": types.into_schemas(), "responses": responses},
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Paths, routes};

    fn whole(paths: &Paths) -> Value {
        document(&routes::table(paths, true))
    }

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
        let document = whole(&Paths::default());
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
        let document = whole(&Paths::under("/api"));
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
        assert_eq!(ids.len(), 13);
    }

    #[test]
    fn every_code_has_its_status_among_the_failures() {
        let document = whole(&Paths::default());
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
