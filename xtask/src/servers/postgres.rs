//! Postgres.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Endpoint;
use super::account::Account;
use super::daemon::{Daemon, Stop};
use super::home::Home;
use super::port;
use super::software::{self, Software};
use crate::error::Error;

/// The superuser of the cluster, and the database that every cluster has.
const USER: &str = "postgres";
const DATABASE: &str = "postgres";
/// Longer than a cluster takes to be made, on a busy machine.
const MAKING: Duration = Duration::from_mins(2);
/// Longer than a question to a server that runs takes.
const QUESTION: Duration = Duration::from_secs(10);

/// What is set apart from the defaults.
const SETTINGS: [&str; 3] = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=500"];

/// A process that dies loses nothing without it; only a system would.
const NOT_DURABLE: &str = "fsync=off";

/// Makes a database cluster in a temporary folder and starts a Postgres on it, never as root.
pub(super) fn start(logs: &Path, durable: bool) -> Result<(Endpoint, Vec<Daemon>), Error> {
    let password = software::password()?;
    let (port, daemon) = port::retry(port::free, |port| Ok((port, cluster(port, &password, logs, durable)?)))?;
    let url = url(port, &password);
    Ok((Endpoint { port, password, url }, vec![daemon]))
}

/// The URL of what speaks Postgres on a port.
pub(super) fn url(port: u16, password: &str) -> String {
    format!("postgres://{USER}:{password}@127.0.0.1:{port}/{DATABASE}")
}

/// What speaks Postgres on a port answers a query.
pub(super) fn answers(home: &Home, port: u16, password: &str) -> Result<bool, Error> {
    Ok(said(home, port, password, "select 1")?.trim() == "1")
}

/// Makes a database beside the one that every cluster has.
pub(super) fn add_database(at: &Endpoint, name: &str) -> Result<(), Error> {
    let home = Home::new("psql", Account::unprivileged()?)?;
    said(&home, at.port, &at.password, &format!("create database {name}")).map(drop)
}

/// The same URL with another database.
pub(super) fn in_database(url: &str, name: &str) -> String {
    url.strip_suffix(DATABASE).map_or_else(|| url.to_owned(), |server| format!("{server}{name}"))
}

fn said(home: &Home, port: u16, password: &str, statement: &str) -> Result<String, Error> {
    let psql = beside(&initdb()?, "psql");
    let mut command = home.command(&psql);
    command.env("PGPASSWORD", password).env("PGCONNECT_TIMEOUT", "5");
    command.args(["--no-psqlrc", "--no-password", "--host=127.0.0.1", &format!("--port={port}")]);
    command.args(["--username", USER, "--dbname", DATABASE, "--tuples-only", "--no-align", "--command", statement]);
    home.run(command, QUESTION)
}

fn cluster(port: u16, password: &str, logs: &Path, durable: bool) -> Result<Daemon, Error> {
    let initdb = initdb()?;
    let home = Home::new("postgres", Account::unprivileged()?)?;
    let data = home.path().join("data");

    let mut make = home.command(&initdb);
    make.arg("--pgdata").arg(&data).arg("--pwfile").arg(home.write("password", password)?);
    make.args(["--username", USER, "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]);
    home.run(make, MAKING)?;

    let mut command = home.command(&beside(&initdb, "postgres"));
    command.arg("-D").arg(&data).args(["-p", &port.to_string()]);
    command.args(SETTINGS.iter().chain((!durable).then_some(&NOT_DURABLE)).flat_map(|setting| ["-c", setting]));
    let mut daemon = Daemon::spawn("postgres", command, Stop::Interrupt, logs, home)?;
    daemon.wait(|home| answers(home, port, password))?;
    Ok(daemon)
}

fn initdb() -> Result<PathBuf, Error> {
    software::find(&["initdb"]).ok_or_else(|| Software::Postgres.missing())
}

/// The program of the same version, which is not the one that the search path has when several are installed.
fn beside(initdb: &Path, name: &str) -> PathBuf {
    let same = initdb.canonicalize().unwrap_or_else(|_| initdb.to_owned()).with_file_name(name);
    if same.exists() { same } else { PathBuf::from(name) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_port_that_somebody_has_taken_is_told_from_other_failures() {
        if !Software::Postgres.installed() {
            return;
        }
        let logs = tempfile::tempdir().unwrap();
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = stranger.local_addr().unwrap().port();

        let error = cluster(port, "secret", logs.path(), false).unwrap_err();

        assert!(matches!(&error, Error::PortTaken { server } if server == "postgres"), "{error}");
    }
}
