//! Measures over the store in Redis.

mod place;
mod raw;

use std::{sync::Arc, time::Duration};

pub(crate) use self::place::Place;
use self::raw::Loop;
use super::{
    many::{self, Rounds},
    paused,
    server::{Server, at_ports, ports},
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

/// From the issue: "at least 35 % of the rate of a raw loop that does the same number of `SET`/`GETDEL` round trips".
const RATIO: f64 = 0.35;

/// How long a reply of a Cluster takes when round trips are counted.
const LATE: Duration = Duration::from_millis(20);

/// Round trips on a server of its own.
pub(crate) async fn trips(options: &Options) -> Result<Vec<Row>, Error> {
    let place = Place::new(Server::Redis)?;
    let rows = counted("redis", &place, Duration::ZERO, options).await?;
    place.clear().await?;
    Ok(rows)
}

/// Round trips on a Cluster. By the time that they take: indexes are told meanwhile, and nobody waits for that.
pub(crate) async fn cluster_trips(options: &Options) -> Result<Vec<Row>, Error> {
    counted("redis-cluster", &Place::new(Server::RedisCluster)?, LATE, options).await
}

async fn counted(name: &str, place: &Place, delay: Duration, options: &Options) -> Result<Vec<Row>, Error> {
    let wire = Wire::slow(&ports(&place.url)?, delay).await?;
    let store = place.behind(&wire).await?;
    let rows = trips::rows(name, &store, &wire, options).await?;
    store.close().await;
    Ok(rows)
}

/// Many runs at once over one connection.
pub(crate) async fn many(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count) = options.size((11, 40), (3, 10));
    let place = Place::new(Server::Redis)?;
    let store = place.store(&place.url).await?;
    let mut rows = Vec::new();
    for size in Size::ALL {
        let watched = Watched::new(store.clone());
        Workload::sized(size, watched.clone()).await?.cycle().await?;
        let trips = trips_of_a_cycle(&place, size, options).await?;
        let raw = Loop::new(&place, trips, &watched.template()?).await?;
        rows.extend(many::rows("redis", size, RATIO, &store, &raw, Rounds { samples, count }).await?);
        raw.close().await?;
    }
    store.close().await;
    place.clear().await?;
    Ok(rows)
}

/// How often a cycle waits for the server, which the raw loop does as often.
async fn trips_of_a_cycle(place: &Place, size: Size, options: &Options) -> Result<f64, Error> {
    let wire = Wire::to(&ports(&place.url)?).await?;
    let store = place.behind(&wire).await?;
    let trips = trips::count(&store, &wire, size, options).await?;
    store.close().await;
    Ok(trips.to_pause + trips.to_resume)
}

/// What paused runs keep in this process.
pub(crate) async fn paused(options: &Options) -> Result<Vec<Row>, Error> {
    let place = Place::new(Server::Redis)?;
    let store: Arc<_> = place.store(&place.url).await?;
    let rows = paused::rows("redis", &store, options).await?;
    store.close().await;
    place.clear().await?;
    Ok(rows)
}

impl Place {
    /// Opens the store so that what it says passes a relay.
    async fn behind(&self, wire: &Wire) -> Result<Arc<dyn kortyx_store::Store>, Error> {
        self.store(&at_ports(&self.url, &ports(&self.url)?, wire.ports())).await
    }
}
