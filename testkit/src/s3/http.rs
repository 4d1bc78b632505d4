//! The part of HTTP that a store needs.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::TcpStream,
};

/// A received request.
pub(super) struct Request {
    pub method: String,
    /// The decoded path with its leading `/`, without the query.
    pub path: String,
    query: BTreeMap<String, String>,
    /// Names in lower case.
    headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    /// Reads the next request. `None` if there is none, or if the store is deaf.
    pub fn read(stream: &mut TcpStream, is_deaf: impl Fn() -> bool) -> io::Result<Option<Self>> {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte)? == 0 {
                return Ok(None);
            }
            head.push(byte[0]);
            if head.len() == 8 && is_deaf() {
                return Ok(None);
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
        let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(name, value)| (name.to_owned(), decode(value))).collect();
        let mut body = vec![0; headers.get("content-length").and_then(|len| len.parse().ok()).unwrap_or(0)];
        stream.read_exact(&mut body)?;
        Ok(Some(Self { method, path: decode(path), query, headers, body }))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn query(&self, name: &str) -> String {
        self.query.get(name).cloned().unwrap_or_default()
    }

    /// The first and last byte of the requested range.
    pub fn range(&self) -> Option<(usize, usize)> {
        let (from, last) = self.header("range").strip_prefix("bytes=")?.split_once('-')?;
        Some((from.parse().ok()?, last.parse().unwrap_or(usize::MAX)))
    }
}

/// Decodes percent-encoded bytes such as `%2F`.
fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2.min(part.len()));
        out.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A response.
pub(super) struct Answer {
    status: u16,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Answer {
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub fn xml(status: u16, text: &str) -> Self {
        let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{text}").into_bytes();
        Self { status, headers: vec!["Content-Type: application/xml".to_owned()], body }
    }

    pub fn error(status: u16, code: &str, message: &str) -> Self {
        Self::xml(status, &format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
    }

    /// A response with an object and the headers of every object.
    pub fn object(status: u16, bytes: &[u8]) -> Self {
        let sum = bytes
            .iter()
            .fold(14_695_981_039_346_656_037u64, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(1_099_511_628_211));
        let headers = vec![format!("ETag: \"{sum:016x}\""), "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT".to_owned()];
        Self { status, headers, body: bytes.to_vec() }
    }

    /// A response with the bytes of the object from `first` to `last`.
    pub fn part(object: &[u8], first: usize, last: usize) -> Self {
        let mut answer = Self::object(206, object);
        answer.headers.push(format!("Content-Range: bytes {first}-{last}/{}", object.len()));
        answer.body = object[first..=last].to_vec();
        answer
    }

    pub fn without_body(self) -> Self {
        Self { body: Vec::new(), ..self }
    }

    fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} told\r\nContent-Length: {}\r\n", self.status, self.body.len());
        for header in &self.headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// Writes the response, without its body if `only_head`.
    pub fn write(&self, stream: &mut TcpStream, only_head: bool) -> io::Result<()> {
        let mut bytes = self.head();
        if !only_head {
            bytes.extend_from_slice(&self.body);
        }
        stream.write_all(&bytes)
    }

    /// Writes the first half of the response.
    pub fn write_half(&self, stream: &mut TcpStream) -> io::Result<()> {
        let bytes = [self.head(), self.body.clone()].concat();
        stream.write_all(&bytes[..bytes.len() / 2])
    }
}
