//! Many runs at once, against a raw group commit.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use sqlx::sqlite::SqliteSynchronous;

use super::{
    commits,
    file::File,
    group::{Group, Travel},
};
use crate::{
    crowd::{RUNS, at_once},
    error::Error,
    number::{Unit, float},
    options::Options,
    pace::{Pace, Race, Watch},
    row::{Row, Target},
    statistics::median,
    template::Template,
    watched::Watched,
    workload::Workload,
};

/// From the issue: "64 runs at once reach at least 30 % of a raw group-commit loop over the same rows".
const RATIO: f64 = 0.30;

pub(crate) async fn many(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count): (u32, u64) = options.size((9, 40), (3, 10));
    let file = File::new(options).await?;
    let store = file.store().await?;
    let watched = Watched::new(store.clone());
    Workload::over(watched.clone()).await?.cycle().await?;
    let template = Arc::new(watched.template()?);
    let workload = Workload::over(store.clone()).await?;
    let together = Raw::new(options, &template, Travel::Together).await?;
    let alone = Raw::new(options, &template, Travel::Alone).await?;
    measured(&workload, 2).await?;
    let (mut to_together, mut to_alone, mut grouped) = (Race::default(), Race::default(), Vec::new());
    for _ in 0..samples {
        let before = commits::count(&file.path())?;
        let pace = measured(&workload, count).await?;
        let commits = commits::count(&file.path())?.wrapping_sub(before);
        grouped.push(f64::from(commits) / float(RUNS * count));
        to_together.push(pace, together.pace(count).await?);
        to_alone.push(pace, alone.pace(count).await?);
    }
    together.group.close().await?;
    alone.group.close().await?;
    store.close().await;
    Ok(rows(&to_together, &to_alone, &grouped))
}

fn rows(together: &Race, alone: &Race, grouped: &[f64]) -> Vec<Row> {
    let measure = format!("sqlite: {RUNS} runs at once, cycles, against a raw group commit");
    vec![
        together.rates(&measure).target(Target::AtLeast(RATIO)),
        together.processor("sqlite:   processor time of a cycle"),
        alone.rates("sqlite:   the same, raw statement by statement"),
        Row::new(format!("sqlite: transactions of a cycle, {RUNS} runs at once"), median(grouped), Unit::None),
    ]
}

/// The pace of all runs together.
async fn measured(workload: &Workload, count: u64) -> Result<Pace, Error> {
    let cycles = |_| {
        let workload = workload.clone();
        async move {
            for _ in 0..count {
                workload.cycle().await?;
            }
            Ok(())
        }
    };
    together(count, cycles).await
}

/// How fast the loops go together, of which each makes so many cycles.
async fn together<F>(count: u64, loops: impl Fn(u64) -> F) -> Result<Pace, Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let watch = Watch::start();
    at_once(loops).await?;
    Ok(watch.pace(RUNS * count))
}

/// The raw loops.
struct Raw {
    group: Group,
    last: Arc<AtomicI64>,
    /// The file must live as long as the connection.
    _file: File,
}

impl Raw {
    async fn new(options: &Options, template: &Arc<Template>, travel: Travel) -> Result<Self, Error> {
        let file = File::new(options).await?;
        let connection = file.connect(SqliteSynchronous::Full).await?;
        let group = Group::start(connection, template.clone(), travel);
        let raw = Self { group, last: Arc::default(), _file: file };
        raw.pace(2).await?;
        Ok(raw)
    }

    async fn pace(&self, count: u64) -> Result<Pace, Error> {
        let cycles = |_| {
            let (client, last) = (self.group.client(), self.last.clone());
            async move {
                for _ in 0..count {
                    client.cycle(last.fetch_add(1, Ordering::Relaxed) + 1).await?;
                }
                Ok(())
            }
        };
        together(count, cycles).await
    }
}
