//! Questions that expire while one looks at them.

use crate::{page::wait, world::Plan};

#[tokio::test]
async fn a_question_counts_down_and_closes_when_its_time_is_over() {
    let test = Plan { expires_in: "8s", ..Plan::new("deadline") };
    test.run(async |world| {
        world.open("/").await;
        world.say("order", "A lamp").await;
        world.question("Which colour").await;
        let seconds = async || world.text(".question .left").await.trim_end_matches(" s left").parse::<u8>().ok();
        let first = wait("a countdown", seconds).await;
        wait("the next second", async || (seconds().await? < first).then_some(())).await;
        world.shot("counting").await;

        world.closed("Which colour").await;
        world.shows(".question.closed", "The time for this question is over.").await;
        world.shot("over").await;
        world.client.refresh().await.unwrap();
        world.hears("A lamp").await;
        world.is_quiet().await;
    })
    .await;
}
