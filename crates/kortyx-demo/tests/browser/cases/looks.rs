//! Phones, the dark, and what a screen reader needs.

use serde_json::json;

use crate::world::{Plan, World};

/// Every control has a name, every id is there once.
pub(super) const UNNAMED: &str = "
    const controls = [...document.querySelectorAll('input, select, textarea, button, a')];
    const unnamed = controls.filter((one) => !(one.labels?.length || one.innerText?.trim() || one.getAttribute('aria-label')));
    const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
    return [...unnamed.map((one) => one.outerHTML), ...ids.filter((id, index) => ids.indexOf(id) !== index)];
";

/// The lowest contrast of a text with what is behind it.
pub(super) const CONTRAST: &str = "
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => {
        const [r, g, b] = parts(colour).map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
        for (; node; node = node.parentElement) {
            const colour = getComputedStyle(node).backgroundColor;
            if (parts(colour).length < 4 || parts(colour)[3] > 0) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const texts = [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility() && [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
    const rates = texts.filter((node) => node.tagName !== 'OPTION').map((node) => {
        const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x);
        return [(a + 0.05) / (b + 0.05), node.outerHTML.slice(0, 120)];
    });
    return rates.sort((x, y) => x[0] - y[0])[0];
";

/// Goes on until the form of the contract is there.
async fn to_the_form(world: &World) {
    world.open("/").await;
    world.say("review", "a release with anextremelylongwordthatdoesnotfitintothewidthofanyphoneinthisworld").await;
    world.select("What do you say", &["approve"]).await;
    world.write("Which headline?", "Anextremelylongheadlinethatdoesnotfitintothewidthofanyphone").await;
    world.select("Where shall it appear?", &["web"]).await;
    world.select("Who owns it?", &["ada"]).await;
    world.question("release").await;
}

#[tokio::test]
async fn nothing_is_wider_than_a_phone() {
    let test = Plan { is_phone: true, ..Plan::new("phone") };
    test.run(async |world| {
        to_the_form(world).await;
        let width = world.run("return [innerWidth, document.documentElement.scrollWidth]").await;
        world.shot("form").await;
        assert_eq!(width, json!([360, 360]), "it scrolls sideways");
        assert_eq!(world.run(UNNAMED).await, json!([]));
        world.element("nav a[href^='/inbox']").await.click().await.unwrap();
        world.question("release").await;
        world.shot("inbox").await;
        assert_eq!(world.run("return document.documentElement.scrollWidth").await, json!(360));
    })
    .await;
}

#[tokio::test]
async fn light_and_dark_can_be_read() {
    let dark: &[&str] = &["--force-dark-mode", "--blink-settings=preferredColorScheme=0"];
    for (name, browser, is_dark) in [("light", &[] as &[&str], false), ("dark", dark, true)] {
        let test = Plan { browser, ..Plan::new(name) };
        test.run(async |world| {
            to_the_form(world).await;
            assert_eq!(world.run("return matchMedia('(prefers-color-scheme: dark)').matches").await, json!(is_dark));
            world.shot("form").await;
            let lowest = world.run(CONTRAST).await;
            assert!(lowest[0].as_f64().unwrap() >= 4.5, "{lowest}");
        })
        .await;
    }
}
