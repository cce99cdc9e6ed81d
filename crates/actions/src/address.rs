//! Which addresses calls may go to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::error::CallError;

/// A range of addresses, such as `10.0.0.0/8`; one address is a range too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Network {
        Network { address: IpAddr::V4(Ipv4Addr::new(a, b, c, 0)), prefix }
    }

    const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Network {
        Network { address: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix }
    }

    /// Whether the range has this address. An IPv4 address is the same in its IPv6 form.
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |bits: u32| bits - u32::from(self.prefix);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Network, CallError> {
        let fault = |reason: String| CallError::Rules { reason };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| fault(format!("expected a network such as 10.0.0.0/8, found {text:?}")))?;
        let bits: u8 = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|prefix| *prefix <= bits)
                .ok_or_else(|| fault(format!("expected a prefix of at most {bits}, found {prefix:?}")))?,
        };
        let first = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(u32::from(bits - prefix)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(u32::from(bits - prefix)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        // Probably one address was meant, or a longer prefix: guessing would open too much.
        if first != address {
            return Err(fault(format!(
                "expected the first address of its network, {first}/{prefix}, found {text}"
            )));
        }
        if address.to_canonical() != address {
            return Err(fault(format!(
                "expected {} as an IPv4 network, found {text}",
                address.to_canonical()
            )));
        }
        Ok(Network { address, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

/// What of IPv4 is not the public internet.
const PRIVATE_V4: [Network; 15] = [
    Network::v4(0, 0, 0, 8),       // this host
    Network::v4(10, 0, 0, 8),      // private
    Network::v4(100, 64, 0, 10),   // carriers' own
    Network::v4(127, 0, 0, 8),     // loopback
    Network::v4(169, 254, 0, 16),  // link-local, metadata of clouds
    Network::v4(172, 16, 0, 12),   // private
    Network::v4(192, 0, 0, 24),    // protocol assignments
    Network::v4(192, 0, 2, 24),    // documentation
    Network::v4(192, 88, 99, 24),  // 6to4 relays
    Network::v4(192, 168, 0, 16),  // private
    Network::v4(198, 18, 0, 15),   // benchmarks
    Network::v4(198, 51, 100, 24), // documentation
    Network::v4(203, 0, 113, 24),  // documentation
    Network::v4(224, 0, 0, 4),     // multicast
    Network::v4(240, 0, 0, 4),     // reserved, broadcast
];

/// Public addresses of IPv6 are in here.
const GLOBAL_V6: Network = Network::v6(0x2000, 0, 0, 3);

/// What of [`GLOBAL_V6`] is not public all the same.
const PRIVATE_V6: [Network; 4] = [
    Network::v6(0x2001, 0, 0, 23), // protocol assignments: Teredo, benchmarks, ORCHID
    Network::v6(0x2001, 0xdb8, 0, 32), // documentation
    Network::v6(0x2002, 0, 0, 16), // 6to4: any IPv4 address inside
    Network::v6(0x3fff, 0, 0, 20), // documentation
];

/// IPv4 behind a translator: as public as what is inside.
const TRANSLATED: Network = Network::v6(0x64, 0xff9b, 0, 96);

/// Where clouds keep credentials of the machine. A permission for private addresses is not meant for these.
const METADATA: [Network; 3] = [
    Network::v4(169, 254, 0, 16),
    Network::v6(0xfe80, 0, 0, 10),
    Network { address: IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), prefix: 128 },
];

/// Whether an address is anything but a public one.
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        address @ IpAddr::V4(_) => PRIVATE_V4.iter().any(|network| network.contains(address)),
        IpAddr::V6(inner) if TRANSLATED.contains(address) => {
            let [.., a, b, c, d] = inner.octets();
            is_private(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        address @ IpAddr::V6(_) => {
            !GLOBAL_V6.contains(address) || PRIVATE_V6.iter().any(|network| network.contains(address))
        }
    }
}

/// Whether an address is where clouds keep credentials of the machine.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    METADATA.iter().any(|network| network.contains(address))
        || match address {
            IpAddr::V6(inner) if TRANSLATED.contains(address) => inner.octets()[12..14] == [169, 254],
            IpAddr::V6(_) | IpAddr::V4(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::8.8.8.8",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::",
            "3fff::1",
            "5f00::1",
            "4000::1",
        ];
        for text in private {
            assert!(is_private(text.parse().unwrap()), "{text} is private");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
            "3ffe::1",
        ];
        for text in public {
            assert!(!is_private(text.parse().unwrap()), "{text} is public");
        }
    }

    #[test]
    fn credentials_of_the_machine_are_known() {
        for text in
            ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fd00:ec2::254", "64:ff9b::a9fe:1"]
        {
            assert!(is_metadata(text.parse().unwrap()), "{text}");
        }
        for text in ["10.0.0.1", "127.0.0.1", "fd00::1", "8.8.8.8"] {
            assert!(!is_metadata(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn networks_are_read_and_written() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "127.0.0.1/32", "::/0", "fc00::/7", "::1/128"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        assert_eq!("127.0.0.1".parse::<Network>().unwrap().to_string(), "127.0.0.1/32");
        for text in
            ["", "10.0.0.0/33", "10.0.0.1/8", "::1/129", "10/8", "host", "10.0.0.0/-1", "::ffff:10.0.0.0/104"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_network_has_its_own_addresses_only() {
        let network: Network = "10.1.0.0/16".parse().unwrap();
        assert!(network.contains("10.1.255.255".parse().unwrap()));
        assert!(network.contains("::ffff:10.1.0.1".parse().unwrap()));
        assert!(!network.contains("10.2.0.0".parse().unwrap()));
        assert!(!network.contains("::1".parse().unwrap()));
        assert!("0.0.0.0/0".parse::<Network>().unwrap().contains("9.9.9.9".parse().unwrap()));
    }
}
