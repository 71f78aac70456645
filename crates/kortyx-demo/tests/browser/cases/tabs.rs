//! Tabs that race.

use serde_json::json;

use crate::{page::wait, world::Plan};

/// Selects an option now and answers at a given time.
const ANSWER_AT: &str = "
    const [id, time] = arguments;
    document.querySelector(`.question input[value=${id}]`).checked = true;
    const form = document.querySelector('.question form');
    setTimeout(() => form.requestSubmit(), time - Date.now());
";

#[tokio::test]
async fn of_two_tabs_that_answer_at_once_one_wins_and_the_other_is_told() {
    let test = Plan::new("race");
    test.run(async |world| {
        world.open("/").await;
        world.say("order", "A lamp").await;
        world.question("Which colour").await;
        let tabs = world.second_tab("/").await;
        world.question("Which colour").await;

        let time = world.run("return Date.now() + 1500").await;
        for (tab, id) in tabs.iter().zip(["green", "blue"]) {
            world.client.switch_to_window(tab.clone()).await.unwrap();
            world.client.execute(ANSWER_AT, vec![json!(id), time.clone()]).await.unwrap();
        }

        let mut told = Vec::new();
        for tab in tabs {
            world.client.switch_to_window(tab).await.unwrap();
            let about =
                "return [...document.querySelectorAll('.question')].map((one) => [one.className, one.innerText])";
            // The winner's card is gone, the other's is closed and says why.
            let card = wait("the end of the race", async || {
                let cards = world.run(about).await;
                let colour = |card: &&serde_json::Value| card[1].as_str().unwrap().contains("Which colour");
                let card = cards.as_array().unwrap().iter().find(colour).cloned();
                match card {
                    None => Some(None),
                    Some(card) if card[0].as_str().unwrap().contains("closed") => Some(Some(card)),
                    Some(_) => None,
                }
            });
            told.extend(card.await);
            world.shot(&format!("tab-{}", told.len())).await;
        }
        assert_eq!(told.len(), 1, "{told:?}");
        let reason = told[0][1].as_str().unwrap();
        assert!(
            reason.contains("answered this question first") || reason.contains("Answered in another place"),
            "{reason}"
        );

        // The conversation has the one answer that counts.
        let answers = world.text("#log").await;
        assert_eq!(answers.lines().filter(|line| ["Green", "Blue"].contains(line)).count(), 1, "{answers}");
    })
    .await;
}

#[tokio::test]
async fn an_answer_from_another_tab_is_followed_by_what_its_run_says() {
    let test = Plan::new("other-tab");
    test.run(async |world| {
        world.open("/").await;
        world.say("review", "the next release").await;
        world.question("What do you say").await;
        let [first, _] = world.second_tab("/").await;
        world.select("What do you say", &["revise"]).await;
        world.write("What should be in it?", "a picture").await;
        world.hears("and now with this: a picture.").await;

        world.client.switch_to_window(first).await.unwrap();
        world.hears("and now with this: a picture.").await;
        assert_eq!(world.text("#log").await.matches("Here is").count(), 2, "something is said twice");
    })
    .await;
}
