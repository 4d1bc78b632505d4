//! The kinds of errors of engines, and errors as a mount sends them to its clients.

pub use senesce_cli::exit::{Failure, classify, degraded, failed, usage};
use senesce_experiment::ErrorKind;

/// The kind of an error of an engine, and what to do about it.
pub fn kind(cause: &(dyn std::error::Error + 'static)) -> Option<(ErrorKind, Option<&'static str>)> {
    let of_garden = cause.downcast_ref().map(garden_kind);
    let of_evergreen = || cause.downcast_ref().map(evergreen_kind);
    of_garden.or_else(of_evergreen).or_else(|| cause.downcast_ref().map(block_kind))
}

/// Devices of several gardens, or of a later senesce, are a usage error: they were named wrongly.
fn garden_kind(error: &senesce_garden::Error) -> (ErrorKind, Option<&'static str>) {
    use senesce_garden::Error as Garden;
    match error {
        Garden::WrongDevice { .. } => (
            ErrorKind::Usage,
            Some("name the drives and the log of one garden; one of each group with parity may be missing"),
        ),
        Garden::Damaged { damage, .. } if damage.field == "version" => {
            (ErrorKind::Usage, Some("another version of senesce made it: use that version"))
        }
        Garden::Damaged { damage, .. } if damage.field == senesce_garden::LOST_POINT => (
            ErrorKind::Failed,
            Some(
                "the changes after the checkpoint before are lost; `senesce fs mount --previous-checkpoint --read-only` shows the older state",
            ),
        ),
        Garden::Damaged { damage, .. } if damage.structure == "log" => (
            ErrorKind::Failed,
            Some(
                "operations that were only in the log are lost; `senesce fs mount --without-log` opens the rest and reports the losses",
            ),
        ),
        Garden::Damaged { .. } => (ErrorKind::Failed, Some("`senesce fs check` lists all damage")),
        Garden::NoSpace { .. } => {
            (ErrorKind::Environment, Some("delete files or snapshots: deletion works although the file system is full"))
        }
        Garden::Device(error) => block_kind(error),
        _ => (ErrorKind::Failed, None),
    }
}

/// A device that is not a whole evergreen is a usage error: it was named wrongly.
fn evergreen_kind(error: &senesce_evergreen::Error) -> (ErrorKind, Option<&'static str>) {
    use senesce_evergreen::Error as Evergreen;
    match error {
        Evergreen::WrongDevice { .. } => {
            (ErrorKind::Usage, Some("name the file or device on which `senesce fs mkfs evergreen` made it"))
        }
        Evergreen::Invalid { .. } => (ErrorKind::Usage, None),
        Evergreen::Damaged { .. } => (ErrorKind::Failed, Some("`senesce fs check` lists all damage")),
        Evergreen::NoSpace { .. } => {
            (ErrorKind::Environment, Some("delete files or snapshots: deletion works although the file system is full"))
        }
        Evergreen::Device(error) => block_kind(error),
        _ => (ErrorKind::Failed, None),
    }
}

fn block_kind(error: &senesce_block::BlockError) -> (ErrorKind, Option<&'static str>) {
    use senesce_block::BlockProblem;
    let source = match &error.problem {
        BlockProblem::System(source) => source,
        BlockProblem::TooManyChanges { .. } => {
            let hint = "the change is too large to be tried in memory; for a check, unmount the volume first";
            return (ErrorKind::Environment, Some(hint));
        }
        _ => return (ErrorKind::Failed, None),
    };
    match source.kind() {
        std::io::ErrorKind::PermissionDenied => (ErrorKind::Environment, Some("run as root, or as its owner")),
        std::io::ErrorKind::StorageFull => (ErrorKind::Environment, None),
        std::io::ErrorKind::ResourceBusy => (
            ErrorKind::Environment,
            Some("another program uses it (mount, rebuild, scrub or repair): unmount it, or wait for that program"),
        ),
        std::io::ErrorKind::NotFound => (ErrorKind::Usage, None),
        _ => (ErrorKind::Failed, None),
    }
}

/// An error of the machine, and what to do about it.
pub fn environment(message: String, hint: &str) -> anyhow::Error {
    Failure { kind: ErrorKind::Environment, message, hint: Some(hint.to_owned()) }.into()
}

/// An error as the process that serves a mount sends it to a client.
pub fn refusal_of(error: &anyhow::Error) -> senesce_service::Failure {
    use senesce_service::FailureKind;
    let (kind, hint) = classify(error);
    let kind = match kind {
        ErrorKind::Failed => FailureKind::Failed,
        ErrorKind::Usage => FailureKind::Usage,
        ErrorKind::Environment => FailureKind::Environment,
        ErrorKind::Internal => FailureKind::Internal,
    };
    senesce_service::Failure { kind, chain: error.chain().map(ToString::to_string).collect(), hint }
}

#[cfg(test)]
mod tests {
    use senesce_block::{BlockDevice, MemoryDevice, OverlayDevice};
    use senesce_core::Bytes;

    use super::*;

    #[test]
    fn full_copy_in_memory_has_a_hint() {
        let device = OverlayDevice::within(MemoryDevice::new("d", Bytes(1 << 20)), Bytes(0));
        let error = device.write_at(0, &[1; 8]).unwrap_err();
        assert!(error.to_string().contains("the changes exceed 0 B of memory"), "{error}");
        let (found, hint) = kind(&error).unwrap();
        assert!(found == ErrorKind::Environment && hint.unwrap().contains("too large"), "{hint:?}");
    }
}
