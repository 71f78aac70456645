//! Questions whose requests or schemas are data.

use kortyx_contracts::{Ask, AskError, ContractError, InterruptContract, SchemaAsk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::world::{stored, text, value};

#[derive(Serialize, JsonSchema)]
struct Draft {
    title: String,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema counts")]
struct Release {
    copies: u8,
}

const RELEASE: InterruptContract<Draft, Release> =
    InterruptContract::new("release").description("When to publish").schema_id("acme.release").version("1");

#[test]
fn a_request_from_elsewhere_asks_the_same_question_as_one_of_the_type() {
    let (by_type, by_value) = (RELEASE.ask(Draft { title: "Q3".into() }), RELEASE.ask_value(&json!({"title": "Q3"})));
    assert_eq!(stored(&by_value), stored(&by_type));
    let answer = value(json!({"copies": 3}));
    assert_eq!(by_value.decode(&answer), Ok(json!({"copies": 3})), "as it was given");
    assert!(stored(&by_value).validate(&value(json!({"copies": 300}))).is_err());
}

#[test]
fn a_request_from_elsewhere_that_does_not_fit_is_not_asked() {
    for wrong in [json!({}), json!({"title": 3}), json!(null)] {
        assert!(matches!(RELEASE.ask_value(&wrong).question(), Err(AskError::Request { .. })), "{wrong}");
    }
}

#[test]
fn a_schema_that_is_data_judges_answers() {
    let schema = json!({"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]});
    let ask = SchemaAsk::new("launch", &json!({"rocket": 5}), &schema).schema("acme.launch", "2");
    let question = stored(&ask);
    assert_eq!((question.identity().as_str(), question.contract()), ("custom:launch@acme.launch/2", Some("launch")));
    assert_eq!(question.input().request, Some(json!({"rocket": 5})));
    for wrong in [value(json!({})), value(json!({"go": "yes"})), value(Value::Null), text("go")] {
        assert!(question.validate(&wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(ask.decode(&value(json!({"go": false}))), Ok(json!({"go": false})));
}

#[test]
fn a_schema_that_cannot_be_used_and_a_name_that_says_nothing_are_refused() {
    let unusable = SchemaAsk::new("launch", &json!({}), &json!({"type": 7})).question();
    assert!(matches!(unusable, Err(AskError::Contract(ContractError::Schema { .. }))), "{unusable:?}");
    assert_eq!(
        SchemaAsk::new(" ", &json!({}), &json!(true)).question(),
        Err(AskError::EmptyPart { part: "contract name" })
    );
    let long = "a".repeat(41);
    assert!(matches!(SchemaAsk::new(&long, &json!({}), &json!(true)).question(), Err(AskError::OverLimit { .. })));
}
