//! Parts that have ended, a file of JSON each, so that a second run continues from them. Figures
//! come from code, so they are of one executable: another build is another garden, whatever its
//! version says.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_timed::published::{Part, Record};
use senesce_trials::Scale;
use serde::{Deserialize, Serialize};

use crate::exit::usage;

const SCHEMA: &str = "senesce-reproduction-part/4";

/// A directory of them.
pub struct Kept {
    dir: PathBuf,
    scale: Scale,
    build: String,
}

#[derive(Deserialize)]
struct Named {
    schema: String,
}

/// What came out of a part, and how it was run, on which no figure depends.
#[derive(Clone, Debug)]
pub struct RunPart {
    /// What came out.
    pub record: Record,
    /// How it was run.
    pub ran: Ran,
}

/// How a part was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// The part that was run.
    pub part: String,
    /// The time of its end.
    pub ended: String,
    /// CPU time of the part, seconds.
    pub processor_seconds: f64,
    /// Wall time of the part, seconds.
    pub wall_seconds: f64,
    /// The number of parts that ran concurrently.
    pub jobs: usize,
    /// The machine.
    pub host: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    senesce_version: String,
    /// BLAKE3 of the executable.
    senesce_build: String,
    record: Record,
    ran: Ran,
}

impl Kept {
    /// The parts in a directory, which may not exist.
    pub fn of(dir: &Path, scale: Scale, build: &str) -> Self {
        Self { dir: dir.to_owned(), scale, build: build.to_owned() }
    }

    /// Whether a directory has parts or the table of an earlier command.
    pub fn is_marked(dir: &Path) -> bool {
        let has_schema = |path: &Path| {
            let named = fs::read_to_string(path).ok().and_then(|text| serde_json::from_str::<Named>(&text).ok());
            named.is_some_and(|named| named.schema.starts_with("senesce-reproduction"))
        };
        let mut entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().extension().is_some_and(|kind| kind == "json") && has_schema(&entry.path()))
    }

    /// Creates the directory if it does not exist.
    pub fn create_dir(&self) -> Result<()> {
        fs::create_dir_all(&self.dir).with_context(|| format!("cannot create {}", self.dir.display()))
    }

    /// A part that has ended, if it has. Errors: what is there is of another scale or build, or
    /// another part.
    pub fn read(&self, part: Part) -> Result<Option<RunPart>> {
        let path = self.path(&part.experiment(), part.kind());
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let refuse = |what: String| {
            let hint = "name another directory with --out, or empty this one";
            usage(format!("{} {what}", path.display()), Some(hint))
        };
        let Named { schema } = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("is not a result of garden reproduce: {error}")))?;
        if schema != SCHEMA {
            return Err(refuse(format!("has the format {schema}; this version reads and writes {SCHEMA}")));
        }
        let file: File = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("is not a result of garden reproduce: {error}")))?;
        if file.senesce_build != self.build {
            let (version, ours) = (file.senesce_version, env!("CARGO_PKG_VERSION"));
            return Err(refuse(format!(
                "is from another build of senesce ({version}; this one is {ours}), whose figures may differ"
            )));
        }
        if file.record.scale != self.scale {
            let (there, wanted) = (tell_scale(file.record.scale), tell_scale(self.scale));
            return Err(refuse(format!("is from {there}, and {wanted} was requested")));
        }
        let wanted = (part.experiment(), part.kind());
        let there = (&file.record.experiment[..], &file.record.kind[..]);
        if there != (&wanted.0[..], wanted.1) {
            return Err(refuse(format!(
                "is {} of {}, and its name says {} of {}",
                there.1, there.0, wanted.1, wanted.0
            )));
        }
        Ok(Some(RunPart { record: file.record, ran: file.ran }))
    }

    /// Keeps one: whole or not at all.
    pub fn write(&self, part: &RunPart) -> Result<()> {
        let path = self.path(&part.record.experiment, &part.record.kind);
        let file = File {
            schema: SCHEMA.to_owned(),
            senesce_version: env!("CARGO_PKG_VERSION").to_owned(),
            senesce_build: self.build.clone(),
            record: part.record.clone(),
            ran: part.ran.clone(),
        };
        let new = path.with_extension("json.new");
        let put = |text: String| fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        put(serde_json::to_string_pretty(&file)?).with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self, experiment: &str, kind: &str) -> PathBuf {
        self.dir.join(format!("{experiment}-{kind}.json"))
    }
}

/// BLAKE3 of this executable.
pub fn hash_executable() -> Result<String> {
    let path = std::env::current_exe().context("cannot find the executable")?;
    let mut hasher = blake3::Hasher::new();
    let mut file = fs::File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    std::io::copy(&mut file, &mut hasher).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// A scale in a few letters.
pub fn tell_scale(scale: Scale) -> String {
    let Scale { areas, areas_per_point, turnover_percent } = scale;
    let cut = if turnover_percent == 100 { String::new() } else { format!(", {turnover_percent} % of the turnovers") };
    format!("scale {areas}/{areas_per_point}{cut}")
}
