//! Issues of unions: of the variant that was meant, when that is plain.

use kortyx_contracts::SchemaValidator;
use schemars::JsonSchema;
use serde_json::{Value, json};

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged {
    Card { number: String, limit: Option<Limit> },
    Cash { till: u8 },
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
enum External {
    Card { number: String },
    Cash(u8),
    Nothing,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Limit {
    amount: u8,
}

fn found<T: JsonSchema>(value: &Value) -> Vec<(String, String)> {
    let schema = schemars::schema_for!(T);
    let issues = SchemaValidator::compile(schema.as_value()).unwrap().validate(value);
    issues.into_iter().map(|issue| (issue.path, issue.code)).collect()
}

fn one(path: &str, code: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), code.to_owned())]
}

#[test]
fn a_tagged_variant_with_a_wrong_field_names_the_field() {
    assert_eq!(found::<Tagged>(&json!({"type": "card", "number": 5})), one("/number", "type"));
    assert_eq!(found::<Tagged>(&json!({"type": "cash"})), one("/till", "required"));
    assert_eq!(
        found::<Tagged>(&json!({"type": "card", "number": "5", "limit": {"amount": -1}})),
        one("/limit/amount", "minimum")
    );
}

#[test]
fn an_externally_tagged_variant_with_a_wrong_field_names_the_field() {
    assert_eq!(found::<External>(&json!({"Card": {"number": 5}})), one("/Card/number", "type"));
    assert_eq!(found::<External>(&json!({"Cash": 256})), one("/Cash", "maximum"));
}

#[test]
fn a_value_that_is_none_of_the_variants_is_told_so() {
    assert_eq!(found::<Tagged>(&json!({"type": "cheque"})), one("", "oneOf"));
    assert_eq!(found::<External>(&json!(7)), one("", "oneOf"));
}
