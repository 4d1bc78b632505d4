//! The head of the page of an inspection: the grade as one sentence, a key figure for each device,
//! and the verdict by sentences.

use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::format::{figure, seconds};

/// Devices with a key figure, at most.
const MOST: usize = 3;
/// A key figure from this slowdown on is in bold.
const SLOWER: f64 = 1.05;

/// The grade as a sentence; empty if the inspection has no judgement.
pub(crate) fn lead(inspection: &Json) -> String {
    let own = own_devices(inspection);
    let judged: Vec<&Json> = judgements(inspection).filter(|judgement| is_own(judgement, &own)).collect();
    let times = |judgement: &Json| judgement["slowdown"].as_f64().map_or("–".to_owned(), |times| digits(times) + "×");
    match judged[..] {
        [] => String::new(),
        [one] => {
            let (grade, device) = (grade(one), short(one));
            format!("{grade}: a cold read of all files takes {} as long as from a fresh copy ({device}).", times(one))
        }
        [first, ..] => {
            let rest = judged[1..]
                .iter()
                .map(|other| format!("{} on {} ({})", times(other), short(other), grade(other).to_lowercase()));
            format!(
                "A cold read of all files takes {} as long as from a fresh copy on {} ({}), {}.",
                times(first),
                short(first),
                grade(first).to_lowercase(),
                rest.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// A key figure for each device, those of the verdict first.
pub(crate) fn key_figures(inspection: &Json) -> Vec<Value> {
    let own = own_devices(inspection);
    let mut all: Vec<&Json> = judgements(inspection).collect();
    all.sort_by_key(|judgement| !is_own(judgement, &own));
    let one = |judgement: &&Json| {
        let slowdown = judgement["slowdown"].as_f64()?;
        let lost = judgement["lost_seconds"].as_f64().filter(|lost| *lost > 0.0);
        let lost = lost.map_or("loses nothing".to_owned(), |lost| format!("loses {}", seconds(lost)));
        Some(context! {
            factor => format!("{}×", digits(slowdown)),
            device => short(judgement),
            grade => format!("{}, {lost}", grade(judgement).to_lowercase()),
            is_slower => slowdown >= SLOWER,
        })
    };
    all.iter().take(MOST).filter_map(one).collect()
}

/// The sentences of the verdict. A sentence ends with a full stop and a capital letter after it.
pub(crate) fn sentences(verdict: &str) -> Vec<String> {
    let verdict = verdict.replace("model: ", "").replace('`', "");
    let mut sentences: Vec<String> = Vec::new();
    for part in verdict.split_inclusive(". ") {
        let starts = part.starts_with(|first: char| first.is_uppercase() || first.is_ascii_digit());
        match sentences.last_mut().filter(|_| !starts) {
            Some(last) => last.push_str(part),
            None => sentences.push(part.to_owned()),
        }
    }
    sentences.iter().map(|sentence| sentence.trim().to_owned()).filter(|sentence| !sentence.is_empty()).collect()
}

fn own_devices(inspection: &Json) -> Vec<&str> {
    inspection["device"]["judged_as"].as_array().into_iter().flatten().filter_map(Json::as_str).collect()
}

fn judgements(inspection: &Json) -> impl Iterator<Item = &Json> {
    inspection["judgements"].as_array().into_iter().flatten()
}

fn is_own(judgement: &Json, own: &[&str]) -> bool {
    judgement["device"].as_str().is_some_and(|device| own.contains(&device))
}

fn short(judgement: &Json) -> &str {
    judgement["device"].as_str().unwrap_or("–").trim_start_matches("model: ")
}

/// The grade with blanks and a capital letter.
fn grade(judgement: &Json) -> String {
    let grade = match judgement["grade"].as_str().unwrap_or("not judged") {
        "negligible" => "negligibly aged".to_owned(),
        grade => grade.replace('-', " "),
    };
    let mut letters = grade.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Two digits are enough for a headline.
fn digits(times: f64) -> String {
    match times {
        times if times >= 99.5 => figure(times.round()),
        times if times >= 9.95 => format!("{times:.0}"),
        times if times >= 0.995 => format!("{times:.1}"),
        times => format!("{times:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inspection(own: &[&str]) -> Json {
        let judgement = |device: &str, grade: &str, slowdown: f64| json!({ "device": device, "grade": grade, "slowdown": slowdown, "lost_seconds": slowdown - 1.0 });
        json!({
            "device": { "judged_as": own },
            "judgements": [judgement("model: HDD", "badly-aged", 8.54), judgement("model: NVMe", "young", 1.02)],
        })
    }

    #[test]
    fn grade_leads_for_one_and_several_devices() {
        let one = lead(&inspection(&["model: NVMe"]));
        assert_eq!(one, "Young: a cold read of all files takes 1.0× as long as from a fresh copy (NVMe).");
        let two = lead(&inspection(&["model: HDD", "model: NVMe"]));
        assert_eq!(
            two,
            "A cold read of all files takes 8.5× as long as from a fresh copy on HDD (badly aged), 1.0× on NVMe \
             (young)."
        );
        assert_eq!(lead(&json!({})), "");
    }

    #[test]
    fn device_of_the_verdict_has_the_first_key_figure() {
        let figures = key_figures(&inspection(&["model: NVMe"]));
        let of = |at: usize, key: &str| figures[at].get_attr(key).unwrap().to_string();
        assert_eq!(
            (of(0, "factor"), of(0, "device"), of(0, "is_slower")),
            ("1.0×".into(), "NVMe".into(), "False".into())
        );
        assert_eq!(of(1, "grade"), "badly aged, loses 7.54 s");
    }

    #[test]
    fn verdict_is_split_at_sentences_only() {
        let verdict = "Aged: 9.2 s (model: HDD 7.2K). Name it with `--device`. 49% of the loss is e.g. within files.";
        let expected = ["Aged: 9.2 s (HDD 7.2K).", "Name it with --device.", "49% of the loss is e.g. within files."];
        assert_eq!(sentences(verdict), expected);
    }
}
