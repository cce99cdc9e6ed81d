//! What this server permits, and how much of it at a time.

use std::net::IpAddr;
use std::time::Duration;

use crate::address::{Network, is_metadata, is_private};

/// What this server permits, and how much of it at a time.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Calls may go to addresses that are not public: for a server that serves its own network. Link-local addresses, where
    /// clouds keep credentials of the machine, stay refused unless [`Rules::allowed_networks`] names them.
    pub allow_private: bool,
    /// Addresses that are permitted whatever they are.
    pub allowed_networks: Vec<Network>,
    /// Calls may be commands of this machine.
    pub allow_commands: bool,
    /// Bytes of an answer's body or of a command's stdout; 1 MiB, as much as a result may have.
    pub response_bytes_max: usize,
    /// Calls in flight in all.
    pub in_flight_max: usize,
    /// Calls in flight to one target, so that a dead one leaves room for the others.
    pub in_flight_per_target_max: usize,
    /// How long a call may wait for its place before it counts as failed.
    pub wait_max: Duration,
    /// How long a connection may take, unless the call says otherwise.
    pub connect_timeout: Duration,
    /// How long a request may take, with connection, redirects and body, unless the call says otherwise.
    pub timeout: Duration,
    /// How long a command may take, unless the call says otherwise.
    pub command_timeout: Duration,
    /// How long a command that was asked to stop has until it is killed, and a Nexus operation to say its token.
    pub stop_grace: Duration,
    /// Redirects that a request follows; a call may ask for fewer.
    pub redirects_max: u32,
    /// Certificates, in PEM, that are trusted besides those of the system: of a company's own authority.
    pub roots_pem: Option<Vec<u8>>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            allow_private: false,
            allowed_networks: Vec::new(),
            allow_commands: false,
            response_bytes_max: 1024 * 1024,
            in_flight_max: 1_000,
            in_flight_per_target_max: 100,
            wait_max: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(60),
            command_timeout: Duration::from_secs(3_600),
            stop_grace: Duration::from_secs(5),
            redirects_max: 5,
            roots_pem: None,
        }
    }
}

impl Rules {
    /// Whether calls may go to this address.
    pub fn permits(&self, address: IpAddr) -> bool {
        !is_private(address)
            || (self.allow_private && !is_metadata(address))
            || self.allowed_networks.iter().any(|network| network.contains(address))
    }
}

/// What an operator does to permit an address that is refused: whoever reads this cannot, but knows what to ask for.
pub(crate) fn how_to_permit(address: IpAddr) -> String {
    let address = address.to_canonical();
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let one = format!("start the server with --allow-networks {address}/{bits} (setting allow_networks)");
    match is_metadata(address) {
        true => format!("{one} to permit it; --allow-private does not, since clouds keep credentials there"),
        false => format!("{one} or --allow-private (setting allow_private) to permit it"),
    }
}

/// What an operator does to permit commands.
pub(crate) const HOW_TO_PERMIT_COMMANDS: &str =
    "start the server with --allow-commands (setting allow_commands) to permit them";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_the_operator_can_do() {
        for (address, expected) in [
            ("10.1.2.3", "--allow-networks 10.1.2.3/32 (setting allow_networks) or --allow-private"),
            ("::ffff:127.0.0.1", "--allow-networks 127.0.0.1/32 (setting allow_networks) or --allow-private"),
            ("::1", "--allow-networks ::1/128 (setting allow_networks) or --allow-private"),
            ("169.254.169.254", "--allow-networks 169.254.169.254/32 (setting allow_networks) to permit it"),
        ] {
            let said = how_to_permit(address.parse().unwrap());
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn private_addresses_need_a_permission_and_metadata_its_own() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let strict = Rules::default();
        assert!(strict.permits(address("8.8.8.8")));
        assert!(!strict.permits(address("10.0.0.1")));

        let private = Rules { allow_private: true, ..Rules::default() };
        assert!(private.permits(address("10.0.0.1")));
        assert!(!private.permits(address("169.254.169.254")));

        let named = Rules { allowed_networks: vec!["169.254.0.0/16".parse().unwrap()], ..Rules::default() };
        assert!(named.permits(address("::ffff:169.254.169.254")));
        assert!(!named.permits(address("10.0.0.1")));
    }
}
