//! Over TLS the other side must prove who it is, and may speak HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use punctual_actions::{Caller, HttpCall, Rules};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::support::{Names, done, fault, request, rules};

const ROOT: &[u8] = include_bytes!("fixtures/root.pem");
const CERTIFICATE: &[u8] = include_bytes!("fixtures/server.pem");
const KEY: &[u8] = include_bytes!("fixtures/server.key");

/// A server for `secure.test` that answers with the version of HTTP it was asked in.
async fn server(protocols: &[&[u8]]) -> SocketAddr {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(certificates, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(|request: http::Request<_>| async move {
                    let _: &hyper::body::Incoming = request.body();
                    let version = format!("\"{:?}\"", request.version());
                    let mut response = http::Response::new(Full::new(Bytes::from(version)));
                    if request.uri().path() == "/down" {
                        *response.status_mut() = http::StatusCode::TEMPORARY_REDIRECT;
                        response.headers_mut().insert("location", "http://secure.test/".parse().unwrap());
                    }
                    Ok::<_, Infallible>(response)
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

fn caller(roots_pem: Option<&[u8]>) -> Caller {
    let rules = Rules { roots_pem: roots_pem.map(<[u8]>::to_vec), ..rules() };
    Caller::with_resolver(rules, Names::new(&[&["127.0.0.1"]])).unwrap()
}

#[tokio::test]
async fn the_other_side_chooses_the_version_of_http() {
    let cases: [(&[&[u8]], &str); 3] =
        [(&[b"h2", b"http/1.1"], "\"HTTP/2.0\""), (&[b"http/1.1"], "\"HTTP/1.1\""), (&[], "\"HTTP/1.1\"")];
    for (protocols, expected) in cases {
        let address = server(protocols).await;
        let caller = caller(Some(ROOT));
        for _ in 0..2 {
            let call = HttpCall::new(format!("https://secure.test:{}/", address.port()));
            assert_eq!(done(request(&caller, call).await).0, expected);
        }
    }
}

#[tokio::test]
async fn who_cannot_prove_it_is_not_called() {
    let address = server(&[]).await;
    let cases = [(None, "secure.test"), (Some(ROOT), "other.test")];
    for (roots, name) in cases {
        let call = HttpCall::new(format!("https://{name}:{}/", address.port()));
        let fault = fault(request(&caller(roots), call).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), ("tls_failed", true), "{name}: {fault}");
    }
}

#[tokio::test]
async fn a_redirect_does_not_leave_tls() {
    let address = server(&[]).await;
    let call = HttpCall::new(format!("https://secure.test:{}/down", address.port()));
    let fault = fault(request(&caller(Some(ROOT)), call).await);
    assert_eq!((fault.kind.as_str(), fault.retryable), ("redirect_refused", false));
}
