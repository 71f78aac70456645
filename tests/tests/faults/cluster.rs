//! A Redis Cluster whose node dies and whose slots move, under load.

use std::{sync::Arc, time::Duration};

use kortyx_testkit::{BoxError, Outage, Storm};
use kortyx_tests::{
    driven::Flow,
    place::{Place, fresh_name},
    servers::RedisCluster,
};
use libtest_mimic::Trial;
use tokio::{sync::Mutex, task::spawn_blocking, time::sleep};

use crate::{kit, trial};

const PEACE: Duration = Duration::from_secs(8);
const SLOTS: u32 = 300;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("b149_a_cluster_whose_master_dies_and_whose_slots_move_under_load_loses_nothing", fails_over)]
}

async fn fails_over() {
    let cluster = spawn_blocking(RedisCluster::start).await.unwrap();
    let url = cluster.url();
    let place = move |_: &std::path::Path| Place::Redis { url: url.clone(), prefix: fresh_name() };
    let cluster = Arc::new(Mutex::new(cluster));
    let storm = Storm::lasting(Duration::from_secs(1)).settles(Duration::from_mins(2));
    let stormed = storm.run_during(&kit(Flow::Rich, place), disturb(cluster.clone())).await.unwrap();
    println!("faults: redis-cluster whose master dies and whose slots move: {stormed:?}");
    assert_eq!(stormed.recoveries.len(), 1);
}

async fn disturb(cluster: Arc<Mutex<RedisCluster>>) -> Result<Vec<Outage>, BoxError> {
    sleep(PEACE).await;
    let outage = Outage::during(on(&cluster, |cluster| {
        let master = &mut cluster.nodes()[0];
        // What a master acknowledges before its replica has it is lost with it, by design. So it takes no more writes, sends what it has,
        // and dies with calls of everybody under way.
        master.ask(&["CLIENT", "PAUSE", "10000", "WRITE"]);
        std::thread::sleep(Duration::from_millis(300));
        master.crash();
        cluster.await_service();
        Ok(())
    }));
    let outages = vec![outage.await?];
    sleep(PEACE).await;
    on(&cluster, |cluster| {
        cluster.nodes()[0].run();
        cluster.await_health();
        Ok(())
    })
    .await?;
    on(&cluster, |cluster| cluster.reshard(SLOTS)).await?;
    sleep(PEACE / 2).await;
    Ok(outages)
}

async fn on(
    cluster: &Arc<Mutex<RedisCluster>>,
    act: impl FnOnce(&mut RedisCluster) -> Result<(), String> + Send + 'static,
) -> Result<(), BoxError> {
    let mut cluster = cluster.clone().lock_owned().await;
    Ok(spawn_blocking(move || act(&mut cluster)).await??)
}
