//! Two questions at once.

use crate::world::Plan;

#[tokio::test]
async fn two_questions_are_answered_in_any_order_from_two_tabs() {
    let test = Plan::new("lunch");
    test.run(async |world| {
        world.open("/").await;
        world.say("lunch", "Friday").await;
        world.question("What shall we eat?").await;
        world.question("Where do we meet?").await;
        world.shot("both").await;

        let [first, second] = world.second_tab("/").await;
        world.question("What shall we eat?").await;
        world.write("Where do we meet?", "at the fountain").await;
        world.hears("at the fountain").await;

        world.client.switch_to_window(first).await.unwrap();
        world.closed("Where do we meet?").await;
        world.shows(".question.closed", "Answered in another place.").await;
        world.shot("one-answered-elsewhere").await;
        world.select("What shall we eat?", &["curry"]).await;
        world.hears("Settled: curry, and we meet here: at the fountain.").await;
        world.is_quiet().await;

        world.client.switch_to_window(second).await.unwrap();
        world.hears("Settled: curry, and we meet here: at the fountain.").await;
        world.is_quiet().await;
    })
    .await;
}
