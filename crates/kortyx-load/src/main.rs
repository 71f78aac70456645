//! The server process: prints its address, obeys lines, and ends with its input.

mod workflows;

use std::{
    env,
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
};

use kortyx::{
    Agent, WorkerConfig,
    http::{AllowLocal, Grant, Http, HttpLimits, Server, ServerLimits},
    memory::MemoryStore,
    sqlite::{SqliteConfig, SqliteStore},
    store::{Retention, Store},
};
use kortyx_load::{Orders, RELEASE, REPORT, Report, raise_descriptors};
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, stdin},
    net::TcpSocket,
};

use crate::workflows::Outside;

/// How many connections may wait to be accepted: many come at once.
const BACKLOG: u32 = 4_096;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    raise_descriptors()?;
    let orders = env::args().nth(1).ok_or("this program is started by tests")?;
    let orders: Orders = serde_json::from_str(&orders)?;
    let outside = Outside::new();
    let agent = Agent::builder().shared_store(store(&orders).await?).worker(worker(&orders));
    let agent = workflows::register(agent, &outside)?.build().await?;
    let defaults = HttpLimits::default();
    let limits = HttpLimits { keep_alive: orders.keep_alive, body_read: orders.read, ..defaults };
    let http = Http::new(agent, AllowLocal::granting(Grant::new().tenant("app", "load"))).limits(limits);
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let listener = socket.listen(BACKLOG)?;
    println!("{}", listener.local_addr()?);
    let server = Server::new(&http, http.router());
    let server = server.limits(ServerLimits { header_read: orders.read, ..ServerLimits::default() });
    server.serve(listener, obey(http.agent(), &outside)).await;
    Ok(())
}

async fn store(orders: &Orders) -> Result<Arc<dyn Store>, Box<dyn Error>> {
    Ok(match &orders.file {
        None => Arc::new(MemoryStore::new()),
        Some(path) => Arc::new(SqliteStore::open(SqliteConfig::new(path)).await?),
    })
}

/// What has ended goes soon, so that what remains in memory is not what is kept on purpose.
fn worker(orders: &Orders) -> WorkerConfig {
    let kept = orders.retention;
    let mut config = WorkerConfig::default();
    config.prune_every = Duration::from_secs(1);
    config.retention =
        Retention { finished_runs: kept, idle_sessions: kept, checkpoint_age: kept, ..Retention::default() };
    config
}

/// Does what lines say, until there are none.
async fn obey(agent: &Agent, outside: &Outside) {
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match &*line {
            RELEASE => outside.release(),
            REPORT => {
                let report = Report { effects: outside.effects(), driven: agent.driven_runs() };
                println!("{}", serde_json::json!(report));
            }
            other => eprintln!("error: `{other}` is nothing to be done"),
        }
    }
}
