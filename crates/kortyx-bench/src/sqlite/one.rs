//! One run alone, against raw transactions.

use std::{path::Path, sync::Arc};

use kortyx_store::Store as _;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteSynchronous};
use tokio::sync::Mutex;

use super::{
    commits,
    file::File,
    group::{Travel, commit},
    rows::{Step, statements},
};
use crate::{
    error::Error,
    number::Unit,
    options::Options,
    pace::{Pace, Race, Watch},
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
    let together = Raw::new(options, &template, Travel::Together).await?;
    let alone = Raw::new(options, &template, Travel::Alone).await?;
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
    let workload = workload.clone();
    in_a_task(async move {
        let watch = Watch::start();
        for _ in 0..count {
            workload.cycle().await?;
        }
        Ok(watch.pace(count))
    })
    .await
}

/// On a thread of the runtime, as the tasks of an application are.
async fn in_a_task(work: impl Future<Output = Result<Pace, Error>> + Send + 'static) -> Result<Pace, Error> {
    tokio::spawn(work).await.map_err(|_| Error::unexpected("a loop panicked"))?
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
    /// `None` once closed.
    writer: Arc<Mutex<Option<RawWriter>>>,
    /// The file must live as long as the connection.
    _file: File,
}

struct RawWriter {
    connection: SqliteConnection,
    template: Template,
    travel: Travel,
    last: i64,
}

impl Raw {
    async fn new(options: &Options, template: &Template, travel: Travel) -> Result<Self, Error> {
        let file = File::new(options).await?;
        let connection = file.connect(SqliteSynchronous::Full).await?;
        let writer = RawWriter { connection, template: template.clone(), travel, last: 0 };
        let raw = Self { writer: Arc::new(Mutex::new(Some(writer))), _file: file };
        raw.pace(20).await?;
        Ok(raw)
    }

    async fn pace(&self, count: u64) -> Result<Pace, Error> {
        let writer = Arc::clone(&self.writer);
        in_a_task(async move {
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or_else(|| Error::unexpected("the raw loop was closed"))?;
            let watch = Watch::start();
            for _ in 0..count {
                writer.cycle().await?;
            }
            Ok(watch.pace(count))
        })
        .await
    }

    async fn close(self) -> Result<(), Error> {
        let writer = self.writer.lock().await.take();
        if let Some(writer) = writer {
            writer.connection.close().await?;
        }
        Ok(())
    }
}

impl RawWriter {
    async fn cycle(&mut self) -> Result<(), Error> {
        self.last += 1;
        let ids = Ids::of(self.last.unsigned_abs());
        for step in Step::ALL {
            let unit = (step, statements(&self.template, step, self.last, &ids));
            commit(&mut self.connection, vec![unit], self.travel).await?;
        }
        Ok(())
    }
}
