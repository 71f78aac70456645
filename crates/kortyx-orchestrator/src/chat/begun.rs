//! Telling the caller of a turn whether it began.

use std::sync::{Mutex, PoisonError};

use kortyx_protocol::RunId;
use tokio::sync::oneshot;

use crate::OrchestratorError;

/// What is heard of a turn: its run, or why it does not begin.
pub(super) type Heard = Result<RunId, OrchestratorError>;

/// Who hears that a turn has begun, or why it never will. Told once.
pub(super) struct Begun(Mutex<Option<oneshot::Sender<Heard>>>);

impl Begun {
    /// Nobody hears: what goes wrong is said in the stream.
    pub(super) fn unheard() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn heard_by(listener: oneshot::Sender<Heard>) -> Self {
        Self(Mutex::new(Some(listener)))
    }

    /// The turn has begun: what goes wrong from now on is said in the stream.
    pub(super) fn tell(&self, run_id: &RunId) {
        if let Some(listener) = self.listener() {
            let _ = listener.send(Ok(run_id.clone()));
        }
    }

    /// The turn will not begin. The error again when the stream has to say it.
    pub(super) fn refuse(&self, error: OrchestratorError) -> Result<(), OrchestratorError> {
        match self.listener() {
            Some(listener) => {
                let _ = listener.send(Err(error));
                Ok(())
            }
            None => Err(error),
        }
    }

    fn listener(&self) -> Option<oneshot::Sender<Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_wrong_is_told_once_and_then_said_in_the_stream() {
        let (listener, mut heard) = oneshot::channel();
        let begun = Begun::heard_by(listener);
        assert!(begun.refuse(OrchestratorError::Waiting).is_ok());
        assert!(matches!(heard.try_recv(), Ok(Err(OrchestratorError::Waiting))));
        assert!(matches!(begun.refuse(OrchestratorError::NotFound), Err(OrchestratorError::NotFound)));
    }

    #[test]
    fn after_the_beginning_the_stream_says_what_goes_wrong() {
        let (listener, mut heard) = oneshot::channel();
        let begun = Begun::heard_by(listener);
        let run_id = RunId::new("run-1").unwrap();
        begun.tell(&run_id);
        begun.tell(&run_id);
        assert!(matches!(heard.try_recv(), Ok(Ok(heard)) if heard == run_id));
        assert!(begun.refuse(OrchestratorError::NotFound).is_err());
        assert!(Begun::unheard().refuse(OrchestratorError::NotFound).is_err());
    }
}
