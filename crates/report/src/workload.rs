//! The workload of a run in words: for the methods paragraph, and for the x axis.

use crate::format::{bytes, count};
use crate::model::Model;

/// A circumstance of the whole run as a text; `None` if the run did not record it.
pub(crate) fn fact(model: &Model, key: &str) -> Option<String> {
    let text = model.circumstance(key)?.trim_matches('"').to_owned();
    (!text.is_empty()).then_some(text)
}

/// The workload: its kind, and its parameters by name.
struct Workload<'m> {
    model: &'m Model<'m>,
    kind: String,
}

impl<'m> Workload<'m> {
    fn of(model: &'m Model<'m>) -> Option<Self> {
        Some(Self { model, kind: fact(model, "workload.kind")? })
    }

    /// A parameter of this workload.
    fn text(&self, name: &str) -> Option<String> {
        fact(self.model, &format!("workload.{}.{name}", self.kind))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn count(&self, name: &str) -> Option<String> {
        self.number(name).map(count)
    }

    fn size(&self, name: &str) -> Option<String> {
        self.number(name).map(|number| bytes(number as f64))
    }
}

/// The title of the x axis: the unit of checkpoints, and the content of one of them where the unit
/// alone does not say it.
pub(crate) fn x_title(model: &Model) -> String {
    let detail = || {
        let workload = Workload::of(model)?;
        match workload.kind.as_str() {
            "interfile" => Some(format!("copies, each {}% more out of order", workload.count("step_percent")?)),
            "intrafile" => Some(format!("rounds, each appends {}", workload.size("append")?)),
            "mail" => Some(format!("cycles of {} operations", workload.count("operations")?)),
            "fsfb" => Some(format!("rounds, each replaces {}%", workload.count("replace_percent")?)),
            "overwrite" => Some(format!("rounds of {} requests", workload.count("operations")?)),
            "renames" => Some(format!("rounds, each renames {}%", workload.count("percent")?)),
            "profile" => Some(format!("{}, each 1% of the life", model.unit)),
            "history" if model.unit == "pulls" => Some("git pulls".to_owned()),
            "replay" => Some(format!("{} of the replayed log", model.unit)),
            _ => None,
        }
    };
    detail().unwrap_or_else(|| model.unit.clone())
}

/// The workload as a sentence; `None` if the run did not record it.
pub(crate) fn sentence(model: &Model) -> Option<String> {
    let workload = Workload::of(model)?;
    let origin = || fact(model, "history.origin").map_or(String::new(), |origin| format!(" ({origin})"));
    let known = match workload.kind.as_str() {
        "history" if model.unit == "commits" => {
            Some(format!("The workload replayed the commits of a history of file sizes{}", origin()))
        }
        "history" => Some(git(model, &origin())),
        "fsfb" => fsfb(&workload),
        "mail" => mail(&workload),
        "intrafile" => intrafile(&workload),
        "interfile" => interfile(&workload),
        "renames" => renames(&workload),
        "overwrite" => overwrite(&workload),
        "profile" => profile(&workload),
        "replay" => workload.text("log").map(|log| format!("The workload replayed the operation log {log}")),
        _ => None,
    };
    Some(known.unwrap_or_else(|| format!("The workload was {}", workload.kind)))
}

fn git(model: &Model, origin: &str) -> String {
    match fact(model, "workload.edition").as_deref() {
        Some("full-disk-paper") => {
            let fill = fact(model, "workload.fill_percent").map_or(String::new(), |fill| format!(" to {fill}%"));
            format!(
                "The workload was git: copies of a repository{origin} filled the nearly full volume{fill}, and then pulled \
                 its later commits in turn"
            )
        }
        Some("full-disk-code") => format!(
            "The workload was git: copies of a repository{origin} pulled its later commits in turn, and the last copy was \
             deleted when space ran out"
        ),
        _ => format!("The workload was git: one repository{origin} pulled its later commits, one pull after the other"),
    }
}

fn fsfb(workload: &Workload) -> Option<String> {
    Some(format!(
        "The workload was FSFB: a random tree of {} directories filled the volume to {}%, and each round deleted files with \
         {}% of its bytes and wrote new ones",
        workload.count("directories")?,
        workload.count("fill_percent")?,
        workload.count("replace_percent")?
    ))
}

fn mail(workload: &Workload) -> Option<String> {
    Some(format!(
        "The workload was a mail server: {} mailboxes of {} messages at first, and cycles of {} deliveries and deletions",
        workload.count("mailboxes")?,
        workload.count("messages")?,
        workload.count("operations")?
    ))
}

fn intrafile(workload: &Workload) -> Option<String> {
    Some(format!(
        "The workload was {} files that grew in turn, by {} in each round",
        workload.count("files")?,
        workload.size("append")?
    ))
}

fn interfile(workload: &Workload) -> Option<String> {
    Some(format!(
        "The workload copied {} files of {} to a new volume, each time with {}% more of them out of order",
        workload.count("files")?,
        workload.size("file_size")?,
        workload.count("step_percent")?
    ))
}

fn renames(workload: &Workload) -> Option<String> {
    Some(format!(
        "The workload exchanged the names of {}% of {} directories in each round",
        workload.count("percent")?,
        workload.count("directories")?
    ))
}

fn overwrite(workload: &Workload) -> Option<String> {
    Some(format!(
        "The workload overwrote large files ({}), in rounds of {} requests",
        workload.text("pattern")?,
        workload.count("operations")?
    ))
}

fn profile(workload: &Workload) -> Option<String> {
    let fullness = workload.text("fullness_percent").map_or(String::new(), |full| format!(", {full}% full"));
    Some(format!(
        "The workload created and deleted files until their sizes, depths and ages matched the profile {}{fullness}",
        workload.text("profile")?
    ))
}

#[cfg(test)]
mod tests {
    use senesce_store::{CircumstanceRow, Results};

    use super::*;

    #[test]
    fn axes_and_sentences_name_the_steps_of_a_workload() {
        let words = |facts: &[(&str, &str)]| {
            let row = |(key, value): &(&str, &str)| CircumstanceRow {
                arm: String::new(),
                key: (*key).into(),
                value: (*value).into(),
            };
            let results = Results { circumstances: facts.iter().map(row).collect(), ..Results::default() };
            let model = Model::compute(&results);
            (x_title(&model), sentence(&model))
        };
        let kind = |kind: &'static str| ("workload.kind", kind);
        let unit = |unit: &'static str| ("workload.step_unit", unit);
        let (title, text) = words(&[
            kind("\"interfile\""),
            unit("copies"),
            ("workload.interfile.files", "20000"),
            ("workload.interfile.file_size", "4096"),
            ("workload.interfile.step_percent", "10"),
        ]);
        assert_eq!(title, "copies, each 10% more out of order");
        let said =
            "The workload copied 20,000 files of 4 KiB to a new volume, each time with 10% more of them out of order";
        assert_eq!(text.unwrap(), said);
        let (title, text) = words(&[kind("\"history\""), ("workload.edition", "\"single\"")]);
        assert_eq!(title, "git pulls");
        assert_eq!(
            text.unwrap(),
            "The workload was git: one repository pulled its later commits, one pull after the other"
        );
        assert_eq!(words(&[kind("\"mail\""), unit("cycles")]).0, "cycles", "a parameter that is not known");
        assert_eq!(words(&[]), ("pulls".to_owned(), None));
    }
}
