//! Figures as tab-separated lines. A whole run is stored in this form, and the docs' table is
//! generated from it.

use senesce_trials::Verdict;

use super::{Record, ShownFigure, Tally};

/// The first line of such a file.
const HEADING: &str = "# experiment\tkind\tfigure\tpaper\tsection\tpublished\tours\tratio\tverdict\tfitted\tcause";
/// Marks of the table in the docs.
const BEGIN: &str = "<!-- figures:";
const END: &str = "<!-- end of figures -->";
/// No value.
const NONE: &str = "-";

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureLine {
    /// Its experiment.
    pub experiment: String,
    /// Structure or time.
    pub kind: String,
    /// Our figure, and the paper's statement.
    pub figure: ShownFigure,
}

impl FigureLine {
    /// Writes the figures of several parts as a file.
    pub fn write_all<'r>(records: impl IntoIterator<Item = &'r Record>) -> String {
        let lines = records.into_iter().flat_map(|record| {
            record.figures.iter().map(|figure| {
                let number = |value: Option<f64>| value.map_or(NONE.to_owned(), |value| value.to_string());
                let text = |text: Option<&str>| match text.unwrap_or_default().replace(['\t', '\n'], " ") {
                    empty if empty.is_empty() => NONE.to_owned(),
                    text => text,
                };
                let columns = [
                    record.experiment.clone(),
                    record.kind.clone(),
                    figure.name.clone(),
                    text(Some(&figure.paper)),
                    text(Some(&figure.section)),
                    number(figure.published),
                    number(figure.value),
                    number(figure.ratio),
                    text(figure.verdict.map(Verdict::words)),
                    text(figure.fitted.as_deref()),
                    text(figure.cause.as_deref()),
                ];
                columns.join("\t")
            })
        });
        std::iter::once(HEADING.to_owned()).chain(lines).map(|line| line + "\n").collect()
    }

    /// Parses such a file. Errors: an invalid line, in words.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        text.lines().filter(|line| !line.starts_with('#')).map(Self::read).collect()
    }

    fn read(line: &str) -> Result<Self, String> {
        let columns: Vec<&str> = line.split('\t').collect();
        let [experiment, kind, name, paper, section, published, value, ratio, verdict, fitted, cause] = columns[..]
        else {
            return Err(format!("a line has 11 columns, not {}: {line:?}", columns.len()));
        };
        let text = |column: &str| if column == NONE { String::new() } else { column.to_owned() };
        let some = |column: &str| (column != NONE).then(|| column.to_owned());
        let number = |column: &str| match column {
            NONE => Ok(None),
            digits => digits.parse().map(Some).map_err(|error| format!("{digits:?} is no number ({error}): {line:?}")),
        };
        let verdict = match verdict {
            NONE => None,
            words => match Verdict::ALL.into_iter().find(|verdict| verdict.words() == words) {
                Some(verdict) => Some(verdict),
                None => return Err(format!("{words:?} is no verdict: {line:?}")),
            },
        };
        let value = number(value)?;
        let figure = ShownFigure {
            name: name.to_owned(),
            paper: text(paper),
            section: text(section),
            published: number(published)?,
            value,
            ours: value.map_or("no figure".to_owned(), super::record::tell),
            ratio: number(ratio)?,
            verdict,
            fitted: some(fitted),
            cause: some(cause),
        };
        Ok(Self { experiment: experiment.to_owned(), kind: kind.to_owned(), figure })
    }
}

/// The table of the docs: the figures with a statement of the paper, and the number of met ones.
pub fn render_docs_table(lines: &[FigureLine]) -> String {
    let mut text = format!("{}\n\n", Tally::of(lines.iter().map(|line| &line.figure)).words());
    text.push_str("| | figure | published | section | ours | ratio | verdict |\n|---|---|---|---|---|---|---|\n");
    for FigureLine { experiment, figure, .. } in lines {
        let ShownFigure { name, paper, section, ours, ratio, verdict: Some(verdict), fitted, .. } = figure else {
            continue;
        };
        let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let fitted = if fitted.is_some() { " (fitted)" } else { "" };
        text.push_str(&format!(
            "| {experiment} | {name} | {paper} | {section} | {ours} | {ratio} | {verdict}{fitted} |\n"
        ));
    }
    text
}

/// The table of the docs on time: the figures without a statement of the paper.
pub fn render_time_table(lines: &[FigureLine]) -> String {
    let mut text = "| | figure | ours |\n|---|---|---|\n".to_owned();
    for FigureLine { experiment, kind, figure } in lines {
        if kind == "time" && figure.verdict.is_none() {
            text.push_str(&format!("| {experiment} | {} | {} |\n", figure.name, figure.ours));
        }
    }
    text
}

/// The docs with this table between the two marks; none if they have no marks.
pub fn replace_docs_table(docs: &str, table: &str) -> Option<String> {
    let (before, rest) = docs.split_once(BEGIN)?;
    let (comment, rest) = rest.split_once('\n')?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{comment}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use senesce_trials::{Claim, Figure, Scale};

    use super::*;

    fn record() -> Record {
        let figures = [
            Figure::new("chain", 9.5).number(10.0, "7.1").fitted("by hand"),
            Figure::new("cores", f64::INFINITY).quoted(Claim::AtMost(1.0), "a fraction", "7.1"),
            Figure::new("moved", 0.25),
        ];
        let figures = figures.iter().map(|figure| ShownFigure::of(figure, "E4", Scale::EIGHTH)).collect();
        Record {
            experiment: "E4".to_owned(),
            kind: "time".to_owned(),
            title: String::new(),
            scale: Scale::EIGHTH,
            figures,
            notes: Vec::new(),
            circumstances: Vec::new(),
            charts: Vec::new(),
        }
    }

    #[test]
    fn figures_survive_as_lines() {
        let text = FigureLine::write_all([&record()]);
        let lines = FigureLine::read_all(&text).unwrap();
        assert_eq!(lines.len(), 3);
        for (line, figure) in lines.iter().zip(record().figures) {
            let ours = line.figure.ours.clone();
            assert_eq!(line.figure, ShownFigure { ours, ..figure });
        }
        for (damage, said) in
            [("E4\ttime".to_owned(), "11 columns"), (text.replace("met within", "nearly"), "is no verdict")]
        {
            assert!(FigureLine::read_all(&damage).unwrap_err().contains(said));
        }
    }

    #[test]
    fn the_docs_table_is_replaced_between_its_marks() {
        let docs = "a\n<!-- figures: made -->\nold\n<!-- end of figures -->\nb\n";
        let new = replace_docs_table(docs, "new\n").unwrap();
        assert_eq!(new, "a\n<!-- figures: made -->\nnew\n<!-- end of figures -->\nb\n");
        assert_eq!(replace_docs_table("a\n", "new\n"), None);
    }

    #[test]
    fn the_time_table_has_unpublished_figures() {
        let lines = FigureLine::read_all(&FigureLine::write_all([&record()])).unwrap();
        assert_eq!(render_time_table(&lines), "| | figure | ours |\n|---|---|---|\n| E4 | moved | 0.250 |\n");
    }

    #[test]
    fn the_docs_table_has_published_figures() {
        let lines = FigureLine::read_all(&FigureLine::write_all([&record()])).unwrap();
        let table = render_docs_table(&lines);
        assert!(table.starts_with("1 of 2 published numbers are met within 40% (1 of them fitted)"), "{table}");
        assert!(table.contains("| E4 | chain | 10 | 7.1 | 9.50 | 0.95 | met within 40% (fitted) |\n"), "{table}");
        assert!(table.contains("| no figure |  | not met |\n") && !table.contains("moved"), "{table}");
    }
}
