//! The workflow in which a model decides: it asks, calls tools, needs a person's word, and shows what came of it.

use serde_json::json;

use super::looks::{CONTRAST, UNNAMED};
use crate::{
    page::wait,
    world::{Plan, World},
};

/// Keeps what a card says whose first text has begun and whose last one has not. A busy machine may look too late.
const WATCH: &str = "
    const look = () => {
        const text = document.querySelector('#log .card[data-growing]')?.innerText ?? '';
        if (text.includes('A quiet') && !text.includes('The tram')) sessionStorage.setItem('test:grown', text);
    };
    new MutationObserver(look).observe(document.querySelector('#log'), { subtree: true, childList: true, characterData: true });
";

/// A field of the open question.
fn field(path: &str) -> String {
    format!(".question:not(.closed) [data-path='{path}']")
}

impl World {
    /// Writes into a field of the open question what is to stand there.
    async fn fill(&self, path: &str, text: &str) {
        let input = self.element(&field(path)).await;
        input.clear().await.unwrap();
        input.send_keys(text).await.unwrap();
    }

    /// Decides about a tool.
    async fn decide(&self, asks: &str, decision: &str) {
        self.in_card(asks, &format!("input[value={decision}]")).await.click().await.unwrap();
        self.in_card(asks, "button[type=submit]").await.click().await.unwrap();
    }

    /// Waits until [`WATCH`] has seen a card that grows.
    async fn grows(&self) {
        let seen = "return sessionStorage.getItem('test:grown') !== null";
        wait("a card that grows", async || (self.run(seen).await == json!(true)).then_some(())).await;
    }

    /// Waits for a call of this tool with this status, and opens it.
    async fn call(&self, tool: &str, status: &str) {
        let css = format!("#log .call[data-status={status}]");
        self.shows(&css, tool).await;
        self.run("document.querySelectorAll('#log .call').forEach((call) => { call.open = true })").await;
    }
}

#[tokio::test]
async fn a_model_asks_what_is_missing_has_its_booking_changed_and_approved_and_shows_a_card() {
    let test = Plan::new("assistant");
    test.run(async |world| {
        world.open("/").await;
        world.say("assistant", "I would like to eat out with friends").await;
        world.hears("A table, with pleasure. One thing first.").await;
        let asks = "For which day, and for how many?";
        world.question(asks).await;
        world.shot("asks").await;
        let date = format!("document.querySelector(\"{}\").value = '2027-01-31'", field("/day"));
        world.run(&date).await;
        world.fill("/guests", "2").await;
        world.in_card(asks, "button[type=submit]").await.click().await.unwrap();

        world.hears("I look for a table for 2.").await;
        world.call("Find tables", "done").await;
        world.shows("#log .call", "Olive & Thyme").await;
        world.hears("3 tables are free. I would take The Lantern, at 19:00.").await;

        // What it did and what it wants is still there after a reload; the arguments are there to be changed.
        let asks = "May it do this? Book table";
        world.question(asks).await;
        world.client.refresh().await.unwrap();
        world.question(asks).await;
        world.shows("#log .call[data-status=done]", "Find tables").await;
        assert_eq!(world.text("#log").await.matches("I look for a table").count(), 1);
        let guests = format!("return document.querySelector(\"{}\").value", field("/arguments/guests"));
        assert_eq!(world.run(&guests).await, json!("2"));
        world.shot("approval").await;
        assert_eq!(world.run(UNNAMED).await, json!([]));

        world.fill("/arguments/guests", "9").await;
        world.decide(asks, "approve").await;
        world.shows(".question .problem", "arguments › guests").await;
        wait("the focus on the wrong field", async || {
            world.has_focus("[data-path='/arguments/guests'][aria-invalid]").await.then_some(())
        })
        .await;
        world.fill("/arguments/guests", "3").await;
        world.run(WATCH).await;
        world.decide(asks, "approve").await;

        world.call("Book table", "done").await;
        world.hears("Booked: The Lantern, 2027-01-31, for 3.").await;
        world.hears("Approved, with changes").await;
        // The card was there before the model had written all of it.
        world.grows().await;
        world.shot("growing").await;
        world.client.refresh().await.unwrap(); // and goes on growing after a reload
        world.hears("Enjoy the evening!").await;
        world.is_quiet().await;
        world.element("#log .card:not([data-growing])").await;
        let card = world.text("#log .card").await;
        for told in
            ["The Lantern", "2027-01-31, 19:00", "Confirmation", "baked in the house", "The tram stops at the door."]
        {
            assert_eq!(card.matches(told).count(), 1, "{told} in {card}");
        }
        world.shot("end").await;
        let lowest = world.run(CONTRAST).await;
        assert!(lowest[0].as_f64().unwrap() >= 4.5, "{lowest}");
        let whole = world.text("#log").await;
        world.client.refresh().await.unwrap();
        world.shows("#log .call[data-status=done]", "Book table").await;
        world.shows("#log .card", "The tram stops").await;
        assert_eq!(world.text("#log").await, whole);
        assert_eq!(whole.matches("Booked: The Lantern").count(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_booking_that_is_rejected_in_the_inbox_is_not_made_and_the_model_is_told_why() {
    let test = Plan::new("assistant-rejected");
    test.run(async |world| {
        world.open("/").await;
        world.say("assistant", "A table for five on Friday").await;
        let asks = "May it do this? Book table";
        world.question(asks).await;
        world.element("nav a[href^='/inbox']").await.click().await.unwrap();
        world.in_card(asks, "input[value=reject]").await.click().await.unwrap();
        world.fill("/feedback", "Saturday would be better").await;
        world.shot("reject").await;
        world.decide(asks, "reject").await;
        world.hears("Then nothing is booked (Saturday would be better). What would you like instead?").await;
        world.call("Book table", "failed").await;
        world.is_quiet().await;
        world.shot("rejected").await;
    })
    .await;
}

#[tokio::test]
async fn a_server_killed_while_a_card_grows_shows_it_once_and_whole() {
    let test = Plan::new("assistant-killed");
    test.run(async |world| {
        world.open("/").await;
        world.say("assistant", "A table for two on Friday").await;
        let asks = "May it do this? Book table";
        world.question(asks).await;
        world.run(WATCH).await;
        world.decide(asks, "approve").await;
        world.grows().await;
        world.demo.lock().await.kill();
        world.shows("#alert", "The server does not answer.").await;
        world.demo.lock().await.restart().await;

        world.hears("Enjoy the evening!").await;
        let once =
            "return [...document.querySelectorAll('#log .card')].map((card) => card.hasAttribute('data-growing'))";
        wait("one card, and a final one", async || (world.run(once).await == json!([false])).then_some(())).await;
        let log = world.text("#log").await;
        for said in ["Booked: The Lantern, friday, for 2.", "The tram stops at the door.", "Enjoy the evening!"] {
            assert_eq!(log.matches(said).count(), 1, "{said} in {log}");
        }
    })
    .await;
}
