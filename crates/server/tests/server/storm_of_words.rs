//! Random requests of every rpc: each gets an answer or a refusal, never a mistake of ours, and the server lives on.

use std::time::Duration;

use prost::Message;
use prost::bytes::{Buf, BufMut};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use punctual_api::{descriptors, v1};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::bed::{Bed, config};

/// Requests of each rpc.
const REQUESTS: usize = 300;

/// Bytes as they are.
#[derive(Clone, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut item = vec![0; from.remaining()];
        from.copy_to_slice(&mut item);
        Ok(Some(item))
    }
}

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn text(&mut self) -> String {
        // Words that mean something somewhere get further than noise.
        let words = [
            "",
            "default",
            "work",
            "s",
            "1",
            "h",
            "UTC",
            "Europe/Berlin",
            "0 9 * * *",
            "@daily",
            "* * * * *",
            "60s",
            "spec,action",
            "http://127.0.0.1:1/",
            "https://example.com/{{schedule_id}}",
            "GET",
            "\u{0}",
            "a/b",
            "ü\n",
            "{{",
            "-1",
            "99999999999999999999",
            "state",
            "paused",
            "punctual.calls",
            "../../etc/passwd",
            "'; DROP TABLE run_live; --",
        ];
        match self.below(12) {
            0 => "x".repeat(self.below(3_000)),
            1 => (0..self.below(20))
                .map(|_| char::from_u32(self.below(0x3000) as u32).unwrap_or('?'))
                .collect(),
            _ => words[self.below(words.len())].to_owned(),
        }
    }

    fn number(&mut self) -> i64 {
        let edges = [
            0,
            1,
            2,
            -1,
            10,
            100,
            1_000,
            i64::from(i32::MAX),
            i64::from(i32::MIN),
            i64::MAX,
            i64::MIN,
            253_402_300_799,
        ];
        if self.below(2) == 0 { edges[self.below(edges.len())] } else { self.next() as i64 >> self.below(64) }
    }

    fn message(&mut self, descriptor: &MessageDescriptor, depth: usize) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        for field in descriptor.fields() {
            let given = if depth < 2 { 70 } else { 35 };
            if depth > 6 || self.below(100) >= given {
                continue;
            }
            let value = self.field(&field, depth);
            message.set_field(&field, value);
        }
        message
    }

    fn field(&mut self, field: &FieldDescriptor, depth: usize) -> Value {
        if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
            let values = (0..self.below(3)).map(|_| {
                let key = MapKey::String(self.text());
                (key, self.one(&entry.map_entry_value_field().kind(), depth + 1))
            });
            return Value::Map(values.collect());
        }
        if field.is_list() {
            let count = self.below(4);
            return Value::List((0..count).map(|_| self.one(&field.kind(), depth + 1)).collect());
        }
        self.one(&field.kind(), depth + 1)
    }

    fn one(&mut self, kind: &Kind, depth: usize) -> Value {
        match kind {
            Kind::Message(message) => Value::Message(self.message(message, depth)),
            Kind::Enum(words) => Value::EnumNumber(self.below(words.values().count() + 2) as i32 - 1),
            Kind::Bool => Value::Bool(self.below(2) == 0),
            Kind::String => Value::String(self.text()),
            Kind::Bytes => Value::Bytes(self.text().into_bytes().into()),
            Kind::Double => Value::F64([0.0, 1.5, -1.0, f64::NAN, f64::INFINITY, 1e300][self.below(6)]),
            Kind::Float => Value::F32(1.5),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(self.number() as i32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(self.number()),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(self.number() as u32),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(self.number() as u64),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_random_request_makes_the_server_stumble() {
    let mut config = config();
    config.allow_private = true;
    let mut bed = Bed::with(config).await;
    bed.queue().await;
    bed.schedule("s", "").await;
    let address = format!("http://{}", bed.address);
    let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
    let services: Vec<_> = descriptors::pool()
        .services()
        .filter(|service| service.full_name().starts_with("punctual.v1."))
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut asked, mut fine) = (0, 0);
    for method in services.iter().flat_map(|service| service.methods()) {
        if method.is_server_streaming() {
            continue;
        }
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        for round in 0..REQUESTS {
            let mut bytes = random.message(&method.input(), 0).encode_to_vec();
            // Some are no messages at all.
            if round % 10 == 0 && !bytes.is_empty() {
                let place = random.below(bytes.len());
                bytes[place] ^= 1 << random.below(8);
                bytes.truncate(random.below(bytes.len()) + 1);
            }
            let mut client = tonic::client::Grpc::new(channel.clone());
            client.ready().await.unwrap();
            let call = client.unary(Request::new(bytes.clone()), path.parse().unwrap(), Raw);
            // Claims and heartbeats may wait for a minute; whoever goes away is no trouble.
            let Ok(answer) = tokio::time::timeout(Duration::from_millis(300), call).await else { continue };
            asked += 1;
            match answer {
                Ok(_) => fine += 1,
                Err(status) => {
                    let ours = matches!(status.code(), Code::Internal | Code::Unknown | Code::DataLoss);
                    // Bytes that are no message are the library's to refuse; it calls them internal.
                    let undecodable = method
                        .input()
                        .parent_pool()
                        .get_message_by_name(method.input().full_name())
                        .is_some_and(|descriptor| DynamicMessage::decode(descriptor, &bytes[..]).is_err());
                    assert!(!ours || undecodable, "{path}: {status:?}\n{bytes:?}");
                    let leaks = ["panicked", "rusqlite", "SELECT", "/root/", "src/"];
                    assert!(!leaks.iter().any(|leak| status.message().contains(leak)), "{path}: {status:?}");
                }
            }
        }
    }
    assert!(asked > 1_000 && fine > 100, "{asked} asked, {fine} fine");
    let info = bed.client.server.info(v1::InfoRequest {}).await.unwrap().into_inner();
    assert_eq!(info.store, "memory");
    bed.stop().await;
}
