//! A server that speaks TLS.

use std::{error::Error as _, fs, os::unix::fs::PermissionsExt as _};

use kortyx_postgres::{PostgresConfig, PostgresStore};
use kortyx_store::StoreErrorKind;
use sqlx::{ConnectOptions, PgConnection, postgres::PgConnectOptions};

use crate::{
    support::{Server, give_away},
    world::{paused, set_up},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_tls_is_used_where_its_certificate_is_trusted_and_nowhere_else() {
    let server = Server::start();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (server.directory.join("data/server.crt"), server.directory.join("data/server.key"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    give_away(&server.directory);
    let mut beside = server.url().parse::<PgConnectOptions>().unwrap().connect().await.unwrap();
    execute("ALTER SYSTEM SET ssl = on", &mut beside).await;
    execute("SELECT pg_reload_conf()", &mut beside).await;
    let config = |settings: &str| {
        PostgresConfig::parse(&server.url().replace("sslmode=disable", &format!("sslmode=verify-full{settings}")))
            .unwrap()
    };

    let error = PostgresStore::open(config("&retry_for_ms=1000")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.source().unwrap().to_string().contains("certificate"), "{error:?}");

    let store = set_up(config(&format!("&sslrootcert={}", certificate.display()))).await;
    paused(&store).await;
    let encrypted =
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND datname = 'postgres'";
    let connections: i64 = sqlx::query_scalar(encrypted).fetch_one(&mut beside).await.unwrap();
    assert!(connections > 0);
}

async fn execute(sql: &'static str, connection: &mut PgConnection) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}
