//! What a run costs more while its facts are reported to a receiver that is dead, or never answers.

use std::sync::Arc;

use kortyx_memory::MemoryStore;
use kortyx_store::Store;
use kortyx_telemetry::{StudioConfig, StudioReporter};
use tokio::net::TcpListener;

use crate::{
    crowd::{RUNS, at_once},
    error::Error,
    options::Options,
    pace::{Pace, Race, Watch},
    row::{Row, Target},
    sqlite::File,
    workload::Workload,
};

/// From the issue: "with the endpoint dead or slow the bench shows under 1 % difference".
const RATIO: f64 = 0.99;

/// Who should take the events.
#[derive(Debug, Clone, Copy)]
enum Receiver {
    /// Connections are refused.
    Dead,
    /// Connections are taken, and nothing is ever answered.
    Slow,
}

/// Paces with a reporter, against those without any.
struct Reported {
    receiver: Receiver,
    reporter: StudioReporter,
    race: Race,
}

/// Many runs at once over a file.
pub(crate) async fn sqlite(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count): (u32, u64) = options.size((40, 15), (3, 5));
    let file = File::new(options).await?;
    let store = file.store().await?;
    let silent = Workload::over(store.clone()).await?;
    let mut all = Reported::all().await?;
    for sample in 0..=samples {
        let without = crowd(&silent, count).await?;
        for reported in in_turn(&mut all, sample) {
            let workload = Workload::telling(store.clone(), reported.reporter.clone()).await?;
            reported.note(sample, crowd(&workload, count).await?, without);
        }
    }
    store.close().await;
    let rows = |one: &Reported| {
        let [rates, processor] = one.rows("sqlite");
        [rates.target(Target::AtLeast(RATIO)), processor]
    };
    Ok(all.iter().flat_map(rows).collect())
}

/// One run after the other, in memory on one core: beside so little work the reporter's own shows.
pub(crate) async fn memory(options: &Options) -> Result<Vec<Row>, Error> {
    let (samples, count): (u32, u64) = options.size((9, 10_000), (3, 2_000));
    let mut all = Reported::all().await?;
    for sample in 0..=samples {
        let without = alone(&Workload::over(empty()).await?, count).await?;
        for reported in in_turn(&mut all, sample) {
            let workload = Workload::telling(empty(), reported.reporter.clone()).await?;
            reported.note(sample, alone(&workload, count).await?, without);
        }
    }
    Ok(all.iter().flat_map(|one| one.rows("memory")).collect())
}

/// Each comes first as often as the other.
fn in_turn(all: &mut [Reported], sample: u32) -> &mut [Reported] {
    if sample > 0 {
        all.reverse();
    }
    all
}

impl Reported {
    async fn all() -> Result<Vec<Self>, Error> {
        Ok(vec![Self::to(Receiver::Dead).await?, Self::to(Receiver::Slow).await?])
    }

    async fn to(receiver: Receiver) -> Result<Self, Error> {
        let failed = |error: kortyx_telemetry::StudioError| Error::unexpected(error.to_string());
        let config = StudioConfig::new(&receiver.start().await?, "key", "bench", "bench").map_err(failed)?;
        Ok(Self { receiver, reporter: StudioReporter::start(&config).map_err(failed)?, race: Race::default() })
    }

    /// The first one only warms up, and fills the queue.
    fn note(&mut self, sample: u32, with: Pace, without: Pace) {
        if sample > 0 {
            self.race.push(with, without);
        }
    }

    fn rows(&self, store: &str) -> [Row; 2] {
        let receiver = match self.receiver {
            Receiver::Dead => "is dead",
            Receiver::Slow => "never answers",
        };
        [
            self.race.rates(&format!("{store}: cycles, reported to who {receiver}, against no telemetry")),
            self.race.processor(&format!("{store}:   processor time of a cycle")),
        ]
    }
}

impl Receiver {
    /// Where it is.
    async fn start(self) -> Result<String, Error> {
        let failed = || Error::io("listen for telemetry");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed())?;
        let url = format!("http://{}", listener.local_addr().map_err(failed())?);
        match self {
            Self::Dead => drop(listener),
            Self::Slow => drop(tokio::spawn(async move {
                let mut open = Vec::new();
                while let Ok((stream, _)) = listener.accept().await {
                    open.push(stream);
                }
            })),
        }
        Ok(url)
    }
}

fn empty() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

/// The pace of one loop.
async fn alone(workload: &Workload, count: u64) -> Result<Pace, Error> {
    let watch = Watch::start();
    for _ in 0..count {
        workload.cycle().await?;
    }
    Ok(watch.pace(count))
}

/// The pace of many loops together.
async fn crowd(workload: &Workload, count: u64) -> Result<Pace, Error> {
    let watch = Watch::start();
    at_once(|_| {
        let workload = workload.clone();
        async move {
            for _ in 0..count {
                workload.cycle().await?;
            }
            Ok(())
        }
    })
    .await?;
    Ok(watch.pace(RUNS * count))
}
