//! A way to the database that can stop carrying anything, or be cut.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Open,
    /// They wait, and nobody is told.
    Frozen,
    /// Connections end, new ones too.
    Cut,
}

/// A way to the database.
pub struct Proxy {
    way: watch::Sender<Way>,
    pub port: u16,
}

impl Proxy {
    pub async fn start(target: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (way, watched) = watch::channel(Way::Open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, target, watched.clone()));
            }
        });
        Proxy { way, port }
    }

    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn connect(client: TcpStream, target: u16, way: watch::Receiver<Way>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    // When one direction ends, both do.
    tokio::select! {
        () = carry(from_client, to_server, way.clone()) => {}
        () = carry(from_server, to_client, way) => {}
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: watch::Receiver<Way>) {
    let mut cut = way.clone();
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = tokio::select! {
            read = from.read(&mut bytes) => read.unwrap_or(0),
            _ = cut.wait_for(|way| *way == Way::Cut) => return,
        };
        let passable = way.wait_for(|way| *way != Way::Frozen).await.map_or(Way::Cut, |way| *way);
        if count == 0 || passable == Way::Cut || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
