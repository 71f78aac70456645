//! Typed contracts: their rules, their schemas, their answers.

use kortyx_contracts::{
    AnswerError, Ask, AskError, AskExt, ContractError, InterruptContract, OutputContract, OutputError,
};
use kortyx_protocol::ResumeResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::world::{fault, faults, select, stored, text, value};

#[derive(Clone, Serialize, JsonSchema)]
struct Draft {
    #[schemars(length(min = 1))]
    title: String,
    score: f64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Release {
    #[schemars(extend("format" = "date"))]
    date: String,
    audience: Audience,
    copies: Option<i32>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Audience {
    Everyone,
    Group { name: String, size: u8 },
}

const RELEASE: InterruptContract<Draft, Release> = InterruptContract::new("release")
    .description("When and for whom a draft is published")
    .schema_id("acme.release")
    .version("1");

fn draft() -> Draft {
    Draft { title: "Q3".into(), score: 0.5 }
}

fn release() -> Release {
    Release { date: "2026-01-31".into(), audience: Audience::Group { name: "staff".into(), size: 9 }, copies: None }
}

#[test]
fn a_valid_answer_becomes_the_response_type() {
    let ask = RELEASE.ask(draft());
    let response = value(json!({"date": "2026-01-31", "audience": {"group": {"name": "staff", "size": 9}}}));
    assert_eq!(stored(&ask).validate(&response), Ok(()));
    assert_eq!(ask.decode(&response), Ok(release()));
}

#[test]
fn a_wrong_answer_is_refused_field_by_field() {
    let question = stored(&RELEASE.ask(draft()));
    let wrong = value(
        json!({"date": "tomorrow", "audience": {"group": {"name": "staff", "size": 300}}, "copies": "2", "x": 1}),
    );
    let mut found = faults(question.validate(&wrong));
    found.sort();
    let expected =
        [("", "additionalProperties"), ("/audience/group/size", "maximum"), ("/copies", "type"), ("/date", "format")];
    assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code.to_owned())));
    assert_eq!(
        faults(question.validate(&value(json!({"audience": "everyone"})))),
        fault("/date", "required"),
        "a missing field is named"
    );
}

/// B122: a text is not taken apart where an object is asked for.
#[test]
fn a_text_or_a_selection_is_no_answer_to_a_contract() {
    let question = stored(&RELEASE.ask(draft()));
    assert_eq!(faults(question.validate(&text("everyone"))), fault("", "type"));
    assert_eq!(faults(question.validate(&select(&["everyone"]))), fault("", "type"));
    assert_eq!(faults(question.validate(&value(json!("everyone")))), fault("", "type"));
}

#[test]
fn numbers_that_the_type_cannot_hold_are_refused_before_they_are_accepted() {
    let question = stored(&RELEASE.ask(draft()));
    let copies = |copies: Value| {
        question.validate(&value(json!({"date": "2026-01-31", "audience": "everyone", "copies": copies})))
    };
    assert_eq!(copies(json!(i32::MAX)), Ok(()));
    assert_eq!(faults(copies(json!(i64::from(i32::MAX) + 1))), fault("/copies", "maximum"));
    assert_eq!(faults(copies(json!(i64::from(i32::MIN) - 1))), fault("/copies", "minimum"));
    assert_eq!(faults(copies(json!(1.5))), fault("/copies", "type"));
}

#[test]
fn a_whole_float_is_an_integer_and_a_large_integer_is_exact() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Counts {
        small: u8,
        large: u64,
        real: f64,
    }
    let contract = InterruptContract::<(), Counts>::new("counts").description("d").schema_id("s").version("1");
    let ask = contract.ask(());
    let response = value(json!({"small": 5.0, "large": u64::MAX, "real": 5.0}));
    assert_eq!(stored(&ask).validate(&response), Ok(()));
    assert_eq!(ask.decode(&response), Ok(Counts { small: 5, large: u64::MAX, real: 5.0 }));
}

#[test]
fn a_request_must_fit_its_own_schema() {
    let ask = RELEASE.ask(Draft { title: String::new(), score: 0.0 });
    let Err(AskError::Request { contract, issues }) = ask.question() else { panic!("asked") };
    assert_eq!(
        (contract.as_str(), issues[0].path.as_str(), issues[0].code.as_str()),
        ("release", "/title", "minLength")
    );
    let ask = RELEASE.ask(Draft { score: f64::NAN, ..draft() });
    let Err(AskError::Json { part: "request", source }) = ask.question() else { panic!("asked") };
    assert_eq!(source.path, "/score");
}

#[test]
fn a_request_may_be_lent() {
    let draft = draft();
    assert_eq!(stored(&RELEASE.ask(&draft)), stored(&RELEASE.ask(draft)));
}

#[test]
fn a_typed_default_goes_through_the_schema() {
    let ask = RELEASE.ask(draft()).default_on_expiry(release());
    let question = stored(&ask);
    let default = question.default_response().unwrap();
    assert_eq!(ask.decode(default), Ok(release()));

    let wrong = RELEASE.ask(draft()).default_on_expiry(Release { date: "soon".into(), ..release() });
    assert_eq!(
        wrong.question().unwrap_err().to_string(),
        "the default answer does not fit its question: /date: the value is not a \"date\""
    );
}

#[test]
fn an_answer_that_fits_the_schema_but_not_the_type_is_an_error_and_no_panic() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(try_from = "u8")]
    #[schemars(with = "u8")]
    struct Even(u8);
    impl TryFrom<u8> for Even {
        type Error = &'static str;
        fn try_from(number: u8) -> Result<Self, Self::Error> {
            if number.is_multiple_of(2) { Ok(Self(number)) } else { Err("an odd number") }
        }
    }
    let contract = InterruptContract::<(), Even>::new("even").description("d").schema_id("s").version("1");
    let ask = contract.ask(());
    assert_eq!(ask.decode(&value(json!(4))), Ok(Even(4)));
    assert_eq!(ask.decode(&value(json!(3))), Err(AnswerError::Decode { message: "an odd number".into() }));
    assert_eq!(ask.decode(&ResumeResponse::Cancel), Err(AnswerError::Cancelled));
}

fn named(name: &'static str) -> InterruptContract<(), String> {
    InterruptContract::new(name).description("d").schema_id("s").version("1")
}

#[test]
fn names_follow_the_rule() {
    let longest = "aB3_-678901234567890123456789012345678901".get(..40).unwrap();
    for name in ["a", "Z", "a1", "a_b-C", longest] {
        assert_eq!(named(name).check(), Ok(()), "{name}");
    }
    for name in ["", "1a", "_a", "-a", "a b", "a.b", "ä", "aä", "aB3_-678901234567890123456789012345678901"] {
        let error = named(name).ask(()).question().unwrap_err();
        assert!(matches!(error, AskError::Contract(ContractError::Name { .. })), "{name}: {error}");
    }
}

#[test]
fn a_description_a_schema_id_and_a_version_are_needed() {
    let bare = InterruptContract::<(), String>::new("x");
    let missing = |contract: InterruptContract<(), String>| contract.check().unwrap_err().to_string();
    assert_eq!(missing(bare), "contract `x` has no description");
    assert_eq!(missing(bare.description("d")), "contract `x` has no schema id");
    assert_eq!(missing(bare.description("d").schema_id("s")), "contract `x` has no version");
    assert_eq!(missing(bare.description(" ").schema_id("s").version("1")), "contract `x` has no description");
    let output = OutputContract::<String>::new("x").description("d").schema_id("s");
    assert_eq!(output.check().unwrap_err().to_string(), "contract `x` has no version");
}

#[test]
fn schemas_are_draft_2020_12_and_stored_in_one_form() {
    let schema = RELEASE.response_schema().unwrap();
    let parsed = schema.to_value().unwrap();
    assert_eq!(parsed["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(stored(&RELEASE.ask(draft())).response_schema(), Some(&schema));
    assert_eq!(kortyx_protocol::json::canonical(&parsed).unwrap(), schema.get());
}

#[test]
fn a_schema_that_cannot_be_used_is_named_before_anything_is_asked() {
    #[derive(Deserialize, JsonSchema)]
    struct Remote(
        #[schemars(extend("$ref" = "https://example.com/schema.json"))]
        #[expect(dead_code, reason = "read only")]
        String,
    );
    let contract = InterruptContract::<(), Remote>::new("remote").description("d").schema_id("s").version("1");
    let error = contract.ask(()).question().unwrap_err();
    assert_eq!(error.to_string(), "the response schema of contract `remote` cannot be used");
}

#[test]
fn an_output_contract_validates_and_decodes() {
    const OUTPUT: OutputContract<Release> = OutputContract::new("output").description("d").schema_id("s").version("1");
    let good = json!({"date": "2026-01-31", "audience": {"group": {"name": "staff", "size": 9.0}}});
    assert_eq!(OUTPUT.validate(&good), Ok(()));
    assert_eq!(OUTPUT.decode(&good), Ok(release()));
    let Err(OutputError::Invalid { contract, issues }) = OUTPUT.decode(&json!([])) else { panic!("decoded") };
    assert_eq!((contract.as_str(), issues[0].code.as_str()), ("output", "type"));
    assert!(OUTPUT.schema().unwrap().get().contains("\"audience\""));
}
