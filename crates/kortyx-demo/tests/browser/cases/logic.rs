//! The parts of the page that need no server: reading streams, folding turns, forms from schemas, words for errors.

use serde_json::{Value, json};

use crate::world::Plan;

/// Runs each test of `logic.js`, in a module's own words: what failed.
const RUN: &str = include_str!("logic.js");

#[tokio::test]
async fn the_parts_of_the_page_do_what_they_say() {
    let test = Plan::new("logic");
    test.run(async |world| {
        world.open("/inbox").await;
        let results = world.client.execute_async(RUN, Vec::new()).await.unwrap();
        let results = results.as_array().unwrap();
        let failed: Vec<_> = results.iter().filter(|result| result["fault"] != Value::Null).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert!(results.len() >= 10, "{} tests ran", results.len());
    })
    .await;
}

#[tokio::test]
async fn a_page_runs_no_script_but_its_own_and_makes_no_markup_of_data() {
    let test = Plan::new("policy");
    test.run(async |world| {
        world.open("/").await;
        let refused =
            world.run("try { document.body.innerHTML = '<p>x</p>'; return false } catch { return true }").await;
        assert_eq!(refused, json!(true), "markup can be made of data");
        let inline = "
            const done = arguments[0];
            addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));
            const image = new Image();
            image.src = 'http://127.0.0.2/x.png';
        ";
        assert_eq!(world.client.execute_async(inline, Vec::new()).await.unwrap(), json!("img-src"));
    })
    .await;
}
