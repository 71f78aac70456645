//! The workflow with every kind of question.

use fantoccini::Locator;
use serde_json::json;

use crate::world::Plan;

#[tokio::test]
async fn a_review_asks_every_kind_of_question_and_streams_what_it_says() {
    let test = Plan::new("review");
    test.run(async |world| {
        world.open("/").await;
        world.say("review", "the autumn release").await;
        world.hears("Here is a draft about “the autumn release”").await;

        world.question("What do you say to this draft?").await;
        world.shot("choice").await;
        world.select("What do you say", &["revise"]).await;
        world.question("What should be in it?").await;

        // Too short: refused in words, and the question stays.
        world.write("What should be in it?", "no").await;
        world.shows(".question .problem", "This answer does not fit").await;
        world.shot("text-refused").await;
        world.write("What should be in it?", "a thank you").await;
        world.hears("and now with this: a thank you").await;
        world.select("What do you say", &["approve"]).await;

        world.write("Which headline?", "<b>Autumn</b> & more").await;
        world.hears("<b>Autumn</b> & more").await;

        // Three are too many: told by the page.
        world.select("Where shall it appear?", &["web", "mail", "print"]).await;
        world.shows(".question .problem", "1 to 2 options").await;
        world.shot("multi-choice-refused").await;
        world.select("Where shall it appear?", &["print"]).await;

        // The page finds the options of the picker.
        world.in_card("Who owns it?", "input[value=grace]").await;
        world.shot("picker").await;
        world.select("Who owns it?", &["grace"]).await;

        let card = world.question("release").await;
        let audience = card.find(Locator::Css("select")).await.unwrap();
        audience.select_by_label("partners").await.unwrap();
        let date = "const date = document.querySelector('.question input[type=date]'); date.value = '2027-01-31'";
        world.run(date).await;
        card.find(Locator::Css("input[type=number]")).await.unwrap().send_keys("9").await.unwrap();
        card.find(Locator::Css("button[type=submit]")).await.unwrap().click().await.unwrap();
        world.shows(".question .problem", "reminders").await;
        assert!(world.has_focus("[data-path='/reminders'][aria-invalid]").await, "the wrong field has the focus");
        world.shot("contract-refused").await;
        let number = card.find(Locator::Css("input[type=number]")).await.unwrap();
        number.clear().await.unwrap();
        number.send_keys("2\n").await.unwrap(); // Enter answers

        world.hears("is released on 2027-01-31 by grace, through web and mail").await;
        world.is_quiet().await;
        assert_eq!(
            world.run("return document.querySelectorAll('#log b').length").await,
            json!(0),
            "data became markup"
        );
        world.shot("end").await;
    })
    .await;
}

#[tokio::test]
async fn a_run_is_cancelled_with_a_second_press() {
    let test = Plan::new("cancel");
    test.run(async |world| {
        world.open("/").await;
        world.say("review", "nothing much").await;
        for label in ["Cancel the run", "Really cancel?"] {
            let button = world.in_card("What do you say", ".actions .quiet").await;
            assert_eq!(button.text().await.unwrap(), label);
            button.click().await.unwrap();
        }
        world.hears("The run was cancelled.").await;
        world.is_quiet().await;
    })
    .await;
}
