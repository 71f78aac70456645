//! Each server, used by its own client.

use super::world::{World, installed, listens, printed};

/// Runs a shell script with the URLs of these servers.
fn with(servers: &[&str], script: &str) -> String {
    let world = World::new();
    let args: Vec<_> = servers.iter().copied().chain(["--", "sh", "-c", script]).collect();
    let output = world.serve(&args).output().unwrap();

    let printed = printed(&output);
    assert!(world.is_clean(), "folders are left");
    printed
}

#[test]
fn redis_keeps_what_it_is_told() {
    if !installed(&["redis"]) {
        return;
    }
    let script = "echo $KORTYX_TEST_REDIS_URL
        ask() { redis-cli --no-auth-warning -u $KORTYX_TEST_REDIS_URL \"$@\"; }
        ask set key value; ask get key; ask config get maxmemory-policy";
    let printed = with(&["redis"], script);
    let lines: Vec<_> = printed.lines().collect();

    assert_eq!(lines[1..], ["OK", "value", "maxmemory-policy", "noeviction"]);
    assert!(!listens(lines[0]), "it still runs");
}

#[test]
fn a_redis_lets_nobody_in_without_its_password() {
    if !installed(&["redis"]) {
        return;
    }
    let printed = with(&["redis"], "redis-cli -p ${KORTYX_TEST_REDIS_URL##*:} get key");

    assert!(printed.contains("NOAUTH"), "{printed}");
}

#[test]
fn a_redis_cluster_has_three_masters_with_a_replica_each() {
    if !installed(&["redis"]) {
        return;
    }
    let script = "first=${KORTYX_TEST_REDIS_CLUSTER_URL#redis-cluster}; first=redis${first%%\\?*}
        ask() { redis-cli --no-auth-warning -c -u $first \"$@\"; }
        ask cluster shards | grep -c -x -e master -e replica
        ask cluster nodes | grep -c 'slave.*connected$'
        for key in a b c d e f; do ask set $key $key; done
        echo $first; echo \"$KORTYX_TEST_REDIS_CLUSTER_URL\" | grep -o '[?&]node=127.0.0.1:' | wc -l";
    let printed = with(&["redis-cluster"], script);
    let lines: Vec<_> = printed.lines().collect();

    assert_eq!(lines[..8], ["6", "3", "OK", "OK", "OK", "OK", "OK", "OK"]);
    assert!(!listens(lines[8]), "it still runs");
    assert_eq!(lines[9].trim(), "2", "the URL names the other masters");
}

#[test]
fn postgres_answers_and_is_not_root() {
    if !installed(&["postgres"]) {
        return;
    }
    let script = "echo $KORTYX_TEST_POSTGRES_URL
        psql -XtA $KORTYX_TEST_POSTGRES_URL -c 'create table kept (value int)' -c 'insert into kept values (7)' \
            -c 'select value from kept' -c 'show data_directory'
        ps -eo user=,args= | grep 'postgres -D /' | grep -F \"$TMPDIR\" | cut -d ' ' -f 1";
    let printed = with(&["postgres"], script);
    let lines: Vec<_> = printed.lines().collect();

    assert_eq!(lines[1..4], ["CREATE TABLE", "INSERT 0 1", "7"]);
    assert!(lines[4].contains("kortyx-postgres-"), "not in its temporary folder: {}", lines[4]);
    assert_ne!(lines[5], "root");
    assert!(!listens(lines[0]), "it still runs");
}

#[test]
fn pgbouncer_pools_transactions_in_front_of_postgres() {
    if !installed(&["postgres", "pgbouncer"]) {
        return;
    }
    let script = "echo $KORTYX_TEST_PGBOUNCER_URL
        psql -XtA $KORTYX_TEST_PGBOUNCER_URL -c 'create table kept (value int)'
        psql -XtA $KORTYX_TEST_POSTGRES_URL -c 'select count(*) from kept'
        psql -XtA ${KORTYX_TEST_PGBOUNCER_URL%/*}/pgbouncer -c 'show config' | grep '^pool_mode' | cut -d '|' -f 2";
    let printed = with(&["pgbouncer", "postgres"], script);
    let lines: Vec<_> = printed.lines().collect();

    assert_eq!(lines[1..], ["CREATE TABLE", "0", "transaction"]);
    assert!(!listens(lines[0]), "it still runs");
}
