//! Ports that are free.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::Error;

/// How often a server is started on another port before it counts as failed.
const ATTEMPTS: usize = 5;

/// A port of the loopback interface that nobody listens on, for the moment.
pub(super) fn free() -> Result<u16, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::Port)?;
    Ok(listener.local_addr().map_err(Error::Port)?.port())
}

/// Starts something on ports that `pick` picks; on others when somebody took one in between.
pub(super) fn retry<T, P>(
    mut pick: impl FnMut() -> Result<P, Error>,
    mut start: impl FnMut(P) -> Result<T, Error>,
) -> Result<T, Error> {
    for _ in 1..ATTEMPTS {
        match start(pick()?) {
            Err(Error::PortTaken { .. }) => {}
            ended => return ended,
        }
    }
    start(pick()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken() -> Error {
        Error::PortTaken { server: "redis".into() }
    }

    #[test]
    fn a_free_port_can_be_listened_on() {
        let port = free().unwrap();

        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    #[test]
    fn another_port_is_tried_when_one_was_taken() {
        let mut ports = [1, 2, 3].into_iter();

        let started = retry(|| Ok(ports.next().unwrap()), |port| if port < 3 { Err(taken()) } else { Ok(port) });

        assert_eq!(started.unwrap(), 3);
    }

    #[test]
    fn other_failures_and_bad_luck_without_end_are_not_tried_again() {
        let mut calls = 0;
        let refused: Result<(), _> = retry(free, |_| {
            calls += 1;
            Err(Error::Interrupted)
        });
        assert!(matches!(refused, Err(Error::Interrupted)));
        assert_eq!(calls, 1);

        let mut calls = 0;
        let unlucky: Result<(), _> = retry(free, |_| {
            calls += 1;
            Err(taken())
        });
        assert!(matches!(unlucky, Err(Error::PortTaken { .. })));
        assert_eq!(calls, ATTEMPTS);
    }
}
