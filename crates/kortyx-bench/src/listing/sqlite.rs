//! The store in a file, filled with SQL on the tables that the store made.

use sqlx::{Connection as _, sqlite::SqliteSynchronous};

use super::{
    FEW, Filled, many_of,
    population::{PAGE, QUESTION},
    rows,
};
use crate::{
    error::Error,
    options::Options,
    row::Row,
    sqlite::{File, now},
};

pub(crate) async fn sqlite(options: &Options) -> Result<Vec<Row>, Error> {
    let (few, many) = (File::new(options).await?, File::new(options).await?);
    let few = (filled(&few, FEW).await?, few);
    let many = (filled(&many, many_of(options)).await?, many);
    let rows = rows("sqlite", &few.0, &many.0, options).await?;
    few.0.store.close().await;
    many.0.store.close().await;
    Ok(rows)
}

async fn filled(file: &File, count: u64) -> Result<Filled, Error> {
    let mut connection = file.connect(SqliteSynchronous::Off).await?;
    let mut transaction = connection.begin().await?;
    sqlx::query(include_str!("fill.sql"))
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .bind(now())
        .bind(QUESTION.as_bytes())
        .bind(i64::from(PAGE))
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await?;
    connection.close().await?;
    Ok(Filled { store: file.store().await?, count })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::listing::{memory, population::Listing};

    #[tokio::test]
    async fn both_stores_hold_the_same_questions_and_list_them_in_the_same_order() {
        let file = File::new(&Options::parse_from(["bench"])).await.unwrap();
        let (in_file, in_memory) = (filled(&file, 400).await.unwrap(), memory::filled(400).await.unwrap());

        for listing in Listing::ALL {
            let query = listing.query(400).unwrap();
            let one = in_file.store.list_interrupts(query.clone()).await.unwrap().interrupts;
            let other = in_memory.store.list_interrupts(query).await.unwrap().interrupts;
            assert_eq!((one.len(), other.len()), (50, 50), "{listing:?}");
            for (one, other) in one.iter().zip(&other) {
                assert_eq!((&one.session_id, &one.context), (&other.session_id, &other.context));
                assert_eq!((&one.question, &one.ask), (&other.question, &other.ask));
            }
        }
        in_file.store.close().await;
    }
}
