//! The command line.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId};
use kortyx_store::{Retention, RunStatus, Scalar, Scope};

use crate::error::{CliError, Exit};

/// The shortest wait between two looks of a watch.
const SHORTEST: Duration = Duration::from_millis(10);

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the store cannot be used; 2 the command line is not understood; 3 there is no such thing; 4 refused, nothing \
changed; 5 it would write and --write is missing; 6 `store check` found something broken.

Without --store the store is the one that KORTYX_POSTGRES_URL, KORTYX_REDIS_URL, REDIS_URL, KORTYX_FRAMEWORK_REDIS_URL or \
KORTYX_SQLITE_PATH names, the first one set.";

/// Looks into a Kortyx store: runs, questions, sessions and checkpoints. Changes nothing unless --write is given.
#[derive(Debug, Parser)]
#[command(name = "kortyx", version, after_help = EXIT_CODES, max_term_width = 120)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What holds for every command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The store: postgres://…, redis://…, rediss://…, redis-cluster://…, redis-sentinel://…, sqlite:PATH or a path. Others on this
    /// machine may see it: a password is better kept in the environment
    #[arg(long, global = true, value_name = "URL", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// Let the command change what is stored
    #[arg(long, global = true)]
    pub(crate) write: bool,
    /// Print JSON for programs: one object on one line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Look again and again, every 2 seconds unless a time is given, until Ctrl-C
    #[arg(long, global = true, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "2s", value_parser = interval)]
    pub(crate) watch: Option<Duration>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    pub(crate) fn choice(self) -> anstream::ColorChoice {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Questions to people, and their answers
    #[command(subcommand, visible_alias = "interrupt")]
    Interrupts(Interrupts),
    /// Runs of workflows
    #[command(subcommand, visible_alias = "run")]
    Runs(Runs),
    /// Conversations
    #[command(subcommand, visible_alias = "session")]
    Sessions(Sessions),
    /// What sessions were after each of their turns
    #[command(subcommand, visible_alias = "checkpoint")]
    Checkpoints(Checkpoints),
    /// The store itself
    #[command(subcommand)]
    Store(Store),
    /// Workflows as files
    #[command(subcommand, visible_alias = "workflow")]
    Workflows(Workflows),
    /// Prints completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Interrupts {
    /// Lists open questions, oldest first
    #[command(visible_alias = "ls")]
    List(InterruptFilter),
    /// Shows a question with its answer: what was asked, who answered what and when
    Show {
        /// The question
        id: RequestId,
    },
    /// Answers a question, and leaves its run to a worker
    Answer(AnswerArguments),
    /// Cancels a question: its run ends, unless the question may be cancelled on its own
    Cancel {
        /// The question
        id: RequestId,
        /// Who cancels, kept with the question
        #[arg(long = "as", value_name = "NAME", env = "KORTYX_ACTOR")]
        actor: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InterruptFilter {
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    /// Only of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<RunId>,
    /// Closed ones too, of the run that --run names
    #[arg(long, requires = "run", conflicts_with_all = ["cursor", "session", "context", "after_response"])]
    pub(crate) all: bool,
    /// Only those that were asked after the response of their run was complete
    #[arg(long)]
    pub(crate) after_response: bool,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Show what is asked
    #[arg(long)]
    pub(crate) content: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScopeArguments {
    /// Only of this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<SessionId>,
    /// Only where the run's context holds this value: true, false, an integer, or a text (in double quotes where it looks like one of those)
    #[arg(long, value_name = "KEY=VALUE", value_parser = context)]
    pub(crate) context: Vec<(String, Scalar)>,
}

impl ScopeArguments {
    pub(crate) fn scope(&self) -> Scope {
        let context: BTreeMap<_, _> = self.context.iter().cloned().collect();
        Scope { session_id: self.session.clone(), context }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Page {
    /// At most this many
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    /// Go on where the last page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// The question
    pub(crate) id: RequestId,
    #[command(flatten)]
    pub(crate) answer: AnswerText,
    /// Who answers, kept with the answer
    #[arg(long = "as", value_name = "NAME", env = "KORTYX_ACTOR")]
    pub(crate) actor: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct AnswerText {
    /// The id of an option; several times for several
    #[arg(long, value_name = "OPTION")]
    pub(crate) select: Vec<String>,
    /// A text
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// A structured value, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) value: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// Lists runs, whoever they belong to, in an order of the store's own
    #[command(visible_alias = "ls")]
    List(RunFilter),
    /// Draws a run from its beginning: visits, steps, questions, and who answered what
    Trace {
        /// The run
        id: RunId,
        /// Show what is asked and answered
        #[arg(long)]
        content: bool,
    },
    /// Shows a run: where it stands, who holds it, what it waits for
    Show {
        /// The run
        id: RunId,
        /// Show what it ended with, and what it asks
        #[arg(long)]
        content: bool,
    },
    /// Cancels a run, or asks whoever drives it to stop
    Cancel {
        /// The run
        id: RunId,
        /// Why, kept with the run
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Hands a run back to the workers: one that was set aside, or, with --force, one that a driver holds
    Resume {
        /// The run
        id: RunId,
        /// Take it from its driver, whose writes are refused from then on
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunFilter {
    /// Only with this status; several times for several
    #[arg(long, value_name = "STATUS", value_parser = run_status)]
    pub(crate) status: Vec<RunStatus>,
    /// Only of this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<SessionId>,
    /// Only of the workflow with this id, whatever its version
    #[arg(long, value_name = "WORKFLOW")]
    pub(crate) workflow: Option<String>,
    #[command(flatten)]
    pub(crate) page: Page,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// Lists the sessions that have checkpoints, in an order of the store's own
    #[command(visible_alias = "ls")]
    List(Page),
    /// Shows a session: its newest checkpoint, its open questions
    Show {
        /// The session
        id: SessionId,
        /// Show what is asked
        #[arg(long)]
        content: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Checkpoints {
    /// Lists the checkpoints of a session, in turn order
    #[command(visible_alias = "ls")]
    List {
        /// The session
        session: SessionId,
    },
    /// Tells which parts of the state differ between two checkpoints
    Diff {
        /// The earlier one
        before: CheckpointId,
        /// The later one
        after: CheckpointId,
        /// Show the values that differ
        #[arg(long)]
        content: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// Creates the schema, or brings it to the version of this program
    Setup,
    /// Removes what is no longer kept, in small batches
    Prune(PruneArguments),
    /// Counts runs by status and workflow: reads every run
    Stats {
        /// Count at most this many
        #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
        limit: u64,
    },
    /// Looks whether what is stored keeps its promises: reads every run with its questions, and every session's checkpoints
    Check(CheckArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Only this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<SessionId>,
    /// Look at this many runs at most
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    pub(crate) limit: u64,
    /// Payloads are encrypted: look only at what stands beside them
    #[arg(long)]
    pub(crate) opaque: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArguments {
    /// How long ended runs are kept with their questions
    #[arg(long, value_name = "TIME", default_value = "1day", value_parser = humantime::parse_duration)]
    pub(crate) finished_runs: Duration,
    /// How many checkpoints each session keeps
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    pub(crate) checkpoints_per_session: u32,
    /// How long checkpoints are kept, but for each session's newest
    #[arg(long, value_name = "TIME", default_value = "30days", value_parser = humantime::parse_duration)]
    pub(crate) checkpoint_age: Duration,
    /// How long sessions are kept in which nothing happens
    #[arg(long, value_name = "TIME", default_value = "30days", value_parser = humantime::parse_duration)]
    pub(crate) idle_sessions: Duration,
    /// How many things go in one transition
    #[arg(long, value_name = "NUMBER", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) batch: u32,
}

impl PruneArguments {
    pub(crate) fn retention(&self) -> Retention {
        Retention {
            finished_runs: self.finished_runs,
            checkpoints_per_session: self.checkpoints_per_session,
            checkpoint_age: self.checkpoint_age,
            idle_sessions: self.idle_sessions,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workflows {
    /// Draws the nodes and edges of a workflow file, without its code
    Topology {
        /// A YAML or JSON file
        file: PathBuf,
        /// The form
        #[arg(long, value_enum, default_value_t = Form::Tree)]
        format: Form,
    },
}

/// The form in which a topology is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Nodes with their edges, for a terminal
    Tree,
    /// For Graphviz
    Dot,
    /// For Mermaid
    Mermaid,
}

/// Says what clap found: help, or what is wrong with the command line, as one line of JSON where the line asks for JSON.
pub(crate) fn tell(error: &clap::Error, line: impl IntoIterator<Item = OsString>) -> Exit {
    if !error.use_stderr() {
        drop(error.print());
        return Exit::Done;
    }
    let mut words = line.into_iter().take_while(|word| word != "--");
    if words.any(|word| word == "--json") {
        let text = error.render().to_string();
        let text = text.trim();
        CliError::Usage(text.strip_prefix("error: ").unwrap_or(text).to_owned()).tell(true);
    } else {
        drop(error.print());
    }
    Exit::Usage
}

/// How long a watch waits between two looks. Without a wait it would do nothing but look.
fn interval(text: &str) -> Result<Duration, String> {
    let every = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if every < SHORTEST {
        Err(format!("a watch waits {} or more", humantime::format_duration(SHORTEST)))
    } else {
        Ok(every)
    }
}

fn run_status(name: &str) -> Result<RunStatus, String> {
    let all = "running, suspended, completed, failed, cancelled, expired or parked";
    RunStatus::parse(name).ok_or_else(|| format!("a run is {all}"))
}

/// Reads `KEY=VALUE`.
fn context(text: &str) -> Result<(String, Scalar), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    let scalar = match serde_json::from_str(value) {
        Ok(serde_json::Value::Bool(value)) => Scalar::Bool(value),
        Ok(serde_json::Value::String(text)) => Scalar::Text(text.into()),
        Ok(serde_json::Value::Number(number)) => number.as_i64().map_or(Scalar::Text(value.into()), Scalar::Int),
        _ => Scalar::Text(value.into()),
    };
    Ok((key.to_owned(), scalar))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_context_value_is_what_it_looks_like() {
        let value = |text: &str| context(text).map(|(_, value)| value);
        assert_eq!(value("a=true"), Ok(Scalar::Bool(true)));
        assert_eq!(value("a=-7"), Ok(Scalar::Int(-7)));
        assert_eq!(value("a=\"7\""), Ok(Scalar::Text("7".into())));
        assert_eq!(value("a=7.5"), Ok(Scalar::Text("7.5".into())));
        assert_eq!(value("a=b=c"), Ok(Scalar::Text("b=c".into())));
        assert!(value("a").is_err());
    }
}
