//! What the program does without a terminal.

use serde_json::{Value, json};

use crate::program::Review;

#[test]
fn help_explains_every_option() {
    let said = Review::new().run(&["--help"]);
    assert!(said.is_well);
    for part in ["--store <PATH>", "--list", "--answer <ID> <VALUE>", "[FILE]", "kill -9"] {
        assert!(said.stdout.contains(part), "{part} is missing: {}", said.stdout);
    }
}

#[test]
fn without_a_terminal_a_review_begins_and_its_question_stays_open() {
    let mut review = Review::new();
    let said = review.run(&[]);
    assert!(said.is_well, "{}", said.stderr);
    assert!(said.stdout.contains("Notification sent"), "{}", said.stdout);
    assert!(said.stdout.contains("The question stays open"), "{}", said.stdout);

    let listed = review.run(&["--list"]).stdout;
    let first = listed.lines().next().unwrap();
    assert!(first.contains("asked ") && first.contains(" ago"), "no age: {listed}");
    assert!(first.contains("expires in 23 h") || first.contains("expires in 24 h"), "no expiry: {listed}");
    assert!(listed.contains("document-review/review") && listed.contains("approve | revise"), "{listed}");
}

#[test]
fn nothing_is_listed_before_a_review_and_nothing_can_be_answered() {
    let mut review = Review::new();
    assert_eq!(review.run(&["--list"]).stdout.trim(), "No question is open.");
    let said = review.run(&["--answer", "human-0", "approve"]);
    assert!(!said.is_well);
    assert!(said.stderr.contains("--list"), "{}", said.stderr);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let said = Review::new().run(&["no-such-file.txt"]);
    assert!(!said.is_well);
    assert!(said.stderr.contains("no-such-file.txt"), "{}", said.stderr);
}

#[test]
fn answers_without_the_dialog_lead_through_the_whole_review() {
    let mut review = Review::new();
    review.run(&[]);
    review.answer("revise");
    review.answer("the ferry");
    review.answer("approve");
    review.answer("web, mail");
    let said = review.answer(r#"{"date":"2027-03-01","audience":"customers"}"#);
    assert!(said.is_well, "{}", said.stderr);

    let (_, data) = said.stdout.split_once("The review is finished:").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["channels"], json!(["web", "mail"]));
    assert_eq!(data["release"], json!({"date": "2027-03-01", "audience": "customers"}));
    assert!(data["summary"].as_str().unwrap().contains("ferry"), "the note had no effect: {data}");
    assert_eq!(review.run(&["--list"]).stdout.trim(), "No question is open.");
    assert_eq!(review.notifications(), 1, "{}", review.printed);
}

#[test]
fn a_wrong_answer_shows_what_is_wrong_and_keeps_the_question() {
    let mut review = Review::new();
    review.run(&[]);
    refused(&mut review, "maybe", &["`maybe` is not one of the options"]);
    review.answer("revise");
    refused(&mut review, &"x".repeat(201), &["at most 200 characters"]);
    review.answer("the ferry");
    review.answer("approve");
    refused(&mut review, "web,fax", &["`fax` is not one of the options"]);
    review.answer("web");
    refused(&mut review, "tomorrow", &["takes JSON"]);
    refused(&mut review, r#"{"date":"2027-13-01","audience":"all"}"#, &["date: ", "audience: ", "internal"]);
    refused(&mut review, r#"{"audience":"internal"}"#, &["date"]);
    let said = review.answer(r#"{"date":"2027-03-01","audience":"internal"}"#);
    assert!(said.stdout.contains("The review is finished"), "{}", said.stdout);
    assert_eq!(review.notifications(), 1, "{}", review.printed);
}

/// The answer is refused for these reasons, and the same question is open after it.
fn refused(review: &mut Review, value: &str, reasons: &[&str]) {
    let before = review.open_question();
    let said = review.answer(value);
    assert!(!said.is_well, "{value} is refused, and the exit code must say so");
    let all = said.stdout + &said.stderr;
    assert!(reasons.iter().all(|reason| all.contains(reason)), "{value} is not refused for {reasons:?}: {all}");
    assert_eq!(review.open_question(), before);
}
