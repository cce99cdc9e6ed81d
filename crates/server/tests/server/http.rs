//! A tiny HTTP/1 client, so that the tests see bytes and no library's opinion of them.

use std::net::SocketAddr;

use prost::{Message, Name};
use punctual_api::json;
use punctual_api::routes::ROUTES;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

/// Sends bytes as they are, and reads until the server is done.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses early may close before everything is sent.
    let _ = stream.write_all(bytes).await;
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(all.len());
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head, body: all.get(end + 4..).unwrap_or_default().to_vec() }
}

/// One request.
pub async fn send(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> Answer {
    raw(address, &request(method, path, "", body)).await
}

/// The bytes of a request.
pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// The request of a message, by the route of its rpc: path fields into the path, the rest into body or query.
pub async fn call<M: Message + Name>(address: SocketAddr, rpc: &str, message: &M) -> Answer {
    let Value::Object(mut fields) = json::to_value(message).unwrap() else { panic!("no object") };
    let fits = |path: &str| {
        path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).all(|name| {
            fields.get(name).is_some_and(|value| value.as_str().is_some_and(|text| !text.is_empty()))
        })
    };
    let route = ROUTES.iter().find(|route| route.rpc.ends_with(rpc) && fits(route.path)).unwrap();
    let mut path = route.path.to_owned();
    for name in route.parameters() {
        let text = fields.remove(name).unwrap();
        path = path.replace(&format!("{{{name}}}"), &encoded(text.as_str().unwrap()));
    }
    if route.body {
        let body = Value::Object(fields).to_string();
        return send(address, route.method.as_str(), &path, body.as_bytes()).await;
    }
    send(address, route.method.as_str(), &format!("{path}?{}", query(&fields)), b"").await
}

fn query(fields: &Map<String, Value>) -> String {
    let pairs = fields.iter().filter_map(|(name, value)| match value {
        Value::String(text) => Some(format!("{name}={}", encoded(text))),
        Value::Number(_) | Value::Bool(_) => Some(format!("{name}={value}")),
        _ => None,
    });
    pairs.collect::<Vec<_>>().join("&")
}

pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A stream of server-sent events.
pub struct Events(BufReader<TcpStream>);

impl Events {
    /// Opens it; the server has begun to listen when this returns.
    pub async fn open(address: SocketAddr, path: &str) -> Events {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\naccept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).await.unwrap();
        }
        Events(reader)
    }

    /// The name and the data of the next event; nothing at the end.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        let (mut name, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            if self.0.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if let Some(kind) = line.strip_prefix("event: ") {
                name = kind.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data.trim()).unwrap()));
            }
        }
    }
}
