//! A standby takes the place of a database that is gone, and whoever was given both addresses goes on there.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_is_promoted_has_all_that_was_acknowledged() {
    let mut primary = Server::start().unwrap();
    let url = primary.create_database("two").unwrap();
    let Some(standby) = primary.standby().unwrap() else {
        return eprintln!("NOT TESTED: this PostgreSQL came without pg_basebackup");
    };
    let here = format!("127.0.0.1:{}", primary.port());
    let both = url.replace(&here, &format!("127.0.0.1:{},{here}", standby.port()));
    assert_ne!(url, both);
    // Until then it is the first of the two, and takes no writes.
    under_load(&mut primary, &both, 1, |primary| {
        primary.crash().unwrap();
        standby.query("postgres", "SELECT pg_promote()").unwrap();
    })
    .await;
    let store = open(&both).await;
    let first = until_answered(|| store.reserve(2)).await;
    let unit = step(TreeKey(first), 0, RunKey(first + 1), queue(&store).await);
    assert_eq!(until_answered(|| store.commit(Batch::of(vec![unit.clone()]))).await, [Ok(())]);
    let stored = format!("SELECT count(*) FROM punctual.state WHERE tree = {first}");
    assert_eq!(standby.query("two", &stored).unwrap().trim(), "1");
}
