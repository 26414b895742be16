//! Meaning of an origin's final head: a response to store, one to pass on, or a stored one to use instead.

use super::Worker;
use super::job::Job;
use super::storing::Storing;
use crate::cache::entry::Entry;
use crate::cache::flow::{Arrived, Phase};
use crate::cache::key::Key;
use crate::message::response::Head;
use crate::message::{BodyLength, write};
use http::{HeaderValue, Method, StatusCode, header};
use nearmiss_cache_policy as policy;
use nearmiss_cache_policy::{Handled, HeadUpdate, RequestHead, ResponseHead, Seconds};
use slotmap::DefaultKey;
use std::sync::Arc;

/// How long a response that was not stored keeps requests from waiting for each other.
pub const PASS_SECONDS: u64 = 60;

/// Treatment of a response.
pub enum Judged {
    /// The response is the answer.
    Answer {
        /// With its head.
        phase: Phase,
        /// The response is stored, too.
        storing: Option<Storing>,
    },
    /// A stored response is the answer.
    Instead(Phase),
    /// The response refers to something that is not stored: the whole must be fetched from the origin.
    Refetch,
    /// The response does not answer the request.
    Unusable(&'static str),
}

impl Worker {
    pub(super) fn judge(&mut self, id: DefaultKey, head: Head, now: Seconds) -> Judged {
        let Some(job) = self.fetches.get(id).and_then(|fetch| fetch.job.as_deref()) else {
            return Judged::Unusable("the request is gone");
        };
        let validated = job.plan.key.is_some() && head.status == StatusCode::NOT_MODIFIED;
        match &job.plan.stored {
            Some(entry) if validated && !policy::conditional(&entry.fields).is_empty() => {
                return self.not_modified(job, entry, &head, now);
            }
            _ if validated => return Judged::Unusable("the origin's 304 answers no condition"),
            Some(_) if is_failure(head.status) => {
                if let Some(phase) = self.stale_instead(job) {
                    return Judged::Instead(phase);
                }
            }
            _ => {}
        }
        self.invalidate(job, &head);
        self.answer_of(job, head, now)
    }

    fn answer_of(&self, job: &Job, head: Head, now: Seconds) -> Judged {
        let storing = self.storing(job, &head, now);
        let name = &self.live.config.cache.name;
        let handled = Handled {
            forward: Some(job.plan.why),
            forward_status: Some(head.status),
            stored: storing.is_some(),
            ..Handled::default()
        };
        let Head { status, mut fields, length, .. } = head;
        if !fields.contains_key(header::DATE) {
            fields.insert(header::DATE, date(now));
        }
        if let Ok(via) = HeaderValue::from_str(&format!("1.1 {name}")) {
            fields.append(header::VIA, via);
        }
        fields.append("cache-status", policy::cache_status(name, &handled));
        let shared = storing.as_ref().map(|storing| storing.variant.clone());
        let phase = Phase::Arrived(Arc::new(Arrived { status, fields, length, shared }));
        Judged::Answer { phase, storing }
    }

    /// Returns the terms under which the response is stored, if it is. A body that ends with its connection is not
    /// stored: nothing shows whether it is whole.
    fn storing(&self, job: &Job, head: &Head, now: Seconds) -> Option<Storing> {
        let key = job.plan.key.as_ref()?;
        let request = as_get(job);
        let response = ResponseHead { status: head.status, headers: &head.fields };
        let long = head.length.is_some_and(|length| length > self.live.config.cache.object);
        let terms = policy::store(&self.live.policy, &request, &response, job.requested_at, now).ok();
        let terms = terms.filter(|_| !long && head.body != BodyLength::Close);
        let fields = policy::stored_fields(&self.live.policy, &head.fields, now);
        let variant = policy::vary_key(&fields, &request);
        let (Some(terms), Some(variant)) = (terms, variant) else {
            if !head.status.is_server_error() {
                self.shared.store.pass(key.clone(), now.0 + PASS_SECONDS);
            }
            return None;
        };
        Some(Storing { status: head.status, fields, terms, variant })
    }

    fn not_modified(&self, job: &Job, entry: &Arc<Entry>, head: &Head, now: Seconds) -> Judged {
        let Some(key) = &job.plan.key else { return Judged::Refetch };
        if !policy::selects(&head.fields, &entry.fields) {
            return Judged::Refetch;
        }
        let (request, options) = (as_get(job), &self.live.policy);
        let response = ResponseHead { status: head.status, headers: &head.fields };
        let terms = policy::refreshed(options, &entry.terms, &request, &entry.fields, &response, job.requested_at, now);
        let mut fields = entry.fields.clone();
        policy::merge_304(options, &mut fields, &head.fields, now);
        let variant = policy::vary_key(&fields, &request);
        let kept = terms.is_ok() && variant.is_some();
        let storing = Storing {
            status: entry.status,
            fields,
            terms: terms.unwrap_or(entry.terms),
            variant: variant.unwrap_or_else(|| entry.variant.clone()),
        };
        let fresh = storing.entry(entry.body.clone(), &self.live.hit_marks);
        if kept {
            self.shared.store.insert(key, Arc::clone(&fresh), job.since);
        } else {
            self.shared.store.forget(key);
        }
        Judged::Instead(Phase::Stored { entry: fresh, stale: false })
    }

    /// Forgets what a changing request made invalid, and what a HEAD shows to be outdated.
    fn invalidate(&self, job: &Job, head: &Head) {
        let request = job.request.head();
        let response = ResponseHead { status: head.status, headers: &head.fields };
        for target in policy::invalidates("http", &request, &response) {
            let key = Key::new(&job.request.authority, &target);
            if self.shared.store.forget(&key) {
                self.counters().invalidated.one();
            }
        }
        if job.request.method == Method::HEAD && job.plan.key.is_none() {
            self.compare_with_head(job, &response);
        }
    }

    fn compare_with_head(&self, job: &Job, response: &ResponseHead<'_>) {
        let key = job.request.key();
        let resource = self.shared.store.get(&key.parts());
        let entry = resource.as_ref().and_then(|resource| resource.select(&as_get(job)));
        let outdated = |entry: &Arc<Entry>| policy::head_update(&entry.fields, response) == HeadUpdate::Outdated;
        if entry.is_some_and(outdated) {
            self.shared.store.forget(&key);
        }
    }
}

/// Returns the request as sent to the origin: by GET.
fn as_get(job: &Job) -> RequestHead<'_> {
    RequestHead {
        method: if job.plan.key.is_some() { &Method::GET } else { &job.request.method },
        ..job.request.head()
    }
}

fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

fn date(now: Seconds) -> HeaderValue {
    HeaderValue::from_str(&write::date(now)).unwrap_or_else(|_| HeaderValue::from_static(""))
}
