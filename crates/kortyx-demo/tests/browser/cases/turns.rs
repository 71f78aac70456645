//! Going back to turns, and forking at them.

use crate::{
    page::wait,
    world::{Plan, World},
};

/// Three turns: a draft, a wish, a second draft.
async fn three_turns(world: &World) {
    world.open("/").await;
    world.say("review", "the long winter").await;
    world.select("What do you say", &["revise"]).await;
    world.write("What should be in it?", "a sleigh").await;
    world.hears("and now with this: a sleigh.").await;
    world.question("What do you say").await;
    world.element("#turns summary").await.click().await.unwrap();
    world.element("[data-turn='3'] .badge").await;
}

#[tokio::test]
async fn a_conversation_goes_back_to_a_turn_whose_question_is_open_again() {
    let test = Plan::new("turns");
    test.run(async |world| {
        three_turns(world).await;
        world.shot("list").await;
        let back = world.element("[data-turn='1'] button").await;
        back.click().await.unwrap();
        world.shows("[data-turn='1']", "Really go back?").await;
        world.shot("sure").await;
        back.click().await.unwrap();

        world.hears("Back to here: turn 1.").await;
        world.question("What do you say").await;
        let said = world.text("#log").await;
        assert!(said.contains("Here is a draft") && !said.contains("sleigh"), "{said}");
        world.shot("back").await;
        world.select("What do you say", &["discard"]).await;
        world.hears("The draft is gone.").await;
        world.is_quiet().await;
    })
    .await;
}

#[tokio::test]
async fn a_fork_goes_on_by_itself_and_leaves_the_conversation_as_it_is() {
    let test = Plan { is_phone: true, ..Plan::new("fork") };
    test.run(async |world| {
        three_turns(world).await;
        world.shot("list").await;
        assert_eq!(world.run("return document.documentElement.scrollWidth").await, 360);
        let original = world.run("return location.search").await;
        world.element("[data-turn='1'] button:last-child").await.click().await.unwrap();

        world.hears("A conversation of its own, from here on: turn 1").await;
        let fork = world.run("return location.search").await;
        assert_ne!(fork, original);
        let said = world.text("#log").await;
        assert!(said.contains("Here is a draft") && !said.contains("sleigh"), "{said}");
        world.select("What do you say", &["discard"]).await;
        world.hears("The draft is gone.").await;
        world.shot("of-its-own").await;

        world.open(&format!("/{}", original.as_str().unwrap())).await;
        world.hears("and now with this: a sleigh.").await;
        world.select("What do you say", &["discard"]).await;
        world.hears("The draft is gone.").await;
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_is_too_old_to_go_back_to_is_told_in_words() {
    let test = Plan { expires_in: "4s", ..Plan::new("too-old") };
    test.run(async |world| {
        world.open("/").await;
        world.say("order", "A lamp").await;
        world.closed("Which colour").await;
        world.say("lunch", "Soon").await;
        world.question("What shall we eat?").await;
        world.element("#turns summary").await.click().await.unwrap();
        wait("a turn to go back to", async || (world.text("[data-turn='1']").await.contains("Go back")).then_some(()))
            .await;
        // The list is drawn anew when a question's time is over; a button that was pressed once before that asks once more.
        wait("why it does not go back", async || {
            world.element("[data-turn='1'] button").await.click().await.ok()?;
            world.text("#alert").await.contains("The time for this question is over.").then_some(())
        })
        .await;
    })
    .await;
}
