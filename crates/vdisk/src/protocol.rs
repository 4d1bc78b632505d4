//! What server and parent say to each other: one JSON object a line, over the server's standard input and output.
//!
//! The first line in is the charge (what to be), the first line out is `ready` or `ended`. After that every question
//! has an `id`, and one answer with the same. The end of the input means that the parent is gone.
//!
//! ```text
//! > {"version":2,"serve":{"name":"a","mount_point":"/m","size_bytes":1073741824, ... }}
//! < {"event":"ready","version":2,"process":{"pid":7,"start_ticks":99,"boot":"1a2b…"},"connection":52,"notes":[...]}
//! > {"id":1,"do":"mark","name":"grep"}
//! < {"event":"answer","id":1,"time":{"virtual_ns":12000000, ... }}
//! > {"id":2,"do":"quit"}
//! < {"event":"answer","id":2,"time":{ ... }}
//! < {"event":"ended"}
//! ```

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Phase, Totals, host::ProcessRef};

/// What a server is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Command {
    /// The virtual time.
    Time,
    /// A new phase.
    Mark { name: String },
    /// A cold device: nothing in its own memory.
    Cool,
    /// A request log from here on.
    LogStart { path: PathBuf },
    /// The end of the request log.
    LogStop,
    /// Unmount and end; refused while the disk is in use.
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

/// What a server, or a guard, says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// It is at work.
    Ready {
        version: u32,
        process: ProcessRef,
        connection: u32,
        /// What was done so that the machine cannot hang on it.
        notes: Vec<String>,
    },
    /// A command was carried out; this is the time after it.
    Answer { id: u64, time: Box<TimeReport> },
    /// A command was not carried out.
    Refused { id: u64, problem: String },
    /// Its last word.
    Ended {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
}

/// Virtual time, and where it went. Of a model: to be called so wherever it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeReport {
    /// Name of the device model.
    pub device: String,
    /// Virtual time: the completion of the last request, nanoseconds since the server began.
    pub virtual_ns: u64,
    /// Everything since the server began.
    pub totals: Totals,
    /// The same by what the device did: the model's own account (seek, rotation, transfer, flash and so on).
    pub by_device: senesce_device::Totals,
    /// The phase since the last mark; in the answer to a mark, the phase that it ended.
    pub phase: Phase,
    /// Requests that failed because the backing file did: they took no virtual time, and a figure with any is void.
    pub failed_requests: u64,
    /// Requests that did not begin and end at sectors: whoever issued them was no block device, and they were counted
    /// as all the sectors that they touched.
    pub unaligned_requests: u64,
    /// Bytes that the backing file takes.
    pub allocated_bytes: u64,
    /// The request log, if one is written.
    pub log: Option<PathBuf>,
    /// Why the request log ended before its time.
    pub log_problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_documented() {
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
