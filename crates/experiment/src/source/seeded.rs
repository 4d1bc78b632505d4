//! Workloads that need only a seed and parameters.

use std::sync::Arc;

use senesce_oplog::ContentSource;
use senesce_workload::{
    Workload, WorkloadError,
    fsfb::{Fsfb, FsfbOptions, PrintableContents},
    mail::{Mail, MailOptions},
    micro::{Interfile, InterfileOptions, Intrafile, IntrafileOptions, Renames, RenamesOptions},
    overwrite::{Overwrite, OverwriteOptions},
    profile::{AgingProfile, ProfileAging, ProfileOptions},
};
use serde_json::{Value, json};

use super::WorkloadAhead;
use crate::{
    Error,
    plan::{IoPlan, Plan, WorkloadKind},
};

/// A workload with its parameters, checked.
pub struct MadeSource {
    kind: WorkloadKind,
    made: Made,
    /// The parameters of the plan, with the defaults.
    parameters: Value,
}

enum Made {
    Fsfb(FsfbOptions),
    Profile(Box<AgingProfile>, ProfileOptions),
    Mail(MailOptions),
    Intrafile(IntrafileOptions),
    Interfile(InterfileOptions),
    Renames(RenamesOptions),
    Overwrite(OverwriteOptions),
}

impl MadeSource {
    /// Makes the workload of the plan. `None` if its steps come from a history or a log.
    ///
    /// Errors: a parameter out of its range.
    pub(crate) fn open(plan: &Plan) -> Result<Option<Self>, Error> {
        let workload = &plan.workload;
        let (made, parameters) = match workload.kind {
            WorkloadKind::History | WorkloadKind::Replay => return Ok(None),
            WorkloadKind::Fsfb => {
                let table = workload.fsfb.clone().unwrap_or_default();
                (Made::Fsfb(table.options(plan.seed)), json!(table))
            }
            WorkloadKind::Profile => {
                let table = workload.profile.clone().unwrap_or_default();
                let profile = table.read()?;
                let mut parameters = json!(table);
                // The name of a file does not identify the profile in it.
                let text = profile.render().unwrap_or_default();
                parameters["profile_blake3"] = blake3::hash(text.as_bytes()).to_hex().to_string().into();
                (Made::Profile(Box::new(profile), table.options(plan.seed)), parameters)
            }
            WorkloadKind::Mail => {
                let table = workload.mail.clone().unwrap_or_default();
                (Made::Mail(table.options(plan.seed)), json!(table))
            }
            WorkloadKind::Intrafile => {
                let table = workload.intrafile.clone().unwrap_or_default();
                (Made::Intrafile(table.options(plan.seed)), json!(table))
            }
            WorkloadKind::Interfile => {
                let table = workload.interfile.clone().unwrap_or_default();
                (Made::Interfile(table.options(plan.seed)), json!(table))
            }
            WorkloadKind::Renames => {
                let table = workload.renames.clone().unwrap_or_default();
                (Made::Renames(table.options(plan.seed)), json!(table))
            }
            WorkloadKind::Overwrite => {
                let table = workload.overwrite.clone().unwrap_or_default();
                (Made::Overwrite(table.options(plan.seed)), json!(table))
            }
        };
        let source = Self { kind: workload.kind, made, parameters };
        source.workload()?;
        Ok(Some(source))
    }

    /// The number of counted steps.
    pub(super) fn rounds(&self) -> u64 {
        match &self.made {
            Made::Fsfb(options) => options.rounds,
            Made::Profile(..) => ProfileAging::counted_steps(),
            Made::Mail(options) => options.cycles,
            Made::Intrafile(options) => options.rounds,
            Made::Interfile(options) => options.copies(),
            Made::Renames(options) => options.rounds,
            Made::Overwrite(options) => options.rounds,
        }
    }

    fn workload(&self) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(match &self.made {
            Made::Fsfb(options) => Box::new(Fsfb::new(*options)?),
            Made::Profile(profile, options) => Box::new(ProfileAging::new((**profile).clone(), options.clone())?),
            Made::Mail(options) => Box::new(Mail::new(*options)?),
            Made::Intrafile(options) => Box::new(Intrafile::new(*options)?),
            Made::Interfile(options) => Box::new(Interfile::new(*options)?),
            Made::Renames(options) => Box::new(Renames::new(*options)?),
            Made::Overwrite(options) => Box::new(Overwrite::new(*options)?),
        })
    }

    /// Returns the workload at its start and the source of its contents.
    pub(super) fn start(&self) -> Result<WorkloadAhead, Error> {
        Ok((self.workload()?, self.contents()))
    }

    pub(super) fn contents(&self) -> Arc<dyn ContentSource> {
        Arc::new(PrintableContents)
    }

    /// Bytes that the files of the first state occupy. 0 if they are a share of the volume.
    pub(crate) fn first_state_bytes(&self) -> u64 {
        match &self.made {
            Made::Fsfb(_) | Made::Profile(..) => 0,
            Made::Mail(options) => options.first_state_bytes(),
            Made::Intrafile(options) => options.first_state_bytes(),
            Made::Interfile(options) => options.first_state_bytes(),
            Made::Renames(options) => options.first_state_bytes(),
            Made::Overwrite(options) => options.first_state_bytes(),
        }
    }

    /// Whether reads and overwrites bypass the page cache.
    pub(super) fn is_direct(&self) -> bool {
        matches!(self.made, Made::Overwrite(_)) && self.parameters["io"] == json!(IoPlan::Direct)
    }

    /// The workload in the log's header.
    pub(super) fn log_description(&self, plan: &Plan) -> Value {
        json!({
            "kind": self.kind,
            "parameters": self.parameters,
            "sync_every_operations": plan.workload.sync_every_operations,
            "source": { "kind": "seed" },
        })
    }

    pub(super) fn circumstances(&self) -> Vec<(String, String)> {
        let parameters = self.parameters.as_object().into_iter().flatten();
        parameters.map(|(key, value)| (format!("workload.{}.{key}", self.kind.as_str()), value.to_string())).collect()
    }
}
