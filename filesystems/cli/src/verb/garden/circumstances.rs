//! Circumstances of a table: what most parts have in common, once, and what is particular to each.

use senesce_trials::Fact;

use super::{kept::RunPart, table::Shown};

/// All facts of a part: what was set, and the machine that it ran on.
fn list_facts(part: &RunPart) -> impl Iterator<Item = Fact> {
    let machine = [Fact::new("host", part.ran.host.clone()), Fact::new("parts at a time", part.ran.jobs.to_string())];
    part.record.circumstances.iter().cloned().chain(machine)
}

/// The value that more than half of the parts with this key report, where a quarter of all parts
/// do.
pub fn find_common(parts: &[RunPart]) -> Vec<Fact> {
    // A key, a value, and its number of parts.
    let mut matters: Vec<(String, Vec<(String, usize)>)> = Vec::new();
    for Fact { what, told: value } in parts.iter().flat_map(list_facts) {
        let at = matters.iter().position(|(known, _)| *known == what).unwrap_or_else(|| {
            matters.push((what, Vec::new()));
            matters.len() - 1
        });
        let all = &mut matters[at].1;
        match all.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => all.push((value, 1)),
        }
    }
    let most = |(what, all): (String, Vec<(String, usize)>)| {
        let sum: usize = all.iter().map(|(_, count)| count).sum();
        let (value, _) = all.into_iter().find(|(_, count)| count * 4 > parts.len() && count * 2 > sum)?;
        Some(Fact { what, told: value })
    };
    matters.into_iter().filter_map(most).collect()
}

/// What a part does not have in common with them; a matter that it does not have at all does not
/// apply to it.
pub fn find_particular(part: &RunPart, common: &[Fact]) -> Vec<Fact> {
    let lacks = |common: &&Fact| list_facts(part).all(|fact| fact.what != common.what);
    let lacking = common.iter().filter(lacks).map(|common| Fact::new(&common.what, "does not apply"));
    list_facts(part).filter(|fact| !common.contains(fact)).chain(lacking).collect()
}

/// All of it as text: what is common, then a line for each part.
pub fn print_circumstances<'t>(common: &[Fact], build: &str, parts: impl Iterator<Item = &'t Shown>) -> String {
    let mut text = format!("\nCircumstances\n  build: BLAKE3 {build}\n");
    for Fact { what, told: value } in common {
        text.push_str(&format!("  {what}: {value}\n"));
    }
    for Shown { record, ran, particular } in parts {
        let name = format!("{} {}", record.experiment, record.kind);
        let with = if ran.part == name { String::new() } else { format!(", run as {}", ran.part) };
        let facts: Vec<String> =
            particular.iter().map(|Fact { what, told: value }| format!("{what}: {value}")).collect();
        text.push_str(&format!(
            "  {name}: {:.1} s of a processor, {:.1} s, ended {}{with}; {}\n",
            ran.processor_seconds,
            ran.wall_seconds,
            ran.ended,
            facts.join("; ")
        ));
    }
    text
}
