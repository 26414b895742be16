//! The head of a request to an origin.

use super::Worker;
use super::job::Job;
use super::request::LESS;
use crate::message::hops::CDN_LOOP;
use crate::message::{BodyLength, write};
use http::{HeaderMap, HeaderName, Method, header};
use nearmiss_cache_policy::conditional;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl Worker {
    /// Returns the head as it is sent: end-to-end fields, the earlier hops, and the conditions of a validation.
    pub(super) fn request_head(&self, job: &Job) -> Vec<u8> {
        let request = &job.request;
        let mut out = Vec::with_capacity(512);
        // A response to store is requested whole.
        let method = if job.plan.key.is_some() { &Method::GET } else { &request.method };
        out.extend_from_slice(method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(request.target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        let host = match request.authority.as_str() {
            "" => self.live.config.origins[0].address.to_string(),
            authority => authority.to_owned(),
        };
        write::field(&mut out, "host", host.as_bytes());
        self.copy_fields(&mut out, job);
        let via = format!("1.{} {}", request.minor, self.live.config.cache.name);
        write::field(&mut out, "via", joined(&request.fields, &header::VIA, &via).as_bytes());
        let name = &self.live.config.cache.name;
        write::field(&mut out, CDN_LOOP.as_str(), joined(&request.fields, &CDN_LOOP, name).as_bytes());
        let peer = request.peer.to_string();
        write::field(&mut out, "x-forwarded-for", joined(&request.fields, &FORWARDED_FOR, &peer).as_bytes());
        match request.body {
            BodyLength::Fixed(0) if job.plan.key.is_some() => {}
            BodyLength::Fixed(length) => write::number_field(&mut out, "content-length", length),
            BodyLength::Chunked => write::field(&mut out, "transfer-encoding", b"chunked"),
            BodyLength::None | BodyLength::Close => {}
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    fn copy_fields(&self, out: &mut Vec<u8>, job: &Job) {
        let whole = job.plan.key.is_some();
        let written = [header::HOST, header::VIA, CDN_LOOP, FORWARDED_FOR];
        for (name, value) in &job.request.fields {
            if written.contains(name) || (whole && LESS.contains(name)) {
                continue;
            }
            match hops_left(&job.request.method, name, value.as_bytes()) {
                Some(hops) => write::number_field(out, name.as_str(), hops),
                None => write::field(out, name.as_str(), value.as_bytes()),
            }
        }
        for (name, value) in job.plan.stored.iter().flat_map(|entry| conditional(&entry.fields)) {
            write::field(out, name.as_str(), value.as_bytes());
        }
    }
}

/// Max-Forwards of OPTIONS, one less (RFC 9110 section 7.6.2).
fn hops_left(method: &Method, name: &HeaderName, value: &[u8]) -> Option<u64> {
    if *method != Method::OPTIONS || name != header::MAX_FORWARDS {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse::<u64>().ok()?.checked_sub(1)
}

/// A list field's values with one more behind them.
fn joined(fields: &HeaderMap, name: &HeaderName, more: &str) -> String {
    let values = fields.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.chain([more]).collect::<Vec<_>>().join(", ")
}
