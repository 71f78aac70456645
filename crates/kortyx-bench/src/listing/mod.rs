//! A page of open questions among few and among many.

mod memory;
mod population;
mod postgres;
mod redis;
mod sqlite;

use std::{sync::Arc, time::Instant};

use kortyx_store::{InterruptQuery, Store};

use self::population::{Listing, PAGE};
pub(crate) use self::{memory::memory, postgres::postgres, redis::redis, sqlite::sqlite};
use crate::{
    error::Error,
    number::{Unit, float, plain},
    options::Options,
    row::{Row, Target},
    statistics::Pairs,
};

/// From the issue: "a page from 1,000,000 pending questions costs within 2x of a page from 1,000".
const RATIO: f64 = 2.0;
/// The few.
const FEW: u64 = 1_000;

fn many_of(options: &Options) -> u64 {
    options.questions.unwrap_or(options.size(1_000_000, 100_000))
}

/// A store with open questions.
struct Filled {
    store: Arc<dyn Store>,
    count: u64,
}

/// Pages of both stores in turn, one row for each kind of listing.
async fn rows(name: &str, few: &Filled, many: &Filled, options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, pages) = options.size((25, 40), (9, 20));
    let mut rows = Vec::new();
    for listing in Listing::ALL {
        let (from_few, from_many) = (query(few, listing).await?, query(many, listing).await?);
        let mut pairs = Pairs::default();
        // The first ones only warm up.
        micros(many, &from_many, pages).await?;
        micros(few, &from_few, pages).await?;
        for _ in 0..samples {
            let (large, small) = (micros(many, &from_many, pages).await?, micros(few, &from_few, pages).await?);
            pairs.push(large, small);
        }
        let (count, few) = (plain(float(many.count)), plain(float(few.count)));
        let measure = format!("{name}: a page {}, {count} questions to {few}", listing.name());
        let row = Row::new(measure, pairs.measured(), Unit::Micros).against(pairs.reference(), pairs.ratio());
        rows.push(row.target(Target::AtMost(RATIO)));
    }
    Ok(rows)
}

/// Microseconds for a page.
async fn micros(filled: &Filled, query: &InterruptQuery, pages: u32) -> Result<f64, Error> {
    let since = Instant::now();
    for _ in 0..pages {
        let page = filled.store.list_interrupts(query.clone()).await?;
        if page.interrupts.len() != PAGE as usize {
            return Err(Error::unexpected(format!("a page holds {} questions", page.interrupts.len())));
        }
    }
    Ok(since.elapsed().as_secs_f64() * 1e6 / f64::from(pages))
}

/// The query of a listing, with the cursor that it starts from.
async fn query(filled: &Filled, listing: Listing) -> Result<InterruptQuery, Error> {
    let mut query = listing.query(filled.count)?;
    if listing.is_deep() {
        query.cursor = cursor_in_the_middle(filled, &query).await?;
    }
    Ok(query)
}

/// Pages on until half of the busy session's questions are behind.
async fn cursor_in_the_middle(filled: &Filled, query: &InterruptQuery) -> Result<Option<String>, Error> {
    let mut query = InterruptQuery { limit: 200, ..query.clone() };
    let mut seen = 0;
    while seen < population::busy(filled.count) / 2 {
        let page = filled.store.list_interrupts(query.clone()).await?;
        seen += page.interrupts.len() as u64;
        if page.next.is_none() {
            return Err(Error::unexpected(format!("a listing ends after {} questions", float(seen))));
        }
        query.cursor = page.next;
    }
    Ok(query.cursor)
}
