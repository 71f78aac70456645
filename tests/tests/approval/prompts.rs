//! The dialog in a terminal, killed and left at every prompt.

use serde_json::{Value, json};

use crate::{program::Review, terminal::Terminal};

const ENTER: &str = "\r";
const DOWN: &str = "\x1b[B";
const SPACE: &str = " ";
const CTRL_C: &str = "\x03";

const VERDICT: &str = "What do you say to this summary?";
const NOTE: &str = "What should it be about?";
const CHANNELS: &str = "Where should it be published?";
const DATE: &str = "The day, as YYYY-MM-DD:";
const AUDIENCE: &str = "Who it is for:";
/// In whichever order the build keeps the properties of a schema.
const FORM: [&str; 2] = [DATE, AUDIENCE];

#[test]
fn a_kill_at_any_prompt_is_followed_by_the_same_prompt_and_the_step_is_not_repeated() {
    let mut review = Review::new();
    let mut terminal = review.start();
    terminal.see("Notification sent");
    terminal.see(VERDICT);
    terminal = killed(&mut review, terminal, VERDICT);
    terminal.press(DOWN);
    terminal.press(ENTER);
    terminal.see(NOTE);
    terminal = killed(&mut review, terminal, NOTE);
    terminal.press("ferry");
    terminal.press(ENTER);
    terminal.see(VERDICT);
    terminal = killed(&mut review, terminal, VERDICT);
    terminal.press(ENTER);
    terminal.see(CHANNELS);
    terminal = killed(&mut review, terminal, CHANNELS);
    terminal.press(SPACE);
    terminal.press(ENTER);
    let first = FORM[terminal.see_one_of(&FORM)];
    terminal = killed(&mut review, terminal, first);
    let second = fill_one(&mut terminal, first, "2027-03-01");
    terminal.see(second);
    // A form that was left half filled in begins again.
    terminal = killed(&mut review, terminal, first);
    let second = fill_one(&mut terminal, first, "2027-03-01");
    terminal.see(second);
    fill_one(&mut terminal, second, "2027-03-01");
    terminal.see("The review is finished:");

    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    let (_, data) = shown.split_once("The review is finished:").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["channels"], json!(["web"]));
    assert_eq!(data["release"], json!({"date": "2027-03-01", "audience": "customers"}));
    review.printed.push_str(&shown);
    assert_eq!(review.notifications(), 1, "{}", review.printed);
}

#[test]
fn ctrl_c_at_a_prompt_leaves_the_question_open() {
    let mut review = Review::new();
    let mut terminal = review.start();
    terminal.see(VERDICT);
    terminal.press(CTRL_C);
    terminal.see("The question stays open");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    review.printed.push_str(&shown);

    let mut terminal = review.start();
    terminal.see("Going on where you left off.");
    terminal.see(VERDICT);
    review.printed.push_str(&terminal.kill());
    assert_eq!(review.notifications(), 1, "{}", review.printed);
}

#[test]
fn a_wrong_answer_at_a_prompt_is_explained_and_asked_again() {
    let mut review = Review::new();
    review.run(&[]);
    for answer in ["approve", "web"] {
        review.answer(answer);
    }
    let mut terminal = review.start();
    let first = FORM[terminal.see_one_of(&FORM)];
    let second = fill_one(&mut terminal, first, "soon");
    terminal.see(second);
    fill_one(&mut terminal, second, "soon");
    terminal.see("This answer does not fit");
    terminal.see("date: ");
    terminal.see(first);
    terminal.kill();
}

/// Answers one prompt of the form, and returns the other.
fn fill_one(terminal: &mut Terminal, prompt: &str, date: &str) -> &'static str {
    let (keys, other) = if prompt == DATE { (date, AUDIENCE) } else { (DOWN, DATE) };
    terminal.press(keys);
    terminal.press(ENTER);
    other
}

/// Kills the program at its prompt and starts it again, where it must show this prompt first.
fn killed(review: &mut Review, terminal: Terminal, prompt: &str) -> Terminal {
    review.printed.push_str(&terminal.kill());
    let mut terminal = review.start();
    terminal.see("Going on where you left off.");
    terminal.see(prompt);
    terminal
}
