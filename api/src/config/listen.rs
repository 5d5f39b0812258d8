//! Addresses to listen on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Disables a port.
const OFF: &str = "off";

/// An address and a port to listen on, such as `127.0.0.1:9443`, `[::]:9443` or `localhost:9443`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ListenAddress(String);

/// A text that is not a listen address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The port is missing or above 65535.
    #[error(
        "{0:?} does not end in a port; give an address and a port from 0 to 65535, \
         such as 127.0.0.1:9443"
    )]
    Port(String),
    /// The host is missing or invalid.
    #[error(
        "{0:?} has no address before the port; give one, such as 127.0.0.1:9443, \
         [::1]:9443 or 0.0.0.0:9443 for all"
    )]
    Host(String),
}

impl ListenAddress {
    /// A built-in default, checked by a test.
    pub(super) fn from_default(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The address as text, for the operating system to resolve.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.parse::<SocketAddr>().is_ok() {
            return Ok(Self(text.to_owned()));
        }
        let (host, port) = text
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| AddressError::Port(text.to_owned()))?;
        if port.parse::<u16>().is_err() {
            return Err(AddressError::Port(text.to_owned()));
        }
        // A host of digits and dots is an IPv4 address, and those were parsed above.
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let has_letter = host.contains(|c: char| c.is_ascii_alphabetic());
        if !has_letter || !host.chars().all(is_name) {
            return Err(AddressError::Host(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<ListenAddress> for String {
    fn from(address: ListenAddress) -> Self {
        address.0
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A listen address, or `off`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum OptionalListen {
    /// The port is disabled.
    Off,
    /// The port is opened at this address.
    At(ListenAddress),
}

impl FromStr for OptionalListen {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text == OFF {
            return Ok(Self::Off);
        }
        text.parse().map(Self::At)
    }
}

impl TryFrom<String> for OptionalListen {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<OptionalListen> for String {
    fn from(listen: OptionalListen) -> Self {
        match listen {
            OptionalListen::Off => OFF.to_owned(),
            OptionalListen::At(address) => address.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &AddressError>) {
        let parsed = text.parse::<ListenAddress>();
        assert_eq!(parsed.as_ref().map(ListenAddress::as_str), expected);
    }

    #[test]
    fn listen_address_with_port_is_accepted() {
        for text in [
            "127.0.0.1:9443",
            "0.0.0.0:0",
            "[::]:65535",
            "[::1%1]:1",
            "localhost:9443",
            "a-b.c1:1",
        ] {
            check(text, Ok(text));
        }
    }

    #[test]
    fn listen_address_invalid_is_rejected() {
        let port = |text: &str| AddressError::Port(text.to_owned());
        let host = |text: &str| AddressError::Host(text.to_owned());
        for text in [
            "",
            "9443",
            "127.0.0.1",
            "localhost:",
            "a:65536",
            "a:-1",
            "a:https",
            "a:+1",
        ] {
            check(text, Err(&port(text)));
        }
        for text in [
            ":9443",
            "::1:9443",
            "127.0.0:1",
            "256.0.0.1:1",
            "a b:1",
            "https://a:1",
        ] {
            check(text, Err(&host(text)));
        }
    }

    #[test]
    fn optional_listen_off_is_accepted() {
        for text in ["off", "127.0.0.1:9444"] {
            let parsed = text.parse::<OptionalListen>().map(String::from);
            assert_eq!(parsed.as_deref(), Ok(text));
        }
        assert_eq!(
            "Off".parse::<OptionalListen>(),
            Err(AddressError::Port("Off".to_owned()))
        );
    }
}
