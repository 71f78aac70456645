//! What transitions leave to be said in other slots: said in the background, in their order.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, LazyLock, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::timeout,
};

use crate::{
    client::Client,
    config::RedisConfig,
    reply::{Damage, Parts, Reading, Reply},
};

/// How many hints may wait. Who leaves more waits for room, [`patience`](crate::RedisConfig::patience) at most; then they are
/// dropped, and repair says again what they would have said.
const ROOM: u32 = 8_192;
/// Those of how many transitions are said at once.
const AT_ONCE: usize = 256;

/// Hints on their way.
pub(crate) struct Hints {
    /// Those of a transition are said together.
    queue: Mutex<mpsc::UnboundedSender<Vec<Hint>>>,
    ledger: Arc<Ledger>,
    room: Arc<Semaphore>,
    place: String,
    patience: Duration,
}

/// How many hints were left, and how many of them were said or given up.
#[derive(Default)]
struct Ledger {
    left: AtomicU64,
    said: watch::Sender<u64>,
}

impl Ledger {
    /// Waits until everything that was left before was said.
    async fn settled(&self) {
        let left = self.left.load(Ordering::SeqCst);
        let _ = self.said.subscribe().wait_for(|said| *said >= left).await;
    }
}

/// Whoever says the hints. When it is gone, as with the runtime that it ran on, nothing more will be said, and nobody waits for it.
struct Sayer(Arc<Ledger>);

impl Sayer {
    fn has_said(&self, count: usize) {
        self.0.said.send_modify(|said| *said += u64::try_from(count).unwrap_or(0));
    }
}

impl Drop for Sayer {
    fn drop(&mut self) {
        self.0.said.send_replace(u64::MAX);
    }
}

/// The ledgers of this process, by the place that they are of: what one store did, another one reads.
static LEDGERS: LazyLock<Mutex<HashMap<String, Vec<Weak<Ledger>>>>> = LazyLock::new(Mutex::default);

impl Hints {
    /// Starts to say what is left of a place. It ends when everything was said after this is gone.
    pub(crate) fn over(client: Arc<Client>, config: &RedisConfig) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (ledger, room) = (Arc::new(Ledger::default()), Arc::new(Semaphore::new(ROOM as usize)));
        tokio::spawn(say_all(client, receiver, Sayer(ledger.clone()), room.clone()));
        let place = format!("{} {}", config.url(), config.prefix);
        let mut ledgers = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner);
        ledgers.retain(|_, ledgers| ledgers.iter().any(|ledger| ledger.strong_count() > 0));
        ledgers.entry(place.clone()).or_default().push(Arc::downgrade(&ledger));
        Self { queue: Mutex::new(sender), ledger, room, place, patience: config.patience }
    }

    /// Leaves what a transition said of other slots.
    pub(crate) async fn leave(&self, operation: &'static str, hints: Vec<Reply>) {
        let mut hints: Vec<_> = hints.into_iter().filter_map(|hint| hint_of(hint).ok()).collect();
        while !hints.is_empty() {
            let some: Vec<_> = hints.drain(..hints.len().min(ROOM as usize)).collect();
            let count = u32::try_from(some.len()).unwrap_or(ROOM);
            let Ok(Ok(room)) = timeout(self.patience, self.room.acquire_many(count)).await else {
                tracing::warn!(
                    operation,
                    dropped = some.len() + hints.len(),
                    "{ROOM} hints wait; repair will say these"
                );
                return;
            };
            room.forget();
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            self.ledger.left.fetch_add(u64::from(count), Ordering::SeqCst);
            let _ = queue.send(some);
        }
    }

    /// Waits until everything that was left here before was said.
    pub(crate) async fn drained(&self) {
        let _ = timeout(self.patience, self.ledger.settled()).await;
    }

    /// Waits until everything that this process left before at this place was said: what it did, it reads.
    pub(crate) async fn settled(&self) {
        let ledgers: Vec<_> = {
            let ledgers = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner);
            ledgers.get(&self.place).into_iter().flatten().filter_map(Weak::upgrade).collect()
        };
        let _ = timeout(self.patience, join_all(ledgers.iter().map(|ledger| ledger.settled()))).await;
    }
}

async fn say_all(
    client: Arc<Client>,
    mut queue: mpsc::UnboundedReceiver<Vec<Hint>>,
    sayer: Sayer,
    room: Arc<Semaphore>,
) {
    let mut some = Vec::with_capacity(AT_ONCE);
    while queue.recv_many(&mut some, AT_ONCE).await > 0 {
        let count = some.iter().map(Vec::len).sum();
        let said = Sayings::of(some.drain(..).flatten());
        let sent = said.commands().into_iter().map(|(command, args)| client.aside(command, args));
        for error in join_all(sent).await.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "an index was not told of a change; repair will");
        }
        // Whoever is woken finds what they are woken for. Nobody may listen, or this user may not publish: it is only a hint.
        for (channel, message) in said.signals {
            let _ = client.aside("PUBLISH", vec![channel, message]).await;
        }
        room.add_permits(count);
        sayer.has_said(count);
    }
}

/// A change of a key in another slot.
struct Hint {
    key: Bytes,
    /// Of an index: which entry. Of a locator: nothing.
    member: Bytes,
    change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// An entry gets this score.
    Add(i64),
    /// The same, if it has a lower one or is not there.
    Raise(i64),
    Remove,
    /// A locator says this, for so many milliseconds; 0 for ever.
    Set(Bytes, i64),
    Fade(i64),
    Delete,
    /// A message on a channel.
    Signal,
}

impl Change {
    /// What comes to the same as both, one after the other.
    fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Add(score), Self::Raise(other)) => Self::Add(score.max(other)),
            (Self::Raise(score), Self::Raise(other)) => Self::Raise(score.max(other)),
            (Self::Remove, Self::Raise(score)) => Self::Add(score),
            (Self::Set(value, _), Self::Fade(ttl)) => Self::Set(value, ttl),
            (Self::Delete, Self::Fade(_)) => Self::Delete,
            (_, next) => next,
        }
    }
}

/// Reads a hint: what to do, the key, a score or time, a member or value.
fn hint_of(hint: Reply) -> Reading<Hint> {
    let mut parts = Parts::of(hint)?;
    let what = parts.text()?;
    let (key, number, member) = (parts.next()?.bytes()?, parts.next()?.int()?, parts.next()?.bytes()?);
    let (member, change) = match what.as_str() {
        "+" => (member, Change::Add(number)),
        ">" => (member, Change::Raise(number)),
        "-" => (member, Change::Remove),
        "ttl" => (Bytes::new(), Change::Fade(number)),
        "del" => (Bytes::new(), Change::Delete),
        "set" => (Bytes::new(), Change::Set(member, number)),
        "!" => (member, Change::Signal),
        other => return Err(Damage::new(format!("an unknown hint `{other}`"))),
    };
    Ok(Hint { key, member, change })
}

/// Hints that are said together: one change of each entry and each locator, so that they need no order.
#[derive(Default)]
struct Sayings {
    changes: BTreeMap<Bytes, BTreeMap<Bytes, Change>>,
    signals: Vec<(Bytes, Bytes)>,
}

impl Sayings {
    fn of(hints: impl Iterator<Item = Hint>) -> Self {
        let mut sayings = Self::default();
        for Hint { key, member, change } in hints {
            if change == Change::Signal {
                sayings.signals.retain(|signal| *signal != (key.clone(), member.clone()));
                sayings.signals.push((key, member));
                continue;
            }
            let of_key = sayings.changes.entry(key).or_default();
            let change = match of_key.remove(&member) {
                Some(before) => before.then(change),
                None => change,
            };
            of_key.insert(member, change);
        }
        sayings
    }

    fn commands(&self) -> Vec<(&'static str, Vec<Bytes>)> {
        self.changes.iter().flat_map(|(key, changes)| commands_of(key, changes)).collect()
    }
}

/// Commands for a key: at most one of each kind.
fn commands_of(key: &Bytes, changes: &BTreeMap<Bytes, Change>) -> Vec<(&'static str, Vec<Bytes>)> {
    let (mut add, mut raise, mut remove, mut commands) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (member, change) in changes {
        let number = |number: &i64| Bytes::from(number.to_string());
        match change {
            Change::Add(score) => add.extend([number(score), member.clone()]),
            Change::Raise(score) => raise.extend([number(score), member.clone()]),
            Change::Remove => remove.push(member.clone()),
            Change::Set(value, 0) => commands.push(("SET", vec![key.clone(), value.clone()])),
            Change::Set(value, ttl) => {
                commands.push(("SET", vec![key.clone(), value.clone(), Bytes::from_static(b"PX"), number(ttl)]));
            }
            Change::Fade(ttl) => commands.push(("PEXPIRE", vec![key.clone(), number(ttl)])),
            Change::Delete => commands.push(("DEL", vec![key.clone()])),
            Change::Signal => {}
        }
    }
    let of_entries = [("ZADD", None, add), ("ZADD", Some("GT"), raise), ("ZREM", None, remove)].into_iter();
    commands.extend(of_entries.filter(|(_, _, args)| !args.is_empty()).map(|(command, option, args)| {
        let option = option.map(|option| Bytes::from_static(option.as_bytes()));
        (command, [key.clone()].into_iter().chain(option).chain(args).collect())
    }));
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(what: &str, key: &str, number: i64, member: &str) -> Hint {
        let text = |text: &str| Reply::Bytes(Bytes::from(text.to_owned()));
        hint_of(Reply::List(vec![text(what), text(key), Reply::Int(number), text(member)])).unwrap()
    }

    fn said(hints: Vec<Hint>) -> Vec<String> {
        let commands = Sayings::of(hints.into_iter()).commands();
        let text = |(command, args): (&str, Vec<Bytes>)| {
            let args: Vec<_> = args.iter().map(|arg| str::from_utf8(arg).unwrap()).collect();
            format!("{command} {}", args.join(" "))
        };
        commands.into_iter().map(text).collect()
    }

    #[test]
    fn what_is_said_together_comes_to_the_same_as_one_after_the_other() {
        let all = vec![
            hint("+", "due", 7, "a"),
            hint("+", "due", 8, "b"),
            hint("-", "due", 0, "a"),
            hint(">", "due", 9, "c"),
            hint("+", "due", 5, "d"),
            hint(">", "due", 6, "d"),
            hint("-", "due", 0, "e"),
            hint(">", "due", 4, "e"),
        ];
        assert_eq!(said(all), ["ZADD due 8 b 6 d 4 e", "ZADD due GT 9 c", "ZREM due a"]);
    }

    #[tokio::test]
    async fn nobody_waits_for_hints_that_nobody_will_say() {
        let ledger = Arc::new(Ledger::default());
        let sayer = Sayer(ledger.clone());
        ledger.left.store(5, Ordering::SeqCst);
        sayer.has_said(4);
        assert!(timeout(Duration::from_millis(20), ledger.settled()).await.is_err(), "one is on its way");
        drop(sayer);
        assert!(timeout(Duration::from_mins(1), ledger.settled()).await.is_ok());
    }

    #[test]
    fn a_locator_ends_as_its_last_hint_says() {
        let set = || hint("set", "l", 0, "here");
        assert_eq!(said(vec![set()]), ["SET l here"]);
        assert_eq!(said(vec![set(), hint("ttl", "l", 9, "")]), ["SET l here PX 9"]);
        assert_eq!(said(vec![set(), hint("del", "l", 0, "")]), ["DEL l"]);
        assert_eq!(said(vec![hint("del", "l", 0, ""), hint("ttl", "l", 9, "")]), ["DEL l"]);
        assert_eq!(said(vec![hint("del", "l", 0, ""), set()]), ["SET l here"]);
        assert_eq!(said(vec![hint("ttl", "l", 9, "")]), ["PEXPIRE l 9"]);
    }

    #[test]
    fn a_signal_is_given_once_and_no_command() {
        let sayings = Sayings::of([hint("!", "signals", 0, "work"), hint("!", "signals", 0, "work")].into_iter());
        assert_eq!((sayings.signals.len(), sayings.commands().len()), (1, 0));
    }
}
