//! Responses that a changing request makes invalid (RFC 9111 s4.4).

use crate::{RequestHead, ResponseHead};
use fluent_uri::component::Scheme;
use fluent_uri::{Uri, UriRef};
use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderName, Method};

/// Returns the targets (path and query) with stored responses that a non-error answer to a request with an unsafe or
/// unknown method makes invalid: the request's own, and those that Location and Content-Location name on the same
/// origin. `scheme` is the one under which clients reach the site.
#[must_use]
pub fn invalidates(scheme: &str, request: &RequestHead<'_>, response: &ResponseHead<'_>) -> Vec<String> {
    let safe = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(request.method);
    if safe || !(response.status.is_success() || response.status.is_redirection()) {
        return Vec::new();
    }
    let mut targets = vec![request.target.to_owned()];
    for field in [LOCATION, CONTENT_LOCATION] {
        targets.extend(named(scheme, request, response, &field).filter(|target| !targets.contains(target)));
    }
    targets
}

/// The target that a field names, where its origin is the request's.
fn named(scheme: &str, request: &RequestHead<'_>, response: &ResponseHead<'_>, field: &HeaderName) -> Option<String> {
    let base = Uri::parse(format!("{scheme}://{}{}", request.authority, request.target)).ok()?;
    let reference = UriRef::parse(response.headers.get(field)?.to_str().ok()?).ok()?;
    let uri = reference.resolve_against(&base).ok()?;
    if origin(&uri)? != origin(&base)? {
        return None;
    }
    let path = if uri.path().is_empty() { "/" } else { uri.path().as_str() };
    Some(uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")))
}

/// Scheme, host and port (RFC 9110 s4.3.1).
fn origin(uri: &Uri<String>) -> Option<(&'static str, String, u16)> {
    const HTTP: &Scheme = Scheme::new_or_panic("http");
    const HTTPS: &Scheme = Scheme::new_or_panic("https");
    let (scheme, default) = match uri.scheme() {
        scheme if scheme == HTTP => ("http", 80),
        scheme if scheme == HTTPS => ("https", 443),
        _ => return None,
    };
    let authority = uri.authority()?;
    let port = authority.port().map_or("", |port| port.as_str());
    let port = if port.is_empty() { default } else { port.parse().ok()? };
    Some((scheme, authority.host().to_ascii_lowercase(), port))
}
