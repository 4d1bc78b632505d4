//! A store over a map on a local port. It serves the part of S3 that object stores need, and can
//! simulate failures.

mod http;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use http::{Answer, Request};

/// The only bucket.
pub const S3_BUCKET: &str = "bucket";
/// The only accepted access key.
pub const S3_KEY_ID: &str = "gardener";
/// Keys in one page of a list: few, so that lists have many pages.
const PAGE: usize = 2;

/// The behaviour of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S3Mood {
    /// Answers correctly.
    Well,
    /// Answers the next N requests with 503 (slow down).
    Busy(u32),
    /// Refuses every access key.
    Locked,
    /// Reports that the client's token has expired, and repeats the token.
    Expired,
    /// Never answers.
    Silent,
    /// Executes each request and sends only the first half of the answer.
    Half,
    /// Closes each connection after it has read 8 bytes of the request.
    Deaf,
}

struct State {
    objects: BTreeMap<String, Vec<u8>>,
    mood: S3Mood,
    requests: Vec<String>,
    /// Keys in all lists so far.
    told_keys: usize,
    /// Requests that wait for their answers now.
    waiting: usize,
    peak: usize,
}

/// The store. It stops on drop.
pub struct S3Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Stops the threads.
    ends: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Default for S3Server {
    fn default() -> Self {
        Self::new()
    }
}

impl S3Server {
    /// Starts an empty store that answers correctly.
    pub fn new() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            mood: S3Mood::Well,
            requests: Vec::new(),
            told_keys: 0,
            waiting: 0,
            peak: 0,
        };
        let mut server = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            state: Arc::new(Mutex::new(state)),
            ends: Arc::default(),
            accepting: None,
        };
        server.start();
        server
    }

    /// The URL of the store.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the behaviour from now on.
    pub fn set_mood(&self, mood: S3Mood) {
        lock(&self.state).mood = mood;
    }

    /// Stops listening: connections are refused. The objects stay.
    pub fn stop(&mut self) {
        self.ends.store(true, Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }

    /// Listens again at the same address.
    pub fn start(&mut self) {
        let listener = TcpListener::bind(self.address).expect("a port of this machine");
        self.address = listener.local_addr().expect("the port's address");
        self.ends = Arc::default();
        let (state, ends) = (self.state.clone(), self.ends.clone());
        self.accepting = Some(thread::spawn(move || accept(&listener, &state, &ends)));
    }

    /// All received requests, as `GET /bucket/key`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.state).requests.clone()
    }

    /// The number of keys in all lists.
    pub fn told_keys(&self) -> usize {
        lock(&self.state).told_keys
    }

    /// The most requests that waited for their answers at the same time.
    pub fn peak(&self) -> usize {
        lock(&self.state).peak
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        lock(&self.state).objects.keys().cloned().collect()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, state: &Arc<Mutex<State>>, ends: &Arc<AtomicBool>) {
    while let Ok((stream, _)) = listener.accept() {
        if ends.load(Relaxed) {
            return;
        }
        let (state, ends) = (state.clone(), ends.clone());
        thread::spawn(move || {
            // A closed connection gets no answer.
            let _ = serve(stream, &state, &ends);
        });
    }
}

/// Serves a connection until the client closes it, or the store stops.
fn serve(mut stream: TcpStream, state: &Mutex<State>, ends: &AtomicBool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    while let Some(request) = Request::read(&mut stream, || lock(state).mood == S3Mood::Deaf)? {
        let mood = {
            let mut state = lock(state);
            state.requests.push(format!("{} {}", request.method, request.path));
            state.waiting += 1;
            state.peak = state.peak.max(state.waiting);
            state.mood
        };
        while lock(state).mood == S3Mood::Silent {
            if ends.load(Relaxed) || is_closed(&stream) {
                lock(state).waiting -= 1;
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        let answer = {
            let mut state = lock(state);
            state.waiting -= 1;
            // A request on an earlier connection gets no answer either.
            if ends.load(Relaxed) {
                return Ok(());
            }
            judge(&request, mood, &mut state)
        };
        if mood == S3Mood::Half {
            return answer.write_half(&mut stream);
        }
        answer.write(&mut stream, request.method == "HEAD")?;
    }
    Ok(())
}

/// Whether the client has closed the connection.
fn is_closed(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let is_closed = matches!(stream.peek(&mut [0]), Ok(0));
    let _ = stream.set_nonblocking(false);
    is_closed
}

fn judge(request: &Request, mood: S3Mood, state: &mut State) -> Answer {
    if let S3Mood::Busy(left) = mood {
        state.mood = left.checked_sub(2).map_or(S3Mood::Well, |more| S3Mood::Busy(more + 1));
        return Answer::error(503, "SlowDown", "Please reduce your request rate.");
    }
    if mood == S3Mood::Locked || !request.header("authorization").contains(&format!("Credential={S3_KEY_ID}/")) {
        return Answer::error(403, "InvalidAccessKeyId", "The key you provided does not exist in our records.");
    }
    if mood == S3Mood::Expired {
        let token = request.header("x-amz-security-token");
        let message = format!("The provided token has expired.</Message><Token-0>{token}</Token-0><Message>");
        return Answer::error(400, "ExpiredToken", &message);
    }
    let (bucket, key) = request.path[1..].split_once('/').unwrap_or((&request.path[1..], ""));
    if bucket != S3_BUCKET {
        return Answer::error(404, "NoSuchBucket", "The specified bucket does not exist");
    }
    match (request.method.as_str(), state.objects.get(key)) {
        ("GET", _) if key.is_empty() => list(request, state),
        ("PUT", Some(_)) if request.header("if-none-match") == "*" => {
            Answer::error(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        }
        ("PUT", _) => {
            let answer = Answer::object(200, &request.body).without_body();
            state.objects.insert(key.to_owned(), request.body.clone());
            answer
        }
        ("DELETE", _) => {
            state.objects.remove(key);
            Answer::empty(204)
        }
        ("GET" | "HEAD", None) => Answer::error(404, "NoSuchKey", "The specified key does not exist."),
        ("HEAD", Some(object)) => Answer::object(200, object),
        ("GET", Some(object)) => match request.range() {
            None => Answer::object(200, object),
            Some((from, _)) if from >= object.len() => {
                Answer::error(416, "InvalidRange", "The requested range is not satisfiable")
            }
            Some((from, last)) => Answer::part(object, from, last.min(object.len() - 1)),
        },
        _ => Answer::error(405, "MethodNotAllowed", "The method is not allowed against this resource."),
    }
}

/// Returns a page of the keys that start with a prefix. Keys with the delimiter after the prefix
/// become common prefixes.
fn list(request: &Request, state: &mut State) -> Answer {
    let (prefix, delimiter) = (request.query("prefix"), request.query("delimiter"));
    let (mut keys, mut folders) = (Vec::new(), BTreeSet::new());
    for (key, object) in state.objects.iter().filter(|(key, _)| key.starts_with(&prefix)) {
        match key[prefix.len()..].find(&delimiter).filter(|_| !delimiter.is_empty()) {
            Some(at) => drop(folders.insert(&key[..prefix.len() + at + 1])),
            None => keys.push((key, object.len())),
        }
    }
    let first: usize = request.query("continuation-token").parse().unwrap_or(0);
    let most = request.query("max-keys").parse().map_or(PAGE, |most: usize| most.min(PAGE));
    let more = keys.len() > first + most;
    let mut page = format!("<ListBucketResult><Prefix>{prefix}</Prefix><IsTruncated>{more}</IsTruncated>");
    if more {
        let _ = write!(page, "<NextContinuationToken>{}</NextContinuationToken>", first + most);
    }
    for (key, len) in keys.iter().skip(first).take(most) {
        state.told_keys += 1;
        let _ = write!(
            page,
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"{len}\"</ETag>\
             <Size>{len}</Size></Contents>"
        );
    }
    for folder in folders.iter().filter(|_| first == 0) {
        let _ = write!(page, "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
    }
    page.push_str("</ListBucketResult>");
    Answer::xml(200, &page)
}
