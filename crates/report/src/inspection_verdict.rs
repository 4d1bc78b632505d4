//! The head of the page of an inspection: the grade as one sentence, a key figure for each device,
//! and the verdict by sentences.

use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::devices::short;
use crate::format::{escape, figure, list, seconds};
use crate::inspection_screen::DEFRAG_REFUSAL;

/// The file systems whose files `senesce defrag` moves.
const MOVABLE: [&str; 3] = ["ext4", "xfs", "btrfs"];
/// Devices with a key figure, at most.
const MOST: usize = 3;
/// A key figure from this slowdown on is in bold.
const SLOWER: f64 = 1.05;

/// The grade as a sentence; empty if the inspection has no judgement.
pub(crate) fn lead(inspection: &Json) -> String {
    let own = own_devices(inspection);
    let judged: Vec<&Json> = judgements(inspection).filter(|judgement| is_own(judgement, &own)).collect();
    let times = |judgement: &Json| judgement["slowdown"].as_f64().map_or("–".to_owned(), |times| figure(times) + "×");
    match judged[..] {
        [] => String::new(),
        [one] => {
            let (grade, device) = (grade(one), device_of(one));
            let time = time_of(inspection, one);
            format!(
                "{grade}: a modelled cold read of all files takes {time}{} as long as from a fresh copy ({device}).",
                times(one)
            )
        }
        [first, ..] if judged.iter().all(|other| look(other) == look(first)) => {
            let (grade, times, devices) = (grade(first), times(first), names(&judged));
            format!(
                "{grade}: a modelled cold read of all files takes {times} as long as from a fresh copy ({devices})."
            )
        }
        [first, ..] => {
            let rest = judged[1..]
                .iter()
                .map(|other| format!("{} on {} ({})", times(other), device_of(other), grade(other).to_lowercase()));
            format!(
                "A modelled cold read of all files takes {} as long as from a fresh copy on {} ({}), {}.",
                times(first),
                device_of(first),
                grade(first).to_lowercase(),
                rest.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// `28.4 s, `: the modelled time on the judged device; empty if it is not known.
fn time_of(inspection: &Json, judgement: &Json) -> String {
    let mut costs = inspection["costs"].as_array().into_iter().flatten();
    let cost = costs.find(|cost| cost["device"] == judgement["device"]);
    let time = cost.and_then(|cost| cost["seconds"]["as_it_lies"].as_f64());
    time.map_or(String::new(), |time| format!("{}, ", seconds(time)))
}

/// A key figure for each device, those of the verdict first. Devices with equal ratio and grade
/// that follow each other share one.
pub(crate) fn key_figures(inspection: &Json) -> Vec<Value> {
    let own = own_devices(inspection);
    let mut all: Vec<&Json> = judgements(inspection).collect();
    all.sort_by_key(|judgement| !is_own(judgement, &own));
    // Devices that read it equally have one figure.
    let one = |alike: &[&Json]| {
        let slowdown = alike[0]["slowdown"].as_f64()?;
        let lost = |judgement: &&Json| judgement["lost_seconds"].as_f64().filter(|lost| *lost > 0.0).map(seconds);
        let mut lost: Vec<String> = alike.iter().filter_map(lost).collect();
        lost.dedup();
        let lost = if lost.is_empty() { "nothing".to_owned() } else { list(&lost) };
        Some(context! {
            factor => format!("{}×", figure(slowdown)),
            device => format!("{}, modelled", names(alike)),
            grade => format!("{}, loses {lost}", grade(alike[0]).to_lowercase()),
            is_slower => slowdown >= SLOWER,
        })
    };
    all.truncate(MOST);
    all.chunk_by(|a, b| look(a) == look(b)).filter_map(one).collect()
}

/// The sentences of the verdict below the lead, as HTML. The lead has the grade, the ratio and the
/// models, and the section of costs has the seconds. So the sentence with the
/// seconds keeps only the device.
pub(crate) fn details(inspection: &Json) -> Vec<String> {
    let all = sentences(inspection["verdict"].as_str().unwrap_or("–"));
    if lead(inspection).is_empty() {
        return all.into_iter().chain(refusal(inspection)).map(|sentence| with_code(&sentence)).collect();
    }
    let detail = |sentence: String| match sentence.contains(" cold would take ") {
        true => [device_sentence(inspection), small_loss(&sentence)].into_iter().flatten().collect(),
        false => vec![sentence],
    };
    let sentences = all.into_iter().flat_map(detail);
    let sentences = order_hint(inspection).into_iter().chain(refusal(inspection)).chain(sentences);
    sentences.map(|sentence| with_code(&sentence)).collect()
}

/// Why `senesce defrag` refuses the file system; `None` if it does not.
fn refusal(inspection: &Json) -> Option<String> {
    let problem = inspection[DEFRAG_REFUSAL].as_str()?;
    Some(format!("`senesce defrag` cannot move files here: {problem}."))
}

/// The text as HTML: parts between backticks are code.
fn with_code(text: &str) -> String {
    let mut html = String::new();
    let parts: Vec<&str> = text.split('`').collect();
    for (at, part) in parts.iter().enumerate() {
        let part = escape(part);
        match (at % 2, at + 1 < parts.len()) {
            (1, true) => html.push_str(&format!("<code>{part}</code>")),
            // A backtick without a second one is text.
            (1, false) => html.push_str(&format!("`{part}")),
            _ => html.push_str(&part),
        }
    }
    html
}

/// A hint if the best order takes at most half of the time. For an aged file system that is
/// mounted, the advice of `defrag` is printed instead.
pub(crate) fn order_hint(inspection: &Json) -> Option<String> {
    /// The least gain in seconds, and as a factor.
    const LEAST: (f64, f64) = (1.0, 2.0);
    let cost = &inspection["costs"][0];
    let judged = judgements(inspection).find(|judgement| judgement["device"] == cost["device"])?;
    let (now, best) = (cost["seconds"]["as_it_lies"].as_f64()?, cost["seconds"]["best_order"].as_f64()?);
    if now - best < LEAST.0 || now < LEAST.1 * best {
        return None;
    }
    let is_young = judged["grade"] == "young";
    // A small loss needs no cure.
    let is_aged = ["somewhat-aged", "aged", "badly-aged"].iter().any(|grade| judged["grade"] == *grade);
    let target = &inspection["target"];
    let is_mounted = target["mount_point"].is_string();
    let is_movable = inspection[DEFRAG_REFUSAL].is_null()
        && target["file_system"].as_str().is_some_and(|kind| MOVABLE.iter().any(|known| kind.starts_with(known)));
    let is_worth = inspection["defrag"]["worth"] != "no";
    let saved = (1.0 - best / now) * 100.0;
    let (best, now, device) = (seconds(best), seconds(now), device_of(cost));
    match (is_young, is_aged && !is_mounted && is_movable && is_worth) {
        (true, _) => {
            let order = format!(
                "Young, but its order is slow to read: the best order takes {best} instead of {now} on {device} \
                 (−{saved:.0}%)."
            );
            let step =
                if is_mounted && is_movable && is_worth { " `senesce defrag` moves files towards it." } else { "" };
            Some(order + step)
        }
        (_, true) => Some(format!(
            "To cure it, mount it and run `senesce defrag MOUNTPOINT`. Then a cold read takes at best {best} instead of \
             {now} on {device}."
        )),
        _ => None,
    }
}

/// Why the best order is slower than a fresh copy, on the first device where it is. The best order
/// is no lower limit: it moves contents only, and a fresh copy is at the start of the device.
pub(crate) fn slow_best_order(inspection: &Json) -> Option<String> {
    /// Smaller differences do not show.
    const LEAST: f64 = 1.005;
    /// Seeks between metadata and contents count for both parts. So metadata has about half of the
    /// difference or more if it is the cause, and almost none if it is not.
    const CAUSE: f64 = 0.25;
    let of = |times: &Json| Some((times["best_order"].as_f64()?, times["fresh_copy"].as_f64()?));
    let is_slow = |cost: &&Json| of(&cost["seconds"]).is_some_and(|(best, fresh)| best > fresh * LEAST);
    let cost = inspection["costs"].as_array()?.iter().find(is_slow)?;
    let (best, fresh) = of(&cost["seconds"])?;
    let start = format!(
        "On {} the best order ({}) is slower than a fresh copy ({})",
        device_of(cost),
        seconds(best),
        seconds(fresh)
    );
    let (metadata, fresh_metadata) = of(&cost["metadata_seconds"]).unwrap_or_default();
    let more = metadata - fresh_metadata;
    Some(match more >= (best - fresh) * CAUSE {
        true => format!(
            "{start}, because metadata does not move: reads of metadata take {} in the best order, {} in a fresh copy.",
            seconds(metadata),
            seconds(fresh_metadata)
        ),
        false => format!(
            "{start}: the best order starts where the first file is now, a fresh copy at the start of the device."
        ),
    })
}

/// `The device is NVMe SSD nvme0n1.`; `None` if the user named its model.
fn device_sentence(inspection: &Json) -> Option<String> {
    let device = inspection["device"]["description"].as_str()?;
    let models: Vec<&str> = own_devices(inspection).iter().map(|model| short(model)).collect();
    Some(match models.len() {
        0 | 1 => format!("The device is {device}."),
        _ => format!("The kind of the device ({device}) is unknown, so it is judged as {}.", models.join(" and ")),
    })
}

/// Why a negligible loss needs no cure, which the verdict says after a semicolon.
fn small_loss(sentence: &str) -> Option<String> {
    let (_, small) = sentence.rsplit_once("; a loss below ")?;
    Some(format!("A loss below {small}"))
}

/// The sentences of the verdict. A sentence ends with a full stop and a capital letter after it.
fn sentences(verdict: &str) -> Vec<String> {
    let verdict = verdict.replace("model: ", "");
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

/// The shown ratio and grade. Devices with equal ones share a text.
fn look(judgement: &Json) -> (Option<String>, String) {
    (judgement["slowdown"].as_f64().map(figure), grade(judgement))
}

/// `HDD 7.2K and NVMe SSD`.
fn names(judgements: &[&Json]) -> String {
    list(&judgements.iter().map(|judgement| device_of(judgement).to_owned()).collect::<Vec<_>>())
}

/// The name of the judged device.
fn device_of(judgement: &Json) -> &str {
    short(judgement["device"].as_str().unwrap_or("–"))
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
        assert_eq!(one, "Young: a modelled cold read of all files takes 1.02× as long as from a fresh copy (NVMe).");
        let mut timed = inspection(&["model: HDD"]);
        timed["costs"] = json!([{ "device": "model: HDD", "seconds": { "as_it_lies": 28.4 } }]);
        let expected =
            "Badly aged: a modelled cold read of all files takes 28.4 s, 8.54× as long as from a fresh copy (HDD).";
        assert_eq!(lead(&timed), expected);
        let two = lead(&inspection(&["model: HDD", "model: NVMe"]));
        assert_eq!(
            two,
            "A modelled cold read of all files takes 8.54× as long as from a fresh copy on HDD (badly aged), 1.02× on NVMe \
             (young)."
        );
        let mut alike = inspection(&["model: HDD", "model: NVMe"]);
        alike["judgements"][0] = json!({ "device": "model: HDD", "grade": "young", "slowdown": 1.024 });
        let expected =
            "Young: a modelled cold read of all files takes 1.02× as long as from a fresh copy (HDD and NVMe).";
        assert_eq!(lead(&alike), expected);
        assert_eq!(lead(&json!({})), "");
    }

    #[test]
    fn device_of_the_verdict_has_the_first_key_figure() {
        let figures = key_figures(&inspection(&["model: NVMe"]));
        let of = |at: usize, key: &str| figures[at].get_attr(key).unwrap().to_string();
        assert_eq!(
            (of(0, "factor"), of(0, "device"), of(0, "is_slower")),
            ("1.02×".into(), "NVMe, modelled".into(), "False".into())
        );
        assert_eq!(of(1, "grade"), "badly aged, loses 7.54 s");
    }

    #[test]
    fn devices_with_equal_figures_share_one() {
        let mut equal = inspection(&["model: HDD"]);
        let sata = json!({ "device": "model: SATA", "grade": "young", "slowdown": 1.024, "lost_seconds": 0.25 });
        equal["judgements"].as_array_mut().unwrap().push(sata);
        let figures = key_figures(&equal);
        assert_eq!(figures.len(), 2);
        assert_eq!(figures[1].get_attr("device").unwrap().to_string(), "NVMe and SATA, modelled");
        assert_eq!(figures[1].get_attr("grade").unwrap().to_string(), "young, loses 20.0 ms and 250 ms");
        equal["judgements"][2]["slowdown"] = json!(1.04);
        assert_eq!(key_figures(&equal).len(), 3, "1.02× and 1.04×");
    }

    #[test]
    fn verdict_does_not_repeat_the_lead() {
        let mut judged = inspection(&["model: HDD", "model: NVMe"]);
        judged["device"]["description"] = json!("virtio disk vda");
        judged["verdict"] = json!(
            "Partial: x. Unknown device (virtio disk vda), judged as model: HDD and model: NVMe: reading all 9 files cold \
             would take 85 s (model: HDD); a loss below 1 s is not worth a cure. Name its model with `--device`."
        );
        let expected = [
            "Partial: x.",
            "The kind of the device (virtio disk vda) is unknown, so it is judged as HDD and NVMe.",
            "A loss below 1 s is not worth a cure.",
            "Name its model with <code>--device</code>.",
        ];
        assert_eq!(details(&judged), expected);
        judged[DEFRAG_REFUSAL] = json!("<no> journal");
        assert_eq!(details(&judged)[0], "<code>senesce defrag</code> cannot move files here: &lt;no&gt; journal.");
        judged[DEFRAG_REFUSAL] = Json::Null;
        judged["judgements"] = json!([]);
        assert_eq!(details(&judged).len(), 3, "without a lead, the verdict is complete");
    }

    #[test]
    fn young_tree_far_from_best_order_has_a_hint() {
        let of = |best: f64, target: Json, refusal: Json, defrag: Json| {
            let mut young = inspection(&["model: NVMe"]);
            let seconds = json!({ "as_it_lies": 307.0, "best_order": best, "fresh_copy": 300.0 });
            young["costs"] = json!([{ "device": "model: NVMe", "seconds": seconds }]);
            young["target"] = target;
            young[DEFRAG_REFUSAL] = refusal;
            young["defrag"] = defrag;
            order_hint(&young)
        };
        let mounted = || json!({ "mount_point": "/srv", "file_system": "xfs" });
        let with = |best: f64, refusal: Json| of(best, mounted(), refusal, Json::Null);
        let order =
            "Young, but its order is slow to read: the best order takes 34.0 s instead of 307 s on NVMe (−89%).";
        let with_step = Some(format!("{order} `senesce defrag` moves files towards it."));
        assert_eq!(with(34.0, Json::Null), with_step);
        assert_eq!([with(300.0, Json::Null), with(154.0, Json::Null)], [None, None], "half of the time or more");
        assert_eq!(with(34.0, json!("it is read only")).as_deref(), Some(order));
        // An image, an unmounted device or the directory of a garden.
        let unmounted = || json!({ "mount_point": null, "file_system": "xfs" });
        assert_eq!(of(34.0, unmounted(), Json::Null, Json::Null).as_deref(), Some(order));
        let worth = |worth: &str| of(34.0, mounted(), Json::Null, json!({ "worth": worth }));
        assert_eq!(worth("no").as_deref(), Some(order));
        assert_eq!([worth("yes"), worth("undecided")], [with_step.clone(), with_step]);
        assert_eq!(order_hint(&inspection(&["model: HDD"])), None);
    }

    #[test]
    fn best_order_slower_than_a_fresh_copy_has_a_reason() {
        let of = |best: f64, metadata: Json| {
            let seconds = json!({ "as_it_lies": 3.18, "best_order": best, "fresh_copy": 0.762 });
            let cost = json!({ "device": "model: HDD", "seconds": seconds, "metadata_seconds": metadata });
            slow_best_order(&json!({ "costs": [cost] }))
        };
        let metadata = |best: f64| json!({ "best_order": best, "fresh_copy": 0.119 });
        let start = "On HDD the best order (1.18 s) is slower than a fresh copy (762 ms)";
        let expected = format!(
            "{start}, because metadata does not move: reads of metadata take 527 ms in the best order, 119 ms in a \
             fresh copy."
        );
        assert_eq!(of(1.18, metadata(0.527)), Some(expected));
        let expected = format!(
            "{start}: the best order starts where the first file is now, a fresh copy at the start of the device."
        );
        // Metadata explains little of the difference, or is not known.
        assert_eq!([of(1.18, metadata(0.2)), of(1.18, Json::Null)], [Some(expected.clone()), Some(expected)]);
        assert_eq!([of(0.7, metadata(0.527)), of(0.763, metadata(0.12))], [None, None]);
        assert_eq!(slow_best_order(&json!({})), None);
    }

    #[test]
    fn aged_image_has_the_next_step() {
        let of = |kind: &str, best: f64| {
            let mut aged = inspection(&["model: HDD"]);
            let seconds = json!({ "as_it_lies": 28.4, "best_order": best, "fresh_copy": 5.96 });
            aged["costs"] = json!([{ "device": "model: HDD", "seconds": seconds }]);
            aged["target"] = json!({ "mount_point": null, "file_system": kind });
            order_hint(&aged)
        };
        let expected = "To cure it, mount it and run `senesce defrag MOUNTPOINT`. Then a cold read takes at best 4.08 s \
                        instead of 28.4 s on HDD.";
        assert_eq!(of("xfs", 4.08).as_deref(), Some(expected));
        assert_eq!([of("f2fs", 4.08), of("xfs", 28.0)], [None, None]);
    }

    #[test]
    fn parts_between_backticks_are_code() {
        assert_eq!(with_code("run `a <b>` & c"), "run <code>a &lt;b&gt;</code> &amp; c");
        assert_eq!(with_code("one ` only"), "one ` only");
    }

    #[test]
    fn verdict_is_split_at_sentences_only() {
        let verdict = "Aged: 9.2 s (model: HDD 7.2K). Name it with `--device`. 49% of the loss is e.g. within files.";
        let expected = ["Aged: 9.2 s (HDD 7.2K).", "Name it with `--device`.", "49% of the loss is e.g. within files."];
        assert_eq!(sentences(verdict), expected);
    }
}
