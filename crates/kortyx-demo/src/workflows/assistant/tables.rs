//! The tools of the assistant. The restaurants are made up.

use kortyx_reason::{ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table for so many, at a time of the day.
struct Free {
    restaurant: &'static str,
    time: &'static str,
    seats: u8,
}

const FREE: &[Free] = &[
    Free { restaurant: "The Lantern", time: "19:00", seats: 4 },
    Free { restaurant: "Olive & Thyme", time: "19:30", seats: 6 },
    Free { restaurant: "Harbour House", time: "20:15", seats: 8 },
];

/// What is looked for.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// The day, as a date or as the person calls it.
    pub(super) day: String,
    #[schemars(range(min = 1, max = 8))]
    pub(super) guests: u8,
}

/// A table that was found.
#[derive(Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) restaurant: String,
    pub(super) time: String,
    pub(super) seats: u8,
}

/// What is booked.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Booking {
    #[schemars(length(min = 1, max = 60), extend("title" = "Restaurant"))]
    pub(super) restaurant: String,
    #[schemars(length(min = 1, max = 60), extend("title" = "Day"))]
    pub(super) day: String,
    #[schemars(length(min = 1, max = 60), extend("title" = "Time"))]
    pub(super) time: String,
    #[schemars(range(min = 1, max = 8), extend("title" = "Guests"))]
    pub(super) guests: u8,
    /// What the restaurant should know.
    #[serde(default)]
    #[schemars(length(max = 100), extend("title" = "Note"))]
    pub(super) note: String,
}

/// A booking that was made.
#[derive(Serialize, Deserialize)]
pub(super) struct Booked {
    pub(super) confirmation: String,
    pub(super) restaurant: String,
    pub(super) day: String,
    pub(super) time: String,
    pub(super) guests: u8,
}

/// Looks for tables. It changes nothing, so nobody has to allow it.
pub(super) async fn find(wanted: Wanted, _: ToolContext) -> Result<Vec<Found>, ToolError> {
    let fits = FREE.iter().filter(|table| table.seats >= wanted.guests);
    Ok(fits
        .map(|table| Found { restaurant: table.restaurant.into(), time: table.time.into(), seats: table.seats })
        .collect())
}

/// Books a table.
pub(super) async fn book(booking: Booking, ctx: ToolContext) -> Result<Booked, ToolError> {
    let Some(table) = FREE.iter().find(|table| table.restaurant == booking.restaurant) else {
        return Err(ToolError::new(format!("there is no restaurant “{}”", booking.restaurant)));
    };
    if table.seats < booking.guests {
        return Err(ToolError::new(format!("{} has no table for {}", table.restaurant, booking.guests)));
    }
    // The same key for the same call, also when it is made again after a crash.
    let confirmation: String = ctx.idempotency_key().chars().filter(char::is_ascii_alphanumeric).take(6).collect();
    let Booking { restaurant, day, time, guests, .. } = booking;
    Ok(Booked { confirmation: confirmation.to_uppercase(), restaurant, day, time, guests })
}
