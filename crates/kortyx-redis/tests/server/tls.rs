//! A server that speaks TLS.

use std::{env, fs, process::Command, time::Duration};

use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::conformance::requests::{answering, finishing, granted, paused};
use kortyx_store::{Store, StoreErrorKind};

use crate::support::{Server, free_port, set_up};

/// Tells a process that trusts the server's certificate where the server is.
const SERVER: &str = "KORTYX_TEST_TLS_SERVER";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_tls_is_used_where_its_certificate_is_trusted_and_nowhere_else() {
    // Whom a process trusts is said by its environment: a process of its own does.
    if let Ok(url) = env::var(SERVER) {
        return complete_a_run(&url).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key, port) = (path("certificate.pem"), path("key.pem"), free_port());
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let encrypted = ["--tls-port", &port.to_string(), "--tls-auth-clients", "no"];
    let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key];
    let server = Server::with(&[&["--save", ""], &encrypted[..], &files].concat());
    let url = format!("rediss://127.0.0.1:{port}");

    let stranger = RedisConfig::parse(&url).unwrap().patience(Duration::from_secs(2));
    let error = RedisStore::connect(stranger).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Backend, "it is not tried again");
    assert!(error.to_string().contains("certificate"), "{error} {error:?}");
    assert_eq!(server.cli(&["DBSIZE"]).trim(), "0");

    let itself = "tls::a_server_with_tls_is_used_where_its_certificate_is_trusted_and_nowhere_else";
    let mut friend = Command::new(env::current_exe().unwrap());
    friend.args(["--exact", itself]).env(SERVER, url).env("SSL_CERT_FILE", certificate);
    let output = friend.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_ne!(server.cli(&["DBSIZE"]).trim(), "0");
}

async fn complete_a_run(url: &str) {
    let store = set_up(RedisConfig::parse(url).unwrap()).await;
    let question = paused(&store).await.unwrap();
    store.finish(finishing(granted(store.answer(answering(&question)).await.unwrap()))).await.unwrap();
}
