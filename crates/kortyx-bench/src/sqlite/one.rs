//! One run alone, against raw transactions.

use std::{path::Path, sync::Arc};

use kortyx_store::Store as _;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteSynchronous};

use super::{
    commits,
    file::File,
    group::{Travel, commit},
    pace::{Pace, Race, Watch},
    rows::{Step, statements},
};
use crate::{
    error::Error,
    number::Unit,
    options::Options,
    row::{Row, Target},
    template::{Ids, Template},
    watched::Watched,
    workload::Workload,
};

/// From the issue: "one run alone at least 60 % of a raw loop of the same transactions".
const RATIO: f64 = 0.60;
/// From the issue: "a cycle takes at most 4 transactions".
const TRANSACTIONS: f64 = 4.0;

pub(crate) async fn one(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count): (u32, u64) = options.size((15, 150), (3, 40));
    let file = File::new(options).await?;
    let store = Watched::new(file.store().await?);
    let workload = Workload::over(store.clone()).await?;
    workload.cycle().await?;
    let counts = transactions(&workload, &store, &file.path()).await?;
    let template = store.template()?;
    let mut together = Raw::new(options, &template, Travel::Together).await?;
    let mut alone = Raw::new(options, &template, Travel::Alone).await?;
    let (mut to_together, mut to_alone) = (Race::default(), Race::default());
    for _ in 0..samples {
        let pace = measured(&workload, count).await?;
        to_together.push(pace, together.pace(count).await?);
        to_alone.push(pace, alone.pace(count).await?);
    }
    together.close().await?;
    alone.close().await?;
    store.close().await;
    let mut rows = vec![
        to_together.rates("sqlite: one run alone, cycles, against raw transactions").target(Target::AtLeast(RATIO)),
        to_together.processor("sqlite:   processor time of a cycle"),
        to_alone.rates("sqlite:   the same, raw statement by statement"),
    ];
    rows.extend(counts);
    Ok(rows)
}

async fn measured(workload: &Workload, count: u64) -> Result<Pace, Error> {
    let watch = Watch::start();
    for _ in 0..count {
        workload.cycle().await?;
    }
    Ok(watch.pace(count))
}

/// What a cycle asks of the store, and what the file sees of it.
async fn transactions(workload: &Workload, store: &Watched, path: &Path) -> Result<Vec<Row>, Error> {
    const CYCLES: u32 = 20;
    let (writes, reads, commits) = (store.writes(), store.reads(), commits::count(path)?);
    for _ in 0..CYCLES {
        workload.cycle().await?;
    }
    let commits = f64::from(commits::count(path)?.wrapping_sub(commits));
    let each = |count: f64| count / f64::from(CYCLES);
    Ok(vec![
        Row::new("sqlite: transactions of a cycle", each(commits), Unit::None).target(Target::AtMost(TRANSACTIONS)),
        Row::new("sqlite: transitions of a cycle", each(store.writes() - writes), Unit::None),
        Row::new("sqlite: reads of a cycle beside them", each(store.reads() - reads), Unit::None),
    ])
}

/// The raw loop.
struct Raw {
    connection: SqliteConnection,
    template: Arc<Template>,
    travel: Travel,
    last: i64,
    /// The file must live as long as the connection.
    _file: File,
}

impl Raw {
    async fn new(options: &Options, template: &Template, travel: Travel) -> Result<Self, Error> {
        let file = File::new(options).await?;
        let connection = file.connect(SqliteSynchronous::Full).await?;
        let mut raw = Self { connection, template: Arc::new(template.clone()), travel, last: 0, _file: file };
        raw.pace(20).await?;
        Ok(raw)
    }

    async fn pace(&mut self, count: u64) -> Result<Pace, Error> {
        let watch = Watch::start();
        for _ in 0..count {
            self.last += 1;
            self.cycle(self.last).await?;
        }
        Ok(watch.pace(count))
    }

    async fn cycle(&mut self, key: i64) -> Result<(), Error> {
        let ids = Ids::of(key.unsigned_abs());
        for step in Step::ALL {
            let unit = (step, statements(&self.template, step, key, &ids));
            commit(&mut self.connection, vec![unit], self.travel).await?;
        }
        Ok(())
    }

    async fn close(self) -> Result<(), Error> {
        self.connection.close().await?;
        Ok(())
    }
}
