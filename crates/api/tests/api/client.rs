//! The client talks to a real server: compressed, with large messages, and with refusals that arrive as they were.

use punctual_api::client::MESSAGE_BYTES_MAX;
use punctual_api::v1::server_server::{Server, ServerServer};
use punctual_api::{Client, v1};
use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};

/// Answers with a long text that says how the request was encoded.
struct Echo {
    answer_bytes: usize,
}

#[tonic::async_trait]
impl Server for Echo {
    async fn info(&self, request: Request<v1::InfoRequest>) -> Result<Response<v1::InfoResponse>, Status> {
        let encoding = request.metadata().get("grpc-encoding").and_then(|value| value.to_str().ok());
        let store = encoding.unwrap_or("identity").to_owned();
        let node_id = "n".repeat(self.answer_bytes);
        Ok(Response::new(v1::InfoResponse { node_id, store, ..Default::default() }))
    }

    async fn stats(&self, _: Request<v1::StatsRequest>) -> Result<Response<v1::StatsResponse>, Status> {
        Err(Status::unimplemented("only info is asked for here"))
    }

    async fn examine(&self, _: Request<v1::ExamineRequest>) -> Result<Response<v1::ExamineResponse>, Status> {
        Err(Status::unimplemented("only info is asked for here"))
    }

    async fn nodes(&self, _: Request<v1::NodesRequest>) -> Result<Response<v1::NodesResponse>, Status> {
        Err(Status::unimplemented("only info is asked for here"))
    }

    async fn drain(&self, _: Request<v1::DrainRequest>) -> Result<Response<v1::DrainResponse>, Status> {
        Err(Status::unimplemented("only info is asked for here"))
    }

    type BackupStream = tonic::codec::Streaming<v1::BackupPiece>;

    async fn backup(&self, _: Request<v1::BackupRequest>) -> Result<Response<Self::BackupStream>, Status> {
        Err(Status::unimplemented("only info is asked for here"))
    }
}

/// A server on a free port, for as long as the test's runtime lives.
fn serve(answer_bytes: usize) -> String {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap().to_string();
    let service = ServerServer::new(Echo { answer_bytes })
        .accept_compressed(Gzip)
        .send_compressed(Gzip)
        .max_encoding_message_size(usize::MAX);
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    address
}

#[tokio::test]
async fn requests_are_compressed_and_large_answers_arrive() {
    let address = serve(MESSAGE_BYTES_MAX - 1_000);

    let mut client = Client::connect(&address).await.unwrap();
    let info = client.server.info(v1::InfoRequest {}).await.unwrap().into_inner();

    assert_eq!(info.store, "gzip");
    assert_eq!(info.node_id.len(), MESSAGE_BYTES_MAX - 1_000);
}

#[tokio::test]
async fn answers_beyond_the_bound_and_unknown_services_are_errors() {
    let address = serve(MESSAGE_BYTES_MAX + 1);
    let mut client = Client::connect_lazy(&format!("http://{address}")).unwrap();

    let too_large = client.server.info(v1::InfoRequest {}).await.unwrap_err();
    let unknown = client.queues.list(v1::ListQueuesRequest::default()).await.unwrap_err();

    assert_eq!((too_large.code(), unknown.code()), (Code::ResourceExhausted, Code::Unimplemented));
}

#[tokio::test]
async fn nobody_there_and_no_address_are_errors() {
    assert!(Client::connect("127.0.0.1:1").await.is_err());
    assert!(Client::connect("not an address").await.is_err());
    assert!(Client::connect_lazy("").is_err());
}
