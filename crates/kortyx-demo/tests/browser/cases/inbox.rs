//! Answers that are given in the inbox.

use crate::world::Plan;

#[tokio::test]
async fn an_answer_in_the_inbox_shows_what_its_run_says_while_it_says_it() {
    let test = Plan::new("inbox-streams");
    test.run(async |world| {
        world.open("/").await;
        world.say("review", "the next release").await;
        world.select("What do you say", &["revise"]).await;
        world.question("What should be in it?").await;
        world.element("nav a[href^='/inbox']").await.click().await.unwrap();

        world.write("What should be in it?", "a map of the town").await;
        world.element("#log .flow .said[data-open]").await; // it still speaks
        world.shot("speaking").await;
        world.hears("and now with this: a map of the town.").await;
        world.question("What do you say").await;
        world.shot("asks-on").await;
        let lines = world.text("#log .said").await;
        assert!(lines.starts_with("a map of the town\nHere is the draft again"), "{lines}");
        assert_eq!(lines.matches("Here is").count(), 1, "{lines}");

        // The conversation has it too, once.
        world.element("nav a[href^='/?']").await.click().await.unwrap();
        world.hears("and now with this: a map of the town.").await;
        assert_eq!(world.text("#log").await.matches("Here is the draft again").count(), 1);
    })
    .await;
}
