//! HTTP/2 frames written by hand (RFC 9113), which no correct client sends.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A frame of HTTP/2 (RFC 9113, section 4.1).
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = length[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// The preface of an HTTP/2 client, with these settings.
pub fn preface(settings: &[(u16, u32)]) -> Vec<u8> {
    let settings: Vec<u8> = settings
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
        .collect();
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    out.extend(frame(SETTINGS, 0, 0, &settings));
    out
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const INITIAL_WINDOW_SIZE: u16 = 4;

pub const PROTOCOL_ERROR: u32 = 1;
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// `GET https://localhost/`, in HPACK.
pub const GET: &[u8] = b"\x82\x87\x84\x41\x09localhost";

/// Fields in HPACK, without any compression (RFC 7541, section 6.2.2).
pub fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            integer(text.len(), &mut out);
            out.extend(text.as_bytes());
        }
    }
    out
}

/// An integer with a prefix of 7 bits (RFC 7541, section 5.1).
fn integer(number: usize, out: &mut Vec<u8>) {
    let Some(mut rest) = number.checked_sub(0x7f) else {
        out.push(u8::try_from(number).unwrap());
        return;
    };
    out.push(0x7f);
    while rest >= 0x80 {
        out.push(u8::try_from(rest % 0x80).unwrap() | 0x80);
        rest /= 0x80;
    }
    out.push(u8::try_from(rest).unwrap());
}

/// The head of a POST to `/never`, whose body is never read.
pub fn post_without_body() -> Vec<u8> {
    fields(&[
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/never"),
    ])
}

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// Returns the error code of a `RST_STREAM` or `GOAWAY`.
    pub fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    /// True for the head of a response with this status: 200, 204, 206, 304, 400, 404 or 500.
    pub fn has_status(&self, status: u16) -> bool {
        let indexed = [200, 204, 206, 304, 400, 404, 500];
        let place = indexed.iter().position(|known| *known == status).unwrap();
        let byte = 0x88 + u8::try_from(place).unwrap();
        self.kind == HEADERS && self.payload.first() == Some(&byte)
    }
}

/// An HTTP/2 connection with hand-written frames.
pub struct Connection(TlsStream<TcpStream>);

impl Connection {
    /// Sends these settings, and receives those of the server.
    pub async fn begin(stream: TlsStream<TcpStream>, settings: &[(u16, u32)]) -> Self {
        let mut connection = Self(stream);
        connection.send(&preface(settings)).await;
        let first = connection.next().await.unwrap();
        assert_eq!((first.kind, first.flags), (SETTINGS, 0));
        connection.send(&frame(SETTINGS, ACK, 0, &[])).await;
        connection.quiet().await;
        connection
    }

    /// Sends bytes, in one TLS record if they fit.
    pub async fn send(&mut self, bytes: &[u8]) {
        // The server may have closed the connection; its earlier frames are read.
        let _ = self.0.write_all(bytes).await;
    }

    /// Returns the next frame; `None` at the end of the connection.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes(head[5..9].try_into().unwrap()),
            payload,
        })
    }

    /// Returns the next frame of this type.
    pub async fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// Waits until the server has processed all frames, and returns those that it sent.
    pub async fn quiet(&mut self) -> Vec<Frame> {
        self.send(&frame(PING, 0, 0, b"are you?")).await;
        let mut seen = Vec::new();
        loop {
            let frame = self.next().await.expect("the connection goes on");
            if (frame.kind, frame.flags) == (PING, ACK) {
                return seen;
            }
            seen.push(frame);
        }
    }

    /// Reads to the end; returns the error code of the GOAWAY, if there was one.
    pub async fn goaway(mut self) -> Option<u32> {
        let mut code = None;
        while let Some(frame) = self.next_of(GOAWAY).await {
            code = Some(frame.code());
        }
        code
    }

    /// Requests `/` on this stream, and checks that it gets a response.
    pub async fn assert_serves(&mut self, stream: u32) {
        let get = frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
        self.send(&get).await;
        let answer = self.next_of(HEADERS).await.unwrap();
        assert!(
            answer.stream == stream && answer.has_status(200),
            "{answer:?}"
        );
    }
}
