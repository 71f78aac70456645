//! The store in Postgres, filled with SQL on the tables that the store made.

use super::{
    FEW, Filled, many_of,
    population::{PAGE, QUESTION},
    rows,
};
use crate::{error::Error, options::Options, row::Row, served::postgres::Place};

pub(crate) async fn postgres(options: &Options) -> Result<Vec<Row>, Error> {
    let (few, many) = (Place::new("few")?, Place::new("many")?);
    let filled_few = filled(&few, FEW).await?;
    let filled_many = filled(&many, many_of(options)).await?;
    let rows = rows("postgres", &filled_few, &filled_many, options).await?;
    filled_few.store.close().await;
    filled_many.store.close().await;
    few.clear().await?;
    many.clear().await?;
    Ok(rows)
}

async fn filled(place: &Place, count: u64) -> Result<Filled, Error> {
    // Plans that were made while the tables were empty must be as good, but a store begins with new connections anyway.
    place.store(&place.url).await?.close().await;
    let mut connection = place.connect().await?;
    for statement in include_str!("fill_postgres.sql").split(";\n").filter(|statement| !statement.trim().is_empty()) {
        let sql = statement
            .replace("{count}", &count.to_string())
            .replace("{page}", &PAGE.to_string())
            .replace("{question}", QUESTION);
        sqlx::raw_sql(place.render(&sql)).execute(&mut connection).await?;
    }
    Ok(Filled { store: place.store(&place.url).await?, count })
}
