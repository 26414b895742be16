//! Progress of a call, for clients that gave a token.

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use std::time::Instant;

/// Reports the lines of a verb's standard error, and that it goes on.
pub struct Progress {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    begun: Instant,
    last: String,
}

impl Progress {
    /// The progress of a call.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Progress { peer: context.peer.clone(), token, begun: Instant::now(), last: String::new() }
    }

    /// Reports a line.
    pub async fn line(&mut self, line: &str) {
        self.last = line.to_owned();
        self.report().await;
    }

    /// Reports that the last line still holds.
    pub async fn report(&self) {
        let Some(token) = &self.token else { return };
        // Seconds grow with each report, as the protocol demands; how many there will be is unknown.
        let report = ProgressNotificationParam::new(token.clone(), self.begun.elapsed().as_secs_f64())
            .with_message(self.last.clone());
        // A client that is gone is noticed where its input ends.
        let _lost = self.peer.notify_progress(report).await.is_err();
    }
}
