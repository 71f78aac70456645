//! The ordinary case of a transition is decided before the rest of its script: it must leave what the rest would.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "what fails in a test panics")]

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::support::{Server, set_up};
use bytes::Bytes;
use kortyx_redis::RedisStore;
use kortyx_store::conformance::requests::{self, answering, ask, driver, finishing, granted, new_run, suspending};
use kortyx_store::{NewInterrupt, NewRun, RunRef, Scalar, Store, Suspend};

/// Two stores on one server. Only the first has an ordinary case: the other never touches two slots.
struct Twins {
    server: Server,
    stores: [RedisStore; 2],
}

const PREFIXES: [&str; 2] = ["one", "two"];

/// A key without its store's prefix, its type, whether it has a time to live, and what is in it.
type Keys = BTreeMap<String, (String, bool, Vec<String>)>;

impl Twins {
    async fn new() -> Self {
        let server = Server::start();
        let store = |place: usize| server.config().prefix(PREFIXES[place]).unwrap().by_slot(place == 1);
        let stores = [set_up(store(0)).await, set_up(store(1)).await];
        Self { server, stores }
    }

    /// Both hold the same keys with the same in them, but for times and kept replies. The other says what lies in other slots
    /// when it has replied.
    async fn assert_same(&self, when: &str) -> Keys {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let [one, two] = PREFIXES.map(|prefix| self.keys(prefix));
            if one == two {
                return one;
            }
            let differing: Vec<_> = one.iter().filter(|(key, value)| two.get(*key) != Some(*value)).collect();
            assert!(Instant::now() < until, "{when}: {differing:#?} is {two:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn keys(&self, prefix: &str) -> Keys {
        let keys = self.server.lines(&["KEYS", "*"]).into_iter().filter(|key| key.contains(&format!("{prefix}:")));
        keys.map(|key| (key.replacen(prefix, "", 1), self.content(&key))).collect()
    }

    fn content(&self, key: &str) -> (String, bool, Vec<String>) {
        let kind = self.server.cli(&["TYPE", key]).trim().to_owned();
        let lives = self.server.cli(&["TTL", key]).trim() != "-1";
        let content = match kind.as_str() {
            "hash" => {
                let read = self.server.lines(&["--no-raw", "HGETALL", key]).into_iter().map(|line| unquoted(&line));
                let read: Vec<_> = read.collect();
                let mut fields: Vec<_> = read.chunks(2).map(|pair| timeless_field(&pair[0], &pair[1])).collect();
                fields.sort();
                fields
            }
            "list" => self.server.lines(&["LRANGE", key, "0", "-1"]),
            "zset" => {
                let read = self.server.lines(&["ZRANGE", key, "0", "-1", "WITHSCORES"]);
                read.iter().map(|part| timeless(part)).collect()
            }
            _ => vec![self.server.cli(&["GET", key])],
        };
        (kind, lives, content)
    }
}

/// The bytes of a quoted reply, each as a character: `1) "a\x00"`.
fn unquoted(line: &str) -> String {
    let text = line.split_once('"').unwrap().1.strip_suffix('"').unwrap();
    let (mut plain, mut rest) = (String::new(), text.chars());
    while let Some(character) = rest.next() {
        plain.push(match (character, character == '\\') {
            (_, true) => match rest.next().unwrap() {
                'x' => char::from(u8::from_str_radix(&rest.by_ref().take(2).collect::<String>(), 16).unwrap()),
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'a' => '\x07',
                'b' => '\x08',
                other => other,
            },
            (character, false) => character,
        });
    }
    plain
}

/// A text whose times are masked: those of stamps, and scores.
fn timeless(text: &str) -> String {
    let is_time = |from: usize, length: usize| {
        text.get(from..from + length).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if let Some(from) = [0, 1].into_iter().find(|from| is_time(*from, 18)) {
        return format!("{}TIME{}", &text[..from], &text[from + 18..]);
    }
    if is_time(0, text.len()) && text.len() == 13 { "TIME".to_owned() } else { text.to_owned() }
}

/// A field and its value, of a record without its times. Of kept replies only that there are some: they are written otherwise.
fn timeless_field(name: &str, value: &str) -> String {
    let parts = |ranges: &[std::ops::Range<usize>]| {
        let characters: Vec<char> = value.chars().collect();
        let parts = ranges.iter().map(|range| characters[range.clone()].iter().collect::<String>());
        format!("{}: {:?}", characters.len(), parts.collect::<Vec<_>>())
    };
    let length = value.chars().count();
    let said = match name {
        // All but the lease's end, when the run was made and changed, and its stamp's time.
        "h" => parts(&[0..11, 19..35, 51..67, 85..length]),
        // All but the times of the answer, of the question and its end, and its place's time.
        "k" => parts(&[0..14, 56..length]),
        "m" => "some".to_owned(),
        "born" => length.to_string(),
        "idle" => timeless(value),
        _ => value.to_owned(),
    };
    format!("{name} = {said:?}")
}

fn asking(default: bool) -> NewInterrupt {
    NewInterrupt {
        default: default.then(|| Bytes::from_static(b"\"no\"")),
        optional_cancel: default,
        after_response_completed: default,
        expires_in: Duration::from_mins(if default { 5 } else { 15 }),
        ..ask("a")
    }
}

/// Runs each through pause, answer and end on both; compares after every step.
async fn live(twins: &Twins, runs: Vec<NewRun>) -> Keys {
    let mut paused = Vec::new();
    for (place, run) in runs.into_iter().enumerate() {
        let question = asking(place % 2 == 1);
        for store in &twins.stores {
            let suspend = suspending(RunRef::New(run.clone(), driver()), vec![question.clone()]);
            let saved = store.suspend(suspend).await.unwrap();
            let kortyx_store::Suspended::Saved(mut open) = saved else { panic!("{saved:?}") };
            let open = open.remove(0);
            let read = store.interrupt(&open.request_id).await.unwrap().unwrap();
            assert_eq!((format!("{open:?}"), open.token.expose()), (format!("{read:?}"), read.token.expose()));
            paused.push(open);
        }
        twins.assert_same("paused").await;
    }
    let mut driven = Vec::new();
    for pair in paused.chunks(2) {
        for (store, question) in twins.stores.iter().zip(pair) {
            let mut request = answering(question);
            request.answers[0].actor = Some("bob".to_owned());
            request.answers[0].session_id = Some(question.session_id.clone());
            driven.push(granted(store.answer(request).await.unwrap()));
        }
        twins.assert_same("answered").await;
    }
    let (one, two) = (&driven[0], &driven[1]);
    assert_eq!((one.lease.fence, &one.snapshot, one.run.answers), (two.lease.fence, &two.snapshot, two.run.answers));
    assert_eq!(one.answers[0].actor, two.answers[0].actor);
    let mut keys = Keys::new();
    for pair in driven.chunks(2) {
        for (store, claimed) in twins.stores.iter().zip(pair) {
            store.finish(finishing(claimed.clone())).await.unwrap();
        }
        keys = twins.assert_same("ended").await;
    }
    keys
}

fn with_context() -> NewRun {
    let mut run = new_run();
    run.context.insert("tenant".to_owned(), Scalar::Text("acme".into()));
    run.context.insert("desk".to_owned(), Scalar::Int(7));
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ordinary_case_leaves_what_the_general_one_does() {
    let twins = Twins::new().await;
    let first = with_context();
    let second = NewRun { session_id: first.session_id.clone(), ..new_run() };

    let keys = live(&twins, vec![first, second]).await;

    // Both runs, their session, four locators, and the index of what has ended: nothing else is left.
    assert_eq!(keys.len(), 9, "{:?}", keys.keys());
    assert_eq!(
        keys.values().filter(|(_, lives, _)| !lives).count(),
        2,
        "the schema and the index have no time to live"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ordinary_case_takes_ids_and_sessions_as_the_general_one_does() {
    let twins = Twins::new().await;
    let run = new_run();
    live(&twins, vec![run.clone()]).await;

    // The session is there and idle; a run begins in it again.
    let again = NewRun { session_id: run.session_id.clone(), ..new_run() };
    live(&twins, vec![again]).await;

    // A run's id is taken, in its session and in another.
    for other in [run.clone(), NewRun { session_id: new_run().session_id, ..run }] {
        for store in &twins.stores {
            let suspend = suspending(RunRef::New(other.clone(), driver()), vec![ask("a")]);
            let error = store.suspend(suspend).await.unwrap_err();
            assert_eq!(error.kind(), kortyx_store::StoreErrorKind::AlreadyExists);
        }
    }
}

/// No ordinary case knows of what runs say.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_said_something_is_answered_and_ended_as_any_other() {
    let twins = Twins::new().await;
    let (run, question) = (with_context(), ask("a"));
    for store in &twins.stores {
        let suspend = suspending(RunRef::New(run.clone(), driver()), vec![question.clone()]);
        let suspend = Suspend { chunks: vec![Bytes::from_static(b"said")], ..suspend };
        let open = requests::saved(store.suspend(suspend).await.unwrap());
        let claimed = granted(store.answer(answering(&open[0])).await.unwrap());
        store.finish(finishing(claimed)).await.unwrap();
    }
    let keys = twins.assert_same("ended").await;
    let list = keys.iter().find(|(key, _)| key.contains(":out:")).unwrap().1;
    assert_eq!(list, &("list".to_owned(), true, vec!["said".to_owned()]));
}

/// The rest of a script is many times as long as its ordinary case: what reaches it takes longer by far.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_an_answer_and_an_end_are_ordinary_in_an_ordinary_run() {
    let server = Server::start();
    let store = server.store().await;
    let question = requests::paused(&store).await.unwrap();
    let kept = |letter: &str, count: usize| {
        let key = server.lines(&["KEYS", &format!("kortyx:{{*}}:{}:r:run-*", "?".repeat(32))]).remove(0);
        let kept = unquoted(server.lines(&["--no-raw", "HGET", &key, "m"]).remove(0).as_str());
        // The newest comes first: time, length and text of its id, length and text of what was said.
        let id = kept.chars().nth(9).map_or(0, |length| length as usize);
        assert_eq!(kept.chars().nth(14 + id).map(String::from).as_deref(), Some(letter), "{kept:?}");
        assert!(kept.len() > count);
    };
    kept("S", 40);
    let claimed = granted(store.answer(answering(&question)).await.unwrap());
    kept("A", 80);
    store.finish(finishing(claimed)).await.unwrap();
    kept("D", 120);
}
