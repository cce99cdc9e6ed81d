//! Signals that ask the process to stop.

use tokio::sync::mpsc;

/// A listener for requests to stop: the first one is polite, the second is not.
#[derive(Debug)]
pub struct Signals {
    asked: mpsc::UnboundedReceiver<()>,
}

impl Signals {
    /// Begins to listen at once. Without signals nothing ever asks.
    pub fn listen() -> Signals {
        let (tell, asked) = mpsc::unbounded_channel();
        for listener in listeners() {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut listener = listener;
                while listener.recv().await.is_some() && tell.send(()).is_ok() {}
            });
        }
        // The sender lives on, so that a machine without signals waits instead of stopping.
        tokio::spawn(async move { tell.closed().await });
        Signals { asked }
    }

    /// Waits for the next request to stop.
    pub async fn next(&mut self) {
        if self.asked.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn listeners() -> Vec<tokio::signal::unix::Signal> {
    use tokio::signal::unix::{SignalKind, signal};
    [SignalKind::interrupt(), SignalKind::terminate()]
        .into_iter()
        .filter_map(|kind| signal(kind).ok())
        .collect()
}

#[cfg(windows)]
fn listeners() -> Vec<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c().into_iter().collect()
}

/// Ends with the first request to stop.
pub async fn first() {
    Signals::listen().next().await;
}
