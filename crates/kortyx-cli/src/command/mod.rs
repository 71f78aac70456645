//! What each command does.

mod check;
mod checkpoints;
mod completions;
mod interrupts;
mod resume;
mod runs;
mod sessions;
mod stats;
mod store;
mod topology;
mod trace;
mod view;

use crate::{
    arguments::{Arguments, Checkpoints, Command, Interrupts, Options, Runs, Sessions, Store, Workflows},
    error::{CliError, Exit},
    open::Inspected,
    report::Report,
    watch::watch,
};

/// Does what the command line says.
pub(crate) async fn run(arguments: Arguments) -> Result<Exit, CliError> {
    let Arguments { options, command } = arguments;
    match command {
        Command::Completions { shell } => Ok(completions::print(shell)),
        Command::Workflows(Workflows::Topology { file, format }) => Ok(say(&topology::draw(&file, format)?, &options)),
        command => over_a_store(&command, &options).await,
    }
}

async fn over_a_store(command: &Command, options: &Options) -> Result<Exit, CliError> {
    let writes = writes(command);
    if let Some(name) = writes.filter(|_| !options.write) {
        return Err(CliError::ReadOnly(name));
    }
    let creates = matches!(command, Command::Store(Store::Setup));
    let store = Inspected::open(options, creates).await?;
    let ended = match options.watch {
        Some(every) if writes.is_none() => watch(every, options.json, async || look(command, &store).await).await,
        Some(_) => Err(CliError::Usage("--watch is for commands that change nothing".to_owned())),
        None => look(command, &store).await.map(|report| say(&report, options)),
    };
    store.close().await;
    ended
}

fn say(report: &Report, options: &Options) -> Exit {
    // A reader that went away has read enough.
    drop(report.print(options.json));
    report.exit
}

/// The name of a command that changes what is stored.
fn writes(command: &Command) -> Option<&'static str> {
    match command {
        Command::Interrupts(Interrupts::List(_) | Interrupts::Show { .. })
        | Command::Runs(Runs::List(_) | Runs::Show { .. } | Runs::Trace { .. })
        | Command::Sessions(Sessions::List(_) | Sessions::Show { .. })
        | Command::Checkpoints(Checkpoints::List { .. } | Checkpoints::Diff { .. })
        | Command::Store(Store::Stats { .. } | Store::Check(_))
        | Command::Workflows(_)
        | Command::Completions { .. } => None,
        Command::Interrupts(Interrupts::Answer(_)) => Some("interrupts answer"),
        Command::Interrupts(Interrupts::Cancel { .. }) => Some("interrupts cancel"),
        Command::Runs(Runs::Cancel { .. }) => Some("runs cancel"),
        Command::Runs(Runs::Resume { .. }) => Some("runs resume"),
        Command::Store(Store::Setup) => Some("store setup"),
        Command::Store(Store::Prune(_)) => Some("store prune"),
    }
}

async fn look(command: &Command, store: &Inspected) -> Result<Report, CliError> {
    match command {
        Command::Interrupts(command) => interrupts::run(command, store).await,
        Command::Runs(command) => runs::run(command, store).await,
        Command::Sessions(command) => sessions::run(command, store).await,
        Command::Checkpoints(command) => checkpoints::run(command, store).await,
        Command::Store(command) => store::run(command, store).await,
        Command::Workflows(_) | Command::Completions { .. } => {
            Err(CliError::Usage("the command needs no store".to_owned()))
        }
    }
}
