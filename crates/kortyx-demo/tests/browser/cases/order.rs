//! An answer after which the work goes on, and asks later.

use crate::world::Plan;

#[tokio::test]
async fn a_response_ends_and_its_run_asks_later_in_the_inbox() {
    let test = Plan::new("order");
    test.run(async |world| {
        world.open("/").await;
        world.say("order", "A lamp, please").await;
        let [chat, _inbox] = world.second_tab("/inbox").await;
        world.question("Which colour").await;
        world.shot("inbox").await;

        world.client.switch_to_window(chat).await.unwrap();
        world.select("Which colour", &["green"]).await;
        world.hears("A green lamp is ordered.").await;

        // Nobody waits for it, and still it asks.
        world.element("nav a[href^='/inbox']").await.click().await.unwrap();
        world.question("The green lamp has run out.").await;
        world.shows(".question .badge", "asked later").await;
        world.shot("asked-later").await;
        world.select("The green lamp has run out.", &["white"]).await;
        world.hears("The white lamp is on its way.").await;
        world.shows("#empty", "Nothing waits for you.").await;
        world.shot("inbox-empty").await;

        world.element("nav a[href^='/?']").await.click().await.unwrap();
        world.hears("The white lamp is on its way.").await;
    })
    .await;
}
