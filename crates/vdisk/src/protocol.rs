//! The protocol of server and parent: one JSON object a line, over the server's standard input and
//! output.
//!
//! The first input line is the charge (the role). The first output line is `ready` or `ended`.
//! After that every question has an `id`, and one answer with the same `id`. The end of the input
//! means that the parent is gone.
//!
//! ```text
//! > {"version":2,"serve":{"name":"a","mount_point":"/m","size_bytes":1073741824, ... }}
//! < {"event":"ready","version":2,"process":{"pid":7,...,"boot":"1a2b…"},"connection":52,...}
//! > {"id":1,"do":"mark","name":"grep"}
//! < {"event":"answer","id":1,"time":{"virtual_ns":12000000, ... }}
//! > {"id":2,"do":"quit"}
//! < {"event":"answer","id":2,"time":{ ... }}
//! < {"event":"ended"}
//! ```

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Phase, Totals, host::ProcessRef};

/// A command to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Command {
    /// Report the virtual time.
    Time,
    /// Start a new phase.
    Mark { name: String },
    /// Make the device cold: drop the contents of its own memory.
    Cool,
    /// Start a request log.
    LogStart { path: PathBuf },
    /// End the request log.
    LogStop,
    /// Unmount and exit; refused while the disk is in use.
    Quit,
}

impl Command {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Time => "time",
            Command::Mark { .. } => "mark",
            Command::Cool => "cool",
            Command::LogStart { .. } => "log_start",
            Command::LogStop => "log_stop",
            Command::Quit => "quit",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub id: u64,
    #[serde(flatten)]
    pub command: Command,
}

/// A message of a server or a guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// It has started.
    Ready {
        version: u32,
        process: ProcessRef,
        connection: u32,
        /// The results of the steps against hangs.
        notes: Vec<String>,
    },
    /// A command succeeded; `time` is the report after it.
    Answer { id: u64, time: Box<TimeReport> },
    /// A command failed.
    Refused { id: u64, problem: String },
    /// Its last message.
    Ended {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
}

/// Virtual time by cause. It is modelled time, and must be labelled so wherever it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeReport {
    /// Name of the device model.
    pub device: String,
    /// Virtual time: the completion of the last request, nanoseconds since the server started.
    pub virtual_ns: u64,
    /// The sums since the server started.
    pub totals: Totals,
    /// The same by the activity of the device: the model's own accounting (seek, rotation,
    /// transfer, flash and so on).
    pub by_device: senesce_device::Totals,
    /// The phase since the last mark. In the answer to a mark, the phase that it ended.
    pub phase: Phase,
    /// Requests that failed because the backing file failed. They needed no virtual time; with any
    /// of them, a figure is void.
    pub failed_requests: u64,
    /// Requests that did not start and end at sectors, so their sender was no block device. They
    /// count with every sector that they touched.
    pub unaligned_requests: u64,
    /// Allocated bytes of the backing file.
    pub allocated_bytes: u64,
    /// The request log, if one is written.
    pub log: Option<PathBuf>,
    /// The reason why the request log ended early.
    pub log_problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_match_the_documentation() {
        let question = Question { id: 1, command: Command::Mark { name: "grep".to_owned() } };
        assert_eq!(serde_json::to_string(&question).unwrap(), r#"{"id":1,"do":"mark","name":"grep"}"#);
        let question: Question = serde_json::from_str(r#"{"id":2,"do":"quit"}"#).unwrap();
        assert_eq!(question, Question { id: 2, command: Command::Quit });
        assert_eq!(serde_json::to_string(&Event::Ended { problem: None }).unwrap(), r#"{"event":"ended"}"#);
        let ready = Event::Ready {
            version: 2,
            process: ProcessRef { pid: 7, start_ticks: 99, boot: "0b1b2f3a-99aa-4c0d-8e0f-1a2b3c4d5e6f".parse().ok() },
            connection: 52,
            notes: vec!["io flusher".to_owned()],
        };
        assert_eq!(
            serde_json::to_string(&ready).unwrap(),
            concat!(
                r#"{"event":"ready","version":2,"process":{"pid":7,"start_ticks":99,"#,
                r#""boot":"0b1b2f3a-99aa-4c0d-8e0f-1a2b3c4d5e6f"},"connection":52,"notes":["io flusher"]}"#
            )
        );
    }
}
