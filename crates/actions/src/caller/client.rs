//! One request and its answer, to an address that was checked.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::fault;
use crate::end::Fault;
use crate::error::CallError;
use crate::limits::{IDLE_CONNECTIONS_MAX, IDLE_WAIT};
use crate::resolve::{CheckedResolver, Resolve};
use crate::rules::Rules;
use crate::url::Url;

type Inner = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector<CheckedResolver>>, Full<Bytes>>;

/// Sends requests; follows no redirect and uses no proxy.
pub(super) struct Client {
    inner: Inner,
    rules: Arc<Rules>,
}

/// A request that is ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer whose body has not been read yet.
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: UnsyncBoxBody<Bytes, String>,
}

/// What was read of a body.
pub(super) struct Body {
    pub bytes: Vec<u8>,
    pub ending: Ending,
}

/// Why reading a body ended.
pub(super) enum Ending {
    Whole,
    /// There is more than was asked for.
    Cut,
    /// The connection broke.
    Lost(String),
}

impl Client {
    pub(super) fn new(rules: Arc<Rules>, resolver: Arc<dyn Resolve>) -> Result<Client, CallError> {
        let mut http =
            HttpConnector::new_with_resolver(CheckedResolver { inner: resolver, rules: rules.clone() });
        http.enforce_http(false);
        http.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&rules)?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(http);
        let inner = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_WAIT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            // A connection that all calls of a target share, and that died unnoticed, must not fail them one by one.
            .http2_keep_alive_interval(Duration::from_secs(10))
            .http2_keep_alive_timeout(Duration::from_secs(5))
            .build(connector);
        Ok(Client { inner, rules })
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(&self, request: &Request, connect_timeout: Duration) -> Result<Answer, Fault> {
        // An address in the URL is not looked up, so nobody else checks it.
        if let Some(reason) = request.url.refusal(&self.rules) {
            return Err(Fault::lasting("address_refused", reason));
        }
        let mut outgoing = http::Request::new(Full::new(request.body.clone()));
        *outgoing.method_mut() = request.method.clone();
        *outgoing.headers_mut() = request.headers.clone();
        *outgoing.uri_mut() = http::Uri::try_from(request.url.to_string())
            .map_err(|error| Fault::lasting("call_invalid", format!("url: {error}")))?;
        let mut connection = capture_connection(&mut outgoing);
        let not_connected = async {
            let connected = async { connection.wait_for_connection_metadata().await.is_some() };
            if tokio::time::timeout(connect_timeout, connected).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        let mut sending = pin!(self.inner.request(outgoing));
        let response = tokio::select! {
            biased;
            response = &mut sending => response.map_err(|error| fault::of(&error))?,
            () = not_connected => {
                let message = format!("no connection to {} within {connect_timeout:?}", request.url.origin());
                return Err(Fault::passing("connect_timed_out", message));
            }
        };
        let (head, body) = response.into_parts();
        let body = body.map_err(|error| fault::chain(&error)).boxed_unsync();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }
}

impl Answer {
    /// Reads the body, at most this many bytes of it.
    pub(super) async fn read(self, bytes_max: usize) -> Body {
        let mut stream = self.body;
        let mut body = Body { bytes: Vec::new(), ending: Ending::Whole };
        while let Some(frame) = stream.frame().await {
            match frame {
                Ok(frame) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let room = bytes_max - body.bytes.len();
                    body.bytes.extend_from_slice(&data[..data.len().min(room)]);
                    if data.len() > room {
                        body.ending = Ending::Cut;
                        break;
                    }
                }
                Err(reason) => {
                    body.ending = Ending::Lost(reason);
                    break;
                }
            }
        }
        body
    }

    pub(super) fn content_type(&self) -> Option<String> {
        let value = self.headers.get(http::header::CONTENT_TYPE)?;
        value.to_str().ok().map(str::to_owned)
    }
}

/// Trusts what the system trusts; if the system has no certificates at all, those that Mozilla trusts.
fn tls(rules: &Rules) -> Result<ClientConfig, CallError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let fault = |reason: String| CallError::Rules { reason };
    if let Some(pem) = &rules.roots_pem {
        let count = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| fault(format!("roots_pem: {error}")))?;
            roots.add(certificate).map_err(|error| fault(format!("roots_pem: {error}")))?;
        }
        if roots.len() == count {
            return Err(fault("roots_pem: expected a certificate, found none".to_owned()));
        }
    }
    // Named here, so that nobody has to choose one for the whole process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
