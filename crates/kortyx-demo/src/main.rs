//! Serves a chat page and an inbox on loopback, over runs in an SQLite file.

mod assets;
mod model;
mod options;
mod site;
mod workflows;

use std::{
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use kortyx_http::{AllowLocal, Ending, Grant, Http, Paths, Server};
use kortyx_orchestrator::{Agent, OnDisconnect};
use kortyx_sqlite::{SqliteConfig, SqliteStore};
use tokio::net::TcpListener;

/// How long runs may go on once the program is told to end. What has not paused by then goes on at the next start.
const DRAIN: Duration = Duration::from_secs(2);
/// How long after a crash the next start waits before it takes over what was under way.
const LEASE: Duration = Duration::from_secs(3);

/// Serves a chat page and an inbox on this machine, with workflows that ask questions of every kind.
///
/// Stop the program while questions are open, even with `kill -9`, and start it again: they are still open, and their answers
/// still count.
#[derive(Parser)]
struct Arguments {
    /// The port on loopback; 0 takes one that is free
    #[arg(long, default_value_t = 3210)]
    port: u16,
    /// The SQLite file that holds the runs [default: in your data directory]
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// How long a question may be answered
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = humantime::parse_duration)]
    expires_in: Duration,
    /// The model of the assistant, such as `claude-sonnet-4-5` or `gpt-5-mini`; its provider's key is in the environment [default: a
    /// script that needs none]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let model = model::model(arguments.model.as_deref())?;
    let path = arguments.store.map_or_else(default_store, Ok)?;
    let store = SqliteStore::open(SqliteConfig::new(&path)).await?;
    let agent = Agent::builder()
        .store(store)
        .question_ttl(arguments.expires_in)
        .lease_ttl(LEASE)
        // A page that is loaded again has gone away for a moment only.
        .on_disconnect(OnDisconnect::GoOn);
    let agent = workflows::register(agent, model)?.build().await?;
    let http = Http::new(agent, authoriser()).paths(Paths::under("/api"));

    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    println!("Runs are kept in {}.", path.display());
    println!("Open http://{}/ in a browser. Ctrl-C stops.", listener.local_addr()?);

    let ending = Ending { drain: DRAIN, ..Ending::default() };
    Server::new(&http, site::router(&http)).ending(ending).serve(listener, told_to_end()).await;
    Ok(())
}

/// Everybody on this machine is the same person.
fn authoriser() -> AllowLocal {
    AllowLocal::granting(Grant::new().tenant("app", "demo").actor("you"))
}

fn default_store() -> Result<PathBuf, Box<dyn Error>> {
    let app =
        AppStrategyArgs { top_level_domain: "dev".into(), author: "Kortyx".into(), app_name: "kortyx-demo".into() };
    Ok(choose_app_strategy(app)?.in_data_dir("runs.sqlite"))
}

/// Ctrl-C, or what a service manager sends.
async fn told_to_end() {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    drop(tokio::signal::ctrl_c().await);
}
