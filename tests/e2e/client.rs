//! A client of the API server that keeps its connection, as controllers do.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::https::{Endpoint, Stream};

/// Timeout for a response. The API server ends every request after 60 seconds.
const TIMEOUT_S: u64 = 90;

/// A client with one connection. It connects on the first request, and again after a failure.
pub struct Client {
    port: u16,
    ca: PathBuf,
    token: &'static str,
    connection: Option<BufReader<Stream>>,
}

/// A response of the API server.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// The texts of the `Warning` headers.
    pub warnings: Vec<String>,
    /// The object, or the `Status` with the reason why there is no object.
    pub body: Value,
}

impl Response {
    /// The message of a rejection; empty if the request was accepted.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Client {
    pub fn new(port: u16, ca: PathBuf, token: &'static str) -> Self {
        Self {
            port,
            ca,
            token,
            connection: None,
        }
    }

    /// Gets the object at `path`.
    pub fn get(&mut self, path: &str) -> io::Result<Response> {
        self.send("GET", path, &Value::Null)
    }

    /// Creates an object in the collection at `path`.
    pub fn create(&mut self, path: &str, object: &Value) -> io::Result<Response> {
        self.send("POST", path, object)
    }

    /// Replaces the object at `path`.
    pub fn replace(&mut self, path: &str, object: &Value) -> io::Result<Response> {
        self.send("PUT", path, object)
    }

    /// Applies a merge patch to the object at `path`.
    pub fn patch(&mut self, path: &str, change: &Value) -> io::Result<Response> {
        self.send("PATCH", path, change)
    }

    /// Deletes the object at `path`.
    pub fn delete(&mut self, path: &str) -> io::Result<Response> {
        self.send("DELETE", path, &Value::Null)
    }

    /// Sends a request exactly once, without retries: the caller counts the results.
    fn send(&mut self, method: &str, path: &str, body: &Value) -> io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let request = self.request(method, path, body);
        connection.get_mut().write_all(request.as_bytes())?;
        let (answer, is_last) = read(&mut connection)?;
        if !is_last {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    fn connect(&self) -> io::Result<BufReader<Stream>> {
        let endpoint = Endpoint {
            port: self.port,
            ca: &self.ca,
            token: None,
        };
        let stream = endpoint.handshake(&["http/1.1"])?;
        let timeout = Duration::from_secs(TIMEOUT_S);
        stream.sock.set_read_timeout(Some(timeout))?;
        stream.sock.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> String {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = match body {
            Value::Null => String::new(),
            object => object.to_string(),
        };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\
             Accept: application/json\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            self.token,
            body.len()
        )
    }
}

/// Reads one response, and returns whether the server closes the connection after it.
fn read(connection: &mut impl BufRead) -> io::Result<(Response, bool)> {
    let message = HttpMessage::receive(connection, Until::Closed)?;
    let status = message.status().ok_or(io::ErrorKind::InvalidData)?;
    let warnings = message.fields.iter().filter(|(name, _)| name == "warning");
    let answer = Response {
        status,
        warnings: warnings.map(|(_, value)| value.clone()).collect(),
        body: serde_json::from_slice(&message.body)?,
    };
    Ok((answer, message.is_last))
}

/// An HTTP/1.1 request or response.
pub struct HttpMessage {
    /// The request line or the status line.
    pub first: String,
    /// The headers: names in lower case, and values. Hop-by-hop headers are left out.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the connection closes after this message.
    pub is_last: bool,
}

/// The end of a body without a length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// There is no body.
    Head,
    Closed,
}

impl HttpMessage {
    pub fn receive(connection: &mut impl BufRead, until: Until) -> io::Result<Self> {
        let first = line(connection)?;
        let (mut length, mut is_chunked, mut is_last) = (None, false, false);
        let mut fields = Vec::new();
        loop {
            let field = line(connection)?;
            let Some((name, value)) = field.split_once(':') else {
                break;
            };
            let (name, value) = (name.to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "content-length" => length = Some(value.parse().map_err(io::Error::other)?),
                "transfer-encoding" => is_chunked = value == "chunked",
                "connection" => is_last = value == "close",
                _ => fields.push((name, value.to_owned())),
            }
        }
        let body = match length {
            Some(length) => exactly(connection, length)?,
            None if is_chunked => chunks(connection)?,
            None if until == Until::Closed => rest(connection)?,
            None => Vec::new(),
        };
        Ok(Self {
            first,
            fields,
            body,
            is_last,
        })
    }

    pub fn send(&self, connection: &mut impl Write) -> io::Result<()> {
        let mut bytes = self.head_with_length();
        bytes.extend(&self.body);
        connection.write_all(&bytes)
    }

    /// The message before the body, with the length of the body.
    pub fn head_with_length(&self) -> Vec<u8> {
        let mut bytes = self.head().into_bytes();
        bytes.truncate(bytes.len() - 2);
        bytes.extend(format!("content-length: {}\r\n\r\n", self.body.len()).bytes());
        bytes
    }

    /// The message before the body, including the empty line.
    pub fn head(&self) -> String {
        let fields = self.fields.iter();
        let fields = fields.map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("{}\r\n{}\r\n", self.first, fields.collect::<String>())
    }

    /// The status code of a response.
    pub fn status(&self) -> Option<u16> {
        self.first.split(' ').nth(1)?.parse().ok()
    }
}

fn chunks(connection: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(connection)?;
        let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
        body.extend(exactly(connection, size)?);
        line(connection)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn exactly(connection: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    connection.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn rest(connection: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The next line, without its end.
fn line(connection: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
