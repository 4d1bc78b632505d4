//! RO-Crate metadata: the description of a bundle for archives of research data.
//!
//! The file follows RO-Crate 1.1 (<https://w3id.org/ro/crate/1.1>). Its term `sha256` is from
//! schema.org, and is added to the context, because the context of 1.1 does not have it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{FileEntry, MANIFEST_FILE, Manifest, TableEntry};

/// The name of the metadata file, which RO-Crate defines.
pub const RESEARCH_FILE: &str = "ro-crate-metadata.json";
const SPECIFICATION: &str = "https://w3id.org/ro/crate/1.1";
const SOFTWARE: &str = "#senesce";
const ACTION: &str = "#run";
const LICENCE: &str = "#licence";

/// The licence of the results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Licence {
    /// The authors state none.
    NotStated,
    /// An identifier of SPDX, such as `CC-BY-4.0`.
    Spdx(String),
}

/// The description of a run for archives.
#[derive(Clone, Debug)]
pub struct Research {
    /// The name of the run's plan.
    pub plan_name: String,
    /// The purpose of the plan. May be empty.
    pub description: String,
    /// The start of the run, seconds since 1970. `None` if it was not recorded.
    pub begun_unix_seconds: Option<u64>,
    /// The version and commit of the program that ran the plan: `0.1.0 (commit 1a2b)`.
    pub senesce_version: String,
    /// The files that the run read, besides the plan: paths in the bundle.
    pub inputs: Vec<String>,
    /// The files that the run wrote: paths in the bundle.
    pub outputs: Vec<String>,
    /// The licence of the results.
    pub licence: Licence,
}

impl Research {
    /// The metadata file of a bundle with these files.
    pub(crate) fn render(&self, files: &[FileEntry], tables: &[TableEntry]) -> Vec<u8> {
        let refer = |id: &str| json!({ "@id": id });
        let all = files.iter().map(|file| file.path.as_str()).chain([MANIFEST_FILE]);
        let mut root = json!({
            "@id": "./",
            "@type": "Dataset",
            "name": format!("Results of the plan {}", self.plan_name),
            "description": match self.description.trim() {
                "" => format!("A run of the plan {} by senesce: results, figures and circumstances.", self.plan_name),
                text => text.to_owned(),
            },
            "license": refer(self.licence_id().as_str()),
            "hasPart": all.map(refer).collect::<Vec<_>>(),
            "mentions": refer(ACTION),
        });
        let (version, commit) = split_version(&self.senesce_version);
        let mut software = json!({
            "@id": SOFTWARE,
            "@type": "SoftwareApplication",
            "name": "senesce",
            "description": "The laboratory for file system aging.",
            "version": version,
            "softwareVersion": self.senesce_version,
        });
        if commit.is_some() {
            software["identifier"] = json!({ "@id": "#commit" });
        }
        let read = ["plan.toml"].into_iter().chain(self.inputs.iter().map(String::as_str));
        let mut action = json!({
            "@id": ACTION,
            "@type": "CreateAction",
            "name": format!("Run of the plan {}", self.plan_name),
            "instrument": refer(SOFTWARE),
            "object": read.map(refer).collect::<Vec<_>>(),
            "result": self.outputs.iter().map(|path| refer(path)).collect::<Vec<_>>(),
        });
        if let Some(seconds) = self.begun_unix_seconds {
            let (date, time) = format_utc(seconds);
            root["datePublished"] = date.clone().into();
            action["startTime"] = format!("{date}T{time}Z").into();
        }
        let mut graph = vec![
            json!({
                "@id": RESEARCH_FILE,
                "@type": "CreativeWork",
                "conformsTo": refer(SPECIFICATION),
                "about": refer("./"),
            }),
            root,
            software,
            action,
            self.licence_entity(),
        ];
        if let Some(commit) = commit {
            graph.push(json!({
                "@id": "#commit",
                "@type": "PropertyValue",
                "propertyID": "https://git-scm.com/docs/gitglossary#def_commit",
                "name": "commit",
                "value": commit,
            }));
        }
        graph.extend(files.iter().map(|file| entity(file, tables)));
        graph.push(json!({
            "@id": MANIFEST_FILE,
            "@type": "File",
            "name": MANIFEST_FILE,
            "description": "Sizes and checksums of all other files; `senesce verify-bundle` checks them.",
            "encodingFormat": "application/json",
        }));
        let context = json!([format!("{SPECIFICATION}/context"), { "sha256": "https://schema.org/sha256" }]);
        let document = json!({ "@context": context, "@graph": graph });
        format!("{document:#}\n").into_bytes()
    }

    fn licence_id(&self) -> String {
        match &self.licence {
            Licence::NotStated => LICENCE.to_owned(),
            Licence::Spdx(id) => format!("https://spdx.org/licenses/{id}"),
        }
    }

    fn licence_entity(&self) -> Value {
        let (name, description) = match &self.licence {
            Licence::NotStated => ("not stated", "The authors of this run state no licence. Ask them."),
            Licence::Spdx(id) => (id.as_str(), "The licence of the results and figures."),
        };
        json!({ "@id": self.licence_id(), "@type": "CreativeWork", "name": name, "description": description })
    }
}

fn entity(file: &FileEntry, tables: &[TableEntry]) -> Value {
    let mut entity = json!({
        "@id": file.path,
        "@type": "File",
        "name": file.path.rsplit('/').next().unwrap_or(&file.path),
        "encodingFormat": media_type(&file.path),
        "contentSize": file.bytes.to_string(),
        "sha256": file.sha256,
    });
    let is_table = |table: &&TableEntry| file.path == format!("results/{}.parquet", table.name);
    if let Some(table) = tables.iter().find(is_table) {
        entity["description"] = format!("Table {}, {} rows.", table.name, table.rows).into();
    }
    entity
}

/// The media type of a file, by the end of its name.
fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "cff" => "application/yaml",
        "csv" => "text/csv",
        "html" => "text/html",
        "json" => "application/json",
        "parquet" => "application/vnd.apache.parquet",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "tex" => "text/x-tex",
        "toml" => "application/toml",
        "txt" => "text/plain",
        _ => "application/octet-stream",
    }
}

/// The version and the commit in `0.1.0 (commit 1a2b)`.
fn split_version(text: &str) -> (&str, Option<&str>) {
    match text.split_once(" (commit ") {
        Some((version, commit)) => (version, commit.strip_suffix(')').filter(|commit| *commit != "unknown")),
        None => (text, None),
    }
}

/// Date and time in UTC, as of ISO 8601.
fn format_utc(unix_seconds: u64) -> (String, String) {
    const DAY: u64 = 86_400;
    // Years start in March here, so that a leap day is the last day of a year. The calendar repeats
    // after 400 years.
    let days = unix_seconds / DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let second = unix_seconds % DAY;
    (
        format!("{:04}-{month:02}-{day:02}", era * 400 + year + next),
        format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60),
    )
}

/// Compares the metadata with the manifest: every file has an entity with its size and checksum.
///
/// Errors: the fault.
pub(crate) fn check_research(text: &[u8], manifest: &Manifest) -> Result<(), String> {
    let document: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let graph = document["@graph"].as_array().ok_or("it has no @graph")?;
    let mut entities = BTreeMap::new();
    for entity in graph.iter().filter(|entity| entity["@type"] == "File") {
        let id = entity["@id"].as_str().ok_or("a file has no @id")?;
        if entities.insert(id, entity).is_some() {
            return Err(format!("{id} appears twice"));
        }
    }
    for file in manifest.files.iter().filter(|file| file.path != RESEARCH_FILE) {
        let entity = entities.remove(file.path.as_str()).ok_or_else(|| format!("it does not list {}", file.path))?;
        if entity["sha256"] != file.sha256.as_str() || entity["contentSize"] != file.bytes.to_string().as_str() {
            return Err(format!("it has another size or checksum of {} than {MANIFEST_FILE}", file.path));
        }
    }
    entities.remove(MANIFEST_FILE);
    match entities.keys().next() {
        Some(id) => Err(format!("it lists {id}, which is not in the bundle")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date, time) in [
            (0, "1970-01-01", "00:00:00"),
            (951_782_400, "2000-02-29", "00:00:00"),
            (951_868_799, "2000-02-29", "23:59:59"),
            (951_868_800, "2000-03-01", "00:00:00"),
            (1_704_067_199, "2023-12-31", "23:59:59"),
            (1_795_996_830, "2026-11-30", "00:00:30"),
            (4_107_542_400, "2100-03-01", "00:00:00"),
        ] {
            assert_eq!(format_utc(seconds), (date.to_owned(), time.to_owned()), "{seconds}");
        }
    }

    #[test]
    fn versions_are_split_into_number_and_commit() {
        assert_eq!(split_version("0.1.0 (commit 1a2b)"), ("0.1.0", Some("1a2b")));
        assert_eq!(split_version("0.1.0 (commit unknown)"), ("0.1.0", None));
        assert_eq!(split_version("9"), ("9", None));
    }
}
