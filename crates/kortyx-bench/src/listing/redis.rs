//! The store in Redis, filled through the port by many loops at once.

use std::sync::Arc;

use kortyx_store::{Store, Suspended};

use super::{FEW, Filled, memory::request, rows};
use crate::{
    crowd::{RUNS, at_once},
    error::Error,
    options::Options,
    row::Row,
    served::{Server, redis::Place},
};

/// Each is a transition, which a server does one after another: more would take minutes.
fn many_of(options: &Options) -> u64 {
    options.questions.unwrap_or(options.size(200_000, 20_000))
}

pub(crate) async fn redis(options: &Options) -> Result<Vec<Row>, Error> {
    let place = Place::new(Server::Redis)?;
    let few = filled(place.store_under(place.url(), ".few").await?, FEW).await?;
    let many = filled(place.store_under(place.url(), ".many").await?, many_of(options)).await?;
    let rows = rows("redis", &few, &many, options).await?;
    few.store.close().await;
    many.store.close().await;
    place.clear().await?;
    Ok(rows)
}

async fn filled(store: Arc<dyn Store>, count: u64) -> Result<Filled, Error> {
    at_once(|first| {
        let store = store.clone();
        async move {
            let mut number = first;
            while number < count {
                match store.suspend(request(number)?).await? {
                    Suspended::Saved(_) => number += RUNS,
                    other => return Err(Error::unexpected(format!("a run must wait, not: {other:?}"))),
                }
            }
            Ok(())
        }
    })
    .await?;
    Ok(Filled { store, count })
}
