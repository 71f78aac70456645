//! A process for tests to kill: it drives, answers and recovers runs on a store, and may kill itself at a durable point.

mod finish;
mod kill;
mod pool;
mod process;
mod race;
mod switched;

use std::{error::Error, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};

use crate::process::Process;

/// Drives the workflows of `kortyx_tests::driven`.
///
/// With `KORTYX_KILL_AT=before:N` or `after:N` it kills itself just before or just after its Nth durable point, with
/// `accepted` once an answer that it gave was accepted; with `stop:N` it stands still just before its Nth durable point.
#[derive(Parser)]
struct Arguments {
    /// Where runs are stored: a `kortyx_tests::place::Place` as JSON
    #[arg(long)]
    place: String,
    /// The file that everything is logged to
    #[arg(long)]
    log: PathBuf,
    /// How far its clock is ahead of the machine's, in seconds
    #[arg(long, default_value_t = 0)]
    ahead: u64,
    /// How long its leases last, in milliseconds
    #[arg(long, default_value_t = 30_000)]
    lease: u64,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Begins a rich run unless the log names one that is stored, and goes on until it has ended
    Finish {
        /// Who answers its questions
        #[arg(long, value_enum, default_value_t = finish::Answering::OneByOne)]
        answering: finish::Answering,
        /// It recovers no runs
        #[arg(long)]
        without_worker: bool,
    },
    /// Gives the answers that it reads, each line of them at once, and says what became of them
    Race,
    /// Keeps rich runs going beside others, until its input ends
    Pool {
        /// It begins the runs whose number has this remainder
        #[arg(long)]
        own: i64,
        /// How many processes there are
        #[arg(long)]
        of: i64,
        /// How many runs there are
        #[arg(long)]
        runs: i64,
    },
    /// Recovers runs, until its input ends
    Serve,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error} ({error:?})");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let worker = !matches!(arguments.task, Task::Race | Task::Finish { without_worker: true, .. });
    let process = Process::start(&arguments, worker).await?;
    match arguments.task {
        Task::Finish { answering, .. } => finish::finish(&process, answering).await?,
        Task::Race => race::race(&process).await?,
        Task::Pool { own, of, runs } => pool::pool(&process, own, of, runs).await?,
        Task::Serve => process::input_ended().await,
    }
    process.agent.shutdown(Duration::from_secs(20)).await;
    process.end()
}
