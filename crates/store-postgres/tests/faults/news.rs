//! News are heard, or that they may have been missed is; and who has no right on the schema tells nobody anything.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_have_missed_news_is_told_so() {
    let server = Server::start_careless().unwrap();
    let url = server.create_database("news").unwrap();
    let (here, there) = (open(&url).await, open(&url).await);
    let mut listener = here.listen().expect("a shared store tells news");
    server.end_connections("news").unwrap();

    let mut hear = async |wanted: News| {
        let heard = async { while listener.recv().await.expect("it goes on listening") != wanted {} };
        tokio::time::timeout(ANSWER_MAX, heard).await.expect("it is heard");
    };
    hear(News::Gap).await;
    // What is told on a connection that has ended is lost, and the next is not.
    until_answered(|| there.reserve(1)).await;
    there.tell(News::Roster);
    tokio::time::sleep(Duration::from_millis(200)).await;
    there.tell(News::Ready(QueueKey(7)));
    hear(News::Ready(QueueKey(7))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_right_on_the_schema_cannot_tell_servers_anything() {
    let server = Server::start_careless().unwrap();
    let url = server.create_database("strangers").unwrap();
    let store = open(&url).await;
    let queue = queue(&store).await;
    let mut news = store.listen().expect("a listener");
    server.query("strangers", "CREATE ROLE stranger").unwrap();
    let as_stranger = |sql: &str| server.query("strangers", &format!("SET ROLE stranger; {sql}"));

    // Everything that a stranger may call by a name that can be guessed or looked up.
    for word in ["N", "G", "S7", "W1:1:w", &format!("R{queue}")] {
        as_stranger(&format!("SELECT pg_notify('punctual', '{word}')")).expect("everybody may notify");
    }
    for sql in ["SELECT punctual.tell('N')", "SELECT name FROM punctual.channel"] {
        let refused = as_stranger(sql).expect_err("the schema is not theirs").to_string();
        assert!(refused.contains("permission denied for schema punctual"), "{refused}");
    }
    let name = server.query("strangers", "SELECT name FROM punctual.channel").unwrap();
    let shown = "SELECT query FROM pg_stat_activity; SELECT prosrc FROM pg_proc";
    assert!(!as_stranger(shown).unwrap().contains(name.trim()), "the name is in nothing that all may read");

    // News come in the order in which they were told: the first that is heard, but for that of the queue, is that of who may.
    store.tell(News::Stop(RunKey(8)));
    let mut heard = news.recv().await;
    while heard == Some(News::Queue(queue)) {
        heard = news.recv().await;
    }
    assert_eq!(heard, Some(News::Stop(RunKey(8))));
}
