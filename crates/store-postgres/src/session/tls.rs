//! Where the database is, and the way there: plain, or encrypted as `sslmode` says it, with the meaning that libpq gives it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use punctual_store::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_rustls::TlsConnector;

use crate::fault::Fault;

/// Where the database is.
#[derive(Clone)]
pub(crate) struct Address {
    config: Config,
    tls: Encrypt,
}

impl Address {
    /// Reads a URL, or `key=value` pairs.
    pub(crate) fn parse(url: &str) -> Result<Address, StoreError> {
        let odd = |what: String| StoreError::unavailable(format!("the database's address: {what}"));
        let (url, mode) = take(url, "sslmode");
        let (url, roots) = take(&url, "sslrootcert");
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            odd(std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string))
        })?;
        let verify = match mode.as_deref() {
            None | Some("prefer" | "allow") => Verify::Nothing(SslMode::Prefer),
            Some("disable") => Verify::Nothing(SslMode::Disable),
            Some("require") if roots.is_none() => Verify::Nothing(SslMode::Require),
            Some("require" | "verify-ca") => Verify::Authority,
            Some("verify-full") => Verify::Name,
            Some(other) => {
                return Err(odd(format!(
                    "sslmode {other:?} is none of disable, prefer, require, verify-ca, verify-full"
                )));
            }
        };
        config.ssl_mode(if let Verify::Nothing(mode) = verify { mode } else { SslMode::Require });
        if config.get_application_name().is_none() {
            config.application_name("punctual");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(std::time::Duration::from_secs(5));
        }
        config.keepalives_idle(std::time::Duration::from_secs(10));
        // Of several hosts the one that takes writes, so that a failover is followed.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let tls = Encrypt::new(verify, roots.as_deref()).map_err(odd)?;
        Ok(Address { config, tls })
    }

    /// Where it is, for people.
    pub(crate) fn shown(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            tokio_postgres::config::Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
        });
        let ports = self.config.get_ports().iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        format!("{}:{ports}", hosts.collect::<Vec<_>>().join(","))
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Result<(Client, Connection<Socket, Encrypted<Socket>>), Fault> {
        Ok(self.config.connect(self.tls.clone()).await?)
    }
}

/// Takes a setting out of an address that its reader does not know.
fn take(url: &str, name: &str) -> (String, Option<String>) {
    let mut found = None;
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let keep = |part: &&str, found: &mut Option<String>| match part.split_once('=') {
        Some((key, value)) if key.trim() == name => {
            *found = Some(value.trim().to_owned());
            false
        }
        _ => true,
    };
    let rest = if is_url {
        let Some((head, query)) = url.split_once('?') else { return (url.to_owned(), None) };
        let kept: Vec<&str> = query.split('&').filter(|part| keep(part, &mut found)).collect();
        if kept.is_empty() { head.to_owned() } else { format!("{head}?{}", kept.join("&")) }
    } else {
        url.split_whitespace().filter(|part| keep(part, &mut found)).collect::<Vec<_>>().join(" ")
    };
    (rest, found)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verify {
    Nothing(SslMode),
    Authority,
    Name,
}

/// Encrypts connections.
#[derive(Clone)]
pub(crate) struct Encrypt(Arc<ClientConfig>);

impl Encrypt {
    fn new(verify: Verify, roots: Option<&str>) -> Result<Encrypt, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let inner = match verify {
            Verify::Nothing(_) => None,
            Verify::Authority | Verify::Name => {
                let roots = Arc::new(authorities(roots)?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                Some(verifier.map_err(|error| error.to_string())?)
            }
        };
        let verifier = Arc::new(Verifier { inner, by_name: verify == Verify::Name, provider });
        let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        Ok(Encrypt(Arc::new(config)))
    }
}

/// Those of the file, or those that the machine trusts.
fn authorities(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        None | Some("system") => {
            for certificate in rustls_native_certs::load_native_certs().certs {
                let _ = roots.add(certificate);
            }
        }
        Some(file) => {
            let odd = |error: &dyn std::fmt::Display| format!("sslrootcert {file}: {error}");
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| odd(&error))? {
                roots.add(certificate.map_err(|error| odd(&error))?).map_err(|error| odd(&error))?;
            }
        }
    }
    if roots.is_empty() { Err("there is no certificate to trust".to_owned()) } else { Ok(roots) }
}

/// Looks at a certificate as closely as it was told to.
#[derive(Debug)]
struct Verifier {
    inner: Option<Arc<WebPkiServerVerifier>>,
    by_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                rustls::CertificateError::NotValidForName
                | rustls::CertificateError::NotValidForNameContext { .. },
            )) if !self.by_name => Ok(ServerCertVerified::assertion()),
            answer => answer,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Encrypt {
    type Stream = Encrypted<Socket>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Connect, io::Error> {
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(Connect { connector: TlsConnector::from(self.0.clone()), name })
    }
}

/// Encrypts one connection.
pub(crate) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Connect {
    type Stream = Encrypted<Socket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<Socket>>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Encrypted(self.connector.connect(self.name, socket).await?)) })
    }
}

/// An encrypted stream.
pub(crate) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl tokio_postgres::tls::TlsStream for Encrypted<Socket> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
