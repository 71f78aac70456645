//! How many streams a session has open.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::StatusCode;
use kortyx_protocol::{FailureCode, SessionId};

use crate::problem::Problem;

/// Counts the open streams of each session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<SessionId, usize>>>);

/// A place for one stream, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place(Option<(Streams, SessionId)>);

impl Streams {
    /// A place for a stream of this session. A session that is not known yet is a new one, and has no other stream.
    pub(crate) fn enter(&self, session_id: Option<&SessionId>, limit: usize) -> Result<Place, Problem> {
        let Some(session_id) = session_id else { return Ok(Place(None)) };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = counts.get(session_id).copied().unwrap_or_default();
        if open >= limit {
            let message = format!("this session has {open} streams open already: end one of them first");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, FailureCode::LimitReached, message));
        }
        counts.insert(session_id.clone(), open + 1);
        Ok(Place(Some((self.clone(), session_id.clone()))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((streams, session_id)) = self.0.take() else { return };
        let mut counts = streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = counts.get_mut(&session_id) {
            *open -= 1;
            if *open == 0 {
                counts.remove(&session_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_back_and_a_session_without_streams_is_forgotten() {
        let (streams, session) = (Streams::default(), SessionId::new("s").unwrap());
        let first = streams.enter(Some(&session), 2).unwrap();
        let second = streams.enter(Some(&session), 2).unwrap();
        assert!(streams.enter(Some(&session), 2).is_err());
        assert!(streams.enter(SessionId::new("t").ok().as_ref(), 2).is_ok() && streams.enter(None, 0).is_ok());
        drop(first);
        let third = streams.enter(Some(&session), 2).unwrap();
        drop((second, third));
        assert!(streams.0.lock().unwrap().is_empty());
    }
}
