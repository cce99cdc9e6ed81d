//! Where a request goes: a strict reading of URLs, with one spelling for each host.
//!
//! Spellings that other readers understand differently (numbers as hosts, octal parts, names and passwords, backslashes) are
//! refused, so that what was checked is what is called.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::limits::URL_BYTES_MAX;
use crate::rules::{Rules, how_to_permit};

/// How a target is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// In lower case, without a dot at the end.
    Name(String),
    Address(IpAddr),
}

/// A URL that has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
    /// Begins with a slash.
    pub path: String,
    /// Without its question mark.
    pub query: Option<String>,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Url, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("expected at most {URL_BYTES_MAX} bytes, found {}", text.len()));
        }
        let is_odd = |byte: u8| !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(&byte);
        if let Some(position) = text.bytes().position(is_odd) {
            return Err(format!("byte {position}: expected it percent-encoded"));
        }
        let (scheme, rest) = text.split_once("://").ok_or("expected http:// or https:// in front")?;
        let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (Scheme::Http, 80),
            "https" => (Scheme::Https, 443),
            _ => return Err(format!("expected scheme http or https, found {scheme}")),
        };
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("expected no name or password in the url: send them as a header".to_owned());
        }
        let (host, port) = match authority.rfind(':') {
            Some(colon) if !authority[colon..].contains(']') => {
                (&authority[..colon], Some(&authority[colon + 1..]))
            }
            Some(_) | None => (authority, None),
        };
        let port = match port {
            None => default_port,
            Some(digits) => {
                let port =
                    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
                port.filter(|port| *port != 0)
                    .ok_or_else(|| format!("expected a port from 1 to 65535, found {digits:?}"))?
            }
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (rest, None),
        };
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        Ok(Url { scheme, host: parse_host(host)?, port, path, query })
    }

    /// Where a `Location` leads from here (RFC 3986, section 5.2).
    pub(crate) fn join(&self, location: &str) -> Result<Url, String> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme_end = location.find(':').filter(|end| {
            !location[..*end].contains(['/', '?'])
                && location.starts_with(|first: char| first.is_ascii_alphabetic())
        });
        if scheme_end.is_some() {
            return Url::parse(location);
        }
        if location.starts_with("//") {
            return Url::parse(&format!("{}:{location}", self.scheme));
        }
        let (path, query) = match location.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (location, None),
        };
        let folder = &self.path[..=self.path.rfind('/').unwrap_or(0)];
        let path = match path {
            "" => self.path.clone(),
            path if path.starts_with('/') => without_dots(path),
            path => without_dots(&format!("{folder}{path}")),
        };
        let query = match query {
            Some(query) => format!("?{query}"),
            None if location.is_empty() => self.query.iter().map(|query| format!("?{query}")).collect(),
            None => String::new(),
        };
        // Read again as a whole: the pieces come from somebody else.
        Url::parse(&format!("{}{path}{query}", self.origin()))
    }

    /// Scheme, host and port: what calls to the same target share.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.host, self.port)
    }

    /// Whether calls may go there, as far as the URL itself says.
    pub(crate) fn refusal(&self, rules: &Rules) -> Option<String> {
        match &self.host {
            Host::Address(address) if !rules.permits(*address) => {
                Some(format!("address {address} is not public; {}", how_to_permit(*address)))
            }
            Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
                let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
                let is_permitted = loopback.into_iter().any(|address| rules.permits(address));
                (!is_permitted)
                    .then(|| format!("{name} is the server's own machine; {}", how_to_permit(loopback[0])))
            }
            Host::Address(_) | Host::Name(_) => None,
        }
    }

    /// For logs: without the query, which may hold secrets.
    pub(crate) fn shown(&self) -> String {
        let path: String = self.path.chars().take(200).collect();
        format!("{}{path}", self.origin())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.origin(), self.path)?;
        self.query.iter().try_for_each(|query| write!(formatter, "?{query}"))
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => formatter.write_str(name),
            Host::Address(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

fn parse_host(text: &str) -> Result<Host, String> {
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let address: Ipv6Addr =
            inner.parse().map_err(|_| format!("expected an IPv6 address, found {text}"))?;
        // One spelling for one address: the IPv4 inside, if that is what it is.
        return Ok(Host::Address(IpAddr::V6(address).to_canonical()));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.is_empty() || name.len() > 253 {
        return Err(format!("expected a host of 1 to 253 letters, found {text:?}"));
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if !name.split('.').all(is_label) {
        return Err(format!("expected a host of letters, digits, hyphens and dots, found {text:?}"));
    }
    // A last part that is a number makes the whole an IPv4 address: in some reader's eyes an octal or a shortened one.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hexadecimal =
        last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        let address: Ipv4Addr = name
            .parse()
            .map_err(|_| format!("expected an address of four decimal numbers, found {text:?}"))?;
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    Ok(Host::Name(name))
}

/// Resolves `.` and `..` of a path that begins with a slash.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Bytes that mean nothing special anywhere in a URL stay, all others are written as `%XX`.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte as char);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
