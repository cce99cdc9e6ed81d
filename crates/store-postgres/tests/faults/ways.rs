//! The ways to the database: encrypted as the address says, and through a proxy that lends its connections.

use punctual_testkit::{Bouncer, Pooling, certificate};

use super::*;

/// What nodes that share a database need of the way there: each sees what the other one wrote, and hears what it tells.
async fn carries_all(here: &Arc<Postgres>, there: &Arc<Postgres>) {
    let queue = queue(here).await;
    let mut news = there.listen().expect("a shared store tells news");
    let writing: Vec<_> = (0..8)
        .map(|_| {
            let stores = [here.clone(), there.clone()];
            tokio::spawn(async move {
                let first = until_answered(|| stores[0].reserve(100)).await;
                for before in 0..20 {
                    let store = &stores[before % 2];
                    let run = RunKey(first + 1 + before as i64);
                    let unit = step(TreeKey(first), before as u64, run, queue);
                    let answers = answer(store.commit(Batch::of(vec![unit]))).await;
                    assert_eq!(answers.expect("it is written"), [Ok(())]);
                }
                assert_eq!(sequence(&stores[1], TreeKey(first)).await, 20);
            })
        })
        .collect();
    for written in writing {
        written.await.unwrap();
    }
    here.tell(News::Stop(RunKey(8)));
    let heard = async { while news.recv().await.expect("it goes on listening") != News::Stop(RunKey(8)) {} };
    tokio::time::timeout(ANSWER_MAX, heard).await.expect("it is heard");
}

async fn try_to_open(url: &str, listen_url: Option<&str>) -> Result<Arc<Postgres>, String> {
    let listen_url = listen_url.map(str::to_owned);
    let opened = Postgres::open(Options { shards: 4, listen_url, ..Options::new(url) }).await;
    opened.map(Arc::new).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_way_carries_all_and_ends_where_the_address_does_not_trust() {
    let server = Server::start_careless().unwrap();
    let url = server.create_database("encrypted").unwrap();
    if !server.encrypt().unwrap() {
        return eprintln!("NOT TESTED: this PostgreSQL was built without encryption");
    }
    let (by_number, by_name) = (url.clone(), url.replace("127.0.0.1", "localhost"));
    let root = certificate::root().display().to_string();
    let trusted = |url: &str, mode: &str| format!("{url}?sslmode={mode}&sslrootcert={root}");

    for url in [
        trusted(&by_name, "verify-full"),
        trusted(&by_number, "verify-ca"),
        format!("{by_number}?sslmode=require"),
        by_number.clone(),
    ] {
        let (here, there) = (try_to_open(&url, None).await.unwrap(), try_to_open(&url, None).await.unwrap());
        carries_all(&here, &there).await;
        let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name = 'punctual' AND NOT ssl";
        assert_eq!(server.query("encrypted", plain).unwrap().trim(), "0", "{url}");
        server.query("encrypted", "DROP SCHEMA punctual CASCADE").unwrap();
    }

    let begun = Instant::now();
    for (url, reason) in [
        (trusted(&by_number, "verify-full"), "not valid for name"),
        (format!("{by_name}?sslmode=verify-full"), "UnknownIssuer"),
        (format!("{by_name}?sslmode=disable"), "no encryption"),
    ] {
        let refused = try_to_open(&url, None).await.err().expect("the address does not allow it");
        assert!(refused.contains(reason), "{url}: {refused}");
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "waiting would not help: {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_lends_connections_by_session_carries_all() {
    let server = Server::start_careless().unwrap();
    server.create_database("pooled").unwrap();
    let Some(proxy) = Bouncer::start(&server, Pooling::Session).unwrap() else {
        return eprintln!("NOT TESTED: there is no PgBouncer, and we may not install it");
    };
    let url = proxy.url("pooled");

    let (here, there) = (try_to_open(&url, None).await.unwrap(), try_to_open(&url, None).await.unwrap());

    carries_all(&here, &there).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_lends_connections_by_transaction_carries_all_but_news_or_is_refused_with_the_reason() {
    let server = Server::start_careless().unwrap();
    let direct = server.create_database("pooled").unwrap();
    let Some(proxy) = Bouncer::start(&server, Pooling::Transaction).unwrap() else {
        return eprintln!("NOT TESTED: there is no PgBouncer, and we may not install it");
    };
    let url = proxy.url("pooled");

    let refused = try_to_open(&url, None).await.err().expect("nobody would hear of news");
    let opened = try_to_open(&url, Some(&direct)).await;

    assert!(refused.contains("a proxy that hands out connections by transaction"), "{refused}");
    if proxy.keeps_statements() {
        let there = try_to_open(&url, Some(&direct)).await.unwrap();
        carries_all(&opened.unwrap(), &there).await;
    } else {
        let refused = opened.err().expect("it would not know our statements");
        assert!(refused.contains("does not keep prepared statements"), "{refused}");
    }
}
