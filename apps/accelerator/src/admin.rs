//! The operator's port: metrics, health, purge. A thread of its own serves one request at a time.

use crate::cache::key::Key;
use crate::config::Admin;
use crate::message::request::authority;
use crate::message::write;
use crate::metrics;
use crate::shared::Shared;
use http::StatusCode;
use nearmiss_cache_policy::Seconds;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// The longest that one request of the operator may take to arrive.
const PATIENCE: Duration = Duration::from_secs(2);

/// The operator's port cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("admin.listen {address}: {error}; choose another address, or end who has it")]
pub struct AdminError {
    address: SocketAddr,
    error: std::io::Error,
}

/// Starts the thread, if a port is configured.
pub fn start(shared: &Arc<Shared>) -> Result<(), AdminError> {
    let Some(admin) = shared.live().config.admin.clone() else { return Ok(()) };
    let address = admin.listen;
    serve_all(shared, admin).map_err(|error| AdminError { address, error })
}

fn serve_all(shared: &Arc<Shared>, admin: Admin) -> std::io::Result<()> {
    let listener = TcpListener::bind(admin.listen)?;
    // The output may have no reader.
    let _unread = writeln!(std::io::stdout(), "nearmiss-accelerator: admin on {}", listener.local_addr()?).is_err();
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
        for socket in listener.incoming().flatten() {
            // An operator's closed connection is no reason to stop.
            let _gone = serve(&shared, &admin, socket).is_err();
        }
    })?;
    Ok(())
}

fn serve(shared: &Shared, admin: &Admin, mut socket: TcpStream) -> std::io::Result<()> {
    let until = Instant::now() + PATIENCE;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut room = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < 16 << 10 {
        // The whole request has one time: a byte now and then must not keep the operator out.
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut room)? {
            0 => return Ok(()),
            _ if Instant::now() >= until => return Err(std::io::ErrorKind::TimedOut.into()),
            read => head.extend_from_slice(&room[..read]),
        }
    }
    let (status, text) = answer(shared, admin, &head);
    let mut out = Vec::new();
    write::status_line(&mut out, status);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    write::field(&mut out, "date", write::date(Seconds(since.as_secs())).as_bytes());
    if status == StatusCode::UNAUTHORIZED {
        write::field(&mut out, "www-authenticate", b"Bearer");
    }
    write::field(&mut out, "content-type", b"text/plain; version=0.0.4");
    write::number_field(&mut out, "content-length", text.len() as u64);
    write::field(&mut out, "connection", b"close");
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(text.as_bytes());
    socket.write_all(&out)
}

fn answer(shared: &Shared, admin: &Admin, head: &[u8]) -> (StatusCode, String) {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
        return (StatusCode::BAD_REQUEST, "the request is not readable\n".to_owned());
    }
    if !is_allowed(admin, request.headers) {
        return (StatusCode::UNAUTHORIZED, "show the token: Authorization: Bearer TOKEN\n".to_owned());
    }
    let (path, query) = request.path.unwrap_or("").split_once('?').unwrap_or((request.path.unwrap_or(""), ""));
    match (request.method.unwrap_or(""), path) {
        ("GET", "/metrics") => (StatusCode::OK, all_metrics(shared)),
        ("GET", "/health") => health(shared),
        ("POST", "/purge") => purge(shared, query),
        _ => (StatusCode::NOT_FOUND, "there are GET /metrics, GET /health and POST /purge\n".to_owned()),
    }
}

fn is_allowed(admin: &Admin, fields: &[httparse::Header<'_>]) -> bool {
    let Some(token) = &admin.token else { return true };
    let expected = format!("Bearer {token}");
    let shown = fields.iter().find(|field| field.name.eq_ignore_ascii_case("authorization"));
    // Every byte is compared, so that the time reveals nothing of the token.
    shown.is_some_and(|field| {
        let differs = field.value.iter().zip(expected.as_bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
        field.value.len() == expected.len() && differs == 0
    })
}

fn all_metrics(shared: &Shared) -> String {
    let mut out = metrics::text(&shared.counters);
    let (keys, bytes, most) = shared.store.filled();
    let open = shared.connections.load(Ordering::Relaxed) as u64;
    metrics::gauge(&mut out, "open_connections", "Clients' connections now.", open);
    metrics::gauge(&mut out, "store_keys", "Keys stored.", keys);
    metrics::gauge(&mut out, "store_bytes", "Bytes stored.", bytes);
    metrics::gauge(&mut out, "store_bytes_most", "Bytes that may be stored.", most);
    let live = shared.live();
    let well = live.origins.all().iter().filter(|server| server.is_well()).count() as u64;
    metrics::gauge(&mut out, "origins_well", "Origins that are well.", well);
    out
}

fn health(shared: &Shared) -> (StatusCode, String) {
    if shared.draining.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned());
    }
    let well = shared.live().origins.all().iter().any(|server| server.is_well());
    if well {
        (StatusCode::OK, "well\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "no origin is well\n".to_owned())
    }
}

/// `?host=AUTHORITY&path=TARGET` for one key, `?host=AUTHORITY&prefix=TARGET` for many, `?all` for everything.
fn purge(shared: &Shared, query: &str) -> (StatusCode, String) {
    let wrong = |why: &str| (StatusCode::BAD_REQUEST, format!("{why}\n"));
    if query == "all" {
        return purged(shared.store.forget_where(|_| true));
    }
    // A target is taken as it stands: it may have `&` and percent signs of its own.
    let Some((host, target)) = query.strip_prefix("host=").and_then(|rest| rest.split_once('&')) else {
        return wrong("give ?all, or host= and behind it path= or prefix=");
    };
    let Ok(host) = authority(host.as_bytes()) else {
        return wrong("host= is no name or address with a port; give what requests have as Host");
    };
    match (target.strip_prefix("path="), target.strip_prefix("prefix=")) {
        (Some(path), _) if path.starts_with('/') => purged(shared.store.forget(&Key::new(host, path)).into()),
        (_, Some(prefix)) if prefix.starts_with('/') => {
            let host = host.to_ascii_lowercase();
            purged(shared.store.forget_where(|key| key.authority == host && key.target.starts_with(prefix)))
        }
        _ => wrong("behind host= give path= or prefix= with what a target begins with: /"),
    }
}

fn purged(count: usize) -> (StatusCode, String) {
    (StatusCode::OK, format!("{count} purged\n"))
}
