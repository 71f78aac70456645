//! Sessions: append a checkpoint, go back to one, start another session from one.

use kortyx_protocol::{RequestId, RunId, SessionId};
use kortyx_store::{
    CheckpointRecord, Fork, ForkOutcome, NewCheckpoint, Reissue, Rollback, RollbackOutcome, StoreError,
};

use crate::{
    encode::given_with,
    locate::{NewId, Place},
    names::{Kind, session_digest},
    reply::{Damage, Parts, Reading, Reply},
    row, script,
    store::RedisStore,
    turn,
};

const APPEND: &str = "append checkpoint";
const ROLLBACK: &str = "rollback";
const FORK: &str = "fork";

/// The ids that questions bring which are opened again.
fn ids_of(run_id: &RunId, reissue: &[Reissue]) -> Vec<NewId> {
    if reissue.is_empty() {
        return Vec::new();
    }
    let questions = reissue.iter().map(|new| NewId::question(&new.request_id, run_id));
    std::iter::once(NewId::run(run_id)).chain(questions).collect()
}

impl RedisStore {
    pub(crate) async fn append(&self, id: &SessionId, new: NewCheckpoint) -> Result<CheckpointRecord, StoreError> {
        let mut request = self.request(APPEND);
        request.set("session", id.as_str());
        let ids = [NewId::checkpoint(&new.id)];
        request.check("a checkpoint's state", &new.state)?;
        request.set("checkpoint", new.id.as_str());
        let rest = request.stored(given_with(new));
        request.set("rest", rest);
        let said = self.bring(APPEND, &script::APPEND, &session_digest(id), &ids, request).await?;
        turn::checkpoint(said).map_err(|damage| damage.during(APPEND))
    }

    pub(crate) async fn roll_back(&self, rollback: Rollback) -> Result<RollbackOutcome, StoreError> {
        let Rollback { checkpoint_id, new_run_id, reissue } = rollback;
        // A checkpoint's place may be remembered from before it was pruned and its id used again.
        let known = self.read_one(ROLLBACK, (Kind::Checkpoint, "content"), checkpoint_id.as_str()).await?;
        let digest = match known {
            Some(_) => self.find(ROLLBACK, Kind::Checkpoint, checkpoint_id.as_str()).await?,
            None => None,
        };
        let Some(Place { digest, .. }) = digest else { return Ok(RollbackOutcome::Unknown) };
        let mut request = self.request(ROLLBACK);
        request.set("checkpoint", checkpoint_id.as_str());
        request.set("run", new_run_id.as_str());
        request.reissue(&reissue);
        let ids = ids_of(&new_run_id, &reissue);
        let said = self.bring(ROLLBACK, &script::ROLLBACK, &digest, &ids, request).await?;
        rolled_back(said).map_err(|damage| damage.during(ROLLBACK))
    }

    pub(crate) async fn start_fork(&self, fork: Fork) -> Result<ForkOutcome, StoreError> {
        let Fork { checkpoint_id, new_session_id, new_checkpoint_id, new_run_id, reissue } = fork;
        let Some(found) = self.read_one(FORK, (Kind::Checkpoint, "content"), checkpoint_id.as_str()).await? else {
            return Ok(ForkOutcome::Unknown);
        };
        let read = || {
            let mut parts = Parts::of(found)?;
            Ok((parts.next()?.bytes()?, parts.text()?))
        };
        let (content, source_session) = read().map_err(|damage: Damage| damage.during(FORK))?;
        let mut request = self.request(FORK);
        request.set("session", new_session_id.as_str());
        request.set("checkpoint", new_checkpoint_id.as_str());
        request.set("run", new_run_id.as_str());
        request.reissue(&reissue);
        request.set("source", checkpoint_id.as_str());
        request.set("source_session", source_session);
        let content = request.stored(content);
        request.set("content", content);
        let mut ids = ids_of(&new_run_id, &reissue);
        ids.push(NewId::checkpoint(&new_checkpoint_id));
        let said = self.bring(FORK, &script::FORK, &session_digest(&new_session_id), &ids, request).await?;
        forked(said).map_err(|damage| damage.during(FORK))
    }
}

fn request_id(parts: &mut Parts) -> Reading<RequestId> {
    RequestId::new(parts.text()?).map_err(|_| Damage::new("a question's id does not read back"))
}

fn rolled_back(said: Reply) -> Reading<RollbackOutcome> {
    let mut parts = Parts::of(said)?;
    Ok(match parts.text()?.as_str() {
        "unknown" => RollbackOutcome::Unknown,
        "mismatched" => RollbackOutcome::Mismatched,
        "expired" => RollbackOutcome::Expired(request_id(&mut parts)?),
        "driven" => {
            let run_id = RunId::new(parts.text()?).map_err(|_| Damage::new("a run's id does not read back"))?;
            RollbackOutcome::Driven(run_id)
        }
        _ => {
            let head = Box::new(turn::checkpoint(parts.next()?)?);
            let mut abandoned = turn::checkpoints(parts.list()?)?;
            for checkpoint in &mut abandoned {
                checkpoint.abandoned = true;
            }
            let (superseded, interrupts) = (row::questions(parts.list()?)?, row::questions(parts.list()?)?);
            RollbackOutcome::Done { head, abandoned, superseded, interrupts }
        }
    })
}

fn forked(said: Reply) -> Reading<ForkOutcome> {
    let mut parts = Parts::of(said)?;
    Ok(match parts.text()?.as_str() {
        "exists" => ForkOutcome::SessionExists,
        "mismatched" => ForkOutcome::Mismatched,
        "expired" => ForkOutcome::Expired(request_id(&mut parts)?),
        _ => {
            let checkpoint = Box::new(turn::checkpoint(parts.next()?)?);
            ForkOutcome::Done { checkpoint, interrupts: row::questions(parts.list()?)? }
        }
    })
}
