//! `PgBouncer` in transaction mode.

use std::path::Path;

use super::account::Account;
use super::daemon::{Daemon, Stop};
use super::home::Home;
use super::software::{self, Software};
use super::{Endpoint, port, postgres};
use crate::error::Error;

/// Starts a `PgBouncer` in front of a Postgres, never as root.
///
/// It has few server connections, so that those who rely on getting the same one again are soon wrong.
pub(super) fn start(logs: &Path, behind: &Endpoint) -> Result<(Endpoint, Vec<Daemon>), Error> {
    let password = behind.password.clone();
    let (port, daemon) = port::retry(port::free, |port| Ok((port, pooler(port, behind, logs)?)))?;
    let url = postgres::url(port, &password);
    Ok((Endpoint { port, password, url }, vec![daemon]))
}

fn pooler(port: u16, behind: &Endpoint, logs: &Path) -> Result<Daemon, Error> {
    let program = software::find(&["pgbouncer"]).ok_or_else(|| Software::PgBouncer.missing())?;
    let home = Home::new("pgbouncer", Account::unprivileged()?)?;
    let users = home.write("users.txt", &format!("\"postgres\" \"{}\"\n", behind.password))?;
    let config = format!(
        "[databases]\n* = host=127.0.0.1 port={}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\nadmin_users = postgres\n\
         pool_mode = transaction\ndefault_pool_size = 10\nmax_client_conn = 1000\n\
         ignore_startup_parameters = extra_float_digits\n",
        behind.port,
        users.display()
    );
    let mut command = home.command(&program);
    command.arg(home.write("pgbouncer.ini", &config)?);
    // It has nothing to lose, and which signals let it go without waiting for its clients depends on its version.
    let mut daemon = Daemon::spawn("pgbouncer", command, Stop::Kill, logs, home)?;
    daemon.wait(|home| postgres::answers(home, port, &behind.password))?;
    Ok(daemon)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_port_that_somebody_has_taken_is_told_from_other_failures() {
        if !Software::PgBouncer.installed() {
            return;
        }
        let logs = tempfile::tempdir().unwrap();
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = stranger.local_addr().unwrap().port();
        let behind = Endpoint { port: 1, password: "secret".into(), url: String::new() };

        let error = pooler(port, &behind, logs.path()).unwrap_err();

        assert!(matches!(&error, Error::PortTaken { server } if server == "pgbouncer"), "{error}");
    }
}
