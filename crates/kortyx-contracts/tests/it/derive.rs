//! Enums as options.

use kortyx_contracts::{AnswerError, Ask, AskExt, Choice, ChoiceOptions, MultiChoice, StaticOption};

use crate::world::{select, stored};

#[derive(Debug, Clone, Copy, PartialEq, ChoiceOptions)]
enum Decision {
    /// Publish the draft.
    ///
    /// It goes out at once.
    Approve = 7,
    SendBack,
    /// ignored for the label
    #[choice(id = "Legal-1", label = "Ask legal", description = "Takes a day")]
    Escalate,
    r#Type,
    HTTPLater,
}

#[test]
fn variants_become_options_in_order() {
    let option = |id, label, description| StaticOption { id, label, description };
    assert_eq!(
        Decision::OPTIONS,
        [
            option("approve", "Publish the draft", None),
            option("send_back", "Send back", None),
            option("Legal-1", "Ask legal", Some("Takes a day")),
            option("type", "Type", None),
            option("http_later", "Http later", None),
        ]
    );
}

#[test]
fn ids_and_variants_go_both_ways() {
    for option in Decision::OPTIONS {
        assert_eq!(Decision::from_option_id(option.id).map(|variant| variant.option_id()), Some(option.id));
    }
    assert_eq!(Decision::from_option_id("Approve"), None);
}

#[test]
fn a_choice_of_an_enum_answers_with_the_variant() {
    let ask = Choice::of::<Decision>("What now?").default_on_expiry(Decision::SendBack);
    let question = stored(&ask);
    assert_eq!(question.input().options.len(), 5);
    assert_eq!(question.default_response(), Some(&select(&["send_back"])));
    assert_eq!(question.validate(&select(&["Legal-1"])), Ok(()));
    assert_eq!(ask.decode(&select(&["Legal-1"])), Ok(Decision::Escalate));
    assert_eq!(ask.decode(&select(&["removed"])), Err(AnswerError::UnknownOption { id: "removed".into() }));
}

#[test]
fn a_multi_choice_of_an_enum_answers_with_variants_in_order() {
    let ask = MultiChoice::of::<Decision>("Which?").min(1).max(2).optional_cancel();
    assert!(stored(&ask).is_multiple());
    assert_eq!(ask.decode(&select(&["type", "approve"])), Ok(Some(vec![Decision::Type, Decision::Approve])));
}

#[test]
fn the_crate_that_holds_the_trait_can_be_named() {
    mod elsewhere {
        pub(super) use kortyx_contracts as contracts;
    }
    #[derive(ChoiceOptions)]
    #[choice(crate = "elsewhere::contracts")]
    enum Renamed {
        One,
    }
    assert_eq!(Renamed::One.option_id(), "one");
}
