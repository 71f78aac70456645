//! Measures over the store in Postgres.

mod place;
mod raw;

use std::sync::Arc;

pub(crate) use self::place::Place;
use self::raw::Loop;
use super::{
    many::{self, Rounds},
    paused,
    server::{at_ports, ports},
    trips,
};
use crate::{
    error::Error,
    options::Options,
    row::Row,
    watched::Watched,
    wire::Wire,
    workload::{Size, Workload},
};

/// From the issue: "at least 50 % of a raw loop of the same number of single-row commits".
const RATIO: f64 = 0.50;
/// What the raw loop commits and reads in a cycle.
const COMMITS: f64 = 3.0;
const READS: f64 = 1.0;

/// Round trips.
pub(crate) async fn trips(options: &Options) -> Result<Vec<Row>, Error> {
    let place = Place::new("trips")?;
    let ports = ports(&place.url)?;
    let wire = Wire::to(&ports).await?;
    let store = place.store(&at_ports(&place.url, &ports, wire.ports())).await?;
    let rows = trips::rows("postgres", &store, &wire, options).await?;
    store.close().await;
    place.clear().await?;
    Ok(rows)
}

/// Many runs at once over a pool.
pub(crate) async fn many(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count) = options.size((9, 15), (3, 5));
    let place = Place::new("many")?;
    let store = place.store(&place.url).await?;
    let mut rows = Vec::new();
    for size in Size::ALL {
        let watched = Watched::new(store.clone());
        let workload = Workload::sized(size, watched.clone()).await?;
        let (writes, reads) = (watched.writes(), watched.reads());
        workload.cycle().await?;
        let (writes, reads) = (watched.writes() - writes, watched.reads() - reads);
        if (writes - COMMITS).abs() + (reads - READS).abs() > 0.5 {
            return Err(Error::unexpected(format!(
                "a cycle is {writes} commits and {reads} reads, unlike the raw one"
            )));
        }
        let raw = Loop::new(&place, &watched.template()?).await?;
        rows.extend(many::rows("postgres", size, RATIO, &store, &raw, Rounds { samples, count }).await?);
        raw.close().await?;
    }
    store.close().await;
    place.clear().await?;
    Ok(rows)
}

/// What paused runs keep in this process.
pub(crate) async fn paused(options: &Options) -> Result<Vec<Row>, Error> {
    let place = Place::new("paused")?;
    let store: Arc<_> = place.store(&place.url).await?;
    let rows = paused::rows("postgres", &store, options).await?;
    store.close().await;
    place.clear().await?;
    Ok(rows)
}
