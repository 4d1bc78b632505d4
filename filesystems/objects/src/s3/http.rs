//! HTTP for cloud stores: blocking requests in their own threads, for the `object_store` library.

use std::{future::Future, io, pin::Pin, time::Duration};

use http_body_util::BodyExt;
use object_store::{
    ClientOptions,
    client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService},
};
use ureq::{
    Agent, Error,
    http::{Method, Request, request::Parts},
};

/// The HTTP client for the library; it ignores the library's client options.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    agent: Agent,
    /// For requests with a body.
    sender: Agent,
}

impl Http {
    /// A client with these time limits: for a connection, for a request with its reply, and for a
    /// request with a body.
    pub fn new(connect: Duration, request: Duration, send: Duration) -> Self {
        let agent = |time: Duration| {
            let config = Agent::config_builder()
                .timeout_connect(Some(connect))
                .timeout_global(Some(time))
                // The library handles statuses and redirects; the environment is read by the
                // command line only.
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .proxy(None);
            config.build().into()
        };
        Self { agent: agent(request), sender: agent(send) }
    }
}

impl HttpConnector for Http {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Http {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        let http = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            // In a blocking thread: a timer of another request would otherwise wait for this one.
            let asked = tokio::task::spawn_blocking(move || ask(&http, parts, &body)).await;
            asked.unwrap_or_else(|error| Err(HttpError::new(HttpErrorKind::Unknown, error)))
        })
    }
}

/// Sends a request, and reads the whole reply.
fn ask(http: &Http, parts: Parts, body: &[u8]) -> Result<HttpResponse, HttpError> {
    let has_body = parts.method == Method::PUT || parts.method == Method::POST;
    let answer = match has_body {
        true => http.sender.run(Request::from_parts(parts, body)),
        false => http.agent.run(Request::from_parts(parts, ())),
    };
    let (parts, mut body) = answer.map_err(judge)?.into_parts();
    let bytes = body.read_to_vec().map_err(judge)?;
    Ok(HttpResponse::from_parts(parts, bytes.into()))
}

/// The kind of an error, which decides whether the library retries.
fn judge(error: Error) -> HttpError {
    let kind = match &error {
        Error::Timeout(_) => HttpErrorKind::Timeout,
        Error::HostNotFound | Error::ConnectionFailed => HttpErrorKind::Connect,
        Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => HttpErrorKind::Connect,
        Error::Io(_) | Error::Protocol(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
