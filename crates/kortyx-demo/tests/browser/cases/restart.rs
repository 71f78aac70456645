//! A server that is killed.

use crate::world::Plan;

#[tokio::test]
async fn a_server_killed_while_questions_wait_has_them_when_it_is_back() {
    let test = Plan::new("restart");
    test.run(async |world| {
        world.open("/").await;
        world.say("lunch", "Saturday").await;
        world.question("Where do we meet?").await;

        world.demo.lock().await.kill();
        world.shows("#alert", "The server does not answer.").await;
        // An answer that is not taken is said so, and can be given again.
        world.select("What shall we eat?", &["soup"]).await;
        world.shows(".question .problem", "this answer may not have arrived").await;
        world.shot("away").await;

        world.demo.lock().await.restart().await;
        crate::page::wait("the alert to go", async || world.text("#alert").await.is_empty().then_some(())).await;
        world.select("What shall we eat?", &["soup"]).await;
        world.write("Where do we meet?", "in the yard").await;
        world.hears("Settled: soup, and we meet here: in the yard.").await;
    })
    .await;
}

#[tokio::test]
async fn a_server_killed_while_it_speaks_goes_on_where_it_was() {
    let test = Plan::new("restart-midway");
    test.run(async |world| {
        world.open("/").await;
        world.say("review", "the summer release").await;
        world.hears("it is short").await;
        world.demo.lock().await.kill();
        world.shows("#alert", "The server does not answer.").await;
        world.demo.lock().await.restart().await;

        world.hears("and it says what is new.").await;
        assert_eq!(world.text("#log").await.matches("Here is a draft").count(), 1);
        world.select("What do you say", &["discard"]).await;
        world.hears("The draft is gone.").await;
    })
    .await;
}
