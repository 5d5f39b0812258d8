//! A minimal HTTPS client: GET for readiness, and the negotiated protocol.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A server without a response after this time is called again.
const TIMEOUT_S: u64 = 10;

/// A connection with TLS.
pub type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A server on this machine.
pub struct Endpoint<'a> {
    pub port: u16,
    /// PEM file with the trusted CA certificates.
    pub ca: &'a Path,
    pub token: Option<&'a str>,
}

impl Endpoint<'_> {
    /// The status code and the body; `None` without a response.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        self.try_get(path).ok()
    }

    /// The application protocol that the server selects from `offered`.
    pub fn negotiate(&self, offered: &[&str]) -> io::Result<Option<String>> {
        let stream = self.handshake(offered)?;
        let chosen = stream.conn.alpn_protocol();
        Ok(chosen.map(|name| String::from_utf8_lossy(name).into_owned()))
    }

    /// The certificate that a new connection gets.
    pub fn certificate(&self, offered: &[&str]) -> io::Result<CertificateDer<'static>> {
        let stream = self.handshake(offered)?;
        let chain = stream.conn.peer_certificates().unwrap_or_default();
        let leaf = chain.first().ok_or(io::ErrorKind::InvalidData)?;
        Ok(leaf.clone().into_owned())
    }

    /// Opens a connection and completes the handshake.
    pub fn handshake(&self, offered: &[&str]) -> io::Result<Stream> {
        let mut stream = self.connect(offered)?;
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
    }

    /// Opens a connection for raw HTTP/1.1.
    pub fn open(&self) -> io::Result<Stream> {
        self.connect(&["http/1.1"])
    }

    fn try_get(&self, path: &str) -> io::Result<(u16, String)> {
        let mut stream = self.connect(&["http/1.1"])?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n",
            self.port
        )?;
        if let Some(token) = self.token {
            write!(stream, "Authorization: Bearer {token}\r\n")?;
        }
        write!(stream, "Connection: close\r\n\r\n")?;

        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // A server may close the connection without closing TLS first.
            Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => return Err(e),
            _ => {}
        }
        parse(&String::from_utf8_lossy(&answer)).ok_or(io::ErrorKind::InvalidData.into())
    }

    fn connect(&self, offered: &[&str]) -> io::Result<Stream> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(
            CertificateDer::pem_file_iter(self.ca)
                .map_err(io::Error::other)?
                .filter_map(Result::ok),
        );
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = offered
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();

        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port);
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(Duration::from_secs(TIMEOUT_S)))?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, socket))
    }
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
