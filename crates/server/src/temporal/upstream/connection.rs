//! How the cluster is reached: over plain HTTP/2 or TLS, and with which key requests of our own are made.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::http::Uri;
use futures_util::future::BoxFuture;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tonic::codegen::Service;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::limits::UPSTREAM_CONNECT_TIME_MAX;

/// Connects to the cluster, in a time that is bounded with all that belongs to it.
#[derive(Clone)]
pub(super) struct Connector(HttpsConnector<HttpConnector>);

impl Connector {
    /// One for this address. A file names whom to trust over TLS, nothing means whom the machine trusts.
    pub(super) fn new(address: &Uri, authorities: &str) -> Result<Connector, String> {
        let roots = match address.scheme_str() {
            Some("https") => trusted(authorities)?,
            _ => RootCertStore::empty(),
        };
        // Named here, so that nobody has to choose one for the whole process.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut plain = HttpConnector::new();
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http2();
        Ok(Connector(builder.wrap_connector(plain)))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connected = tokio::time::timeout(UPSTREAM_CONNECT_TIME_MAX, self.0.call(address));
        Box::pin(async move { connected.await.unwrap_or_else(|_| Err("no connection in time".into())) })
    }
}

fn trusted(file: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if file.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        // A machine without any certificates trusts those that Mozilla does, as for calls.
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
    } else {
        let odd = |error: &dyn std::fmt::Display| format!("temporal_upstream_ca: {file}: {error}");
        for certificate in CertificateDer::pem_file_iter(file).map_err(|error| odd(&error))? {
            roots.add(certificate.map_err(|error| odd(&error))?).map_err(|error| odd(&error))?;
        }
    }
    match roots.is_empty() {
        true => Err("temporal_upstream_ca: there is no certificate to trust".to_owned()),
        false => Ok(roots),
    }
}

/// The key for requests of our own, if a file has one.
pub(super) fn key(file: &str) -> Result<Option<MetadataValue<Ascii>>, String> {
    if file.is_empty() {
        return Ok(None);
    }
    let odd = |error: &dyn std::fmt::Display| format!("temporal_upstream_key_file: {file}: {error}");
    let text = std::fs::read_to_string(Path::new(file)).map_err(|error| odd(&error))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(odd(&"expected a key, found nothing"));
    }
    let mut key: MetadataValue<Ascii> = format!("Bearer {text}").parse().map_err(|error| odd(&error))?;
    key.set_sensitive(true);
    Ok(Some(key))
}

/// What a request of our own carries beside its message, as those of clients do: the key, and the namespace.
#[derive(Clone)]
pub(super) struct Carried {
    pub(super) key: Option<MetadataValue<Ascii>>,
    pub(super) namespace: Option<MetadataValue<Ascii>>,
}

impl Interceptor for Carried {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        self.key.clone().and_then(|key| metadata.insert("authorization", key));
        self.namespace.clone().and_then(|namespace| metadata.insert("temporal-namespace", namespace));
        Ok(request)
    }
}
