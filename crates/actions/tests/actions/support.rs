//! A small HTTP server that does as it is told, and remembers what it was asked.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use punctual_actions::{Call, Caller, Context, End, Fault, HttpCall, Resolve, Resolving, Rules, StopSignal};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a server was asked.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

/// What a server does with a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These bytes, as they are.
    Raw(Vec<u8>),
    /// These bytes, and then the connection is reset.
    Reset(Vec<u8>),
    /// These bytes, and then nothing more, for ever.
    Hang(Vec<u8>),
    /// Chunks without end.
    Endless,
}

/// An answer with a length.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    bytes.push_str("\r\n");
    Reply::Raw([bytes.as_bytes(), body].concat())
}

pub fn json(status: u16, body: &str) -> Reply {
    answer(status, &[("Content-Type", "application/json")], body)
}

type Handler = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    requests: watch::Receiver<usize>,
    connections: watch::Receiver<usize>,
}

impl Server {
    pub async fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        Server::on("127.0.0.1:0", handler).await
    }

    /// Always the same answer.
    pub async fn saying(reply: Reply) -> Server {
        Server::start(move |_| reply.clone()).await
    }

    pub async fn on(address: &str, handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind(address).await.expect("loopback can be listened on");
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (requests, requests_seen) = watch::channel(0);
        let (connections, connections_seen) = watch::channel(0);
        let (handler, remembered): (Handler, _) = (Arc::new(handler), seen.clone());
        let requests = Arc::new(requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.send_modify(|count| *count += 1);
                let (handler, seen, requests) = (handler.clone(), remembered.clone(), requests.clone());
                tokio::spawn(async move {
                    let mut stream = stream;
                    let _ = serve(&mut stream, &handler, &seen, &requests).await;
                });
            }
        });
        Server { address, seen, requests: requests_seen, connections: connections_seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        *self.connections.borrow()
    }

    /// Waits until this many requests have arrived.
    pub async fn asked(&self, count: usize) {
        let mut requests = self.requests.clone();
        requests.wait_for(|seen| *seen >= count).await.expect("the server lives");
    }
}

async fn serve(
    stream: &mut TcpStream,
    handler: &Handler,
    seen: &Mutex<Vec<Seen>>,
    requests: &watch::Sender<usize>,
) -> io::Result<()> {
    while let Some(request) = read_request(stream).await? {
        let reply = handler(&request);
        seen.lock().unwrap().push(request);
        requests.send_modify(|count| *count += 1);
        match reply {
            Reply::Raw(bytes) => stream.write_all(&bytes).await?,
            Reply::Reset(bytes) => {
                stream.write_all(&bytes).await?;
                stream.set_zero_linger()?;
                return Ok(());
            }
            Reply::Hang(bytes) => {
                stream.write_all(&bytes).await?;
                std::future::pending::<()>().await;
            }
            Reply::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
                let chunk = [b"1000\r\n".as_slice(), &[b'x'; 0x1000], b"\r\n"].concat();
                loop {
                    stream.write_all(&chunk).await?;
                }
            }
        }
    }
    Ok(())
}

/// Reads one request; none if the other side has closed the connection.
pub async fn read_request(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Option<Seen>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head is text");
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.get("content-length").map_or(0, |length| length.parse().expect("a length is a number"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let body = String::from_utf8(body).expect("bodies in tests are text");
    Ok(Some(Seen { method: method.to_owned(), path: path.to_owned(), headers, body }))
}

/// Names with answers in the order in which they are given; the last one stays.
pub struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub asked: Mutex<usize>,
}

impl Names {
    pub fn new(answers: &[&[&str]]) -> Arc<Names> {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Names { answers: Mutex::new(answers.iter().map(parse).collect()), asked: Mutex::new(0) })
    }
}

impl Resolve for Names {
    fn resolve(&self, _host: &str) -> Resolving {
        *self.asked.lock().unwrap() += 1;
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no such name")) })
    }
}

/// Rules that permit the address of the test servers and no other of this machine.
pub fn rules() -> Rules {
    Rules { allowed_networks: vec!["127.0.0.1/32".parse().unwrap()], ..Rules::default() }
}

pub fn caller() -> Caller {
    Caller::new(rules()).expect("the rules can be followed")
}

pub fn context() -> Context {
    Context {
        namespace: "mail".to_owned(),
        schedule_id: "nightly".to_owned(),
        run_id: "run-7".to_owned(),
        idempotency_key: "start-abc".to_owned(),
        nominal_time: Some("2026-11-15T12:00:00Z".to_owned()),
        due_time: "2026-11-15T12:00:03Z".to_owned(),
        attempt: 1,
        input: Some(br#"{"customer": 5}"#.to_vec()),
        last_result: None,
        callback_url: None,
        callback_token: None,
    }
}

/// One attempt of a request.
pub async fn request(caller: &Caller, call: HttpCall) -> End {
    caller.call(&Call::Http(call), &context(), StopSignal::never()).await
}

/// One `POST` with everything as usual.
pub async fn post(url: String) -> End {
    request(&caller(), HttpCall::new(url)).await
}

#[track_caller]
pub fn fault(end: End) -> Fault {
    match end {
        End::Failed { fault, .. } => fault,
        End::Done { .. } | End::Accepted { .. } | End::Cancelled => {
            panic!("expected a failure, found {end:?}")
        }
    }
}

#[track_caller]
pub fn done(end: End) -> (String, punctual_actions::Form) {
    match end {
        End::Done { result, form, .. } => (String::from_utf8_lossy(&result).into_owned(), form),
        End::Failed { .. } | End::Accepted { .. } | End::Cancelled => {
            panic!("expected a result, found {end:?}")
        }
    }
}
