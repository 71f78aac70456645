//! Pages that are loaded again.

use crate::world::Plan;

#[tokio::test]
async fn a_reload_while_a_question_waits_keeps_the_conversation_and_the_question() {
    let test = Plan::new("reload");
    test.run(async |world| {
        world.open("/").await;
        world.say("review", "the winter release").await;
        world.question("What do you say").await;
        world.client.refresh().await.unwrap();

        world.hears("the winter release").await;
        world.hears("it says what is new").await;
        world.select("What do you say", &["revise"]).await;
        world.question("What should be in it?").await;
        world.client.refresh().await.unwrap();
        world.write("What should be in it?", "a joke").await;
        world.hears("and now with this: a joke").await; // streamed, also after a reload
        world.question("What do you say").await;
    })
    .await;
}

#[tokio::test]
async fn a_reload_while_something_is_said_loses_neither_the_run_nor_its_question() {
    let test = Plan::new("reload-midway");
    test.run(async |world| {
        world.open("/").await;
        world.say("review", "the spring release").await;
        world.hears("Here is a").await;
        world.client.refresh().await.unwrap();

        // What was said meanwhile is said on the page, and once.
        world.hears("and it says what is new.").await;
        assert_eq!(world.text("#log").await.matches("Here is a draft").count(), 1);
        world.select("What do you say", &["discard"]).await;
        world.hears("The draft is gone.").await;
        world.shot("after").await;
    })
    .await;
}
