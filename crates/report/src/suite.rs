//! The page of a suite of personalities: dots of rates, rankings fresh and aged, how aged the
//! volumes are.
//!
//! The input is `results.json` of a suite (`senesce-suite-results/1`), so that this crate does not
//! import the measuring code. This module computes only the positions of dots.

mod drawing;
mod free_space;

use std::collections::BTreeMap;

use minijinja::{Value, context};
use senesce_core::{names::with_more, statistics::SURE_BELOW};
use serde_json::Value as Json;

use crate::{
    Error,
    arm_colour::arm_classes,
    csv::{Csv, exact},
    format::{count, figure, number, page_json, percent, score},
    html::style,
    page::render_page,
};

/// Options of the page.
#[derive(Clone, Debug, Default)]
pub struct SuiteOptions {
    /// Time of making, as text; `None` shows nothing.
    pub made_at: Option<String>,
}

/// Renders the results of a suite as one HTML page, which loads nothing.
///
/// In: JSON of schema `senesce-suite-results/1`. Out: the page; the same for the same input. Values
/// that are missing in the input are shown as dashes.
pub fn render_suite(results: &Json, options: &SuiteOptions) -> Result<String, Error> {
    let page = Page::read(results);
    let mut data = results.clone();
    if let Some(data) = data.as_object_mut() {
        data.remove("runs");
    }
    let context = context! {
        name => text(&results["plan"]["name"]),
        description => text(&results["plan"]["description"]),
        runs => results["plan"]["runs"].as_u64().map_or("–".to_owned(), count),
        made_at => options.made_at.as_deref(),
        version => text(&results["senesce_version"]),
        schema => text(&results["schema"]),
        unit => capitalised(&text(&results["unit"])),
        base => page.file_systems.first().cloned().unwrap_or_default(),
        verdicts => page.verdicts(),
        key_figures => page.key_figures(),
        warnings => page.warnings(),
        arms => page.file_systems.iter().map(|name| context! { name => name.as_str(), class => class(&page.classes, name) }).collect::<Vec<_>>(),
        figures => page.personalities.iter().map(|name| page.figure(name)).collect::<Vec<_>>(),
        rankings => page.rankings(),
        states => page.states(),
        free_space => free_space::table(results, &page.classes),
        facts => page.facts(),
        style => style() + include_str!("../assets/suite.css"),
        script => include_str!("../assets/report.js"),
        data => page_json(&data.to_string()),
    };
    render_page("suite.html", include_str!("../assets/suite.html"), context)
}

/// The sentences with which the page of a suite begins; the first is its headline. In: as for
/// [`render_suite`].
pub fn suite_headline(results: &Json) -> Vec<String> {
    Page::read(results).verdicts()
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

/// The class with the colour of a file system as text. In: the classes of [`arm_classes`].
fn class(classes: &BTreeMap<String, String>, file_system: &str) -> String {
    classes.get(file_system).map_or(String::new(), |class| class.replace("arm-", "fs-"))
}

/// Values of a key in the order of their first use.
fn names(entries: &Json, key: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in list(entries).map(|entry| text(&entry[key])) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// `1 case`, `4 cases`.
fn cases(all: usize) -> String {
    format!("{all} case{}", if all == 1 { "" } else { "s" })
}

/// `71%`.
fn share(ratio: f64) -> String {
    match ratio.is_finite() {
        true => format!("{}%", number((ratio * 100.0).round())),
        false => "–".to_owned(),
    }
}

struct Page<'a> {
    results: &'a Json,
    personalities: Vec<String>,
    file_systems: Vec<String>,
    states: Vec<String>,
    /// Classes with the colours of arms, by file system.
    classes: BTreeMap<String, String>,
}

/// A dot: a ratio with its interval.
struct Bar {
    ratio: f64,
    low: f64,
    high: f64,
}

/// The rate of an aged volume over that of its own fresh volume.
struct Own {
    ratio: f64,
    /// Whether both have enough runs to be compared. With fewer, the interval says nothing.
    is_compared: bool,
    /// Whether they differ beyond chance: by the test and by the interval.
    differs: bool,
}

impl Own {
    /// `None`: one of them has no rate.
    fn of(entry: &Json) -> Option<Self> {
        let own = &entry["own"];
        let at = |key: &str| own[key].as_f64().filter(|value| value.is_finite());
        let (ratio, low, high) = (at("ratio")?, at("low")?, at("high")?);
        let p = at("p");
        let differs = p.is_some_and(|p| p < SURE_BELOW) && !(low..=high).contains(&1.0);
        Some(Self { ratio, is_compared: p.is_some(), differs })
    }

    /// Whether the aged volume is slower beyond chance.
    fn is_loss(&self) -> bool {
        self.differs && self.ratio < 1.0
    }

    /// The lowest value is the worst: a loss beyond chance comes before those that chance may
    /// explain.
    fn badness(&self) -> f64 {
        if self.is_loss() { self.ratio - 1.0 } else { self.ratio }
    }
}

impl<'a> Page<'a> {
    fn read(results: &'a Json) -> Self {
        let of = |key| names(&results["figures"], key);
        let file_systems = of("file_system");
        // The table of free space can have other file systems.
        let of_states = names(&results["states"], "file_system");
        let all = file_systems.iter().chain(&of_states);
        let classes = arm_classes(all.map(|name| (name.as_str(), name.as_str())));
        Self { results, personalities: of("personality"), file_systems, states: of("state"), classes }
    }

    fn entry(&self, personality: &str, file_system: &str, state: &str) -> &'a Json {
        let is_it = |entry: &&Json| {
            entry["personality"] == personality && entry["file_system"] == file_system && entry["state"] == state
        };
        list(&self.results["figures"]).find(is_it).unwrap_or(&Json::Null)
    }

    fn verdicts(&self) -> Vec<String> {
        let mut verdicts = Vec::new();
        let aged = list(&self.results["figures"]).filter(|entry| entry["state"] != "fresh");
        let owns: Vec<_> = aged.filter_map(|entry| Some((Own::of(entry)?, entry))).collect();
        let worst = owns.iter().min_by(|(one, _), (other, _)| one.badness().total_cmp(&other.badness()));
        if let Some((own, entry)) = worst {
            let at = |key: &str| share(entry["own"][key].as_f64().unwrap_or(f64::NAN));
            let (file_system, personality) = (text(&entry["file_system"]), text(&entry["personality"]));
            let state = text(&entry["state"]);
            let reaches = format!("aged by {state}, it reaches {} of its fresh rate", share(own.ratio));
            let is_compared = owns.iter().any(|(own, _)| own.is_compared);
            verdicts.push(match (own.ratio < 1.0, own.is_loss(), is_compared) {
                (_, true, _) => format!(
                    "Aging costs {personality} on {file_system} most: {reaches} (95%: {} to {}).",
                    at("low"),
                    at("high"),
                ),
                (_, false, false) => "Too few runs to judge a loss of rate.".to_owned(),
                (true, false, true) => format!(
                    "No loss of rate is beyond chance. The largest is that of {personality} on {file_system}: {reaches}."
                ),
                (false, false, true) => "No personality is slower on an aged volume.".to_owned(),
            });
        }
        let rankings = || list(&self.results["rankings"]);
        let changed = rankings().filter(|row| list(&row["ranking"]["changes"]).next().is_some()).count();
        let is_sure = |row: &&Json| list(&row["ranking"]["changes"]).any(|change| change["is_sure"] == true);
        if rankings().next().is_some() {
            let (all, sure) = (rankings().count(), rankings().filter(is_sure).count());
            verdicts.push(match (changed, sure) {
                (0, _) => format!("Aging changes the order of the file systems in none of {}.", cases(all)),
                (_, 0) => format!(
                    "Aging changes no order of the file systems beyond chance: in {changed} of {} the order differs, but \
                     chance may explain it.",
                    cases(all)
                ),
                _ => format!(
                    "Aging changes the order of the file systems in {changed} of {}, {sure} of them beyond chance.",
                    cases(all)
                ),
            });
        }
        verdicts.extend(self.unchanged());
        if verdicts.is_empty() {
            verdicts.push("Nothing aged was measured.".to_owned());
        }
        verdicts
    }

    /// A sentence that names the pairs whose aged volumes were all compared, and none of which
    /// differs from its own fresh rate.
    fn unchanged(&self) -> Option<String> {
        const MOST: usize = 4;
        let aged = || self.states.iter().filter(|state| *state != "fresh");
        let is_alike = |personality: &str, file_system: &str| {
            let mut owns = aged().map(|state| Own::of(self.entry(personality, file_system, state)));
            owns.all(|own| own.is_some_and(|own| own.is_compared && !own.differs))
        };
        aged().next()?;
        let pairs = self.personalities.iter().flat_map(|name| self.file_systems.iter().map(move |fs| (name, fs)));
        let alike = pairs.filter(|(personality, file_system)| is_alike(personality, file_system));
        let names: Vec<String> =
            alike.map(|(personality, file_system)| format!("{personality} on {file_system}")).collect();
        let all = names.len();
        let names = with_more(names.into_iter().take(MOST), all);
        (!names.is_empty()).then(|| format!("No measurable difference after aging: {}.", crate::format::list(&names)))
    }

    /// The share of its own fresh rate that an aged volume reaches: `71%`. `None` if it does not
    /// differ beyond chance.
    fn difference(&self, personality: &str, file_system: &str, state: &str) -> Option<String> {
        let own = Own::of(self.entry(personality, file_system, state))?;
        (state != "fresh" && own.differs).then(|| share(own.ratio))
    }

    /// The largest loss of rate of each personality, relative to its own fresh volume. At
    /// most three.
    fn key_figures(&self) -> Vec<Value> {
        const MOST: usize = 3;
        let worst = |personality: &String| {
            let aged = list(&self.results["figures"])
                .filter(|entry| entry["state"] != "fresh" && entry["personality"] == personality.as_str());
            aged.filter_map(|entry| Some((Own::of(entry)?, entry)))
                .min_by(|(one, _), (other, _)| one.badness().total_cmp(&other.badness()))
        };
        let mut found: Vec<_> = self.personalities.iter().filter_map(worst).collect();
        found.sort_by(|(one, _), (other, _)| one.badness().total_cmp(&other.badness()));
        let tile = |(own, entry): &(Own, &Json)| {
            context! {
                share => share(own.ratio),
                name => format!("{} on {}", text(&entry["personality"]), text(&entry["file_system"])),
                aged => format!("of its own fresh rate, aged by {}", text(&entry["state"])),
                is_difference => own.differs,
            }
        };
        found.iter().take(MOST).map(tile).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let sum = |key: &str| list(&self.results["figures"]).filter_map(|entry| entry[key].as_u64()).sum::<u64>();
        if self.results["is_complete"] == false {
            warnings.push("The suite is not complete: continue it with --resume.".to_owned());
        }
        if sum("failed") > 0 {
            warnings.push(format!("{} run(s) failed; results.json says why.", count(sum("failed"))));
        }
        let images = list(&self.results["states"]).filter(|state| state["failed"].is_string()).count();
        if images > 0 {
            warnings.push(format!("{images} image(s) could not be made; the table of volumes says why."));
        }
        if sum("no_space") > 0 {
            warnings.push(format!("{} call(s) found no space left; they count for nothing.", count(sum("no_space"))));
        }
        let disturbed = |run: &&Json| run["disturbance"].as_str().is_some_and(|reason| !reason.is_empty());
        if let Some(first) = list(&self.results["runs"]).find(disturbed) {
            let runs = list(&self.results["runs"]).filter(disturbed).count() as u64;
            let reason = text(&first["disturbance"]);
            warnings.push(format!("Other work disturbed {} run(s) (the first: {reason}); they count.", count(runs)));
        }
        if self.results["plan"]["runs"].as_u64().is_some_and(|runs| runs < 4) {
            warnings.push("Fewer than four runs: no difference can be distinguished from chance.".to_owned());
        }
        if self.results["device"].is_string() {
            warnings.push("Rates are modelled: only the device takes time, for one request after the other. The processor costs nothing, and threads do not help.".to_owned());
        }
        warnings
    }

    fn figure(&self, personality: &str) -> Value {
        let base = self.file_systems.first().map_or(&Json::Null, |base| self.entry(personality, base, "fresh"));
        let rate = |entry: &Json| entry["rate"]["median"].as_f64().map_or("–".to_owned(), figure);
        let rows = self.states.iter().map(|state| {
            let cells = self.file_systems.iter().map(|file_system| {
                let entry = self.entry(personality, file_system, state);
                let shown = |value: &Json| value.as_f64().map_or("–".to_owned(), figure);
                let normal = &entry["normal"];
                let own = (state != "fresh" && entry["own"].is_object()).then(|| shown(&entry["own"]["ratio"]));
                let interval = format!("{}–{}", shown(&normal["low"]), shown(&normal["high"]));
                context! { ratio => shown(&normal["ratio"]), own => own, interval => interval, rate => rate(entry) }
            });
            context! { state => state.as_str(), cells => cells.collect::<Vec<_>>() }
        });
        context! {
            name => personality,
            base_rate => format!("{} operations/s", rate(base)),
            drawings => drawing::draw(self, personality),
            csv => self.csv(personality),
            rows => rows.collect::<Vec<_>>(),
        }
    }

    /// The figures of a personality as CSV.
    fn csv(&self, personality: &str) -> String {
        let mut csv = Csv::new(&[
            "state",
            "file_system",
            "n",
            "operations_per_second",
            "ratio",
            "low_95",
            "high_95",
            "own_ratio",
            "own_low_95",
            "own_high_95",
        ]);
        for (state, file_system) in
            self.states.iter().flat_map(|state| self.file_systems.iter().map(move |name| (state, name)))
        {
            let entry = self.entry(personality, file_system, state);
            let at = |value: &Json| value.as_f64().map(exact).unwrap_or_default();
            let of = |ratio: &Json| ["ratio", "low", "high"].map(|key| at(&ratio[key]));
            let rate = &entry["rate"];
            let first = [state.clone(), file_system.clone(), at(&rate["count"]), at(&rate["median"])];
            csv.row(&[&first[..], &of(&entry["normal"]), &of(&entry["own"])].concat());
        }
        csv.finish()
    }

    fn bar(&self, personality: &str, file_system: &str, state: &str) -> Option<Bar> {
        let normal = &self.entry(personality, file_system, state)["normal"];
        let at = |key: &str| normal[key].as_f64();
        Some(Bar { ratio: at("ratio")?, low: at("low")?, high: at("high")? })
    }

    fn rankings(&self) -> Vec<Value> {
        let mut last = String::new();
        let row = |row: &Json| {
            let personality = text(&row["personality"]);
            let ranking = &row["ranking"];
            let order = |key: &str| list(&ranking[key]).map(text).collect::<Vec<_>>().join(", ");
            let first = personality != last;
            let p = |value: &Json| value.as_f64().map_or("too few runs".to_owned(), |p| format!("p {}", number(p)));
            let changes = list(&ranking["changes"]).map(|change| {
                format!(
                    "{} fresh ({}), {} aged ({}){}",
                    text(&change["better_unaged"]),
                    p(&change["p_unaged"]),
                    text(&change["better_aged"]),
                    p(&change["p_aged"]),
                    if change["is_sure"] == true { "" } else { ": chance may explain it" }
                )
            });
            let value = context! {
                personality => if first { personality.as_str() } else { "" },
                first => first,
                state => text(&row["state"]),
                fresh => order("unaged"),
                aged => order("aged"),
                changes => changes.collect::<Vec<_>>(),
            };
            last = personality;
            value
        };
        list(&self.results["rankings"]).map(row).collect()
    }

    fn states(&self) -> Vec<Value> {
        let mut last = String::new();
        let row = |row: &Json| {
            let name = text(&row["file_system"]);
            let (first, reached) = (name != last, &row["reached"]);
            let at = |value: &Json| value.as_f64().map_or("–".to_owned(), figure);
            let layout = &reached["layout"];
            let cells = [
                reached["fullness"].as_f64().map_or("–".to_owned(), percent),
                layout["files"].as_u64().map_or("–".to_owned(), count),
                at(&reached["turnover"]),
                layout["layout_score"].as_f64().map_or("–".to_owned(), score),
                at(&layout["extents_per_file"]),
            ];
            let shown = if first { name.clone() } else { String::new() };
            last = name;
            context! { file_system => shown, first => first, state => text(&row["state"]), cells => cells, failed => row["failed"].as_str() }
        };
        // A fresh volume was aged by no files.
        let is_shown = |row: &&Json| row["reached"].is_object() || row["failed"].is_string();
        list(&self.results["states"]).filter(is_shown).map(row).collect()
    }

    /// Circumstances of the first run of each file system, equal ones once; and the plan.
    fn facts(&self) -> Vec<[String; 2]> {
        let mut facts = vec![
            ["plan".to_owned(), self.results["plan"].to_string()],
            ["device".to_owned(), self.results["device"].as_str().unwrap_or("the machine's own").to_owned()],
        ];
        let of = |name: &str| {
            let run = list(&self.results["runs"]).find(|run| run["file_system"] == name);
            let state = list(&self.results["states"]).find(|state| state["file_system"] == name);
            let pairs = |value: Option<&Json>| -> Vec<(String, String)> {
                let entries = value.map_or(&Json::Null, |value| &value["circumstances"]);
                list(entries).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
            };
            let made = pairs(state).into_iter().filter(|(key, _)| key.starts_with("mkfs"));
            made.chain(pairs(run)).collect::<Vec<_>>()
        };
        let all: Vec<_> = self.file_systems.iter().map(|name| (name, of(name))).collect();
        let Some((_, base)) = all.first() else { return facts };
        for (key, value) in base {
            let is_alike = all.iter().all(|(_, pairs)| pairs.iter().any(|pair| pair.0 == *key && pair.1 == *value));
            if is_alike {
                facts.push([key.clone(), value.clone()]);
            }
        }
        for (name, pairs) in &all {
            let unlike = pairs.iter().filter(|(key, _)| !facts.iter().any(|fact| fact[0] == *key));
            let unlike: Vec<_> = unlike.map(|(key, value)| [format!("{name}: {key}"), value.clone()]).collect();
            facts.extend(unlike);
        }
        facts
    }
}
