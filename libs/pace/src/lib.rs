//! A least interval between a server's waits for events, so that one call brings what gathered meanwhile.
//!
//! A server that calls `poll` or `epoll_wait` as soon as it can gets one event a call: calls rise with the load, and each
//! of them looks at every descriptor, or blocks and is woken. "Interval-controlled polling" (2004) sleeps between the
//! calls. This crate is that sleep for those who write a server, with the rules without which the sleep does harm;
//! `nearmiss apply pace` is the same for programs as they are.
//!
//! ```
//! use nearmiss_pace::{Aim, Pacer, Wait};
//! use std::time::Duration;
//!
//! let mut pacer = Pacer::new(Aim::Interval(Duration::from_millis(1)));
//! # let (mut rounds, mut served) = (0, 0);
//! # let wait = |_: Option<Duration>| 3;
//! while served < 12 {
//!     // Sleeps if that pays. The rest of the timeout is for the call.
//!     let wait_for = pacer.before_wait(Wait { timeout: None, most_events: 1024, left_over: false });
//!     let events = wait(wait_for);
//!     pacer.after_wait(events);
//!     served += events;
//!     # rounds += 1;
//! }
//! # assert_eq!(rounds, 4);
//! ```

mod pacer;
pub mod rules;
mod trial;

pub use pacer::{Pacer, Sleeps, Wait};
pub use rules::Aim;
pub use trial::LEAST_GAIN;
