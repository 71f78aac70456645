//! What stands for a model when there is none: it does what a model would do with this conversation, and takes its time.

use std::time::Duration;

use kortyx_reason::{EMIT_PREFIX, Message, REQUEST_INPUT_PREFIX, Script, ScriptedModel};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    CARD, Card, DETAILS, Details,
    tables::{Booked, Found, Wanted},
};

/// Between two pieces of four letters: about as fast as models write.
const PACE: Duration = Duration::from_millis(20);

/// Words for numbers of guests.
const NUMBERS: [&str; 8] = ["one", "two", "three", "four", "five", "six", "seven", "eight"];

/// Words for days.
const DAYS: [&str; 9] =
    ["today", "tomorrow", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// A model that reads the conversation for a day and a number, and plays the rest.
pub(crate) fn scripted() -> ScriptedModel {
    ScriptedModel::from_fn(|messages| next(messages).split(4).pace(PACE))
}

/// What the model does now.
fn next(messages: &[Message]) -> Script {
    let turn = turn(messages);
    match turn.iter().rev().find_map(|message| tool_result(message)) {
        None => match understood(turn) {
            Some(details) => look(&details),
            None => ask(),
        },
        Some(("find_tables", content, false)) => propose(turn, content),
        Some(("book_table", content, false)) => conclude(content),
        Some((tool, _, false)) if tool == showing() => Script::new().text("Enjoy the evening!"),
        Some((tool, content, false)) if tool == asking() => match serde_json::from_str(content) {
            Ok(details) => look(&details),
            Err(_) => ask(),
        },
        Some((_, content, _)) => {
            let text = format!("Then nothing is booked ({}). What would you like instead?", shortened(content));
            Script::new().text(text)
        }
    }
}

/// The conversation since the person spoke last.
fn turn(messages: &[Message]) -> &[Message] {
    let last = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
    messages.get(last.unwrap_or_default()..).unwrap_or_default()
}

fn tool_result(message: &Message) -> Option<(&str, &str, bool)> {
    match message {
        Message::Tool { tool, content, is_error, .. } => Some((tool, content, *is_error)),
        _ => None,
    }
}

fn asking() -> String {
    format!("{REQUEST_INPUT_PREFIX}{}", DETAILS.info().name)
}

fn showing() -> String {
    format!("{EMIT_PREFIX}{}", CARD.info().name)
}

/// The day and the number in what the person wrote; nothing when one of them is missing.
fn understood(turn: &[Message]) -> Option<Details> {
    let Some(Message::User { content }) = turn.first() else { return None };
    let content = content.to_lowercase();
    let words = content.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
    let (mut day, mut guests) = (None, None);
    for word in words {
        let number = NUMBERS.iter().zip(1..).find(|(name, _)| **name == word).map(|(_, number)| number);
        guests = guests.or(number).or(word.parse().ok().filter(|number| (1..=8).contains(number)));
        let is_date = word.len() == 10 && word.split('-').all(|part| part.parse::<u16>().is_ok());
        day = day.or((is_date || DAYS.contains(&word)).then(|| word.to_owned()));
    }
    Some(Details { day: day?, guests: guests? })
}

fn ask() -> Script {
    let request = json!({"question": "For which day, and for how many?"});
    Script::new().text("A table, with pleasure. One thing first.").call(asking(), request)
}

fn look(details: &Details) -> Script {
    let text = format!("I look for a table for {}.", details.guests);
    Script::new().text(text).call("find_tables", json!({"day": details.day, "guests": details.guests}))
}

/// Takes the first of the tables.
fn propose(turn: &[Message], content: &str) -> Script {
    let found = read::<Vec<Found>>(content).unwrap_or_default();
    let (Some(Wanted { day, guests }), Some(Found { restaurant, time, .. })) = (wanted(turn), found.first()) else {
        return Script::new().text("There is no table for so many.");
    };
    let note = "By the window, please.";
    let text = format!("{} free. I would take {restaurant}, at {time}.", count(found.len()));
    let booking = json!({"restaurant": restaurant, "time": time, "day": day, "guests": guests, "note": note});
    Script::new().text(text).call("book_table", booking)
}

fn count(tables: usize) -> String {
    if tables == 1 { "One table is".into() } else { format!("{tables} tables are") }
}

/// Shows what was booked, which a person may have changed.
fn conclude(content: &str) -> Script {
    // In front of it may stand what a person changed.
    let booked = content.rfind('{').and_then(|at| content.get(at..)).and_then(read::<Booked>);
    let Some(Booked { confirmation, restaurant, day, time, guests }) = booked else {
        return Script::new().text("It is booked.");
    };
    let text = format!("Booked: {restaurant}, {day}, for {guests}.");
    let card = Card {
        title: restaurant,
        when: format!("{day}, {time}"),
        guests,
        confirmation,
        about: "A quiet room, candles on the tables, and a kitchen that one can see from everywhere. The bread is baked in the house.".into(),
        tips: ["Ask for the table by the window.", "Leave room for the plum cake.", "The tram stops at the door."].map(Into::into).into(),
    };
    // Written field by field, as a model would.
    Script::new().text(text).call_text(showing(), serde_json::to_string(&card).unwrap_or_default())
}

/// What was looked for last.
fn wanted(turn: &[Message]) -> Option<Wanted> {
    let calls = turn.iter().rev().filter_map(|message| match message {
        Message::Assistant { tool_calls, .. } => Some(tool_calls),
        _ => None,
    });
    let last = calls.flatten().find(|call| call.tool == "find_tables");
    last.and_then(|call| read(&call.arguments))
}

fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// The first sentence of a refusal is for the model, what a person says is for people.
fn shortened(content: &str) -> &str {
    content.split_once("They say: ").map_or(content, |(_, said)| said).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_a_number_are_found_in_what_is_written() {
        let found = |text: &str| understood(&[Message::user(text)]).map(|details| (details.day, details.guests));
        assert_eq!(found("A table for five, on Friday!"), Some(("friday".into(), 5)));
        assert_eq!(found("2027-01-31, for 2"), Some(("2027-01-31".into(), 2)));
        assert_eq!(found("dinner for two"), None);
        assert_eq!(found("dinner on Sunday for 12"), None);
    }

    #[test]
    fn what_a_person_said_of_a_rejection_is_what_is_repeated() {
        assert_eq!(shortened("A person rejected this call; it was not made. They say: Too late."), "Too late");
        assert_eq!(shortened("the tool failed"), "the tool failed");
    }
}
