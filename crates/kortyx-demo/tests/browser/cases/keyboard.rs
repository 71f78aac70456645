//! Without a mouse.

use fantoccini::key::Key;

use crate::{page::wait, world::Plan};

#[tokio::test]
async fn everything_is_done_with_the_keyboard() {
    let test = Plan::new("keyboard");
    test.run(async |world| {
        world.open("/").await;
        world.element("#text").await;
        // The first stop skips to the message.
        world.tab_to(".skip", false).await;
        world.shot("skip").await;
        let enter = String::from(char::from(Key::Enter));
        world.keys(&enter).await;
        world.tab_to("#text", false).await;
        world.tab_to("input[name=workflow]", true).await;
        let right = String::from(char::from(Key::Right));
        world.keys(&right).await; // from review to lunch
        world.tab_to("#text", false).await;
        world.keys(&format!("Sunday{enter}")).await;

        world.question("Where do we meet?").await;
        world.tab_to(".question input[type=radio]", true).await;
        world.keys(" ").await;
        world.shot("focus").await;
        world.keys(&enter).await;

        // The focus goes on to the next question.
        wait("the focus on the next question", async || {
            world.has_focus(".question input[type=text]").await.then_some(())
        })
        .await;
        world.keys(&format!("here{enter}")).await;
        world.hears("and we meet here: here.").await;
        assert!(world.has_focus("#text").await, "the focus is back at the message");
    })
    .await;
}
