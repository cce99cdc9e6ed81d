//! A connection to a server, with a client for each service.

use std::time::Duration;

use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::{Channel, Endpoint, Error};

use crate::v1::queues_client::QueuesClient;
use crate::v1::runs_client::RunsClient;
use crate::v1::schedules_client::SchedulesClient;
use crate::v1::server_client::ServerClient;
use crate::v1::workers_client::WorkersClient;

/// Bytes of one message, either way: a page of a thousand runs with room to spare. The server has the same bound.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a silent connection is asked whether it lives: well below what proxies cut.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// How long that answer may take before the connection counts as dead.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection with a client for each service. Cloning it shares the connection; it heals by itself.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use punctual_api::{Client, v1};
///
/// let mut client = Client::connect("127.0.0.1:7233").await?;
/// let info = client.server.info(v1::InfoRequest {}).await?.into_inner();
/// assert!(!info.version.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    /// Standing wishes.
    pub schedules: SchedulesClient<Channel>,
    /// Executions.
    pub runs: RunsClient<Channel>,
    /// Where runs wait.
    pub queues: QueuesClient<Channel>,
    /// What workers ask and report.
    pub workers: WorkersClient<Channel>,
    /// The server itself.
    pub server: ServerClient<Channel>,
}

/// Applies what all services have in common.
macro_rules! service {
    ($client:ident, $channel:expr) => {
        $client::new($channel)
            .send_compressed(Gzip)
            .accept_compressed(Gzip)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    };
}

impl Client {
    /// Connects to `host:port` or `http://host:port`; fails if nobody answers there.
    pub async fn connect(address: &str) -> Result<Client, Error> {
        Ok(Client::over(endpoint(address)?.connect().await?))
    }

    /// Connects when it is first used; needs to be called inside of a runtime.
    pub fn connect_lazy(address: &str) -> Result<Client, Error> {
        Ok(Client::over(endpoint(address)?.connect_lazy()))
    }

    /// Uses a channel that the caller has set up.
    pub fn over(channel: Channel) -> Client {
        Client {
            schedules: service!(SchedulesClient, channel.clone()),
            runs: service!(RunsClient, channel.clone()),
            queues: service!(QueuesClient, channel.clone()),
            workers: service!(WorkersClient, channel.clone()),
            server: service!(ServerClient, channel),
        }
    }
}

/// Requests have no time limit here: a claim or a watch waits as long as it was told to.
fn endpoint(address: &str) -> Result<Endpoint, Error> {
    let address = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    Ok(Endpoint::from_shared(address)?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .http2_adaptive_window(true)
        .tcp_nodelay(true))
}
