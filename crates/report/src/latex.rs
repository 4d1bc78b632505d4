//! The figures of a run as LaTeX environments.

use std::fmt::Write as _;

use crate::model::Model;
use crate::panels::Figure;
use crate::sheet::PAPERS;

/// Environments for all figures: `figure` for one column of text, and `figure*` for two.
pub(crate) fn latex(model: &Model, figures: &[Figure]) -> String {
    let run = &model.results.run;
    let mut text = format!(
        "% Figures of the plan {} by senesce {}.\n\
         % Copy the figures that you need. The preamble needs \\usepackage{{graphicx}}, and the encoding UTF-8.\n\
         % The PDF files have the width of a column (84 mm) or of two (178 mm): do not scale them.\n",
        comment(&run.plan_name),
        comment(&run.senesce_version),
    );
    for figure in figures {
        for paper in &PAPERS {
            let (environment, label) = match paper.mm {
                84 => ("figure", ""),
                _ => ("figure*", "-wide"),
            };
            let _ = write!(
                text,
                "\n\\begin{{{environment}}}\n  \\centering\n  \\includegraphics{{figures/{name}-{mm}mm.pdf}}\n  \
                 \\caption[{short}]{{{title}. {caption}}}\n  \\label{{fig:{name}{label}}}\n\\end{{{environment}}}\n",
                name = figure.name,
                mm = paper.mm,
                short = escape(&figure.title).replace('[', "{[}").replace(']', "{]}"),
                title = escape(&figure.title),
                caption = escape(figure.caption.trim()),
            );
        }
    }
    text
}

/// A text in a comment of LaTeX. A line break would end the comment.
fn comment(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// A text as LaTeX prints it. Control characters become blanks.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        let command = match letter {
            '\\' => "\\textbackslash{}",
            '{' => "\\{",
            '}' => "\\}",
            '$' => "\\$",
            '&' => "\\&",
            '#' => "\\#",
            '%' => "\\%",
            '_' => "\\_",
            '^' => "\\textasciicircum{}",
            '~' => "\\textasciitilde{}",
            '<' => "\\textless{}",
            '>' => "\\textgreater{}",
            '|' => "\\textbar{}",
            '"' => "{\\char34}",
            '`' => "{\\char96}",
            '–' => "--",
            '—' => "---",
            '“' => "``",
            '”' => "''",
            '‘' => "`",
            '’' => "'",
            '…' => "\\ldots{}",
            '×' => "\\(\\times\\)",
            '·' => "\\(\\cdot\\)",
            '±' => "\\(\\pm\\)",
            '≤' => "\\(\\leq\\)",
            '≥' => "\\(\\geq\\)",
            '→' => "\\(\\rightarrow\\)",
            'µ' | 'μ' => "\\(\\mu\\)",
            'ε' => "\\(\\varepsilon\\)",
            '\u{a0}' | '\u{202f}' => "~",
            letter if letter.is_control() => " ",
            letter => {
                escaped.push(letter);
                continue;
            }
        };
        escaped.push_str(command);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use senesce_store::Results;

    use super::*;
    use crate::panels::Legend;

    /// The depth of braces at the end of a text. Fails if a brace closes none.
    fn depth(text: &str) -> i32 {
        let (mut depth, mut is_escaped, mut is_comment) = (0, false, false);
        for letter in text.chars() {
            match letter {
                '\n' => is_comment = false,
                _ if is_comment => {}
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '%' => is_comment = true,
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            assert!(depth >= 0, "{text}");
        }
        depth
    }

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(escape("50% of a_b & {c} #1 $x"), "50\\% of a\\_b \\& \\{c\\} \\#1 \\$x");
        assert_eq!(escape("\\input{/etc/passwd}"), "\\textbackslash{}input\\{/etc/passwd\\}");
        assert_eq!(
            escape("a~b^c \"d\" <e>"),
            "a\\textasciitilde{}b\\textasciicircum{}c {\\char34}d{\\char34} \\textless{}e\\textgreater{}"
        );
        assert_eq!(escape("12–13× “x”\u{7}\n"), "12--13\\(\\times\\) ``x''  ");
    }

    #[test]
    fn environments_are_balanced_for_any_names() {
        let hostile = "}\\end{figure}\\input{x}%\n[a]{{";
        let mut results = Results::default();
        results.run.plan_name = format!("evil\n\\input{{x}} {hostile}");
        let figure = Figure {
            name: "modelled-cost".to_owned(),
            title: hostile.to_owned(),
            caption: format!(" {hostile} 100% "),
            legend: Legend::Sizes,
            csv: String::new(),
            variants: Vec::new(),
        };
        let text = latex(&Model::compute(&results), &[figure]);
        assert_eq!(depth(&text), 0, "{text}");
        let count = |what: &str| text.matches(what).count();
        assert_eq!((count("\n\\begin{figure}"), count("\n\\end{figure}")), (1, 1), "{text}");
        assert_eq!((count("\n\\begin{figure*}"), count("\n\\end{figure*}")), (1, 1), "{text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("\\input")), "{text}");
        let short = text.split("\\caption[").nth(1).unwrap().split_once("]{").unwrap().0;
        assert!(short.contains("{[}a{]"), "{short}");
        for file in ["figures/modelled-cost-84mm.pdf", "figures/modelled-cost-178mm.pdf"] {
            assert!(text.contains(file), "{text}");
        }
        assert!(text.contains("\\label{fig:modelled-cost}") && text.contains("\\label{fig:modelled-cost-wide}"));
    }
}
